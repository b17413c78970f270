/* These tests measure the error bounds of base/maths.h against the long double functions of libm (64 bits of
 * mantissa). Samples: every STRIDE-th of all 2^32 floats; doubles spread evenly, and doubles of random bits,
 * over the ranges named. One test fixes the bits themselves: one hash for every compiler and CPU. */
#include "harness.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/maths.h"

/* primes, so that each exponent and sign is paired with varying low bits */
enum { STRIDE = 4099, STRIDE_LONG = 127 };

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double random_unit(uint64_t *seed) /* [0, 1) */
{
    return 0x1p-32 * test_u32(seed);
}

static double random_scaled(uint64_t *seed, int exponents) /* [1, 2) times a power of two */
{
    double m = 1 + random_unit(seed);
    return ldexp(m, (int)(test_u32(seed) % (uint32_t)exponents));
}

static double random_bits(uint64_t *seed)
{
    uint64_t high = test_u32(seed);
    return double_of(high << 32 | test_u32(seed));
}

/* One ulp of a value near `want` in a format of `digits` bits and smallest exponent `min_exp`. */
static long double ulp(long double want, int digits, int min_exp)
{
    int e;
    frexpl(want, &e);
    return ldexpl(1.0L, (e < min_exp ? min_exp : e) - digits);
}

/* Error in ulp; 0 if both are the same infinity or both nan, huge if only one is. */
static double error_f(float got, long double want)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : 1e9;
    if (isinf(got) || isinf((float)want))
        return got == (float)want ? 0 : 1e9;
    return (double)(fabsl(got - want) / ulp(want, FLT_MANT_DIG, FLT_MIN_EXP));
}

static double error_d(double got, long double want)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : 1e9;
    if (isinf(got) || isinf((double)want))
        return got == (double)want ? 0 : 1e9;
    return (double)(fabsl(got - want) / ulp(want, DBL_MANT_DIG, DBL_MIN_EXP));
}

static void floats_within(const char *name, float (*fn)(float), long double (*exact)(long double),
                          double bound, uint32_t stride)
{
    double worst = 0;
    float at = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride) {
        float x = float_of((uint32_t)bits);
        double e = error_f(fn(x), exact(x));
        if (e > worst) {
            worst = e;
            at = x;
        }
    }
    test_note("%s: worst %.4f ulp at %a, over every %u-th float", name, worst, (double)at, stride);
    CHECK(worst <= bound, "%s: %g ulp at %a, the header says %g", name, worst, (double)at, bound);
}

static void all_floats(uint32_t stride)
{
    floats_within("co_expf", co_expf, expl, 0.51, stride);
    floats_within("co_logf", co_logf, logl, 0.51, stride);
    floats_within("co_erff", co_erff, erfl, 0.51, stride);
    floats_within("co_tanhf", co_tanhf, tanhl, 0.51, stride);
}

TEST(float_functions_keep_their_bounds)
{
    all_floats(STRIDE);
}

TEST_LONG(float_functions_keep_their_bounds_over_a_dense_sample)
{
    all_floats(STRIDE_LONG);
}

struct worst {
    double error, at;
};

static void meet(struct worst *w, double (*fn)(double), long double (*exact)(long double), double x)
{
    double e = error_d(fn(x), exact(x));
    if (e > w->error)
        *w = (struct worst){e, x};
}

/* n values spread evenly over lo..hi, and n values per exponent; skips values outside lo..hi */
static void doubles_within(const char *name, double (*fn)(double), long double (*exact)(long double),
                           double lo, double hi, int n, double bound)
{
    struct worst w = {0, 0};
    uint64_t seed = 1;
    for (int i = 0; i < n; i++) {
        double u = (i + random_unit(&seed)) / n;
        meet(&w, fn, exact, lo + (hi - lo) * u);
        double x = random_bits(&seed);
        if (x >= lo && x <= hi)
            meet(&w, fn, exact, x);
    }
    test_note("%s: worst %.4f ulp at %a, in %g..%g", name, w.error, w.at, lo, hi);
    CHECK(w.error <= bound, "%s: %g ulp at %a, the header says %g", name, w.error, w.at, bound);
}

