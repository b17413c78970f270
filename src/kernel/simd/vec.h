/* vec.h -- the vector types over which every kernel of this folder is written once.
 *
 * A level names the instructions: SIMD_LEVEL is the suffix of every name that the linker sees
 * (LEVEL(gemm_run) is gemm_run_avx2), VW the floats in a vector, MR x NR the register tile of matrix
 * products. Another level is another branch here and another build of the same sources.
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
ALWAYS_INLINE vf v_nan(vf x)
{
    return _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
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
    return n == VW ? v_load(p) : _mm256_maskload_ps(p, v_first(n));
}
ALWAYS_INLINE void v_store_n(float *p, int64_t n, vf x)
{
    if (n == VW) /* masked stores are slow on some CPUs */
        v_store(p, x);
    else
        _mm256_maskstore_ps(p, v_first(n), x);
}
ALWAYS_INLINE void v_store_few(float *p, int64_t n, vf x) /* the same for n < VW, by parts */
{
    __m128 h = _mm256_castps256_ps128(x);
    if (n & 4) {
        _mm_storeu_ps(p, h);
        h = _mm256_extractf128_ps(x, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, h);
        h = _mm_movehl_ps(h, h);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, h);
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
ALWAYS_INLINE vd vd_sqrt(vd x)
{
    return _mm256_sqrt_pd(x);
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

/* Eight rows of eight, turned: out[k] holds element k of rows row[0] + at .. row[7] + at. */
ALWAYS_INLINE void v_load_turned(vf out[8], const float *const row[8], int64_t at)
{
    UNROLL for (int h = 0; h < 8; h += 4)
    {
        vf r0 = v_load_halves(row[0] + at + h, row[4] + at + h),
           r1 = v_load_halves(row[1] + at + h, row[5] + at + h);
        vf r2 = v_load_halves(row[2] + at + h, row[6] + at + h),
           r3 = v_load_halves(row[3] + at + h, row[7] + at + h);
        vf a = _mm256_unpacklo_ps(r0, r1), b = _mm256_unpackhi_ps(r0, r1);
        vf c = _mm256_unpacklo_ps(r2, r3), d = _mm256_unpackhi_ps(r2, r3);
        out[h] = _mm256_shuffle_ps(a, c, 0x44), out[h + 1] = _mm256_shuffle_ps(a, c, 0xee);
        out[h + 2] = _mm256_shuffle_ps(b, d, 0x44), out[h + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
}

#endif
