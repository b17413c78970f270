/* optim_int.h -- what the optimisers share: the definitions that the table lists, and Adam's fields. */
#ifndef CO_OPTIM_OPTIM_INT_H
#define CO_OPTIM_OPTIM_INT_H

#include "optim/optim.h"

extern const co_optim_def sgd_def, adam_def, adamw_def, sparse_adam_def;
extern const co_schedule_def constant_def;

/* Adam, AdamW and SparseAdam keep the same two moments, and the first two hand their row-sparse entries to
 * the third: so they share one struct. SparseAdam has no weight decay. */
struct adam_cfg {
    double lr, beta1, beta2, eps, weight_decay;
};
int adam_moments(const void *cfg, const char *names[CO_MAX_MOMENTS]);
double adam_lr(const void *cfg);
void sparse_adam_apply(const void *cfg, const co_apply *a);

#endif
