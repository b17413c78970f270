/* run.c -- what the supervisor's files have in common. */
#include "train/run_int.h"

void run_notice(const struct run *run, const char *text)
{
    if (run->hooks->notice)
        run->hooks->notice(run->hooks->ctx, text);
}

int64_t steps_done(const struct run *run)
{
    const control *ctl = run->regions->ctl;
    uint64_t pc = atomic_load(&ctl->pc);

    /* Not clamped to first_step: a host that was fed may stand behind its own start. */
    if (pc_unit(pc) <= 1)
        return 0;
    unit last = unit_now(run->plan, ctl, pc_unit(pc) - 1); /* the last unit that was finished */
    return last.step - (pc & PC_FAIL && last.kind == UNIT_TRAIN ? 1 : 0); /* its gradient was not applied */
}
