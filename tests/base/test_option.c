#include "harness.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/option.h"

struct cfg {
    int64_t hidden, free_int;
    double lr, free_float, floor_only;
    bool nesterov;
    char *name, *path;
    int on_nan;
};
#define AT(f) offsetof(struct cfg, f)
static const co_option table[] = {
    {"hidden", CO_OPT_INT, AT(hidden), "128", "width", .min = 1, .max = 65536},
    {"free_int", CO_OPT_INT, AT(free_int), "-3", "any"},
    {"lr", CO_OPT_FLOAT, AT(lr), "0.01", "learning rate", .min = 0, .max = 10},
    {"free_float", CO_OPT_FLOAT, AT(free_float), "0", "any"},
    {"floor_only", CO_OPT_FLOAT, AT(floor_only), "1", "no end", .min = 1, .max = INFINITY},
    {"nesterov", CO_OPT_BOOL, AT(nesterov), "true", "flag"},
    {"name", CO_OPT_STR, AT(name), "digits", "data set"},
    {"path", CO_OPT_STR, AT(path), "null", "where"},
    {"on_nan", CO_OPT_ENUM, AT(on_nan), "skip", "what then", .choices = "stop|skip|ignore it"},
    {0},
};

static const co_option *row(const char *key)
{
    const co_option *r = co_option_find(table, key);
    CHECK(r, "no row %s", key);
    return r;
}

TEST(defaults_fill_every_field)
{
    struct cfg c;
    memset(&c, 0xa5, sizeof c); /* the code must not rely on zeroed memory */
    CHECK_OK(co_options_default(table, &c));
    CHECK(c.hidden == 128 && c.free_int == -3 && c.lr == 0.01 && c.free_float == 0 && c.nesterov, "numbers");
    CHECK(strcmp(c.name, "digits") == 0 && c.path == NULL && c.on_nan == 1, "words");
    co_options_fini(table, &c);
    CHECK(!c.name, "freed and forgotten");
    CHECK(!co_option_find(table, "absent") && !co_option_find(table, "hid"), "found what is not there");
}

TEST(a_bad_value_is_refused_with_key_value_and_what_would_do)
{
    static const struct {
        const char *key, *full, *value, *words;
    } bad[] = {
        {"lr", "optim.lr", "abc", "optim.lr: \"abc\" is not a number (for example 0.01)"},
        {"lr", "optim.lr", "", "optim.lr: \"\" is not a number"},
        {"lr", "optim.lr", "nan", "optim.lr: \"nan\" is not a number"},
        {"lr", "optim.lr", "10.5", "optim.lr: 10.5 is out of range (allowed: 0 to 10)"},
        {"lr", "optim.lr", "-1e-9", "optim.lr: -1e-9 is out of range (allowed: 0 to 10)"},
        {"lr", "optim.lr", "inf", "out of range"},
        {"floor_only", "x.floor_only", "0.5", "x.floor_only: 0.5 is out of range (allowed: at least 1)"},
        {"hidden", "model.hidden", "1.5", "model.hidden: \"1.5\" is not a whole number (for example 128)"},
        {"hidden", "model.hidden", "0", "model.hidden: 0 is out of range (allowed: 1 to 65536)"},
        {"hidden", "model.hidden", "65_537", "model.hidden: 65_537 is out of range (allowed: 1 to 65536)"},
        {"free_int", "free_int", "99999999999999999999", "is not a whole number"},
        {"nesterov", "optim.nesterov", "maybe", "optim.nesterov: \"maybe\" is not true or false"},
        {"on_nan", "trainer.on_nan", "halt", "trainer.on_nan: \"halt\" is not one of stop|skip|ignore it"},
        {"on_nan", "trainer.on_nan", "sto", "is not one of"},
        {"on_nan", "trainer.on_nan", "stop|skip", "is not one of"},
        {"on_nan", "trainer.on_nan", "", "is not one of"},
    };
    struct cfg c, before;
    memset(&c, 0, sizeof c);
    CHECK_OK(co_options_default(table, &c));
    before = c;
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        CHECK_FAILS(co_option_set(row(bad[i].key), &c, bad[i].full, bad[i].value), CO_EINPUT, bad[i].words);
        CHECK(memcmp(&c, &before, sizeof c) == 0, "%s changed a field", bad[i].value);
    }
    co_options_fini(table, &c);
}

