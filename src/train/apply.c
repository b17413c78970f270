/* apply.c -- the last phase: the optimiser, chunk by chunk, so that a death in the middle of a chunk loses
 * nothing.
 *
 * For each chunk, in this order:
 *     claim      CAS on the chunk's word
 *     aside      if a checkpoint of this state is being written and still needs the chunk: copy it aside
 *     journal    old bytes (weights, moments, statistics) to the slot's journal, then the journal's mark
 *     update     in place
 *     done       store to the chunk's word
 *
 * A successor may find a chunk that its slot's dead incarnation had claimed. If the journal's mark names this
 * chunk, the update may have begun, and the successor puts the old bytes back (which can be done any number
 * of times). If not, the state was not touched. In both cases the chunk is now whole and old, and the
 * successor goes on with `aside`.
 */
#include "train/rank_int.h"

#include <string.h>

static size_t span(const co_plan *plan, size_t c, size_t *lo)
{
    *lo = c * plan->chunk;
    return *lo + plan->chunk < plan->layout->count ? plan->chunk : plan->layout->count - *lo;
}

/* part 0: weights; 1..: moments */
static float *part_of(const struct rank *rank, int part)
{
    return part == 0 ? rank->regions->state : rank->regions->moment[part - 1];
}

static void set_aside(struct rank *rank, size_t c)
{
    uint64_t snap = atomic_load_explicit(&rank->regions->ctl->snap, memory_order_acquire);
    uint32_t of = (uint32_t)(snap >> 1);
    size_t lo, n = span(rank->plan, c, &lo);

    if (!(snap & 1) || co_mark_get(&rank->regions->aside_mark[c], of) != 0)
        return;
    for (int part = 0; part <= rank->plan->moments; part++)
        memcpy(rank->regions->aside[part] + lo, part_of(rank, part) + lo, n * sizeof(float));
    co_mark_set(&rank->regions->aside_mark[c], of, 1);
    atomic_thread_fence(memory_order_seq_cst); /* the mark is there before the state changes */
}

static void keep_journal(struct rank *rank, size_t c)
{
    size_t lo, n = span(rank->plan, c, &lo);

    for (int part = 0; part <= rank->plan->moments; part++)
        memcpy(rank->regions->journal[rank->who.slot] + (size_t)part * rank->plan->chunk,
               part_of(rank, part) + lo, n * sizeof(float));
    co_mark_set(&rank->me->journal, rank->who.unit, (uint32_t)c + 1);
    atomic_thread_fence(memory_order_seq_cst); /* the journal's mark is there before the state changes */
}

static void put_back(struct rank *rank, size_t c)
{
    size_t lo, n = span(rank->plan, c, &lo);

    if (co_mark_get(&rank->me->journal, rank->who.unit) != (uint32_t)c + 1)
        return;
    for (int part = 0; part <= rank->plan->moments; part++)
        memcpy(part_of(rank, part) + lo,
               rank->regions->journal[rank->who.slot] + (size_t)part * rank->plan->chunk, n * sizeof(float));
}

static void update_stat(const co_entry *entry, float *w, const float *sum, size_t n, const decision *decided)
{
    for (size_t i = 0; i < n; i++)
        w[i] = (1.0f - entry->momentum) * w[i] + entry->momentum * (sum[i] * decided->inv_samples);
}

static void update_counter(float *w)
{
    int64_t v;

    memcpy(&v, w, sizeof v);
    v++;
    memcpy(w, &v, sizeof v);
}

/* Clips each element of the mean gradient to plus or minus clip_value. The result lies in the slot's memory for
 * it. */
static void clip(const struct rank *rank, co_apply *given, float scale)
{
    float *to = rank->regions->clipped[rank->who.slot], most = (float)rank->plan->recipe.clip_value;

    if (!(most > 0))
        return;
    for (size_t i = 0; i < given->n; i++) {
        float x = given->g[i] * scale;
        to[i] = x > most ? most : x < -most ? -most : x;
    }
    given->g = to;
    given->scale = 1;
}

/* Updates elements [from, to) of a row-sparse entry, whose gradient begins at `sum`, row by row; rows without a
 * gradient, which hold -0.0 only and have no mark, are skipped. */
static void update_rows(struct rank *rank, const co_entry *entry, const float *sum, const uint32_t *marks,
                        co_apply *given, size_t from, size_t to)
{
    const co_optim_def *def = rank->plan->spec.optim;
    float scale = given->scale;
    size_t width = entry->count / (size_t)entry->shape.d[0], first = (from - entry->offset) / width;

    for (size_t at = from; at < to;) {
        size_t row = (at - entry->offset) / width, end = entry->offset + (row + 1) * width;
        if (end > to)
            end = to;
        if (marks[row - first]) {
            given->w = rank->regions->state + at;
            given->g = sum + (at - from);
            given->n = end - at;
            for (int j = 0; j < rank->plan->moments; j++)
                given->m[j] = rank->regions->moment[j] + at;
            clip(rank, given, scale);
            def->apply_sparse(rank->plan->spec.optim_cfg, given);
        }
        at = end;
    }
}

