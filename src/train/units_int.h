/* units_int.h -- which unit of a run does what. Seen by this room only.
 *
 * A run is a sequence of units, numbered from 1: a training step, an evaluation, a test. What unit n does is
 * a pure function of the plan, so `pc`, the number of the unit in progress, is all the control state that a
 * run needs.
 */
#ifndef CO_TRAIN_UNITS_INT_H
#define CO_TRAIN_UNITS_INT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { UNIT_TRAIN, UNIT_VAL, UNIT_TEST } unit_kind;

typedef struct unit_order {
    int64_t steps_per_epoch, steps; /* of the whole run */
    /* Evaluations come in cycles of so many steps (0: none): after step `first` of a cycle and then every
     * `gap` steps, `per_cycle` times. */
    int64_t cycle, first, gap, per_cycle;
    bool final_val, final_test;
    int64_t first_step; /* where this process began */
    uint32_t first_unit, last_unit;
} unit_order;

typedef struct unit {
    unit_kind kind;
    int64_t step; /* TRAIN: the step it makes (1 for the first). VAL, TEST: the state it evaluates */
} unit;

unit unit_of(const unit_order *order, uint32_t n);
/* The unit to run next when `step` steps are done. */
uint32_t unit_of_state(const unit_order *order, int64_t step);
/* Fills in first_unit and last_unit. */
void unit_order_close(unit_order *order);
/* The order of the same run when it ends with the state before unit `n`: units before `n` stay as they were,
 * then come the VAL and TEST that are due. */
unit_order unit_order_cut(const unit_order *order, uint32_t n);
/* Does a VAL unit follow step `step`? The closing one, after the last step, does not count. */
bool evaluates_after(const unit_order *order, int64_t step);
/* How many VAL units come before the one that evaluates state `step`: 0 for the first. */
int64_t evals_before(const unit_order *order, int64_t step);

#endif
