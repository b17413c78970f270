/* optim.h -- optimisers with PyTorch's semantics, applied to any run of elements of one parameter.
 *
 * The update of an element reads that element only (for row-sparse gradients, also its row's mark), so any
 * division of the state into chunks gives the same bits. The code is plain C without reductions, so every
 * kernel level computes the same.
 *
 *     co_optim_def *def = co_optim_find("adamw");
 *     def->apply(cfg, &(co_apply){ .w = w, .m = {m, v}, .g = sum, .n = n, .scale = s, .lr = lr, .t = step });
 */
#ifndef CO_OPTIM_OPTIM_H
#define CO_OPTIM_OPTIM_H

#include "base/option.h"

enum { CO_MAX_MOMENTS = 4 }; /* up to three of the optimiser, and the average of the weights */

typedef struct co_apply {
    float *w;                 /* [n] weights, updated */
    float *m[CO_MAX_MOMENTS]; /* [n] moments, updated; all zero before the first step */
    const float *g;           /* [n] the step's gradient sum, read only */
    size_t n;
    float scale; /* gradient = g * scale: divisor and clip factor in one */
    double lr;   /* of this step */
    int64_t t;   /* applied steps including this one: 1 for the first */
    bool no_decay;
    double momentum; /* momentum (Adam: beta1) set by a schedule; 0: use the configuration's */
    /* apply_sparse only; NULL: w and m are [n] as above. Else w and m are whole tables, and g [n] holds rows
     * of `width` elements one after the other: number i belongs to row row[i] of the tables. */
    const uint32_t *row;
    size_t width;
} co_apply;

typedef struct co_optim_def {
    const char *name, *help;
    const co_option *options; /* has "lr" and, where it applies, "weight_decay" */
    size_t cfg_size;
    /* How many moments this configuration keeps, and their names in checkpoints ("exp_avg", "exp_avg_sq",
     * "momentum_buffer"). */
    int (*moments)(const void *cfg, const char *names[CO_MAX_MOMENTS]);
    double (*lr)(const void *cfg);
    /* CO_EINPUT with the names of options that contradict each other. NULL: none can. */
    co_err (*check)(const void *cfg);
    void (*apply)(const void *cfg, const co_apply *a);
    /* For entries with row-sparse gradients, on the elements of present rows only. Same moments as apply.
     * SGD: the plain rule on present rows; Adam, AdamW, SparseAdam: SparseAdam's lazy rule (no weight decay).
     */
    void (*apply_sparse)(const void *cfg, const co_apply *a);
    const char *sparse_name; /* how logs name it: "sparse_adam" */
    /* Above this rate, pretrained weights are usually lost in the first steps: then the first screen
     * warns. */
    double pretrained_lr;
} co_optim_def;

extern const co_optim_def *const co_optims[]; /* sgd, adam, adamw, sparse_adam; NULL-terminated */
const co_optim_def *co_optim_find(const char *name);

/* --- schedules: the learning rate of every step, as PyTorch's schedulers give it ------------------------
 * A warm-up may precede any of them: for the first `warmup` steps the rate rises linearly from start * base
 * to base, and the schedule's own clock starts after it. */
typedef struct co_pace {
    int64_t step;  /* steps done before this one: 0 for the first, counted from the end of the warm-up */
    int64_t steps; /* of the whole run, without the warm-up */
    int64_t steps_per_epoch;
    double drop; /* plateau: product of the factors so far; else 1 */
} co_pace;

typedef struct co_schedule_def {
    const char *name, *help;
    const co_option *options;
    size_t cfg_size;
    co_err (*check)(const void *cfg); /* CO_EINPUT names the wrong key; NULL: all are valid */
    double (*lr)(const void *cfg, double base, const co_pace *at);
    /* The momentum (Adam: beta1) of the step; 0, or a NULL function: the configuration's. */
    double (*momentum)(const void *cfg, const co_pace *at);
    bool watches; /* plateau: wants co_plateau_see after every evaluation */
} co_schedule_def;

extern const co_schedule_def *const co_schedules[]; /* NULL-terminated */
const co_schedule_def *co_schedule_find(const char *name);

/* The rate of a step with its warm-up. `absolute` counts from the run's first step and has all its steps:
 * before `warmup` the rate is base * (start + (1 - start) * step / warmup), then the schedule's own, whose
 * clock starts at zero. This is PyTorch's SequentialLR of LinearLR and the schedule. It has no state: the
 * rate of any step can be computed at any time. */
double co_schedule_lr(const co_schedule_def *def, const void *cfg, double base, int64_t warmup, double start,
                      const co_pace *absolute);
/* The momentum of a step with its warm-up, during which it is the schedule's first; 0: use the
 * configuration's. */
double co_schedule_momentum(const co_schedule_def *def, const void *cfg, int64_t warmup,
                            const co_pace *absolute);

/* The state of a plateau, kept in checkpoints. Before the first evaluation drop is 1 and the rest is 0. */
typedef struct co_plateau {
    double best, drop;
    int64_t bad, cooldown, seen;
} co_plateau;
/* ReduceLROnPlateau's rule on one more value. `cfg` is the plateau row's. `base` is the rate that drops
 * multiply. */
void co_plateau_see(const void *cfg, double base, double value, co_plateau *p);
const char *co_plateau_monitor(const void *cfg); /* which value it wants: "val/loss", "val/acc" ... */

/* --- the average of the weights ------------------------------------------------------------------------- */
/* ema = w after the first applied step (t = 1), then ema + (1 - decay) * (w - ema). Any division into chunks
 * gives the same bits. */
void co_ema_apply(float *ema, const float *w, size_t n, double decay, int64_t t);

/* Clipping by norm, as PyTorch: min(1, max_norm / (norm + 1e-6)). max_norm <= 0: no clipping, 1. */
double co_clip_factor(double norm, double max_norm);

/* Sum of squares of x[0..n) in double: eight lanes by index mod 8, then ((0+4)+(2+6))+((1+5)+(3+7)). *finite
 * becomes false if any element is not finite; it is never set to true. */
double co_sum_squares(const float *x, size_t n, bool *finite);

/* The same sum of elements that come in several pieces: zero at first; every piece but the last has a multiple of 8
 * elements. */
typedef struct co_squares {
    double lane[8];
} co_squares;
void co_squares_add(co_squares *squares, const float *x, size_t n);
double co_squares_total(const co_squares *squares, bool *finite);

#endif
