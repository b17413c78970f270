/* team.c -- see team.h.
 *
 *   caller                                    helper i
 *   fn, ctx, nth, left = nth - 1
 *   seat[i].turn++  for i in 1 .. nth-1  ->   sees its turn change: calls fn(ctx, i, nth)
 *   fn(ctx, 0, nth)
 *   waits until left == 0                <-   left--; the last one wakes the caller if it sleeps
 *
 * Every helper has a bell of its own, so helpers that a call does not need are not disturbed.
 */
#include "base/team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/thread.h"
#include "base/alloc.h"
#include "base/bell.h"
#include "base/maths.h"

enum { LINE = 64, STACK_TOUCHED = 32 << 10 };

typedef struct seat {
    co_bell turn;
    co_team *team;
    int ith, cpu; /* cpu: -1: any */
    pthread_t thread;
} seat;

struct co_team {
    co_bell left; /* helpers that are not through with this turn */
    void *block;  /* what was allocated: the team begins at the first cache line in it */
    int threads, started, spin;
    int nth;
    co_team_fn fn; /* NULL: end */
    void *ctx;
    cpu_set_t before; /* the caller's CPUs */
    bool pinned;
    seat seat[]; /* [threads]; 0 is the caller's and has no turn */
};

/* --- what a thread waits for ---------------------------------------------------------------------------- */
static bool is_other(uint32_t now, uint32_t old)
{
    return now != old;
}

static bool is_zero(uint32_t now, uint32_t unused)
{
    (void)unused;
    return now == 0;
}

/* --- a helper ------------------------------------------------------------------------------------------ */
static void bind_to(int cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one); /* where it is not allowed, the scheduler chooses */
}

static void *help(void *my_seat)
{
    seat *me = my_seat;
    co_team *team = me->team;
    uint32_t turn = 0;
    bool going = true;

    if (me->cpu >= 0)
        bind_to(me->cpu);
    co_fpu_init();
    co_touch_stack(STACK_TOUCHED);
    while (going) {
        turn = co_bell_wait(&me->turn, team->spin, is_other, turn);
        going = team->fn != NULL;
        if (going)
            team->fn(team->ctx, me->ith, team->nth);
        if (atomic_fetch_sub(&team->left.word, 1) == 1)
            co_bell_wake(&team->left);
    }
    return NULL;
}

/* --- the caller ---------------------------------------------------------------------------------------- */
void co_team_run(co_team *team, int nth, co_team_fn fn, void *ctx)
{
    CO_ASSERT(nth >= 1 && nth <= co_team_size(team), "a share for each thread of the team");
    if (nth > 1) {
        team->fn = fn;
        team->ctx = ctx;
        team->nth = nth;
        atomic_store_explicit(&team->left.word, (uint32_t)nth - 1, memory_order_relaxed);
        for (int i = 1; i < nth; i++) {
            atomic_fetch_add(&team->seat[i].turn.word, 1);
            co_bell_wake(&team->seat[i].turn);
        }
    }
    if (fn)
        fn(ctx, 0, nth);
    if (nth > 1)
        co_bell_wait(&team->left, team->spin, is_zero, 0);
}

int co_team_size(const co_team *team)
{
    return team ? team->threads : 1;
}

/* --- start and stop ------------------------------------------------------------------------------------ */
/* Gives each seat a CPU of its own, if the caller may use enough of them. */
static void choose_cpus(co_team *team, bool pin)
{
    int n = 0;

    for (int i = 0; i < team->threads; i++)
        team->seat[i].cpu = -1;
    if (!pin || sched_getaffinity(0, sizeof team->before, &team->before) != 0 ||
        CPU_COUNT(&team->before) < team->threads)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && n < team->threads; cpu++)
        if (CPU_ISSET(cpu, &team->before))
            team->seat[n++].cpu = cpu;
    team->pinned = true;
    bind_to(team->seat[0].cpu);
}

static co_err start_helpers(co_team *team)
{
    sigset_t before;
    int rc = 0;

    co_threads_begin(&before);
    for (int i = 1; i < team->threads && rc == 0; i++) {
        team->seat[i].team = team;
        team->seat[i].ith = i;
        rc = pthread_create(&team->seat[i].thread, NULL, help, &team->seat[i]);
        team->started += rc == 0;
    }
    co_threads_end(&before);
    if (rc == 0)
        return CO_OK;
    errno = rc;
    return co_fail(CO_EFAIL, "cannot start thread %d of %d: %m", team->started + 2, team->threads);
}

co_err co_team_start(co_team **out, int threads, int spin, bool pin)
{
    CO_ASSERT(threads >= 1 && threads <= CO_TEAM_MOST, "a size that was checked");
    if (threads == 1) {
        *out = NULL;
        return CO_OK;
    }
    void *block = co_zalloc(sizeof(co_team) + (size_t)threads * sizeof(seat) + LINE);
    if (!block)
        return CO_ENOMEM;
    co_team *team = (void *)(((uintptr_t)block + LINE - 1) & ~(uintptr_t)(LINE - 1));
    team->block = block;
    team->threads = threads;
    team->spin = spin;
    choose_cpus(team, pin);
    co_err err = start_helpers(team);
    if (err) {
        co_team_stop(team);
        return err;
    }
    *out = team;
    return CO_OK;
}

void co_team_stop(co_team *team)
{
    if (!team)
        return;
    team->threads = team->started + 1;
    co_team_run(team, team->threads, NULL, NULL);
    for (int i = 1; i < team->threads; i++)
        pthread_join(team->seat[i].thread, NULL);
    if (team->pinned)
        sched_setaffinity(0, sizeof team->before, &team->before);
    co_free(team->block);
}
