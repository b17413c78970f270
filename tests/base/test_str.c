#include "harness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

TEST(a_string_grows_and_never_shows_null)
{
    co_str s = {0};
    CHECK(strcmp(co_str_text(&s), "") == 0, "empty");
    for (int i = 0; i < 1000; i++)
        co_str_addf(&s, "%d,", i);
    co_str_add(&s, "end");
    co_str_addn(&s, "ing|", 3);
    CHECK(s.len == strlen(co_str_text(&s)) && s.len == 3890 + 6, "%zu", s.len);
    CHECK(strncmp(s.p, "0,1,2,", 6) == 0 && strcmp(s.p + s.len - 10, "999,ending") == 0, "%s",
          s.p + s.len - 10);
    co_str_clear(&s);
    CHECK(strcmp(co_str_text(&s), "") == 0 && !co_str_err(&s), "cleared");
    co_str_fini(&s);
}

TEST(a_taken_string_is_the_callers)
{
    co_str s = {0};
    char *p = co_str_take(&s);
    CHECK(p && strcmp(p, "") == 0, "nothing added: empty text");
    co_free(p);
    co_str_add(&s, "mine");
    p = co_str_take(&s);
    CHECK(strcmp(p, "mine") == 0 && strcmp(co_str_text(&s), "") == 0, "%s", p);
    co_free(p);
    co_str_fini(&s);
}

TEST(errno_survives_until_its_text_is_printed)
{
    co_str s = {0};
    errno = ENOENT;
    co_str_addf(&s, "%m");
    CHECK(strcmp(co_str_text(&s), "No such file or directory") == 0, "%s", co_str_text(&s));
    co_str_fini(&s);
}

static co_err build(void *ctx)
{
    co_str s = {0};
    for (int i = 0; i < 40; i++) {
        co_str_add(&s, "some words ");
        co_str_addf(&s, "%d", i);
    }
    co_err err = co_str_err(&s);
    char *p = co_str_take(&s);
    if (!err != !!p)
        return CO_OK; /* the caller sees NULL: a failed string gives no buffer */
    co_free(p);
    return err;
}

TEST(a_string_without_memory_says_so)
{
    test_each_alloc_fails(build, NULL);
}

TEST(whole_numbers_are_read_strictly)
{
    static const struct {
        const char *text;
        long long want;
    } good[] = {{"0", 0},       {"-7", -7},
                {"+7", 7},      {"1_000", 1000},
                {"1_0_0", 100}, {"9223372036854775807", 9223372036854775807},
                {"007", 7},     {"-9_223_372_036_854_775_808", -9223372036854775807 - 1}};
    static const char *const bad[] = {
        "",     " 1",  "1 ",  "1.5", "1e3", "0x10", "_1",  "1_",
        "1__0", "-_1", "abc", "-",   "+-1", "inf",  "nan", "9223372036854775808"};
    long long v = 99;
    for (size_t i = 0; i < CO_COUNT(good); i++)
        CHECK(co_str_to_i64(good[i].text, &v) && v == good[i].want, "\"%s\" gives %lld", good[i].text, v);
    v = 99;
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK(!co_str_to_i64(bad[i], &v) && v == 99, "\"%s\" gives %lld", bad[i], v);
}

TEST(numbers_are_read_strictly)
{
    static const struct {
        const char *text;
        double want;
    } good[] = {{"0.01", 0.01},        {"-1e-3", -1e-3}, {".5", 0.5},          {"5.", 5},
                {"1_000.25", 1000.25}, {"+2", 2},        {"0x1.8p1", 3},       {"inf", INFINITY},
                {"-Inf", -INFINITY},   {"1e-400", 0},    {"4.9e-324", 5e-324}, {"1e308", 1e308}};
    static const char *const bad[] = {"",   " 1",   "1 ",  "1,5", "1e", "1e999", "_1",
                                      "1_", "1_.5", "abc", "--1", ".",  "infx"};
    double v = 99;
    for (size_t i = 0; i < CO_COUNT(good); i++)
        CHECK(co_str_to_f64(good[i].text, &v) && v == good[i].want, "\"%s\" gives %g", good[i].text, v);
    CHECK(co_str_to_f64("nan", &v) && isnan(v), "nan gives %g", v);
    v = 99;
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK(!co_str_to_f64(bad[i], &v) && v == 99, "\"%s\" gives %g", bad[i], v);
}