static void update_param(struct rank *rank, const co_entry *entry, const uint32_t *marks, co_apply *given,
                         size_t from, size_t to)
{
    if (entry->sparse) {
        update_rows(rank, entry, given->g, marks, given, from, to);
        return;
    }
    clip(rank, given, given->scale);
    rank->plan->spec.optim->apply(rank->plan->spec.optim_cfg, given);
}

/* The marks of the rows of a row-sparse entry that elements [from, to) touch; NULL if it is dense. */
static const uint32_t *marks_of(struct rank *rank, int64_t step, const co_entry *entry, size_t from, size_t to)
{
    if (!entry->sparse)
        return NULL;
    size_t width = entry->count / (size_t)entry->shape.d[0], first = (from - entry->offset) / width,
           last = (to - 1 - entry->offset) / width, n = last - first + 1, lo = entry->marks_offset + first;
    const float *sum = sum_of_chunk(rank, step, lo, lo + n, CO_ADD_MARKS);
    uint32_t *marks = rank->regions->marks[rank->who.slot];

    memcpy(marks, sum, n * sizeof *marks);
    return marks;
}

static void update(struct rank *rank, size_t c, int64_t step, const decision *decided)
{
    const co_plan *plan = rank->plan;
    size_t lo, hi = span(plan, c, &lo);

    hi += lo;
    for (int i = 0; i < plan->layout->n; i++) {
        const co_entry *entry = &plan->layout->entry[i];
        size_t from = entry->offset > lo ? entry->offset : lo;
        size_t to = entry->offset + entry->count < hi ? entry->offset + entry->count : hi;
        if (from >= to)
            continue;
        const param_rule *how = &plan->recipe.rule[i];
        const uint32_t *marks = marks_of(rank, step, entry, from, to);
        co_apply given = {.w = rank->regions->state + from,
                          .g = sum_of_chunk(rank, step, from, to, CO_ADD_VALUES),
                          .n = to - from,
                          .scale = decided->scale,
                          .lr = decided->lr * how->rate,
                          .t = decided->t,
                          .no_decay = how->no_decay,
                          .momentum = decided->momentum};
        for (int j = 0; j < plan->moments; j++)
            given.m[j] = rank->regions->moment[j] + from;
        if (entry->kind == CO_KIND_STAT)
            update_stat(entry, given.w, given.g, given.n, decided);
        else if (entry->kind == CO_KIND_COUNTER)
            update_counter(given.w);
        else if (!how->frozen)
            update_param(rank, entry, marks, &given, from, to);
        if (plan->ema >= 0 && entry->kind != CO_KIND_COUNTER)
            co_ema_apply(rank->regions->moment[plan->ema] + from, rank->regions->state + from, to - from,
                         plan->cfg.ema, decided->t);
    }
}

/* A newcomer applies only to the chunks that it has been given, each from its unit on. */
static bool holds(const struct rank *rank, size_t c)
{
    const co_deal *deal = &rank->deal;

    if (deal->whole >> deal->me & 1)
        return true;
    uint64_t from = atomic_load_explicit(&rank->regions->fed[c].word, memory_order_acquire) >> 32;
    return from != 0 && from <= rank->who.unit;
}

static bool all_applied(struct rank *rank, int64_t step)
{
    (void)step;
    for (size_t c = rank->plan->chunks; c-- > 0;)
        if (!co_claim_is_done(&rank->regions->apply_claim[c], rank->who.unit))
            return false;
    return true;
}

void apply_chunks(struct rank *rank, int64_t step, const decision *decided)
{
    size_t n = rank->plan->chunks, first = n * rank->who.slot / (size_t)rank->plan->ranks;

    for (size_t i = 0; i < n; i++) {
        size_t c = (first + i) % n;
        co_claimed got = co_claim_take(&rank->regions->apply_claim[c], rank->who);
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(rank, CO_PHASE_APPLY, (uint32_t)c);
        if (!holds(rank, c)) {
            co_claim_finish(&rank->regions->apply_claim[c], rank->who);
            co_event_ring(&rank->regions->ctl->event);
            continue;
        }
        if (got == CO_CLAIM_REDO)
            put_back(rank, c);
        fault_point(rank, CO_FAULT_APPLY);
        set_aside(rank, c);
        fault_point(rank, CO_FAULT_NONE);
        keep_journal(rank, c);
        fault_point(rank, CO_FAULT_NONE);
        update(rank, c, step, decided);
        fault_point(rank, CO_FAULT_NONE);
        co_claim_finish(&rank->regions->apply_claim[c], rank->who);
        co_event_ring(&rank->regions->ctl->event);
    }
    wait_for(rank, all_applied, step, CO_PHASE_WAIT);
}
