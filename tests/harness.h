/* harness.h -- a process and a deadline per test.
 *
 *     TEST(a_sum_of_nothing_is_zero)
 *     {
 *         CHECK(sum(NULL, 0) == 0, "got %d", sum(NULL, 0));
 *     }
 *
 * Names are sentences. A test runs in a child of its own, in a fresh empty folder (its working directory),
 * and is killed with its whole process group past its deadline (60 s; TEST_LONG: 600 s). Names that contain
 * "tsan" are the ones run under ThreadSanitizer; TEST_LONG ones run only with -l, and alone with -L (make
 * check-long).
 *
 *     build/release/tests [-k WORD] [-x WORD]... [-X FILE of words] [-l|-L] [-v] [-j N]
 *
 * -j 3 unless told: many tests wait for a deadline or a process, so three keep two cores busy.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

typedef struct test {
    const char *name, *file;
    void (*fn)(void);
    int deadline_s;
    bool is_long;
    struct test *next;
} test;
void test_register(test *t);

#define TEST_ENTRY(id, seconds, long_)                                                                       \
    static void id(void);                                                                                    \
    static test id##_entry = {#id, __FILE__, id, seconds, long_, NULL};                                      \
    __attribute__((constructor)) static void id##_register(void)                                             \
    {                                                                                                        \
        test_register(&id##_entry);                                                                          \
    }                                                                                                        \
    static void id(void)
#define TEST(id)                TEST_ENTRY(id, 60, false)
#define TEST_WITHIN(id, s)      TEST_ENTRY(id, s, false)
#define TEST_LONG(id)           TEST_ENTRY(id, 600, true)
#define TEST_LONG_WITHIN(id, s) TEST_ENTRY(id, s, true)

/* A failed check prints place and message and ends the test. */
#define CHECK(cond, ...) ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, #cond, __VA_ARGS__))
#define CHECK_OK(expr)                                                                                       \
    do {                                                                                                     \
        co_err check_err_ = (expr);                                                                          \
        if (check_err_)                                                                                      \
            test_fail(__FILE__, __LINE__, #expr, "error %d: %s", (int)check_err_, co_errmsg());              \
    } while (0)
/* Fails with this code and a message that contains `words`. */
#define CHECK_FAILS(expr, code, words)                                                                       \
    do {                                                                                                     \
        co_err check_err_ = (expr);                                                                          \
        if (check_err_ != (code) || !test_contains(co_errmsg(), words))                                      \
            test_fail(__FILE__, __LINE__, #expr, "got error %d \"%s\", wanted %d \"%s\"", (int)check_err_,   \
                      co_errmsg(), (int)(code), words);                                                      \
    } while (0)
_Noreturn void test_fail(const char *file, int line, const char *cond, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
_Noreturn void test_skip(const char *fmt, ...)
    __attribute__((format(printf, 1, 2))); /* loudly: counted and listed */
bool test_contains(const char *text, const char *words);
/* Fails unless all n texts are in `text`. */
void test_has_all(const char *text, const char *const *wanted, size_t n);
/* An empty folder for the list of live runs: only those of this test are in it. */
void test_own_runs(void);

/* What this test allocates lives to its end: LeakSanitizer does not look at it. */
void test_may_leak(void);

/* Numbers worth seeing: printed under the test's line, pass or fail. */
void test_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A program run to its end: standard output and error together. */
typedef struct test_run {
    int status; /* exit status, or 128 + signal */
    char *out;  /* its output, NUL-terminated */
    double secs;
} test_run;
test_run test_sh(const char *fmt, ...)
    __attribute__((format(printf, 1, 2))); /* through /bin/sh; $COHORT is the program */
pid_t test_spawn(const char *out_file, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int test_wait(pid_t pid, double timeout_s); /* exit status or 128 + signal; -1: still running */

/* Path of a file in the repository ("tests/golden/mlp.json"); static buffer, four in rotation. */
const char *test_repo(const char *relative);
const char *test_cohort(void); /* the program of this variant */

/* Calls body with the 1st, 2nd, ... allocation failing until it passes without a failure: body must return an
 * error, not crash or leak, each time. */
void test_each_alloc_fails(co_err (*body)(void *), void *ctx);

/* Waits until cond() is true, with a deadline; the one way to wait for something in a test. */
void test_until(bool (*cond)(void *), void *ctx, double timeout_s, const char *what);

/* Deterministic numbers for tests. */
uint32_t test_u32(uint64_t *state);
float test_unit(uint64_t *state); /* [-1, 1) */

#endif
