/* command.c -- runs a short program and reads its output. */
#include "proc/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/death.h"

extern char **environ;

static co_err start(pid_t *pid, int *from, const char *const *argv)
{
    posix_spawn_file_actions_t io;
    posix_spawnattr_t how;
    sigset_t ignored; /* signals that we ignore; the child gets the default handlers */
    int p[2];

    if (pipe2(p, O_CLOEXEC) != 0)
        return co_fail(CO_EIO, "pipe: %m");
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigdefault(&how, &ignored);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&io);
    posix_spawn_file_actions_addopen(&io, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&io, p[1], 1);
    posix_spawn_file_actions_addopen(&io, 2, "/dev/null", O_WRONLY, 0);
    errno = posix_spawnp(pid, argv[0], &io, &how, (char *const *)argv, environ);
    int why = errno;
    posix_spawn_file_actions_destroy(&io);
    posix_spawnattr_destroy(&how);
    close(p[1]);
    if (why) {
        close(p[0]);
        errno = why;
        return co_fail(CO_EIO, "%s: %m", argv[0]);
    }
    *from = p[0];
    return CO_OK;
}

/* Reads until the program ends (true) or the time is over (false). Output that does not fit is dropped. */
static bool drain(char *out, size_t size, int fd, double seconds)
{
    uint64_t until = co_now_ns() + (uint64_t)(seconds * 1e9);
    size_t have = 0;
    char more[4096];

    for (;;) {
        uint64_t now = co_now_ns();
        struct pollfd f = {.fd = fd, .events = POLLIN};
        int ready = now >= until ? 0 : poll(&f, 1, (int)((until - now) / 1000000) + 1);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0) {
            out[have] = '\0';
            return false;
        }
        ssize_t n = read(fd, more, sizeof more);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        size_t keep = (size_t)n < size - 1 - have ? (size_t)n : size - 1 - have;
        memcpy(out + have, more, keep);
        have += keep;
    }
    out[have] = '\0';
    return true;
}

static co_err refuse(const char *const *argv, int status, pid_t pid, co_death_traces *before)
{
    co_death_cause cause;

    co_death_tell(&cause, status, pid, before);
    return co_fail(CO_EIO, "%s %s %s", argv[0], argv[1] ? argv[1] : "", cause.how);
}

co_err co_command_read(char *out, size_t size, const char *const *argv, double seconds)
{
    pid_t pid;
    int from = -1, status = 0;
    co_death_traces before;

    co_death_traces_take(&before, "");
    CO_TRY(start(&pid, &from, argv));
    bool ended = drain(out, size, from, seconds);
    close(from);
    if (!ended)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!ended)
        return co_fail(CO_EIO, "%s has not answered within %g s", argv[0], seconds);
    return status ? refuse(argv, status, pid, &before) : CO_OK;
}
