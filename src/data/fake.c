/* fake.c -- made-up numbers that a linear model can learn: for trying things out, and for measuring.
 *
 *     x uniform in [-1, 1), y = x . w + b + noise        w, b uniform in [-1, 1), noise normal
 *
 * Every number is computed from the sample id when it is needed, so the set takes no memory at any size. The
 * ids of val and test follow those of train: one rule made them all.
 */
#include "data/data_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"

struct fake_cfg {
    int64_t n, inputs, seed;
    double noise;
};

static const co_option options[] = {
    {"n", CO_OPT_INT, offsetof(struct fake_cfg, n), "2048",
     "samples to train on; an eighth each to validate and to test come on top", .min = 8, .max = 1e7},
    {"inputs", CO_OPT_INT, offsetof(struct fake_cfg, inputs), "20", "numbers in a sample", .min = 1,
     .max = 65536},
    {"seed", CO_OPT_INT, offsetof(struct fake_cfg, seed), "0", "of the made-up numbers", .min = 0,
     .max = 0x1p53},
    {"noise", CO_OPT_FLOAT, offsetof(struct fake_cfg, noise), "0.01",
     "standard deviation of the noise on the answer", .min = 0, .max = 1e6},
    {0},
};

struct fake {
    co_dataset base;
    co_rng_key key;
    uint32_t stream_x, stream_noise;
    int inputs;
    float noise, b;
    float w[]; /* [inputs] */
};

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct fake *set = (const struct fake *)d;
    uint32_t start = split_start(d, s);
    size_t inputs = (size_t)set->inputs;
    float *y = dst->y; /* [n,1] */

    CO_ASSERT(dst->x, "x is always wanted, and y comes from it");
    for (int i = 0; i < shape.n; i++) {
        float *x = (float *)dst->x + (size_t)i * inputs; /* [inputs] of [n,inputs] */
        co_rng_uniform(x, inputs, -1, 1, set->key, set->stream_x, 0, start + id[i]);
        if (y) {
            float noise, sum = set->b;
            for (size_t k = 0; k < inputs; k++)
                sum += x[k] * set->w[k];
            co_rng_normal(&noise, 1, 0, set->noise, set->key, set->stream_noise, 0, start + id[i]);
            y[i] = sum + noise;
        }
        if (dst->ids)
            dst->ids[i] = id[i];
    }
    return 0;
}

static void shut(co_dataset *d)
{
    co_free(d);
}

static co_err open_fake(co_dataset **out, const void *cfg)
{
    const struct fake_cfg *c = cfg;
    uint32_t n = (uint32_t)c->n, inputs = (uint32_t)c->inputs;
    struct fake *set = co_zalloc(sizeof *set + inputs * sizeof(float));
    char says[160];

    if (!set)
        return CO_ENOMEM;
    set->base = (co_dataset){
        .io = {.task = CO_TASK_REGRESS, .x = CO_SHAPE(inputs), .y_width = 1},
        .count = {n, n / 8, n / 8},
        .fill = fill,
        .close = shut,
    };
    set->key = co_rng_key_make((uint64_t)c->seed, CO_RNG_DATA);
    set->stream_x = co_rng_stream("fake.x");
    set->stream_noise = co_rng_stream("fake.noise");
    set->inputs = (int)inputs;
    set->noise = (float)c->noise;
    co_rng_uniform(set->w, inputs, -1, 1, set->key, co_rng_stream("fake.w"), 0, 0);
    co_rng_uniform(&set->b, 1, -1, 1, set->key, co_rng_stream("fake.b"), 0, 0);
    snprintf(says, sizeof says, "fake 1 n=%lld inputs=%lld seed=%lld noise=%.17g", (long long)c->n,
             (long long)c->inputs, (long long)c->seed, c->noise);
    co_sha256_of(says, strlen(says), set->base.fingerprint);
    *out = &set->base;
    return CO_OK;
}

const co_dataset_def fake_def = {
    .name = "fake",
    .help = "made-up numbers that a linear model can learn",
    .options = options,
    .cfg_size = sizeof(struct fake_cfg),
    .open = open_fake,
};
