/* sum.c -- the second phase of a step: adds the slots' partial sums along the tree, chunk by chunk, and
 * measures each chunk: its squares, and whether all its numbers are finite.
 *
 * Any free rank claims the next chunk. The partial sums are only read, so a chunk whose rank died is simply
 * summed again. On one host the sum is not kept: whoever applies a chunk adds it up again, with the same bits.
 * Several hosts exchange it (exchange.c), and each keeps the whole.
 */
#include "train/rank_int.h"

#include "base/clock.h"
#include "base/maths.h"

#include <math.h>
#include <string.h>

static const float *buffer_of(void *ctx, int slot, int i)
{
    const struct rank *rank = ctx;

    return leaf_buffer_of(rank->plan, rank->regions, slot, i);
}

static const float *given_piece(void *ctx, int level, int index, size_t lo)
{
    const struct rank *rank = ctx;

    return co_exchange_piece(&rank->deal, &rank->plan->cut[rank->cut], &rank->regions->wire, level, index, lo);
}

/* Elements [lo, hi) of a node of this step's tree; at most as many as a chunk has. Thread `ith` of the rank has its own
 * place in scratch. */
static const float *node(struct rank *rank, int ith, int level, int index, size_t lo, size_t hi)
{
    const co_plan *plan = rank->plan;
    const co_sources from = {buffer_of, plan->hosts > 1 ? given_piece : NULL, rank};
    size_t levels = (size_t)__builtin_ctz((unsigned)plan->slices) + 1;

    return co_tree_node(&rank->tree[rank->cut], level, index, lo, hi, &from,
                        rank->regions->scratch[rank->who.slot] + (size_t)ith * levels * plan->chunk);
}

const float *sum_of(struct rank *rank, int64_t step, int ith, size_t lo, size_t hi)
{
    int cut = cut_of_step(rank->plan, step);

    if (rank->cut != cut)
        rank->cut = cut;
    if (rank->plan->hosts > 1)
        return rank->regions->sum + lo;
    return node(rank, ith, __builtin_ctz((unsigned)rank->plan->slices), 0, lo, hi);
}

/* The squares of elements [from, to) of the sum. They are added up a piece at a time, which is measured while it is in
 * the first cache. */
static double squares_of(struct rank *rank, int64_t step, int ith, size_t from, size_t to, bool *finite)
{
    enum { PIECE = 2048 };
    co_squares squares = {0};

    for (size_t at = from, n; at < to; at += n) {
        n = to - at < PIECE ? to - at : PIECE;
        co_squares_add(&squares, sum_of(rank, step, ith, at, at + n), n);
    }
    return co_squares_total(&squares, finite);
}

/* Elements [lo, hi) of the sum. Only trained parameters count for the norm; running statistics must be finite too. */
static chunk_stat measure(struct rank *rank, int64_t step, int ith, size_t lo, size_t hi)
{
    const co_layout *layout = rank->plan->layout;
    double squares = 0;
    bool finite = true;

    for (int i = 0; i < layout->n; i++) {
        const co_entry *entry = &layout->entry[i];
        size_t from = entry->offset > lo ? entry->offset : lo;
        size_t to = entry->offset + entry->count < hi ? entry->offset + entry->count : hi;
        if (from >= to || entry->kind == CO_KIND_COUNTER || rank->plan->recipe.rule[i].frozen)
            continue;
        double s = squares_of(rank, step, ith, from, to, &finite);
        if (entry->kind == CO_KIND_PARAM)
            squares += s;
    }
    return (chunk_stat){squares, finite};
}

/* Adds up an own chunk. Only final bytes are written to the sum. */
static void combine(struct rank *rank, int ith, size_t lo, size_t n)
{
    const float *sum = node(rank, ith, __builtin_ctz((unsigned)rank->plan->slices), 0, lo, lo + n);

    memcpy(rank->regions->sum + lo, sum, n * sizeof *sum);
}

