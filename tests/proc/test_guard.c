/* A guard without a job: what it does to a tree of processes, and what it reports. */
#include "harness.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "proc/guard.h"
#include "proc/proc_int.h"

typedef struct guarded {
    pid_t guard;
    int sock;
} guarded;

static guarded start(const char *line)
{
    char *argv[] = {"sh", "-c", (char *)line, NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
    co_guard_spec s = {.argv = argv, .envp = envp, .file = "/bin/sh", .out_fd = 1, .err_fd = 2};
    guarded g = {0};

    sigemptyset(&s.mask);
    getrlimit(RLIMIT_NOFILE, &s.nofile);
    CHECK_OK(co_guard_start(&g.guard, &g.sock, &s));
    return g;
}

/* The next report; the socket must not end before it. */
static co_guard_report hears(const guarded *g, co_guard_kind kind, int most_s)
{
    struct pollfd at = {.fd = g->sock, .events = POLLIN};
    co_guard_report w;

    CHECK(poll(&at, 1, most_s * 1000) == 1, "no word of kind %d within %d s", (int)kind, most_s);
    CHECK(recv(g->sock, &w, sizeof w, 0) == (ssize_t)sizeof w, "the guard has ended before it told %d",
          (int)kind);
    CHECK(w.kind == kind, "told %d, not %d", (int)w.kind, (int)kind);
    return w;
}

static void ends(const guarded *g)
{
    char byte;
    struct pollfd at = {.fd = g->sock, .events = POLLIN};

    CHECK(poll(&at, 1, 20000) == 1 && recv(g->sock, &byte, 1, 0) == 0, "the guard does not end");
    CHECK(waitpid(g->guard, NULL, 0) == g->guard, "%m");
    close(g->sock);
}

static bool is_there(void *path)
{
    return co_fs_exists(path);
}

static pid_t pid_in(const char *path)
{
    char *text;

    CHECK_OK(co_fs_read(&text, NULL, path, 100));
    pid_t pid = atoi(text);
    co_free(text);
    return pid;
}

/* A shell dies of SIGTERM before the launcher's own SIGTERM arrives; the program that it ran saves until the
 * file `go` exists. Returns how many processes the guard then asks to end; -1: this machine was too slow.
 */
static int asked_after(bool everybody)
{
    guarded g =
        start("sh -c 'trap \"while ! test -e go; do sleep 0.02; done; exit 0\" TERM; echo $$ > saver; "
              "touch up; while :; do sleep 0.02; done'; true");

    pid_t shell = hears(&g, CO_GUARD_STARTED, 20).pid;
    test_until(is_there, "up", 20, "what the shell runs");
    kill(shell, SIGTERM);
    if (everybody) {
        kill(pid_in("saver"), SIGTERM);
        kill(g.guard, SIGTERM);
    }
    co_guard_report ended = hears(&g, CO_GUARD_ENDED, 20);
    co_guard_signal(g.sock, SIGTERM);
    bool late = co_wall_s() * 1e9 - (double)ended.when_ns > 0.5e6 * LINGER_MS;
    co_guard_report left = hears(&g, CO_GUARD_LEFT, 20);
    CHECK_OK(co_fs_write_atomic("go", "", 0));
    ends(&g);
    unlink("go");
    unlink("up");
    return late ? -1 : left.n;
}

TEST(who_was_signalled_with_everybody_else_is_not_asked_again)
{
    int alone = -1, everybody = -1;

    for (int i = 0; i < 20 && everybody < 0; i++)
        everybody = asked_after(true);
    CHECK(everybody == 0, "%d processes had SIGTERM again", everybody);
    for (int i = 0; i < 20 && alone < 0; i++)
        alone = asked_after(false);
    CHECK(alone == 1, "only the shell had SIGTERM, and %d others were asked", alone);
}

/* A process under a debugger does not end before the debugger lets it, as if it hung in the kernel. */
TEST(a_process_that_does_not_end_by_sigkill_is_told_of_and_left_alone)
{
    guarded g = start("echo $$ > up; exec sleep 1000");
    pid_t held = hears(&g, CO_GUARD_STARTED, 20).pid;

    test_until(is_there, "up", 20, "the worker");
    if (ptrace(PTRACE_SEIZE, held, NULL, NULL) != 0)
        test_skip("no ptrace here: %m");
    co_guard_signal(g.sock, SIGKILL);
    co_guard_signal(g.sock, SIGKILL); /* a second SIGKILL shortens the wait */
    co_guard_report w = hears(&g, CO_GUARD_STUCK, HOPELESS_MS / 1000 + 8);
    CHECK(w.who == held && w.n == 1 && w.status == 0, "%d processes, %d, errno %d", w.n, w.who, w.status);
    ends(&g);
    CHECK(waitpid(held, NULL, __WALL) == held, "%m");
}
