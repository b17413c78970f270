/* sort.h -- sorting in time proportional to the number of keys, without allocating. */
#ifndef CO_BASE_SORT_H
#define CO_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Sorts key[n] by the upper 32 bits; keys that are equal there keep their order. `tmp` has room for n keys.
 * The cost does not depend on how large the keys are. */
void co_sort_keys(uint64_t *key, uint64_t *tmp, size_t n);

/* The positions i of idx[n] with 0 <= idx[i] < below, as keys | idx[i] 32 | i 32 | in ascending order. Returns how many
 * there are. `key` has room for 2 n. */
size_t co_sort_positions(uint64_t *key, const int32_t *idx, size_t n, int64_t below);

#endif
