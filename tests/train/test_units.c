/* The order of units against a list written down step by step. */
#include "train/units_int.h"

#include <stdlib.h>

#include "harness.h"

enum { MOST_UNITS = 512 };

static int write_down(const unit_order *order, unit *list)
{
    int n = 0;

    for (int64_t step = 1; step <= order->steps; step++) {
        list[n++] = (unit){UNIT_TRAIN, step};
        if (order->block && step % order->block == 0)
            list[n++] = (unit){UNIT_VAL, step};
    }
    if (order->block && order->steps % order->block != 0)
        list[n++] = (unit){UNIT_VAL, order->steps};
    if (order->final_test)
        list[n++] = (unit){UNIT_TEST, order->steps};
    return n;
}

static void agrees(int64_t steps, int64_t block, bool tested)
{
    static unit list[MOST_UNITS];
    unit_order order = {.steps_per_epoch = 5, .steps = steps, .block = block, .final_test = tested};
    int n = write_down(&order, list);

    unit_order_close(&order);
    CHECK(order.last_unit == (uint32_t)n, "steps %lld block %lld: %u units, want %d", (long long)steps,
          (long long)block, order.last_unit, n);
    CHECK(order.first_unit == 1, "from the beginning");
    for (int i = 0; i < n; i++) {
        unit u = unit_of(&order, (uint32_t)i + 1);
        CHECK(u.kind == list[i].kind && u.step == list[i].step,
              "steps %lld block %lld unit %d: kind %d step %lld, want %d %lld", (long long)steps,
              (long long)block, i + 1, (int)u.kind, (long long)u.step, (int)list[i].kind,
              (long long)list[i].step);
    }
    /* A run resumed at k does every later step once, in order, and nothing of the steps before. */
    for (int64_t k = 0; k <= steps; k++) {
        unit_order r = {
            .steps_per_epoch = 5, .steps = steps, .block = block, .final_test = tested, .first_step = k};
        int64_t done = k;
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
        if (block && k > 0 && k % block == 0)
            CHECK(first.kind == UNIT_VAL && first.step == k, "the evaluation of state %lld is due",
                  (long long)k);
    }
}

TEST(units_and_states_agree_with_a_list_for_every_resume)
{
    for (int64_t steps = 0; steps <= 40; steps++)
        for (int64_t block = 0; block <= 12; block++)
            for (int tested = 0; tested < 2; tested++)
                agrees(steps, block, tested);
}

TEST(a_resume_with_nothing_left_has_no_units)
{
    unit_order order = {.steps_per_epoch = 5, .steps = 10, .first_step = 10};

    unit_order_close(&order);
    CHECK(order.first_unit == order.last_unit + 1, "units %u to %u", order.first_unit, order.last_unit);
}
