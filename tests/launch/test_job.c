/* A job on one host, run in the test's own process: what it does when guards are killed, on terminals, when
 * nobody reads. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "launch/worker.h"

static int run_file(const char *file, const char *text, int nproc, int out_fd, int err_fd)
{
    return worker_run(text,
                      (co_job_spec){.terms.nproc = nproc, .file = file, .out_fd = out_fd, .err_fd = err_fd});
}

static int run_sh(const char *text, int nproc, int out_fd, int err_fd)
{
    return run_file("/bin/sh", text, nproc, out_fd, err_fd);
}

/* Runs in a child, so that the harness's own output is not in it. */
static int in_child(const char *text, int nproc, int out_fd, int err_fd)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(run_sh(text, nproc, out_fd, err_fd));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *text_of(const char *path)
{
    char *text;

    CHECK_OK(co_fs_read(&text, NULL, path, 1 << 24));
    return text;
}

TEST(a_killed_guard_takes_its_worker_and_daemons_along)
{
    int fd = open("out", O_RDWR | O_CREAT | O_APPEND, 0644);
    char line[256];

    /* the worker kills its guard, which is its parent, after it has started a daemon of another session */
    snprintf(line, sizeof line,
             "setsid sleep 2000.%d & echo started; if [ $RANK = 0 ]; then kill -9 $PPID; fi; sleep 100",
             (int)getpid());
    int status = in_child(line, 2, fd, fd);
    char *text = text_of("out");
    CHECK(status == 137 && strstr(text, "rank 0 on here"), "%d: %s", status, text);
    co_free(text);
    test_run r = test_sh("ps -eo args | grep -v grep | grep -c 'sleep 2000.%d'", (int)getpid());
    CHECK(atoi(r.out) == 0, "%s left", r.out);
    free(r.out);
}

static int count_of_sleeps(void)
{
    test_run r = test_sh("ps -eo args | grep -v grep | grep -c '^sleep 2001.%d'", (int)getpid());
    int n = atoi(r.out);

    free(r.out);
    return n;
}

static bool four_sleep(void *ctx)
{
    (void)ctx;
    return count_of_sleeps() == 4;
}

static bool none_sleeps(void *ctx)
{
    (void)ctx;
    return count_of_sleeps() == 0;
}

TEST(what_workers_started_ends_even_when_launcher_and_guards_are_killed_together)
{
    pid_t pid =
        test_spawn("out",
                   "export OMP_NUM_THREADS=1 TMPDIR=$PWD; exec %s launch --nproc-per-node=2 --no-python sh -c"
                   " 'setsid sleep 2001.%d & (sleep 2001.%d); wait'",
                   test_cohort(), (int)getpid(), (int)getpid());
    test_until(four_sleep, NULL, 20, "the workers' children");
    test_run r = test_sh("g=$(ps -o pid= -o comm= --ppid %d | awk '/cohort-guard/ {print $1}');"
                         " set -- $g; [ $# = 2 ] && kill -9 %d $g",
                         (int)pid, (int)pid);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    CHECK(test_wait(pid, 10) == 137, "the launcher is gone");
    test_until(none_sleeps, NULL, 20, "the end of all that the workers started");
}

TEST(a_log_file_at_its_size_limit_is_said_and_the_job_goes_on)
{
    test_run r =
        test_sh("ulimit -f 16; TMPDIR=$PWD $COHORT launch --no-python --log-dir=logs sh -c"
                " 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; sleep 0.3; echo last'"
                " | tail -n 1");
    CHECK(r.status == 0 && test_contains(r.out, "last\n") &&
              test_contains(r.out, "File too large; the job goes on without log files\n"),
          "status %d: %s", r.status, r.out);
    free(r.out);
}

TEST(a_worker_has_the_usual_answer_to_a_file_size_limit)
{
    test_run r = test_sh(
        "ulimit -f 16; TMPDIR=$PWD exec $COHORT launch --no-python dd if=/dev/zero of=big bs=1000 count=100");
    CHECK(r.status == 128 + SIGXFSZ && test_contains(r.out, "killed by SIGXFSZ (25)"), "status %d: %s",
          r.status, r.out);
    free(r.out);
}

