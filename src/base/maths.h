/* maths.h -- our own exp, log, cos, pow, erf, tanh: the same bits from every compiler on every CPU.
 *
 * glibc picks its versions by CPU, so nothing that enters the state may call libm (sqrt, fabs, floor and the
 * like are exact by IEEE 754 and compile to instructions; they are fine). Plain C, no FMA, no tables that
 * depend on anything. Errors below are the largest measured over the ranges named in tests/base/test_maths.c.
 */
#ifndef CO_BASE_MATHS_H
#define CO_BASE_MATHS_H

/* float in, float out. Special values follow C11 Annex F. The figure is the worst error; 0.5 ulp is
 * perfect. */
float co_expf(float x);  /* 0.51 ulp; 0 below -103.98, inf above 88.73; denormal results are as good */
float co_logf(float x);  /* 0.51 ulp; -inf at 0, nan below */
float co_erff(float x);  /* 0.51 ulp */
float co_tanhf(float x); /* 0.51 ulp */

/* double, for scalars of the optimiser and the schedule, and for Box-Muller */
double co_exp(double x); /* 0.9 ulp; denormal results 1 ulp */
double co_log(double x); /* 0.95 ulp */
double co_cos(double x); /* 0.8 ulp for |x| <= 1e5; then the absolute error grows as 4e-17 |x| */
double co_sin(double x); /* error as for co_cos */

/* Relative error 3e-14, and 1e-15 while |y log x| < 20. pow(x, 0) = 1; x < 0 needs a whole y. */
double co_pow(double x, double y);

/* Sets rounding to nearest, no flush to zero, no denormals-as-zero. Every thread that computes calls it
 * first. */
void co_fpu_init(void);

#endif
