/* rng.h -- random numbers without state: Philox4x32-10 (Salmon et al., SC 2011).
 *
 * A number is a pure function of (seed, purpose, stream, step or epoch, sample id, position), so any rank, on
 * any machine, at any time draws the same one. The layout of key and counter is in docs/formats/rng.md;
 * changing it changes every trained weight.
 *
 *     co_rng_key key = co_rng_key_make(seed, CO_RNG_DROPOUT);
 *     uint32_t u[4];
 *     co_rng_draw(u, key, stream, step, sample, pos / 4);     // u[pos % 4] belongs to position pos
 */
#ifndef CO_BASE_RNG_H
#define CO_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* One value per use of randomness. The values are part of the numerics contract: append only. */
typedef enum {
    CO_RNG_INIT = 1,
    CO_RNG_SHUFFLE = 2,
    CO_RNG_DROPOUT = 3,
    CO_RNG_DATA = 4, /* made-up data sets */
    CO_RNG_SPLIT = 5,
    CO_RNG_AUGMENT = 6,
    CO_RNG_TEST = 7
} co_rng_purpose;

typedef struct co_rng_key {
    uint32_t k[2];
} co_rng_key;

co_rng_key co_rng_key_make(uint64_t seed, co_rng_purpose purpose);

/* Four words for counter {block, sample, step, stream}. */
void co_rng_draw(uint32_t out[4], co_rng_key key, uint32_t stream, uint32_t step, uint32_t sample,
                 uint32_t block);

/* The 32-bit stream of a name (operator, parameter): FNV-1a. */
uint32_t co_rng_stream(const char *name);

static inline float co_rng_unit(uint32_t u) /* [0, 1), 24 bits */
{
    return (float)(u >> 8) * 0x1p-24f;
}

/* x[i] is position i of one stream, step and sample. It does not depend on n. */
void co_rng_uniform(float *x, size_t n, float lo, float hi, co_rng_key key, uint32_t stream, uint32_t step,
                    uint32_t sample);
void co_rng_normal(float *x, size_t n, float mean, float std, co_rng_key key, uint32_t stream, uint32_t step,
                   uint32_t sample); /* Box-Muller over base/maths.h */

/* A permutation of 0..n-1 into p (Fisher-Yates, unbiased), a function of (key, step) only. */
void co_rng_permute(uint32_t *p, uint32_t n, co_rng_key key, uint32_t step);

#endif
