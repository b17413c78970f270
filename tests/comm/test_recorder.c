/* The flight recorder: what it reports about a process that crashed. */
#include "comm/recorder.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

static co_record *shared_record(void)
{
    void *p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED, "mmap");
    return p;
}

void recorder_test_steps_on_nothing(void); /* not static: the backtrace must contain its name */
__attribute__((noinline)) void recorder_test_steps_on_nothing(void)
{
    int *volatile nothing = (int *)16;

    *nothing = 1;
}

static void *steps_in_a_thread(void *unused)
{
    recorder_test_steps_on_nothing();
    return unused;
}

static void crash(co_record *r, int how)
{
    co_record_begin(r);
    co_record_crashes(r);
    co_record_phase(r, CO_PHASE_COMPUTE, 12, 3);
    pthread_t t;
    if (how == 0)
        recorder_test_steps_on_nothing();
    else if (how == 1 && pthread_create(&t, NULL, steps_in_a_thread, NULL) == 0)
        pthread_join(t, NULL);
    else if (how == 2)
        abort();
    else
        raise(SIGFPE);
}

static void recorded(int how, int sig, const char *words)
{
    co_record *r = shared_record();
    co_str text = {0};
    pid_t child = fork();

    if (child == 0) {
        crash(r, how);
        _exit(0);
    }
    int status = test_wait(child, 20);
    CHECK(status == 128 + sig, "exit %d: the signal takes its course", status);
    CHECK(atomic_load(&r->crash_signal) == sig, "recorded %d", atomic_load(&r->crash_signal));
    CHECK(r->n_frames > 1, "%d frames", r->n_frames);
    co_record_print(r, &text);
    const char *t = co_str_text(&text);
    CHECK(test_contains(t, "computing (unit 12, item 3)"), "%s", t);
    CHECK(test_contains(t, strsignal(sig)), "%s", t);
    CHECK(test_contains(t, words), "%s", t);
    co_str_fini(&text);
}

TEST(a_crash_leaves_signal_and_backtrace)
{
    recorded(0, SIGSEGV, "recorder_test_steps_on_nothing");
    recorded(0, SIGSEGV, "0x10");
}

TEST(a_crash_of_another_thread_is_recorded_too)
{
    recorded(1, SIGSEGV, "recorder_test_steps_on_nothing");
}

TEST(abort_and_arithmetic_are_recorded)
{
    recorded(2, SIGABRT, "");
    recorded(3, SIGFPE, "");
}

TEST(a_kill_leaves_what_was_done_last)
{
    co_record *r = shared_record();
    co_str text = {0};
    pid_t child = fork();

    if (child == 0) {
        co_record_begin(r);
        co_record_crashes(r);
        co_record_phase(r, CO_PHASE_APPLY, 9, 1);
        raise(SIGKILL);
    }
    CHECK(test_wait(child, 20) == 128 + SIGKILL, "killed");
    co_record_print(r, &text);
    CHECK(strcmp(co_str_text(&text), "applying (unit 9, item 1)") == 0, "%s", co_str_text(&text));
    co_str_fini(&text);
}

TEST(a_new_incarnation_begins_with_a_clean_record)
{
    co_record *r = shared_record();

    atomic_store(&r->crash_signal, SIGSEGV);
    r->n_frames = 3;
    atomic_store(&r->call, 17);
    uint64_t turns = atomic_load(&r->turns);
    co_record_begin(r);
    CHECK(!atomic_load(&r->crash_signal) && !r->n_frames && !atomic_load(&r->call), "old news");
    CHECK(atomic_load(&r->phase) == CO_PHASE_START, "phase %u", atomic_load(&r->phase));
    CHECK(atomic_load(&r->turns) > turns, "the heartbeat only rises");
}

TEST(the_ring_keeps_the_newest)
{
    co_record *r = shared_record();

    for (uint32_t i = 0; i < 3 * CO_RECORD_EVENTS; i++)
        co_record_phase(r, CO_PHASE_SUM, i, i);
    uint64_t n = atomic_load(&r->ring_n);
    CHECK(n == 3 * CO_RECORD_EVENTS, "%llu", (unsigned long long)n);
    uint64_t last = atomic_load(&r->ring[(n - 1) % CO_RECORD_EVENTS]);
    CHECK(last >> 32 == n - 1 && (last >> 24 & 0xff) == CO_PHASE_SUM, "%llx", (unsigned long long)last);
}
