/* judge.c -- what became of the workers: who failed first, who has had its time, whether all are gone. */
#include "launch/job_int.h"

#include <signal.h>
#include <stdio.h>

#include "base/clock.h"

void job_failed(job *j, const co_failure *f)
{
    if (!j->failed || f->when_ns < j->own.when_ns)
        j->own = *f;
    j->failed = true;
    if (!j->blame_ns && !j->said)
        j->blame_ns = co_now_ns() + BLAME_WAIT_MS * UINT64_C(1000000);
    co_roster_failed(j->roster, f);
    round_end(j, SIGTERM);
}

/* The earliest of those that failed by themselves and were not told yet. */
static worker *first_failed(job *j)
{
    worker *first = NULL;

    for (int i = 0; i < j->n; i++) {
        worker *w = &j->workers[i];
        bool own = j->state == JOB_RUNNING || (j->state == JOB_ENDING && w->when_ns < j->ending_ns);
        if (worker_failed(w) && !w->blamed && own && (!first || w->when_ns < first->when_ns))
            first = w;
    }
    return first;
}

/* Its time is over. A worker that has ended may have left others, of which its guard knows. */
static void say_killed(const worker *w)
{
    job *j = w->job;
    char who[64];

    snprintf(who, sizeof who, w->ended ? "what rank %d (pid %d) left running" : "rank %d (pid %d)", w->rank,
             (int)w->pid);
    if (j->kill_ns == AT_ONCE)
        job_say(j, "asked once more: %s is killed", who);
    else
        job_say(j, "%s has not ended within %g s: killed", who, j->spec->grace_s);
}

void job_judge(job *j)
{
    worker *w;

    if (told_due_ms(j) >= 0)
        return;
    while ((w = first_failed(j)) && !j->asked) {
        co_failure f;
        w->blamed = true;
        cause_of(&f, j, w);
        job_failed(j, &f);
    }
    if (j->blame_ns && co_now_ns() >= j->blame_ns)
        blame(j, &j->own, "");
    if (j->kill_ns && j->state == JOB_ENDING && co_now_ns() >= j->kill_ns) {
        for (int i = 0; i < j->n; i++)
            if (j->workers[i].sock >= 0)
                say_killed(&j->workers[i]);
        round_kill(j);
    }
    if (j->state == JOB_IDLE || !round_gone(j))
        return;
    bool well = j->state == JOB_RUNNING;
    round_free(j);
    if (well)
        co_roster_done(j->roster);
}
