/* stop.c -- requests to stop: the first ends the run after this step or evaluation batch, saved; a second one
 * soon after it leaves at once, and the last checkpoint stands.
 *
 * The supervisor only stores the request. Whoever moves pc next decides by it, so that all ranks stop at the
 * same place.
 *
 * A request by hooks.wants_stop (a button on a tracker's page, a program that uses the library) is stored
 * too. It never counts as the first or the second of two: whether it comes before or after Ctrl-C, the run is
 * saved.
 */
#include "train/super_int.h"

#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "proc/signals.h"
#include "train/timeouts_int.h"

static void say_first(const struct run *run, bool by_signal)
{
    const control *ctl = run->regions->ctl;
    uint64_t pc = atomic_load(&ctl->pc);
    unit open = unit_now(run->plan, ctl, pc_unit(pc));
    char text[160], again[64] = "";

    if (by_signal)
        snprintf(again, sizeof again, "; once more within %d s leaves at once", STOP_AGAIN_MS / 1000);
    snprintf(text, sizeof text, "asked to stop: %s%s",
             pc & (PC_STOP | PC_END | PC_FAIL) ? "saving"
             : open.kind == UNIT_TRAIN         ? "finishing this step, then saving"
             : open.kind == UNIT_VAL           ? "leaving the validation after this batch, then saving"
                                               : "leaving the test after this batch, then saving",
             again);
    run_notice(run, text);
}

static void ask_hook(const struct run *run, struct stop *stop)
{
    const co_train_hooks *hooks = run->hooks;

    if (stop->wished || !hooks->wants_stop || !hooks->wants_stop(hooks->ctx))
        return;
    stop->wished = true;
    if (!stop->asked_ns)
        say_first(run, false);
    atomic_store(&run->regions->ctl->stop_request, 1);
}

void stop_turn(const struct run *run, struct stop *stop)
{
    control *ctl = run->regions->ctl;
    int sig;

    while ((sig = co_signals_next(stop->signals)) != 0) {
        uint64_t now = co_now_ns(), before = stop->asked_ns;
        if (co_signal_repeats(sig, before))
            continue;
        stop->asked_ns = now;
        if (sig == SIGINT && stop->may_leave && !before && !stop->wished) {
            stop->leaves = true; /* see hosts.c */
            run_notice(run, "asked to stop: this host leaves, the others go on");
            continue;
        }
        if (before && now - before < STOP_AGAIN_MS * UINT64_C(1000000)) {
            if (!stop->at_once)
                run_notice(
                    run,
                    "asked twice to stop: leaving at once; a checkpoint that is being written has 5 s left");
            stop->at_once = true;
        } else {
            say_first(run, true);
        }
        atomic_store(&ctl->stop_request, 1);
    }
    ask_hook(run, stop);
}
