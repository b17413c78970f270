/* vec_avx512.h -- the vectors of vec.h for level `avx512`: 16 floats; AVX-512 F, DQ, BW and VL. It gives the bits of
 * `avx2`. Its masks are vectors, as vec.h has them; compilers turn them back into mask registers. */
#ifndef CO_KERNEL_SIMD_VEC_AVX512_H
#define CO_KERNEL_SIMD_VEC_AVX512_H

#include <immintrin.h>

enum { VW = 16 };
#define MR          12
#define level_below kernels_fill_avx2
typedef __m512 vf;
typedef __m512d vd;
typedef uint32_t vi __attribute__((vector_size(64)));

ALWAYS_INLINE vf v_zero(void)
{
    return _mm512_setzero_ps();
}
ALWAYS_INLINE vf v_set(float x)
{
    return _mm512_set1_ps(x);
}
ALWAYS_INLINE vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
ALWAYS_INLINE void v_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
ALWAYS_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
ALWAYS_INLINE vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
ALWAYS_INLINE vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
ALWAYS_INLINE vf v_abs(vf x)
{
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x);
}
ALWAYS_INLINE vf v_copysign(vf x, vf sign)
{
    return _mm512_or_ps(x, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}
ALWAYS_INLINE vf v_round(vf x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Words and masks. */
ALWAYS_INLINE vi vi_set(uint32_t x)
{
    return (vi)_mm512_set1_epi32((int)x);
}
ALWAYS_INLINE vi vi_lanes(void)
{
    return (vi)_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
ALWAYS_INLINE vi vi_load(const int32_t *p)
{
    return (vi)_mm512_loadu_si512(p);
}
ALWAYS_INLINE void vi_store(int32_t *p, vi x)
{
    _mm512_storeu_si512(p, (__m512i)x);
}
ALWAYS_INLINE vi v_to_int(vf x)
{
    return (vi)_mm512_cvtps_epi32(x);
}
ALWAYS_INLINE vf v_of_int(vi x)
{
    return _mm512_cvtepi32_ps((__m512i)x);
}
ALWAYS_INLINE void vi_mul_wide(vi *lo, vi *hi, vi a, uint32_t by)
{
    __m512i m = _mm512_set1_epi32((int)by), x = (__m512i)a;
    __m512i even = _mm512_mul_epu32(x, m), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), m);
    *lo = (vi)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    *hi = (vi)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}
ALWAYS_INLINE void vi_turn4(vi u[4])
{
    __m512i u0 = (__m512i)u[0], u1 = (__m512i)u[1], u2 = (__m512i)u[2], u3 = (__m512i)u[3];
    __m512i t0 = _mm512_unpacklo_epi32(u0, u1), t1 = _mm512_unpackhi_epi32(u0, u1);
    __m512i t2 = _mm512_unpacklo_epi32(u2, u3), t3 = _mm512_unpackhi_epi32(u2, u3);
    /* Quarter q of a, b, c, d: blocks 4q, 4q + 1, 4q + 2, 4q + 3. */
    __m512i a = _mm512_unpacklo_epi64(t0, t2), b = _mm512_unpackhi_epi64(t0, t2);
    __m512i c = _mm512_unpacklo_epi64(t1, t3), d = _mm512_unpackhi_epi64(t1, t3);
    __m512i ab0 = _mm512_shuffle_i32x4(a, b, 0x44), ab2 = _mm512_shuffle_i32x4(a, b, 0xee);
    __m512i cd0 = _mm512_shuffle_i32x4(c, d, 0x44), cd2 = _mm512_shuffle_i32x4(c, d, 0xee);
    u[0] = (vi)_mm512_shuffle_i32x4(ab0, cd0, 0x88), u[1] = (vi)_mm512_shuffle_i32x4(ab0, cd0, 0xdd);
    u[2] = (vi)_mm512_shuffle_i32x4(ab2, cd2, 0x88), u[3] = (vi)_mm512_shuffle_i32x4(ab2, cd2, 0xdd);
}

ALWAYS_INLINE vf lanes_of_mask(__mmask16 m)
{
    return _mm512_castsi512_ps(_mm512_movm_epi32(m));
}
ALWAYS_INLINE vf v_gt(vf a, vf b)
{
    return lanes_of_mask(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ));
}
ALWAYS_INLINE vf v_ge(vf a, vf b)
{
    return lanes_of_mask(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ));
}
ALWAYS_INLINE vf v_le(vf a, vf b)
{
    return lanes_of_mask(_mm512_cmp_ps_mask(a, b, _CMP_LE_OQ));
}
ALWAYS_INLINE vf v_nan(vf x)
{
    return lanes_of_mask(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q));
}
ALWAYS_INLINE vf v_either(vf a, vf b)
{
    return _mm512_or_ps(a, b);
}
ALWAYS_INLINE vf v_pick(vf mask, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(mask)), no, yes);
}

