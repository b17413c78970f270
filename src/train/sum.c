/* sum.c -- the second phase of a step: adds the slots' partial sums along the tree, chunk by chunk, and
 * measures each chunk: its squares, and whether all its numbers are finite.
 *
 * Any free rank claims the next chunk. The partial sums are only read, so a chunk whose rank died is simply
 * summed again.
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

/* Elements [lo, hi) of the sum. Only trained parameters count for the norm; running statistics must be finite
 * too. */
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
        double s = co_sum_squares(sum + from, to - from, &finite);
        if (entry->kind == CO_KIND_PARAM)
            squares += s;
    }
    return (chunk_stat){squares, finite};
}

static void sum_chunk(struct rank *rank, int64_t step, size_t c)
{
    const co_plan *plan = rank->plan;
    const co_tree *tree = &plan->tree[cut_of_step(plan, step)];
    bool marks = c == plan->chunks;
    size_t lo = marks ? plan->layout->count : c * plan->chunk;
    size_t hi = marks                                    ? plan->layout->leaf_count
                : lo + plan->chunk < plan->layout->count ? lo + plan->chunk
                                                         : plan->layout->count;
    int slot, i;

    if (!co_tree_root(tree, &slot, &i))
        for (size_t at = lo; at < hi; at += plan->chunk) /* the marks may be longer than a chunk's scratch */
            co_tree_sum(tree, marks ? CO_ADD_MARKS : CO_ADD_VALUES, at,
                        at + plan->chunk < hi ? at + plan->chunk : hi, buffer_of, rank, rank->regions->sum,
                        rank->regions->scratch[rank->who.slot]);
    if (!marks)
        rank->regions->norm[step & 1][c] = measure(plan, sum_of_step(plan, rank->regions, step), lo, hi);
}

static size_t chunks_to_sum(const co_plan *plan)
{
    return plan->chunks + (plan->sparse ? 1 : 0);
}

static bool all_summed(struct rank *rank, int64_t step)
{
    (void)step;
    for (size_t c = chunks_to_sum(rank->plan); c-- > 0;)
        if (!co_claim_is_done(&rank->regions->sum_claim[c], rank->who.unit))
            return false;
    return true;
}

void sum_chunks(struct rank *rank, int64_t step)
{
    size_t n = chunks_to_sum(rank->plan), first = n * rank->who.slot / (size_t)rank->plan->ranks;

    for (size_t i = 0; i < n; i++) {
        size_t c = (first + i) % n;
        co_claimed got = co_claim_take(&rank->regions->sum_claim[c], rank->who);
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(rank, CO_PHASE_SUM, (uint32_t)c);
        fault_point(rank, CO_FAULT_SUM);
        sum_chunk(rank, step, c);
        fault_point(rank, CO_FAULT_NONE);
        co_claim_finish(&rank->regions->sum_claim[c], rank->who);
        co_event_ring(&rank->regions->ctl->event);
    }
    wait_for(rank, all_summed, step, CO_PHASE_WAIT);
}
