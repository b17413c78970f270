/* seen.h -- a set of 64-bit hashes: has this been here before?
 *
 * 8 to 16 bytes each. Two things with the same hash count as one; among a million the chance of that is one
 * in 37 million.
 *
 *     co_seen seen = {0};
 *     CO_TRY(co_seen_add(&seen, &is_new, co_fnv1a64(name, strlen(name))));
 *     co_seen_fini(&seen);
 */
#ifndef CO_BASE_SEEN_H
#define CO_BASE_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct co_seen {
    uint64_t *at;
    size_t n, room;
} co_seen;

co_err co_seen_add(co_seen *s, bool *is_new, uint64_t hash); /* CO_ENOMEM: nothing was added */
/* The same for a name at a step. */
co_err co_seen_add_at(co_seen *s, bool *is_new, int64_t step, const char *name);
void co_seen_fini(co_seen *s);

#endif
