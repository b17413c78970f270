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

/* The sum of exp(x * scale - top); the terms into y too, if not NULL. y may be x. */
static inline double row_exp_sum(float *y, const float *x, int64_t n, float scale, float top)
{
    sum16 a;
    sum16_init(&a);
    for (int64_t i = 0, half = 0; i < n; i += VW, half ^= 1) {
        int64_t left = lanes_left(i, n);
        vf e = v_exp(v_load_n(x + i, left) * v_set(scale) - v_set(top));
        if (left < VW)
            e = v_pick(_mm256_castsi256_ps(v_first(left)), e, v_zero());
        if (y)
            v_store_n(y + i, left, e);
        sum16_add(&a, (int)half, e);
    }
    return sum16_total(&a);
}

static inline void row_scale(float *y, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i += VW) {
        int64_t left = lanes_left(i, n);
        v_store_n(y + i, left, v_load_n(y + i, left) * v_set(by));
    }
}

/* y = softmax(x * scale), scale > 0; y may be x; n >= 1 */
static inline void row_softmax(float *y, const float *x, int64_t n, float scale)
{
    double sum = row_exp_sum(y, x, n, scale, row_max(x, n) * scale);
    row_scale(y, n, (float)(1 / sum));
}

/* dx = y * (dy - sum of y * dy) * scale; dx may be dy */
static inline void row_softmax_grad(float *dx, const float *dy, const float *y, int64_t n, float scale)
{
    sum16 a;
    sum16_init(&a);
    for (int64_t i = 0, half = 0; i < n; i += VW, half ^= 1) {
        int64_t left = lanes_left(i, n);
        sum16_add(&a, (int)half, v_load_n(y + i, left) * v_load_n(dy + i, left));
    }
    vf s = v_set((float)sum16_total(&a)), by = v_set(scale);
    for (int64_t i = 0; i < n; i += VW) {
        int64_t left = lanes_left(i, n);
        v_store_n(dx + i, left, v_load_n(y + i, left) * (v_load_n(dy + i, left) - s) * by);
    }
}

#endif
