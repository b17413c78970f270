/* The order of units against a list written down step by step. */
#include "train/units_int.h"

#include <stdlib.h>

#include "harness.h"

enum { MOST_UNITS = 512 };

/* By the words of units_int.h, place by place. */
static bool is_evaluated(const unit_order *order, int64_t step)
{
    for (int64_t i = 0; order->cycle && i < order->per_cycle; i++)
        if ((step - 1) % order->cycle + 1 == order->first + i * order->gap)
            return true;
    return false;
}

static int write_down(const unit_order *order, unit *list)
{
    int n = 0;

    for (int64_t step = 1; step <= order->steps; step++) {
        list[n++] = (unit){UNIT_TRAIN, step};
        if (is_evaluated(order, step))
            list[n++] = (unit){UNIT_VAL, step};
    }
    if (order->cycle && order->steps && !is_evaluated(order, order->steps))
        list[n++] = (unit){UNIT_VAL, order->steps};
    if (order->final_test)
        list[n++] = (unit){UNIT_TEST, order->steps};
    return n;
}

static void agrees(const unit_order *evals, int64_t steps, bool tested)
{
    static unit list[MOST_UNITS];
    unit_order order = *evals;
    int64_t cycle = order.cycle, gap = order.gap;

    order.steps = steps;
    order.final_test = tested;
    int n = write_down(&order, list);

    unit_order_close(&order);
    CHECK(order.last_unit == (uint32_t)n, "steps %lld cycle %lld gap %lld: %u units, want %d",
          (long long)steps, (long long)cycle, (long long)gap, order.last_unit, n);
    CHECK(order.first_unit == 1, "from the beginning");
    for (int i = 0; i < n; i++) {
        unit u = unit_of(&order, (uint32_t)i + 1);
        CHECK(u.kind == list[i].kind && u.step == list[i].step,
              "steps %lld cycle %lld gap %lld unit %d: kind %d step %lld, want %d %lld", (long long)steps,
              (long long)cycle, (long long)gap, i + 1, (int)u.kind, (long long)u.step, (int)list[i].kind,
              (long long)list[i].step);
    }
    /* A run resumed at k does every later step once, in order, and nothing of the steps before. */
    for (int64_t k = 0; k <= steps; k++) {
        unit_order r = order;
        int64_t done = k;
        r.first_step = k;
        unit_order_close(&r);
        CHECK(r.last_unit == order.last_unit, "the end moved");
        CHECK(r.first_unit == unit_of_state(&order, k), "resume at %lld", (long long)k);
        for (uint32_t u = r.first_unit; u <= r.last_unit; u++) {
            unit x = unit_of(&r, u);
            if (x.kind == UNIT_TRAIN)
                CHECK(x.step == ++done, "resume at %lld: step %lld after %lld", (long long)k,
                      (long long)x.step, (long long)done - 1);
            else
                CHECK(x.step == done, "looks at state %lld, %lld steps are done", (long long)x.step,
                      (long long)done);
        }
        CHECK(done == steps, "resume at %lld ends at %lld", (long long)k, (long long)done);
        unit first = r.first_unit <= r.last_unit ? unit_of(&r, r.first_unit) : (unit){UNIT_TEST, steps};
        if (k > 0 && is_evaluated(&order, k))
            CHECK(first.kind == UNIT_VAL && first.step == k, "the evaluation of state %lld is due",
                  (long long)k);
    }
}

/* Every way to place evaluations in a cycle of at most 12 steps. */
TEST(units_and_states_agree_with_a_list_for_every_resume)
{
    for (int64_t cycle = 0; cycle <= 12; cycle++)
        for (int64_t gap = 1; gap <= (cycle ? cycle : 1); gap++)
            for (int64_t first = 1; first <= (cycle ? cycle : 1); first++) {
                int64_t per_cycle = (cycle - first) / gap + 1;
                unit_order evals = {5, 0, .cycle = cycle, .first = first, .gap = gap, .per_cycle = per_cycle};
                for (int64_t steps = 0; steps <= 30; steps += 1 + (gap > 3))
                    agrees(&evals, steps, steps % 2);
            }
}

TEST(the_evaluations_before_a_state_are_those_of_earlier_steps)
{
    /* 13, 16, 19, 33 ... */
    unit_order order = {.steps = 100, .cycle = 20, .first = 13, .gap = 3, .per_cycle = 3};
    int64_t n = 0;

    for (int64_t step = 0; step <= 100; step++) {
        CHECK(evals_before(&order, step) == n, "state %lld", (long long)step);
        CHECK(evaluates_after(&order, step) == (step > 0 && is_evaluated(&order, step)), "step %lld",
              (long long)step);
        n += step > 0 && is_evaluated(&order, step);
    }
}

TEST(a_resume_with_nothing_left_has_no_units)
{
    unit_order order = {.steps_per_epoch = 5, .steps = 10, .first_step = 10};

    unit_order_close(&order);
    CHECK(order.first_unit == order.last_unit + 1, "units %u to %u", order.first_unit, order.last_unit);
}
