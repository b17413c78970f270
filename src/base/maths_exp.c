/* maths_exp.c -- exponential, logarithm, and what is made of them: power and hyperbolic tangent.
 *
 *     exp  x = k ln 2 + r, |r| <= ln(2)/2; Taylor of e^r; k goes into the exponent bits
 *     log  x = 2^k (1 + f), 1 + f in [sqrt 1/2, sqrt 2); s = f / (2 + f); log(1 + f) = 2 atanh(s)
 *     pow  exp(y log x), with log and product carried as the sum of two doubles
 *     tanh (e - 1) / (e + 1) of e = exp(2x)
 *
 * ln 2 stands in two parts, the first of 32 bits, so that k times it is exact. The float versions compute in
 * double and round once, which makes them right but for ties within 2^-30. Costs, roughly: expf 10
 * multiply-adds, exp 15, log 12 and a division, tanhf an exp and a division.
 */
#include "base/maths.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define ROUND_MAGIC 0x1.8p52 /* adding and subtracting it rounds to the nearest whole number */
#define LOG2_E      0x1.71547652b82fep+0
#define LN2_HI      0x1.62e42fee00000p-1
#define LN2_LO      0x1.a39ef35793c76p-33
#define LN2         0x1.62e42fefa39efp-1

static uint64_t bits_of(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static double from_bits(uint64_t u)
{
    double x;

    memcpy(&x, &u, sizeof x);
    return x;
}

static double two_to(int k) /* -1022 <= k <= 1023 */
{
    return from_bits((uint64_t)(k + 1023) << 52);
}

/* |k| stays far inside a double's exponent range, so only the double operations and the final conversion to
 * float round. That conversion also produces infinities, zeros and denormals. */
float co_expf(float xf)
{
    double x = xf < -110.0f ? -110.0 : xf > 90.0f ? 90.0 : (double)xf;

    if (xf != xf)
        return xf;
    double k = (x * LOG2_E + ROUND_MAGIC) - ROUND_MAGIC;
    double r = x - k * LN2; /* Taylor to r^8: the next term is below 2^-32 */
    double p = 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return (float)(p * two_to((int)k));
}

double co_exp(double x)
{
    if (x != x)
        return x;
    if (x > 709.79)
        return INFINITY;
    if (x < -745.2)
        return 0.0;
    double k = (x * LOG2_E + ROUND_MAGIC) - ROUND_MAGIC;
    double hi = x - k * LN2_HI, lo = k * LN2_LO, r = hi - lo;
    double p = 1.0 / 6227020800.0; /* to r^13: the next term is below 2^-57 */
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    double e = 1.0 + (hi + (r * r * p - lo));
    int n = (int)k;
    if (n > 1000)
        return e * 0x1p1000 * two_to(n - 1000);
    if (n < -1000)
        return e * 0x1p-1000 * two_to(n + 1000); /* a denormal result is rounded here, once */
    return e * two_to(n);
}

/* log x as hi + lo, for x finite and above 0. lo is below an ulp of hi. */
static double log_parts(double x, double *lo)
{
    int k = 0;

    if (x < 0x1p-1022) {
        x *= 0x1p54;
        k = -54;
    }
    uint64_t u = bits_of(x);
    /* moves the boundary between exponents from 1 to sqrt 1/2 */
    uint64_t shifted = u - 0x3fe6a09e667f3bcdu;
    int64_t e = (int64_t)shifted >> 52;
    double f = from_bits(u - ((uint64_t)e << 52)) - 1.0; /* exact */
    double s = f / (2.0 + f), z = s * s, p = 2.0 / 23.0;
    p = p * z + 2.0 / 21.0;
    p = p * z + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
    /* 2s = f - s f, so log(1 + f) = f - s (f - z p): the large part f is exact, the rest small beside it */
    double rest = s * (f - z * p), kd = (double)(k + e);
    double big = kd * LN2_HI, sum = big + f, lost = (big - sum) + f;
    double small = lost + (kd * LN2_LO - rest), hi = sum + small;
    *lo = (sum - hi) + small;
    return hi;
}

double co_log(double x)
{
    double lo;

    if (x == 0)
        return -INFINITY;
    if (!(x > 0))
        return x != x ? x : NAN;
    if (x == INFINITY)
        return x;
    return log_parts(x, &lo);
}

float co_logf(float x)
{
    return (float)co_log(x);
}

float co_tanhf(float xf)
{
    double x = xf, a = fabs(x);

    if (a != a)
        return xf;
    if (a < 0x1p-10)
        return (float)(x * (1.0 - x * x * (1.0 / 3.0))); /* the next term is below 2^-42 */
    if (a > 10.0)
        return (float)copysign(1.0, x);
    double e = co_exp(2.0 * a);
    return (float)copysign((e - 1.0) / (e + 1.0), x);
}

/* a * b = product + *lost exactly, by splitting both into halves of 26 bits (Dekker 1971). */
static double multiply(double a, double b, double *lost)
{
    double p = a * b;
    double ca = 134217729.0 * a, ah = ca - (ca - a), al = a - ah;
    double cb = 134217729.0 * b, bh = cb - (cb - b), bl = b - bh;

    *lost = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    return p;
}

/* x above 0, not 1, finite; y finite, not 0 */
static double pow_positive(double x, double y)
{
    double log_lo, lost;

    if (fabs(y) > 0x1p64) /* |log x| is at least 2^-53 */
        return (x > 1) == (y > 0) ? INFINITY : 0.0;
    double log_hi = log_parts(x, &log_lo);
    double p = multiply(y, log_hi, &lost);
    if (fabs(p) > 800.0)
        return p > 0 ? INFINITY : 0.0;
    double rest = lost + y * log_lo, e = co_exp(p);
    return e + e * rest; /* e^rest is 1 + rest: |rest| is below 2^-42 */
}

double co_pow(double x, double y)
{
    double a = fabs(x);
    int small = fabs(y) < 0x1p53; /* every larger y is whole and even */
    int whole = !small || (double)(int64_t)y == y;
    int odd = small && whole && ((int64_t)y & 1);

    if (y == 0 || x == 1)
        return 1.0;
    if (x != x || y != y)
        return x + y;
    if (isinf(y))
        return a == 1 ? 1.0 : (a > 1) == (y > 0) ? INFINITY : 0.0;
    if (x < 0 && !whole && !isinf(x))
        return NAN;
    double v;
    if (a == 0 || isinf(a))
        v = (a == 0) == (y < 0) ? INFINITY : 0.0;
    else
        v = a == 1 ? 1.0 : pow_positive(a, y);
    return odd && signbit(x) ? -v : v;
}
