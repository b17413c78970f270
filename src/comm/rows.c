/* rows.c -- sums of row-sparse gradients.
 *
 * All rows of all parts become keys (row number, part, place). The parts are sorted, so their keys are merged
 * pair by pair. Then each run of equal row numbers is one row of the sum. The tree of a run splits at the
 * highest bit in which its leaves differ:
 *
 *     leaves 1, 4, 6 of 8:   1 | 4 6  ->  1 + (4 + 6)
 *
 * Cost: proportional to the rows in all parts, times log2 of the number of parts for the keys; it does not
 * depend on the size of the table.
 */
#include "comm/rows.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"

/* A key is | row 32 | part 8 | place 24 |. */
enum { PLACE_BITS = 24, LEVELS = 9, MOST_PARTS = 256 };
_Static_assert(CO_ROWS_MOST == 1 << PLACE_BITS, "a place fits in a key");

size_t co_rows_scratch(size_t total, size_t width)
{
    return 2 * total * sizeof(uint64_t) + LEVELS * width * sizeof(float);
}

struct run {
    const co_rows_of *part;
    size_t width;
    float *scratch; /* [LEVELS, width] */
};

static int leaf_of(const struct run *run, uint64_t key)
{
    return run->part[key >> PLACE_BITS & 255].leaf;
}

static const float *value_of(const struct run *run, uint64_t key)
{
    return run->part[key >> PLACE_BITS & 255].rows.value + (key & ((1u << PLACE_BITS) - 1)) * run->width;
}

/* dst = the sum of key[0..n), all of one row, in ascending order of their leaves. */
static void add_run(const struct run *run, const uint64_t *key, size_t n, int level, float *dst)
{
    if (n == 1) {
        memcpy(dst, value_of(run, key[0]), run->width * sizeof *dst);
        return;
    }
    int top = 31 - __builtin_clz((unsigned)(leaf_of(run, key[0]) ^ leaf_of(run, key[n - 1])));
    size_t right = 1;
    while (!(leaf_of(run, key[right]) >> top & 1))
        right++;
    float *other = run->scratch + (size_t)level * run->width;
    add_run(run, key, right, level + 1, dst);
    add_run(run, key + right, n - right, level + 1, other);
    for (size_t i = 0; i < run->width; i++)
        dst[i] = dst[i] + other[i];
}

/* The keys of all parts, one part after the other; part p ends at end[p]. */
static size_t gather(uint64_t *key, size_t *end, const co_rows_of *part, int n)
{
    size_t total = 0;

    CO_ASSERT(n <= MOST_PARTS, "a tree has at most 256 leaves");
    for (int p = 0; p < n; p++) {
        for (uint32_t i = 0, count = *part[p].rows.count; i < count; i++)
            key[total++] = (uint64_t)part[p].rows.row[i] << 32 | (uint64_t)p << PLACE_BITS | i;
        end[p] = total;
    }
    return total;
}

/* dst = a[0..n) and b[0..m) in ascending order. Keys differ, so nothing depends on who comes first. */
static void merge(uint64_t *dst, const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    const uint64_t *a_end = a + n, *b_end = b + m;

    while (a < a_end && b < b_end) { /* without a branch on the keys, which nobody can predict */
        bool right = *b < *a;
        *dst++ = right ? *b : *a;
        a += !right;
        b += right;
    }
    memcpy(dst, a, (size_t)(a_end - a) * sizeof *dst);
    memcpy(dst + (a_end - a), b, (size_t)(b_end - b) * sizeof *dst);
}

/* Merges neighbouring runs until one is left. The result lies in one of the two arrays. */
static uint64_t *merge_all(uint64_t *key, uint64_t *other, size_t *end, int n)
{
    while (n > 1) {
        int left = 0;
        size_t at = 0;
        for (int p = 0; p < n; p += 2) {
            size_t mid = end[p], stop = p + 1 < n ? end[p + 1] : mid;
            merge(other + at, key + at, mid - at, key + mid, stop - mid);
            at = end[left++] = stop;
        }
        n = left;
        uint64_t *swap = key;
        key = other;
        other = swap;
    }
    return key;
}

void co_rows_sum(const co_rows *out, size_t cap, const co_rows_of *part, int n, size_t width, void *scratch)
{
    size_t end[MOST_PARTS], room = 0;

    for (int p = 0; p < n; p++)
        room += *part[p].rows.count;
    uint64_t *key = scratch;
    struct run run = {part, width, (float *)(key + 2 * room)};
    size_t total = gather(key, end, part, n), rows = 0;

    key = merge_all(key, key + room, end, n);
    for (size_t at = 0, next; at < total; at = next, rows++) {
        for (next = at + 1; next < total && key[next] >> 32 == key[at] >> 32;)
            next++;
        CO_ASSERT(rows < cap, "the list has room for every row");
        out->row[rows] = (uint32_t)(key[at] >> 32);
        add_run(&run, key + at, next - at, 0, out->value + rows * width);
    }
    *out->count = (uint32_t)rows;
}
