/* units.c -- which unit does what.
 *
 *     steps, VAL, steps, VAL, ..., rest of the steps, VAL, TEST
 *
 * With no evaluation the units are the steps. Where evaluations are repeats in cycles (units_int.h), so
 * everything is arithmetic on the number of a unit: a resumed run, whatever its first step, agrees with the
 * one that was never stopped about every later unit's work.
 */
#include "train/units_int.h"

/* Evaluations after steps 1 to `step`; the closing one is not counted. */
static int64_t evals_through(const unit_order *order, int64_t step)
{
    if (!order->cycle)
        return 0;
    int64_t rest = step % order->cycle, n = rest < order->first ? 0 : (rest - order->first) / order->gap + 1;

    return step / order->cycle * order->per_cycle + (n < order->per_cycle ? n : order->per_cycle);
}

bool evaluates_after(const unit_order *order, int64_t step)
{
    return step > 0 && evals_through(order, step) > evals_through(order, step - 1);
}

/* Units up to and including the evaluation that follows `step` steps; without the closing VAL and TEST. */
static int64_t units_through(const unit_order *order, int64_t step)
{
    return step + evals_through(order, step);
}

/* The unit at place i of a cycle (0 for its first step), in which the steps of `before` cycles are done:
 *
 *     first steps, VAL, gap steps, VAL, gap steps, VAL, ..., the other steps
 */
static unit unit_in_cycle(const unit_order *order, int64_t before, int64_t i)
{
    int64_t groups, rest;

    if (i < order->first)
        return (unit){UNIT_TRAIN, before + i + 1};
    i -= order->first;
    groups = i / (order->gap + 1); /* each begins with its VAL */
    if (groups > order->per_cycle - 1)
        groups = order->per_cycle - 1;
    rest = i - groups * (order->gap + 1);
    int64_t done = before + order->first + groups * order->gap;
    return rest == 0 ? (unit){UNIT_VAL, done} : (unit){UNIT_TRAIN, done + rest};
}

unit unit_of(const unit_order *order, uint32_t n)
{
    int64_t i = (int64_t)n - 1; /* from 0 */
    int64_t body = units_through(order, order->steps);

    if (i >= body)
        return (unit){i == body && order->final_val ? UNIT_VAL : UNIT_TEST, order->steps};
    if (!order->cycle)
        return (unit){UNIT_TRAIN, i + 1};
    int64_t units = order->cycle + order->per_cycle;
    return unit_in_cycle(order, i / units * order->cycle, i % units);
}

uint32_t unit_of_state(const unit_order *order, int64_t step)
{
    int64_t i = units_through(order, step);

    if (evaluates_after(order, step))
        i--; /* begin with the evaluation of this state; doing it twice changes nothing */
    return (uint32_t)(i + 1);
}

void unit_order_close(unit_order *order)
{
    order->final_val = order->cycle && order->steps > 0 && !evaluates_after(order, order->steps);
    order->first_unit = unit_of_state(order, order->first_step);
    order->last_unit = (uint32_t)(units_through(order, order->steps) + order->final_val + order->final_test);
}

unit_order unit_order_cut(const unit_order *order, uint32_t n)
{
    unit_order cut = *order;

    cut.steps = n > 1 ? unit_of(order, n - 1).step : 0;
    unit_order_close(&cut);
    return cut;
}

int64_t evals_before(const unit_order *order, int64_t step)
{
    return step > 0 ? evals_through(order, step - 1) : 0;
}