TEST(good_values_are_set)
{
    struct cfg c;
    CHECK_OK(co_options_default(table, &c));
    CHECK_OK(co_option_set(row("hidden"), &c, "h", "1_000"));
    CHECK_OK(co_option_set(row("free_int"), &c, "f", "-9223372036854775808"));
    CHECK_OK(co_option_set(row("lr"), &c, "lr", "10"));
    CHECK_OK(co_option_set(row("free_float"), &c, "f", "-inf"));
    CHECK_OK(co_option_set(row("nesterov"), &c, "n", "Off"));
    CHECK_OK(co_option_set(row("name"), &c, "n", "null"));
    CHECK_OK(co_option_set(row("path"), &c, "p", "/a b/c"));
    CHECK_OK(co_option_set(row("path"), &c, "p", ""));
    CHECK_OK(co_option_set(row("on_nan"), &c, "o", "ignore it"));
    CHECK(c.hidden == 1000 && c.free_int == INT64_MIN && c.lr == 10 && c.free_float == -INFINITY, "numbers");
    CHECK(!c.nesterov && !c.name && strcmp(c.path, "") == 0 && c.on_nan == 2, "words");
    co_options_fini(table, &c);
}

static void same_after_print(const struct cfg *c, const char *key)
{
    struct cfg again;
    co_str s = {0}, t = {0};
    CHECK_OK(co_options_default(table, &again));
    co_option_print(&s, row(key), c);
    CHECK_OK(co_option_set(row(key), &again, key, co_str_text(&s)));
    co_option_print(&t, row(key), &again);
    CHECK(strcmp(co_str_text(&s), co_str_text(&t)) == 0, "%s: %s became %s", key, co_str_text(&s),
          co_str_text(&t));
    CHECK(strcmp(key, "free_float") != 0 || memcmp(&c->free_float, &again.free_float, 8) == 0, "%a became %a",
          c->free_float, again.free_float);
    CHECK(again.hidden == c->hidden || strcmp(key, "hidden") != 0, "hidden");
    co_str_fini(&s);
    co_str_fini(&t);
    co_options_fini(table, &again);
}

TEST(what_is_printed_reads_back_to_the_same_value)
{
    struct cfg c;
    uint64_t seed = 5;
    CHECK_OK(co_options_default(table, &c));
    c.hidden = 65536;
    for (const co_option *r = table; r->key; r++)
        same_after_print(&c, r->key);
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = test_u32(&seed);
        bits = bits << 32 | test_u32(&seed);
        memcpy(&c.free_float, &bits, sizeof c.free_float);
        if (!isnan(c.free_float))
            same_after_print(&c, "free_float");
    }
    co_options_fini(table, &c);
}

TEST(a_wrong_default_is_named_and_holds_nothing)
{
    static const co_option wrong[] = {
        {"name", CO_OPT_STR, AT(name), "digits", ""},
        {"lr", CO_OPT_FLOAT, AT(lr), "fast", ""},
        {0},
    };
    struct cfg c;
    CHECK_FAILS(co_options_default(wrong, &c), CO_EINPUT, "default: lr: \"fast\" is not a number");
    CHECK(!c.name, "kept a string");
}

static co_err set_some(void *ctx)
{
    struct cfg c;
    co_str s = {0};
    CO_TRY(co_options_default(table, &c));
    co_err err = co_option_set(row("path"), &c, "path", "/here");
    if (!err)
        err = co_option_set(row("path"), &c, "path", "/there");
    co_option_print(&s, row("path"), &c);
    if (!err)
        err = co_str_err(&s);
    co_str_fini(&s);
    co_options_fini(table, &c);
    return err;
}

TEST(every_allocation_of_options_may_fail)
{
    test_each_alloc_fails(set_some, NULL);
}
