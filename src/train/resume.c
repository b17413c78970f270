/* resume.c -- what a run may start from: refuses weights and checkpoints that do not fit the plan. */
#include "train/plan_int.h"

#include <string.h>

/* Refuses first weights that do not fit. A run that continues does not need them. */
co_err check_weights(co_plan *plan)
{
    if (plan->cfg.weights_skip && !plan->cfg.weights)
        return co_fail(CO_EINPUT, "weights_skip=%s without weights=FILE", plan->cfg.weights_skip);
    return plan->cfg.weights && !plan->spec.resume
               ? co_weights_load(plan->cfg.weights, plan->layout, plan->cfg.weights_skip, NULL)
               : CO_OK;
}

/* Refuses a checkpoint of another model, optimiser, batch or seed: continuing it would be another run. */
co_err check_resume(co_plan *plan)
{
    const co_ckpt_meta *meta = &plan->start;

    if (!plan->spec.resume)
        return CO_OK;
    co_err err = co_ckpt_fits(plan->spec.resume, plan->layout, 0,
                              NULL); /* the model first: much else follows from it */
    if (err)
        return co_fail(err,
                       "%s; it was made with model=%s: give that model with its keys, or start anew without "
                       "ckpt_path",
                       co_errmsg(), meta->model);
    if (meta->slices != plan->slices || meta->global_batch != plan->batch)
        return co_fail(
            CO_EINPUT,
            "checkpoint %s was made with data.batch_size=%lld in %lld slices, this run has %u in %d: "
            "give the same, or start anew without ckpt_path",
            plan->spec.resume, (long long)meta->global_batch, (long long)meta->slices, plan->batch,
            plan->slices);
    if (meta->samples != samples_until(plan, meta->step) ||
        meta->epoch != meta->step / plan->units.steps_per_epoch)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with epochs of another length (trainer.limit_train_batches, "
                       "or the data): "
                       "give the same, or start anew without ckpt_path",
                       plan->spec.resume);
    if (meta->seed != (uint64_t)plan->cfg.seed)
        return co_fail(
            CO_EINPUT,
            "checkpoint %s was made with seed=%llu, this run has seed=%lld: give the same, or start "
            "anew without ckpt_path",
            plan->spec.resume, (unsigned long long)meta->seed, (long long)plan->cfg.seed);
    if (strcmp(meta->optim, plan->spec.optim->name) != 0)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with optim=%s, this run has optim=%s: give the same, or start "
                       "anew without ckpt_path",
                       plan->spec.resume, meta->optim, plan->spec.optim->name);
    if (strcmp(meta->kernels, co_kernels_name(plan->kernels)) != 0)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with kernels %s, this run has %s: give trainer.kernels=%.*s",
                       plan->spec.resume, meta->kernels, co_kernels_name(plan->kernels),
                       (int)strcspn(meta->kernels, "."), meta->kernels);
    CO_TRY(co_ckpt_fits(plan->spec.resume, plan->layout, plan->moments, plan->moment_name));
    if (meta->step > plan->units.steps)
        return co_fail(CO_EINPUT,
                       "the checkpoint stands at step %lld, past the %lld steps asked for: raise "
                       "trainer.max_epochs (or trainer.max_steps)",
                       (long long)meta->step, (long long)plan->units.steps);
    return CO_OK;
}
