/* units.c -- which unit does what.
 *
 *     block of steps, VAL, block of steps, VAL, ..., rest of the steps, VAL, TEST
 *
 * With no evaluation the units are the steps. Everything follows from (steps, block), so a resumed run,
 * whatever its first step, agrees with the one that was never stopped about every later unit's work.
 */
#include "train/units_int.h"

/* Units up to and including the evaluation that follows `step` steps; without the closing VAL and TEST. */
static int64_t units_through(const unit_order *order, int64_t step)
{
    return step + (order->block ? step / order->block : 0);
}

unit unit_of(const unit_order *order, uint32_t u)
{
    int64_t i = (int64_t)u - 1; /* from 0 */
    int64_t body = units_through(order, order->steps);

    if (i >= body)
        return (unit){i == body && order->final_val ? UNIT_VAL : UNIT_TEST, order->steps};
    if (!order->block)
        return (unit){UNIT_TRAIN, i + 1};
    int64_t whole = i / (order->block + 1), rest = i % (order->block + 1);
    if (rest == order->block)
        return (unit){UNIT_VAL, (whole + 1) * order->block};
    return (unit){UNIT_TRAIN, whole * order->block + rest + 1};
}

uint32_t unit_of_state(const unit_order *order, int64_t step)
{
    int64_t i = units_through(order, step);

    if (order->block && step > 0 && step % order->block == 0)
        i--; /* the evaluation of this state is done, again if need be: it changes nothing */
    return (uint32_t)(i + 1);
}

void unit_order_close(unit_order *order)
{
    order->final_val = order->block && order->steps % order->block != 0;
    order->first_unit = unit_of_state(order, order->first_step);
    order->last_unit = (uint32_t)(units_through(order, order->steps) + order->final_val + order->final_test);
}

unit_order unit_order_cut(const unit_order *order, uint32_t u)
{
    unit_order cut = *order;

    cut.steps = u > 1 ? unit_of(order, u - 1).step : 0;
    unit_order_close(&cut);
    return cut;
}

int64_t evals_before(const unit_order *order, int64_t step)
{
    return step > 0 ? (step - 1) / order->block : 0;
}
