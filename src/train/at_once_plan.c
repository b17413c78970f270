/* at_once_plan.c -- do the threads of a rank compute a slice each, and what memory does that take? See at_once.c. */
#include "train/regions_int.h"

/* The most leaves that follow one another in a fold, without an addition of two nodes between them. */
static int longest_run(const co_fold *fold)
{
    int most = 0;

    for (int i = 0, n = 0; i < fold->n_ops; i++) {
        n = fold->op[i].leaf >= 0 ? n + 1 : 0;
        most = n > most ? n : most;
    }
    return most;
}

/* For this host alone: several hosts have group.c, which needs the memory of several slices too. Lists of rows are
 * written under a lock (leaves.c). */
co_err at_once_plan(co_plan *plan)
{
    co_tree tree;
    int most = 0;

    if (plan->threads == 1 || plan->threads > AT_ONCE_MOST || !plan->cfg.slices_at_once || plan->hosts > 1 ||
        plan->rows.n || !calls_are_alike(&plan->train))
        return CO_OK;
    CO_TRY(co_tree_init(&tree, plan->ranks));
    co_tree_deal(&tree, &plan->cut[CUT_FULL], 0, plan->slices);
    for (int slot = 0; slot < plan->ranks; slot++) {
        int run = longest_run(&tree.fold[slot]);
        most = run > most ? run : most;
    }
    co_tree_fini(&tree);
    plan->at_once = most >= plan->threads ? plan->threads : 0;
    return CO_OK;
}

/* A workspace for every thread but the first, and a place for the input of every slice but the last, which lies where
 * the loader has put it. */
size_t at_once_bytes(const co_plan *plan)
{
    size_t threads = (size_t)plan->at_once;

    return threads > 1 ? (threads - 1) * slice_work_bytes(plan) +
                             (threads * AT_ONCE_EACH - 1) * loader_slot_bytes(plan)
                       : 0;
}
