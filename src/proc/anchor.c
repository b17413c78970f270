/* anchor.c -- sleeps until the launcher is gone, then kills all processes that have its entry in their
 * environment.
 *
 * System calls only, nothing allocated: it was forked from a process that may have threads.
 */
#include "proc/anchor.h"
#include "proc/proc_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ENTRY_MOST = 128 };

typedef struct hunt {
    char entry[ENTRY_MOST];
    int found;
} hunt;

/* The process is held by a descriptor while its environment is read. If it ends meanwhile and its number goes
 * to another process, the signal reaches nobody. */
static void kill_if_marked(void *ctx, pid_t pid)
{
    hunt *h = ctx;
    int process = (int)syscall(SYS_pidfd_open, pid, 0);

    if (in_environ(pid, h->entry)) {
        if (process >= 0)
            syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0);
        else
            kill(pid, SIGKILL); /* Linux before 5.3 */
        h->found++;
    }
    if (process >= 0)
        close(process);
}

/* A process may fork while we read /proc. So we repeat until two searches in a row find nobody, or the time
 * is over. */
static void sweep_marked(hunt *h)
{
    for (int turn = 0, quiet = 0; turn < STUCK_MS / SWEEP_MS && quiet < 2; turn++) {
        h->found = 0;
        each_process(kill_if_marked, h);
        quiet = h->found ? 0 : quiet + 1;
        poll(NULL, 0, SWEEP_MS);
    }
}

/* A launcher that is itself a worker of another launcher has that one's entry, and so have we. If the outer
 * anchor killed us for it, what our launcher's workers started would live on. The kernel shows these bytes
 * in /proc/PID/environ; the launcher keeps its own copy. */
static void hide_from_other_anchors(const hunt *h)
{
    size_t name = strcspn(h->entry, "=") + 1;

    for (char **at = environ; at && *at; at++)
        if (strncmp(*at, h->entry, name) == 0)
            **at = '-';
}

_Noreturn static void anchor_main(int sock, hunt *h)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t all;
    char byte;

    hide_from_other_anchors(h);
    setsid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "job-anchor");
    for (int fd = 0; fd < 3; fd++)
        dup2(nowhere, fd);
    dup2(sock, 3);
    close_range(4, ~0U, 0);
    while (read(3, &byte, 1) < 0 && errno == EINTR) /* returns when the launcher is gone */
        ;
    sweep_marked(h);
    _exit(0);
}

void co_anchor_start(co_anchor *out, const char *entry)
{
    hunt h = {.found = 0};
    size_t len = strlen(entry) + 1;
    int pair[2];
    sigset_t all, before;

    *out = (co_anchor){.sock = -1};
    if (len > sizeof h.entry || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    memcpy(h.entry, entry, len);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the child */
    pid_t pid = fork();
    if (pid == 0)
        anchor_main(pair[1], &h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(pair[1]);
    if (pid < 0)
        close(pair[0]);
    else
        *out = (co_anchor){.pid = pid, .sock = pair[0]};
}

void co_anchor_release(co_anchor *anchor)
{
    if (!anchor->pid)
        return;
    kill(anchor->pid, SIGKILL); /* before the socket ends: it has nothing to do, and it may be stopped */
    while (waitpid(anchor->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(anchor->sock);
    anchor->pid = 0;
}
