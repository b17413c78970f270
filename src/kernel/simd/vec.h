/* vec.h -- the vector types of this folder. Every kernel is written once and compiled once per level.
 *
 * A level is a set of instructions. The Makefile sets SIMD_LEVEL, and vec_LEVEL.h has the types and functions
 * listed below. SIMD_LEVEL is also the suffix of every name that the linker sees: LEVEL(gemm_run) is
 * gemm_run_avx2. No other file of this folder uses intrinsics.
 *
 * No kernel's result depends on VW: an element of a product is one chain (gemm.h), a row is summed over 16
 * partial sums for every width (sums.h), and everything else computes lane by lane. So levels of different
 * widths give the same bits, as long as each function below gives the same lanes.
 *
 *   VW                        floats in a vector: 4, 8 or 16
 *   MR                        rows of a product's register tile, at most VW: 4, 6 or 12, a macro (gemm.c); NR = 2 * VW
 *                             columns
 *   vf, vi, vd                VW floats; VW words (uint32_t); VW / 2 doubles. Operators + - * / (on vi also
 *                             ^ and >>) work lane by lane. Only v_fma fuses a product with a sum.
 *
 *   v_zero v_set v_load v_store
 *   v_fma                     a * b + c, rounded once
 *   v_max v_min               b where either is nan
 *   v_abs v_copysign          v_copysign: of x >= 0
 *   v_round                   to nearest, ties to even
 *   v_to_int v_of_int         signed words; v_to_int of whole numbers
 *   v_gt v_ge v_le v_nan      masks: lanes of all ones or all zeros; false where either is nan (v_nan: true)
 *   v_either v_pick           of masks: or; pick(mask, yes, no)
 *   v_keep                    the first n lanes, +0 elsewhere; 0 <= n <= VW
 *   v_load_n v_store_n        the first n lanes, 0 <= n <= VW; no access past them; other lanes load as +0
 *   v_store_few               the same for n < VW or n = MR, by parts: masked stores are slow on some CPUs
 *   v_load_halves             VW / 2 floats from each of two places
 *   v_load_quarters           VW / 4 floats from each of four places
 *   v_load_pairs              p[at[0]], p[at[0] + 1], p[at[2]], p[at[2] + 1], ...
 *   v_load_even               p[0], p[2], ...: VW of them; memory past the last is not touched
 *   v_load_turned             out[k] = element at + k of each of VW rows, for k < n; n: VW, or VW / 2 if that is
 *                             at least 4
 *   v_zip                     a0 b0 a1 b1 ...: the first VW of them, the last VW
 *   v_split                   the even lanes, the odd lanes: VW / 2 each, the other lanes are arbitrary
 *   v_gather                  p[offset] for each lane of a vi
 *   v_first_lane v_hmax       lane 0; the largest lane
 *   vi_set vi_load vi_store
 *   vi_lanes                  0, 1, ... VW - 1
 *   vi_mul_wide               low and high words of the 64-bit products with a constant
 *   vi_turn4                  from u[j] lane b = word j of block b to all words of block 0, block 1, ...
 *   vd_set vd_sqrt
 *   vd_low vd_high            the halves of a vf, as doubles
 *   v_of_halves               the other way, rounded
 *   vd_keep                   the first n lanes, +0 elsewhere; n may be negative
 *   vd_sum16                  the sum of 16 doubles in 32 / VW vectors, in the order of sums.h
 *
 *   level_below               fills the table whose rows this level replaces
 */
#ifndef CO_KERNEL_SIMD_VEC_H
#define CO_KERNEL_SIMD_VEC_H

#include <stdint.h>

#ifndef SIMD_LEVEL
#error "src/kernel/simd is compiled once per level: the Makefile gives -DSIMD_LEVEL=NAME"
#endif

#define LEVEL_PASTE(name, level) name##_##level
#define LEVEL_NAME(name, level)  LEVEL_PASTE(name, level)
#define LEVEL(name)              LEVEL_NAME(name, SIMD_LEVEL)
#define LEVEL_QUOTE(file)        #file
#define LEVEL_FILE(name)         LEVEL_QUOTE(name.h)

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#include LEVEL_FILE(LEVEL(vec))

enum { NR = 2 * VW };
_Static_assert(MR <= VW && 16 % VW == 0, "tiles and sums need 16 to be a multiple of VW, and MR <= VW");

typedef int32_t vi_signed __attribute__((vector_size(4 * VW)));

ALWAYS_INLINE vi vi_half(vi x) /* of signed words, rounded down */
{
    return (vi)((vi_signed)x >> 1);
}
ALWAYS_INLINE vi vi_pick(vf mask, vi yes, vi no)
{
    return (vi)v_pick(mask, (vf)yes, (vf)no);
}
ALWAYS_INLINE vf v_pow2(vi n) /* 2^n for signed words -126 <= n <= 127 */
{
    return (vf)((n + vi_set(127)) << 23);
}

#endif
