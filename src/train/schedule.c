/* schedule.c -- which unit does what.
 *
 *     block of steps, VAL, block of steps, VAL, ..., rest of the steps, VAL, TEST
 *
 * With no evaluation the units are the steps. Everything follows from (steps, block), so a resumed run, whatever its
 * first step, agrees with the one that was never stopped about every later unit's work.
 */
#include "train/train_int.h"

/* Units up to and including the evaluation that follows `step` steps; without the closing VAL and TEST. */
static int64_t units_through(const schedule *s, int64_t step)
{
    return step + (s->block ? step / s->block : 0);
}

unit unit_of(const schedule *s, uint32_t u)
{
    int64_t i = (int64_t)u - 1; /* from 0 */
    int64_t body = units_through(s, s->steps);

    if (i >= body)
        return (unit){i == body && s->final_val ? UNIT_VAL : UNIT_TEST, s->steps};
    if (!s->block)
        return (unit){UNIT_TRAIN, i + 1};
    int64_t whole = i / (s->block + 1), rest = i % (s->block + 1);
    if (rest == s->block)
        return (unit){UNIT_VAL, (whole + 1) * s->block};
    return (unit){UNIT_TRAIN, whole * s->block + rest + 1};
}

uint32_t unit_of_state(const schedule *s, int64_t step)
{
    int64_t i = units_through(s, step);

    if (s->block && step > 0 && step % s->block == 0)
        i--; /* the evaluation of this state is done, again if need be: it changes nothing */
    return (uint32_t)(i + 1);
}

void schedule_close(schedule *s)
{
    s->final_val = s->block && s->steps % s->block != 0;
    s->first_unit = unit_of_state(s, s->first_step);
    s->last_unit = (uint32_t)(units_through(s, s->steps) + s->final_val + s->final_test);
}

schedule schedule_cut(const schedule *s, uint32_t u)
{
    schedule cut = *s;

    cut.steps = u > 1 ? unit_of(s, u - 1).step : 0;
    schedule_close(&cut);
    return cut;
}

int64_t evals_before(const schedule *s, int64_t step)
{
    return step > 0 ? (step - 1) / s->block : 0;
}

schedule schedule_now(const co_plan *p, const control *ctl)
{
    uint64_t pc = atomic_load_explicit(&ctl->pc, memory_order_acquire);
    uint64_t cut = atomic_load_explicit(&ctl->cut, memory_order_acquire);

    if (!(pc & PC_CUT))
        return p->sched;
    return schedule_cut(&p->sched, (uint32_t)(cut ? cut : pc >> 8)); /* not stored yet: it is this one */
}

unit unit_now(const co_plan *p, const control *ctl, uint32_t u)
{
    schedule s = schedule_now(p, ctl);

    return unit_of(&s, u);
}
