/* maths_trig.c -- sine and cosine of a double.
 *
 * x = k pi/2 + r with |r| <= pi/4, r kept as the sum of two doubles; then one of two Taylor polynomials,
 * chosen by k mod 4. pi/2 stands in three parts, the first two of 33 bits, so that k times a part is exact
 * for k below 2^20, that is for |x| <= 1e5 and beyond.
 *
 * Larger arguments are first reduced by fmod (exact) with the double nearest to 2 pi; the absolute error then
 * grows as 4e-17 |x|.
 */
#include "base/maths.h"

#include <math.h>
#include <stdint.h>

#define ROUND_MAGIC 0x1.8p52 /* adding and subtracting it rounds to the nearest whole number */
#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define HALF_PI_1   0x1.921fb54400000p+0
#define HALF_PI_2   0x1.0b4611a600000p-34
#define HALF_PI_3   0x1.3198a2e037073p-69
#define TWO_PI      0x1.921fb54442d18p+2
#define EXACT_UP_TO 1e6

/* sin(r + lo); the Taylor series to r^17, whose next term is below 1e-19 of the result */
static double sin_near_0(double r, double lo)
{
    double z = r * r, p = 1.0 / 355687428096000.0;

    p = p * z - 1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return r + (r * z * p + lo * (1.0 - 0.5 * z));
}

/* cos(r + lo); to r^18. 1 - z/2 is rounded once, and what the rounding lost is added back. */
static double cos_near_0(double r, double lo)
{
    double z = r * r, p = -1.0 / 6402373705728000.0;

    p = p * z + 1.0 / 20922789888000.0;
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    double half = 0.5 * z, w = 1.0 - half;
    return w + (((1.0 - w) - half) + (z * z * p - r * lo));
}

/* Reduces a finite x to r + lo as the file's head describes; returns k mod 4 in 0..3. */
static unsigned reduce(double x, double *r, double *lo)
{
    if (fabs(x) > EXACT_UP_TO)
        x = fmod(x, TWO_PI);
    double k = (x * TWO_OVER_PI + ROUND_MAGIC) - ROUND_MAGIC;
    double a = x - k * HALF_PI_1, b = k * HALF_PI_2, c = k * HALF_PI_3;
    double hi = a - b, lost = (a - hi) - b; /* a is far larger than b, or both are small and exact */
    *r = hi + (lost - c);
    *lo = (hi - *r) + (lost - c);
    return (unsigned)(int64_t)k & 3u;
}

/* sin(x + quarter pi/2) */
static double wave(double x, unsigned quarter)
{
    double r, lo;

    if (!isfinite(x))
        return x - x; /* nan */
    quarter += reduce(x, &r, &lo);
    double v = quarter & 1u ? cos_near_0(r, lo) : sin_near_0(r, lo);
    return quarter & 2u ? -v : v;
}

double co_sin(double x)
{
    return x == 0 ? x : wave(x, 0); /* keeps the sign of zero */
}

double co_cos(double x)
{
    return wave(x, 1);
}
