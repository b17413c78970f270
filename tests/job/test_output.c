/* Where a worker's output goes, without workers. */
#include "harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fs.h"
#include "job/job_int.h"

static void nothing(void *ctx, const char *text, size_t len)
{
    CHECK(false, "%.*s is no line, %p", (int)len, text, ctx);
}

/* Rank 1 has an unfinished bar; its standard error is fd. Returns the text of merged.log after one period. */
static char *bar_of_a_period(int fd)
{
    static worker w;
    co_terms terms = {.run_id = "t", .nproc = 2, .min_hosts = 1, .max_hosts = 1};
    job j = {.files = {.host = "here"}, .round = {.workers = &w, .n = 1}};
    char *text;

    j.files.merged.fd = open("merged.log", O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK_OK(co_roster_local(&j.roster, &terms));
    j.events = output_events(&j);
    co_screen_open(&j.screen, fd, fd);
    co_screen_view_set(&j.screen, &(co_screen_view){.prefix = true, .host = "", .nproc = 2});
    w = (worker){.events = &j.events, .local_rank = 1, .rank = 1};
    w.s[1] = (stream){.fd = -1, .which = 1, .w = &w, .shown = true};
    co_lines_feed(&w.s[1].lines, "\r 5%", 4, nothing, NULL);
    worker_turn(&w, w.s[1].lines.since_ns + CO_BAR_LINE_MS * UINT64_C(1000000));
    CHECK(w.tail.n == 0, "it is not the last that the worker has said");
    files_log_close(&j.files, &j.files.merged);
    co_screen_close(&j.screen, 0);
    co_lines_fini(&w.s[1].lines);
    co_roster_close(j.roster);
    CHECK_OK(co_fs_read(&text, NULL, "merged.log", 1 << 16));
    return text;
}

TEST(a_bar_that_nobody_sees_move_has_a_line_every_period_and_merged_log_always)
{
    char got[256] = "";
    int p[2], master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    CHECK(pipe(p) == 0, "%m");
    char *merged = bar_of_a_period(p[1]);
    CHECK(strstr(merged, " [here:1]  5%\n"), "%s", merged);
    CHECK(read(p[0], got, sizeof got - 1) > 0 && strcmp(got, "[1]  5%\n") == 0, "%s", got);
    co_free(merged);
    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "%m");
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), n = -1;
    merged = bar_of_a_period(slave);
    CHECK(strstr(merged, " [here:1]  5%\n"), "%s", merged);
    CHECK(ioctl(master, FIONREAD, &n) == 0 && n == 0, "%d bytes on a terminal", n);
    co_free(merged);
}
