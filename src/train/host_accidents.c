/* host_accidents.c -- rehearsed accidents of the whole host (fault.host_*).
 *
 *     killed    the supervisor sends itself SIGKILL; carrier and ranks end with it
 *     cut off   a helper process stops the carrier and the supervisor, whose threads talk to the roster, and
 *               continues them later. Until then nobody hears of this host; its ranks run on
 *
 * Each happens after one step, to a host that trained this step. So a host that joins again later, with the
 * same line, is spared. A slow host: fault.c. A host that comes late: src/cli/over.c.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "train/super_int.h"

/* System calls only: the supervisor has other threads. */
static _Noreturn void hold(pid_t supervisor, pid_t carrier, double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (carrier)
        kill(carrier, SIGSTOP);
    kill(supervisor, SIGSTOP);
    while (nanosleep(&left, &left) != 0)
        continue;
    if (carrier)
        kill(carrier, SIGCONT);
    kill(supervisor, SIGCONT);
    _exit(0);
}

static void cut_off(pid_t carrier, double seconds)
{
    pid_t supervisor = getpid(), helper = fork();

    if (helper == 0)
        hold(supervisor, carrier, seconds);
    if (helper > 0)
        waitpid(helper, NULL, 0); /* here it is stopped */
}

void host_accident(const struct supervisor *super, int64_t step)
{
    const struct run *run = &super->run;
    const co_train_cfg *cfg = &run->plan->cfg;
    char text[200];

    if (run->hosts && run->hosts->returned)
        return;
    if (step == cfg->fault_host_kill) {
        snprintf(text, sizeof text, "rehearsal: this host is killed after step %lld (fault.host_kill)",
                 (long long)step);
        run_notice(run, text);
        kill(getpid(), SIGKILL);
    }
    if (step == cfg->fault_host_cut && run->hosts) {
        snprintf(text, sizeof text, "rehearsal: this host is silent for %g s after step %lld (fault.host_cut)",
                 cfg->fault_host_cut_s, (long long)step);
        run_notice(run, text);
        cut_off(super->hosts.child.pid, cfg->fault_host_cut_s);
    }
}
