/* Compares exp and erf of vec_maths.h with the C library's in double, over every 1009th float, and checks the
 * errors that vec_maths.h states. */
#include "kernel/simd_case.h"

#include <math.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define SIMD_LEVEL avx2
#include "kernel/simd/vec_maths.h"

static void exp8(float *y, const float *x)
{
    v_store(y, v_exp(v_load(x)));
}
static void erf8(float *y, const float *x)
{
    v_store(y, v_erf(v_load(x)));
}
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

/* Distance of y from `want` in units in the last place of float at `want`. */
static double units(float y, double want)
{
    float near = (float)want;
    if (isinf(near) || isinf(y))
        return y == near ? 0 : 1e30;
    int e;
    frexp(want, &e);
    return fabs((double)y - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

static float worst_at;
static double worst_error(void (*f)(float *, const float *), double (*exact)(double))
{
    double worst = 0;
    for (uint64_t bits = 0; bits + 7 * 1009 < (uint64_t)1 << 32; bits += 8 * 1009) {
        float x[8], y[8];
        for (uint64_t i = 0; i < 8; i++) {
            uint32_t b = (uint32_t)(bits + i * 1009);
            memcpy(&x[i], &b, sizeof b);
        }
        f(y, x);
        for (int i = 0; i < 8; i++) {
            if (isnan(x[i])) {
                CHECK(isnan(y[i]), "nan gives %g", y[i]);
                continue;
            }
            double u = units(y[i], exact((double)x[i]));
            if (!(u <= worst))
                worst = u, worst_at = x[i];
        }
    }
    return worst;
}

static void need_avx2(void)
{
    const co_kernels *k;
    if (co_kernels_get(&k, "avx2"))
        test_skip("%s", co_errmsg());
}

TEST(simd_exp_is_within_one_unit_in_the_last_place)
{
    need_avx2();
    double u = worst_error(exp8, exp);
    test_note("worst error of v_exp: %.3f ulp at %a", u, worst_at);
    CHECK(u <= 1, "%g ulp at %a", u, worst_at);
}

TEST(simd_erf_is_within_one_unit_in_the_last_place)
{
    need_avx2();
    double u = worst_error(erf8, erf);
    test_note("worst error of v_erf: %.3f ulp at %a", u, worst_at);
    CHECK(u <= 1, "%g ulp at %a", u, worst_at);
}
