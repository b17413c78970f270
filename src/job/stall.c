/* stall.c -- workers that neither print nor compute (--stall-after S).
 *
 * Every S/5 seconds (0.1 to 5) one look at /proc: a worker's clock starts again when it has printed, or when its tree has used
 * more than a hundredth of a core, since the last look or since the clock started.
 * Workers of a job wait for each other: when one hangs, all stand still within a step, and who did so first is no more than the
 * order of our looks. So among those whose clocks started within two looks of the first one's, one that waits in nothing which
 * another has to end (waits.c) is blamed: in a sleep, a disk, a stop. If there is none, the one that has stood still longest. The
 * advice names all of them. Of several hosts, one whose workers all wait for others lets the rest speak first, for two looks.
 * While an outlet is full no clock runs: a worker may wait to print, and the others for it, until our reader reads.
 */
#include "job/job_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define IDLE_SHARE 0.01 /* of a core: who uses less computes nothing */

static double interval_s(const job *j)
{
    double s = j->spec->stall_s / 5;

    return s < 0.1 ? 0.1 : s > 5 ? 5 : s;
}

/* Clocks that differ by no more stand together. */
static double two_looks_s(const job *j)
{
    double s = 2 * interval_s(j), half = j->spec->stall_s / 2;

    return s < half ? s : half;
}

int stall_due_ms(const job *j)
{
    if (j->spec->stall_s <= 0 || j->round.state != ROUND_RUNNING)
        return -1;
    uint64_t now = co_now_ns();
    return j->stall.next_ns <= now ? 0 : (int)((j->stall.next_ns - now) / 1000000) + 1;
}

static double still_s(const worker *w)
{
    return (double)(co_now_ns() - w->active_ns) * 1e-9;
}

/* More than what threads use that only wake up to look at a clock, as those of gloo do a hundred times a second (2 ms of it)? */
static bool computed(uint64_t ticks, uint64_t before, double s)
{
    double idle = 1 + IDLE_SHARE * s * (double)sysconf(_SC_CLK_TCK); /* 1: the rest of an older tick */

    return ticks < before || (double)(ticks - before) > idle; /* less: a process has ended */
}

static void check(worker *w, const co_proc *p, int n, double interval)
{
    uint64_t ticks = co_proc_ticks(p, n, w->guard); /* daemons of the worker are below it, too */

    if (computed(ticks, w->ticks, interval) || computed(ticks, w->active_ticks, still_s(w))) {
        w->active_ticks = ticks;
        w->active_ns = co_now_ns();
    }
    w->ticks = ticks;
}

static bool runs(const worker *w)
{
    return !w->ended && w->pid;
}

/* The longest that one of them has stood still. */
static double look_at_all(job *j, const co_proc *p, int n)
{
    bool unread = co_outlets_full(&j->screen.out);
    double longest = 0;

    for (int i = 0; i < j->round.n; i++) {
        worker *w = &j->round.workers[i];
        if (!runs(w))
            continue;
        check(w, p, n, interval_s(j));
        if (unread)
            w->active_ns = co_now_ns();
        double s = still_s(w);
        longest = s > longest ? s : longest;
    }
    return longest;
}

/* Those that stand still now, in the order of ranks. */
static int find_bystanders(bystander *out, job *j, const co_proc *p, int n)
{
    int found = 0;

    for (int i = 0; i < j->round.n; i++) {
        worker *w = &j->round.workers[i];
        if (!runs(w) || still_s(w) < two_looks_s(j))
            continue;
        bystander *s = &out[found++];
        *s = (bystander){.w = w, .suspect = co_proc_suspect(p, n, w->pid), .in = {.state = "", .means = ""}};
        if (s->suspect)
            co_proc_wait_of(&s->in, s->suspect);
    }
    return found;
}

static const bystander *blamed_of(const bystander *s, int n, double longest, double together)
{
    const bystander *best = NULL;

    for (int i = 0; i < n; i++) {
        if (still_s(s[i].w) < longest - together)
            continue;
        bool better = best && best->in.for_others != s[i].in.for_others ? best->in.for_others
                      : best ? s[i].w->active_ns < best->w->active_ns
                             : true;
        if (better)
            best = &s[i];
    }
    return best;
}

static bool same_place(const bystander *a, const bystander *b)
{
    return strcmp(a->in.where, b->in.where) == 0 && strcmp(a->in.state, b->in.state) == 0;
}

/* "0, 2-5": those at the same place as s[at]. */
static void ranks_text(co_str *out, const bystander *s, int n, int at)
{
    const char *between = "";

    for (int i = at, last; i < n; i = last + 1) {
        last = i;
        if (!same_place(&s[i], &s[at]))
            continue;
        while (last + 1 < n && same_place(&s[last + 1], &s[at]) && s[last + 1].w->rank == s[last].w->rank + 1)
            last++;
        co_str_addf(out, "%s%d", between, s[i].w->rank);
        if (last > i)
            co_str_addf(out, "-%d", s[last].w->rank);
        between = ", ";
    }
}

/* "; standing still: rank 0: asleep in sleep; rank 1-3: asleep in futex", as far as there is room. */
static void list(char *out, size_t size, const bystander *s, int n)
{
    static const char more[] = "; ...";
    co_str text = {0};

    out[0] = '\0';
    for (int i = 0; i < n && n > 1; i++) {
        int first = 0;
        while (!same_place(&s[first], &s[i]))
            first++;
        if (first < i)
            continue;
        size_t before = strlen(co_str_text(&text));
        co_str_add(&text, i == 0 ? "; standing still: rank " : "; rank ");
        ranks_text(&text, s, n, i);
        co_str_addf(&text, ": %s%s%s", s[i].in.state, s[i].in.where[0] ? " in " : "", s[i].in.where);
        bool fits = strlen(co_str_text(&text)) + sizeof more <= size;
        snprintf(out + before, size - before, "%s", fits ? co_str_text(&text) + before : more);
        if (!fits)
            break;
    }
    co_str_fini(&text);
}

static void judge(job *j, const co_proc *p, int n, double longest)
{
    char all[184]; /* behind the longest advice */
    co_failure f;
    bystander *s = co_array((size_t)j->round.n, sizeof *s);
    int found = s ? find_bystanders(s, j, p, n) : 0;
    const bystander *who = blamed_of(s, found, longest, two_looks_s(j));
    bool early = longest < j->spec->stall_s + two_looks_s(j);

    if (who && !(who->in.for_others && j->round.is.hosts > 1 && early)) {
        who->w->when_ns = (int64_t)((co_wall_s() - still_s(who->w)) * 1e9);
        list(all, sizeof all, s, found);
        cause_of_stall(&f, j, who, still_s(who->w), all);
        judge_failed(j, &f);
    }
    co_free(s);
}

void stall_watch(job *j)
{
    co_proc *p;

    if (stall_due_ms(j) != 0)
        return;
    j->stall.next_ns = co_now_ns() + (uint64_t)(interval_s(j) * 1e9);
    int n = co_proc_scan(&p);
    double longest = look_at_all(j, p, n);
    if (longest > j->spec->stall_s)
        judge(j, p, n, longest);
    co_free(p);
}
