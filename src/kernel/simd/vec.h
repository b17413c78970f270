/* vec.h -- the vector types over which every kernel of this folder is written once.
 *
 * A level names the instructions: SIMD_LEVEL is the suffix of every name that the linker sees (LEVEL(gemm_run)
 * is gemm_run_avx2), VW the floats in a vector, MR x NR the register tile of matrix products. Another level is
 * another branch here and another build of the same sources.
 *
 * Operators + - * / on `vf` are lane by lane; a product is fused with a sum only where v_fma says so.
 */
#ifndef CO_KERNEL_SIMD_VEC_H
#define CO_KERNEL_SIMD_VEC_H

#include <immintrin.h>
#include <stdint.h>

#define LEVEL_PASTE(name, level) name##_##level
#define LEVEL_NAME(name, level)  LEVEL_PASTE(name, level)
#define LEVEL(name)              LEVEL_NAME(name, SIMD_LEVEL)

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define SIMD_LEVEL avx2
enum { VW = 8, MR = 6, NR = 2 * VW };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256d vd;

ALWAYS_INLINE vf v_zero(void)
{
    return _mm256_setzero_ps();
}
ALWAYS_INLINE vf v_set(float x)
{
    return _mm256_set1_ps(x);
}
ALWAYS_INLINE vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
ALWAYS_INLINE void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
ALWAYS_INLINE vf v_fma(vf a, vf b, vf c) /* a * b + c, rounded once */
{
    return _mm256_fmadd_ps(a, b, c);
}
ALWAYS_INLINE vf v_max(vf a, vf b) /* b where either is nan */
{
    return _mm256_max_ps(a, b);
}
ALWAYS_INLINE vf v_min(vf a, vf b) /* b where either is nan */
{
    return _mm256_min_ps(a, b);
}
ALWAYS_INLINE vf v_abs(vf x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
ALWAYS_INLINE vf v_copysign(vf x, vf sign) /* x >= 0 */
{
    return _mm256_or_ps(x, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
ALWAYS_INLINE vf v_round(vf x) /* to nearest, ties to even */
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

ALWAYS_INLINE vi v_to_int(vf x) /* of whole numbers */
{
    return _mm256_cvtps_epi32(x);
}
ALWAYS_INLINE vf v_pow2(vi n) /* 2^n for -126 <= n <= 127 */
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* Masks are vectors of all-ones or all-zeros lanes. Comparisons with nan are false. */
ALWAYS_INLINE vf v_gt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
ALWAYS_INLINE vf v_ge(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GE_OQ);
}
ALWAYS_INLINE vf v_le(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
ALWAYS_INLINE vf v_pick(vf mask, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, mask);
}

/* The first n lanes (0 <= n <= VW); memory past them is not touched. Other lanes load as +0. */
ALWAYS_INLINE vi v_first(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
ALWAYS_INLINE vf v_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, v_first(n));
}
ALWAYS_INLINE void v_store_n(float *p, int64_t n, vf x)
{
    _mm256_maskstore_ps(p, v_first(n), x);
}

ALWAYS_INLINE vi vi_load(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
ALWAYS_INLINE vf v_gather(const float *p, vi offsets)
{
    return _mm256_i32gather_ps(p, offsets, 4);
}
ALWAYS_INLINE vf v_load_halves(const float *lo, const float *hi) /* VW/2 lanes from each */
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lo)), _mm_loadu_ps(hi), 1);
}

ALWAYS_INLINE float v_first_lane(vf x)
{
    return _mm256_cvtss_f32(x);
}
ALWAYS_INLINE float v_hmax(vf x)
{
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    h = _mm_max_ss(h, _mm_shuffle_ps(h, h, 1));
    return _mm_cvtss_f32(h);
}

/* Doubles, for sums: a vf is two vd, its low half and its high half. */
ALWAYS_INLINE vd vd_set(double x)
{
    return _mm256_set1_pd(x);
}
ALWAYS_INLINE vd vd_low(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
ALWAYS_INLINE vd vd_high(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
ALWAYS_INLINE vf v_of_halves(vd lo, vd hi) /* rounded */
{
    return _mm256_set_m128(_mm256_cvtpd_ps(hi), _mm256_cvtpd_ps(lo));
}
ALWAYS_INLINE vd vd_keep(vd x, int64_t n) /* the first n lanes, +0 elsewhere */
{
    vd lane = _mm256_setr_pd(0, 1, 2, 3);
    return _mm256_and_pd(x, _mm256_cmp_pd(lane, vd_set((double)n), _CMP_LT_OQ));
}
ALWAYS_INLINE double vd_sum(vd x) /* (0 + 2) + (1 + 3) */
{
    __m128d h = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(h, _mm_unpackhi_pd(h, h)));
}

/* r[i] lane j becomes r[j] lane i. */
ALWAYS_INLINE void v_transpose(vf r[8])
{
    vf a0 = _mm256_unpacklo_ps(r[0], r[1]), a1 = _mm256_unpackhi_ps(r[0], r[1]);
    vf a2 = _mm256_unpacklo_ps(r[2], r[3]), a3 = _mm256_unpackhi_ps(r[2], r[3]);
    vf a4 = _mm256_unpacklo_ps(r[4], r[5]), a5 = _mm256_unpackhi_ps(r[4], r[5]);
    vf a6 = _mm256_unpacklo_ps(r[6], r[7]), a7 = _mm256_unpackhi_ps(r[6], r[7]);
    vf b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
    vf b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
    vf b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
    vf b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
    r[0] = _mm256_permute2f128_ps(b0, b4, 0x20), r[4] = _mm256_permute2f128_ps(b0, b4, 0x31);
    r[1] = _mm256_permute2f128_ps(b1, b5, 0x20), r[5] = _mm256_permute2f128_ps(b1, b5, 0x31);
    r[2] = _mm256_permute2f128_ps(b2, b6, 0x20), r[6] = _mm256_permute2f128_ps(b2, b6, 0x31);
    r[3] = _mm256_permute2f128_ps(b3, b7, 0x20), r[7] = _mm256_permute2f128_ps(b3, b7, 0x31);
}

#endif
