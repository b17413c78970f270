/* differ.c -- the keys in which two configurations differ, of those that make a run what it is.
 *
 * Keys that a continued run may change freely do not count, as in the configuration's hash. A key that only
 * one of the two has (of another model, say) does not count either: the row's name differs already.
 */
#include "config/config_int.h"

#include <string.h>

static bool same(const conf_slot *a, const conf_slot *b)
{
    char hex[2][65];
    const conf_slot *slots[] = {a, b};
    for (int i = 0; i < 2; i++) {
        co_sha256 h;
        co_sha256_init(&h);
        conf_hash_value(&h, slots[i]);
        co_sha256_hex(&h, hex[i]);
    }
    return strcmp(hex[0], hex[1]) == 0;
}

co_err co_conf_differences(const co_conf *a, const co_conf *b, co_conf_difference each, void *ctx)
{
    co_str mine = {0}, theirs = {0};
    co_err err = CO_OK;
    for (int i = 0; i < a->n_slots && !err; i++) {
        const conf_slot *slot = &a->slots[i];
        const conf_slot *other = conf_slot_find(b, slot->key);
        if (slot->twin || (slot->option && slot->option->may_change) || !other || same(slot, other))
            continue;
        co_str_clear(&mine);
        co_str_clear(&theirs);
        conf_print_value(&mine, slot);
        conf_print_value(&theirs, other);
        err = mine.failed || theirs.failed ? CO_ENOMEM : CO_OK;
        if (!err)
            each(ctx, slot->key, co_str_text(&mine), co_str_text(&theirs));
    }
    co_str_fini(&mine);
    co_str_fini(&theirs);
    return err;
}

/* The default as text; NULL: the slot names the row of a group that has none. */
static const char *default_of(const co_conf *c, const conf_slot *slot)
{
    if (slot->option)
        return slot->option->fallback;
    for (int g = 0; g < c->spec->n_groups; g++) {
        size_t n = strlen(c->spec->groups[g].name);
        if (strncmp(slot->key, c->spec->groups[g].name, n) == 0 && slot->key[n] == '.')
            return c->spec->groups[g].fallback;
    }
    return NULL;
}

static bool is_default(const char *value, const char *usual)
{
    double a, b;

    return strcmp(value, usual) == 0 || (co_str_to_f64(value, &a) && co_str_to_f64(usual, &b) && a == b);
}

co_err co_conf_changes(const co_conf *c, co_conf_difference each, void *ctx)
{
    co_str value = {0}, quoted = {0};
    co_err err = CO_OK;

    for (int i = 0; i < c->n_slots && !err; i++) {
        const conf_slot *slot = &c->slots[i];
        const char *usual = slot->twin ? NULL : default_of(c, slot);
        if (!usual)
            continue;
        co_str_clear(&value);
        co_str_clear(&quoted);
        conf_print_value(&value, slot);
        conf_yaml_quote(&quoted, usual); /* a string that looks like a number is printed with quotes */
        err = value.failed || quoted.failed ? CO_ENOMEM : CO_OK;
        if (!err && !is_default(co_str_text(&value), usual) &&
            strcmp(co_str_text(&value), co_str_text(&quoted)) != 0)
            each(ctx, slot->key, co_str_text(&value), usual);
    }
    co_str_fini(&value);
    co_str_fini(&quoted);
    return err;
}
