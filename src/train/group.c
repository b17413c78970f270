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
 * of each slice is kept until its end. Therefore a rank begins with one slice, and takes more only while it waits for
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
    GROUP_SLICES = 32, /* the most that go together */
    GROW_STEPS = 4,    /* between two looks at how long this rank waited */
    GROW_PERCENT = 3   /* of the time: more slices */
};

/* --- the plan ------------------------------------------------------------------------------------------- */
/* What some calls write to the leaf. */
struct scan {
    uint64_t hash;
    size_t elements, end; /* how many; where the last one ends */
};

static void scan_part(void *ctx, int call, size_t offset, size_t count)
{
    struct scan *scan = ctx;

    scan->hash = (scan->hash ^ (uint64_t)call ^ (uint64_t)offset << 16 ^ count) * UINT64_C(0x9e3779b97f4a7c15);
    scan->elements += count;
    scan->end = offset + count > scan->end ? offset + count : scan->end;
}

static struct scan scan_calls(const co_exec *exec, int from, int to)
{
    struct scan scan = {0};

    co_exec_leaf_parts(exec, from, to, scan_part, &scan);
    return scan;
}

/* Calls with the same number write the same elements, whatever the shape of the slice. */
static bool all_alike(const exec_set *set)
{
    const co_exec_info *first = co_exec_info_of(set->e[0].exec);
    uint64_t hash = scan_calls(set->e[0].exec, 0, first->calls).hash;

    for (int i = 1; i < set->n; i++) {
        const co_exec_info *info = co_exec_info_of(set->e[i].exec);
        if (info->calls != first->calls || info->forward_calls != first->forward_calls ||
            scan_calls(set->e[i].exec, 0, info->calls).hash != hash)
            return false;
    }
    return true;
}

/* The forward pass, then parts of the backward pass that write about as many elements each. */
static void cut_passes(co_plan *plan)
{
    const co_exec *exec = plan->train.e[0].exec;
    const co_exec_info *info = co_exec_info_of(exec);
    size_t each = plan->layout->dense / (GROUP_PARTS - 1) + 1, have = 0;
    int n = 1;

    plan->group.call[1] = info->forward_calls;
    for (int call = info->forward_calls; call < info->calls; call++) {
        have += scan_calls(exec, call, call + 1).elements;
        if (call + 1 < info->calls && (have < each || n == GROUP_PARTS - 1))
            continue;
        plan->group.call[++n] = call + 1;
        have = 0;
    }
    plan->group.parts = n;
    for (int i = 0; i <= n; i++)
        plan->group.final[i] = scan_calls(exec, plan->group.call[i], info->calls).end;
}

static size_t work_stride(const co_plan *plan)
{
    return (plan->train.work_bytes + 63) & ~(size_t)63;
}

size_t group_bytes(const co_plan *plan)
{
    size_t most = (size_t)plan->group.most;

    return most ? (most - 1) * work_stride(plan) + most * loader_slot_bytes(plan) : 0;
}

/* As many slices as the memory of the leaves would hold: the group at most doubles what a slot needs. */
void group_plan(co_plan *plan)
{
    size_t leaves = (size_t)plan->n_buffers * plan->layout->dense * sizeof(float);
    size_t most = 1 + leaves / (work_stride(plan) + loader_slot_bytes(plan) + 1);
    size_t asked = (size_t)plan->cfg.overlap, slices = (size_t)plan->slices;

    if (plan->hosts == 1 || plan->kernels->space || plan->rows.n || !asked || !all_alike(&plan->train))
        return;
    most = most < asked ? most : asked;
    most = most < slices ? most : slices;
    plan->group.most = (int)(most < GROUP_SLICES ? most : GROUP_SLICES);
    plan->group.first = 1;
    cut_passes(plan);
}

/* --- a step --------------------------------------------------------------------------------------------- */
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

/* Takes the next slice from the loader. The loader's memory for it is used again with the one after it. */
static void open_member(struct rank *rank, int64_t step, const co_fold_op *op, int k, struct member *member)
{
    const co_plan *plan = rank->plan;
    char *memory = rank->regions->group[rank->who.slot];
    char *works = memory + (size_t)plan->group.most * loader_slot_bytes(plan);
    leaf_stat *leaf = &rank->regions->leaf[step & 1][op->leaf];
    void *input, *kept = memory + (size_t)k * loader_slot_bytes(plan);

    rank_phase(rank, CO_PHASE_LOAD, (uint32_t)op->leaf);
    fault_point(rank, CO_FAULT_LOAD);
    const co_load *job = co_loader_get(rank->loader, rank->job++, &input);
    CO_ASSERT(job, "a slice that is due is in the sequence");
    member->exec = exec_for(&plan->train, job->shape)->exec;
    leaf->bad = job->bad < 0 ? LOST : job->bad;
    memcpy(kept, input, co_exec_info_of(member->exec)->input_bytes);
    member->bases = (co_bases){.state = rank->regions->state,
                               .leaf = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, op->dst),
                               .input = kept,
                               .work = k ? works + (size_t)(k - 1) * work_stride(plan) : rank->work,
                               .stat = leaf->stat,
                               .work_bytes = plan->train.work_bytes,
                               .add = op->adds,
                               .team = rank->team};
    fault_point(rank, CO_FAULT_FORWARD);
    fault_point(rank, CO_FAULT_BACKWARD);
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
static void run_part(struct rank *rank, int64_t step, const co_fold *fold, int first, int part,
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
        if (part == 0)
            open_member(rank, step, op, k, &member[k]);
        rank_phase(rank, CO_PHASE_COMPUTE, (uint32_t)op->leaf);
        co_exec_run_part(member[k].exec, &member[k].bases, &run, from, to, &rank->me->record.call);
        k++;
    }
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
        run_part(rank, step, fold, first, part, member);
        rank->spent.compute_ns += co_now_ns() - t0;
        fault_point(rank, CO_FAULT_NONE);
        say_final(rank, (plan->group.final[part + 1] + plan->chunk - 1) / plan->chunk);
        fault_point(rank, CO_FAULT_NONE);
        sum_early(rank, step);
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
    if (rank->group_ns && waited * 100 > GROW_PERCENT * (now - rank->group_ns))
        rank->group = 2 * rank->group < rank->plan->group.most ? 2 * rank->group : rank->plan->group.most;
    rank->group_ns = now;
    rank->group_exchange_ns = rank->spent.exchange_ns;
}
