/* sort.c -- a stable radix sort, four passes of eight bits; few keys are inserted one by one.
 *
 * All four passes always run, so that rows of a table of a thousand and of a billion rows cost the same. */
#include "base/sort.h"

#include <string.h>

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
