/* state.c -- the state that a run starts from: drawn from the seed (a few values come from the data), read
 * from a file of weights, or a checkpoint's. */
#include "train/regions_int.h"

#include "base/alloc.h"
#include "ckpt/ckpt.h"

co_err first_state(const co_plan *plan, float *state)
{
    co_layout_initialise(plan->layout, state, (uint64_t)plan->cfg.seed);
    CO_TRY(values_from_data(plan, state));
    return plan->first.path ? co_weights_load(plan->first.path, plan->layout, plan->first.skip, state) : CO_OK;
}

co_err open_state(co_plan *plan)
{
    CO_TRY(co_arena_open(&plan->arena));
    plan->regions = co_zalloc(sizeof *plan->regions);
    if (!plan->regions)
        return CO_ENOMEM;
    regions_bind(plan, plan->regions);
    struct regions *regions = plan->regions;
    control *ctl = regions->ctl;
    if (plan->spec.resume)
        CO_TRY(co_ckpt_load(plan->spec.resume, plan->layout, regions->state, plan->moments, plan->moment_name,
                            regions->moment, NULL)); /* its meta was read for the plan */
    else
        CO_TRY(first_state(plan, regions->state));
    atomic_store(&ctl->applied[plan->start.step & 1], plan->start.applied);
    if (plan->units.cycle)
        watch_put(ctl->watch[evals_before(&plan->units, plan->start.step) & 1], &plan->monitors.start);
    atomic_store(&ctl->test_of, TEST_STATE);
    atomic_store(&ctl->consumed, plan->units.first_unit - 1);
    bool nothing_left = plan->units.first_unit > plan->units.last_unit;
    *regions->deal = co_deal_alone(plan->slices);
    atomic_store(&ctl->pc, pc_of(plan->units.first_unit, 0, nothing_left ? PC_END : 0));
    return CO_OK;
}
