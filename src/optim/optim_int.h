/* optim_int.h -- shared by the optimisers and the schedules: the definitions listed in the tables, Adam's
 * fields, a schedule's clock. */
#ifndef CO_OPTIM_OPTIM_INT_H
#define CO_OPTIM_OPTIM_INT_H

#include "optim/optim.h"

extern const co_optim_def sgd_def, adam_def, adamw_def, sparse_adam_def;
extern const co_schedule_def constant_def, step_def, multistep_def, exponential_def, cosine_def,
    polynomial_def, one_cycle_def, plateau_def, range_def;

#define PI 0x1.921fb54442d18p+1

int64_t pace_per_epoch(const co_pace *at); /* 1 at least */
int64_t pace_epoch(const co_pace *at);     /* the epoch that the step lies in, from 0 */

/* Adam, AdamW and SparseAdam keep the same two moments, and Adam and AdamW pass their row-sparse entries to
 * SparseAdam, so all three share one struct. SparseAdam has no weight decay. */
struct adam_cfg {
    double lr, beta1, beta2, eps, weight_decay;
};
/* The rows of their option tables that are the same for all three. */
/* clang-format off */
#define ADAM_OPTIONS \
    {"lr", CO_OPT_FLOAT, offsetof(struct adam_cfg, lr), "1e-3", "learning rate", .min = 0, .max = 1e6, \
     .alias = "model.optimizer.lr"}, \
    {"beta1", CO_OPT_FLOAT, offsetof(struct adam_cfg, beta1), "0.9", "memory of the mean gradient", .min = 0, \
     .max = 0.9999999}, \
    {"beta2", CO_OPT_FLOAT, offsetof(struct adam_cfg, beta2), "0.999", "memory of the mean squared gradient", \
     .min = 0, .max = 0.9999999}, \
    {"eps", CO_OPT_FLOAT, offsetof(struct adam_cfg, eps), "1e-8", "keeps the division finite", \
     .min = 0, .max = 1}
/* clang-format on */
int adam_moments(const void *cfg, const char *names[CO_MAX_MOMENTS]);
double adam_lr(const void *cfg);
double adam_beta1(const struct adam_cfg *c, const co_apply *a); /* the step's own, or the configuration's */
void sparse_adam_apply(const void *cfg, const co_apply *a);

/* The parts of an update in which elements lie one after the other: row i of the list, or everything at
 * once. */
static inline size_t parts_of_update(const co_apply *a)
{
    return a->row ? a->n / a->width : 1;
}
static inline size_t part_length(const co_apply *a)
{
    return a->row ? a->width : a->n;
}
static inline size_t part_start(const co_apply *a, size_t i) /* in w and m; in g: i * part_length */
{
    return a->row ? a->row[i] * a->width : 0;
}

#endif
