/* stall.c -- decides which worker hangs when a job stops making progress.
 *
 * A worker makes progress when it prints, or when its processes use more than a hundredth of a core. With
 * --stall-after S /proc is read every S/5 seconds (0.1 to 5), and a worker without progress for S seconds
 * ends the job. Who is blamed:
 *
 * 1. Workers wait for each other: when one hangs, all stop within a step. Those that stopped within two
 *    checks of the first are suspects; their order within that time means nothing.
 * 2. A suspect that waits for nobody (a sleep, a disk, stopped) is the culprit.
 * 3. If all others wait (for a lock, a socket, a poll) and one worker computes without printing for S
 *    seconds, they wait for that one: it spins.
 * 4. Otherwise the suspect that stopped first.
 *
 * On several hosts, a host whose workers all wait gives the other hosts two checks to report first. While an
 * outlet is full no clock runs: a worker may be waiting to print, and the others for that worker.
 *
 * Without --stall-after, a job without output for HANG_SAY_S goes on; one message says what each worker waits
 * for.
 *
 * The crew of the trainer (proc/crew.c) has a rule of its own, because it knows more: its ranks are our code,
 * count their progress in shared memory and say when they wait. Here the workers are somebody else's
 * programs.
 */
#include "job/job_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define IDLE_SHARE 0.01 /* of a core: a worker that uses less computes nothing */

/* --- times --------------------------------------------------------------------------------------------- */
static bool ends_job(const job *j)
{
    return j->spec->stall_s > 0;
}

/* After this time without progress a worker is reported. */
static double limit_s(const job *j)
{
    double hang_s = j->spec->hang_s > 0 ? j->spec->hang_s : HANG_SAY_S;

    return ends_job(j) ? j->spec->stall_s : hang_s / 2; /* /proc is not read in the first half */
}

static double interval_s(const job *j)
{
    double s = limit_s(j) / 5, most = ends_job(j) ? 5 : 30;

    return s < 0.1 ? 0.1 : s > most ? most : s;
}

/* Workers whose clocks differ by no more than this stopped together. */
static double two_checks_s(const job *j)
{
    double s = 2 * interval_s(j), half = limit_s(j) / 2;

    return s < half ? s : half;
}

static double since_s(uint64_t when_ns)
{
    return (double)(co_now_ns() - when_ns) * 1e-9;
}

static double still_s(const worker *w)
{
    return since_s(w->active_ns);
}

static bool runs(const worker *w)
{
    return !w->ended && w->pid;
}

/* When a worker of ours last printed something. */
static uint64_t last_output_ns(const job *j)
{
    uint64_t last = 0;

    for (int i = 0; i < j->round.n; i++)
        if (j->round.workers[i].printed_ns > last)
            last = j->round.workers[i].printed_ns;
    return last;
}

int stall_due_ms(const job *j)
{
    if (j->round.state != ROUND_RUNNING || (!ends_job(j) && j->stall.hang_said))
        return -1;
    uint64_t now = co_now_ns(), due = j->stall.next_ns;
    if (!ends_job(j)) { /* a job with output does not hang */
        uint64_t quiet = last_output_ns(j) + (uint64_t)(limit_s(j) * 1e9);
        due = quiet > due ? quiet : due;
    }
    return due <= now ? 0 : (int)((due - now) / 1000000) + 1;
}

/* --- progress ------------------------------------------------------------------------------------------ */
/* Has the worker used more CPU time than idle threads need? Threads of gloo, for example, wake up a hundred
 * times a second to check a clock. */
static bool computed(uint64_t ticks, uint64_t before, double s)
{
    double idle = 1 + IDLE_SHARE * s * (double)sysconf(_SC_CLK_TCK); /* 1: a tick that began before */

    return ticks < before || (double)(ticks - before) > idle; /* fewer ticks: a process has ended */
}

static void check(worker *w, const co_proc *p, int n, double interval)
{
    uint64_t ticks = co_proc_ticks(p, n, w->guard); /* daemons of the worker are below its guard, too */

    if (computed(ticks, w->ticks, interval) || computed(ticks, w->active_ticks, still_s(w))) {
        w->active_ticks = ticks;
        w->active_ns = co_now_ns();
    }
    w->ticks = ticks;
}

/* Returns the longest time that any worker has made no progress. */
static double check_all(job *j, const co_proc *p, int n)
{
    bool unread = co_outlets_full(&j->screen.out);
    double longest = 0;

    for (int i = 0; i < j->round.n; i++) {
        worker *w = &j->round.workers[i];
        if (!runs(w))
            continue;
        check(w, p, n, interval_s(j));
        if (unread)
            w->active_ns = w->printed_ns = co_now_ns();
        double s = still_s(w);
        longest = s > longest ? s : longest;
    }
    return longest;
}

/* --- who is to blame ----------------------------------------------------------------------------------- */
typedef struct survey {
    bystander *list; /* workers that make no progress, or compute without output, by rank */
    int n;
    int running; /* all workers that run */
} survey;

