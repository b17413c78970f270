/* leaves.c -- the first phase of a step: forward and backward pass of each of this slot's slices.
 *
 * Each gradient is added along the tree as soon as it is there. After every operation a mark says how many
 * are done; a successor goes on from the mark.
 */
#include "train/rank_int.h"

#include <string.h>

#include "base/clock.h"

/* Absent rows of row-sparse gradients are -0.0, the identity of addition (see comm/tree.h). */
static void clear_sparse(const co_layout *layout, float *leaf)
{
    for (int i = 0; i < layout->n; i++)
        if (layout->entry[i].sparse)
            for (size_t q = 0; q < layout->entry[i].count; q++)
                leaf[layout->entry[i].offset + q] = -0.0f;
}

static void compute(struct rank *rank, int64_t step, const co_fold_op *op)
{
    const co_plan *plan = rank->plan;
    void *input;

    rank_phase(rank, CO_PHASE_LOAD, (uint32_t)op->leaf);
    fault_point(rank, CO_FAULT_LOAD);
    const co_load *job = co_loader_get(rank->loader, rank->job++, &input);
    CO_ASSERT(job, "a slice that is due is in the sequence");

    rank_phase(rank, CO_PHASE_COMPUTE, (uint32_t)op->leaf);
    fault_point(rank, CO_FAULT_FORWARD);
    fault_point(rank, CO_FAULT_BACKWARD);
    const shape_exec *shaped = exec_for(&plan->train, job->shape);
    float *leaf = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, op->dst);
    if (plan->sparse)
        clear_sparse(plan->layout, leaf);
    rank->regions->leaf[step & 1][op->leaf].bad = job->bad < 0 ? LOST : job->bad;
    uint64_t t0 = co_now_ns();
    co_exec_run(shaped->exec,
                &(co_bases){.state = rank->regions->state,
                            .leaf = leaf,
                            .input = input,
                            .work = rank->work,
                            .stat = rank->regions->leaf[step & 1][op->leaf].stat,
                            .work_bytes = rank->work_bytes,
                            .team = rank->team},
                &(co_run){.seed = (uint64_t)plan->cfg.seed, .step = (uint32_t)step}, &rank->me->record.call);
    rank->compute_ns = co_now_ns() - t0;
}

static bool all_arrived(struct rank *rank, int64_t step)
{
    const co_tree *t = &rank->plan->tree[cut_of_step(rank->plan, step)];

    for (int s = 0; s < t->slots; s++)
        if (co_mark_get(&rank->regions->slots[s].progress, rank->who.unit) < (uint32_t)t->fold[s].n_ops + 1)
            return false;
    return true;
}

void leaves(struct rank *rank, int64_t step)
{
    const co_plan *plan = rank->plan;
    const co_fold *fold = &plan->tree[cut_of_step(plan, step)].fold[rank->who.slot];
    int slot = (int)rank->who.slot;

    for (uint32_t i = co_mark_get(&rank->me->progress, rank->who.unit); i < (uint32_t)fold->n_ops; i++) {
        const co_fold_op *op = &fold->op[i];
        if (op->leaf >= 0) {
            compute(rank, step, op);
        } else {
            float *dst = leaf_buffer_of(plan, rank->regions, slot, op->dst);
            const float *a = leaf_buffer_of(plan, rank->regions, slot, op->a),
                        *b = leaf_buffer_of(plan, rank->regions, slot, op->b);
            size_t n = plan->layout->count;
            rank_phase(rank, CO_PHASE_SUM, i);
            co_leaf_add(CO_ADD_VALUES, dst, a, b, n);
            co_leaf_add(CO_ADD_MARKS, dst + n, a + n, b + n, plan->layout->leaf_count - n);
        }
        fault_point(rank, CO_FAULT_NONE);
        co_mark_set(&rank->me->progress, rank->who.unit, i + 1);
    }
    /* One more than the number of operations means "arrived"; a slot without work arrives too. All ranks wait
     * for it, so no rank is ever more than one step behind, and statistics need only two places, one for odd
     * and one for even steps. */
    co_mark_set(&rank->me->progress, rank->who.unit, (uint32_t)fold->n_ops + 1);
    co_event_ring(&rank->regions->ctl->event);
    wait_for(rank, all_arrived, step, CO_PHASE_WAIT);
}
