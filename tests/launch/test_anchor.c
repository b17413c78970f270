/* Launchers, guards and anchors that are killed or stopped: what workers started ends, and the job ends. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

/* The pids that a shell pipeline prints, one per line; returns how many. */
static int pids_of(pid_t *out, int most, const char *command, pid_t parent)
{
    test_run r = test_sh("ps -o pid= -o comm= --ppid %d | awk '/%s/ {print $1}'", (int)parent, command);
    int n = 0;

    for (char *at = strtok(r.out, "\n"); at && n < most; at = strtok(NULL, "\n"))
        out[n++] = (pid_t)atoi(at);
    free(r.out);
    return n;
}

static pid_t child_of(pid_t parent, const char *command)
{
    pid_t pid;
    int n = pids_of(&pid, 1, command, parent);

    CHECK(n == 1, "process %d has no child %s", (int)parent, command);
    return pid;
}

static bool there(void *path)
{
    return co_fs_exists(path);
}

static int count_of_sleeps(void)
{
    test_run r = test_sh("ps -eo args | grep -v grep | grep -c '^sleep 2002.%d'", (int)getpid());
    int n = atoi(r.out);

    free(r.out);
    return n;
}

static bool one_sleeps(void *ctx)
{
    (void)ctx;
    return count_of_sleeps() == 1;
}

static bool none_sleeps(void *ctx)
{
    (void)ctx;
    return count_of_sleeps() == 0;
}

static bool is_gone(void *pid)
{
    test_run r = test_sh("ps -o stat= -p %d | grep -v Z", (int)*(pid_t *)pid);
    bool gone = r.status != 0;

    free(r.out);
    return gone;
}

/* The inner anchor is stopped until the outer one has done its work, so the outer one has every chance to
 * kill it first. */
TEST(what_workers_of_a_launch_in_a_launch_started_ends_when_all_launchers_and_guards_are_killed)
{
    pid_t outer = test_spawn("out",
                             "export OMP_NUM_THREADS=1 TMPDIR=$PWD; exec %s launch --no-python"
                             " %s launch --no-python sh -c 'setsid sleep 2002.%d & wait'",
                             test_cohort(), test_cohort(), (int)getpid());

    test_until(one_sleeps, NULL, 20, "the inner worker's child");
    pid_t outer_guard = child_of(outer, "cohort-guard"), outer_anchor = child_of(outer, "job-anchor");
    pid_t inner = child_of(outer_guard, "cohort");
    pid_t inner_guard = child_of(inner, "cohort-guard"), inner_anchor = child_of(inner, "job-anchor");
    kill(inner_anchor, SIGSTOP);
    /* Stopped first, so that they die together: a guard that is killed while it ends what is below it, the inner
     * anchor first, leaves the rest. */
    const pid_t all[] = {inner_guard, inner, outer_guard, outer};
    for (size_t i = 0; i < CO_COUNT(all); i++)
        kill(all[i], SIGSTOP);
    for (size_t i = 0; i < CO_COUNT(all); i++)
        kill(all[i], SIGKILL);
    test_until(is_gone, &outer_anchor, 20, "the end of the outer anchor");
    kill(inner_anchor, SIGCONT);
    CHECK(test_wait(outer, 10) == 137, "the launcher is gone");
    test_until(none_sleeps, NULL, 20, "the end of all that the inner worker started");
}

TEST(a_killed_guard_does_not_take_the_other_guards_along_whatever_the_launchers_environment_has)
{
    pid_t pid = test_spawn("out",
                           "export OMP_NUM_THREADS=1 TMPDIR=$PWD TORCHELASTIC_RUN_ID=x RANK=0;"
                           " exec %s launch --rdzv-id=x --nproc-per-node=2 --no-python sh -c"
                           " 'trap \"touch asked; exit 0\" TERM; echo $PPID > new.$RANK;"
                           " mv new.$RANK guard.$RANK; while :; do sleep 0.05; done'",
                           test_cohort());

    test_until(there, "guard.0", 20, "rank 0");
    test_until(there, "guard.1", 20, "rank 1");
    test_run r = test_sh("kill -9 $(cat guard.0)");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    CHECK(test_wait(pid, 20) == 137, "the launcher ends");
    CHECK(co_fs_exists("asked"), "rank 1 got no SIGTERM");
}

TEST(a_stopped_anchor_does_not_keep_the_launcher)
{
    pid_t pid = test_spawn("out",
                           "export OMP_NUM_THREADS=1 TMPDIR=$PWD; exec %s launch --no-python sh -c"
                           " 'touch up; until [ -e go ]; do sleep 0.05; done'",
                           test_cohort());

    test_until(there, "up", 20, "the worker");
    pid_t anchor = child_of(pid, "job-anchor");
    kill(anchor, SIGSTOP);
    test_run r = test_sh("touch go");
    free(r.out);
    int status = test_wait(pid, 10);
    kill(anchor, SIGCONT);
    CHECK(status == 0, "the launcher: %d", status);
}
