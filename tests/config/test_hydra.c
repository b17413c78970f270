/* test_hydra.c -- the same lines over the same files as Hydra composes (golden/make_hydra.py), key by key. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "config/config.h"
#include "harness.h"

struct mlp {
    int64_t hidden;
    double dropout;
    char *act;
};
static const co_option mlp_options[] = {{"hidden", CO_OPT_INT, offsetof(struct mlp, hidden), "1", ""},
                                        {"dropout", CO_OPT_FLOAT, offsetof(struct mlp, dropout), "0", ""},
                                        {"act", CO_OPT_STR, offsetof(struct mlp, act), "null", ""},
                                        {0}};
struct lm {
    int64_t heads, width;
};
static const co_option lm_options[] = {{"heads", CO_OPT_INT, offsetof(struct lm, heads), "1", ""},
                                       {"width", CO_OPT_INT, offsetof(struct lm, width), "1", ""},
                                       {0}};
static const co_option lr_options[] = {{"lr", CO_OPT_FLOAT, 0, "0", ""}, {0}};
static const co_conf_row models[] = {{"mlp", "", mlp_options, sizeof(struct mlp)},
                                     {"lm", "", lm_options, sizeof(struct lm)}};
static const co_conf_row optims[] = {{"sgd", "", lr_options, sizeof(double)},
                                     {"adamw", "", lr_options, sizeof(double)}};
struct core {
    int64_t seed, max_epochs, devices, depth, every;
    double ratio;
    bool flag, save;
    char *task_name, *note, *tags, *dir, *strategy, *label;
};
static const co_option core_options[] = {
    {"seed", CO_OPT_INT, offsetof(struct core, seed), "0", ""},
    {"ratio", CO_OPT_FLOAT, offsetof(struct core, ratio), "0.5", ""},
    {"flag", CO_OPT_BOOL, offsetof(struct core, flag), "true", ""},
    {"task_name", CO_OPT_STR, offsetof(struct core, task_name), "train", ""},
    {"note", CO_OPT_STR, offsetof(struct core, note), "null", ""},
    {"tags", CO_OPT_STR, offsetof(struct core, tags), "null", ""},
    {"run.dir", CO_OPT_STR, offsetof(struct core, dir), "null", ""},
    {"trainer.max_epochs", CO_OPT_INT, offsetof(struct core, max_epochs), "10", ""},
    {"trainer.devices", CO_OPT_INT, offsetof(struct core, devices), "0", ""},
    {"trainer.strategy", CO_OPT_STR, offsetof(struct core, strategy), "none", ""},
    {"trainer.sub.depth", CO_OPT_INT, offsetof(struct core, depth), "1", ""},
    {"trainer.sub.label", CO_OPT_STR, offsetof(struct core, label), "flat", ""},
    {"callbacks.save", CO_OPT_BOOL, offsetof(struct core, save), "false", ""},
    {"callbacks.every", CO_OPT_INT, offsetof(struct core, every), "0", ""},
    {0}};
static const co_conf_table tables[] = {{"", core_options}};
static const co_conf_group groups[] = {{"model", "mlp", models, 2, ""},
                                       {"optim", "sgd", optims, 2, ""},
                                       {"trainer", "ddp", NULL, 0, ""},
                                       {"callbacks", NULL, NULL, 0, ""},
                                       {"experiment", NULL, NULL, 0, ""}};

/* Hydra's value as our text: lists as a word writes them. */
static void add_json(co_str *out, const json_t *v, bool inside)
{
    size_t i;
    const char *key;
    json_t *item;
    if (json_is_array(v)) {
        co_str_add(out, "[");
        json_array_foreach(v, i, item)
        {
            co_str_add(out, i ? "," : "");
            add_json(out, item, true);
        }
        co_str_add(out, "]");
    } else if (json_is_object(v)) {
        co_str_add(out, "{");
        json_object_foreach((json_t *)(uintptr_t)v, key, item)
        {
            co_str_addf(out, "%s%s:", out->p[out->len - 1] == '{' ? "" : ",", key);
            add_json(out, item, true);
        }
        co_str_add(out, "}");
    } else if (json_is_string(v) && inside) {
        char *word = co_conf_word("", json_string_value(v));
        bool cut = word[1] != '\'' && strpbrk(word, " :,"); /* bare alone, quoted in a list */
        co_str_addf(out, cut ? "'%s'" : "%s", word + 1);
        co_free(word);
    } else if (json_is_string(v)) {
        co_str_add(out, json_string_value(v));
    } else if (json_is_integer(v)) {
        co_str_addf(out, "%lld", (long long)json_integer_value(v));
    } else if (json_is_real(v)) {
        co_str_addf64(out, json_real_value(v));
    } else {
        co_str_add(out, json_is_null(v) ? "null" : json_is_true(v) ? "true" : "false");
    }
}

struct comparison {
    const json_t *keys;
    const char *line;
    size_t seen;
};

static void compare(void *ctx, const char *key, const char *value)
{
    struct comparison *c = ctx;
    const json_t *want = json_object_get(c->keys, key);
    co_str text = {0};
    for (size_t g = 0; g < CO_COUNT(groups); g++)
        if (!strcmp(key, groups[g].name))
            return; /* an entry of the defaults list */
    CHECK(want, "%s: Hydra has no %s", c->line, key);
    add_json(&text, want, false);
    if (!strncmp(value, "\\${", 3)) /* so written that it reads back as text */
        value++;
    CHECK(!strcmp(co_str_text(&text), value), "%s: %s is [%s], Hydra's is [%s]", c->line, key, value,
          co_str_text(&text));
    c->seen++;
    co_str_fini(&text);
}

TEST(lines_compose_to_what_hydra_composes_and_are_refused_where_hydra_refuses)
{
    const co_conf_spec spec = {
        tables, 1, sizeof(struct core), groups, CO_COUNT(groups), test_repo("tests/golden/hydra")};
    json_t *all, *one;
    size_t i, w, refused = 0;
    setenv("COHORT_GOLDEN", "from outside", 1);
    unsetenv("COHORT_NOT_THERE");
    CHECK_OK(co_json_read(&all, test_repo("tests/golden/hydra.json"), 1 << 20));
    json_array_foreach(all, i, one)
    {
        const char *words[8];
        json_t *word;
        co_str line = {0}, text = {0};
        co_conf *c;
        json_array_foreach(json_object_get(one, "words"), w, word)
        {
            words[w] = json_string_value(word);
            co_str_addf(&line, " %s", words[w]);
        }
        co_err err = co_conf_compose(&c, &spec, words, (int)w);
        struct comparison cmp = {json_object_get(one, "keys"), co_str_text(&line), 0};
        CHECK(!err == (cmp.keys != NULL), "%s: ours %s, Hydra's %s", cmp.line, err ? co_errmsg() : "composes",
              cmp.keys ? "composes" : co_json_str(one, "refused"));
        refused += err != CO_OK;
        if (!err) {
            co_conf_yaml_all(c, &text);
            CHECK_OK(co_conf_parse_yaml(co_str_text(&text), text.len, "own", compare, &cmp));
            CHECK(cmp.seen == json_object_size(cmp.keys), "%s: %zu keys, Hydra has %zu", cmp.line, cmp.seen,
                  json_object_size(cmp.keys));
            co_conf_free(c);
        }
        co_str_fini(&line);
        co_str_fini(&text);
    }
    test_note("%zu lines, %zu of them refused by both", json_array_size(all), refused);
    json_decref(all);
}
