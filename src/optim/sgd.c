/* sgd.c -- stochastic gradient descent with momentum, dampening, Nesterov and coupled weight decay.
 *
 *   d = g * scale + wd * w
 *   b = d on the first step, then momentum * b + (1 - dampening) * d
 *   w = w - lr * (momentum = 0: d;  nesterov: d + momentum * b;  else: b)
 *
 * Scalars are computed in double and rounded to float once; each line above is evaluated in float from left
 * to right as written here, multiplications first. Elements are independent, so any division into chunks
 * gives the same bits.
 */
#include "optim/optim_int.h"

#include "base/lanes.h"

struct sgd_cfg {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
};

static const co_option options[] = {
    {"lr", CO_OPT_FLOAT, offsetof(struct sgd_cfg, lr), "1e-3", "learning rate", .min = 0, .max = 1e6,
     .alias = "model.optimizer.lr"},
    {"momentum", CO_OPT_FLOAT, offsetof(struct sgd_cfg, momentum), "0",
     "fraction of the previous step that is kept", .min = 0, .max = 1},
    {"dampening", CO_OPT_FLOAT, offsetof(struct sgd_cfg, dampening), "0",
     "share of the gradient left out of the momentum", .min = 0, .max = 1},
    {"nesterov", CO_OPT_BOOL, offsetof(struct sgd_cfg, nesterov), "false", "use Nesterov momentum"},
    {"weight_decay", CO_OPT_FLOAT, offsetof(struct sgd_cfg, weight_decay), "0",
     "added to the gradient, times the weight", .min = 0, .max = 1e6, .alias = "model.optimizer.weight_decay"},
    {0}};

static co_err check(const void *cfg)
{
    const struct sgd_cfg *c = cfg;

    if (c->nesterov && (c->momentum == 0 || c->dampening != 0))
        return co_fail(
            CO_EINPUT,
            "optim.nesterov=true needs a momentum and no dampening; they are optim.momentum=%g and "
            "optim.dampening=%g (try optim.momentum=0.9 optim.dampening=0)",
            c->momentum, c->dampening);
    return CO_OK;
}

static int moments(const void *cfg, const char *names[CO_MAX_MOMENTS])
{
    const struct sgd_cfg *c = cfg;

    if (c->momentum == 0)
        return 0;
    names[0] = "momentum_buffer";
    return 1;
}

static double lr(const void *cfg)
{
    return ((const struct sgd_cfg *)cfg)->lr;
}

/* The buffer b becomes keep * b + add * d, and the step direction is ahead * d + along * b. */
struct scalars {
    float scale, step, decay, keep, add, ahead, along;
    bool buffer;
};

static inline CO_INLINE void plain(float *restrict w, const float *restrict g, size_t n, struct scalars s)
{
    for (size_t i = 0; i < n; i++) {
        float d = g[i] * s.scale + s.decay * w[i];
        w[i] = w[i] - s.step * d;
    }
}

static inline CO_INLINE void with_buffer(float *restrict w, float *restrict b, const float *restrict g,
                                         size_t n, struct scalars s)
{
    for (size_t i = 0; i < n; i++) {
        float d = g[i] * s.scale + s.decay * w[i];
        float next = s.keep * b[i] + s.add * d;
        b[i] = next;
        w[i] = w[i] - s.step * (s.ahead * d + s.along * next);
    }
}

static inline CO_INLINE void update(const co_apply *a, const struct scalars *s)
{
    for (size_t i = 0, n = part_length(a), parts = parts_of_update(a); i < parts; i++) {
        size_t at = part_start(a, i);
        if (s->buffer)
            with_buffer(a->w + at, a->m[0] + at, a->g + i * n, n, *s);
        else
            plain(a->w + at, a->g + i * n, n, *s);
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

static void apply(const void *cfg, const co_apply *a)
{
    const struct sgd_cfg *c = cfg;
    float momentum = (float)(a->momentum > 0 ? a->momentum : c->momentum);
    struct scalars s = {.scale = a->scale,
                        .step = (float)a->lr,
                        .decay = a->no_decay ? 0.0f : (float)c->weight_decay,
                        .keep = momentum,
                        .add = a->t == 1 ? 1.0f : (float)(1 - c->dampening),
                        .ahead = c->nesterov ? 1.0f : 0.0f,
                        .along = c->nesterov ? momentum : 1.0f,
                        .buffer = c->momentum != 0}; /* without one a schedule's momentum has no effect */

    (co_has_avx2() ? update_avx2 : update_any)(a, &s);
}

const co_optim_def sgd_def = {
    .name = "sgd",
    .help = "stochastic gradient descent, optionally with momentum",
    .options = options,
    .cfg_size = sizeof(struct sgd_cfg),
    .moments = moments,
    .lr = lr,
    .check = check,
    .apply = apply,
    .apply_sparse = apply,
    .sparse_name = "sgd",
    .pretrained_lr = 0.05,
};
