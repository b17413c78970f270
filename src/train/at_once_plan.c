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

size_t at_once_work(const co_plan *plan)
{
    return (plan->train.work_bytes + 63) & ~(size_t)63;
}

/* A workspace for every thread but the first, and a place for the input of every slice but the last, which lies where
 * the loader has put it. */
size_t at_once_bytes(const co_plan *plan)
{
    size_t threads = (size_t)plan->at_once;

    return threads > 1
               ? (threads - 1) * at_once_work(plan) + (threads * AT_ONCE_EACH - 1) * loader_slot_bytes(plan)
               : 0;
}
