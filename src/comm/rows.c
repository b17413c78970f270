/* rows.c -- sums of row-sparse gradients.
 *
 * All rows of all parts become keys (row number, part, place). The parts are sorted, so their keys are merged
 * pair by pair. Then each run of equal row numbers is one row of the sum. The tree of a run splits at the
 * highest bit in which its leaves differ:
 *
 *     leaves 1, 4, 6 of 8:   1 | 4 6  ->  1 + (4 + 6)
 *
 * Cost: proportional to the rows in all parts, times log2 of the number of parts for the keys; it does not
 * depend on the size of the table. Parts whose keys are those of the last sum with this order are not merged again.
 */
#include "comm/rows.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/lanes.h"

/* A key is | row 32 | part 8 | place 24 |. */
enum { PLACE_BITS = 24, LEVELS = 9, MOST_PARTS = 256 };
_Static_assert(CO_ROWS_MOST == 1 << PLACE_BITS, "a place fits in a key");

/* The keys as the parts have them, and room for two steps of merging. */
size_t co_rows_order_bytes(size_t total)
{
    return 3 * total * sizeof(uint64_t);
}

size_t co_rows_scratch(size_t width)
{
    return LEVELS * width * sizeof(float);
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

static inline CO_INLINE const float *value_of(const struct run *run, uint64_t key, size_t width)
{
    return run->part[key >> PLACE_BITS & 255].rows.value + (key & ((1u << PLACE_BITS) - 1)) * width;
}

static inline CO_INLINE void add_rows(float *dst, const float *left, const float *right, size_t width)
{
    for (size_t i = 0; i < width; i++)
        dst[i] = left[i] + right[i];
}

/* dst = the sum of key[0..n), all of one row, in ascending order of their leaves. */
static void add_run(const struct run *run, const uint64_t *key, size_t n, int level, float *dst)
{
    if (n == 1) {
        co_row_copy(dst, value_of(run, key[0], run->width), run->width);
        return;
    }
    int top = 31 - __builtin_clz((unsigned)(leaf_of(run, key[0]) ^ leaf_of(run, key[n - 1])));
    size_t right = 1;
    while (!(leaf_of(run, key[right]) >> top & 1))
        right++;
    float *other = run->scratch + (size_t)level * run->width;
    add_run(run, key, right, level + 1, dst);
    add_run(run, key + right, n - right, level + 1, other);
    add_rows(dst, dst, other, run->width);
}

/* The keys of all parts, one part after the other; part p ends at end[p]. False: these keys were there already. Keys
 * behind the last sum's are compared with whatever lies there, but then there are more keys than before. */
static bool gather(co_rows_order *order, size_t *end, const co_rows_of *part, int n)
{
    uint64_t changed = 0;
    size_t total = 0, before = order->total;

    CO_ASSERT(n <= MOST_PARTS, "a tree has at most 256 leaves");
    for (int p = 0; p < n; p++) {
        const uint32_t *row = part[p].rows.row;
        uint64_t *key = order->key + total, low = (uint64_t)p << PLACE_BITS;
        size_t count = *part[p].rows.count;
        for (size_t i = 0; i < count; i++) {
            uint64_t own = (uint64_t)row[i] << 32 | (low + i);
            changed |= key[i] ^ own;
            key[i] = own;
        }
        total += count;
        end[p] = total;
    }
    order->total = total;
    return total != before || changed;
}

/* dst = a[0..n) and b[0..m) in ascending order. Keys differ, so nothing depends on who comes first. */
static void merge(uint64_t *dst, const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    const uint64_t *a_end = a + n, *b_end = b + m;

    while (a < a_end && b < b_end) { /* without a branch on the keys, which nobody can predict */
        uint64_t left = *a, right = *b;
        bool take = right < left;
        *dst++ = take ? right : left;
        a += !take;
        b += take;
    }
    while (a < a_end)
        *dst++ = *a++;
    while (b < b_end)
        *dst++ = *b++;
}

/* Merges neighbouring runs until one is left. The keys as given stay as they are. */
static void merge_all(co_rows_order *order, size_t *end, int n)
{
    uint64_t *from = order->key, *to = from + order->total, *spare = to + order->total;

    while (n > 1) {
        int left = 0;
        size_t at = 0;
        for (int p = 0; p < n; p += 2) {
            size_t mid = end[p], stop = p + 1 < n ? end[p + 1] : mid;
            merge(to + at, from + at, mid - at, from + mid, stop - mid);
            at = end[left++] = stop;
        }
        n = left;
        uint64_t *next = from == order->key ? spare : from;
        from = to;
        to = next;
    }
    order->sorted = from;
}

/* The keys of one row: from `at` on, so many. */
static inline CO_INLINE size_t run_length(const uint64_t *key, size_t at, size_t total)
{
    size_t next = at + 1;

    while (next < total && key[next] >> 32 == key[at] >> 32)
        next++;
    return next - at;
}

/* The rows of the sum, along keys that are sorted. A row of one or two leaves needs no tree. Returns how many there
 * are. */
static inline CO_INLINE size_t add_each(const struct run *run, const uint64_t *key, size_t total,
                                        const co_rows *out, size_t width)
{
    size_t rows = 0;

    for (size_t at = 0, n; at < total; at += n, rows++) {
        float *dst = out->value + rows * width;
        n = run_length(key, at, total);
        out->row[rows] = (uint32_t)(key[at] >> 32);
        if (n == 1)
            co_row_copy(dst, value_of(run, key[at], width), width);
        else if (n == 2)
            add_rows(dst, value_of(run, key[at], width), value_of(run, key[at + 1], width), width);
        else
            add_run(run, key + at, n, 0, dst);
    }
    return rows;
}

static inline CO_INLINE size_t add_all(const struct run *run, const uint64_t *key, size_t total,
                                       const co_rows *out)
{
    return run->width == 1 ? add_each(run, key, total, out, 1) : add_each(run, key, total, out, run->width);
}

static size_t add_all_any(const struct run *run, const uint64_t *key, size_t total, const co_rows *out)
{
    return add_all(run, key, total, out);
}

static CO_AVX2 size_t add_all_avx2(const struct run *run, const uint64_t *key, size_t total, const co_rows *out)
{
    return add_all(run, key, total, out);
}

static size_t count_rows(const uint64_t *key, size_t total)
{
    size_t rows = total > 0;

    for (size_t i = 1; i < total; i++)
        rows += key[i] >> 32 != key[i - 1] >> 32;
    return rows;
}

void co_rows_sum(const co_rows *out, size_t cap, const co_rows_of *part, int n, size_t width,
                 co_rows_order *order, void *scratch)
{
    size_t end[MOST_PARTS];
    struct run run = {part, width, scratch};

    if (gather(order, end, part, n))
        merge_all(order, end, n);
    CO_ASSERT(order->total <= cap || count_rows(order->sorted, order->total) <= cap,
              "the list has room for every row");
    size_t rows = (co_has_avx2() ? add_all_avx2 : add_all_any)(&run, order->sorted, order->total, out);
    *out->count = (uint32_t)rows;
}
