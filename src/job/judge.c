/* judge.c -- judges the workers: which failed first, which have used up the grace period, whether all are
 * gone.
 *
 * After a request to end, only crashes count as failures: workers that died of another signal or of a Python
 * exception while they should have saved. The first crash is reported, and its status becomes this launcher's
 * exit status. The roster is not told: for the roster the job is already over.
 */
#include "job/job_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/signal.h"

void judge_begin(job *j)
{
    j->verdict.failed = j->verdict.said = false;
    j->verdict.blame_ns = 0;
}

void judge_failed(job *j, const co_failure *f)
{
    if (!j->verdict.failed || f->when_ns < j->verdict.own.when_ns)
        j->verdict.own = *f;
    j->verdict.failed = true;
    if (!j->verdict.blame_ns && !j->verdict.said)
        j->verdict.blame_ns = co_now_ns() + BLAME_WAIT_MS * UINT64_C(1000000);
    co_roster_failed(j->roster, f);
    round_end(j, SIGTERM);
}

/* The earliest worker that failed by itself and was not reported yet. */
static worker *first_failed(job *j)
{
    worker *first = NULL;

    for (int i = 0; i < j->round.n; i++) {
        worker *w = &j->round.workers[i];
        bool own = j->round.state == ROUND_RUNNING ||
                   (j->round.state == ROUND_ENDING && w->when_ns < j->round.ending_ns);
        if (worker_failed(w) && !w->blamed && own && (!first || w->when_ns < first->when_ns))
            first = w;
    }
    return first;
}

/* --- asked to end -------------------------------------------------------------------------------------- */
/* The signal that asked the workers to end; 0: none, or they end because of a failure. */
static int request(const job *j)
{
    return j->verdict.failed || j->orders.err ? 0 : j->request.sig ? j->request.sig : j->request.other_sig;
}

static bool crashed(const job *j, const worker *w)
{
    const char *exception = w->exception[0] || w->when_ns >= j->round.ending_ns ? w->exception : w->earlier;
    int sig = WIFSIGNALED(w->status) ? WTERMSIG(w->status) : 0;

    if (!worker_failed(w) || w->not_started)
        return false;
    if (!sig)
        return exception[0] && !cause_excused(exception);
    bool asks = sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == request(j) ||
                sigismember(&j->spec->signals, sig) == 1;
    return !asks && !(sig == SIGKILL && j->round.had_to_kill);
}

/* The earliest worker that crashed (or, if `crash` is false, that exited with a status other than 0 without
 * crashing), and how many there are. */
static worker *first_of(job *j, bool crash, int *n)
{
    worker *first = NULL;

    *n = 0;
    for (int i = 0; i < j->round.n; i++) {
        worker *w = &j->round.workers[i];
        if (crash ? !crashed(j, w) : !worker_failed(w) || !WIFEXITED(w->status) || crashed(j, w))
            continue;
        *n += 1;
        if (!first || w->when_ns < first->when_ns)
            first = w;
    }
    return first;
}

static void judge_crash(job *j)
{
    co_failure f;
    char next[128];
    int n;
    worker *w = request(j) && !j->verdict.said ? first_of(j, true, &n) : NULL;

    if (!w)
        return;
    cause_of(&f, j, w);
    j->verdict.crash_status = co_failure_status(&f);
    snprintf(next, sizeof next, "%s had asked it to end; the exit status is %d, as it crashed",
             co_signal_name(request(j)), j->verdict.crash_status);
    blame(j, &f, next);
}

/* Reports a worker that did not crash but exited with a status other than 0. */
static void say_status(job *j)
{
    char others[64] = "";
    int n;
    worker *w = request(j) && !j->verdict.said ? first_of(j, false, &n) : NULL;

    if (!w)
        return;
    if (n > 1)
        snprintf(others, sizeof others, "; so did %d more, with this or another one", n - 1);
    co_screen_sayf(&j->screen, "rank %d ended with status %d after %s%s%s%s", w->rank, WEXITSTATUS(w->status),
                   co_signal_name(request(j)), w->exception[0] ? ": " : "", w->exception, others);
}

/* The grace period is over. A worker that has ended may have left processes running; its guard knows them. */
static void say_killed(job *j, const worker *w)
{
    char who[64];

    snprintf(who, sizeof who, w->ended ? "what rank %d (pid %d) left running" : "rank %d (pid %d)", w->rank,
             (int)w->pid);
    if (j->round.kill_ns == AT_ONCE)
        co_screen_sayf(&j->screen, "a second request to end: %s is killed", who);
    else
        co_screen_sayf(&j->screen, "%s has not ended within %g s: killed", who, j->spec->grace_s);
}

void judge_turn(job *j)
{
    worker *w;

    if (request_due_ms(j) >= 0)
        return;
    while ((w = first_failed(j)) && !j->request.sig) {
        co_failure f;
        w->blamed = true;
        cause_of(&f, j, w);
        judge_failed(j, &f);
    }
    judge_crash(j);
    if (j->verdict.blame_ns && co_now_ns() >= j->verdict.blame_ns)
        blame(j, &j->verdict.own, "");
    if (j->round.kill_ns && j->round.state == ROUND_ENDING && co_now_ns() >= j->round.kill_ns) {
        for (int i = 0; i < j->round.n; i++)
            if (j->round.workers[i].sock >= 0)
                say_killed(j, &j->round.workers[i]);
        round_kill(j);
    }
    if (j->round.state == ROUND_IDLE || !round_gone(j))
        return;
    bool well = j->round.state == ROUND_RUNNING;
    judge_crash(j); /* its traceback may have arrived only now */
    say_status(j);
    round_free(j);
    if (well)
        co_roster_done(j->roster);
}
