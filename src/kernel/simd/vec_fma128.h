/* vec_fma128.h -- the vectors of vec.h for level `fma128`: 4 floats, AVX and FMA without AVX2. It serves CPUs
 * without AVX2 (AMD from Piledriver to Steamroller, virtual machines that hide AVX2). Because it gives the
 * bits of `avx2`, it also checks on any CPU that no kernel depends on the width. */
#ifndef CO_KERNEL_SIMD_VEC_FMA128_H
#define CO_KERNEL_SIMD_VEC_FMA128_H

#include <immintrin.h>

enum { VW = 4 };
#define MR          4
#define level_below kernels_ref_fill
typedef __m128 vf;
typedef __m128d vd;
typedef uint32_t vi __attribute__((vector_size(16)));

ALWAYS_INLINE vf v_zero(void)
{
    return _mm_setzero_ps();
}
ALWAYS_INLINE vf v_set(float x)
{
    return _mm_set1_ps(x);
}
ALWAYS_INLINE vf v_load(const float *p)
{
    return _mm_loadu_ps(p);
}
ALWAYS_INLINE void v_store(float *p, vf x)
{
    _mm_storeu_ps(p, x);
}
ALWAYS_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm_fmadd_ps(a, b, c);
}
ALWAYS_INLINE vf v_max(vf a, vf b)
{
    return _mm_max_ps(a, b);
}
ALWAYS_INLINE vf v_min(vf a, vf b)
{
    return _mm_min_ps(a, b);
}
ALWAYS_INLINE vf v_abs(vf x)
{
    return _mm_andnot_ps(_mm_set1_ps(-0.0f), x);
}
ALWAYS_INLINE vf v_copysign(vf x, vf sign)
{
    return _mm_or_ps(x, _mm_and_ps(_mm_set1_ps(-0.0f), sign));
}
ALWAYS_INLINE vf v_round(vf x)
{
    return _mm_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Words and masks. */
ALWAYS_INLINE vi vi_set(uint32_t x)
{
    return (vi)_mm_set1_epi32((int)x);
}
ALWAYS_INLINE vi vi_lanes(void)
{
    return (vi)_mm_setr_epi32(0, 1, 2, 3);
}
ALWAYS_INLINE vi vi_load(const int32_t *p)
{
    return (vi)_mm_loadu_si128((const __m128i *)(const void *)p);
}
ALWAYS_INLINE void vi_store(int32_t *p, vi x)
{
    _mm_storeu_si128((__m128i *)(void *)p, (__m128i)x);
}
ALWAYS_INLINE vi v_to_int(vf x)
{
    return (vi)_mm_cvtps_epi32(x);
}
ALWAYS_INLINE vf v_of_int(vi x)
{
    return _mm_cvtepi32_ps((__m128i)x);
}
ALWAYS_INLINE void vi_mul_wide(vi *lo, vi *hi, vi a, uint32_t by)
{
    __m128i m = _mm_set1_epi32((int)by), x = (__m128i)a;
    __m128i even = _mm_mul_epu32(x, m), odd = _mm_mul_epu32(_mm_srli_epi64(x, 32), m);
    *lo = (vi)_mm_blend_epi16(even, _mm_slli_epi64(odd, 32), 0xcc);
    *hi = (vi)_mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xcc);
}
ALWAYS_INLINE void vi_turn4(vi u[4])
{
    vf r0 = (vf)u[0], r1 = (vf)u[1], r2 = (vf)u[2], r3 = (vf)u[3];
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    u[0] = (vi)r0, u[1] = (vi)r1, u[2] = (vi)r2, u[3] = (vi)r3;
}

ALWAYS_INLINE vf v_gt(vf a, vf b)
{
    return _mm_cmp_ps(a, b, _CMP_GT_OQ);
}
ALWAYS_INLINE vf v_ge(vf a, vf b)
{
    return _mm_cmp_ps(a, b, _CMP_GE_OQ);
}
ALWAYS_INLINE vf v_le(vf a, vf b)
{
    return _mm_cmp_ps(a, b, _CMP_LE_OQ);
}
ALWAYS_INLINE vf v_nan(vf x)
{
    return _mm_cmp_ps(x, x, _CMP_UNORD_Q);
}
ALWAYS_INLINE vf v_either(vf a, vf b)
{
    return _mm_or_ps(a, b);
}
ALWAYS_INLINE vf v_pick(vf mask, vf yes, vf no)
{
    return _mm_blendv_ps(no, yes, mask);
}

