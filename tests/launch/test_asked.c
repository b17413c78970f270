/* A job that is asked to end. Its workers save and exit with 0, exit with another status, or crash; the tests
 * check the messages and the exit status. */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACEBACK(exception)                                                                                 \
    "echo \"Traceback (most recent call last):\n  File \\\"p\\\", line 1\n" exception "\" >&2; "

/* What rank 1 does first, and what it does on SIGTERM; rank 0 exits with 0. */
typedef struct answer {
    const char *before, *then;
    int status;
    const char *words;
} answer;

static bool both_are_read(void *unused)
{
    (void)unused;
    test_run r = test_sh("cat logs/*/merged.log 2>/dev/null | grep -c '] up$'");
    bool all = atoi(r.out) == 2;

    free(r.out);
    return all;
}

static void ends(const answer *a)
{
    FILE *f = fopen("p", "w");
    bool crash = a->status != 75;

    CHECK(f, "%m");
    fprintf(f,
            "answer() {\n[ $RANK = 0 ] && exit 0\n%s\n}\ntrap answer TERM\n[ $RANK = 0 ] || { :; %s }\n"
            "echo up >&2\nwhile :; do sleep 0.02; done\n",
            a->then, a->before);
    fclose(f);
    free(test_sh("rm -rf logs").out);
    pid_t pid = test_spawn(
        "log", "exec $COHORT launch --nproc-per-node=2 --log-dir=logs --log-prefix=none --no-python sh p");
    test_until(both_are_read, NULL, 20, "both workers");
    kill(pid, SIGTERM);
    int status = test_wait(pid, 20);
    test_run r = test_sh("cat log"), blame = test_sh("cat logs/*/blame.json");
    CHECK(status == a->status && test_contains(r.out, a->words), "%s: status %d, no \"%s\" in %s", a->then,
          status, a->words, r.out);
    CHECK((blame.status == 0) == crash && (strstr(r.out, "its last lines:") != NULL) == crash, "%s: %s%s",
          a->then, r.out, blame.out);
    CHECK(!crash || test_contains(blame.out, "\"rank\": 1"), "%s", blame.out);
    free(r.out);
    free(blame.out);
}

TEST(a_worker_that_crashes_when_asked_to_end_is_blamed_and_the_status_is_its_own)
{
    static const answer rows[] = {
        {"", TRACEBACK("OSError: [Errno 28] No space left on device") "exit 1", 1,
         "exited with status 1: OSError: [Errno 28] No space left on device, at "},
        {"", "kill -ABRT $$", 134, "killed by SIGABRT (6), at "},
        {"", "kill -KILL $$", 137, "killed by SIGKILL (9)"},
        {"", TRACEBACK("RuntimeError: DataLoader worker (pid 7) is killed by signal: Terminated. ") "exit 1",
         1, "advice: SIGTERM ends data loaders before the script has saved: save on SIGUSR1"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ends(&rows[i]);
}

TEST(a_worker_that_ends_with_another_status_when_asked_is_named_and_the_status_stays_75)
{
    static const answer rows[] = {
        {"", "exit 3", 75, "cohort: rank 1 ended with status 3 after SIGTERM\n"},
        {TRACEBACK("ValueError: logged, not fatal"), "exit 143", 75,
         "rank 1 ended with status 143 after SIGTERM\n"},
        {"", TRACEBACK("KeyboardInterrupt") "exit 1", 75,
         "rank 1 ended with status 1 after SIGTERM: KeyboardInterrupt\n"},
        {"", TRACEBACK("RuntimeError: Connection closed by peer [10.0.0.1]:7") "exit 1", 75,
         "rank 1 ended with status 1 after SIGTERM: RuntimeError: Connection closed by peer [10.0.0.1]:7\n"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ends(&rows[i]);
}

static bool both_are_up(void *unused)
{
    (void)unused;
    test_run r = test_sh("ls up0 up1 2>/dev/null | wc -l");
    bool all = atoi(r.out) == 2;

    free(r.out);
    return all;
}

/* Rank 0 crashes long after the launcher of rank 1, the parent of rank 1's guard, has exited with 75. */
TEST(of_several_hosts_the_one_with_a_crash_says_the_status_even_if_it_is_the_last)
{
    FILE *f = fopen("p", "w");

    CHECK(f, "%m");
    fprintf(f, "answer() {\n[ $RANK = 1 ] && exit 0\nwhile kill -0 $(cat up1) 2>/dev/null; do sleep 0.02; "
               "done\n" TRACEBACK("OSError: odd") "exit 1\n}\ntrap answer TERM\n"
                                                  "ps -o ppid= -p $PPID > up.$RANK; mv up.$RANK "
                                                  "up$RANK\nwhile :; do sleep 0.02; done\n");
    fclose(f);
    pid_t pid = test_spawn(
        "log", "TMPDIR=$PWD exec $COHORT launch --hosts=localhost,localhost --no-python sh $PWD/p");
    test_until(both_are_up, NULL, 20, "both workers");
    kill(pid, SIGTERM);
    int status = test_wait(pid, 25);
    test_run r = test_sh("cat log");
    CHECK(status == 1 && test_contains(r.out, "exited with status 1: OSError: odd"), "status %d: %s", status,
          r.out);
    free(r.out);
}
