/* leaves.c -- the first phase of a step: forward and backward pass of each of this slot's slices.
 *
 * Each gradient is added along the tree as soon as it is there, in place. So the buffers of a rank that died
 * are of no use: its successor computes the slot's slices again. A mark says when all are done. Gradients of
 * row-sparse parameters are lists, which stay as they are until sum_rows adds up those of all leaves.
 */
#include "train/agree_int.h"
#include "train/rank_int.h"

#include <string.h>

#include "base/clock.h"

static void compute(struct rank *rank, int64_t step, const co_fold_op *op, const co_load *job, void *input)
{
    const co_plan *plan = rank->plan;

    rank_phase(rank, CO_PHASE_COMPUTE, (uint32_t)op->leaf);
    fault_point(rank, CO_FAULT_FORWARD);
    fault_point(rank, CO_FAULT_BACKWARD);
    const shape_exec *shaped = exec_for(&plan->train, job->shape);
    float *leaf = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, op->dst);
    co_rows rows[MAX_LISTS];
    rows_of_leaf(plan, rank->regions, op->leaf, rows);
    rank->regions->leaf[step & 1][op->leaf].bad = job->bad < 0 ? LOST : job->bad;
    uint64_t t0 = co_now_ns();
    co_bases bases = {.state = rank->regions->state,
                      .leaf = leaf,
                      .rows = rows,
                      .input = input,
                      .work = rank->work,
                      .stat = rank->regions->leaf[step & 1][op->leaf].stat,
                      .work_bytes = rank->work_bytes,
                      .add = op->adds,
                      .team = rank->team,
                      .beside = rank->regions->moment,
                      .n_beside = plan->moments};
    set_rows(&bases, job->shape);
    co_exec_run(shaped->exec, &bases, &(co_run){.seed = (uint64_t)plan->cfg.seed, .step = (uint32_t)step},
                &rank->me->record.call);
    if (rank->spoil_from && step >= rank->spoil_from)
        leaf[0] += 1;
    audit_own(rank, step, op->leaf, leaf, rank->regions->leaf[step & 1][op->leaf].stat);
    fault_slow(rank, t0);
    rank->compute_ns = co_now_ns() - t0;
    rank->spent.compute_ns += rank->compute_ns;
    rank->spent.leaves++;
}

struct addition {
    float *left;
    const float *right;
    size_t n;
};

static void add_share(void *ctx, int ith, int nth)
{
    const struct addition *all = ctx;
    int64_t lo, hi;

    co_share((int64_t)all->n, ith, nth, &lo, &hi);
    co_leaf_add(all->left + lo, all->left + lo, all->right + lo, (size_t)(hi - lo));
}

/* Adds a node to its left sibling. */
static void add_node(struct rank *rank, const co_fold_op *op)
{
    const co_plan *plan = rank->plan;
    float *left = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, op->dst);
    const float *right = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, op->a);

    rank_phase(rank, CO_PHASE_SUM, (uint32_t)op->dst);
    co_team_run(rank->team, co_team_size(rank->team), add_share,
                &(struct addition){left, right, plan->layout->dense});
}

static bool all_arrived(struct rank *rank, int64_t unused)
{
    (void)unused;
    for (int slot = 0; slot < rank->plan->ranks; slot++)
        if (co_mark_get(&rank->regions->slots[slot].progress, rank->turn) == 0)
            return false;
    return true;
}

/* Computes one leaf, or adds a node to its sibling. False: the turn is over. */
static bool one_op(struct rank *rank, int64_t step, const co_fold_op *op)
{
    bool lists = op->leaf >= 0 && rank->plan->rows.n > 0;
    void *input = NULL;
    const co_load *job = op->leaf >= 0 ? next_slice(rank, op->leaf, &input) : NULL;

    if (op->leaf >= 0 && !job)
        return false;
    if (lists && !begin_write(rank))
        return false;
    if (job)
        compute(rank, step, op, job, input);
    else
        add_node(rank, op);
    if (lists)
        end_write(rank);
    return true;
}

/* Operations [0, to) of the fold. */
static bool some_ops(struct rank *rank, int64_t step, const co_fold *fold, int to)
{
    int n;

    for (int i = 0; i < to; i += n) {
        n = slices_at_once(rank, fold, i, to);
        if (n > 1 ? !leaves_at_once(rank, step, &fold->op[i], n) : !one_op(rank, step, &fold->op[i]))
            return false;
        fault_point(rank, CO_FAULT_NONE);
        if (turn_is_over(rank))
            return false;
    }
    return true;
}

bool leaves(struct rank *rank, int64_t step)
{
    const co_fold *fold = &rank->tree[cut_of_step(rank->plan, step)].fold[rank->who.slot];
    /* then our predecessor did all of them */
    bool arrived = co_mark_get(&rank->me->progress, rank->turn) != 0;

    int group = arrived ? fold->n_ops : group_begins(rank, fold, step);

    if (!arrived) {
        say_final(rank, rank->plan->chunks); /* none: others must not read what is computed again */
        jobs_follow(rank, step);
        audit_others(rank, step);
    }
    if (!arrived && !some_ops(rank, step, fold, group))
        return false;
    if (group < fold->n_ops && !group_run(rank, step, fold, group))
        return false;
    if (!arrived)
        say_final(rank, 0);
    /* A slot without leaves arrives too. All ranks wait for it, so no rank is ever more than one step behind,
     * and statistics need only two places, one for odd and one for even steps. */
    latch_wish(rank, 0);
    fault_point(rank, CO_FAULT_NONE);
    co_mark_set(&rank->me->progress, rank->turn, 1);
    co_event_ring(&rank->regions->ctl->event);
    uint64_t t0 = co_now_ns();
    bool all = wait_for(rank, all_arrived, 0, CO_PHASE_WAIT);
    rank->spent.idle_ns += co_now_ns() - t0;
    return all;
}
