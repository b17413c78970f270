/* stall.c -- workers that neither print nor compute (--stall-after S).
 *
 * Every S/5 seconds (0.1 to 5) one look at /proc: a worker's clock starts again when it has printed, or when the CPU time of
 * its tree has grown. Where several stand still the one that has done so longest is blamed: the others most likely wait
 * for it. While an outlet is full no clock runs: a worker may wait to print, and the others for it, until our reader reads.
 */
#include "launch/job_int.h"

#include "base/clock.h"

static double interval_s(const job *j)
{
    double s = j->spec->stall_s / 5;

    return s < 0.1 ? 0.1 : s > 5 ? 5 : s;
}

int stall_due_ms(const job *j)
{
    if (j->spec->stall_s <= 0 || j->state != JOB_RUNNING)
        return -1;
    uint64_t now = co_now_ns();
    return j->look_ns <= now ? 0 : (int)((j->look_ns - now) / 1000000) + 1;
}

static void look(worker *w, const proc *p, int n)
{
    uint64_t ticks = tree_ticks(p, n, w->guard); /* daemons of the worker are below it, too */

    if (ticks != w->ticks) {
        w->ticks = ticks;
        w->active_ns = co_now_ns();
    }
}

void stall_watch(job *j)
{
    bool unread = outlets_full(&j->console.out);
    worker *still = NULL;
    proc *p;

    if (stall_due_ms(j) != 0)
        return;
    j->look_ns = co_now_ns() + (uint64_t)(interval_s(j) * 1e9);
    int n = tree_scan(&p);
    for (int i = 0; i < j->n; i++) {
        worker *w = &j->workers[i];
        if (w->ended || !w->pid)
            continue;
        look(w, p, n);
        if (unread)
            w->active_ns = co_now_ns();
        if (!still || w->active_ns < still->active_ns)
            still = w;
    }
    double s = still ? (double)(co_now_ns() - still->active_ns) * 1e-9 : 0;
    if (still && s > j->spec->stall_s) {
        co_failure f;
        still->when_ns = (int64_t)((co_wall_s() - s) * 1e9);
        cause_of_stall(&f, j, still, s, tree_suspect(p, n, still->pid));
        job_failed(j, &f);
    }
    co_free(p);
}
