/* sums.h -- how every kernel of this folder sums a row of floats: in double, over 16 partial sums.
 *
 *     element i of the row goes to partial sum i % 16, in order of i
 *     at the end   p[l] + p[l + 8], then l + (l + 4), then (0 + 2) + (1 + 3)
 *
 * The order does not depend on the width of a vector: 16 floats are SUM_PARTS vectors, and vector j of them
 * holds the elements from j * VW on. A short end is filled with +0, which changes no partial sum (none is
 * ever -0). Several rows may follow one another in one `sum16`; each starts again at partial sum 0.
 */
#ifndef CO_KERNEL_SIMD_SUMS_H
#define CO_KERNEL_SIMD_SUMS_H

#include "kernel/simd/vec.h"

enum { SUM_STEP = 16, SUM_PARTS = SUM_STEP / VW };

typedef struct sum16 {
    vd s[2 * SUM_PARTS];
} sum16;

ALWAYS_INLINE void sum16_init(sum16 *a)
{
    UNROLL for (int j = 0; j < 2 * SUM_PARTS; j++) a->s[j] = vd_set(0);
}

ALWAYS_INLINE void sum16_add_halves(sum16 *a, int part, vd low, vd high)
{
    a->s[2 * part] += low;
    a->s[2 * part + 1] += high;
}

ALWAYS_INLINE void sum16_add(sum16 *a, int part, vf x)
{
    a->s[2 * part] += vd_low(x);
    a->s[2 * part + 1] += vd_high(x);
}

ALWAYS_INLINE double sum16_total(const sum16 *a)
{
    return vd_sum16(a->s);
}

/* How many of the VW elements from i on exist: 0 .. VW. */
ALWAYS_INLINE int64_t lanes_left(int64_t i, int64_t n)
{
    return n - i >= VW ? VW : n - i > 0 ? n - i : 0;
}

/* Walks a row of n in vectors: calls f(ctx, i, part, lanes) for i = 0, VW, 2 * VW, ... All of it is inlined,
 * so that the sums in *ctx stay in registers. */
typedef void (*row_step)(void *ctx, int64_t i, int part, int64_t lanes);
ALWAYS_INLINE void each_step(int64_t n, row_step f, void *ctx)
{
    int64_t i = 0;
    for (; i + SUM_STEP <= n; i += SUM_STEP) {
        UNROLL for (int part = 0; part < SUM_PARTS; part++) f(ctx, i + part * VW, part, VW);
    }
    UNROLL for (int part = 0; part < SUM_PARTS; part++)
    {
        int64_t at = i + part * VW;
        if (at < n)
            f(ctx, at, part, lanes_left(at, n));
    }
}

#endif
