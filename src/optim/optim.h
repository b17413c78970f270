/* optim.h -- optimisers with PyTorch's semantics, applied to any run of elements of one parameter.
 *
 * An update looks at its own element (and, for row-sparse gradients, its row) alone, so any cut of the state
 * into chunks gives the same bits. Plain C without reductions: every level computes the same.
 *
 *     co_optim_def *def = co_optim_find("adamw");
 *     def->apply(cfg, &(co_apply){ .w = w, .m = {m, v}, .g = sum, .n = n, .scale = s, .lr = lr, .t = step });
 */
#ifndef CO_OPTIM_OPTIM_H
#define CO_OPTIM_OPTIM_H

#include "base/option.h"

enum { CO_MAX_MOMENTS = 3 };

typedef struct co_apply {
    float *w;                 /* [n] weights, updated */
    float *m[CO_MAX_MOMENTS]; /* [n] moments, updated; all zero before the first step */
    const float *g;           /* [n] the step's gradient sum, read only */
    size_t n;
    float scale; /* gradient = g * scale: divisor and clip factor in one */
    double lr;   /* of this step */
    int64_t t;   /* applied steps including this one: 1 for the first */
    bool no_decay;
} co_apply;

typedef struct co_optim_def {
    const char *name, *help;
    const co_option *options; /* has "lr" and, where it applies, "weight_decay" */
    size_t cfg_size;
    /* How many moments this configuration keeps, and their names in checkpoints ("exp_avg", "exp_avg_sq",
     * "momentum_buffer"). */
    int (*moments)(const void *cfg, const char *names[CO_MAX_MOMENTS]);
    double (*lr)(const void *cfg);
    /* Options that do not go together: CO_EINPUT naming them. NULL: any do. */
    co_err (*check)(const void *cfg);
    void (*apply)(const void *cfg, const co_apply *a);
    /* For entries with row-sparse gradients, on the elements of present rows only. Same moments as apply.
     * SGD: the plain rule on present rows; Adam, AdamW, SparseAdam: SparseAdam's lazy rule (no weight decay).
     */
    void (*apply_sparse)(const void *cfg, const co_apply *a);
    const char *sparse_name; /* how logs name it: "sparse_adam" */
} co_optim_def;

extern const co_optim_def *const co_optims[]; /* sgd, adam, adamw, sparse_adam; NULL-terminated */
const co_optim_def *co_optim_find(const char *name);

/* Clipping by norm, as PyTorch: min(1, max_norm / (norm + 1e-6)). max_norm <= 0: no clipping, 1. */
double co_clip_factor(double norm, double max_norm);

/* Sum of squares of x[0..n) in double: eight lanes by index mod 8, then ((0+4)+(2+6))+((1+5)+(3+7)). *finite
 * becomes false if any element is not finite; it is never set to true. */
double co_sum_squares(const float *x, size_t n, bool *finite);

#endif