TEST(truth_has_six_words)
{
    bool v;
    CHECK(co_str_to_bool("True", &v) && v && co_str_to_bool("ON", &v) && v && co_str_to_bool("yes", &v) && v,
          "yes");
    CHECK(co_str_to_bool("false", &v) && !v && co_str_to_bool("Off", &v) && !v && co_str_to_bool("no", &v) && !v,
          "no");
    CHECK(!co_str_to_bool("1", &v) && !co_str_to_bool("", &v) && !co_str_to_bool("truee", &v), "others");
}

TEST(a_printed_number_is_short_and_reads_back)
{
    static const struct {
        double x;
        const char *want;
    } pretty[] = {{0.1, "0.1"},    {0.001, "0.001"},    {3, "3"},
                  {100, "100"},    {-0.0, "-0"},        {1e6, "1000000"},
                  {1e20, "1e+20"}, {-2.5, "-2.5"},      {1e-5, "1e-05"},
                  {NAN, "nan"},    {-INFINITY, "-inf"}, {0.1 + 0.2, "0.30000000000000004"}};
    co_str s = {0};
    char least[40];
    for (size_t i = 0; i < CO_COUNT(pretty); i++) {
        co_str_clear(&s);
        co_str_addf64(&s, pretty[i].x);
        CHECK(strcmp(co_str_text(&s), pretty[i].want) == 0, "%s, not %s", co_str_text(&s), pretty[i].want);
    }
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = test_u32(&seed);
        bits = bits << 32 | test_u32(&seed);
        double x, y = 0;
        memcpy(&x, &bits, sizeof x);
        co_str_clear(&s);
        co_str_addf64(&s, x);
        CHECK(co_str_to_f64(co_str_text(&s), &y) && (x == y || (isnan(x) && isnan(y))), "%a: %s", x,
              co_str_text(&s));
    }
    for (int i = 0; i < 20000; i++) { /* as short as can be: numbers of few digits, and numbers close to 0 */
        double scale = pow(10, (double)(test_u32(&seed) % 24) - 12);
        double x = (double)(test_u32(&seed) % 1000000) / 7 * scale;
        x = i % 4 == 0 ? (double)(float)x : i % 4 == 1 ? round(x) / 1000 + 0.5 : i % 4 == 2 ? x * 1e-312 : x;
        x = x < 1e15 && x == floor(x) ? 0.5 : x;
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(least, sizeof least, "%.*g", digits, x);
            if (strtod(least, NULL) == x)
                break;
        }
        co_str_clear(&s);
        co_str_addf64(&s, x);
        CHECK(strcmp(co_str_text(&s), least) == 0, "%a: %s, not %s", x, co_str_text(&s), least);
    }
    co_str_fini(&s);
}

static const char *const keys[] = {"seed",
                                   "data.batch_size",
                                   "data.name",
                                   "data.num_workers",
                                   "model.name",
                                   "model.hidden",
                                   "optim.lr",
                                   "optim.name",
                                   "optim.weight_decay",
                                   "optim.momentum",
                                   "trainer.max_epochs",
                                   "trainer.max_steps",
                                   "trainer.on_nan",
                                   "trainer.slices"};

TEST(a_mistyped_name_finds_the_one_meant)
{
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"batchsize", "data.batch_size"},
        {"batch_size", "data.batch_size"},
        {"data.batchsize", "data.batch_size"},
        {"data.batch-size", "data.batch_size"},
        {"trainer.max_epoch", "trainer.max_epochs"},
        {"max_epochs", "trainer.max_epochs"},
        {"MAX_EPOCHS", "trainer.max_epochs"},
        {"trainer.max_spets", "trainer.max_steps"},
        {"optimizer.lr", "optim.lr"},
        {"lr", "optim.lr"},
        {"weight", "optim.weight_decay"},
        {"optim.wieght_decay", "optim.weight_decay"},
        {"sed", "seed"},
        {"xyzzy", NULL},
        {"", NULL},
        {"q", NULL},
        {"hidden_layers_of_the_encoder", NULL},
    };
    for (size_t i = 0; i < CO_COUNT(cases); i++) {
        const char *got = co_str_nearest(cases[i].name, keys, CO_COUNT(keys));
        bool same = got && cases[i].want ? strcmp(got, cases[i].want) == 0 : got == cases[i].want;
        CHECK(same, "\"%s\" gives %s, not %s", cases[i].name, got ? got : "nothing",
              cases[i].want ? cases[i].want : "nothing");
    }
}

TEST(endless_names_are_nobodys_neighbour)
{
    char name[500];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *const long_ones[] = {name};
    CHECK(!co_str_nearest(name, keys, CO_COUNT(keys)), "matched");
    CHECK(!co_str_nearest("aaaa", long_ones, 1), "matched");
    CHECK(!co_str_nearest("seed", NULL, 0), "matched");
}
