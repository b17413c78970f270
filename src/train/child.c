/* child.c -- a child process that must not hold up the run: it has a deadline, and is fenced past it.
 *
 *     RUNS --no progress for its limit, or told to end--> SIGKILL --exit seen--> GONE
 *                                                            |  no exit within CO_FENCE_MS
 *                                                            +--> HELD: the kernel keeps it (a hung disk)
 *
 * A process that was killed never runs another instruction of ours, so one that is HELD can be left behind.
 * Time is the supervisor's own scheduled time: a long turn (suspend, Ctrl-Z of the whole group) counts as a
 * short one.
 */
#include "train/super_int.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

co_err child_start(struct child *child, const co_child_spec *spec)
{
    struct child born = {.last_ns = co_now_ns()};

    CO_TRY(co_child_start(&born.pid, &born.pidfd, spec));
    *child = born;
    return CO_OK;
}

void child_kill(struct child *child)
{
    if (child->pid && !child->killed)
        kill(child->pid, SIGKILL); /* ours and not reaped: the pid is still its own */
    child->killed = true;
}

static double since_last_turn(struct child *child)
{
    uint64_t now = co_now_ns();
    double dt = (double)(now - child->last_ns) * 1e-9;

    child->last_ns = now;
    return dt < CO_LATE_TURN_MS * 1e-3 ? dt : CO_LATE_TURN_MS * 1e-3;
}

/* True: it is gone, with *status. */
static bool reap(struct child *child, int *status)
{
    if (waitpid(child->pid, status, WNOHANG | WUNTRACED | WCONTINUED) != child->pid)
        return false;
    child->stopped = WIFSTOPPED(*status);
    return !child->stopped && !WIFCONTINUED(*status);
}

child_state child_turn(struct child *child, uint64_t beat, double stopped_s, double stall_s, int *status)
{
    double dt = since_last_turn(child);

    if (reap(child, status)) {
        close(child->pidfd);
        child->pid = 0;
        return CHILD_GONE;
    }
    child->still_s = beat == child->beat && !child->killed ? child->still_s + dt : 0;
    child->beat = beat;
    if (child->killed)
        return (child->killed_s += dt) > CO_FENCE_MS * 1e-3 ? CHILD_HELD : CHILD_RUNS;
    if (child->still_s <= (child->stopped ? stopped_s : stall_s))
        return CHILD_RUNS;
    child->fenced = child->stopped ? FENCED_STOPPED : FENCED_STALLED;
    child_kill(child);
    return CHILD_RUNS;
}
