/* unknown.c -- the message for a key that does not exist: the nearest name, or the choices that have this
 * key. */
#include "config/config_int.h"

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
    co_err err = co_str_err(&keys) ? co_str_err(&keys) : co_str_err(&rows);
    if (!err)
        err = co_fail(CO_EINPUT, "%s=%s has no key \"%s\" (%s has); its keys:%s", g->name, mine->name,
                      strncmp(key, g->name, n) == 0 && key[n] == '.' ? key + n + 1 : key, co_str_text(&rows),
                      keys.len ? co_str_text(&keys) : " none");
    co_str_fini(&keys);
    co_str_fini(&rows);
    return err;
}

co_err conf_fail_unknown(const co_conf *c, const char *key)
{
    const co_conf_spec *spec = c->spec;
    for (int g = 0; g < spec->n_groups; g++)
        for (int r = 0; r < spec->groups[g].n_rows; r++)
            if (c->picks[g].row >= 0 && row_option(&spec->groups[g].rows[r], spec->groups[g].name, key))
                return other_row(c, &spec->groups[g], key);

    size_t n = 0;
    const char **names = co_array((size_t)(c->n_slots + spec->n_groups) + 1, sizeof *names);
    if (!names)
        return CO_ENOMEM;
    for (int i = 0; i < c->n_slots; i++)
        names[n++] = c->slots[i].key;
    for (int g = 0; g < spec->n_groups; g++)
        names[n++] = spec->groups[g].name;
    const char *near = co_str_nearest(key, names, n);
    co_free(names);
    if (near)
        return co_fail(CO_EINPUT, "unknown key \"%s\"; did you mean %s? (cohort train --help lists all keys)",
                       key, near);
    return co_fail(CO_EINPUT, "unknown key \"%s\" (cohort train --help lists all keys)", key);
}
