/* sums.h -- the one way a row of floats is summed in this folder: in double, over 16 partial sums.
 *
 *     element i of the row goes to partial sum i % 16, in order of i
 *     at the end   p[l] + p[l + 8], then l + (l + 4), then (0 + 2) + (1 + 3)
 *
 * (lanes of doubles: 16 = four vectors of 4.) A short end is filled up with +0, which changes no partial sum.
 * Several rows may follow one another in one `sum16`; each starts again at partial sum 0.
 */
#ifndef CO_KERNEL_SIMD_SUMS_H
#define CO_KERNEL_SIMD_SUMS_H

#include "kernel/simd/vec.h"

enum { SUM_STEP = 2 * VW };

typedef struct sum16 {
    vd s[4];
} sum16;

ALWAYS_INLINE void sum16_init(sum16 *a)
{
    a->s[0] = a->s[1] = a->s[2] = a->s[3] = vd_set(0);
}

/* half 0: elements 0..7 of a step of 16; half 1: 8..15 */
ALWAYS_INLINE void sum16_add(sum16 *a, int half, vf x)
{
    a->s[2 * half] += vd_low(x);
    a->s[2 * half + 1] += vd_high(x);
}

ALWAYS_INLINE double sum16_total(const sum16 *a)
{
    vd lo = a->s[0] + a->s[2], hi = a->s[1] + a->s[3];
    return vd_sum(lo + hi);
}

/* How many of VW elements from i on are there; 0 .. VW. */
ALWAYS_INLINE int64_t lanes_left(int64_t i, int64_t n)
{
    return n - i >= VW ? VW : n - i > 0 ? n - i : 0;
}

/* A row of n in vectors: f(ctx, i, half, lanes) for i = 0, 8, ..., all inlined, so that the sums in *ctx stay
 * in registers. */
typedef void (*row_step)(void *ctx, int64_t i, int half, int64_t lanes);
ALWAYS_INLINE void each_step(int64_t n, row_step f, void *ctx)
{
    int64_t i = 0;
    for (; i + SUM_STEP <= n; i += SUM_STEP) {
        f(ctx, i, 0, VW);
        f(ctx, i + VW, 1, VW);
    }
    if (i < n)
        f(ctx, i, 0, lanes_left(i, n));
    if (i + VW < n)
        f(ctx, i + VW, 1, lanes_left(i + VW, n));
}

#endif
