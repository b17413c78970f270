/* team.c -- see team.h.
 *
 *   caller                                    helper i
 *   fn, ctx, nth, left = nth - 1
 *   seat[i].turn++  for i in 1 .. nth-1  ->   sees its turn change: calls fn(ctx, i, nth)
 *   fn(ctx, 0, nth)
 *   waits until left == 0                <-   left--; the last one wakes the caller if it sleeps
 *
 * Every helper has a word and a cache line of its own, so helpers that a call does not need are not
 * disturbed. Who waits announces that it sleeps and then looks at the word once more; who changes the word
 * looks at the announcement afterwards. Both are sequentially consistent, so one of the two sees the other,
 * and no wake-up is lost.
 */
#include "base/team.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/maths.h"

/* A thread that has spun in vain offers its CPU to others so often, most of a millisecond, before it
 * sleeps. Threads that share a call of a few milliseconds often wait longer than they spin, and to wake
 * one takes as long again. If somebody took the CPU, it sleeps at once: a thread that was woken comes before
 * others that compute, one that yielded comes after them. */
enum { LINE = 64, STACK_TOUCHED = 32 << 10, YIELDS = 2000, TAKEN_NS = 100000 };

/* A word that one side changes and the other waits for. */
typedef struct bell {
    _Alignas(LINE) _Atomic uint32_t word;
    _Atomic uint32_t sleeping;
} bell;

typedef struct seat {
    bell turn;
    co_team *team;
    int ith, cpu; /* cpu: -1: any */
    pthread_t thread;
} seat;

struct co_team {
    bell left;   /* helpers that are not through with this turn */
    void *block; /* what was allocated: the team begins at the first cache line in it */
    int threads, started, spin;
    int nth;
    co_team_fn fn; /* NULL: end */
    void *ctx;
    cpu_set_t before; /* the caller's CPUs */
    bool pinned;
    seat seat[]; /* [threads]; 0 is the caller's and has no turn */
};

/* --- waiting ------------------------------------------------------------------------------------------- */
static void bell_wake(bell *b)
{
    if (atomic_load(&b->sleeping))
        syscall(SYS_futex, &b->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Offers the CPU to others. False: somebody took it. */
static bool stays_after_yield(void)
{
    uint64_t before = co_now_ns();

    sched_yield();
    return co_now_ns() - before < TAKEN_NS;
}

/* Waits while done(word, arg) is false. */
static uint32_t bell_wait(bell *b, bool (*done)(uint32_t now, uint32_t arg), uint32_t arg, int spin)
{
    uint32_t now;

    for (int i = 0; i <= spin + YIELDS * (spin > 0); i++) {
        now = atomic_load_explicit(&b->word, memory_order_acquire);
        if (done(now, arg))
            return now;
        if (i < spin)
            co_relax();
        else if (!stays_after_yield())
            break;
    }
    atomic_store(&b->sleeping, 1);
    while (!done(now = atomic_load(&b->word), arg))
        syscall(SYS_futex, &b->word, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
    atomic_store(&b->sleeping, 0);
    return now;
}

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
        turn = bell_wait(&me->turn, is_other, turn, team->spin);
        going = team->fn != NULL;
        if (going)
            team->fn(team->ctx, me->ith, team->nth);
        if (atomic_fetch_sub(&team->left.word, 1) == 1)
            bell_wake(&team->left);
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
            bell_wake(&team->seat[i].turn);
        }
    }
    if (fn)
        fn(ctx, 0, nth);
    if (nth > 1)
        bell_wait(&team->left, is_zero, 0, team->spin);
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
