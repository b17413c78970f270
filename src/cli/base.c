/* base.c -- a run's own config.yaml as the ground that a line's words stand on: how `cohort test` and a continued run know
 * their configuration without being told again. */
#include "cli/cli_int.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct wanted {
    const char *key;
    char *value; /* of the last word with that key; NULL: none */
};

static void take_value(void *ctx, const char *key, const char *value)
{
    struct wanted *w = ctx;

    if (strcmp(key, w->key) != 0)
        return;
    co_free(w->value);
    w->value = co_strdup(value);
}

char *line_value(const line *l, const char *key)
{
    struct wanted w = {key, NULL};

    for (int i = 0; i < l->n; i++)
        if (co_conf_parse_word(l->words[i], take_value, &w) != CO_OK)
            co_errclear(); /* refused when the words are composed */
    return w.value;
}

bool line_has(const line *l, const char *key)
{
    char *value = line_value(l, key);
    bool there = value != NULL;

    co_free(value);
    return there;
}

/* The config.yaml of the run that `path` is, or lies in two folders down; NULL if there is none. */
static char *config_of(const char *path)
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
    char *config = config_of(path);

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
