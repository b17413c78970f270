/* progress.c -- how far an evaluation has come, for the hooks: its items are marked one by one as they are
 * done. */
#include "train/super_int.h"

void report_evaluation(const struct run *run, struct eval_progress *last)
{
    const control *ctl = run->regions->ctl;
    uint64_t pc = atomic_load_explicit(&ctl->pc, memory_order_acquire);
    uint32_t n = pc_unit(pc);
    unit open = unit_now(run->plan, ctl, n);
    co_split split = open.kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST;
    uint32_t items = run->plan->eval_items[split];

    if (open.kind == UNIT_TRAIN || (pc & (PC_STOP | PC_END | PC_FAIL)) || !run->hooks->evaluating)
        return;
    if (last->unit != n)
        *last = (struct eval_progress){.unit = n};
    /* Items are claimed in order, so those before the first that is not done are all but a few of the done
     * ones. */
    while (last->done < items && co_claim_is_done(&run->regions->eval_claim[last->done], pc_turn(pc)))
        last->done++;
    run->hooks->evaluating(run->hooks->ctx, split, last->done, items);
}
