/* gemm.h -- the matrix product that matmul, linear, convolutions and attention all use.
 *
 *     C[m, n] = A[m, :] . B[:, n]   as ONE chain   c = fma(A[m, k], B[k, n], c),  k = 0, 1, ... from c = +0,
 *
 * then the bias is added. Blocking, packing, the choice of the vectorised operand and the number of threads
 * do not change the chain, so they do not change a bit of the result.
 *
 * An operand is a pointer and two offsets per element: one for its row or column i, one for k. Each offset is
 * a stride or a table. A convolution is a product whose tables walk over a zero-padded image.
 */
#ifndef CO_KERNEL_SIMD_GEMM_H
#define CO_KERNEL_SIMD_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/kernel.h"
#include "kernel/simd/vec.h"

typedef struct gemm_side {
    const float *p;
    int64_t si, sk;         /* element (i, k) is p[i * si + k * sk] ... */
    const int32_t *ti, *tk; /* ... or, with tables, p[ti[i] + tk[k]] */
    bool rising;            /* tk rises strictly */
} gemm_side;

typedef struct gemm {
    int64_t m, n, k;
    gemm_side a, b; /* A: i is the row m; B: i is the column n */
    float *c;       /* element (m, n) is c[m * cm + n * cn], or c[m * cm + tn[n]] */
    int64_t cm, cn;
    const int32_t *tn;   /* rises strictly */
    const float *bias_m; /* added to row m; NULL: none */
    const float *bias_n; /* added to column n; NULL: none */
    bool resume;         /* continue the sums from what C holds */
    bool add;            /* add the finished sums to what C holds; k is at most GEMM_KC */
} gemm;

enum { GEMM_KC = 320, GEMM_MC = 96, GEMM_NC = 512 };

/* Floats of scratch for a product of this size or smaller, one thread. */
size_t LEVEL(gemm_scratch)(int64_t m, int64_t n, int64_t k);
/* The share of thread ith: columns or rows of C. scratch is this thread's own. */
void LEVEL(gemm_run)(const gemm *g, float *scratch, int ith, int nth);

/* B sliver: out[k][NR], columns j .. j + n - 1 (n <= NR; lanes past n hold arbitrary values). */
void LEVEL(gemm_pack_b)(float *out, const gemm_side *b, int64_t j, int64_t n, int64_t k0, int64_t kc);
/* A sliver: out[k][MR], rows i .. i + m - 1 (m <= MR). Writes up to VW - MR floats past kc * MR. */
void LEVEL(gemm_pack_a)(float *out, const gemm_side *a, int64_t i, int64_t m, int64_t k0, int64_t kc);

/* The same product for callers that pack by themselves. A: slivers of rows, dealt by gemm_deal_rows, each
 * [k][MR] and `step` floats after the one before; b: one sliver [k][NR]; c: [rows][NR]. */
void LEVEL(gemm_sliver)(const float *a, int64_t step, int64_t rows, const float *b, int64_t k, float *c,
                        bool resume);
/* Rows in equal slivers: the first `longer` of n have rows + 1. */
typedef struct gemm_deal {
    int64_t n, rows, longer;
} gemm_deal;
static inline gemm_deal gemm_deal_rows(int64_t rows)
{
    int64_t n = (rows + MR - 1) / MR;
    return (gemm_deal){n, rows / n, rows % n};
}

/* Continues m rows of such sums, c [m][NR], of n columns by k steps. Step i takes a[ta[i]...] of one sliver, so
 * packed rows of A can be left out. */
void LEVEL(gemm_picked)(const float *a, const int32_t *ta, const float *b, int64_t k, float *c, int64_t m,
                        int64_t n);

/* Weights and their gradients come from memory, not from a cache. So that computing does not wait for it, the
 * lines that the next tile needs are asked for a few at a time, between the products of this one: all at once
 * they would fill the queue of misses. */
typedef struct ahead {
    const float *row; /* NULL: nothing to ask for */
    int stride;       /* floats between two rows */
    int rows, lines;  /* that are left; lines of this row */
    int per_row, each;
} ahead;

enum { LINE = 16 }; /* floats of a cache line */

/* `rows` rows of `floats`, asked for in `parts` parts. No rows: nothing. A row may begin inside a line, so that
 * its last floats are in a line that is not asked for. */
static inline ahead ahead_of(const float *p, int64_t rows, int64_t floats, int64_t stride, int parts)
{
    int per_row = (int)((floats + LINE - 1) / LINE);

    if (rows <= 0 || floats <= 0 || parts <= 0)
        return (ahead){0};
    return (ahead){p, (int)stride, (int)rows, per_row, per_row, ((int)rows * per_row + parts - 1) / parts};
}

/* Asks for the next part, to write or only to read it. */
ALWAYS_INLINE void ahead_ask(ahead *a, bool write)
{
    for (int i = a->each; i > 0 && a->row; i--) {
        const float *line = a->row + (a->per_row - a->lines) * LINE;
        if (write)
            __builtin_prefetch(line, 1);
        else
            __builtin_prefetch(line, 0);
        if (--a->lines > 0)
            continue;
        a->lines = a->per_row;
        a->row = --a->rows > 0 ? a->row + a->stride : NULL;
    }
}

/* Several chains over one sliver of A and one of B, each from zero. Step k of chain i takes a[ta[i * step + k]...] and
 * b[tb[i * step + k]...]; it has n[i] steps, and gives c[i] [MR][NR], of which m rows are sums. */
typedef struct gemm_pairs {
    int64_t chains, step;
    const int32_t *ta, *tb, *n;
} gemm_pairs;
void LEVEL(gemm_paired)(const gemm_pairs *p, const float *a, const float *b, float *c, int64_t m, ahead *next);

#define gemm_paired  LEVEL(gemm_paired)
#define gemm_sliver  LEVEL(gemm_sliver)
#define gemm_picked  LEVEL(gemm_picked)
#define gemm_scratch LEVEL(gemm_scratch)
#define gemm_run     LEVEL(gemm_run)
#define gemm_pack_a  LEVEL(gemm_pack_a)
#define gemm_pack_b  LEVEL(gemm_pack_b)

/* Scratch is divided evenly between the threads of a call. */
static inline int call_threads(const co_call *c)
{
    return c->nth > 1 ? c->nth : 1;
}

#endif
