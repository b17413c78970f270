/* vec_avx2.h -- the vectors of vec.h for level `avx2`: 8 floats, AVX2 and FMA. */
#ifndef CO_KERNEL_SIMD_VEC_AVX2_H
#define CO_KERNEL_SIMD_VEC_AVX2_H

#include <immintrin.h>

enum { VW = 8 };
#define MR          6
#define level_below kernels_ref_fill
typedef __m256 vf;
typedef __m256d vd;
typedef uint32_t vi __attribute__((vector_size(32)));

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
ALWAYS_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
ALWAYS_INLINE vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
ALWAYS_INLINE vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
ALWAYS_INLINE vf v_abs(vf x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
ALWAYS_INLINE vf v_copysign(vf x, vf sign)
{
    return _mm256_or_ps(x, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
ALWAYS_INLINE vf v_round(vf x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Words and masks. */
ALWAYS_INLINE vi vi_set(uint32_t x)
{
    return (vi)_mm256_set1_epi32((int)x);
}
ALWAYS_INLINE vi vi_lanes(void)
{
    return (vi)_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}
ALWAYS_INLINE vi vi_load(const int32_t *p)
{
    return (vi)_mm256_loadu_si256((const __m256i *)(const void *)p);
}
ALWAYS_INLINE void vi_store(int32_t *p, vi x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, (__m256i)x);
}
ALWAYS_INLINE vi v_to_int(vf x)
{
    return (vi)_mm256_cvtps_epi32(x);
}
ALWAYS_INLINE vf v_of_int(vi x)
{
    return _mm256_cvtepi32_ps((__m256i)x);
}
ALWAYS_INLINE void vi_mul_wide(vi *lo, vi *hi, vi a, uint32_t by)
{
    __m256i m = _mm256_set1_epi32((int)by), x = (__m256i)a;
    __m256i even = _mm256_mul_epu32(x, m), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);
    *lo = (vi)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    *hi = (vi)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
ALWAYS_INLINE void vi_turn4(vi u[4])
{
    __m256i u0 = (__m256i)u[0], u1 = (__m256i)u[1], u2 = (__m256i)u[2], u3 = (__m256i)u[3];
    __m256i t0 = _mm256_unpacklo_epi32(u0, u1), t1 = _mm256_unpackhi_epi32(u0, u1);
    __m256i t2 = _mm256_unpacklo_epi32(u2, u3), t3 = _mm256_unpackhi_epi32(u2, u3);
    __m256i a = _mm256_unpacklo_epi64(t0, t2), b = _mm256_unpackhi_epi64(t0, t2);
    __m256i c = _mm256_unpacklo_epi64(t1, t3), d = _mm256_unpackhi_epi64(t1, t3);
    u[0] = (vi)_mm256_permute2x128_si256(a, b, 0x20), u[2] = (vi)_mm256_permute2x128_si256(a, b, 0x31);
    u[1] = (vi)_mm256_permute2x128_si256(c, d, 0x20), u[3] = (vi)_mm256_permute2x128_si256(c, d, 0x31);
}

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
ALWAYS_INLINE vf v_either(vf a, vf b)
{
    return _mm256_or_ps(a, b);
}
ALWAYS_INLINE vf v_pick(vf mask, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, mask);
}

/* Parts of a vector. */
ALWAYS_INLINE __m256i first_lanes(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), (__m256i)vi_lanes());
}
ALWAYS_INLINE vf v_keep(vf x, int64_t n)
{
    return _mm256_and_ps(x, _mm256_castsi256_ps(first_lanes(n)));
}
ALWAYS_INLINE vf v_load_n(const float *p, int64_t n)
{
    return n == VW ? v_load(p) : _mm256_maskload_ps(p, first_lanes(n));
}
ALWAYS_INLINE void v_store_n(float *p, int64_t n, vf x)
{
    if (n == VW) /* masked stores are slow on some CPUs */
        v_store(p, x);
    else
        _mm256_maskstore_ps(p, first_lanes(n), x);
}
ALWAYS_INLINE void v_store_few(float *p, int64_t n, vf x)
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

ALWAYS_INLINE vf v_gather(const float *p, vi offsets)
{
    return _mm256_i32gather_ps(p, (__m256i)offsets, 4);
}
ALWAYS_INLINE vf v_load_halves(const float *lo, const float *hi)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lo)), _mm_loadu_ps(hi), 1);
}

ALWAYS_INLINE vf v_load_quarters(const float *p0, const float *p1, const float *p2, const float *p3)
{
    __m128 lo = _mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)p0);
    __m128 hi = _mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)p2);
    lo = _mm_loadh_pi(lo, (const __m64 *)(const void *)p1);
    hi = _mm_loadh_pi(hi, (const __m64 *)(const void *)p3);
    return _mm256_insertf128_ps(_mm256_castps128_ps256(lo), hi, 1);
}
ALWAYS_INLINE vf v_load_pairs(const float *p, const int32_t at[VW])
{
    return v_load_quarters(p + at[0], p + at[2], p + at[4], p + at[6]);
}

ALWAYS_INLINE vf v_load_even(const float *p)
{
    /* 02 8A 46 CE */
    __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(v_load(p), v_load(p + VW - 1), 0xd8));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
}

ALWAYS_INLINE void v_zip(vf *lo, vf *hi, vf a, vf b)
{
    vf l = _mm256_unpacklo_ps(a, b), h = _mm256_unpackhi_ps(a, b);
    *lo = _mm256_permute2f128_ps(l, h, 0x20), *hi = _mm256_permute2f128_ps(l, h, 0x31);
}

ALWAYS_INLINE void v_split(vf *even, vf *odd, vf x)
{
    *even = _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    *odd = _mm256_castps128_ps256(_mm256_extractf128_ps(*even, 1));
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

/* Doubles. */
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
ALWAYS_INLINE vf v_of_halves(vd lo, vd hi)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(hi), _mm256_cvtpd_ps(lo));
}
ALWAYS_INLINE vd vd_sqrt(vd x)
{
    return _mm256_sqrt_pd(x);
}
ALWAYS_INLINE vd vd_keep(vd x, int64_t n)
{
    vd lane = _mm256_setr_pd(0, 1, 2, 3);
    return _mm256_and_pd(x, _mm256_cmp_pd(lane, vd_set((double)n), _CMP_LT_OQ));
}
ALWAYS_INLINE double vd_sum16(const vd s[4])
{
    vd x = (s[0] + s[2]) + (s[1] + s[3]);
    __m128d h = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(h, _mm_unpackhi_pd(h, h)));
}

ALWAYS_INLINE void v_load_turned(vf *out, const float *const row[VW], int64_t at, int n)
{
    UNROLL for (int h = 0; h < n; h += 4)
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
