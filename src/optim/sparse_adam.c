/* sparse_adam.c -- lazy Adam for row-sparse gradients: a row that is absent from the gradient keeps its
 * weights and its moments, as PyTorch's SparseAdam.
 *
 *   d = g * scale
 *   m = m + (1 - beta1) * (d - m)
 *   v = v + (1 - beta2) * (d * d - v)
 *   w = w - size * (m / (sqrt(v) + eps))         with size = lr * sqrt(bc2) / bc1,  bci = 1 - betai^t
 *
 * t counts the steps of the run, not the updates of a row. Unlike in adam.c, eps is added outside the bias
 * correction. apply() is this rule with every row present. Scalars are computed in double and rounded to
 * float once; elements are computed in float, in the order of the brackets. No weight decay.
 */
#include "optim/optim_int.h"

#include <math.h>

#include "base/lanes.h"
#include "base/maths.h"

static const co_option options[] = {ADAM_OPTIONS, {0}};

struct scalars {
    float scale, eps, add1, add2, size;
};

static inline CO_INLINE void update_row(float *restrict w, float *restrict m, float *restrict v,
                                        const float *restrict g, size_t n, const struct scalars *s)
{
    float scale = s->scale, eps = s->eps, add1 = s->add1, add2 = s->add2, size = s->size;

    for (size_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        float mean = m[i] + add1 * (d - m[i]);
        float square = v[i] + add2 * (d * d - v[i]);
        m[i] = mean;
        v[i] = square;
        w[i] = w[i] - size * (mean / (sqrtf(square) + eps));
    }
}

/* Rows of one element have a loop of their own: their vectors would be empty. */
static inline CO_INLINE void update(const co_apply *a, const struct scalars *given)
{
    const struct scalars s = *given; /* no store below changes it */
    size_t n = part_length(a), parts = parts_of_update(a);
    float *w = a->w, *m = a->m[0], *v = a->m[1];

    for (size_t i = 0; n == 1 && i < parts; i++) {
        size_t at = part_start(a, i);
        update_row(w + at, m + at, v + at, a->g + i, 1, &s);
    }
    for (size_t i = 0; n != 1 && i < parts; i++) {
        size_t at = part_start(a, i);
        update_row(w + at, m + at, v + at, a->g + i * n, n, &s);
    }
}

static void update_any(const co_apply *a, const struct scalars *s)
{
    update(a, s);
}

static CO_AVX2 void update_avx2(const co_apply *a, const struct scalars *s)
{
    update(a, s);
}

void sparse_adam_apply(const void *cfg, const co_apply *a)
{
    const struct adam_cfg *c = cfg;
    double beta1 = adam_beta1(c, a);
    double correct1 = 1 - co_pow(beta1, (double)a->t), correct2 = 1 - co_pow(c->beta2, (double)a->t);
    struct scalars s = {a->scale, (float)c->eps, (float)(1 - beta1), (float)(1 - c->beta2),
                        (float)(a->lr * sqrt(correct2) / correct1)};

    (co_has_avx2() ? update_avx2 : update_any)(a, &s);
}

const co_optim_def sparse_adam_def = {
    .name = "sparse_adam",
    .help = "lazy Adam: rows without a gradient are not updated",
    .options = options,
    .cfg_size = sizeof(struct adam_cfg),
    .moments = adam_moments,
    .lr = adam_lr,
    .apply = sparse_adam_apply,
    .apply_sparse = sparse_adam_apply,
    .sparse_name = "sparse_adam",
    .pretrained_lr = 5e-4,
};
