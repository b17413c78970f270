/* control.c -- the order of units as the control words say it is now: whole, or cut short. */
#include "train/control_int.h"

unit_order unit_order_now(const co_plan *plan, const control *ctl)
{
    uint64_t pc = atomic_load_explicit(&ctl->pc, memory_order_acquire);
    uint64_t cut = atomic_load_explicit(&ctl->cut, memory_order_acquire);

    if (!(pc & PC_CUT))
        return plan->units;
    /* If ctl->cut is not stored yet, this unit is the first with PC_CUT. */
    return unit_order_cut(&plan->units, (uint32_t)(cut ? cut : pc_unit(pc)));
}

unit unit_now(const co_plan *plan, const control *ctl, uint32_t u)
{
    unit_order order = unit_order_now(plan, ctl);

    return unit_of(&order, u);
}
