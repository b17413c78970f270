/* Events: a ring wakes a sleeper in another process; without a ring the sleeper wakes by itself. */
#include "comm/event.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

struct table {
    co_event event;
    _Atomic uint32_t turn;
    _Atomic uint32_t naps; /* waits that lasted a whole nap */
};

static struct table *shared_table(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED, "mmap");
    return p;
}

/* Two players count to `until` in turn; each sleeps during the other's turn. */
static void play(struct table *t, uint32_t me, uint32_t until, int spin)
{
    for (;;) {
        uint32_t seen = co_event_now(&t->event), turn = atomic_load(&t->turn);
        if (turn >= until)
            return;
        if (turn % 2 == me) {
            atomic_store(&t->turn, turn + 1);
            co_event_ring(&t->event);
            continue;
        }
        uint64_t t0 = co_now_ns();
        co_event_wait(&t->event, seen, me, spin);
        if (co_now_ns() - t0 > CO_EVENT_NAP_MS * 900000u && atomic_load(&t->turn) != turn)
            atomic_fetch_add(&t->naps, 1);
    }
}

TEST(a_ring_wakes_a_sleeper_in_another_process)
{
    struct table *t = shared_table();
    enum { ROUNDS = 2000 };

    uint64_t t0 = co_now_ns();
    pid_t child = fork();
    if (child == 0) {
        play(t, 1, ROUNDS, 0);
        _exit(0);
    }
    play(t, 0, ROUNDS, 0);
    CHECK(test_wait(child, 10) == 0, "the other player");
    double s = (double)(co_now_ns() - t0) * 1e-9;
    test_note("%d turns in %.3f s, %u slept a whole nap", ROUNDS, s, t->naps);
    /* If wake-ups are lost, every turn takes a nap of 20 ms. */
    CHECK(t->naps < ROUNDS / 10, "%u of %d turns took a nap: wake-ups are lost", t->naps, ROUNDS);
}

TEST(a_wait_ends_without_a_ring)
{
    struct table *t = shared_table();
    uint64_t t0 = co_now_ns();

    co_event_wait(&t->event, co_event_now(&t->event), 0, 0);
    double ms = (double)(co_now_ns() - t0) * 1e-6;
    CHECK(ms >= CO_EVENT_NAP_MS * 0.5 && ms < 5000, "%.1f ms", ms);
    CHECK(atomic_load(&t->event.sleepers) == 0, "it left its bit behind");
}

TEST(a_wait_for_what_has_already_rung_returns_at_once)
{
    struct table *t = shared_table();
    uint32_t seen = co_event_now(&t->event);

    co_event_ring(&t->event);
    uint64_t t0 = co_now_ns();
    for (int i = 0; i < 1000; i++)
        co_event_wait(&t->event, seen, 63, 0);
    double ms = (double)(co_now_ns() - t0) * 1e-6;
    CHECK(ms < 1000 * CO_EVENT_NAP_MS / 4, "1000 waits took %.0f ms", ms);
}

TEST(a_dead_sleeper_does_not_stop_the_others)
{
    struct table *t = shared_table();

    /* the bit of a rank that was killed while asleep */
    atomic_fetch_or(&t->event.sleepers, (uint64_t)1 << 5);
    pid_t child = fork();
    if (child == 0) {
        play(t, 1, 100, 0);
        _exit(0);
    }
    play(t, 0, 100, 0);
    CHECK(test_wait(child, 10) == 0, "the other player");
}

static void *second(void *t)
{
    play(t, 1, 1000, 50);
    return NULL;
}

TEST(two_threads_take_turns_tsan)
{
    struct table *t = shared_table();
    pthread_t other;

    CHECK(pthread_create(&other, NULL, second, t) == 0, "thread");
    play(t, 0, 1000, 50);
    pthread_join(other, NULL);
}