TEST(double_functions_keep_their_bounds)
{
    doubles_within("co_exp", co_exp, expl, -708, 709.7, 400000, 0.9);
    doubles_within("co_exp of denormal results", co_exp, expl, -745.1, -708, 100000, 1.0);
    doubles_within("co_log", co_log, logl, 0, DBL_MAX, 400000, 0.95);
    doubles_within("co_log near 1", co_log, logl, 0.5, 2, 400000, 0.95);
    doubles_within("co_sin", co_sin, sinl, -1e5, 1e5, 300000, 0.8);
    doubles_within("co_cos", co_cos, cosl, -1e5, 1e5, 300000, 0.8);
    doubles_within("co_sin in one turn", co_sin, sinl, 0, 6.2832, 300000, 0.8);
    doubles_within("co_cos in one turn", co_cos, cosl, 0, 6.2832, 300000, 0.8);
}

/* Sine and cosine lose digits near multiples of pi/2. */
TEST(sine_and_cosine_hold_next_to_their_zeros)
{
    struct worst w = {0, 0};
    for (int k = -63661; k <= 63661; k++) {
        double x = (double)(k * 1.57079632679489661923132169163975144L);
        double near[] = {x, nextafter(x, 1e9), nextafter(x, -1e9), x + 1e-7};
        for (size_t i = 0; i < CO_COUNT(near); i++) {
            meet(&w, co_sin, sinl, near[i]);
            meet(&w, co_cos, cosl, near[i]);
        }
    }
    test_note("worst %.4f ulp at %a", w.error, w.at);
    CHECK(w.error <= 0.8, "%g ulp at %a", w.error, w.at);
}

TEST(large_angles_lose_digits_slowly_and_stay_waves)
{
    uint64_t seed = 3;
    for (int i = 0; i < 100000; i++) {
        double x = random_scaled(&seed, 1023);
        double s = co_sin(x), c = co_cos(x);
        CHECK(fabs(s * s + c * c - 1) < 1e-15, "at %a: %a %a", x, s, c);
        if (x < 1e12)
            CHECK(fabsl(s - sinl(x)) < 1e-15L + 4e-17L * x, "sin %a is %a", x, s);
    }
}

TEST(powers_keep_their_bound)
{
    double worst = 0, moderate = 0, at_x = 0, at_y = 0;
    uint64_t seed = 2;
    for (int i = 0; i < 400000; i++) {
        double spread = random_unit(&seed) - 0.5;
        spread /= random_scaled(&seed, 20);
        bool near_1 = i % 4 == 0; /* here a large y amplifies an error in the logarithm most */
        double x = near_1 ? 1 + spread : random_scaled(&seed, 600) * 0x1p-300;
        double y = (i % 2 ? floor(2000 * random_unit(&seed)) - 1000 : 16 * random_unit(&seed) - 8);
        if (near_1)
            y *= 1000;
        long double want = powl(x, y);
        if (want > 1e300L || want < 1e-300L)
            continue;
        double e = (double)fabsl((co_pow(x, y) - want) / want);
        if (fabsl(logl(want)) < 20 && e > moderate)
            moderate = e;
        if (e > worst) {
            worst = e;
            at_x = x;
            at_y = y;
        }
    }
    test_note("co_pow: worst relative error %.3g at (%a, %a), %.3g while |y log x| < 20", worst, at_x, at_y,
              moderate);
    CHECK(worst <= 3e-14, "%g at (%a, %a)", worst, at_x, at_y);
    CHECK(moderate <= 1e-15, "%g while |y log x| < 20", moderate);
}

/* beta^t of Adam, gamma^epoch of a schedule */
TEST(powers_of_an_optimiser_are_right)
{
    CHECK(co_pow(0.9, 1) == 0.9, "%a", co_pow(0.9, 1));
    CHECK(co_pow(2, 10) == 1024, "%a", co_pow(2, 10));
    CHECK(co_pow(0.5, 1074) == 0x1p-1074, "%a", co_pow(0.5, 1074));
    for (int t = 1; t < 20000; t += 7) {
        double got = co_pow(0.999, t);
        CHECK(fabsl(got - powl(0.999, t)) <= 1e-15L * got, "0.999^%d is %.17g", t, got);
    }
}

