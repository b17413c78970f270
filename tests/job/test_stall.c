/* Workers that make no progress: which are blamed, which only seem idle, and what is printed without
 * --stall-after.
 */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/job.h"
#include "launch/worker.h"

TEST(a_job_whose_output_nobody_reads_does_not_stall)
{
    static char got[1 << 16];
    size_t all = 0;

    CHECK(mkfifo("unread", 0600) == 0, "%m");
    int fd = open("unread", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    pid_t pid = test_spawn(
        "out", /* rank 0 waits to print, rank 1 for rank 0 */
        "export OMP_NUM_THREADS=1 TMPDIR=$PWD; exec %s launch --stall-after=1"
        " --nproc-per-node=2 --no-python sh -c 'if [ $RANK = 0 ]; then yes %0200d | head -c 1000500;"
        " : > done; fi; until [ -e done ]; do sleep 0.05; done' > unread",
        test_cohort(), 7);
    CHECK(test_wait(pid, 2.2) < 0, "it did not wait for its reader"); /* twice the second */
    int status = -1;
    for (double until = co_now_s() + 20; status < 0 && co_now_s() < until;) {
        status = test_wait(pid, 0.01);
        for (ssize_t n; (n = read(fd, got, sizeof got)) > 0;)
            all += (size_t)n;
    }
    test_run r = test_sh("cat out");
    CHECK(status == 0 && all > 1000500, "status %d, %zu bytes: %s", status, all, r.out);
    free(r.out);
    close(fd);
}

TEST(what_a_worker_left_to_compute_in_the_background_is_no_stall)
{
    test_run r = test_sh("TMPDIR=$PWD $COHORT launch --stall-after=0.7 --no-python sh -c"
                         " '(setsid sh -c \"while :; do :; done\" &); exec sleep 2'");
    CHECK(r.status == 0, "status %d: %s", r.status, r.out);
    free(r.out);
}

TEST(of_workers_that_stand_still_together_the_one_that_waits_for_no_other_is_blamed)
{
    test_run r = test_sh("export TMPDIR=$PWD; TEST_WORKER=hang exec $COHORT launch --stall-after=1.5"
                         " --nproc-per-node=4 --no-python %s",
                         worker_program());
    CHECK(r.status == 1 && test_contains(r.out, "cohort: rank 3 on ") &&
              test_contains(r.out, " is asleep in sleep, at "),
          "status %d: %s", r.status, r.out);
    CHECK(test_contains(r.out, "standing still: rank 0: asleep in futex; rank 1: asleep in poll; rank 2: "
                               "asleep in read of socket:["),
          "%s", r.out);
    free(r.out);
}

TEST(ranks_that_stand_at_the_same_place_are_named_together)
{
    test_run r = test_sh("export TMPDIR=$PWD; $COHORT launch --stall-after=0.6 --nproc-per-node=3 --no-python"
                         " sleep 60");
    CHECK(r.status == 1 && test_contains(r.out, "; standing still: rank 0-2: asleep in sleep\n"),
          "status %d: %s", r.status, r.out);
    free(r.out);
}

TEST(a_worker_that_only_wakes_up_now_and_then_stands_still)
{
    test_run r = test_sh("export TMPDIR=$PWD; TEST_WORKER=idle timeout 9 $COHORT launch --stall-after=3"
                         " --no-python %s",
                         worker_program());
    CHECK(r.status == 1 && test_contains(r.out, "made no progress for "), "status %d: %s", r.status, r.out);
    free(r.out);
}

TEST(a_worker_that_computes_while_all_others_wait_for_it_is_blamed)
{
    test_run r = test_sh("export TMPDIR=$PWD; TEST_WORKER=spin exec $COHORT launch --stall-after=1.5"
                         " --nproc-per-node=3 --no-python %s",
                         worker_program());
    CHECK(r.status == 1 && test_contains(r.out, "cohort: rank 1 on ") &&
              test_contains(r.out, " s without output while all others waited for it; pid "),
          "status %d: %s", r.status, r.out);
    CHECK(test_contains(r.out, "rank 0: asleep in futex; rank 1: computing; rank 2: asleep in poll\n"), "%s",
          r.out);
    free(r.out);
}

/* Runs two workers that execute `text`, without --stall-after; a second of silence is reported. */
static int run_quietly(const char *text, int fd)
{
    return worker_run(text, (co_job_spec){.terms.nproc = 2, .hang_s = 1, .out_fd = fd, .err_fd = fd});
}

TEST(a_job_that_hangs_is_said_once_and_goes_on)
{
    int fd = open("out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(run_quietly("exec sleep 3.5", fd) == 0, "a silent job is no failure");
    test_run r = test_sh("grep -c 'no output for' out; cat out");
    CHECK(test_contains(r.out, "1\ncohort: no output for ") &&
              test_contains(r.out, " s: rank 0-1: asleep in sleep. Most likely the others wait for rank ") &&
              test_contains(r.out, "--stall-after=SECONDS would end it\n"),
          "%s", r.out);
    free(r.out);
    close(fd);
}

TEST(a_job_that_prints_or_computes_is_not_said_to_hang)
{
    int fd = open("out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(run_quietly("[ $RANK = 1 ] || exec sleep 3; for i in 1 2 3 4 5 6; do echo on; sleep 0.5; done",
                      fd) == 0,
          "status");
    CHECK(run_quietly("while [ ! -e end$RANK ]; do :; done & sleep 3; : > end$RANK; wait", fd) == 0,
          "status");
    test_run r = test_sh("! grep 'no output for' out");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    close(fd);
}