/* Parts of a vector. */
ALWAYS_INLINE __mmask16 first_lanes(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}
ALWAYS_INLINE vf v_keep(vf x, int64_t n)
{
    return _mm512_maskz_mov_ps(first_lanes(n), x);
}
ALWAYS_INLINE vf v_load_n(const float *p, int64_t n)
{
    return n == VW ? v_load(p) : _mm512_maskz_loadu_ps(first_lanes(n), p);
}
ALWAYS_INLINE void v_store_n(float *p, int64_t n, vf x)
{
    if (n == VW)
        v_store(p, x);
    else
        _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
ALWAYS_INLINE void v_store_few(float *p, int64_t n, vf x)
{
    __m256 h = _mm512_castps512_ps256(x);
    __m128 q;
    if (n & 8) {
        _mm256_storeu_ps(p, h);
        h = _mm512_extractf32x8_ps(x, 1);
        p += 8;
    }
    q = _mm256_castps256_ps128(h);
    if (n & 4) {
        _mm_storeu_ps(p, q);
        q = _mm256_extractf128_ps(h, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, q);
        q = _mm_movehl_ps(q, q);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, q);
}

ALWAYS_INLINE vf v_gather(const float *p, vi offsets)
{
    return _mm512_i32gather_ps((__m512i)offsets, p, 4);
}
ALWAYS_INLINE vf v_load_halves(const float *lo, const float *hi)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(lo)), _mm256_loadu_ps(hi), 1);
}
ALWAYS_INLINE vf v_load_quarters(const float *p0, const float *p1, const float *p2, const float *p3)
{
    __m256 lo = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p0)), _mm_loadu_ps(p1), 1);
    __m256 hi = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p2)), _mm_loadu_ps(p3), 1);
    return _mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1);
}

ALWAYS_INLINE vf v_load_pairs(const float *p, const int32_t at[VW])
{
    __m128 q[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        q[i] = _mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)(p + at[4 * i]));
        q[i] = _mm_loadh_pi(q[i], (const __m64 *)(const void *)(p + at[4 * i + 2]));
    }
    __m256 lo = _mm256_insertf128_ps(_mm256_castps128_ps256(q[0]), q[1], 1);
    __m256 hi = _mm256_insertf128_ps(_mm256_castps128_ps256(q[2]), q[3], 1);
    return _mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1);
}

ALWAYS_INLINE vf v_load_even(const float *p)
{
    __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(v_load(p), at, v_load(p + VW - 1));
}

ALWAYS_INLINE void v_zip(vf *lo, vf *hi, vf a, vf b)
{
    __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    *lo = _mm512_permutex2var_ps(a, low, b), *hi = _mm512_permutex2var_ps(a, high, b);
}

ALWAYS_INLINE void v_split(vf *even, vf *odd, vf x)
{
    __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    *even = _mm512_permutexvar_ps(at, x);
    *odd = _mm512_castps256_ps512(_mm512_extractf32x8_ps(*even, 1));
}

ALWAYS_INLINE float v_first_lane(vf x)
{
    return _mm512_cvtss_f32(x);
}
ALWAYS_INLINE float v_hmax(vf x)
{
    __m256 half = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    h = _mm_max_ss(h, _mm_shuffle_ps(h, h, 1));
    return _mm_cvtss_f32(h);
}

/* Doubles. */
ALWAYS_INLINE vd vd_set(double x)
{
    return _mm512_set1_pd(x);
}
ALWAYS_INLINE vd vd_low(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
ALWAYS_INLINE vd vd_high(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}
ALWAYS_INLINE vf v_of_halves(vd lo, vd hi)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(lo)), _mm512_cvtpd_ps(hi), 1);
}
ALWAYS_INLINE vd vd_sqrt(vd x)
{
    return _mm512_sqrt_pd(x);
}
ALWAYS_INLINE vd vd_keep(vd x, int64_t n)
{
    __mmask8 first = n <= 0 ? 0 : n >= 8 ? 0xff : (__mmask8)((1u << n) - 1);
    return _mm512_maskz_mov_pd(first, x);
}
ALWAYS_INLINE double vd_sum16(const vd s[2])
{
    vd eight = s[0] + s[1];
    __m256d x = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d h = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(h, _mm_unpackhi_pd(h, h)));
}

ALWAYS_INLINE void v_load_turned(vf *out, const float *const row[VW], int64_t at, int n)
{
    UNROLL for (int h = 0; h < n; h += 4)
    {
        vf r[4];
        UNROLL for (int j = 0; j < 4; j++)
        {
            const float *const *of = row + j;
            r[j] = v_load_quarters(of[0] + at + h, of[4] + at + h, of[8] + at + h, of[12] + at + h);
        }
        vf a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]);
        vf c = _mm512_unpacklo_ps(r[2], r[3]), d = _mm512_unpackhi_ps(r[2], r[3]);
        out[h] = _mm512_shuffle_ps(a, c, 0x44), out[h + 1] = _mm512_shuffle_ps(a, c, 0xee);
        out[h + 2] = _mm512_shuffle_ps(b, d, 0x44), out[h + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
}

#endif
