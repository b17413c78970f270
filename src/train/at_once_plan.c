/* at_once_plan.c -- do the threads of a rank compute a slice each, and what memory does that take? See at_once.c. */
#include "train/regions_int.h"

/* Leaves of a slot, of this host alone: the most that any slot has. */
static int most_leaves(const co_plan *plan)
{
    return (plan->slices + plan->ranks - 1) / plan->ranks;
}

void at_once_plan(co_plan *plan)
{
    bool fits = plan->threads > 1 && plan->threads <= AT_ONCE_MOST && plan->threads <= most_leaves(plan);

    if (fits && plan->cfg.slices_at_once && plan->hosts == 1 && !plan->rows.n && calls_are_alike(&plan->train))
        plan->at_once = plan->threads;
}

/* Every slice but the last, which lies where the loader has put it, has a place for its input, and every slice but the
 * first a workspace. */
size_t at_once_room(const co_plan *plan)
{
    return ((plan->train.work_bytes + 63) & ~(size_t)63) + loader_slot_bytes(plan);
}

size_t at_once_bytes(const co_plan *plan)
{
    return plan->at_once > 1 ? (size_t)(plan->at_once - 1) * at_once_room(plan) : 0;
}
