/* group.c -- the last slices of a slot go backward together.
 *
 * A chunk's sum is final when the last of the slot's slices has written its gradient there. Slice by slice, that is
 * the end of the step's computing, and everything that hosts exchange would travel after it. So the last slices go
 * through their passes together, part by part: the forward pass of all of them, then the backward pass of the last
 * layers of all of them, then of the layers before. After each part some chunks are final, and are sent while the next
 * part is computed:
 *
 *     slice by slice   F0 B0 | F1 B1 | F2 B2 |......wire......|
 *     together         F0 F1 F2 | B0 B1 B2 (last layers) | B0 B1 B2 (...) | ...
 *                                                        |......wire......|
 *
 * Each part goes through the operations of the fold in their order, so no addition changes. It costs memory: the work
 * of each slice is kept until its end. Therefore a rank begins with two slices, and takes more only while it waits for
 * the wire.
 *
 * A rank that dies in the middle is replaced, and its successor computes all of its leaves again, into the same
 * buffers. Others may be reading these: see chunk_is_final in sum.c.
 */
#include "train/agree_int.h"
#include "train/rank_int.h"

#include <string.h>

#include "base/clock.h"

enum {
    GROW_STEPS = 2,  /* between two looks at how long this rank waited */
    GROW_PERCENT = 3 /* of the time: more slices */
};

struct member {
    const co_exec *exec;
    co_bases bases;
};

int group_begins(const struct rank *rank, const co_fold *fold, int64_t step)
{
    const unit u = {.kind = UNIT_TRAIN, .step = step};
    int n = 0;

    /* an audit looks at a leaf that is alone in its buffer */
    if (!rank->group || rank->deal.hosts == 1 || rank->spoil_from || verify_due(rank->plan, &u))
        return fold->n_ops;
    for (int i = fold->n_ops; i-- > 0;)
        if (fold->op[i].leaf >= 0 && ++n == rank->group)
            return i;
    return 0;
}

/* Takes the next slice from the loader, whose memory for it is used again with the one after it. False: the turn is
 * over. */
static bool open_member(struct rank *rank, int64_t step, const co_fold_op *op, int k, struct member *member)
{
    const co_plan *plan = rank->plan;
    char *memory = rank->regions->group[rank->who.slot];
    char *works = memory + (size_t)plan->group.most * loader_slot_bytes(plan);
    leaf_stat *leaf = &rank->regions->leaf[step & 1][op->leaf];
    void *input, *kept = memory + (size_t)k * loader_slot_bytes(plan);

    const co_load *job = next_slice(rank, op->leaf, &input);
    if (!job)
        return false;
    member->exec = exec_for(&plan->train, job->shape)->exec;
    leaf->bad = job->bad < 0 ? LOST : job->bad;
    memcpy(kept, input, co_exec_info_of(member->exec)->input_bytes);
    member->bases = (co_bases){.state = rank->regions->state,
                               .leaf = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, op->dst),
                               .input = kept,
                               .work = k ? works + (size_t)(k - 1) * slice_work_bytes(plan) : rank->work,
                               .stat = leaf->stat,
                               .work_bytes = plan->train.work_bytes,
                               .add = op->adds,
                               .team = rank->team};
    set_rows(&member->bases, job->shape);
    fault_point(rank, CO_FAULT_FORWARD);
    fault_point(rank, CO_FAULT_BACKWARD);
    return true;
}

struct addition {
    float *left;
    const float *right;
};

static void add_elements(void *ctx, int call, size_t offset, size_t count)
{
    const struct addition *both = ctx;

    (void)call;
    co_leaf_add(both->left + offset, both->left + offset, both->right + offset, count);
}

/* One part of the passes of all slices of the group: what the fold does, for the elements that this part writes. */
static bool run_part(struct rank *rank, int64_t step, const co_fold *fold, int first, int part,
                     struct member *member)
{
    const co_plan *plan = rank->plan;
    const co_run run = {.seed = (uint64_t)plan->cfg.seed, .step = (uint32_t)step};
    int from = plan->group.call[part], to = plan->group.call[part + 1], slot = (int)rank->who.slot, k = 0;

    for (int i = first; i < fold->n_ops; i++) {
        const co_fold_op *op = &fold->op[i];
        if (op->leaf < 0) {
            rank_phase(rank, CO_PHASE_SUM, (uint32_t)op->dst);
            co_exec_leaf_parts(member[0].exec, from, to, add_elements,
                               &(struct addition){leaf_buffer_of(plan, rank->regions, slot, op->dst),
                                                  leaf_buffer_of(plan, rank->regions, slot, op->a)});
            continue;
        }
        if (part == 0 && !open_member(rank, step, op, k, &member[k]))
            return false;
        rank_phase(rank, CO_PHASE_COMPUTE, (uint32_t)op->leaf);
        co_exec_run_part(member[k].exec, &member[k].bases, &run, from, to, &rank->me->record.call);
        k++;
    }
    return true;
}

void say_final(struct rank *rank, size_t chunk)
{
    atomic_store(&rank->me->final,
                 (uint64_t)rank->turn << 32 | (uint64_t)(rank->who.inc & 0xff) << 24 | (uint64_t)chunk);
}

bool group_run(struct rank *rank, int64_t step, const co_fold *fold, int first)
{
    const co_plan *plan = rank->plan;
    struct member member[GROUP_SLICES];

    for (int part = 0; part < plan->group.parts; part++) {
        uint64_t t0 = co_now_ns();
        if (!run_part(rank, step, fold, first, part, member))
            return false;
        fault_slow(rank, t0);
        rank->spent.compute_ns += co_now_ns() - t0;
        fault_point(rank, CO_FAULT_NONE);
        say_final(rank, (plan->group.final[part + 1] + plan->chunk - 1) / plan->chunk);
        fault_point(rank, CO_FAULT_NONE);
        t0 = co_now_ns();
        sum_early(rank, step);
        rank->spent.update_ns += co_now_ns() - t0;
        if (turn_is_over(rank))
            return false;
    }
    for (int i = first; i < fold->n_ops; i++)
        rank->spent.leaves += fold->op[i].leaf >= 0;
    return true;
}

void group_grow(struct rank *rank)
{
    uint64_t now = co_now_ns(), waited = rank->spent.exchange_ns - rank->group_exchange_ns;

    if (!rank->group || rank->who.unit % GROW_STEPS != 0)
        return;
    if (waited * 100 > GROW_PERCENT * (now - rank->group_ns))
        rank->group = 2 * rank->group < rank->plan->group.most ? 2 * rank->group : rank->plan->group.most;
    rank->group_ns = now;
    rank->group_exchange_ns = rank->spent.exchange_ns;
}