static bool survey_take(survey *out, job *j, const co_proc *p, int n)
{
    *out = (survey){.list = co_array((size_t)j->round.n, sizeof *out->list)};
    for (int i = 0; out->list && i < j->round.n; i++) {
        worker *w = &j->round.workers[i];
        if (!runs(w))
            continue;
        out->running++;
        bool still = still_s(w) >= two_checks_s(j), silent = since_s(w->printed_ns) >= limit_s(j);
        if (!still && !silent)
            continue;
        bystander *b = &out->list[out->n++];
        *b = (bystander){.w = w, .suspect = co_proc_suspect(p, n, w->pid), .spins = !still};
        b->in = (co_proc_wait){.state = still ? "" : "computing", .means = ""};
        if (still && b->suspect)
            co_proc_wait_of(&b->in, b->suspect);
    }
    return out->list != NULL;
}

/* The suspect that stopped first, among those that wait for others or among those that do not. */
static const bystander *first_suspect(const survey *s, bool for_others, double at_least_s)
{
    const bystander *first = NULL;

    for (int i = 0; i < s->n; i++) {
        const bystander *b = &s->list[i];
        if (!b->spins && b->in.for_others == for_others && still_s(b->w) >= at_least_s &&
            (!first || b->w->active_ns < first->w->active_ns))
            first = b;
    }
    return first;
}

/* The only worker that computes while all others wait for others. */
static const bystander *spinner(const survey *s)
{
    const bystander *found = NULL;
    int n = 0;

    for (int i = 0; i < s->n; i++)
        if (s->list[i].spins) {
            found = &s->list[i];
            n++;
        }
    return n == 1 && s->n == s->running && s->n > 1 ? found : NULL;
}

static const bystander *culprit(const survey *s, double at_least_s)
{
    const bystander *who = first_suspect(s, false, at_least_s);

    if (!who)
        who = spinner(s);
    return who ? who : first_suspect(s, true, at_least_s);
}

static bool same_place(const bystander *a, const bystander *b)
{
    return strcmp(a->in.where, b->in.where) == 0 && strcmp(a->in.state, b->in.state) == 0;
}

/* "0, 2-5": the ranks that wait in the same place as s[at]. */
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

/* "; standing still: rank 0: asleep in sleep; rank 1-3: asleep in futex", cut to the room there is. */
static void list(char *out, size_t size, const bystander *s, int n, const char *before)
{
    static const char more[] = "; ...";
    co_str text = {0};

    out[0] = '\0';
    for (int i = 0; i < n && (n > 1 || before[0] == ':'); i++) {
        int first = 0;
        while (!same_place(&s[first], &s[i]))
            first++;
        if (first < i)
            continue;
        size_t had = strlen(co_str_text(&text));
        co_str_add(&text, i == 0 ? before : "; rank ");
        ranks_text(&text, s, n, i);
        co_str_addf(&text, ": %s%s%s", s[i].in.state, s[i].in.where[0] ? " in " : "", s[i].in.where);
        bool fits = strlen(co_str_text(&text)) + sizeof more <= size;
        snprintf(out + had, size - had, "%s", fits ? co_str_text(&text) + had : more);
        if (!fits)
            break;
    }
    co_str_fini(&text);
}

/* With --stall-after: the culprit counts as failed. */
static void blame_stall(job *j, const survey *s, double longest)
{
    char all[184]; /* the room after the longest advice */
    co_failure f;
    const bystander *who = culprit(s, longest - two_checks_s(j));
    bool early = longest < j->spec->stall_s + two_checks_s(j);

    if (!who || (who->in.for_others && j->round.is.hosts > 1 && early))
        return;
    double s_ago = who->spins ? since_s(who->w->printed_ns) : still_s(who->w);
    who->w->when_ns = (int64_t)((co_wall_s() - s_ago) * 1e9);
    list(all, sizeof all, s->list, s->n, "; standing still: rank ");
    cause_of_stall(&f, j, who, s_ago, all);
    judge_failed(j, &f);
}

/* Without --stall-after: one message, and the job goes on. */
static void say_hang(job *j, const survey *s, double longest)
{
    char all[600];
    const bystander *who = culprit(s, longest - two_checks_s(j));

    if (!who)
        return;
    j->stall.hang_said = true;
    list(all, sizeof all, s->list, s->n, ": rank ");
    if (who->in.for_others)
        co_screen_sayf(
            &j->screen,
            "no output for %.0f s%s. They wait for each other%s: py-spy dump --pid %d shows where in "
            "Python. The job goes on; --stall-after=SECONDS would end it",
            since_s(last_output_ns(j)), all, j->round.is.hosts > 1 ? " or for another host" : "",
            (int)who->w->pid);
    else
        co_screen_sayf(
            &j->screen,
            "no output for %.0f s%s. Most likely the others wait for rank %d: py-spy dump --pid %d "
            "shows where in Python. The job goes on; --stall-after=SECONDS would end it",
            since_s(last_output_ns(j)), all, who->w->rank, (int)who->w->pid);
}

void stall_begin(job *j)
{
    j->stall = (struct stall){0};
}

void stall_watch(job *j)
{
    co_proc *p;
    survey s;

    if (stall_due_ms(j) != 0)
        return;
    j->stall.next_ns = co_now_ns() + (uint64_t)(interval_s(j) * 1e9);
    int n = co_proc_scan(&p);
    double longest = check_all(j, p, n);
    bool quiet = ends_job(j) || since_s(last_output_ns(j)) >= 2 * limit_s(j);
    if (longest > limit_s(j) && quiet && survey_take(&s, j, p, n)) {
        if (ends_job(j))
            blame_stall(j, &s, longest);
        else
            say_hang(j, &s, longest);
        co_free(s.list);
    }
    co_free(p);
}
