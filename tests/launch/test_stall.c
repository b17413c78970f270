/* --stall-after: who stands still, and who only looks as if. That a worker which hangs is found: test_faults.c. */
#include "harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

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
