/* find.c -- what a name is: a group, a row, a slot, a section, an alias. Nothing here changes anything. */
#include "config/config_int.h"

#include <string.h>

int conf_group_index(const co_conf_spec *spec, const char *name, size_t len)
{
    for (int g = 0; g < spec->n_groups; g++)
        if (strlen(spec->groups[g].name) == len && memcmp(spec->groups[g].name, name, len) == 0)
            return g;
    return -1;
}

bool conf_has_alias(const co_option *option, const char *name)
{
    size_t len = strlen(name);
    const char *s = option->alias;
    while (s && *s) {
        size_t n = strcspn(s, " ");
        if (n == len && memcmp(s, name, n) == 0)
            return true;
        s += n + (s[n] == ' ');
    }
    return false;
}

int conf_row_index(const co_conf_group *g, const char *name)
{
    for (int i = 0; i < g->n_rows; i++)
        if (strcmp(g->rows[i].name, name) == 0)
            return i;
    return -1;
}

conf_slot *conf_slot_find(const co_conf *c, const char *key)
{
    for (int i = 0; i < c->n_slots; i++)
        if (strcmp(c->slots[i].key, key) == 0)
            return &c->slots[i];
    for (int i = 0; i < c->n_slots; i++)
        if (c->slots[i].option && conf_has_alias(c->slots[i].option, key))
            return &c->slots[i];
    return NULL;
}

bool conf_is_below(const char *key, const char *section)
{
    size_t n = strlen(section);
    return strncmp(key, section, n) == 0 && key[n] == '.';
}

bool conf_is_section(const co_conf *c, const char *key)
{
    for (int i = 0; i < c->n_slots; i++)
        if (conf_is_below(c->slots[i].key, key))
            return true;
    return false;
}

bool conf_has_expr(const char *text)
{
    return strstr(text, "${") != NULL;
}

bool conf_is_null(const conf_pair *p)
{
    return !p->value || (p->kind == CONF_PLAIN && strcmp(p->value, "null") == 0);
}

/* The row for `key` in a table whose keys begin with prefix and dot; NULL: none. */
static const co_option *row_of(const co_option *table, const char *prefix, const char *dot, const char *key)
{
    size_t n = strlen(prefix);
    bool inside = strncmp(key, prefix, n) == 0 && strncmp(key + n, dot, strlen(dot)) == 0;
    for (const co_option *o = table; o->key; o++)
        if ((inside && strcmp(key + n + strlen(dot), o->key) == 0) || conf_has_alias(o, key))
            return o;
    return NULL;
}

bool co_conf_may_change(const co_conf_spec *spec, const char *key)
{
    for (int i = 0; i < spec->n_tables; i++) {
        const co_option *o = row_of(spec->tables[i].options, spec->tables[i].prefix, "", key);
        if (o)
            return o->may_change;
    }
    return false;
}

bool co_conf_knows(const co_conf_spec *spec, const char *key)
{
    for (int i = 0; i < spec->n_tables; i++)
        if (row_of(spec->tables[i].options, spec->tables[i].prefix, "", key))
            return true;
    for (int g = 0; g < spec->n_groups; g++)
        if (spec->groups[g].n_rows && conf_is_below(key, spec->groups[g].name) &&
            strcmp(strchr(key, '.'), ".name") == 0)
            return true; /* which row it is */
    for (int g = 0; g < spec->n_groups; g++)
        for (int r = 0; r < spec->groups[g].n_rows; r++)
            if (row_of(spec->groups[g].rows[r].options, spec->groups[g].name, ".", key))
                return true;
    return conf_group_index(spec, key, strlen(key)) >= 0;
}
