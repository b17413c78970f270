/* drops.h -- dropout of a row, shared by DROPOUT and RAGGED_ATTENTION.
 * VW Philox blocks (4 * VW elements) at a time. */
#ifndef CO_KERNEL_SIMD_DROPS_H
#define CO_KERNEL_SIMD_DROPS_H

#include "base/rng.h"
#include "kernel/kernel.h"
#include "kernel/simd/vec.h"

typedef struct drops {
    co_rng_key key;
    uint32_t stream, step;
    float p;
} drops;

static inline drops drops_of(const co_call *c)
{
    return (drops){co_rng_key_make(c->run->seed, CO_RNG_DROPOUT), c->attr->stream, c->run->step, c->attr->p};
}

/* co_rng_draw of VW blocks from `block` on; u[j] holds word j of each. */
ALWAYS_INLINE void draw_blocks(vi u[4], co_rng_key key, uint32_t stream, uint32_t step, uint32_t sample,
                               uint32_t block)
{
    vi c0 = vi_set(block) + vi_lanes(), c1 = vi_set(sample), c2 = vi_set(step), c3 = vi_set(stream);
    uint32_t k0 = key.k[0], k1 = key.k[1];
    for (int round = 0; round < 10; round++) {
        vi lo0, hi0, lo1, hi1;
        vi_mul_wide(&lo0, &hi0, c0, 0xD2511F53u);
        vi_mul_wide(&lo1, &hi1, c2, 0xCD9E8D57u);
        c0 = hi1 ^ c1 ^ vi_set(k0);
        c1 = lo1;
        c2 = hi0 ^ c3 ^ vi_set(k1);
        c3 = lo0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    u[0] = c0, u[1] = c1, u[2] = c2, u[3] = c3;
}

/* y = x / (1 - p), or 0 where the element is dropped; element 0 is the first of block `block` of the sample.
 * y may be x. */
ALWAYS_INLINE void row_drop(float *y, const float *x, int64_t n, const drops *d, uint32_t sample, uint32_t block)
{
    vf p = v_set(d->p), kept = v_set(1 - d->p);

    for (int64_t q = 0; q < n; q += 4 * VW) {
        vi u[4];
        draw_blocks(u, d->key, d->stream, d->step, sample, block + (uint32_t)(q / 4));
        vi_turn4(u);
        for (int64_t j = 0; j < 4 && q + j * VW < n; j++) {
            int64_t at = q + j * VW, lanes = n - at < VW ? n - at : VW;
            vf unit = v_of_int(u[j] >> 8) * v_set(0x1p-24f);
            v_store_n(y + at, lanes, v_pick(v_ge(unit, p), v_load_n(x + at, lanes) / kept, v_zero()));
        }
    }
}

#endif
