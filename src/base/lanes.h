/* lanes.h -- loops over floats outside src/kernel/ that use wider vectors where the CPU has them.
 *
 * The program is compiled for any x86-64, whose vectors have four floats. A loop that computes lane by lane gives the
 * same bits with vectors of eight, so it is written once and compiled twice:
 *
 *     static inline CO_INLINE void scale(float *x, size_t n) { ... }
 *     static void scale_any(float *x, size_t n) { scale(x, n); }
 *     static CO_AVX2 void scale_avx2(float *x, size_t n) { scale(x, n); }
 *     ...
 *     (co_has_avx2() ? scale_avx2 : scale_any)(x, n);
 *
 * CO_AVX2 does not allow FMA: a product and a sum are rounded one after the other, as everywhere.
 */
#ifndef CO_BASE_LANES_H
#define CO_BASE_LANES_H

#include <stdbool.h>

#define CO_INLINE __attribute__((always_inline))
#define CO_AVX2   __attribute__((target("avx2")))

static inline bool co_has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

#endif
