/* resize_wide.c -- the passes of a resize with AVX2, whatever the rest of the program is compiled for.
 *
 * A pixel of colour fills three of four lanes; columns go eight bytes at a time. Sums of whole numbers: the
 * bits are those of resize.c.
 */
#include "data/augment/resize_int.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define WIDE __attribute__((target("avx2")))

WIDE static void row_of_colour(uint8_t *out, const uint8_t *in, uint32_t width, const taps *t)
{
    const int32_t *w = t->weight;

    for (uint32_t x = 0; x < width; x++, w += t->most, out += 3) {
        const uint8_t *from = in + (size_t)t->first[x] * 3;
        __m128i sum = _mm_set1_epi32(TAP_HALF);
        for (int32_t i = 0; i < t->n[x]; i++, from += 3) {
            int32_t pixel;
            memcpy(&pixel, from, sizeof pixel);
            __m128i rgb = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(pixel));
            sum = _mm_add_epi32(sum, _mm_mullo_epi32(rgb, _mm_set1_epi32(w[i])));
        }
        sum = _mm_srai_epi32(sum, TAP_BITS);
        sum = _mm_packus_epi16(_mm_packs_epi32(sum, sum), sum);
        int32_t pixel = _mm_cvtsi128_si32(sum);
        memcpy(out, &pixel, sizeof pixel);
    }
}

WIDE static void columns(uint8_t *out, const uint8_t *in, size_t stride, size_t len, const int32_t *weight,
                         int32_t n)
{
    size_t at = 0;

    for (; at + 8 <= len; at += 8) {
        __m256i sum = _mm256_set1_epi32(TAP_HALF);
        const uint8_t *from = in + at;
        for (int32_t i = 0; i < n; i++, from += stride) {
            __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
            sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(bytes, _mm256_set1_epi32(weight[i])));
        }
        sum = _mm256_srai_epi32(sum, TAP_BITS);
        __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        _mm_storel_epi64((__m128i *)(void *)(out + at), _mm_packus_epi16(half, half));
    }
    if (at < len)
        resize_plain.columns(out + at, in + at, stride, len - at, weight, n);
}

const resize_passes *resize_wide(void)
{
    static const resize_passes passes = {row_of_colour, columns};

    return __builtin_cpu_supports("avx2") ? &passes : NULL;
}
#else
const resize_passes *resize_wide(void)
{
    return NULL;
}
#endif