TEST(a_round_leaves_no_zombie_and_no_descriptor)
{
    int fd = open("out", O_RDWR | O_CREAT | O_APPEND, 0644);

    CHECK(run_sh("true", 4, fd, fd) == 0, "first");
    test_run before = test_sh("ls /proc/%d/fd | wc -l", (int)getpid());
    CHECK(run_sh("sleep 0.1 & exit 0", 4, fd, fd) == 0, "second");
    CHECK(run_sh("exit 5", 4, fd, fd) == 5, "third");
    CHECK(run_file("/no/such/program", "", 4, fd, fd) == 127, "fourth");
    test_run after = test_sh("ls /proc/%d/fd | wc -l", (int)getpid());
    CHECK(atoi(before.out) == atoi(after.out), "%s and %s descriptors", before.out, after.out);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child is left");
    free(before.out);
    free(after.out);
}

TEST(a_job_hears_of_its_workers_end_where_sigchld_is_ignored)
{
    int fd = open("out", O_RDWR | O_CREAT | O_APPEND, 0644);
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGCHLD, SIG_IGN);
        _exit(run_sh("exit 3", 2, fd, fd));
    }
    int status = test_wait(pid, 10);
    CHECK(status == 3, "status %d: %s", status, text_of("out"));
}

static bool has_pid(void *path)
{
    char *text = NULL;
    bool has = co_fs_read(&text, NULL, path, 100) == CO_OK && strchr(text, '\n');

    co_free(text);
    return has;
}

TEST(a_stranger_that_holds_a_workers_pipe_is_not_waited_for)
{
    int fd = open("out", O_RDWR | O_CREAT | O_APPEND, 0644);
    char path[64];
    pid_t pid = fork();

    if (pid == 0)
        _exit(run_sh("echo $$ > pid; while ! test -e go; do sleep 0.05; done; printf 'the end'", 1, fd, fd));
    test_until(has_pid, "pid", 20, "the worker's pid");
    char *text = text_of("pid");
    snprintf(path, sizeof path, "/proc/%d/fd/1", atoi(text));
    co_free(text);
    int held = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(held >= 0, "%s: %m", path);
    CHECK_OK(co_fs_write_atomic("go", "", 0));
    int status = test_wait(pid, 10);
    if (status < 0)
        kill(pid, SIGKILL);
    CHECK(status == 0, "status %d", status);
    text = text_of("out");
    CHECK(strstr(text, "the end"), "%s", text);
    co_free(text);
    close(held);
}

static bool is_there(void *path)
{
    return co_fs_exists(path);
}

/* Texts that the terminal test waits for: when text k has appeared, a file shown.k is made for the
 * workers. */
static const char *awaited[4];
#define AWAIT(k) "until [ -e shown." #k " ]; do sleep 0.02; done; "

static void tell_workers(const char *got)
{
    char path[32];

    for (int k = 0; k < 4; k++) {
        if (!awaited[k] || !strstr(got, awaited[k]))
            continue;
        snprintf(path, sizeof path, "shown.%d", k);
        CHECK_OK(co_fs_write_atomic(path, "", 0));
        awaited[k] = NULL;
    }
}

/* The bytes that a terminal of 40 columns received. */
static char *on_rows(int rows, const char *text, int nproc)
{
    static char got[1 << 16];
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = 40};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), len = 0, status;

    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "%m");
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0, "%m");
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_sh(text, nproc, slave, slave));
    close(slave);
    for (ssize_t n; (n = read(master, got + len, sizeof got - 1 - (size_t)len)) > 0;) {
        len += (int)n;
        got[len] = '\0';
        tell_workers(got);
    }
    close(master);
    waitpid(pid, &status, 0);
    CHECK(status == 0, "status %x\n%s", (unsigned)status, got);
    return got;
}

static char *on_terminal(const char *text, int nproc)
{
    return on_rows(24, text, nproc);
}

/* The screen after these bytes. It knows two control sequences: one line up, and erase the rest of the
 * line. */
