/* sort.c -- a stable radix sort, four passes of eight bits; few keys are inserted one by one.
 *
 * All four passes always run, so that rows of a table of a thousand and of a billion rows cost the same.
 *
 * Few positions are put in order by counting: a key's place is the number of keys below it. That compares every
 * key with every other, but in vectors and without a branch that depends on the keys, which nobody can predict. */
#include "base/sort.h"

#include <string.h>

#include "base/lanes.h"

enum { FEW = 48, DIGITS = 256, PASSES = 4 };

static void insert_all(uint64_t *key, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t k = key[i];
        size_t at = i;
        for (; at > 0 && key[at - 1] >> 32 > k >> 32; at--)
            key[at] = key[at - 1];
        key[at] = k;
    }
}

void co_sort_keys(uint64_t *key, uint64_t *tmp, size_t n)
{
    uint32_t start[PASSES][DIGITS];

    if (n <= FEW) {
        insert_all(key, n);
        return;
    }
    memset(start, 0, sizeof start);
    for (size_t i = 0; i < n; i++)
        for (int p = 0; p < PASSES; p++)
            start[p][key[i] >> (32 + 8 * p) & 255]++;
    for (int p = 0; p < PASSES; p++) {
        uint32_t sum = 0;
        for (int d = 0; d < DIGITS; d++) {
            uint32_t here = start[p][d];
            start[p][d] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            tmp[start[p][key[i] >> (32 + 8 * p) & 255]++] = key[i];
        uint64_t *swap = key;
        key = tmp;
        tmp = swap;
    }
    /* An even number of passes: the result is where the keys were. */
}

/* --- positions ------------------------------------------------------------------------------------------ */
typedef int64_t four __attribute__((vector_size(32)));
enum { BLOCK = 16 }; /* keys that are compared with all others at a time */
_Static_assert(FEW % BLOCK == 0, "blocks are whole");

/* place[BLOCK] = how many of from[n] are below own[0], own[1], ... */
static inline CO_AVX2 void count_below(int64_t *place, const int64_t *own, const int64_t *from, size_t n)
{
    four a, b, c, d, below_a = {0}, below_b = {0}, below_c = {0}, below_d = {0};

    memcpy(&a, own, sizeof a);
    memcpy(&b, own + 4, sizeof b);
    memcpy(&c, own + 8, sizeof c);
    memcpy(&d, own + 12, sizeof d);
    for (size_t i = 0; i < n; i++) {
        four other = {from[i], from[i], from[i], from[i]};
        below_a -= a > other; /* true is -1 */
        below_b -= b > other;
        below_c -= c > other;
        below_d -= d > other;
    }
    memcpy(place, &below_a, sizeof a);
    memcpy(place + 4, &below_b, sizeof b);
    memcpy(place + 8, &below_c, sizeof c);
    memcpy(place + 12, &below_d, sizeof d);
}

/* key[n] = from[n] in ascending order; all differ, n <= FEW. Places of `from` after n up to a whole block are read. */
static CO_AVX2 void order_few(uint64_t *key, const int64_t *from, size_t n)
{
    int64_t place[FEW];

    for (size_t b = 0; b < n; b += BLOCK)
        count_below(place + b, from + b, from, n);
    for (size_t i = 0; i < n; i++)
        key[place[i]] = (uint64_t)from[i];
}

static size_t make_keys(uint64_t *key, const int32_t *idx, size_t n, int64_t below)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        key[found] = (uint64_t)(uint32_t)idx[i] << 32 | i;
        found += idx[i] >= 0 && idx[i] < below;
    }
    return found;
}

size_t co_sort_positions(uint64_t *key, const int32_t *idx, size_t n, int64_t below)
{
    if (n <= FEW && co_has_avx2()) {
        int64_t few[FEW];
        size_t found = make_keys((uint64_t *)few, idx, n, below);
        memset(few + found, 0, (BLOCK - found % BLOCK) % BLOCK * sizeof *few); /* its last block is read whole */
        order_few(key, few, found);
        return found;
    }
    size_t found = make_keys(key, idx, n, below);
    co_sort_keys(key, key + n, found);
    return found;
}
