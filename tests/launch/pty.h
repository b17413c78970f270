/* pty.h -- runs a program on a terminal of its own: the test reads its output and types its input. */
#ifndef TESTS_LAUNCH_PTY_H
#define TESTS_LAUNCH_PTY_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

typedef struct pty {
    int fd;
    pid_t pid;
    char seen[1 << 16];
    size_t len, looked; /* looked: how far pty_expect has read */
} pty;

static inline void pty_open(pty *p, const char *line)
{
    *p = (pty){.fd = -1};
    fflush(NULL);
    p->pid = forkpty(&p->fd, NULL, NULL, NULL);
    CHECK(p->pid >= 0, "forkpty: %s", strerror(errno));
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    fcntl(p->fd, F_SETFL, O_NONBLOCK);
}

/* Reads the output that is there, waiting up to 50 ms; false: the terminal is closed. */
static inline bool pty_read(pty *p)
{
    struct pollfd at = {.fd = p->fd, .events = POLLIN};
    ssize_t n;

    poll(&at, 1, 50);
    n = read(p->fd, p->seen + p->len, sizeof p->seen - 1 - p->len);
    if (n > 0)
        p->len += (size_t)n;
    p->seen[p->len] = '\0';
    return n > 0 || (n < 0 && errno == EAGAIN);
}

/* Waits for this text, after the text of the last call. */
static inline void pty_expect(pty *p, const char *words)
{
    double until = co_now_s() + 15;
    char *at;

    while (!(at = strstr(p->seen + p->looked, words))) {
        bool open = pty_read(p);
        CHECK((open || strstr(p->seen + p->looked, words)) && co_now_s() < until,
              "no \"%s\" on the terminal:\n%s", words, p->seen);
    }
    p->looked = (size_t)(at - p->seen) + strlen(words);
}

static inline void pty_type(pty *p, const char *text)
{
    CHECK(write(p->fd, text, strlen(text)) == (ssize_t)strlen(text), "write: %s", strerror(errno));
}

/* The program's exit status; all its output is in `seen`. */
static inline int pty_end(pty *p)
{
    double until = co_now_s() + 15;

    while (pty_read(p))
        CHECK(co_now_s() < until, "still at it:\n%s", p->seen);
    int status = test_wait(p->pid, 15);
    close(p->fd);
    return status;
}

#endif
