/* rows.c -- where the parts of a list of rows lie: | count | row numbers | values |, each on a cache line. */
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
