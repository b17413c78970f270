/* scribe.c -- a process that works out lines beside the supervisor. What it writes lies in memory that
 * both share: its lines, or the message of its error if it exits with 1. */
#include "cli/scribe_int.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/signal.h"
#include "proc/crew.h"

enum { END_MS = 5000, KILLED_MS = 1000, LINES_MOST = 64 << 20 };

/* In the process. */
static int scribe_main(void *ctx)
{
    scribe *s = ctx;
    co_str out = {0};
    co_err err = s->main(s->ctx, &out);

    if (!err)
        err = co_str_err(&out);
    if (!err)
        err = co_fs_write_all(s->lines, co_str_text(&out), out.len, "lines");
    if (err && ftruncate(s->lines, 0) == 0)
        (void)!pwrite(s->lines, co_errmsg(), strlen(co_errmsg()), 0);
    return err ? 1 : 0;
}

co_err scribe_start(scribe *s, co_err (*main)(void *ctx, co_str *out), void *ctx, const co_fds *keep)
{
    co_child_spec spec = {.main = scribe_main, .ctx = s};

    *s = (scribe){.main = main, .ctx = ctx, .lines = memfd_create("lines", MFD_CLOEXEC)};
    if (s->lines < 0)
        return co_fail(CO_EIO, "memfd_create: %m");
    if (keep)
        co_fds_add_all(&spec.keep, keep);
    co_fds_add(&spec.keep, s->lines);
    co_err err = co_child_start(&s->pid, &s->pidfd, &spec);
    if (err) {
        s->pid = 0;
        close(s->lines);
    }
    return err;
}

static void hand_over(const scribe *s, scribe_take take, void *ctx)
{
    off_t size = lseek(s->lines, 0, SEEK_END);
    char *text = size > 0 && size < LINES_MOST ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, s->lines, 0)
                                               : MAP_FAILED;

    if (text == MAP_FAILED)
        return;
    for (const char *at = text, *end = text + size, *stop; (stop = memchr(at, '\n', (size_t)(end - at)));
         at = stop + 1)
        take(ctx, at, (size_t)(stop - at));
    munmap(text, (size_t)size);
}

static void keep_reason(scribe *s, int status)
{
    ssize_t n = WIFEXITED(status) ? pread(s->lines, s->why, sizeof s->why - 1, 0) : 0;

    if (n > 0)
        s->why[n] = '\0';
    else if (WIFSIGNALED(status))
        snprintf(s->why, sizeof s->why, "its process was killed by %s", co_signal_name(WTERMSIG(status)));
    else
        snprintf(s->why, sizeof s->why, "its process ended with status %d", WEXITSTATUS(status));
}

bool scribe_ended(scribe *s, int timeout_ms, scribe_take take, void *ctx)
{
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
    int status = 1;

    if (!s->pid || poll(&p, 1, timeout_ms) <= 0)
        return false;
    while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status == 0)
        hand_over(s, take, ctx);
    else
        keep_reason(s, status);
    close(s->pidfd);
    close(s->lines);
    s->pid = 0;
    return true;
}

void scribe_stop(scribe *s, scribe_take take, void *ctx)
{
    if (!s->pid || scribe_ended(s, END_MS, take, ctx))
        return;
    kill(s->pid, SIGKILL); /* one that the kernel holds is left behind */
    scribe_ended(s, KILLED_MS, take, ctx);
    snprintf(s->why, sizeof s->why, "its process was not done %d s after the end of the run", END_MS / 1000);
}
