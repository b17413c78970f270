/* lengths.c -- how much a run does: the steps of an epoch and of the run, when it validates, and on how many
 * samples. */
#include "train/plan_int.h"

#include <string.h>

#include "base/str.h"

/* The text was checked: a whole number, or a fraction with a point. A fraction above 0 is one batch or
 * more. */
static int64_t limit_batches(const char *text, int64_t all)
{
    long long n;
    double f = 1;

    if (co_str_to_i64(text, &n))
        return n < all ? n : all;
    co_str_to_f64(text, &f);
    return (int64_t)((double)all * f) < 1 && f > 0 ? 1 : (int64_t)((double)all * f);
}

/* trainer.val_check_interval: steps between two evaluations of an epoch, from a number of them or a
 * fraction. */
static co_err eval_gap(const co_plan *plan, int64_t per_epoch, int64_t *out)
{
    const char *text = plan->cfg.val_check_interval ? plan->cfg.val_check_interval : "1.0";
    bool whole_run = plan->cfg.eval_every < 0;
    long long n;
    double f;

    if (plan->cfg.fast_dev_run)
        *out = per_epoch;
    else if (co_str_to_i64(text, &n) && n >= 1)
        *out = n;
    else if (!whole_run && strchr(text, '.') && co_str_to_f64(text, &f) && f > 0 && f <= 1)
        *out = (int64_t)((double)per_epoch * f) < 1 ? 1 : (int64_t)((double)per_epoch * f);
    else if (whole_run)
        return co_fail(
            CO_EINPUT,
            "trainer.val_check_interval: \"%s\" is not a number of steps, which trainer.eval_every=-1 "
            "(check_val_every_n_epoch=null) needs",
            text);
    else
        return co_fail(
            CO_EINPUT,
            "trainer.val_check_interval: \"%s\" is not a number of steps (500) or a fraction of an "
            "epoch with a point (0.25)",
            text);
    if (!whole_run && *out > per_epoch)
        return co_fail(
            CO_EINPUT,
            "trainer.val_check_interval=%lld is more than the %lld steps of an epoch: give fewer, or "
            "trainer.eval_every=-1 (check_val_every_n_epoch=null) to count steps over the whole run",
            (long long)*out, (long long)per_epoch);
    return CO_OK;
}

/* When the validation split is evaluated. As in Lightning, steps are counted anew in each epoch. */
static co_err choose_evals(co_plan *plan, int64_t per_epoch)
{
    unit_order *order = &plan->units;
    int64_t every = plan->cfg.eval_every, gap = 0;

    CO_TRY(eval_gap(plan, per_epoch, &gap));
    if (every == 0 || plan->eval_count[CO_SPLIT_VAL] == 0)
        return CO_OK;
    order->gap = gap;
    order->cycle = every < 0 ? gap : every * per_epoch;
    order->per_cycle = every < 0 ? 1 : per_epoch / gap;
    order->first = every < 0 ? gap : order->cycle - per_epoch + gap;
    return CO_OK;
}

/* Does the schedule's rate depend on how many steps the run has? Asked of its formula itself. */
static bool schedule_uses_length(const co_plan *plan)
{
    const co_schedule_def *def = plan->spec.schedule;
    co_pace shorter = {.step = 500, .steps = 1000, .steps_per_epoch = 10, .drop = 1}, longer = shorter;

    longer.steps = 4000;
    return def && def->lr(plan->spec.schedule_cfg, 1, &shorter) != def->lr(plan->spec.schedule_cfg, 1, &longer);
}

/* max_epochs or max_steps, whichever comes first; without either, as many steps as can be counted. */
static co_err limit_steps(co_plan *plan, int64_t per_epoch)
{
    const int64_t most = UINT32_MAX / 4, epochs = plan->cfg.max_epochs, steps = plan->cfg.max_steps;
    int64_t *out = &plan->units.steps;

    if (epochs == 0 || steps == 0)
        return check_limit(epochs == 0 ? "trainer.max_epochs" : "trainer.max_steps", "0");
    *out = epochs > 0 ? per_epoch * epochs : INT64_MAX;
    if (steps >= 0 && steps < *out)
        *out = steps;
    plan->facts.endless = *out == INT64_MAX;
    plan->facts.schedule_spans = schedule_uses_length(plan);
    if (plan->facts.endless && plan->facts.schedule_spans)
        return co_fail(CO_EINPUT, "schedule=%s needs an end: give trainer.max_epochs or trainer.max_steps",
                       plan->spec.schedule->name);
    if (plan->facts.endless)
        *out = most;
    if (*out > most)
        return co_fail(CO_EINPUT, "%lld steps are more than this version counts", (long long)*out);
    return CO_OK;
}

co_err choose_steps(co_plan *plan)
{
    int64_t count = plan->data->count[CO_SPLIT_TRAIN], batch = plan->batch;
    int64_t all = (count + batch - 1) / batch, per_epoch = all;
    unit_order *order = &plan->units;

    if (count < 1)
        return co_fail(CO_EINPUT, "data=%s has no training samples", plan->spec.data->name);
    CO_TRY(check_train_batches("trainer.limit_train_batches", plan->cfg.limit_train_batches));
    per_epoch = limit_batches(plan->cfg.limit_train_batches, all);
    if (plan->cfg.overfit_batches)
        per_epoch = plan->cfg.overfit_batches < all ? plan->cfg.overfit_batches : all;
    if (plan->cfg.fast_dev_run)
        per_epoch = plan->cfg.max_epochs = 1;
    plan->short_n = per_epoch == all ? (uint32_t)(count % batch) : 0;
    order->steps_per_epoch = per_epoch;
    CO_TRY(limit_steps(plan, per_epoch));
    CO_TRY(choose_evals(plan, per_epoch));
    order->final_test = plan->cfg.test && plan->eval_count[CO_SPLIT_TEST];
    order->first_step = plan->start.step;
    if (plan->cfg.max_time)
        CO_TRY(parse_duration(plan->cfg.max_time, &plan->max_time_ns));
    return CO_OK;
}

/* How many samples of a split are evaluated. The limit counts batches of data.eval_batch_size; without
 * it, of the run's size, also when only a checkpoint is evaluated. */
static co_err limit_eval(co_plan *plan, co_split split, const char *key, const char *text)
{
    int64_t count = plan->data->count[split], n;
    int64_t size = plan->cfg.eval_batch_size      ? plan->cfg.eval_batch_size
                   : plan->batch                  ? plan->batch
                   : plan->start.global_batch > 0 ? plan->start.global_batch
                                                  : plan->cfg.batch_size;

    CO_TRY(check_eval_batches(key, text));
    n = limit_batches(text, (count + size - 1) / size);
    if (plan->cfg.fast_dev_run)
        n = 1;
    plan->eval_count[split] = (uint32_t)(n * size < count ? n * size : count);
    return CO_OK;
}

co_err choose_eval(co_plan *plan)
{
    CO_TRY(limit_eval(plan, CO_SPLIT_VAL, "trainer.limit_val_batches", plan->cfg.limit_val_batches));
    return limit_eval(plan, CO_SPLIT_TEST, "trainer.limit_test_batches", plan->cfg.limit_test_batches);
}
