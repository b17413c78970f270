/* seen.c -- an open-addressed table of hashes; at most half full. */
#include "base/seen.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

static size_t slot_of(const co_seen *s, uint64_t hash)
{
    size_t at = (size_t)hash & (s->room - 1);

    while (s->at[at] && s->at[at] != hash)
        at = (at + 1) & (s->room - 1);
    return at;
}

static co_err grow(co_seen *s)
{
    co_seen bigger = {.n = s->n, .room = s->room ? 2 * s->room : 1024};

    bigger.at = co_array(bigger.room, sizeof *bigger.at);
    if (!bigger.at)
        return CO_ENOMEM;
    for (size_t i = 0; i < s->room; i++)
        if (s->at[i])
            bigger.at[slot_of(&bigger, s->at[i])] = s->at[i];
    co_free(s->at);
    *s = bigger;
    return CO_OK;
}

co_err co_seen_add(co_seen *s, bool *is_new, uint64_t hash)
{
    hash += hash == 0; /* 0 is an empty slot */
    if (2 * s->n >= s->room)
        CO_TRY(grow(s));
    size_t at = slot_of(s, hash);
    *is_new = s->at[at] == 0;
    s->n += *is_new;
    s->at[at] = hash;
    return CO_OK;
}

co_err co_seen_add_at(co_seen *s, bool *is_new, int64_t step, const char *name)
{
    uint64_t parts[2] = {co_fnv1a64(name, strlen(name)), (uint64_t)step};

    return co_seen_add(s, is_new, co_fnv1a64(parts, sizeof parts));
}

void co_seen_fini(co_seen *s)
{
    co_free(s->at);
    *s = (co_seen){0};
}
