/* test_sort.c -- sorting keys: against the plainest sort, for every small number of keys and some large
 * ones. */
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "harness.h"

enum { MOST = 3000 };

static int by_row_then_place(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void check_sort(size_t n, uint32_t rows, uint32_t draw)
{
    static uint64_t key[MOST], tmp[MOST], want[MOST];

    for (size_t i = 0; i < n; i++) {
        uint32_t u[4];
        co_rng_draw(u, co_rng_key_make(1, CO_RNG_TEST), draw, rows, (uint32_t)i, 0);
        want[i] = key[i] = (uint64_t)(rows ? u[0] % rows : u[0]) << 32 | i;
    }
    co_sort_keys(key, tmp, n);
    /* places make all keys different: this is the stable order */
    qsort(want, n, sizeof *want, by_row_then_place);
    CHECK(memcmp(key, want, n * sizeof *key) == 0, "%zu keys of %u rows are not in order", n, rows);
}

TEST(keys_are_sorted_by_their_upper_half_and_equal_ones_keep_their_order)
{
    static const uint32_t rows[] = {1, 2, 10, 300, 70000, 20000000, 0};

    for (size_t r = 0; r < CO_COUNT(rows); r++) {
        for (size_t n = 0; n <= 130; n++)
            check_sort(n, rows[r], 1);
        check_sort(MOST, rows[r], 2);
    }
}

static void check_positions(size_t n, int64_t below, uint32_t draw)
{
    static uint64_t key[2 * MOST], want[MOST];
    static int32_t idx[MOST];
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t u[4];
        co_rng_draw(u, co_rng_key_make(1, CO_RNG_TEST), draw, (uint32_t)below, (uint32_t)i, 0);
        idx[i] = (int32_t)(u[0] % (uint32_t)(below + 2)) - 1; /* now and then one too low or too high */
        if (idx[i] >= 0 && idx[i] < below)
            want[found++] = (uint64_t)idx[i] << 32 | i;
    }
    qsort(want, found, sizeof *want, by_row_then_place);
    CHECK(co_sort_positions(key, idx, n, below) == found, "%zu of %zu positions count", found, n);
    CHECK(memcmp(key, want, found * sizeof *key) == 0, "%zu positions below %lld are not in order", n,
          (long long)below);
}

TEST(positions_are_sorted_by_their_number_and_those_out_of_range_are_left_out)
{
    static const int64_t below[] = {1, 2, 10, 300, 70000, INT32_MAX - 2};

    for (size_t r = 0; r < CO_COUNT(below); r++) {
        for (size_t n = 0; n <= 130; n++)
            check_positions(n, below[r], 1);
        check_positions(MOST, below[r], 2);
    }
}
