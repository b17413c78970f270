/* vec_maths.h -- exp and erf of a vector, in float, by polynomials in fma form.
 *
 * Worst errors over all floats, against double, as measured by tests/kernel/test_simd_maths.c:
 *   v_exp   1 unit in the last place; 0 below -104, inf above 88.73, nan of nan; denormal results too
 *   v_erf   1 unit in the last place; nan of nan
 * Coefficients are minimax fits (weighted least squares, reweighted towards equal ripples) rounded to float.
 */
#ifndef CO_KERNEL_SIMD_VEC_MATHS_H
#define CO_KERNEL_SIMD_VEC_MATHS_H

#include "kernel/simd/vec.h"

/* exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2) / 2; ln 2 is split in two parts; the first has 15
 * bits, so that n times it is exact. 2^n is the product of two factors, because one float cannot represent
 * every 2^n that is needed (denormals, 2^128). */
ALWAYS_INLINE vf v_exp(vf x)
{
    x = v_max(v_set(-104.0f), v_min(v_set(89.0f), x));
    vf n = v_round(x * v_set(0x1.715476p+0f));
    vf r = v_fma(n, v_set(-0x1.62e4p-1f), x);
    r = v_fma(n, v_set(-0x1.7f7d1cp-20f), r);
    vf q = v_set(0x1.6a1a6ap-10f);
    q = v_fma(q, r, v_set(0x1.123fc8p-7f));
    q = v_fma(q, r, v_set(0x1.555916p-5f));
    q = v_fma(q, r, v_set(0x1.55548ap-3f));
    q = v_fma(q, r, v_set(0x1.fffffcp-2f));
    vf e = v_fma(q, r * r, r) + v_set(1.0f);
    vi whole = v_to_int(n), half = vi_half(whole);
    return e * v_pow2(half) * v_pow2(whole - half);
}

/* Up to 1: x + x P(x^2). Beyond: 1 - exp(-Q(x)), where Q fits -log(erfc(x)) on [1, 4]; at 4 erf rounds to
 * 1. */
ALWAYS_INLINE vf v_erf(vf x)
{
    vf t = v_min(v_set(4.0f), v_abs(x)), s = t * t;
    vf p = v_set(0x1.496a1cp-14f);
    p = v_fma(p, s, v_set(-0x1.a3f6f8p-11f));
    p = v_fma(p, s, v_set(0x1.5405bp-8f));
    p = v_fma(p, s, v_set(-0x1.b7f90cp-6f));
    p = v_fma(p, s, v_set(0x1.ce2cf8p-4f));
    p = v_fma(p, s, v_set(-0x1.81273ep-2f));
    p = v_fma(p, s, v_set(0x1.06eba8p-3f));
    vf q = v_set(0x1.8bfe88p-13f);
    q = v_fma(q, t, v_set(-0x1.859afap-9f));
    q = v_fma(q, t, v_set(0x1.677904p-6f));
    q = v_fma(q, t, v_set(-0x1.a73aaap-4f));
    q = v_fma(q, t, v_set(-0x1.46989ap-1f));
    q = v_fma(q, t, v_set(-0x1.20938ep+0f));
    q = v_fma(q, t, v_set(-0x1.3b023p-12f));
    vf y = v_pick(v_gt(t, v_set(1.0f)), v_set(1.0f) - v_exp(q), v_fma(t, p, t));
    return v_copysign(y, x);
}

#endif
