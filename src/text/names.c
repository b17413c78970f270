/* names.c -- a number for each of many names: a hash table with open addressing, never more than half
 * full. */
#include "text/text_int.h"

#include <string.h>

#include "base/hash.h"

enum { LEAST_ROOM = 64 };

static name_slot *place_of(const name_table *t, const char *text, size_t len, uint32_t hash)
{
    size_t at = hash & (t->room - 1);

    while (t->slot[at].text &&
           (t->slot[at].hash != hash || t->slot[at].len != len || memcmp(t->slot[at].text, text, len) != 0))
        at = (at + 1) & (t->room - 1);
    return &t->slot[at];
}

static uint32_t hash_of(const char *text, size_t len)
{
    uint64_t h = co_fnv1a64(text, len);

    return (uint32_t)(h ^ h >> 32);
}

static bool grow(name_table *t)
{
    name_table wider = *t;

    wider.room = t->room ? 2 * t->room : LEAST_ROOM;
    if (!(wider.slot = co_array(wider.room, sizeof *wider.slot)))
        return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->slot[i].text)
            *place_of(&wider, t->slot[i].text, t->slot[i].len, t->slot[i].hash) = t->slot[i];
    co_free(t->slot);
    *t = wider;
    return true;
}

name_slot *name_put(name_table *t, const char *text, size_t len)
{
    uint32_t hash = hash_of(text, len);

    if (2 * (t->n + 1) > t->room && !grow(t))
        return NULL;
    name_slot *slot = place_of(t, text, len, hash);
    if (slot->text)
        return slot;
    const char *copy = co_pool_strn(&t->pool, text, len);
    if (!copy)
        return NULL;
    *slot = (name_slot){copy, (uint32_t)len, hash, 0};
    t->n++;
    return slot;
}

const name_slot *name_find(const name_table *t, const char *text, size_t len)
{
    const name_slot *slot = t->room ? place_of(t, text, len, hash_of(text, len)) : NULL;

    return slot && slot->text ? slot : NULL;
}

void name_table_fini(name_table *t)
{
    co_free(t->slot);
    co_pool_fini(&t->pool);
    *t = (name_table){0};
}
