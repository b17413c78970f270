/* steps.c -- arithmetic on step numbers: which samples a step trains on, how many, and how they are cut into
 * slices. */
#include "train/plan_int.h"

const uint32_t *ids_of_step(const co_plan *plan, co_order *order, int64_t step)
{
    int64_t per = plan->units.steps_per_epoch;

    return co_order_epoch(order, (uint32_t)((step - 1) / per)) + (step - 1) % per * plan->batch;
}

int cut_of_step(const co_plan *plan, int64_t step)
{
    return plan->short_n && step % plan->units.steps_per_epoch == 0 ? CUT_SHORT : CUT_FULL;
}

uint32_t samples_of_step(const co_plan *plan, int64_t step)
{
    return cut_of_step(plan, step) == CUT_SHORT ? plan->short_n : plan->batch;
}

int64_t samples_until(const co_plan *plan, int64_t step)
{
    int64_t per = plan->units.steps_per_epoch, whole = step / per, rest = step % per;
    int64_t epoch = per * plan->batch - (plan->short_n ? plan->batch - plan->short_n : 0);

    return whole * epoch + rest * plan->batch;
}

size_t chunk_span(const co_plan *plan, size_t c, size_t *lo)
{
    *lo = c * plan->chunk;
    return *lo + plan->chunk < plan->layout->dense ? plan->chunk : plan->layout->dense - *lo;
}

bool must_stop(const co_plan *plan, double bad)
{
    return bad < 0 || (bad > 0 && plan->data->stop_on_bad);
}

bool must_stop_eval(const co_plan *plan, double bad, double count)
{
    return bad < 0 || (bad > 0 && (count == 0 || plan->data->needs_every_sample));
}
