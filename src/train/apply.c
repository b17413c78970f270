/* apply.c -- the last phase: the optimiser, chunk by chunk, so that a death in the middle of a chunk loses
 * nothing.
 *
 * For each chunk, in this order:
 *     claim      CAS on the chunk's word
 *     aside      if a checkpoint in progress still needs the chunk: copy it aside, or wait (see aside.c)
 *     journal    old bytes (weights, moments, statistics) to the slot's journal, then the journal's mark
 *     update     in place, as the copies before by all threads of the rank's team
 *     done       store to the chunk's word
 *
 * A successor may find a chunk that its slot's dead incarnation had claimed. If the journal's mark names this
 * chunk, the update may have begun, and the successor puts the old bytes back (which can be done any number
 * of times). If not, the state was not touched. In both cases the chunk is now whole and old, and the
 * successor goes on with `aside`.
 */
#include "train/aside_int.h"
#include "train/rank_int.h"

#include <string.h>

#include "base/clock.h"

/* --- chunks of the dense part --------------------------------------------------------------------------- */

float *part_of(const struct rank *rank, int part)
{
    return state_part(rank->regions, part);
}

/* A chunk that the threads of the rank's team work on together. Every element is worked on alone, so that it
 * does not matter where the chunk is cut. */
struct shared_chunk {
    struct rank *rank;
    size_t lo, n;
    const decision *decided;
};

/* Thread ith's elements [from, to) of the state. Cuts lie between entries' first elements: at multiples of
 * 16, as those do. */
static void chunk_share(const struct shared_chunk *chunk, int ith, int nth, size_t *from, size_t *to)
{
    enum { BLOCK = 16 };
    size_t blocks = (chunk->n + BLOCK - 1) / BLOCK, share = (size_t)ith, of = (size_t)nth;
    size_t end = blocks * (share + 1) / of * BLOCK;

    *from = chunk->lo + blocks * share / of * BLOCK;
    *to = chunk->lo + (end < chunk->n ? end : chunk->n);
}

static void run_shares(co_team_fn fn, struct rank *rank, size_t c, const decision *decided)
{
    enum { GRAIN = 8192 }; /* elements that are worth a thread */
    struct shared_chunk chunk = {.rank = rank, .decided = decided};

    chunk.n = chunk_span(rank->plan, c, &chunk.lo);
    size_t worth = chunk.n / GRAIN, most = (size_t)co_team_size(rank->team);
    co_team_run(rank->team, worth < 1 ? 1 : (int)(worth < most ? worth : most), fn, &chunk);
}

static void keep_share(void *ctx, int ith, int nth)
{
    const struct shared_chunk *chunk = ctx;
    const struct rank *rank = chunk->rank;
    size_t from, to;

    chunk_share(chunk, ith, nth, &from, &to);
    for (int part = 0; part <= rank->plan->moments; part++)
        memcpy(rank->regions->journal[rank->who.slot] + (size_t)part * rank->plan->chunk + (from - chunk->lo),
               part_of(rank, part) + from, (to - from) * sizeof(float));
}

static void keep_journal(struct rank *rank, size_t c)
{
    run_shares(keep_share, rank, c, NULL);
}

