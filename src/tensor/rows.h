/* rows.h -- a row-sparse gradient: the rows of a table [V,D] that a batch touched, in ascending order.
 *
 *     count   how many rows there are
 *     row     [cap] their numbers, ascending; the places after `count` hold CO_NO_ROW
 *     value   [cap,D] their values in the same order; the places after `count` hold zeros
 *
 * A row that is not in the list is absent, which is not the same as a row of zeros: a lazy optimiser leaves
 * an absent row and its moments alone. The memory belongs to whoever made the list.
 */
#ifndef CO_TENSOR_ROWS_H
#define CO_TENSOR_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/lanes.h"

#define CO_NO_ROW UINT32_MAX

typedef struct co_rows {
    uint32_t *count;
    uint32_t *row;
    float *value;
} co_rows;

/* The 4-byte elements that a list of up to `cap` rows of `width` values takes, and the list in such a piece
 * of memory. Each part begins on a cache line if `memory` does. */
size_t co_rows_elements(size_t cap, size_t width);
co_rows co_rows_in(float *memory, size_t cap);

/* dst [n,width] = rows row[0..n) of a table. */
void co_rows_gather(float *dst, const float *table, const uint32_t *row, size_t n, size_t width);

/* dst [width] = src [width]. Rows are short: a call of memcpy takes longer than the copy, and compilers make one of
 * every loop that copies, unless something else happens in it. */
static inline CO_INLINE void co_row_copy(float *restrict dst, const float *restrict src, size_t width)
{
    typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
    size_t j = 0;

    for (; j + 32 <= width; j += 32) {
        eight a = *(const eight *)(src + j), b = *(const eight *)(src + j + 8);
        eight c = *(const eight *)(src + j + 16), d = *(const eight *)(src + j + 24);
        *(eight *)(dst + j) = a;
        *(eight *)(dst + j + 8) = b;
        *(eight *)(dst + j + 16) = c;
        *(eight *)(dst + j + 24) = d;
        __asm__ volatile("");
    }
    for (; j < width; j++) {
        dst[j] = src[j];
        __asm__ volatile("");
    }
}

#endif
