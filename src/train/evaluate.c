/* evaluate.c -- a split cut into items of data.eval_slice samples in order, each claimed by whoever is free; the totals
 * are summed along a fixed tree over the items, so they do not depend on who did what. Nothing of it enters the state. */
#include "train/train_int.h"

#include "base/alloc.h"
#include "base/maths.h"

void evaluate_item(const co_plan *p, const float *state, co_split split, uint32_t item, char *input,
                   char *work, size_t work_bytes, leaf_stat *out, _Atomic uint32_t *beat)
{
    uint32_t ids[4096], size = (uint32_t)p->cfg.eval_slice, first = item * size;
    uint32_t n = p->data->count[split] - first < size ? p->data->count[split] - first : size;
    co_slice_dst dst;

    for (uint32_t i = 0; i < n; i++)
        ids[i] = first + i;
    co_slice_shape shape = {(int)n, co_slice_len(p->data, split, ids, (int)n)};
    const shape_exec *e = exec_for(&p->eval, shape);
    slice_dst(e, input, &dst);
    p->data->fill(p->data, split, ids, shape, &dst);
    co_exec_run(e->exec,
                &(co_bases){.state = (void *)(uintptr_t)state,
                            .input = input,
                            .work = work,
                            .stat = out->stat,
                            .work_bytes = work_bytes},
                &(co_run){.seed = (uint64_t)p->cfg.seed}, beat);
}

static double tree_of_items(const leaf_stat *s, int which, uint32_t n)
{
    if (n == 1)
        return s->stat[which];
    uint32_t left = 1u << (31 - __builtin_clz(n - 1));
    return tree_of_items(s, which, left) + tree_of_items(s + left, which, n - left);
}

void eval_total(const co_plan *p, const leaf_stat *items, co_split split, double total[CO_STATS])
{
    for (int i = 0; i < CO_STATS; i++)
        total[i] = tree_of_items(items, i, p->eval_items[split]);
}

static bool all_evaluated(rank *k, int64_t split)
{
    for (uint32_t i = k->p->eval_items[split]; i-- > 0;)
        if (!co_claim_is_done(&k->r->eval_claim[i], k->who.unit))
            return false;
    return true;
}

void evaluate_items(rank *k, co_split split)
{
    for (uint32_t i = 0; i < k->p->eval_items[split]; i++) {
        co_claimed got = co_claim_take(&k->r->eval_claim[i], k->who);
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(k, CO_PHASE_EVAL, i);
        fault_point(k, CO_FAULT_EVAL);
        evaluate_item(k->p, k->r->state, split, i, k->r->eval_input[k->who.slot], k->work, k->work_bytes,
                      &k->r->eval_stat[i], &k->me->record.call);
        co_claim_finish(&k->r->eval_claim[i], k->who);
        co_event_ring(&k->r->ctl->event);
    }
    wait_for(k, all_evaluated, split, CO_PHASE_WAIT);
}

/* --- in this process alone: `cohort test` ------------------------------------------------------------------------- */
co_err co_evaluate(co_plan *p, co_split split, co_eval_result *out, char weights_sha256[65])
{
    const co_space_ops *space = p->kernels->space;
    size_t n = p->layout->count, work_bytes = p->eval.work_bytes;
    uint32_t items = p->eval_items[split];
    co_err err = CO_ENOMEM;

    if (items == 0)
        return co_fail(CO_EINPUT, "data=%s has no samples in that split", p->spec.data->name);
    float *state = co_array(n, sizeof *state);
    char *input = co_zalloc(p->eval.input_bytes + 64), *work = space ? NULL : co_zalloc(work_bytes + 64);
    leaf_stat *stats = co_array(items, sizeof *stats);
    void *far = NULL;
    if (!state || !input || (!space && !work) || !stats)
        goto out;
    if (space && (err = space->open(&far, work_bytes)))
        goto out;
    co_fpu_init();
    if (p->spec.resume)
        err = co_ckpt_load(p->spec.resume, p->layout, state, 0, NULL, NULL, &p->start);
    else
        co_layout_initialise(p->layout, state, (uint64_t)p->cfg.seed), err = CO_OK;
    if (err)
        goto out;
    for (uint32_t i = 0; i < items; i++)
        evaluate_item(p, state, split, i, (char *)(((uintptr_t)input + 63) & ~(uintptr_t)63),
                      space ? far : (char *)(((uintptr_t)work + 63) & ~(uintptr_t)63), work_bytes, &stats[i],
                      NULL);
    double total[CO_STATS];
    eval_total(p, stats, split, total);
    *out = (co_eval_result){.step = p->start.step,
                            .epoch = p->start.epoch,
                            .split = split,
                            .loss = total[CO_STAT_LOSS] / total[CO_STAT_COUNT],
                            .metric = total[CO_STAT_METRIC] / total[CO_STAT_COUNT],
                            .count = (int64_t)total[CO_STAT_COUNT]};
    err = co_layout_sha256(p->layout, state, weights_sha256);
out:
    if (far)
        space->close(far, work_bytes);
    co_free(stats);
    co_free(work);
    co_free(input);
    co_free(state);
    return err;
}