static void sum_chunk(struct rank *rank, int64_t step, int ith, size_t c)
{
    const co_plan *plan = rank->plan;
    const co_deal *deal = &rank->deal;
    size_t lo, n;

    if (c >= plan->chunks) {
        sum_rows(rank, step, (int)(c - plan->chunks));
        return;
    }
    n = chunk_span(plan, c, &lo);
    if (plan->hosts > 1 && !(rank->pc & PC_READY) && co_deal_owner(deal, c, plan->chunks) == deal->me)
        combine(rank, ith, lo, n);
    rank->regions->norm[step & 1][c] = measure(rank, step, ith, lo, lo + n);
    if (gradients_due(plan, step))
        gradients_count(plan, rank->regions->gradients, sum_of(rank, step, ith, lo, lo + n), c, lo, lo + n);
}

/* The chunks of the dense part, then the lists of rows. */
static size_t parts_to_sum(const co_plan *plan)
{
    return plan->chunks + (size_t)plan->rows.n;
}

/* This host's pieces of a chunk that another host adds up, into the outbox. */
static void make_pieces(struct rank *rank, size_t c)
{
    const co_exchange_map *wire = &rank->regions->wire;
    const co_deal *deal = &rank->deal;
    co_piece list[2 * CO_MAX_LEVELS];
    int n_pieces = co_deal_pieces(deal, &rank->plan->cut[rank->cut], deal->me, list);
    size_t lo, n = chunk_span(rank->plan, c, &lo);

    for (int i = 0; i < n_pieces; i++)
        memcpy(wire->outbox + (size_t)i * wire->count + lo,
               node(rank, 0, list[i].level, list[i].index, lo, lo + n), n * sizeof(float));
}

/* Whether all slots of this host have their sums of chunk c. A slot whose rank dies computes them again: *who, the
 * incarnations of all, must be the same after reading. */
static bool chunk_is_final(const struct rank *rank, size_t c, uint64_t *who)
{
    *who = 0;
    atomic_thread_fence(memory_order_acquire);
    for (int slot = 0; slot < rank->plan->ranks; slot++) {
        uint64_t word = atomic_load(&rank->regions->slots[slot].final);
        if (word >> 32 != rank->turn || (word & 0xffffff) > c)
            return false;
        *who = *who * 257 + (word >> 24 & 0xff);
    }
    return true;
}

static bool still_final(const struct rank *rank, size_t c, uint64_t who)
{
    uint64_t now;

    return chunk_is_final(rank, c, &now) && now == who;
}

/* The pieces of all chunks that are final. */
static void final_pieces(struct rank *rank)
{
    const co_deal *deal = &rank->deal;
    size_t n = rank->plan->chunks;
    uint64_t who;

    for (size_t c = 0; c < n; c++) {
        if (co_deal_owner(deal, c, n) == deal->me || !chunk_is_final(rank, c, &who))
            continue;
        co_claim *claim = &rank->regions->piece_claim[c];
        co_claimed got = co_claim_take(claim, turn_of(rank));
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(rank, CO_PHASE_SUM, (uint32_t)c);
        fault_point(rank, CO_FAULT_SUM);
        make_pieces(rank, c);
        fault_point(rank, CO_FAULT_NONE);
        if (still_final(rank, c, who))
            co_claim_finish(claim, turn_of(rank));
        else
            co_claim_give_back(claim, turn_of(rank));
        co_event_ring(&rank->regions->ctl->event);
    }
}

/* Is everything there that this chunk's sum needs? On one host: always. */
static bool is_here(const struct rank *rank, size_t c)
{
    size_t chunks = rank->plan->chunks;

    return rank->plan->hosts == 1 ||
           co_mark_get(&rank->regions->wire.here[c < chunks ? c : chunks], rank->turn) != 0;
}

/* An own chunk needs this host's leaves too, unless the step was given. */
static bool may_sum(const struct rank *rank, size_t c, uint64_t *who)
{
    const co_plan *plan = rank->plan;

    *who = 0;
    if (!is_here(rank, c))
        return false;
    if (plan->hosts == 1 || (rank->pc & PC_READY) || c >= plan->chunks ||
        co_deal_owner(&rank->deal, c, plan->chunks) != rank->deal.me)
        return true;
    return chunk_is_final(rank, c, who);
}

static bool all_summed(const struct rank *rank)
{
    for (size_t c = parts_to_sum(rank->plan); c-- > 0;)
        if (!co_claim_is_done(&rank->regions->sum_claim[c], rank->turn))
            return false;
    return (rank->pc & PC_READY) || all_wished(rank);
}

