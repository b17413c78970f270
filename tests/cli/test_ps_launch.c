/* `cohort ps`, `stop` and `attach` of a `cohort launch`, which has workers and no run folder. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define LIST "XDG_RUNTIME_DIR=$PWD/list "

static bool is_listed(void *ctx)
{
    test_run r = test_sh("ls worker-1 2>/dev/null && " LIST "$COHORT ps --json");
    bool there = test_contains(r.out, "\"role\":\"launch\"") || test_contains(r.out, "\"role\": \"launch\"");

    (void)ctx;
    free(r.out);
    return there;
}

static void check_says(const char *line, int status, const char *says)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == status && test_contains(r.out, says), "%s: %d, %s", line, r.status, r.out);
    free(r.out);
}

TEST(a_launch_is_listed_with_its_program_until_it_is_stopped)
{
    CHECK(system("mkdir -m 700 list") == 0, "mkdir");
    pid_t pid = test_spawn("out", LIST "exec $COHORT launch --nproc-per-node=2 --no-python sh -c "
                                       "'touch worker-$RANK; exec tail -f /dev/null'");

    test_until(is_listed, NULL, 20, "the launch is listed");
    check_says(LIST "$COHORT ps", 0, "2 workers on this host: sh -c");
    check_says(LIST "$COHORT", 0, "Running: 2 workers on this host: sh -c");
    check_says(LIST "$COHORT attach", 2, "is a launch (2 workers on this host: sh -c");
    check_says(LIST "$COHORT stop --all", 0, "(launch): asked to stop");
    CHECK(test_wait(pid, 60) == 75, "it was asked to end");
    check_says(LIST "$COHORT ps", 0, "no runs on this machine");
    check_says("ls list/cohort | wc -l", 0, "0");
}

TEST(the_entry_of_a_launch_that_was_killed_is_removed)
{
    CHECK(system("mkdir -m 700 list") == 0, "mkdir");
    pid_t pid = test_spawn("out", LIST "exec $COHORT launch --nproc-per-node=2 --no-python sh -c "
                                       "'touch worker-$RANK; exec tail -f /dev/null'");

    test_until(is_listed, NULL, 20, "the launch is listed");
    kill(pid, SIGKILL);
    CHECK(test_wait(pid, 20) == 128 + SIGKILL, "killed");
    check_says(LIST "$COHORT ps", 0, "no runs on this machine");
    check_says("ls list/cohort | wc -l", 0, "0");
}
