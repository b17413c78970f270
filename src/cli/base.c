/* base.c -- finds the run that the words of a line name: where it is, and what it continues from. The run's
 * config.yaml can be put before all words, so that `cohort test` and a continued run use its configuration.
 */
#include "cli/cli_int.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/program.h"

/* Names under which a line says where its run is, and what it continues from. */
static const char *const dir_keys[] = {"run.dir", "trainer.default_root_dir", "hydra.run.dir",
                                       "paths.output_dir", NULL};
static const char *const from_keys[] = {"ckpt_path", "trainer.resume_from_checkpoint", NULL};

static bool is_one_of(const char *const *keys, const char *key)
{
    for (; *keys; keys++)
        if (strcmp(*keys, key) == 0)
            return true;
    return false;
}

struct wanted {
    const char *const *keys;
    char *value; /* the value of the last word with one of these keys; NULL: none */
};

static void take_value(void *ctx, const char *key, const char *value)
{
    struct wanted *w = ctx;

    if (!is_one_of(w->keys, key))
        return;
    co_free(w->value);
    w->value = co_strdup(value);
}

static char *value_of(const line *l, const char *const *keys)
{
    struct wanted w = {keys, NULL};

    for (int i = 0; i < l->n; i++)
        if (co_conf_parse_word(l->words[i], take_value, &w) != CO_OK)
            co_errclear(); /* refused when the words are composed */
    return w.value;
}

char *line_value(const line *l, const char *key)
{
    return value_of(l, (const char *const[]){key, NULL});
}

char *line_run_dir(const line *l)
{
    return value_of(l, dir_keys);
}

char *line_ckpt_path(const line *l)
{
    return value_of(l, from_keys);
}

bool line_has(const line *l, const char *key)
{
    char *value = line_value(l, key);
    bool there = value != NULL;

    co_free(value);
    return there;
}

/* Counts the keys of a word, and those that say where a run is or what it continues from. */
struct places {
    int keys, places;
};

static void count_places(void *ctx, const char *key, const char *value)
{
    struct places *p = ctx;

    (void)value;
    p->keys++;
    p->places += is_one_of(dir_keys, key) || is_one_of(from_keys, key);
}

bool word_is_place(const char *word)
{
    struct places p = {0};

    if (co_conf_parse_word(word, count_places, &p) != CO_OK)
        co_errclear();
    return p.keys > 0 && p.places == p.keys;
}

char *run_config_of(const char *path)
{
    char at[PATH_MAX];

    if (!realpath(path, at))
        return NULL;
    for (int up = 0; up < 3; up++) {
        if (has(at, "config.yaml") && has(at, "header.json"))
            return co_sprintf("%s/config.yaml", at);
        char *slash = strrchr(at, '/');
        if (!slash || slash == at)
            return NULL;
        *slash = '\0';
    }
    return NULL;
}

co_err line_use_run(line *l, const char *path)
{
    char *config = run_config_of(path);

    if (!config)
        return CO_OK;
    l->base = co_conf_word("experiment", config);
    co_free(config);
    if (!l->base)
        return CO_ENOMEM;
    CO_ASSERT(l->words > l->held, "there is room for one");
    *--l->words = l->base;
    l->n++;
    return CO_OK;
}

void add_shell_word(co_str *out, const char *word)
{
    co_str_add(out, " ");
    co_shell_word(out, word);
}
