/* at_once.c -- the threads of a rank compute several slices at once, each thread one.
 *
 * Threads that share the calls of one slice meet two hundred times in it, and each time all wait for the slowest. A
 * thread with a slice of its own waits for others once in a slice. It costs memory: each slice at once needs a
 * workspace. A rank with fewer slices than threads has to share calls.
 *
 * A slice whose gradient is added to its left sibling's runs beside the sibling, and a call or more behind it where
 * they write gradients (co_bases.pace). Each element is added up in the order of the fold:
 *
 *     thread 0   F0 ........ B0 [fc] [layer4] [layer3] ...
 *     thread 1   F1 ........ B1      [fc]+    [layer4]+ [layer3]+ ...
 */
#include "train/agree_int.h"
#include "train/rank_int.h"

#include <string.h>

#include "base/clock.h"

struct lane {
    co_bell done;
    const co_exec *exec;
    co_bases bases;
};

struct lanes {
    struct lane lane[AT_ONCE_MOST];
    co_run run;
    _Atomic uint32_t *beat;
};

int slices_at_once(const struct rank *rank, const co_fold *fold, int from, int64_t step)
{
    const unit u = {.kind = UNIT_TRAIN, .step = step};
    int n = 0;

    /* an audit looks at a leaf that is alone in its buffer */
    if (rank->plan->at_once < 2 || rank->spoil_from || verify_due(rank->plan, &u))
        return 1;
    while (n < rank->plan->at_once && from + n < fold->n_ops && fold->op[from + n].leaf >= 0)
        n++;
    return n > 1 ? n : 1;
}

/* Takes the next slice from the loader. The loader uses its memory again when the slice after it is taken: all but the
 * last are copied. False: the turn is over. */
static bool open_lane(struct rank *rank, int64_t step, const co_fold_op *op, int k, bool last, struct lanes *all)
{
    const co_plan *plan = rank->plan;
    char *room = rank->regions->at_once[rank->who.slot];
    leaf_stat *leaf = &rank->regions->leaf[step & 1][op->leaf];
    struct lane *lane = &all->lane[k];
    void *input;

    const co_load *job = next_slice(rank, op->leaf, &input);
    if (!job)
        return false;
    lane->exec = exec_for(&plan->train, job->shape)->exec;
    leaf->bad = job->bad < 0 ? LOST : job->bad;
    if (!last)
        input = memcpy(room + (size_t)k * at_once_room(plan), input, co_exec_info_of(lane->exec)->input_bytes);
    lane->bases = (co_bases){.state = rank->regions->state,
                             .leaf = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, op->dst),
                             .input = input,
                             .work = k ? room + (size_t)(k - 1) * at_once_room(plan) + loader_slot_bytes(plan)
                                       : rank->work,
                             .stat = leaf->stat,
                             .work_bytes = plan->train.work_bytes,
                             .add = op->adds,
                             .pace = {&lane->done, k && op->adds ? &all->lane[k - 1].done : NULL, rank->spin}};
    set_rows(&lane->bases, job->shape);
    fault_point(rank, CO_FAULT_FORWARD);
    fault_point(rank, CO_FAULT_BACKWARD);
    return true;
}

static void run_lane(void *ctx, int ith, int nth)
{
    struct lanes *all = ctx;

    (void)nth;
    co_exec_run(all->lane[ith].exec, &all->lane[ith].bases, &all->run, all->beat);
}

bool leaves_at_once(struct rank *rank, int64_t step, const co_fold_op *op, int n)
{
    struct lanes all = {.run = {.seed = (uint64_t)rank->plan->cfg.seed, .step = (uint32_t)step},
                        .beat = &rank->me->record.call};

    for (int k = 0; k < n; k++) {
        CO_ASSERT(!k || !op[k].adds || op[k].dst == op[k - 1].dst, "a leaf is added to the one before it");
        if (!open_lane(rank, step, &op[k], k, k == n - 1, &all))
            return false;
    }
    rank_phase(rank, CO_PHASE_COMPUTE, (uint32_t)op->leaf);
    uint64_t t0 = co_now_ns();
    co_team_run(rank->team, n, run_lane, &all);
    fault_slow(rank, t0);
    rank->compute_ns = (co_now_ns() - t0) / (uint64_t)n;
    rank->spent.compute_ns += co_now_ns() - t0;
    rank->spent.leaves += (uint64_t)n;
    return true;
}
