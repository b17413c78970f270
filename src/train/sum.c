/* sum.c -- the second phase: what the slots hold, added along the tree into the sum, chunk by chunk; and the norm and
 * finite flag of each chunk. Chunks are claimed by whoever is free. Sources stay untouched, so a torn chunk is done
 * again. Then every rank decides by itself, from the same bytes, the same thing. */
#include "train/train_int.h"

#include "base/clock.h"
#include "base/maths.h"

#include <math.h>

static const float *buffer_of(void *ctx, int slot, int i)
{
    const rank *k = ctx;

    return leaf_buffer_of(k->p, k->r, slot, i);
}

/* Squares of the trained parameters' part of elements [lo, hi); running statistics only have to be finite. */
static chunk_stat measure(const co_plan *p, const float *sum, size_t lo, size_t hi)
{
    const co_layout *l = p->layout;
    double squares = 0;
    bool finite = true;

    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[i];
        size_t from = e->offset > lo ? e->offset : lo;
        size_t to = e->offset + e->count < hi ? e->offset + e->count : hi;
        if (from >= to || e->kind == CO_KIND_COUNTER || p->treat[i].frozen)
            continue;
        double s = co_sum_squares(sum + from, to - from, &finite);
        if (e->kind == CO_KIND_PARAM)
            squares += s;
    }
    return (chunk_stat){squares, finite};
}

static void sum_chunk(rank *k, int64_t step, size_t c)
{
    const co_plan *p = k->p;
    const co_tree *t = &p->tree[cut_of_step(p, step)];
    bool marks = c == p->chunks;
    size_t lo = marks ? p->layout->count : c * p->chunk;
    size_t hi = marks                              ? p->layout->leaf_count
                : lo + p->chunk < p->layout->count ? lo + p->chunk
                                                   : p->layout->count;
    int slot, i;

    if (!co_tree_root(t, &slot, &i))
        for (size_t at = lo; at < hi; at += p->chunk) /* the marks may be longer than a chunk's scratch */
            co_tree_sum(t, marks ? CO_ADD_MARKS : CO_ADD_VALUES, at, at + p->chunk < hi ? at + p->chunk : hi,
                        buffer_of, k, k->r->sum, k->r->scratch[k->who.slot]);
    if (!marks)
        k->r->norm[step & 1][c] = measure(p, sum_of_step(p, k->r, step), lo, hi);
}

static size_t chunks_to_sum(const co_plan *p)
{
    return p->chunks + (p->sparse ? 1 : 0);
}

static bool all_summed(rank *k, int64_t step)
{
    (void)step;
    for (size_t c = chunks_to_sum(k->p); c-- > 0;)
        if (!co_claim_is_done(&k->r->sum_claim[c], k->who.unit))
            return false;
    return true;
}

void sum_chunks(rank *k, int64_t step)
{
    size_t n = chunks_to_sum(k->p), first = n * k->who.slot / (size_t)k->p->ranks;

    for (size_t i = 0; i < n; i++) {
        size_t c = (first + i) % n;
        co_claimed got = co_claim_take(&k->r->sum_claim[c], k->who);
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(k, CO_PHASE_SUM, (uint32_t)c);
        fault_point(k, CO_FAULT_SUM);
        sum_chunk(k, step, c);
        fault_point(k, CO_FAULT_NONE);
        co_claim_finish(&k->r->sum_claim[c], k->who);
        co_event_ring(&k->r->ctl->event);
    }
    wait_for(k, all_summed, step, CO_PHASE_WAIT);
}

double tree_of(const double *x, size_t stride, size_t n)
{
    if (n == 1)
        return *x;
    size_t left = (size_t)1 << (63 - __builtin_clzll(n - 1)); /* largest power of two below n */
    return tree_of(x, stride, left) + tree_of(x + left * stride, stride, n - left);
}

/* Leaves without samples count as zero; their places hold another step's numbers. */
static double tree_of_leaves(const rank *k, int64_t step, int which, int from, int n)
{
    uint32_t lo, hi;

    if (n > 1)
        return tree_of_leaves(k, step, which, from, n / 2) +
               tree_of_leaves(k, step, which, from + n / 2, n / 2);
    co_cut_range(&k->p->tree[cut_of_step(k->p, step)].cut, from, &lo, &hi);
    const double *stat = (const double *)&k->r->leaf[step & 1][from];
    return lo < hi ? stat[which] : 0;
}

static int first_not_finite(const rank *k, int64_t step)
{
    const co_cut *cut = &k->p->tree[cut_of_step(k->p, step)].cut;

    for (int i = 0; i < k->p->slices; i++) {
        uint32_t lo, hi;
        co_cut_range(cut, i, &lo, &hi);
        if (lo < hi && !isfinite(k->r->leaf[step & 1][i].stat[CO_STAT_LOSS]))
            return i;
    }
    return -1;
}

/* The step's learning rate and momentum. */
static void pace(const rank *k, int64_t step, decision *d)
{
    const co_plan *p = k->p;
    const co_schedule_def *def = p->spec.schedule;
    co_pace at = {
        .step = step - 1, .steps = p->sched.steps, .steps_per_epoch = p->sched.steps_per_epoch, .drop = 1};

    d->lr = p->lr;
    if (!def)
        return;
    if (def->watches)
        at.drop = watch_get(k->r->ctl->watch[evals_before(&p->sched, step) & 1]).plateau.drop;
    d->lr = co_schedule_lr(def, p->spec.schedule_cfg, p->lr, p->warmup, p->cfg.warmup_start, &at);
    d->momentum = co_schedule_momentum(def, p->spec.schedule_cfg, p->warmup, &at);
}

void decide(const rank *k, int64_t step, decision *d)
{
    const co_plan *p = k->p;
    const chunk_stat *norm = k->r->norm[step & 1];
    double loss = tree_of_leaves(k, step, CO_STAT_LOSS, 0, p->slices);
    double count = tree_of_leaves(k, step, CO_STAT_COUNT, 0, p->slices);
    double right = tree_of_leaves(k, step, CO_STAT_METRIC, 0, p->slices);
    double inv = count > 0 ? 1.0 / count : 0;
    double squares = tree_of(&norm[0].squares, sizeof *norm / sizeof(double), p->chunks);

    *d = (decision){.loss = loss * inv, .metric = right * inv, .count = count, .slice = -1};
    d->top5 = tree_of_leaves(k, step, CO_STAT_TOP5, 0, p->slices) * inv;
    d->bad = tree_of_leaves(k, step, STAT_BAD, 0, p->slices);
    pace(k, step, d);
    d->norm = sqrt(squares) * inv;
    d->finite = isfinite(loss) && isfinite(d->norm);
    for (size_t c = 0; c < p->chunks; c++)
        d->finite = d->finite && norm[c].finite;
    if (!d->finite)
        d->slice = first_not_finite(k, step);
    d->scale = (float)(inv * co_clip_factor(d->norm, p->clip_norm));
    d->inv_samples = (float)(1.0 / samples_of_step(p, step));
    d->apply = d->finite && count > 0 && !must_stop(p, d->bad);
    d->t = atomic_load_explicit(&k->r->ctl->applied[(step - 1) & 1], memory_order_relaxed) + d->apply;
}
