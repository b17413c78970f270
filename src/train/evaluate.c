/* evaluate.c -- a split cut into items of data.eval_slice samples in order, each claimed by whoever is free; the totals
 * are summed along a fixed tree over the items, so they do not depend on who did what. Nothing of it enters the state. */
#include "train/train_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/maths.h"

co_slice_shape item_samples(const co_plan *p, co_split split, uint32_t item, uint32_t *ids)
{
    uint32_t size = (uint32_t)p->cfg.eval_slice, first = item * size;
    uint32_t n = p->eval_count[split] - first < size ? p->eval_count[split] - first : size;

    for (uint32_t i = 0; i < n; i++)
        ids[i] = first + i;
    return (co_slice_shape){(int)n, co_slice_len(p->data, split, ids, (int)n)};
}

int run_item(const co_plan *p, const exec_set *set, co_split split, uint32_t item, const co_bases *bases,
             _Atomic uint32_t *beat)
{
    uint32_t ids[EVAL_SLICE_MAX];
    co_slice_shape shape = item_samples(p, split, item, ids);
    const shape_exec *e = exec_for(set, shape);
    co_slice_dst dst;

    slice_dst(e, bases->input, &dst);
    int bad = p->data->fill(p->data, split, ids, shape, &(co_draw){.seed = (uint64_t)p->cfg.seed}, &dst);
    co_exec_run(e->exec, bases, &(co_run){.seed = (uint64_t)p->cfg.seed}, beat);
    return bad;
}

void eval_bad_names(const co_plan *p, const leaf_stat *items, co_split split, char *out, size_t room)
{
    enum { NAMED = 3 };
    uint32_t ids[EVAL_SLICE_MAX];
    int named = 0;
    size_t at = 0;

    out[0] = 0;
    for (uint32_t item = 0; item < p->eval_items[split] && named < NAMED && p->data->check; item++) {
        int n = items[item].bad > 0 ? item_samples(p, split, item, ids).n : 0;
        for (int i = 0; i < n && named < NAMED; i++) {
            if (p->data->check(p->data, split, ids[i]) == CO_OK)
                continue;
            int len = snprintf(out + at, room - at, "%s%s", named++ ? "; " : "", co_errmsg());
            at = len < (int)(room - at) ? at + (size_t)len : room - 1;
        }
    }
    co_errclear();
}

void eval_total(const co_plan *p, const leaf_stat *items, co_split split, double total[LEAF_STATS])
{
    for (int i = 0; i < LEAF_STATS; i++)
        total[i] = tree_of((const double *)items + i, LEAF_STATS, p->eval_items[split]);
}

/* The average of the weights is what is evaluated, where there is one. */
static float *state_to_evaluate(const rank *k)
{
    unit u = unit_now(k->p, k->r->ctl, k->who.unit);

    return k->p->ema >= 0 && atomic_load(&k->r->ctl->applied[u.step & 1]) > 0 ? k->r->moment[k->p->ema]
                                                                              : k->r->state;
}

/* The likeliest class of each sample of an item, beside the right one: what accuracy by class is made of. */
static void note_choices(const co_plan *p, uint32_t item, const float *logits, const char *input,
                         int32_t *choice)
{
    uint32_t ids[EVAL_SLICE_MAX] = {0};
    co_slice_shape shape = item_samples(p, CO_SPLIT_TEST, item, ids);
    const int32_t *y = (const int32_t *)(const void *)(input + exec_for(&p->eval, shape)->y); /* [n] */
    int64_t classes = p->data->io.classes;

    for (int i = 0; i < shape.n; i++) {
        const float *row = logits + i * classes; /* [classes] */
        int64_t top = 0;
        for (int64_t c = 1; c < classes; c++)
            top = row[c] > row[top] ? c : top;
        choice[2 * ids[i]] = (int32_t)top;
        choice[2 * ids[i] + 1] = y[i];
    }
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
        bool choices = split == CO_SPLIT_TEST && k->r->choice;
        co_bases bases = {.state = state_to_evaluate(k),
                          .input = k->r->eval_input[k->who.slot],
                          .work = k->work,
                          .stat = k->r->eval_stat[split][i].stat,
                          .output = choices ? k->r->eval_output[k->who.slot] : NULL,
                          .work_bytes = k->work_bytes};
        int bad = run_item(k->p, &k->p->eval, split, i, &bases, &k->me->record.call);
        k->r->eval_stat[split][i].bad = bad < 0 ? LOST : bad;
        if (choices)
            note_choices(k->p, i, bases.output, bases.input, k->r->choice);
        fault_point(k, CO_FAULT_NONE);
        co_claim_finish(&k->r->eval_claim[i], k->who);
        co_event_ring(&k->r->ctl->event);
    }
    wait_for(k, all_evaluated, split, CO_PHASE_WAIT);
}

