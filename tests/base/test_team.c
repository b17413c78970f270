/* A team of threads: every share is run once, all meet at the end of a call, and nothing races. */
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/team.h"
#include "harness.h"

enum { MOST = 5, ITEMS = 1000 };

static co_team *team_of(int threads, int spin)
{
    co_team *team = NULL;

    CHECK_OK(co_team_start(&team, threads, spin, false));
    CHECK(co_team_size(team) == threads, "%d threads", co_team_size(team));
    return team;
}

struct work {
    int x[ITEMS];    /* each share adds 1 to its own elements: plain writes */
    int calls[MOST]; /* by thread */
    int of[MOST];    /* the nth that it was given */
    pthread_t me[MOST];
};

static void add_one(void *ctx, int ith, int nth)
{
    struct work *w = ctx;

    for (int i = ITEMS * ith / nth; i < ITEMS * (ith + 1) / nth; i++)
        w->x[i]++;
    w->calls[ith]++;
    w->of[ith] = nth;
    w->me[ith] = pthread_self();
}

/* Between two calls the caller reads and writes all elements, which only works if the threads really meet. */
static void many_turns(int threads, int spin, int turns)
{
    static struct work w;
    co_team *team = team_of(threads, spin);

    memset(&w, 0, sizeof w);
    for (int t = 0; t < turns; t++) {
        int nth = 1 + t % threads;
        memset(w.calls, 0, sizeof w.calls);
        co_team_run(team, nth, add_one, &w);
        for (int i = 0; i < ITEMS; i++)
            CHECK(w.x[i] == 1, "%d threads of %d, turn %d: element %d is %d", nth, threads, t, i, w.x[i]);
        for (int i = 0; i < MOST; i++)
            CHECK(w.calls[i] == (i < nth) && (i >= nth || w.of[i] == nth), "thread %d of %d", i, nth);
        memset(w.x, 0, sizeof w.x);
    }
    CHECK(pthread_equal(w.me[0], pthread_self()), "the caller is thread 0");
    co_team_stop(team);
}

TEST(threads_of_a_team_each_do_their_share_and_meet_tsan)
{
    for (int threads = 1; threads <= MOST; threads++)
        many_turns(threads, CO_TEAM_SPIN, 300);
}

TEST(threads_of_a_team_that_sleep_at_once_are_woken_tsan)
{
    for (int threads = 2; threads <= MOST; threads++)
        many_turns(threads, 0, 1000);
}

TEST(a_team_of_one_has_no_thread_and_allocates_nothing)
{
    static struct work w;
    uint64_t before = co_alloc_count();
    co_team *team = team_of(1, 0);

    CHECK(!team, "a team");
    co_team_run(team, 1, add_one, &w);
    co_team_stop(team);
    CHECK(w.calls[0] == 1 && w.x[0] == 1 && w.x[ITEMS - 1] == 1, "not run");
    CHECK(co_alloc_count() == before, "it allocates");
}

static void note_rounding(void *ctx, int ith, int nth)
{
    (void)nth;
    ((int *)ctx)[ith] = fegetround();
}

static void note_signals(void *ctx, int ith, int nth)
{
    sigset_t blocked;

    (void)nth;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    ((int *)ctx)[ith] = sigismember(&blocked, SIGTERM) + 2 * sigismember(&blocked, SIGSEGV);
}

TEST(helpers_round_to_nearest_and_leave_signals_to_the_caller)
{
    int seen[3];

    fesetround(FE_UPWARD);
    co_team *team = team_of(3, 0);
    fesetround(FE_TONEAREST);
    co_team_run(team, 3, note_rounding, seen);
    CHECK(seen[0] == FE_TONEAREST && seen[1] == FE_TONEAREST && seen[2] == FE_TONEAREST, "other rounding");
    co_team_run(team, 3, note_signals, seen);
    CHECK(seen[0] == 0 && seen[1] == 1 && seen[2] == 1, "%d %d %d", seen[0], seen[1], seen[2]);
    co_team_stop(team);
}

static void note_cpus(void *ctx, int ith, int nth)
{
    (void)nth;
    sched_getaffinity(0, sizeof(cpu_set_t), &((cpu_set_t *)ctx)[ith]);
}

TEST(pinned_threads_have_a_cpu_each_and_the_caller_gets_its_own_back)
{
    cpu_set_t before, after, seen[2], both;
    co_team *team = NULL;

    sched_getaffinity(0, sizeof before, &before);
    if (CPU_COUNT(&before) < 2)
        test_skip("one CPU");
    CHECK_OK(co_team_start(&team, 2, 0, true));
    co_team_run(team, 2, note_cpus, seen);
    CPU_AND(&both, &seen[0], &seen[1]);
    CHECK(CPU_COUNT(&seen[0]) == 1 && CPU_COUNT(&seen[1]) == 1 && CPU_COUNT(&both) == 0, "not one each");
    co_team_stop(team);
    sched_getaffinity(0, sizeof after, &after);
    CHECK(CPU_EQUAL(&before, &after), "the caller stays bound");
}

static co_err start_and_stop(void *unused)
{
    co_team *team = NULL;
    co_err err = co_team_start(&team, 3, 0, false);

    (void)unused;
    if (!err)
        co_team_stop(team);
    return err;
}

TEST(starting_a_team_survives_every_failing_allocation)
{
    test_each_alloc_fails(start_and_stop, NULL);
}
