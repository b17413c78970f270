/* help_key.c -- `--help WORD`: a group, one key in full, or all keys below a name
 * ("callbacks.early_stopping").
 *
 * Rows of a group often share a key (every resnet has model.stem): it is shown once, with the choices that
 * have it.
 */
#include "config/config_int.h"

#include <string.h>

#include "base/alloc.h"

enum { MOST = 1024 }; /* keys of all tables and rows together */

/* An option where it stands: in a table of core keys (choice NULL) or in a row of a group. */
typedef struct place {
    const char *key; /* whole: "model.stem" */
    const char *group, *choice;
    const co_option *option;
} place;

typedef struct places {
    place at[MOST];
    int n;
    co_pool pool;
} places;

static void collect(places *all, const char *prefix, const co_option *table, const char *group,
                    const char *choice)
{
    for (const co_option *o = table; o->key && all->n < MOST; o++) {
        char *key = co_pool_printf(&all->pool, "%s%s", prefix, o->key);
        if (key)
            all->at[all->n++] = (place){key, group, choice, o};
    }
}

static void collect_all(places *all, const co_conf_spec *spec)
{
    for (int i = 0; i < spec->n_tables; i++)
        collect(all, spec->tables[i].prefix, spec->tables[i].options, NULL, NULL);
    for (int i = 0; i < spec->n_groups; i++) {
        const co_conf_group *g = &spec->groups[i];
        char *prefix = co_pool_printf(&all->pool, "%s.", g->name);
        for (int r = 0; prefix && r < g->n_rows; r++)
            collect(all, prefix, g->rows[r].options, g->name, g->rows[r].name);
    }
}

/* Aliases are separated by blanks. */
static bool has_alias(const co_option *o, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = o->alias; at && *at;) {
        size_t n = strcspn(at, " ");
        if (n == len && strncmp(at, word, n) == 0)
            return true;
        at += n + strspn(at + n, " ");
    }
    return false;
}

static bool is_meant(const place *p, const char *word)
{
    size_t len = strlen(word);

    return strcmp(p->key, word) == 0 || has_alias(p->option, word) ||
           (strncmp(p->key, word, len) == 0 && p->key[len] == '.');
}

static bool is_same(const place *a, const place *b)
{
    return strcmp(a->key, b->key) == 0 && strcmp(a->option->fallback, b->option->fallback) == 0 &&
           strcmp(a->option->help ? a->option->help : "", b->option->help ? b->option->help : "") == 0;
}

static void add_choices(co_str *out, const places *all, const place *p)
{
    const char *head = "; of";

    for (int i = 0; i < all->n && p->choice; i++)
        if (is_same(&all->at[i], p)) {
            co_str_addf(out, "%s %s=%s", head, all->at[i].group, all->at[i].choice);
            head = ",";
        }
}

static void add_key(co_str *out, const places *all, const place *p)
{
    co_str_addf(out, "%s (default %s", p->key, *p->option->fallback ? p->option->fallback : "''");
    add_choices(out, all, p);
    co_str_addf(out, ")\n    %s", p->option->help ? p->option->help : "");
    co_conf_limits(out, p->option);
    co_str_add(out, "\n");
}

static bool add_keys(co_str *out, const places *all, const char *word)
{
    bool any = false;

    for (int i = 0; i < all->n; i++) {
        bool shown = !is_meant(&all->at[i], word);
        for (int k = 0; k < i && !shown; k++)
            shown = is_same(&all->at[k], &all->at[i]);
        if (!shown)
            add_key(out, all, &all->at[i]);
        any |= is_meant(&all->at[i], word);
    }
    return any;
}

static void add_unknown(co_str *out, const co_conf_spec *spec, const places *all, const char *word)
{
    const char *names[MOST + 64];
    size_t n = 0;

    for (int i = 0; i < spec->n_groups && n < 64; i++)
        names[n++] = spec->groups[i].name;
    for (int i = 0; i < all->n; i++)
        names[n++] = all->at[i].key;
    const char *near = co_str_nearest(word, names, n);
    co_str_addf(out, "no key or group \"%s\"", word);
    if (near)
        co_str_addf(out, "; did you mean %s?", near);
    co_str_add(out, near ? " The groups are:" : "; the groups are:");
    for (int i = 0; i < spec->n_groups; i++)
        co_str_addf(out, " %s", spec->groups[i].name);
    co_str_add(out, "\n");
}

bool co_conf_help_on(const co_conf_spec *spec, const char *word, co_str *out)
{
    places *all = co_zalloc(sizeof *all);
    char *bare = co_sprintf("%.*s", (int)strcspn(word, "="), word);
    bool known = false;

    if (!all || !bare)
        out->failed = true;
    else if (conf_group_index(spec, bare, strlen(bare)) >= 0) {
        co_conf_help(spec, bare, false, out);
        known = true;
    } else {
        collect_all(all, spec);
        known = add_keys(out, all, bare);
        if (!known)
            add_unknown(out, spec, all, bare);
        co_pool_fini(&all->pool);
    }
    co_free(all);
    co_free(bare);
    return known;
}