/* --- in this process alone: `cohort test` and `cohort predict` ------------------------------------------------------- */
static size_t whole_lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* The average that the checkpoint holds, in place of the weights. */
static co_err load_average(const co_plan *p, float *state)
{
    const char *names[CO_MAX_MOMENTS];
    float *moment[CO_MAX_MOMENTS] = {0};
    int n = p->spec.optim->moments(p->spec.optim_cfg, names);
    co_err err = CO_OK;

    names[n++] = CO_CKPT_AVERAGE;
    for (int i = 0; i < n && !err; i++)
        if (!(moment[i] = co_array(p->layout->count, sizeof *moment[i])))
            err = CO_ENOMEM;
    if (!err)
        err = co_ckpt_load(p->spec.resume, p->layout, state, n, names, moment, NULL);
    for (int i = 0; i < p->layout->n && !err && p->start.applied > 0; i++) {
        const co_entry *e = &p->layout->entry[i];
        if (e->kind != CO_KIND_COUNTER)
            memcpy(state + e->offset, moment[n - 1] + e->offset, e->count * sizeof *state);
    }
    for (int i = 0; i < n; i++)
        co_free(moment[i]);
    return err;
}

co_err look_open(look *l, co_plan *p, const exec_set *set)
{
    size_t input = whole_lines(set->input_bytes), output = whole_lines(set->output_bytes);
    co_err err;

    *l = (look){.space = p->kernels->space, .state = co_array(p->layout->count, sizeof *l->state)};
    l->buffers = co_zalloc(64 + input + output + (l->space ? 0 : set->work_bytes));
    if (!l->state || !l->buffers)
        return CO_ENOMEM;
    char *at = (char *)(((uintptr_t)l->buffers + 63) & ~(uintptr_t)63);
    l->bases = (co_bases){.state = l->state,
                          .input = at,
                          .output = set->output_bytes ? at + input : NULL,
                          .work = at + input + output,
                          .work_bytes = set->work_bytes};
    if (l->space && (err = l->space->open(&l->far, set->work_bytes)))
        return err;
    if (l->space)
        l->bases.work = l->far;
    co_fpu_init();
    if (p->spec.resume && p->cfg.ema > 0)
        return load_average(p, l->state);
    if (p->spec.resume)
        return co_ckpt_load(p->spec.resume, p->layout, l->state, 0, NULL, NULL, NULL);
    return first_state(p, l->state);
}

void look_close(look *l)
{
    if (l->far)
        l->space->close(l->far, l->bases.work_bytes);
    co_free(l->buffers);
    co_free(l->state);
}

static co_err evaluate_all(co_plan *p, look *l, co_split split, leaf_stat *stats, co_eval_result *out)
{
    double total[LEAF_STATS];

    for (uint32_t i = 0; i < p->eval_items[split]; i++) {
        l->bases.stat = stats[i].stat;
        stats[i].bad = run_item(p, &p->eval, split, i, &l->bases, NULL);
        if (stats[i].bad < 0)
            return lost_file();
        if (p->choice && split == CO_SPLIT_TEST)
            note_choices(p, i, l->bases.output, l->bases.input, p->choice);
    }
    eval_total(p, stats, split, total);
    *out = (co_eval_result){.step = p->start.step,
                            .epoch = p->start.epoch,
                            .split = split,
                            .loss = total[CO_STAT_LOSS] / total[CO_STAT_COUNT],
                            .metric = total[CO_STAT_METRIC] / total[CO_STAT_COUNT],
                            .top5 = total[CO_STAT_TOP5] / total[CO_STAT_COUNT],
                            .bad = (int64_t)total[STAT_BAD],
                            .count = (int64_t)total[CO_STAT_COUNT]};
    eval_bad_names(p, stats, split, out->bad_names, sizeof out->bad_names);
    if (must_stop_eval(p, total[STAT_BAD], total[CO_STAT_COUNT]))
        return co_fail(CO_EINPUT, "%lld of the %u samples to %s on could not be read: %s", (long long)out->bad,
                       p->eval_count[split], split == CO_SPLIT_TEST ? "test" : "validate", out->bad_names);
    return CO_OK;
}

co_err lost_file(void)
{
    return co_fail(
        CO_EIO, "a file of the data could be read before and cannot be read now: is the disk still there?");
}

co_err no_samples(const co_plan *p, co_split split)
{
    bool test = split == CO_SPLIT_TEST;
    return co_fail(CO_EINPUT, "data=%s has no samples to %s on; --split %s takes the others",
                   p->spec.data->name, test ? "test" : "validate", test ? "val" : "test");
}

co_err co_evaluate(co_plan *p, co_split split, co_eval_result *out, char weights_sha256[65])
{
    uint32_t items = p->eval_items[split];
    look l = {0};

    if (items == 0)
        return no_samples(p, split);
    leaf_stat *stats = co_array(items, sizeof *stats);
    co_err err = stats ? look_open(&l, p, &p->eval) : CO_ENOMEM;
    if (!err)
        err = co_layout_sha256(p->layout, l.state, weights_sha256);
    if (!err && split == CO_SPLIT_TEST && p->data->io.task == CO_TASK_CLASSIFY && !p->choice &&
        !(p->choice = co_array(2 * (size_t)p->eval_count[split], sizeof *p->choice)))
        err = CO_ENOMEM;
    if (!err)
        err = evaluate_all(p, &l, split, stats, out);
    look_close(&l);
    co_free(stats);
    return err;
}