/* All are summed, or there is something to do. */
static bool summed_or_more(struct rank *rank, int64_t unused)
{
    (void)unused;
    if (all_summed(rank))
        return true;
    bool frozen = !turn_is_open(rank);
    uint64_t who;
    for (size_t c = 0; rank->plan->hosts > 1 && !frozen && c < parts_to_sum(rank->plan); c++)
        if (may_sum(rank, c, &who) && co_claim_is_free(&rank->regions->sum_claim[c], rank->turn))
            return true;
    return false;
}

/* --- several chunks at once, by the threads of the rank --------------------------------------------------- */
struct batch {
    struct rank *rank;
    int64_t step;
    size_t chunk[CO_TEAM_MOST];
    int n;
};

static void sum_share(void *ctx, int ith, int nth)
{
    const struct batch *batch = ctx;

    (void)nth;
    sum_chunk(batch->rank, batch->step, ith, batch->chunk[ith]);
}

static void finish_batch(struct batch *batch)
{
    struct rank *rank = batch->rank;

    if (!batch->n)
        return;
    co_team_run(rank->team, batch->n, sum_share, batch);
    fault_point(rank, CO_FAULT_NONE);
    for (int i = 0; i < batch->n; i++)
        co_claim_finish(&rank->regions->sum_claim[batch->chunk[i]], turn_of(rank));
    co_event_ring(&rank->regions->ctl->event);
    batch->n = 0;
}

/* On one host, where every chunk can be summed at any time. Each chunk is measured by one thread, as always. */
static void sum_by_team(struct rank *rank, int64_t step)
{
    size_t n = parts_to_sum(rank->plan), first = n * rank->who.slot / (size_t)rank->plan->ranks;
    struct batch batch = {.rank = rank, .step = step};

    for (size_t i = 0; i < n; i++) {
        size_t c = (first + i) % n;
        co_claimed got = co_claim_take(&rank->regions->sum_claim[c], turn_of(rank));
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(rank, CO_PHASE_SUM, (uint32_t)c);
        fault_point(rank, CO_FAULT_SUM);
        batch.chunk[batch.n++] = c;
        if (c >= rank->plan->chunks || batch.n == co_team_size(rank->team))
            finish_batch(&batch);
    }
    finish_batch(&batch);
}

static void sum_what_is_here(struct rank *rank, int64_t step)
{
    if (rank->plan->hosts == 1 && rank->team) {
        sum_by_team(rank, step);
        return;
    }
    size_t n = parts_to_sum(rank->plan), first = n * rank->who.slot / (size_t)rank->plan->ranks;

    for (size_t i = 0; i < n; i++) {
        size_t c = (first + i) % n;
        uint64_t who, now;
        if (!may_sum(rank, c, &who) || !begin_write(rank))
            continue;
        co_claimed got = co_claim_take(&rank->regions->sum_claim[c], turn_of(rank));
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE) {
            end_write(rank);
            continue;
        }
        rank_phase(rank, CO_PHASE_SUM, (uint32_t)c);
        fault_point(rank, CO_FAULT_SUM);
        sum_chunk(rank, step, 0, c);
        fault_point(rank, CO_FAULT_NONE);
        if (may_sum(rank, c, &now) && now == who)
            co_claim_finish(&rank->regions->sum_claim[c], turn_of(rank));
        else
            co_claim_give_back(&rank->regions->sum_claim[c], turn_of(rank));
        end_write(rank);
        co_event_ring(&rank->regions->ctl->event);
    }
}

void sum_early(struct rank *rank, int64_t step)
{
    rank->cut = cut_of_step(rank->plan, step);
    final_pieces(rank);
    sum_what_is_here(rank, step);
}

bool sum_chunks(struct rank *rank, int64_t step)
{
    rank->cut = cut_of_step(rank->plan, step);
    if (rank->plan->hosts > 1 && !(rank->pc & PC_READY))
        final_pieces(rank); /* all of them: everybody has arrived */
    do {
        sum_what_is_here(rank, step);
        uint64_t t0 = co_now_ns();
        bool more = wait_for(rank, summed_or_more, 0, CO_PHASE_WAIT);
        *(rank->deal.hosts > 1 ? &rank->spent.exchange_ns : &rank->spent.idle_ns) += co_now_ns() - t0;
        if (!more)
            return false;
    } while (!all_summed(rank));
    return true;
}
