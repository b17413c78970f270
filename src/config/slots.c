/* slots.c -- puts values into the fields of the options.
 *
 * A value with ${...} is stored and resolved after all sources (resolve.c). ??? means that a later source
 * must give the value. `~key` and `~section` reset slots to their defaults.
 */
#include "config/config_int.h"

#include <string.h>

co_err conf_slot_set(conf_slot *slot, const char *key, const char *value, conf_kind kind)
{
    const co_option *o = slot->option;
    if (!o)
        return CO_OK;
    if (kind == CONF_STRING && o->type == CO_OPT_STR && strcmp(value, "null") == 0) {
        char **field = (char **)(void *)((char *)slot->fields + o->offset), *copy = co_strdup(value);
        if (!copy)
            return CO_ENOMEM;
        co_free(*field);
        *field = copy;
        return CO_OK;
    }
    return co_option_set(o, slot->fields, key, value);
}

static co_err put(conf_slot *slot, const conf_source *s, const conf_pair *p)
{
    const conf_pair *old = slot->by;
    if (slot->source == s && strcmp(old->key, p->key) != 0 && strcmp(old->value, p->value) != 0)
        return co_fail(CO_EINPUT, "%s=%s and %s=%s are the same key with two values; give one", old->key,
                       old->value, p->key, p->value);
    slot->set = true;
    slot->source = s;
    slot->by = p;
    slot->missing = strcmp(p->value, "???") == 0;
    slot->expr = slot->option && conf_has_expr(p->value) ? p->value : NULL;
    return slot->missing || slot->expr ? CO_OK : conf_slot_set(slot, p->key, p->value, p->kind);
}

/* Does the slot have the value of the pair? Both are printed by the option and compared as text. */
static co_err holds(bool *same, const conf_slot *slot, const conf_pair *p)
{
    co_str now = {0}, then = {0};
    union {
        int64_t i;
        double f;
        bool b;
        int e;
        char *s;
    } field = {0};
    if (slot->expr) {
        *same = strcmp(slot->expr, p->value) == 0;
        return CO_OK;
    }
    co_option alone = *slot->option;
    alone.offset = 0;
    conf_slot copy = {.option = &alone, .fields = &field};
    co_err err = conf_slot_set(&copy, p->key, p->value, p->kind);
    if (!err) {
        co_option_print(&now, slot->option, slot->fields);
        co_option_print(&then, &alone, &field);
        err = now.failed || then.failed ? CO_ENOMEM : CO_OK;
        *same = !err && strcmp(co_str_text(&now), co_str_text(&then)) == 0;
        if (!err && !*same)
            err = co_fail(CO_EINPUT, "~%s=%s: its value is %s, so it is not reset", p->key, p->value,
                          co_str_text(&now));
    }
    if (alone.type == CO_OPT_STR)
        co_free(field.s);
    co_str_fini(&now);
    co_str_fini(&then);
    return err;
}

static co_err reset(conf_slot *slot, const conf_pair *p)
{
    bool same = true;
    if (!slot->option)
        return CO_OK; /* a row's name stays with the row */
    if (p->value)
        CO_TRY(holds(&same, slot, p));
    if (!same)
        return co_fail(CO_EINPUT, "~%s=%s: its value is %s, so it is not reset", p->key, p->value, slot->expr);
    slot->set = slot->missing = false;
    slot->expr = NULL;
    slot->source = NULL;
    slot->by = NULL;
    return co_option_set(slot->option, slot->fields, p->key, slot->option->fallback);
}

/* ~key: that slot; ~section: all below it. */
static co_err take_away(co_conf *c, const conf_pair *p)
{
    bool known = false;
    for (int k = 0; k < c->n_slots; k++) {
        conf_slot *slot = &c->slots[k];
        bool own = strcmp(slot->key, p->key) == 0 || (slot->option && conf_has_alias(slot->option, p->key));
        if (own && !slot->option)
            return co_fail(CO_EINPUT, "~%s: a row's name cannot be reset; choose another row", p->key);
        if (!own && !conf_is_below(slot->key, p->key))
            continue;
        if (!own && p->value)
            return co_fail(CO_EINPUT, "~%s=%s: %s is a section; write ~%s", p->key, p->value, p->key, p->key);
        known = true;
        CO_TRY(reset(slot, p));
    }
    return known || conf_follows_mistake(c, p->key) ? CO_OK : conf_fail_unknown(c, p->key);
}

static co_err apply_one(co_conf *c, const conf_source *s, const conf_pair *p)
{
    bool known = false;
    if (p->defaults || p->used || conf_group_index(c->spec, p->key, strlen(p->key)) >= 0)
        return CO_OK;
    if (strchr(p->key, '/'))
        return co_fail(CO_EINPUT, "%s: no defaults list asks for the group \"%s\"", p->key, p->key);
    if (p->op == CONF_DELETE)
        return take_away(c, p);
    if (!p->value) /* a mapping; its keys, if any, are pairs of their own */
        return p->line || conf_is_section(c, p->key) || conf_follows_mistake(c, p->key)
                   ? CO_OK
                   : conf_fail_unknown(c, p->key);
    for (int k = 0; k < c->n_slots; k++) {
        conf_slot *slot = &c->slots[k];
        if (strcmp(slot->key, p->key) != 0 && !(slot->option && conf_has_alias(slot->option, p->key)))
            continue;
        known = true;
        CO_TRY(put(slot, s, p));
    }
    if (!known && !s->foreign && conf_is_section(c, p->key))
        return co_fail(CO_EINPUT, "%s=%s: %s is a section; set its keys, as %s={key:value}", p->key, p->value,
                       p->key, p->key);
    if (known || s->foreign || conf_follows_mistake(c, p->key))
        return CO_OK;
    return conf_fail_unknown(c, p->key);
}

/* Applies one source's pairs. A key that is both in a row's table and in a core table sets both fields. */
co_err conf_apply(co_conf *c, const conf_source *s)
{
    for (int i = 0; i < s->n; i++) {
        co_err err = apply_one(c, s, &s->pairs[i]);
        if (err)
            conf_doubt(c, s->pairs[i].key);
        CO_TRY(conf_mistake(c, err ? conf_fail_at(err, s, &s->pairs[i]) : CO_OK));
    }
    return CO_OK;
}
