/* offline.c -- evaluation in this process alone, without ranks: `cohort test` and `cohort predict`. */
#include "train/evaluate_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/maths.h"
#include "ckpt/ckpt.h"

static size_t whole_lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Loads the average of the weights that the checkpoint holds, instead of the weights. */
static co_err load_average(const co_plan *plan, float *state)
{
    const char *names[CO_MAX_MOMENTS];
    float *moment[CO_MAX_MOMENTS] = {0};
    int n = plan->spec.optim->moments(plan->spec.optim_cfg, names);
    co_err err = CO_OK;

    names[n++] = CO_CKPT_AVERAGE;
    for (int i = 0; i < n && !err; i++)
        if (!(moment[i] = co_array(plan->layout->count, sizeof *moment[i])))
            err = CO_ENOMEM;
    if (!err)
        err = co_ckpt_load(plan->spec.resume, plan->layout, state, n, names, moment, NULL);
    for (int i = 0; i < plan->layout->n && !err && plan->start.applied > 0; i++) {
        const co_entry *entry = &plan->layout->entry[i];
        if (entry->kind != CO_KIND_COUNTER)
            memcpy(state + entry->offset, moment[n - 1] + entry->offset, entry->count * sizeof *state);
    }
    for (int i = 0; i < n; i++)
        co_free(moment[i]);
    return err;
}

co_err offline_open(struct offline *offline, co_plan *plan, const exec_set *set)
{
    size_t input = whole_lines(set->input_bytes), output = whole_lines(set->output_bytes);
    co_err err;

    *offline = (struct offline){.space = plan->kernels->space,
                                .state = co_array(plan->layout->count, sizeof *offline->state)};
    offline->buffers = co_zalloc(64 + input + output + (offline->space ? 0 : set->work_bytes));
    if (!offline->state || !offline->buffers)
        return CO_ENOMEM;
    char *at = (char *)(((uintptr_t)offline->buffers + 63) & ~(uintptr_t)63);
    offline->bases = (co_bases){.state = offline->state,
                                .input = at,
                                .output = set->output_bytes ? at + input : NULL,
                                .work = at + input + output,
                                .work_bytes = set->work_bytes};
    if (offline->space && (err = offline->space->open(&offline->far, set->work_bytes)))
        return err;
    if (offline->space)
        offline->bases.work = offline->far;
    co_fpu_init();
    if (plan->spec.resume && plan->cfg.ema > 0)
        return load_average(plan, offline->state);
    if (plan->spec.resume)
        return co_ckpt_load(plan->spec.resume, plan->layout, offline->state, 0, NULL, NULL, NULL);
    return first_state(plan, offline->state);
}

void offline_close(struct offline *offline)
{
    if (offline->far)
        offline->space->close(offline->far, offline->bases.work_bytes);
    co_free(offline->buffers);
    co_free(offline->state);
}

static co_err evaluate_all(co_plan *plan, struct offline *offline, co_split split, leaf_stat *stats,
                           co_eval_result *out)
{
    double total[LEAF_STATS];

    for (uint32_t i = 0; i < plan->eval_items[split]; i++) {
        offline->bases.stat = stats[i].stat;
        stats[i].bad = run_item(plan, &plan->eval, split, i, &offline->bases, NULL);
        if (stats[i].bad < 0)
            return co_dataset_lost();
        if (plan->choice && split == CO_SPLIT_TEST)
            note_choices(plan, split, i, offline->bases.output, offline->bases.input,
                         plan->choice + 2 * i * (size_t)plan->cfg.eval_slice);
    }
    eval_total(plan, stats, split, total);
    *out = (co_eval_result){.step = plan->start.step,
                            .epoch = plan->start.epoch,
                            .split = split,
                            .loss = total[CO_STAT_LOSS] / total[CO_STAT_COUNT],
                            .metric = total[CO_STAT_METRIC] / total[CO_STAT_COUNT],
                            .top5 = total[CO_STAT_TOP5] / total[CO_STAT_COUNT],
                            .bad = (int64_t)total[STAT_BAD],
                            .count = (int64_t)total[CO_STAT_COUNT]};
    eval_bad_names(plan, stats, split, out->bad_names, sizeof out->bad_names);
    if (must_stop_eval(plan, total[STAT_BAD], total[CO_STAT_COUNT]))
        return co_fail(CO_EINPUT, "%lld of the %u samples to %s on could not be read: %s", (long long)out->bad,
                       plan->eval_count[split], split == CO_SPLIT_TEST ? "test" : "validate", out->bad_names);
    return CO_OK;
}

co_err no_samples(const co_plan *plan, co_split split)
{
    bool test = split == CO_SPLIT_TEST;

    if (plan->data->count[CO_SPLIT_VAL] == 0 && plan->data->count[CO_SPLIT_TEST] == 0)
        return co_fail(CO_EINPUT, "data=%s has nothing to validate or test with", plan->spec.data->name);
    return co_fail(CO_EINPUT, "data=%s has no samples to %s on; --split %s takes the others",
                   plan->spec.data->name, test ? "test" : "validate", test ? "val" : "test");
}

co_err co_evaluate(co_plan *plan, co_split split, co_eval_result *out, char weights_sha256[65])
{
    uint32_t items = plan->eval_items[split];
    struct offline offline = {0};

    if (items == 0)
        return no_samples(plan, split);
    leaf_stat *stats = co_array(items, sizeof *stats);
    co_err err = stats ? offline_open(&offline, plan, &plan->eval) : CO_ENOMEM;
    if (!err)
        err = co_layout_sha256(plan->layout, offline.state, weights_sha256);
    if (!err && split == CO_SPLIT_TEST && plan->data->io.task == CO_TASK_CLASSIFY && !plan->choice &&
        !(plan->choice = co_array(2 * (size_t)plan->eval_count[split], sizeof *plan->choice)))
        err = CO_ENOMEM;
    if (!err)
        err = evaluate_all(plan, &offline, split, stats, out);
    offline_close(&offline);
    co_free(stats);
    return err;
}