static const char *screen_of(const char *bytes)
{
    enum { ROWS = 64, WIDTH = 200 };
    static char row[ROWS][WIDTH], all[ROWS * WIDTH];
    size_t y = 0, x = 0, last = 0, len = 0;

    memset(row, 0, sizeof row);
    for (const char *at = bytes; *at; at++) {
        if (strncmp(at, "\033[A", 3) == 0) {
            y -= y > 0;
            at += 2;
        } else if (strncmp(at, "\033[K", 3) == 0) {
            memset(row[y] + x, 0, WIDTH - x);
            at += 2;
        } else if (*at == '\r') {
            x = 0;
        } else if (*at == '\n') {
            last = ++y > last ? y : last;
        } else {
            row[y][x++] = *at;
        }
        CHECK(y < ROWS && x < WIDTH, "too much for this screen:\n%s", bytes);
    }
    for (size_t i = 0; i <= last; i++)
        len += (size_t)snprintf(all + len, sizeof all - len, "%s\n", row[i]);
    return all;
}

TEST(progress_bars_have_a_line_each_on_a_terminal)
{
    awaited[0] = "[0] bar of 0 10%";
    awaited[1] = "[1] bar of 1 10%";
    awaited[2] = "[0] bar of 0 99%";
    awaited[3] = "[1] bar of 1 99%";
    char *got = on_terminal("printf \"bar of $RANK 10%%\\r\" >&2; " AWAIT(0)
                                AWAIT(1) "printf \"bar of $RANK 99%%\\r\" >&2; " AWAIT(2)
                                    AWAIT(3) "echo \"end of $RANK\"; printf '\\n' >&2",
                            2);
    const char *first = strstr(got, "[0] bar of 0 10%"),
               *erased = first ? strstr(first, "\033[A\r\033[K") : NULL;

    CHECK(first && erased && strstr(erased, "[1] bar of 1 99%"), "%s", got);
    const char *screen = screen_of(got);
    CHECK(strstr(screen, "[0] end of 0\n") && strstr(screen, "[1] end of 1\n"), "%s", screen);
    CHECK(strstr(screen, "[0] bar of 0 99%\n") && strstr(screen, "[1] bar of 1 99%\n"), "%s", screen);
    CHECK(!strstr(screen, "10%"), "%s", screen);
}

TEST(bars_below_each_other_are_lines_of_the_block_and_nothing_of_them_is_left)
{
    awaited[0] = "[0] epochs 0/2 of 0\r\n[0] steps 1\r\n[1] epochs 0/2 of 1\r\n[1] steps 1\r\n";
    awaited[1] = "[0] steps 2\r\n";
    awaited[2] = "[1] steps 2\r\n";
    char *got = on_terminal(
        "printf \"\\repochs 0/2 of $RANK\\n\\rsteps 1\\033[A\" >&2; " AWAIT(
            0) "printf \"\\n\\rsteps 2\\033[A\" >&2; " AWAIT(1)
            AWAIT(2) "printf \"\\n\\r       \\033[A\\repochs 2/2 of $RANK\\n\" >&2; echo \"end of $RANK\"",
        2);

    CHECK(strstr(got, "[0] epochs 0/2 of 0\r\n[0] steps 1\r\n[1] epochs 0/2 of 1\r\n[1] steps 1\r\n"), "%s",
          got);
    CHECK(strstr(got, "[0] steps 2\r\n"), "%s", got);
    const char *screen = screen_of(got);
    CHECK(strstr(screen, "[0] epochs 2/2 of 0\n") && strstr(screen, "[1] epochs 2/2 of 1\n"), "%s", screen);
    CHECK(strstr(screen, "[0] end of 0\n") && strstr(screen, "[1] end of 1\n"), "%s", screen);
    CHECK(!strstr(screen, "steps") && !strstr(screen, "0/2"), "%s", screen);
}

/* The largest number of lines that the cursor went down without coming up again. */
static int deepest(const char *bytes)
{
    int y = 0, most = 0;

    for (; *bytes; bytes++) {
        y += *bytes == '\n';
        y -= strncmp(bytes, "\033[A", 3) == 0;
        most = y > most ? y : most;
    }
    return most;
}

TEST(more_bars_than_a_terminal_has_rows_are_counted)
{
    /* the bars are erased at the end, so the terminal gets only the block */
    awaited[0] = "[0] bar of 0\r\n[1] bar of 1\r\n[2] bar of 2\r\nand 4 more\r\n";
    char *got = on_rows(5, "printf \"\\rbar of $RANK\" >&2; " AWAIT(0) "printf '\\r              ' >&2", 7);

    CHECK(strstr(got, "[0] bar of 0\r\n[1] bar of 1\r\n[2] bar of 2\r\nand 4 more\r\n"), "%s", got);
    CHECK(deepest(got) == 4, "%d rows down, of 5:\n%s", deepest(got), got);
}

