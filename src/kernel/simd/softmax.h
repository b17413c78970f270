/* softmax.h -- softmax of one row, shared by SOFTMAX, ATTENTION and CROSS_ENTROPY. Sums as in sums.h. */
#ifndef CO_KERNEL_SIMD_SOFTMAX_H
#define CO_KERNEL_SIMD_SOFTMAX_H

#include <math.h>

#include "kernel/simd/sums.h"
#include "kernel/simd/vec_maths.h"

static inline float row_max(const float *x, int64_t n) /* n >= 1 */
{
    vf top = v_set(x[0]);
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        top = v_max(v_load(x + i), top);
    float t = v_hmax(top);
    for (; i < n; i++)
        t = x[i] > t ? x[i] : t;
    return t;
}

typedef struct exp_row {
    sum16 sum;
    float *y;
    const float *x;
    vf scale, top;
} exp_row;

ALWAYS_INLINE void exp_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    exp_row *r = ctx;
    vf e = v_exp(v_load_n(r->x + i, lanes) * r->scale - r->top);
    if (lanes < VW)
        e = v_keep(e, lanes);
    if (r->y)
        v_store_n(r->y + i, lanes, e);
    sum16_add(&r->sum, part, e);
}

/* Returns the sum of exp(x * scale - top) and stores the terms to y unless y is NULL. y may be x. */
static inline double row_exp_sum(float *y, const float *x, int64_t n, float scale, float top)
{
    exp_row r = {.y = y, .x = x, .scale = v_set(scale), .top = v_set(top)};
    sum16_init(&r.sum);
    each_step(n, exp_step, &r);
    return sum16_total(&r.sum);
}

typedef struct scale_row {
    float *y;
    vf by;
} scale_row;

ALWAYS_INLINE void scale_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    const scale_row *r = ctx;
    v_store_n(r->y + i, lanes, v_load_n(r->y + i, lanes) * r->by);
}

/* y = softmax(x * scale), scale > 0; y may be x; n >= 1 */
static inline void row_softmax(float *y, const float *x, int64_t n, float scale)
{
    double sum = row_exp_sum(y, x, n, scale, row_max(x, n) * scale);
    scale_row r = {y, v_set((float)(1 / sum))};
    each_step(n, scale_step, &r);
}

typedef struct dot_row {
    sum16 sum;
    const float *a, *b;
} dot_row;

ALWAYS_INLINE void dot_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    dot_row *r = ctx;
    sum16_add(&r->sum, part, v_load_n(r->a + i, lanes) * v_load_n(r->b + i, lanes));
}

typedef struct softmax_dx_row {
    float *dx;
    const float *dy, *y;
    vf sum, scale;
} softmax_dx_row;

ALWAYS_INLINE void softmax_dx_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    const softmax_dx_row *r = ctx;
    v_store_n(r->dx + i, lanes, v_load_n(r->y + i, lanes) * (v_load_n(r->dy + i, lanes) - r->sum) * r->scale);
}

/* dx = y * (dy - sum of y * dy) * scale; dx may be dy */
static inline void row_softmax_grad(float *dx, const float *dy, const float *y, int64_t n, float scale)
{
    dot_row r = {.a = y, .b = dy};
    sum16_init(&r.sum);
    each_step(n, dot_step, &r);
    softmax_dx_row d = {dx, dy, y, v_set((float)sum16_total(&r.sum)), v_set(scale)};
    each_step(n, softmax_dx_step, &d);
}

#endif
