/* detach.c -- `cohort train --detach`: the run continues in its own session, without this terminal.
 *
 *     parent   passes on the child's output until the ranks run or the child has ended
 *     child    plans, opens the folder, shows the first screen, starts the ranks; then releases the parent
 *
 * So mistakes in the command line are reported here, with an exit status, and status 0 means that the run has
 * started. The child is the supervisor. From then on its standard input, output and error are /dev/null, and
 * its messages are in train.log. Ctrl-C before that reaches the child as a request to stop. */
#include "cli/train_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"

enum { OUT, ERR, READY, PIPES };

/* Passes on the output that is there. */
static void relay(int from, int to)
{
    char text[4096];
    ssize_t n;

    while ((n = read(from, text, sizeof text)) > 0)
        (void)co_fs_write_all(to, text, (size_t)n, "relay");
}

static void use_nothing(void)
{
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; none >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(none, fd);
    if (none > STDERR_FILENO)
        close(none);
}

void detach_ready(training *s)
{
    char path[PATH_MAX + 1];

    if (!s->detached)
        return;
    fflush(NULL);
    use_nothing();
    int n = snprintf(path, sizeof path, "%s\n", co_folder_path(s->folder));
    if (n < (int)sizeof path)
        (void)co_fs_write_all(s->ready, path, (size_t)n, "parent");
    close(s->ready);
    s->detached = false;
}

static void become_run(training *s, int pipes[PIPES][2])
{
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setsid();
    if (none >= 0)
        dup2(none, STDIN_FILENO);
    dup2(pipes[OUT][1], STDOUT_FILENO);
    dup2(pipes[ERR][1], STDERR_FILENO);
    s->detached = true;
    s->ready = pipes[READY][1];
    for (int i = 0; i < PIPES; i++) {
        close(pipes[i][0]);
        if (i != READY)
            close(pipes[i][1]);
    }
    if (none >= 0)
        close(none);
}

static void tell_started(const line *l, pid_t pid, const char *dir)
{
    if (l->json) {
        co_json_print(json_pack("{s:s, s:i}", "dir", dir, "pid", (int)pid));
        return;
    }
    co_say("detached  pid %d goes on by itself; what it says is in %s/train.log", (int)pid, dir);
    co_say("          %s attach %d      watch it (Ctrl-C leaves it running)", app_program(), (int)pid);
    co_say("          %s stop %d        ask it to save and stop", app_program(), (int)pid);
    printf("%s\n", dir);
}

/* Passes on output until the run has started or ended. */
static int wait_for_start(const line *l, pid_t pid, int pipes[PIPES][2], int signals)
{
    char dir[PATH_MAX + 2] = "";
    int ended = (int)syscall(SYS_pidfd_open, pid, 0), status = CO_EXIT_FAILED;
    size_t len = 0;
    struct pollfd fds[] = {{.fd = pipes[OUT][0], .events = POLLIN},
                           {.fd = pipes[ERR][0], .events = POLLIN},
                           {.fd = pipes[READY][0], .events = POLLIN},
                           {.fd = ended, .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};

    for (;;) {
        struct signalfd_siginfo info;
        if (poll(fds, CO_COUNT(fds), -1) < 0 && errno != EINTR)
            break;
        if ((fds[4].revents & POLLIN) && read(signals, &info, sizeof info) > 0)
            kill(pid, SIGTERM);
        ssize_t n = read(pipes[READY][0], dir + len, sizeof dir - 1 - len);
        len += n > 0 ? (size_t)n : 0;
        bool started = len && dir[len - 1] == '\n';
        relay(pipes[OUT][0], STDOUT_FILENO);
        relay(pipes[ERR][0], STDERR_FILENO);
        if (started) {
            dir[len - 1] = '\0';
            tell_started(l, pid, dir);
            status = CO_EXIT_DONE;
            break;
        }
        int st;
        if (waitpid(pid, &st, WNOHANG) == pid) {
            status = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
            relay(pipes[OUT][0], STDOUT_FILENO); /* output from between the last check and the end */
            relay(pipes[ERR][0], STDERR_FILENO);
            break;
        }
    }
    if (ended >= 0)
        close(ended);
    return status;
}

/* The parent reads signals from a descriptor that is opened before the fork, so that none is lost. */
static int open_signals(sigset_t *before)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool detach(training *s, const line *l, int *status)
{
    int pipes[PIPES][2], made = 0;
    sigset_t before;
    int signals = open_signals(&before);

    *status = CO_EXIT_FAILED;
    while (made < PIPES && pipe2(pipes[made], O_CLOEXEC) == 0) {
        fcntl(pipes[made][0], F_SETFL, O_NONBLOCK);
        made++;
    }
    fflush(NULL);
    pid_t pid = made == PIPES && signals >= 0 ? fork() : -1;
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        close(signals);
        become_run(s, pipes);
        return true;
    }
    if (pid < 0)
        co_notice("--detach: %s", strerror(errno));
    for (int i = 0; i < made; i++)
        close(pipes[i][1]);
    if (pid > 0)
        *status = wait_for_start(l, pid, pipes, signals);
    for (int i = 0; i < made; i++)
        close(pipes[i][0]);
    if (signals >= 0)
        close(signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return false;
}
