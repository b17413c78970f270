/* maths.h -- our own exp, log, cos, pow, erf, tanh: the same bits from every compiler on every CPU.
 *
 * glibc picks its versions by CPU, so nothing that enters the state may call libm (sqrt, fabs, floor and the
 * like are exact by IEEE 754 and compile to instructions; they are fine). Plain C, no FMA, no tables that
 * depend on anything. Errors below are the largest measured over the ranges named in tests/base/test_maths.c.
 */
#ifndef CO_BASE_MATHS_H
#define CO_BASE_MATHS_H

/* float in, float out. Special values as C11 Annex F. Worst error in units in the last place. */
float co_expf(float x);  /* 1 ulp; 0 below -103.98, inf above 88.73; denormal results right to 1 ulp */
float co_logf(float x);  /* 1 ulp; -inf at 0, nan below */
float co_erff(float x);  /* 2 ulp */
float co_tanhf(float x); /* 2 ulp */

/* double, for scalars of the optimiser and the schedule, and for Box-Muller */
double co_exp(double x); /* 2 ulp */
double co_log(double x); /* 2 ulp */
double co_cos(double x); /* 2 ulp for |x| <= 1e5 */
double co_sin(double x);
double
co_pow(double x,
       double y); /* relative error 1e-13 for x > 0; pow(x, 0) = 1; integer y of up to 2^31 exact in sign */

/* Rounding to nearest, no flush to zero, no denormals-as-zero: called first in every thread that computes. */
void co_fpu_init(void);

#endif
