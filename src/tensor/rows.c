/* rows.c -- where the parts of a list of rows lie: | count | row numbers | values |, each on a cache line; and
 * copies of rows. */
#include "tensor/rows.h"

enum { LINE = 16 }; /* elements */

static size_t lines(size_t n)
{
    return (n + LINE - 1) & ~(size_t)(LINE - 1);
}

size_t co_rows_elements(size_t cap, size_t width)
{
    return LINE + lines(cap) + lines(cap * width);
}

co_rows co_rows_in(float *memory, size_t cap)
{
    return (co_rows){(uint32_t *)memory, (uint32_t *)memory + LINE, memory + LINE + lines(cap)};
}

static inline CO_INLINE void gather(float *dst, const float *table, const uint32_t *row, size_t n, size_t width)
{
    for (size_t i = 0; width == 1 && i < n; i++)
        dst[i] = table[row[i]];
    for (size_t i = 0; width != 1 && i < n; i++)
        co_row_copy(dst + i * width, table + row[i] * width, width);
}

static void gather_any(float *dst, const float *table, const uint32_t *row, size_t n, size_t width)
{
    gather(dst, table, row, n, width);
}

static CO_AVX2 void gather_avx2(float *dst, const float *table, const uint32_t *row, size_t n, size_t width)
{
    gather(dst, table, row, n, width);
}

void co_rows_gather(float *dst, const float *table, const uint32_t *row, size_t n, size_t width)
{
    (co_has_avx2() ? gather_avx2 : gather_any)(dst, table, row, n, width);
}