static bool is_full(void *fd)
{
    int n = 0;

    return ioctl(*(int *)fd, FIONREAD, &n) == 0 && n >= 1 << 15;
}

TEST(a_reader_that_does_not_read_keeps_nobody_from_ending_the_job)
{
    int p[2];

    CHECK(pipe(p) == 0, "%m"); /* nobody reads p[0] */
    pid_t pid = fork();
    if (pid == 0) {
        _exit(run_sh("while :; do echo 0123456789012345678901234567890123456789; done", 1, p[1], p[1]));
    }
    close(p[1]);
    test_until(is_full, &p[0], 20, "a full pipe");
    kill(pid, SIGTERM);
    int status = test_wait(pid, 20);
    CHECK(status == 75, "%d", status);
}

/* A worker that prints 24 MB when it gets SIGTERM: within its time to end, also under sanitizers on a busy
 * machine. */
static const char talks_at_the_end[] = "trap 'yes 0123456789 | head -c 24000000; exit 0' TERM; : > ready; "
                                       "while :; do sleep 0.05; done";

TEST(what_workers_print_while_the_job_ends_and_nobody_reads_is_counted_not_kept)
{
    int p[2], status, err_fd = open("err", O_RDWR | O_CREAT | O_APPEND, 0644);
    struct rusage u;

    CHECK(pipe(p) == 0, "%m"); /* nobody reads p[0] */
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_sh(talks_at_the_end, 1, p[1], err_fd));
    test_until(is_there, "ready", 20, "the worker");
    kill(pid, SIGTERM);
    CHECK(wait4(pid, &status, 0, &u) == pid && WEXITSTATUS(status) == 75, "status %x", (unsigned)status);
    char *text = text_of("err"), *at = strstr(text, "passed on");
    int kb = 0;
    at = at ? strstr(at, "\ncohort: ") : NULL;
    CHECK(at && sscanf(at, "\ncohort: %d kB that workers printed while the job ended are not shown", &kb) == 1 &&
              kb > 15000 && kb <= 24000,
          "%d: %s", kb, text);
    co_free(text);
    test_note("at most %ld kB of memory", u.ru_maxrss);
#ifndef __SANITIZE_ADDRESS__ /* which adds memory of its own */
    CHECK(u.ru_maxrss < 20000, "%ld kB", u.ru_maxrss);
#endif
}

static bool is_full_or_ended(void *fd)
{
    struct pollfd p = {.fd = *(int *)fd, .events = POLLIN};
    int n = 0;

    poll(&p, 1, 0);
    return p.revents & POLLHUP || (ioctl(p.fd, FIONREAD, &n) == 0 && n == 1 << 20);
}

TEST(workers_that_waited_for_a_reader_go_on_when_it_reads_all_at_once)
{
    static char got[1 << 20];
    long long all = 0;
    int p[2];

    CHECK(pipe(p) == 0 && fcntl(p[0], F_SETPIPE_SZ, sizeof got) == sizeof got, "%m");
    pid_t pid = fork();
    if (pid == 0) {
        close(p[0]);
        _exit(run_sh("yes 0123456789 | head -c 50000000", 1, p[1], p[1]));
    }
    close(p[1]);
    for (ssize_t n = 1; n > 0; all += n) {
        test_until(is_full_or_ended, &p[0], 10, "more output, or its end");
        n = read(p[0], got, sizeof got);
    }
    CHECK(all == 50000000 && test_wait(pid, 10) == 0, "%lld bytes", all);
    close(p[0]);
}

TEST(an_idle_job_uses_hardly_any_cpu)
{
    struct rusage u;
    int fd = open("/dev/null", O_RDWR), status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(run_sh("sleep 1.5", 8, fd, fd));
    CHECK(wait4(pid, &status, 0, &u) == pid && status == 0, "status %x", (unsigned)status);
    double s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
    test_note("8 workers over 1.5 s, all included: %.1f ms of CPU", s * 1e3);
    CHECK(s < 0.5, "%.3f s", s);
}
