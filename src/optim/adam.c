/* adam.c -- Adam (Kingma and Ba, 2015) with coupled weight decay and AdamW (Loshchilov and Hutter, 2019) with
 * decoupled weight decay, in PyTorch's form:
 *
 *   Adam    d = g * scale + wd * w               AdamW   d = g * scale;  w = w * (1 - lr * wd)
 *   m = m + (1 - beta1) * (d - m)
 *   v = beta2 * v + ((1 - beta2) * d) * d
 *   w = w - ((lr / bc1) * m) / (sqrt(v) / sqrt(bc2) + eps)              with bci = 1 - betai^t
 *
 * Scalars (step size, bias corrections, decay) are computed in double once per call and rounded to float; the
 * lines above are evaluated in float as bracketed. Elements are independent, so any division into chunks
 * gives the same bits. A schedule may cycle beta1; beta1^t then uses the beta1 of the current step, as in
 * PyTorch, and ignores earlier values. Row-sparse entries go to sparse_adam.c.
 */
#include "optim/optim_int.h"

#include <math.h>

#include "base/lanes.h"
#include "base/maths.h"

static const co_option adam_options[] = {
    ADAM_OPTIONS,
    {"weight_decay", CO_OPT_FLOAT, offsetof(struct adam_cfg, weight_decay), "0",
     "added to the gradient, times the weight", .min = 0, .max = 1e6, .alias = "model.optimizer.weight_decay"},
    {0}};

static const co_option adamw_options[] = {
    ADAM_OPTIONS,
    {"weight_decay", CO_OPT_FLOAT, offsetof(struct adam_cfg, weight_decay), "1e-2",
     "fraction of the weight, times the learning rate, removed at each step", .min = 0, .max = 1e6,
     .alias = "model.optimizer.weight_decay"},
    {0}};

int adam_moments(const void *cfg, const char *names[CO_MAX_MOMENTS])
{
    (void)cfg;
    names[0] = "exp_avg";
    names[1] = "exp_avg_sq";
    return 2;
}

double adam_lr(const void *cfg)
{
    return ((const struct adam_cfg *)cfg)->lr;
}

double adam_beta1(const struct adam_cfg *c, const co_apply *a)
{
    return a->momentum > 0 ? a->momentum : c->beta1;
}

/* coupled: the factor of the weight that is added to the gradient; kept: the factor that the weight is
 * multiplied by. Only one of the two has an effect. */
struct scalars {
    float scale, eps, coupled, kept, add1, keep2, add2, size, root;
};

static inline CO_INLINE void update(const co_apply *a, struct scalars s)
{
    float *restrict w = a->w;       /* [n] */
    float *restrict m = a->m[0];    /* [n] */
    float *restrict v = a->m[1];    /* [n] */
    const float *restrict g = a->g; /* [n] */

    for (size_t i = 0, n = a->n; i < n; i++) {
        float d = g[i] * s.scale + s.coupled * w[i];
        float mean = m[i] + s.add1 * (d - m[i]);
        float square = s.keep2 * v[i] + (s.add2 * d) * d;
        m[i] = mean;
        v[i] = square;
        w[i] = w[i] * s.kept - (s.size * mean) / (sqrtf(square) / s.root + s.eps);
    }
}

static void update_any(const co_apply *a, struct scalars s)
{
    update(a, s);
}

static CO_AVX2 void update_avx2(const co_apply *a, struct scalars s)
{
    update(a, s);
}

static void step(const struct adam_cfg *c, const co_apply *a, float coupled, float kept)
{
    double beta1 = adam_beta1(c, a);
    struct scalars s = {.scale = a->scale,
                        .eps = (float)c->eps,
                        .coupled = coupled,
                        .kept = kept,
                        .add1 = (float)(1 - beta1),
                        .keep2 = (float)c->beta2,
                        .add2 = (float)(1 - c->beta2),
                        .size = (float)(a->lr / (1 - co_pow(beta1, (double)a->t))),
                        .root = (float)sqrt(1 - co_pow(c->beta2, (double)a->t))};

    (co_has_avx2() ? update_avx2 : update_any)(a, s);
}

static void adam_apply(const void *cfg, const co_apply *a)
{
    const struct adam_cfg *c = cfg;

    step(c, a, a->no_decay ? 0.0f : (float)c->weight_decay, 1.0f);
}

static void adamw_apply(const void *cfg, const co_apply *a)
{
    const struct adam_cfg *c = cfg;

    step(c, a, 0.0f, a->no_decay ? 1.0f : (float)(1 - a->lr * c->weight_decay));
}

const co_optim_def adam_def = {
    .name = "adam",
    .help = "Adam; weight decay is added to the gradient",
    .options = adam_options,
    .cfg_size = sizeof(struct adam_cfg),
    .moments = adam_moments,
    .lr = adam_lr,
    .apply = adam_apply,
    .apply_sparse = sparse_adam_apply,
    .sparse_name = "sparse_adam",
    .pretrained_lr = 5e-4,
};

const co_optim_def adamw_def = {
    .name = "adamw",
    .help = "Adam with weight decay applied to the weights directly",
    .options = adamw_options,
    .cfg_size = sizeof(struct adam_cfg),
    .moments = adam_moments,
    .lr = adam_lr,
    .apply = adamw_apply,
    .apply_sparse = sparse_adam_apply,
    .sparse_name = "sparse_adam",
    .pretrained_lr = 5e-4,
};
