/* group_plan.c -- into which parts the passes are cut for slices that go backward together, and how many
 * slices may. See group.c. */
#include "train/regions_int.h"

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

bool calls_are_alike(const exec_set *set)
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

size_t slice_work_bytes(const co_plan *plan)
{
    return (plan->train.work_bytes + 63) & ~(size_t)63;
}

size_t group_bytes(const co_plan *plan)
{
    size_t most = (size_t)plan->group.most;

    return most ? (most - 1) * slice_work_bytes(plan) + most * loader_slot_bytes(plan) : 0;
}

/* As many slices as the memory of the leaves would hold: the group at most doubles what a slot needs. */
void group_plan(co_plan *plan)
{
    size_t leaves = (size_t)plan->n_buffers * plan->layout->dense * sizeof(float);
    size_t most = 1 + leaves / (slice_work_bytes(plan) + loader_slot_bytes(plan) + 1);
    size_t asked = (size_t)plan->cfg.overlap, slices = (size_t)plan->slices;

    /* a later part of one slice must not read what another has added to meanwhile */
    bool settled = !co_exec_reads_leaf(plan->train.e[0].exec);

    if (plan->hosts == 1 || !settled || plan->kernels->space || plan->rows.n || !asked ||
        !calls_are_alike(&plan->train))
        return;
    most = most < asked ? most : asked;
    most = most < slices ? most : slices;
    plan->group.most = (int)(most < GROUP_SLICES ? most : GROUP_SLICES);
    plan->group.first = plan->group.most < 2 ? plan->group.most : 2;
    cut_passes(plan);
}