/* Parts of a vector. */
ALWAYS_INLINE __m128i first_lanes(int64_t n)
{
    return _mm_cmpgt_epi32(_mm_set1_epi32((int)n), (__m128i)vi_lanes());
}
ALWAYS_INLINE vf v_keep(vf x, int64_t n)
{
    return _mm_and_ps(x, _mm_castsi128_ps(first_lanes(n)));
}
ALWAYS_INLINE vf v_load_n(const float *p, int64_t n)
{
    return n == VW ? v_load(p) : _mm_maskload_ps(p, first_lanes(n));
}
ALWAYS_INLINE void v_store_few(float *p, int64_t n, vf x)
{
    if (n == VW) {
        v_store(p, x);
        return;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, x);
        x = _mm_movehl_ps(x, x);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, x);
}
ALWAYS_INLINE void v_store_n(float *p, int64_t n, vf x)
{
    v_store_few(p, n, x);
}

ALWAYS_INLINE vf v_gather(const float *p, vi offsets)
{
    return _mm_setr_ps(p[(int32_t)offsets[0]], p[(int32_t)offsets[1]], p[(int32_t)offsets[2]],
                       p[(int32_t)offsets[3]]);
}
ALWAYS_INLINE vf v_load_halves(const float *lo, const float *hi)
{
    vf low = _mm_loadl_pi(v_zero(), (const __m64 *)(const void *)lo);
    return _mm_loadh_pi(low, (const __m64 *)(const void *)hi);
}
ALWAYS_INLINE vf v_load_quarters(const float *p0, const float *p1, const float *p2, const float *p3)
{
    return _mm_setr_ps(*p0, *p1, *p2, *p3);
}
ALWAYS_INLINE vf v_load_pairs(const float *p, const int32_t at[VW])
{
    return v_load_halves(p + at[0], p + at[2]);
}
ALWAYS_INLINE vf v_load_even(const float *p)
{
    return _mm_shuffle_ps(v_load(p), v_load(p + VW - 1), 0xd8);
}
ALWAYS_INLINE void v_load_turned(vf *out, const float *const row[VW], int64_t at, int n)
{
    (void)n;
    vf r0 = v_load(row[0] + at), r1 = v_load(row[1] + at), r2 = v_load(row[2] + at), r3 = v_load(row[3] + at);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    out[0] = r0, out[1] = r1, out[2] = r2, out[3] = r3;
}

ALWAYS_INLINE void v_zip(vf *lo, vf *hi, vf a, vf b)
{
    *lo = _mm_unpacklo_ps(a, b), *hi = _mm_unpackhi_ps(a, b);
}

ALWAYS_INLINE void v_split(vf *even, vf *odd, vf x)
{
    *even = _mm_shuffle_ps(x, x, 0xd8); /* 0 2 1 3 */
    *odd = _mm_movehl_ps(*even, *even);
}

ALWAYS_INLINE float v_first_lane(vf x)
{
    return _mm_cvtss_f32(x);
}
ALWAYS_INLINE float v_hmax(vf x)
{
    vf h = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_shuffle_ps(h, h, 1)));
}

/* Doubles. */
ALWAYS_INLINE vd vd_set(double x)
{
    return _mm_set1_pd(x);
}
ALWAYS_INLINE vd vd_low(vf x)
{
    return _mm_cvtps_pd(x);
}
ALWAYS_INLINE vd vd_high(vf x)
{
    return _mm_cvtps_pd(_mm_movehl_ps(x, x));
}
ALWAYS_INLINE vf v_of_halves(vd lo, vd hi)
{
    return _mm_movelh_ps(_mm_cvtpd_ps(lo), _mm_cvtpd_ps(hi));
}
ALWAYS_INLINE vd vd_sqrt(vd x)
{
    return _mm_sqrt_pd(x);
}
ALWAYS_INLINE vd vd_keep(vd x, int64_t n)
{
    return _mm_and_pd(x, _mm_cmp_pd(_mm_setr_pd(0, 1), vd_set((double)n), _CMP_LT_OQ));
}
ALWAYS_INLINE double vd_sum16(const vd s[8])
{
    vd low = (s[0] + s[4]) + (s[2] + s[6]), high = (s[1] + s[5]) + (s[3] + s[7]); /* sums 0, 1; sums 2, 3 */
    vd x = low + high;
    return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
}

#endif
