/* Sets of descriptors, and what stays open after all others were closed. */
#include "base/fds.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"

TEST(all_descriptors_but_the_kept_and_the_standard_ones_are_closed)
{
    co_fds keep = {0}, now;
    int fd[6];

    for (int i = 0; i < 6; i++)
        CHECK((fd[i] = open("/dev/null", O_RDONLY)) > STDERR_FILENO, "%m");
    int high = fcntl(fd[0], F_DUPFD, 700);
    CHECK(high >= 700, "%m");
    co_fds_add(&keep, fd[1]);
    co_fds_add(&keep, fd[2]);
    co_fds_add(&keep, fd[5]);
    co_fds_add(&keep, -1);
    co_fds_add(&keep, CO_FDS_MOST);
    co_fds_close_others(&keep);
    co_fds_open_now(&now);
    for (int i = 0; i < CO_FDS_MOST; i++) {
        bool want = i <= STDERR_FILENO || i == fd[1] || i == fd[2] || i == fd[5];
        CHECK(co_fds_has(&now, i) == want, "descriptor %d is %s", i, want ? "closed" : "open");
    }
    CHECK(!co_fds_has(&keep, -1) && !co_fds_has(&keep, CO_FDS_MOST), "outside");
}

TEST(what_was_opened_in_between_is_the_difference_of_two_sets)
{
    co_fds before, after;

    co_fds_open_now(&before);
    int fd = open("/dev/null", O_RDONLY);
    co_fds_open_now(&after);
    co_fds_subtract(&after, &before);
    for (int i = 0; i < CO_FDS_MOST; i++)
        CHECK(co_fds_has(&after, i) == (i == fd), "%d", i);
    co_fds_add_all(&before, &after);
    CHECK(co_fds_has(&before, fd) && co_fds_has(&before, STDOUT_FILENO), "joined");
}