static void put_back(struct rank *rank, size_t c)
{
    size_t lo, n = chunk_span(rank->plan, c, &lo);

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

void clip(const struct rank *rank, co_apply *given, float scale, size_t at)
{
    float *to = rank->regions->clipped[rank->who.slot] + at, most = (float)rank->plan->recipe.clip_value;

    if (!(most > 0))
        return;
    for (size_t i = 0; i < given->n; i++) {
        float x = given->g[i] * scale;
        to[i] = x > most ? most : x < -most ? -most : x;
    }
    given->g = to;
    given->scale = 1;
}

static void update_param(struct rank *rank, co_apply *given)
{
    clip(rank, given, given->scale, (size_t)(given->w - rank->regions->state) % rank->plan->chunk);
    rank->plan->spec.optim->apply(rank->plan->spec.optim_cfg, given);
}

static void update_share(void *ctx, int ith, int nth)
{
    const struct shared_chunk *chunk = ctx;
    struct rank *rank = chunk->rank;
    const decision *decided = chunk->decided;
    const co_plan *plan = rank->plan;
    size_t lo, hi;

    chunk_share(chunk, ith, nth, &lo, &hi);
    for (int i = 0; i < plan->layout->n; i++) {
        const co_entry *entry = &plan->layout->entry[i];
        size_t from = entry->offset > lo ? entry->offset : lo;
        size_t to = entry->offset + entry->count < hi ? entry->offset + entry->count : hi;
        if (from >= to)
            continue;
        const param_rule *how = &plan->recipe.rule[i];
        co_apply given = {.w = rank->regions->state + from,
                          .g = sum_of(rank, decided->step, ith, from, to),
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
            update_param(rank, &given);
        if (plan->ema >= 0 && entry->kind != CO_KIND_COUNTER)
            co_ema_apply(rank->regions->moment[plan->ema] + from, rank->regions->state + from, to - from,
                         plan->cfg.ema, decided->t);
    }
}

static void update(struct rank *rank, size_t c, const decision *decided)
{
    run_shares(update_share, rank, c, decided);
}

/* --- chunks and pieces ---------------------------------------------------------------------------------- */
/* What is done with a part of the state: a chunk of the dense part, or a piece of a list of rows. */
struct kind {
    void (*put_back)(struct rank *rank, size_t part);
    void (*set_aside)(struct rank *rank, size_t part);
    void (*keep)(struct rank *rank, size_t part); /* to the journal */
    void (*update)(struct rank *rank, size_t part, const decision *decided);
};
static const struct kind chunk_kind = {put_back, copy_aside, keep_journal, update};
static const struct kind rows_kind = {rows_put_back, rows_set_aside, rows_keep, rows_update};

bool holds_all(const struct rank *rank)
{
    return rank->deal.whole >> rank->deal.me & 1;
}

bool holds_part(const struct rank *rank, size_t part)
{
    if (holds_all(rank))
        return true;
    uint64_t from = atomic_load_explicit(&rank->regions->fed[part].word, memory_order_acquire) >> 32;
    return from != 0 && from <= rank->who.unit;
}

/* The i-th part of this step, as a number among the claims: the chunks, then the pieces of all lists. */
static size_t part_number(const struct rank *rank, size_t i)
{
    size_t chunks = rank->plan->chunks;

    return i < chunks ? i : chunks + piece_number(rank, i - chunks);
}

static bool all_applied(struct rank *rank, int64_t parts)
{
    for (size_t i = (size_t)parts; i-- > 0;)
        if (!co_claim_is_done(&rank->regions->apply_claim[part_number(rank, i)], rank->who.unit))
            return false;
    return true;
}

static void apply_part(struct rank *rank, size_t c, bool redo, const decision *decided)
{
    bool dense = c < rank->plan->chunks;
    const struct kind *kind = dense ? &chunk_kind : &rows_kind;
    size_t part = dense ? c : c - rank->plan->chunks;

    if (redo && co_mark_get(&rank->me->journal, rank->who.unit) == (uint32_t)c + 1)
        kind->put_back(rank, part);
    fault_point(rank, CO_FAULT_APPLY);
    kind->set_aside(rank, part);
    fault_point(rank, CO_FAULT_NONE);
    kind->keep(rank, part);
    co_mark_set(&rank->me->journal, rank->who.unit, (uint32_t)c + 1);
    atomic_thread_fence(memory_order_seq_cst); /* the journal's mark is there before the state changes */
    fault_point(rank, CO_FAULT_NONE);
    kind->update(rank, part, decided);
    fault_point(rank, CO_FAULT_NONE);
}

void apply_chunks(struct rank *rank, const decision *decided)
{
    size_t n = rank->plan->chunks + pieces_of_step(rank),
           first = n * rank->who.slot / (size_t)rank->plan->ranks;

    rank->cut = cut_of_step(rank->plan, decided->step); /* from here on the team's threads read it */
    for (size_t i = 0; i < n; i++) {
        size_t c = part_number(rank, (first + i) % n);
        co_claimed got = co_claim_take(&rank->regions->apply_claim[c], rank->who);
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(rank, CO_PHASE_APPLY, (uint32_t)c);
        if (c >= rank->plan->chunks || holds_part(rank, c))
            apply_part(rank, c, got == CO_CLAIM_REDO, decided);
        co_claim_finish(&rank->regions->apply_claim[c], rank->who);
        co_event_ring(&rank->regions->ctl->event);
    }
    uint64_t t0 = co_now_ns();
    wait_for(rank, all_applied, (int64_t)n, CO_PHASE_WAIT);
    rank->spent.idle_ns += co_now_ns() - t0;
}
