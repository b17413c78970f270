/* unknown.c -- the message for a key that does not exist: the nearest name, or the choices that have this
 * key. */
#include "config/config_int.h"

#include <stdio.h>
#include <string.h>

static const co_option *row_option(const co_conf_row *row, const char *group, const char *key)
{
    size_t n = strlen(group);
    for (const co_option *o = row->options; o->key; o++)
        if ((strncmp(key, group, n) == 0 && key[n] == '.' && strcmp(key + n + 1, o->key) == 0) ||
            conf_has_alias(o, key))
            return o;
    return NULL;
}

/* The only built-in experiment that chooses a row with this key, " (experiment=en_it has it)"; "" if there is none
 * or several. */
static void add_experiment(co_str *out, const co_conf_group *g, const char *key)
{
    static const char folder[] = "experiment/";
    const char *found = NULL;
    char line[96];

    for (const co_conf_builtin *b = co_conf_builtins; b->path; b++)
        for (int r = 0; r < g->n_rows && strncmp(b->path, folder, sizeof folder - 1) == 0; r++) {
            snprintf(line, sizeof line, "override /%s: %s\n", g->name, g->rows[r].name);
            if (!row_option(&g->rows[r], g->name, key) || !strstr(b->text, line))
                continue;
            if (found)
                return;
            found = b->path + sizeof folder - 1;
        }
    if (found)
        co_str_addf(out, " (experiment=%s has it)", found);
}

/* `model=mlp has no key "heads" (model=lm has); its keys: hidden dropout` */
static co_err other_row(const co_conf *c, const co_conf_group *g, const char *key)
{
    co_str keys = {0}, rows = {0};
    size_t n = strlen(g->name);
    const co_conf_row *mine = &g->rows[c->picks[conf_group_index(c->spec, g->name, n)].row];
    for (int i = 0; i < c->n_slots; i++) {
        const conf_slot *s = &c->slots[i];
        if (s->option && !s->twin && strncmp(s->key, g->name, n) == 0 && s->key[n] == '.')
            co_str_addf(&keys, " %s", s->key + n + 1);
    }
    for (int r = 0; r < g->n_rows; r++)
        if (row_option(&g->rows[r], g->name, key))
            co_str_addf(&rows, "%s%s=%s", rows.len ? ", " : "", g->name, g->rows[r].name);
    bool chosen = c->picks[conf_group_index(c->spec, g->name, n)].set;
    if (!chosen)
        add_experiment(&rows, g, key);
    co_err err = co_str_err(&keys) ? co_str_err(&keys) : co_str_err(&rows);
    if (!err && !chosen)
        err = co_fail(CO_EINPUT, "%s needs %s; the line has %s=%s, the default", key, co_str_text(&rows),
                      g->name, mine->name);
    else if (!err)
        err = co_fail(CO_EINPUT, "%s=%s has no key \"%s\" (%s has); its keys:%s", g->name, mine->name,
                      strncmp(key, g->name, n) == 0 && key[n] == '.' ? key + n + 1 : key, co_str_text(&rows),
                      keys.len ? co_str_text(&keys) : " none");
    co_str_fini(&keys);
    co_str_fini(&rows);
    return err;
}

/* The names below `group`, without the group; all names if it is NULL. */
static size_t list_names(const char **names, const co_conf *c, const char *group)
{
    size_t n = 0, head = group ? strlen(group) + 1 : 0;
    for (int i = 0; i < c->n_slots; i++)
        if (!group || conf_is_below(c->slots[i].key, group))
            names[n++] = c->slots[i].key + head;
    for (int g = 0; g < c->spec->n_groups && !group; g++)
        names[n++] = c->spec->groups[g].name;
    return n;
}

/* Is the last word of `near` the last word of the key, or one that differs little from it? */
static bool ends_alike(const char *key, const char *near)
{
    const char *own = strrchr(key, '.'), *its = strrchr(near, '.');
    its = its ? its + 1 : near;
    return !own || strcmp(own + 1, its) == 0 || (strlen(its) > 3 && co_str_nearest(own + 1, &its, 1));
}

/* The nearest name of the same group. If the group has none: of any group, but then the last word must be
 * nearly the same, as in trainer.lr for optim.lr. *near is NULL if there is none. */
static co_err nearest_key(const char **near, co_conf *c, const char *key)
{
    size_t n = strcspn(key, ".");
    const char *tail = key[n] ? key + n + 1 : NULL;
    const char **names = co_array((size_t)(c->n_slots + c->spec->n_groups) + 1, sizeof *names);
    char *group = co_pool_strn(&c->pool, key, n);
    co_err err = names && group ? CO_OK : CO_ENOMEM;
    *near = NULL;
    if (!err && tail) {
        *near = co_str_nearest(tail, names, list_names(names, c, group));
        if (*near && !(*near = co_pool_printf(&c->pool, "%s.%s", group, *near)))
            err = CO_ENOMEM;
    }
    if (!err && !*near) {
        *near = co_str_nearest(key, names, list_names(names, c, NULL));
        if (*near && !ends_alike(key, *near))
            *near = NULL;
    }
    co_free(names);
    return err;
}

co_err conf_fail_unknown(co_conf *c, const char *key)
{
    const co_conf_spec *spec = c->spec;
    for (int g = 0; g < spec->n_groups; g++)
        for (int r = 0; r < spec->groups[g].n_rows; r++)
            if (c->picks[g].row >= 0 && row_option(&spec->groups[g].rows[r], spec->groups[g].name, key))
                return other_row(c, &spec->groups[g], key);

    const char *near;
    CO_TRY(nearest_key(&near, c, key));
    if (near)
        conf_doubt(c, near); /* `modle=cnn` may mean that group */
    if (near)
        return co_fail(CO_EINPUT,
                       "unknown key \"%s\"; did you mean %s? (cohort train --help all lists all keys)", key,
                       near);
    return co_fail(CO_EINPUT, "unknown key \"%s\" (cohort train --help all lists all keys)", key);
}
