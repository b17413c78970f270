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

static const float *buffer_of(void *ctx, int slot, int i)
{
    const struct rank *rank = ctx;

    return leaf_buffer_of(rank->plan, rank->regions, slot, i);
}

const float *sum_of_chunk(struct rank *rank, int64_t step, size_t lo, size_t hi)
{
    const co_tree *tree = &rank->tree[cut_of_step(rank->plan, step)];
    const co_sources from = {.buffer = buffer_of, .ctx = rank};

    if (rank->regions->deal->hosts > 1)
        return rank->regions->sum + lo;
    return co_tree_node(tree, __builtin_ctz((unsigned)tree->slices), 0, lo, hi, &from,
                        rank->regions->scratch[rank->who.slot]);
}

/* Elements [lo, hi) of the sum, which begin at `sum`. Only trained parameters count for the norm; running
 * statistics must be finite too. */
static chunk_stat measure(const co_plan *plan, const float *sum, size_t lo, size_t hi)
{
    const co_layout *layout = plan->layout;
    double squares = 0;
    bool finite = true;

    for (int i = 0; i < layout->n; i++) {
        const co_entry *entry = &layout->entry[i];
        size_t from = entry->offset > lo ? entry->offset : lo;
        size_t to = entry->offset + entry->count < hi ? entry->offset + entry->count : hi;
        if (from >= to || entry->kind == CO_KIND_COUNTER || plan->recipe.rule[i].frozen)
            continue;
        double s = co_sum_squares(sum + (from - lo), to - from, &finite);
        if (entry->kind == CO_KIND_PARAM)
            squares += s;
    }
    return (chunk_stat){squares, finite};
}

static void sum_chunk(struct rank *rank, int64_t step, size_t c)
{
    const co_plan *plan = rank->plan;
    size_t lo = c * plan->chunk, end = plan->layout->dense,
           hi = lo + plan->chunk < end ? lo + plan->chunk : end;

    if (c >= plan->chunks) {
        sum_rows(rank, step, (int)(c - plan->chunks));
        return;
    }
    rank->regions->norm[step & 1][c] = measure(plan, sum_of_chunk(rank, step, lo, hi), lo, hi);
}

/* The chunks of the dense part, then the lists of rows. */
static size_t parts_to_sum(const co_plan *plan)
{
    return plan->chunks + (size_t)plan->rows.n;
}

static bool all_summed(struct rank *rank, int64_t unused)
{
    (void)unused;
    for (size_t c = parts_to_sum(rank->plan); c-- > 0;)
        if (!co_claim_is_done(&rank->regions->sum_claim[c], rank->turn))
            return false;
    return all_wished(rank);
}

bool sum_chunks(struct rank *rank, int64_t step)
{
    size_t n = parts_to_sum(rank->plan), first = n * rank->who.slot / (size_t)rank->plan->ranks;

    for (size_t i = 0; i < n; i++) {
        size_t c = (first + i) % n;
        co_claimed got = co_claim_take(&rank->regions->sum_claim[c], turn_of(rank));
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(rank, CO_PHASE_SUM, (uint32_t)c);
        fault_point(rank, CO_FAULT_SUM);
        sum_chunk(rank, step, c);
        fault_point(rank, CO_FAULT_NONE);
        co_claim_finish(&rank->regions->sum_claim[c], turn_of(rank));
        co_event_ring(&rank->regions->ctl->event);
    }
    return wait_for(rank, all_summed, 0, CO_PHASE_WAIT);
}
