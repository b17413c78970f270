/* rng.c -- Philox4x32-10 and what is made from its words.
 *
 * Ten rounds of multiply, swap and xor turn a counter of four words into four random ones under a key of two.
 * There is no state: the cost of any number is one block of four, about 20 multiplications.
 *
 *   key      = low, high word of mix(seed xor purpose * 0x9E3779B97F4A7C15)
 *   counter  = { block, sample, step, stream }
 *
 * Every constant here enters every trained weight. docs/formats/rng.md describes it in prose.
 */
#include "base/rng.h"

#include <math.h>

#include "base/err.h"
#include "base/maths.h"

/* The finaliser of splitmix64: a bijection of 64-bit words in which every input bit affects every output bit.
 * Seeds 1 and 2, or purposes 1 and 2, give unrelated keys, and no two seeds share a key for one purpose. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

co_rng_key co_rng_key_make(uint64_t seed, co_rng_purpose purpose)
{
    uint64_t z = mix(seed ^ (uint64_t)purpose * 0x9E3779B97F4A7C15u);

    return (co_rng_key){{(uint32_t)z, (uint32_t)(z >> 32)}};
}

void co_rng_draw(uint32_t out[4], co_rng_key key, uint32_t stream, uint32_t step, uint32_t sample,
                 uint32_t block)
{
    uint32_t c0 = block, c1 = sample, c2 = step, c3 = stream;
    uint32_t k0 = key.k[0], k1 = key.k[1];

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint32_t co_rng_stream(const char *name)
{
    uint32_t h = 0x811C9DC5u;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x01000193u;
    return h;
}

static void check_length(size_t n)
{
    CO_ASSERT((uint64_t)n <= (uint64_t)4 << 32, "a stream has 2^34 positions");
}

void co_rng_uniform(float *x, size_t n, float lo, float hi, co_rng_key key, uint32_t stream, uint32_t step,
                    uint32_t sample)
{
    uint32_t u[4];
    float width = hi - lo;

    check_length(n);
    for (size_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            co_rng_draw(u, key, stream, step, sample, (uint32_t)(i / 4));
        x[i] = lo + width * co_rng_unit(u[i % 4]);
    }
}

/* Box-Muller: two words to two independent normals. Adding one half keeps the logarithm's argument away from
 * 0 and 1. All 32 bits are used, so |z| reaches 6.76. */
static void normal_pair(double z[2], uint32_t a, uint32_t b)
{
    double radius = sqrt(-2.0 * co_log(((double)a + 0.5) * 0x1p-32));
    double angle = 0x1.921fb54442d18p+2 * ((double)b * 0x1p-32); /* 2 pi */

    z[0] = radius * co_cos(angle);
    z[1] = radius * co_sin(angle);
}

void co_rng_normal(float *x, size_t n, float mean, float std, co_rng_key key, uint32_t stream, uint32_t step,
                   uint32_t sample)
{
    uint32_t u[4];
    double z[2];

    check_length(n);
    for (size_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            co_rng_draw(u, key, stream, step, sample, (uint32_t)(i / 4));
        if (i % 2 == 0)
            normal_pair(z, u[i % 4], u[i % 4 + 1]);
        x[i] = (float)((double)mean + (double)std * z[i % 2]);
    }
}

/* The words of one (key, step) in order: block 0 words 0..3, block 1 words 0..3, ... */
struct words {
    co_rng_key key;
    uint32_t step, block, u[4];
    int next;
};

static uint32_t next_word(struct words *w)
{
    if (w->next == 4) {
        co_rng_draw(w->u, w->key, 0, w->step, 0, w->block++);
        w->next = 0;
    }
    return w->u[w->next++];
}

/* A number in 0..range-1, all equally likely (Lemire 2019). 2^32 is not a multiple of every range, so some
 * results would get one word more than others. The loop rejects that surplus: the words whose product has a
 * low half below 2^32 mod range. */
static uint32_t next_below(struct words *w, uint32_t range)
{
    uint64_t product = (uint64_t)next_word(w) * range;

    if ((uint32_t)product < range) { /* the surplus is below range: most words need no division */
        uint32_t surplus = -range % range;
        while ((uint32_t)product < surplus)
            product = (uint64_t)next_word(w) * range;
    }
    return (uint32_t)(product >> 32);
}

void co_rng_permute(uint32_t *p, uint32_t n, co_rng_key key, uint32_t step)
{
    struct words w = {.key = key, .step = step, .next = 4};

    for (uint32_t i = 0; i < n; i++)
        p[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = next_below(&w, i);
        uint32_t keep = p[i - 1];
        p[i - 1] = p[j];
        p[j] = keep;
    }
}
