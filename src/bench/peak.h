/* peak.h -- what this machine can do at most: multiply-adds in registers, and bytes from and to memory. */
#ifndef CO_BENCH_PEAK_H
#define CO_BENCH_PEAK_H

#include <stdint.h>

#include "base/err.h"

/* `loops` rounds of independent FMAs that touch nothing but registers; returns their floating-point operations, or 0 if
 * this CPU has no AVX2 and FMA. */
double co_peak_fma_loop(int64_t loops);

/* Both by the wall clock, the best of a few short rounds: a second at most. */
typedef struct co_peak {
    double flops_per_s; /* of one thread; 0: not known */
    double bytes_per_s; /* read and written by a copy that no cache holds */
} co_peak;
co_err co_peak_measure(co_peak *out);

#endif