TEST(special_values_are_those_of_annex_f)
{
    static const double edge[] = {0.0,    -0.0,    1,        -1,        0.5,    -0.5,    2,      -2,
                                  3,      -3,      1e300,    -1e300,    1e-300, -1e-300, 0x1p53, 0x1p53 + 2,
                                  0x1p64, -0x1p64, INFINITY, -INFINITY, NAN,    2.5,     -2.5,   5e-324};
    for (size_t i = 0; i < CO_COUNT(edge); i++) {
        double x = edge[i];
        CHECK(error_d(co_exp(x), (long double)exp(x)) <= 1, "exp %g is %g", x, co_exp(x));
        CHECK(error_d(co_log(x), (long double)log(x)) <= 1, "log %g is %g", x, co_log(x));
        for (size_t j = 0; j < CO_COUNT(edge); j++) {
            double got = co_pow(x, edge[j]), want = pow(x, edge[j]);
            CHECK(error_d(got, (long double)want) <= 2 && (isnan(got) || signbit(got) == signbit(want)),
                  "pow(%g, %g) is %g, not %g", x, edge[j], got, want);
        }
    }
    CHECK(co_expf(-104.0f) == 0 && co_expf(88.8f) == INFINITY && co_expf(0) == 1, "expf");
    CHECK(co_expf(88.72f) < INFINITY && co_expf(-103.9f) == 0x1p-149f, "expf at its edges");
    CHECK(co_expf(-INFINITY) == 0 && co_expf(INFINITY) == INFINITY && isnan(co_expf(NAN)), "expf");
    CHECK(signbit(co_tanhf(-0.0f)) && signbit(co_erff(-0.0f)) && signbit(co_sin(-0.0)), "minus zero");
    CHECK(co_tanhf(-INFINITY) == -1 && co_erff(-INFINITY) == -1 && isnan(co_erff(NAN)), "far out");
    CHECK(isnan(co_sin(INFINITY)) && isnan(co_cos(-INFINITY)) && isnan(co_cos(NAN)), "no wave there");
    CHECK(co_cos(0) == 1 && co_logf(1) == 0 && co_logf(0) == -INFINITY && isnan(co_logf(-1)), "exact ones");
}

TEST(a_thread_computes_with_denormals_and_to_nearest_after_fpu_init)
{
    volatile float tiny = 0x1p-126f, half = 0.5f, one = 1, small = 0x1p-25f;
#ifdef __SSE2__
    __builtin_ia32_ldmxcsr(0x1f80 | 0x8000 | 0x0040 | 0x4000); /* flush, denormals are zero, round up */
    CHECK(tiny * half == 0 && one + small > one, "the test itself does not work");
#endif
    co_fpu_init();
    CHECK(tiny * half == 0x1p-127f, "flushed to zero");
    CHECK(one + small == one, "not rounded to nearest");
    CHECK(fegetround() == FE_TONEAREST, "rounding mode %d", fegetround());
}

static void hash_float(co_sha256 *h, float (*fn)(float))
{
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 65521) {
        float x = float_of((uint32_t)bits), y = fn(x);
        if (!isnan(y)) /* the payload of a nan is not part of the contract */
            co_sha256_add(h, &y, sizeof y);
    }
}

static void hash_double(co_sha256 *h, double (*fn)(double), double lo, double hi)
{
    for (int i = 0; i <= 50000; i++) {
        double y = fn(lo + (hi - lo) * (i / 50000.0));
        co_sha256_add(h, &y, sizeof y);
    }
}

static double pow_of(double x)
{
    return co_pow(1.0 + x * x, 3.0 - x);
}

TEST(every_compiler_and_cpu_gives_these_bits)
{
    co_sha256 h;
    char hex[65];
    co_sha256_init(&h);
    hash_float(&h, co_expf);
    hash_float(&h, co_logf);
    hash_float(&h, co_erff);
    hash_float(&h, co_tanhf);
    hash_double(&h, co_exp, -746, 710);
    hash_double(&h, co_log, 1e-9, 1e3);
    hash_double(&h, co_sin, -1e4, 1e4);
    hash_double(&h, co_cos, -1e4, 1e4);
    hash_double(&h, pow_of, -30, 30);
    co_sha256_hex(&h, hex);
    CHECK(strcmp(hex, "958b6e451d07ed9a0103e40f98fb348eda93e20cf9ee6504d446d5d90e7965d2") == 0,
          "the bits changed: %s", hex);
}

TEST(an_exponential_costs_nanoseconds)
{
    enum { N = 1 << 20 };
    static float x[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 2000) * 0.01f - 10;
    const struct {
        const char *name;
        float (*fn)(float);
    } fns[] = {{"expf", co_expf}, {"logf", co_logf}, {"erff", co_erff}, {"tanhf", co_tanhf}};
    for (size_t f = 0; f < CO_COUNT(fns); f++) {
        volatile float sink = 0;
        uint64_t t0 = co_now_ns();
        for (int i = 0; i < N; i++)
            sink = fns[f].fn(x[i]);
        double ns = (double)(co_now_ns() - t0) / N;
        (void)sink;
        test_note("co_%s: %.1f ns a call", fns[f].name, ns);
        CHECK(ns < 2000, "co_%s takes %g ns", fns[f].name, ns);
    }
}
