/* request.c -- somebody asked the job to end.
 *
 * One request may reach us several times. A scheduler signals every process of the job, so the signal may
 * come to us, to our workers and to the other hosts, in any order, and a host that gets it tells the others
 * through the roster. When a terminal's window is closed, first the shell and then the kernel sends SIGHUP;
 * systemd sends SIGTERM and SIGHUP. All these count as one request: no worker is blamed for dying of it, and
 * the workers of all hosts get the same signal.
 */
#include "job/job_int.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/signal.h"

/* The job's exit status if this signal asked it to end. */
int request_status(int sig)
{
    return sig == SIGTERM || sig == SIGUSR1 ? CO_EXIT_PREEMPTED : 128 + sig;
}

co_origin request_origin(int sig)
{
    return sig == SIGTERM || sig == SIGUSR1 ? CO_ORIGIN_SCHEDULER : CO_ORIGIN_USER;
}

/* A request from the conductor is not announced here: the conductor announces it on its own terminal. */
static void say_request(job *j, int sig, co_origin origin)
{
    const char *name = co_signal_name(sig);

    if (origin == CO_ORIGIN_CONDUCTOR)
        return;
    if (j->round.state == ROUND_RUNNING)
        co_screen_sayf(&j->screen, "%s: passed on to all workers; they have %g s; a second signal kills them",
                       name, j->spec->grace_s);
    else if (j->round.state == ROUND_IDLE && !j->round.is.number)
        co_screen_sayf(&j->screen, "%s: ended before the job began", name);
}

void request_end(job *j, int sig, co_origin origin)
{
    co_leave how = {.sig = sig, .origin = origin, .status = request_status(sig)};

    /* Repeated signals from the conductor need no filter here: the conductor filters them. */
    if (co_signal_repeats(sig, j->request.at_ns) && origin != CO_ORIGIN_CONDUCTOR)
        return;
    if (!j->request.sig)
        j->request.at_ns = co_now_ns();
    if (j->request.other_sig && !j->request.sig) { /* another host told us about the same request first */
        j->request.sig = sig;
        return;
    }
    /* a second request, or the job ends anyway: kill at once */
    if (j->request.sig || j->orders.over || j->orders.err) {
        if (j->round.state == ROUND_ENDING && j->round.kill_ns)
            j->round.kill_ns = AT_ONCE;
        else if (j->round.state == ROUND_ENDING)
            round_kill(j);
        j->log.hurries = true;
        j->orders.leave_ns = co_now_ns();
        return;
    }
    j->request.sig = sig;
    say_request(j, sig, origin);
    round_end(j, sig);
    snprintf(how.host, sizeof how.host, "%s", j->host);
    co_roster_leave(j->roster, &how);
}

/* The signal it died of, from the wait status or from a shell's 128 + N; 0: no signal. */
static int died_of(const worker *w)
{
    if (!w->ended || w->blamed)
        return 0;
    if (WIFSIGNALED(w->status))
        return WTERMSIG(w->status);
    int code = WEXITSTATUS(w->status);
    return code > 128 && code - 128 < NSIG ? code - 128 : 0;
}

int request_due_ms(const job *j)
{
    int64_t now = (int64_t)(co_wall_s() * 1e9);

    for (int i = 0; i < j->round.n && j->round.state == ROUND_RUNNING && !j->request.sig; i++) {
        int sig = died_of(&j->round.workers[i]);
        int64_t left = OWN_SIGNAL_MS - (now - j->round.workers[i].when_ns) / 1000000;
        if (sig && sigismember(&j->spec->signals, sig) == 1 && left > 0 && left <= OWN_SIGNAL_MS)
            return (int)left;
    }
    return -1;
}

void request_restore_mask(const job *j)
{
    sigset_t after = j->process.old_mask;

    if (j->request.other_sig || j->request.sig == SIGTERM || j->request.sig == SIGUSR1) {
        sigaddset(&after, SIGTERM);
        sigaddset(&after, SIGUSR1);
    }
    pthread_sigmask(SIG_SETMASK, &after, NULL);
}
