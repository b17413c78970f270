/* The arena: its layout, its zeroed memory shared through fork, and its refusal of sizes that do not fit. */
#include "comm/arena.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static long faults(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt + u.ru_majflt;
}

TEST(regions_are_aligned_apart_and_zero)
{
    static co_arena a;
    static const size_t bytes[] = {1, 4096, 0, 5000, 64, 100000};
    size_t at[CO_COUNT(bytes)];

    for (size_t i = 0; i < CO_COUNT(bytes); i++)
        at[i] = co_arena_reserve(&a, i % 2 ? "odd" : "even", bytes[i]);
    CHECK_OK(co_arena_open(&a));
    for (size_t i = 0; i < CO_COUNT(bytes); i++) {
        char *p = co_arena_at(&a, at[i]);
        CHECK(at[i] % 4096 == 0 && at[i] + bytes[i] <= a.bytes, "region %zu at %zu", i, at[i]);
        CHECK(i == 0 || at[i] >= at[i - 1] + bytes[i - 1], "region %zu begins in the one before", i);
        for (size_t k = 0; k < bytes[i]; k++)
            CHECK(p[k] == 0, "region %zu byte %zu", i, k);
        memset(p, (int)i + 1, bytes[i]);
    }
    CHECK(co_arena_sum(&a, "odd") == 4096 + 5000 + 100000, "got %zu", co_arena_sum(&a, "odd"));
    CHECK(co_arena_sum(&a, "") == 1 + 4096 + 5000 + 64 + 100000, "got %zu", co_arena_sum(&a, ""));
    co_arena_close(&a);
    CHECK(a.base == NULL, "closed");
    co_arena_close(&a);
}

/* Large pages cover neighbours together, never a byte of a late region. */
TEST(regions_of_several_mib_are_zero_and_late_ones_take_no_memory_yet)
{
    enum { MIB = 1 << 20 };
    static const struct {
        size_t bytes;
        bool late;
    } plan[] = {{3 * MIB + 5, false}, {100, false}, {5 * MIB, true},
                {7 * MIB, false},     {4096, true}, {MIB, false}};
    static co_arena a;
    size_t at[CO_COUNT(plan)], now = 0;

    for (size_t i = 0; i < CO_COUNT(plan); i++) {
        at[i] = (plan[i].late ? co_arena_reserve_late : co_arena_reserve)(&a, "x", plan[i].bytes);
        now += plan[i].late ? 0 : (plan[i].bytes + 4095) / 4096 * 4096;
    }
    CHECK_OK(co_arena_open(&a));
    CHECK(co_arena_used(&a) == now, "%zu bytes take memory, not %zu", co_arena_used(&a), now);
    for (size_t i = 0; i < CO_COUNT(plan); i++) {
        char *p = co_arena_at(&a, at[i]);
        for (size_t k = 0; k < plan[i].bytes; k += 61)
            CHECK(p[k] == 0, "region %zu byte %zu", i, k);
        memset(p, (int)i + 1, plan[i].bytes);
    }
    for (size_t i = 0; i < CO_COUNT(plan); i++) {
        const char *p = co_arena_at(&a, at[i]);
        CHECK(p[0] == (char)(i + 1) && p[plan[i].bytes - 1] == (char)(i + 1), "region %zu", i);
    }
    co_arena_close(&a);
}

TEST(what_a_dead_child_wrote_stays)
{
    static co_arena a;
    size_t at = co_arena_reserve(&a, "x", 1 << 20);

    CHECK_OK(co_arena_open(&a));
    pid_t child = fork();
    if (child == 0) {
        memset(co_arena_at(&a, at), 7, 1 << 20);
        kill(getpid(), 9);
    }
    CHECK(test_wait(child, 10) == 128 + 9, "the child");
    const char *p = co_arena_at(&a, at);
    CHECK(p[0] == 7 && p[(1 << 20) - 1] == 7, "same memory, same address");
    co_arena_close(&a);
}

TEST(an_arena_larger_than_the_memory_is_refused_with_both_figures)
{
    static co_arena a, b;

    co_arena_reserve(&a, "weights", co_memory_available() + ((size_t)1 << 40));
    CHECK_FAILS(co_arena_open(&a), CO_ENOMEM, "MiB are free");
    CHECK(a.base == NULL, "nothing was mapped");
    for (int i = 0; i < 8; i++)
        co_arena_reserve(&b, "too much", SIZE_MAX - 5);
    CHECK_FAILS(co_arena_fits(&b), CO_ENOMEM, "the plan needs");
}

TEST(populated_memory_is_written_without_a_fault)
{
#ifdef __SANITIZE_ADDRESS__
    test_skip("the sanitizer's own memory faults");
#endif
    enum { LEN = 4 << 20 };
    static co_arena a;
    char *fresh = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t at = co_arena_reserve(&a, "x", LEN);

    CHECK_OK(co_arena_open(&a));
    pid_t child = fork(); /* a rank inherits the mapping but not its page tables */
    if (child == 0) {
        co_populate(co_arena_at(&a, at), LEN);
        co_populate(fresh + 100, LEN - 200);
        long before = faults();
        memset(co_arena_at(&a, at), 1, LEN);
        memset(fresh, 1, LEN);
        long took = faults() - before;
        CHECK(took <= 2, "%ld faults", took); /* the stack may grow */
        _exit(0);
    }
    CHECK(test_wait(child, 20) == 0, "the child");
    co_arena_close(&a);
    munmap(fresh, LEN);
}
