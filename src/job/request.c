/* told.c -- a signal that ends the job may come to us, to our workers directly, and to the other hosts, each in its own time: a
 * scheduler sends it to every process of the job, and a host that is asked tells the others. Whoever hears of it first, it is one
 * request: nobody is blamed for dying of it, and what one host's workers get, all get. So it is if it comes to us twice: when a
 * terminal's window is closed, its shell sends SIGHUP and then the kernel does; systemd sends SIGTERM and SIGHUP, schedulers to
 * the process and to its group.
 */
#include "job/job_int.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"

/* The job's status if this signal asks for its end. */
int request_status(int sig)
{
    return sig == SIGTERM || sig == SIGUSR1 ? CO_EXIT_PREEMPTED : 128 + sig;
}

void request_end(job *j, int sig, const char *on)
{
    char why[64];

    if (co_signal_repeats(sig, j->request.at_ns) && on != control_name) /* which has looked at that itself */
        return;
    if (!j->request.sig)
        j->request.at_ns = co_now_ns();
    if (j->request.other_sig && !j->request.sig) { /* another host's word of the same was faster */
        j->request.sig = sig;
        return;
    }
    if (j->request.sig || j->orders.over || j->orders.err) { /* asked twice, or ending anyway: at once */
        if (j->round.state == ROUND_ENDING && j->round.kill_ns)
            j->round.kill_ns = AT_ONCE;
        else if (j->round.state == ROUND_ENDING)
            round_kill(j);
        j->log.hurries = true;
        j->orders.leave_ns = co_now_ns();
        return;
    }
    j->request.sig = sig;
    snprintf(why, sizeof why, "SIG%s on %.40s", sigabbrev_np(sig) ? sigabbrev_np(sig) : "?", on);
    if (j->round.state == ROUND_RUNNING && on != control_name)
        co_screen_sayf(&j->screen, "SIG%s: passed on to all workers; they have %g s; once more kills them",
                       sigabbrev_np(sig) ? sigabbrev_np(sig) : "?", j->spec->grace_s);
    else if (j->round.state == ROUND_IDLE && !j->round.is.number && on != control_name)
        co_screen_sayf(&j->screen, "SIG%s: ended before the job began",
                       sigabbrev_np(sig) ? sigabbrev_np(sig) : "?");
    round_end(j, sig);
    co_roster_leave(j->roster, request_status(sig), why);
}

int request_signal_in(const char *text)
{
    for (const char *at = text; (at = strstr(at, "SIG")); at += 3) {
        size_t n = strcspn(at + 3, " ");
        for (int s = 1; s < NSIG && strncmp(at + 3 + n, " on ", 4) == 0; s++) {
            const char *known = sigabbrev_np(s);
            if (known && strlen(known) == n && strncmp(known, at + 3, n) == 0)
                return s;
        }
    }
    return 0;
}

/* What it died of, by wait status or as a shell says it; 0: no signal. */
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
