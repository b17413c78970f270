/* small.h -- a model of a few entries of every kind, its state, and a source over it, for the ckpt tests. */
#ifndef TESTS_CKPT_SMALL_H
#define TESTS_CKPT_SMALL_H

#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ckpt/ckpt.h"

enum { SMALL_MOMENTS = 2 };
static const char *const small_moments[SMALL_MOMENTS] = {"exp_avg", "exp_avg_sq"};

struct small {
    co_layout l;
    float *part[1 + SMALL_MOMENTS]; /* [l.count] each: weights, moments */
};

static inline void small_add(co_layout *l, const char *name, co_kind kind, co_shape shape)
{
    CHECK_OK(co_layout_add(l, &(co_entry){.name = name,
                                          .kind = kind,
                                          .dtype = kind == CO_KIND_COUNTER ? CO_I64 : CO_F32,
                                          .shape = shape}));
}

/* Values from `seed`: any bit pattern at all, NaNs among them. Moments of what is no parameter stay zero. */
static inline void small_fill(struct small *s, uint64_t seed)
{
    for (int p = 0; p <= SMALL_MOMENTS; p++) {
        memset(s->part[p], 0, s->l.count * sizeof(float));
        for (int i = 0; i < s->l.n; i++) {
            const co_entry *e = &s->l.entry[i];
            for (size_t k = 0; k < e->count && (p == 0 || e->kind == CO_KIND_PARAM); k++) {
                uint32_t bits = test_u32(&seed);
                memcpy(&s->part[p][e->offset + k], &bits, 4);
            }
        }
    }
}

static inline void small_init(struct small *s, int64_t width)
{
    co_layout_init(&s->l);
    small_add(&s->l, "fc1.weight", CO_KIND_PARAM, CO_SHAPE(width, 5));
    small_add(&s->l, "fc1.bias", CO_KIND_PARAM, CO_SHAPE(width));
    small_add(&s->l, "bn.running_mean", CO_KIND_STAT, CO_SHAPE(width));
    small_add(&s->l, "bn.num_batches_tracked", CO_KIND_COUNTER, CO_SCALAR);
    small_add(&s->l, "scale", CO_KIND_PARAM, CO_SCALAR);
    co_layout_close(&s->l);
    for (int p = 0; p <= SMALL_MOMENTS; p++)
        s->part[p] = co_array(s->l.count, sizeof(float));
    small_fill(s, 1);
}

static inline void small_fini(struct small *s)
{
    for (int p = 0; p <= SMALL_MOMENTS; p++)
        co_free(s->part[p]);
    co_layout_fini(&s->l);
}

static inline co_err small_read(void *ctx, int part, size_t offset, size_t count, float *dst)
{
    const struct small *s = ctx;
    CHECK(part >= 0 && part <= SMALL_MOMENTS && offset + count <= s->l.count, "part %d, %zu + %zu", part,
          offset, count);
    memcpy(dst, s->part[part] + offset, count * sizeof(float));
    return CO_OK;
}

static inline co_ckpt_meta small_meta(int64_t step)
{
    return (co_ckpt_meta){.step = step,
                          .applied = step,
                          .epoch = 3,
                          .samples = 1234567890123,
                          .seed = 0xfedcba9876543210u,
                          .slices = 8,
                          .global_batch = 128,
                          .view = 2,
                          .model = "mlp",
                          .data = "digits",
                          .optim = "adamw",
                          .kernels = "avx2-1",
                          .data_sha256 = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"};
}

static inline co_err small_save(struct small *s, const char *root, const char *name, int64_t step)
{
    co_ckpt_meta meta = small_meta(step);
    return co_ckpt_save(root, name, &s->l, SMALL_MOMENTS, small_moments, &meta,
                        &(co_ckpt_source){small_read, s});
}

/* Loads into a second one and compares bit by bit when it loads. */
static inline co_err small_load(const struct small *want, const char *path, co_ckpt_meta *meta)
{
    struct small got;
    small_init(&got, want->l.entry[0].shape.d[0]);
    for (int p = 0; p <= SMALL_MOMENTS; p++)
        memset(got.part[p], 0xa5, got.l.count * sizeof(float));
    co_err err = co_ckpt_load(path, &got.l, got.part[0], SMALL_MOMENTS, small_moments, got.part + 1, meta);
    for (int p = 0; p <= SMALL_MOMENTS && !err; p++)
        CHECK(memcmp(got.part[p], want->part[p], got.l.count * sizeof(float)) == 0, "part %d differs", p);
    small_fini(&got);
    return err;
}

#endif
