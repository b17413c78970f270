/* at_once.c -- the threads of a rank compute several slices at once, each thread one or two of them.
 *
 * Threads that share the calls of one slice meet two hundred times in it, and each time all wait for the slowest.
 * Threads with slices of their own meet when all are through with them. It costs memory: each thread needs a
 * workspace. A rank with fewer slices than threads has to share calls.
 *
 * Where two threads have siblings, the right one's gradients are added to the left one's a call or more behind it
 * (co_bases.pace). So each element is added up in the order of the fold:
 *
 *     thread 0   F0 ........ B0 [fc] [layer4] [layer3] ...
 *     thread 1   F1 ........ B1      [fc]+    [layer4]+ [layer3]+ ...
 */
#include "train/rank_int.h"

#include <string.h>

#include "base/clock.h"

struct member {
    co_bell done;
    const co_exec *exec;
    co_bases bases;
};

/* Thread i has members [i * each, (i + 1) * each), so that siblings are one thread's, where it has two. */
struct members {
    struct member member[AT_ONCE_MOST * AT_ONCE_EACH];
    int each;
    co_run run;
    _Atomic uint32_t *beat;
};

int slices_at_once(const struct rank *rank, const co_fold *fold, int from, int to)
{
    int n = 0, threads = rank->plan->at_once;

    if (threads < 2)
        return 1;
    while (n < threads * AT_ONCE_EACH && from + n < to && fold->op[from + n].leaf >= 0)
        n++;
    return n >= threads ? n - n % threads : 1;
}

/* Takes the next slice from the loader. The loader uses its memory again when the slice after it is taken: all but the
 * last are copied. False: the turn is over. */
static bool open_member(struct rank *rank, int64_t step, const co_fold_op *op, int k, bool last,
                        struct members *all)
{
    const co_plan *plan = rank->plan;
    char *works = rank->regions->at_once[rank->who.slot];
    char *inputs = works + (size_t)(plan->at_once - 1) * slice_work_bytes(plan);
    leaf_stat *leaf = &rank->regions->leaf[step & 1][op->leaf];
    struct member *member = &all->member[k];
    int thread = k / all->each;
    void *input;

    const co_load *job = next_slice(rank, op->leaf, &input);
    if (!job)
        return false;
    member->exec = exec_for(&plan->train, job->shape)->exec;
    leaf->bad = job->bad < 0 ? LOST : job->bad;
    if (!last)
        input = memcpy(inputs + (size_t)k * loader_slot_bytes(plan), input,
                       co_exec_info_of(member->exec)->input_bytes);
    member->bases =
        (co_bases){.state = rank->regions->state,
                   .leaf = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, op->dst),
                   .input = input,
                   .work = thread ? works + (size_t)(thread - 1) * slice_work_bytes(plan) : rank->work,
                   .stat = leaf->stat,
                   .work_bytes = plan->train.work_bytes,
                   .add = op->adds,
                   .pace = {&member->done, k && op->adds ? &all->member[k - 1].done : NULL, rank->spin}};
    set_rows(&member->bases, job->shape);
    return true;
}

static void run_members(void *ctx, int ith, int nth)
{
    struct members *all = ctx;

    (void)nth;
    for (int k = ith * all->each; k < (ith + 1) * all->each; k++)
        co_exec_run(all->member[k].exec, &all->member[k].bases, &all->run, all->beat);
}

bool leaves_at_once(struct rank *rank, int64_t step, const co_fold_op *op, int n)
{
    int threads = rank->plan->at_once;
    struct members all = {.each = n / threads,
                          .run = {.seed = (uint64_t)rank->plan->cfg.seed, .step = (uint32_t)step},
                          .beat = &rank->me->record.call};

    for (int k = 0; k < n; k++) {
        CO_ASSERT(!k || !op[k].adds || op[k].dst == op[k - 1].dst, "a leaf is added to the one before it");
        if (!open_member(rank, step, &op[k], k, k == n - 1, &all))
            return false;
    }
    rank_phase(rank, CO_PHASE_COMPUTE, (uint32_t)op->leaf);
    fault_point(rank, CO_FAULT_FORWARD);
    fault_point(rank, CO_FAULT_BACKWARD);
    uint64_t t0 = co_now_ns();
    co_team_run(rank->team, threads, run_members, &all);
    fault_slow(rank, t0);
    rank->compute_ns = (co_now_ns() - t0) / (uint64_t)all.each;
    rank->spent.compute_ns += co_now_ns() - t0;
    rank->spent.leaves += (uint64_t)n;
    return true;
}
