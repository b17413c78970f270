/* told.c -- a signal that ends the job may come to us, to our workers directly, and to the other hosts, each in its own time: a
 * scheduler sends it to every process of the job, and a host that is asked tells the others. Whoever hears of it first, it is one
 * request: nobody is blamed for dying of it, and what one host's workers get, all get. So it is if it comes to us twice: when a
 * terminal's window is closed, its shell sends SIGHUP and then the kernel does; systemd sends SIGTERM and SIGHUP, schedulers to
 * the process and to its group.
 */
#include "job/job_int.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"

int told_signal(const char *text)
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

int told_due_ms(const job *j)
{
    int64_t now = (int64_t)(co_wall_s() * 1e9);

    for (int i = 0; i < j->n && j->state == JOB_RUNNING && !j->asked; i++) {
        int sig = died_of(&j->workers[i]);
        int64_t left = OWN_SIGNAL_MS - (now - j->workers[i].when_ns) / 1000000;
        if (sig && sigismember(&j->spec->signals, sig) == 1 && left > 0 && left <= OWN_SIGNAL_MS)
            return (int)left;
    }
    return -1;
}

void told_mask(const job *j)
{
    sigset_t after = j->old_mask;

    if (j->told || j->asked == SIGTERM || j->asked == SIGUSR1) {
        sigaddset(&after, SIGTERM);
        sigaddset(&after, SIGUSR1);
    }
    pthread_sigmask(SIG_SETMASK, &after, NULL);
}
