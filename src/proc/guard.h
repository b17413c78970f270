/* guard.h -- one process of ours per worker program: it starts the worker, outlives it, and ends every
 * process that the worker left.
 *
 * A guard sends one co_guard_report at a time on its socket, in the order of co_guard_kind. It exits, and the
 * socket ends, when no process of the worker is left, or after CO_GUARD_STUCK. When the process that started
 * it dies, however it dies, the guard kills the worker and everything below it.
 *
 *     pid_t guard;
 *     int sock;
 *     CO_TRY(co_guard_start(&guard, &sock, &spec));
 *     while (recv(sock, &report, sizeof report, 0) == sizeof report) ...
 */
#ifndef CO_PROC_GUARD_H
#define CO_PROC_GUARD_H

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

typedef enum {
    CO_GUARD_STARTED,
    CO_GUARD_NOT_STARTED,
    CO_GUARD_ENDED,
    CO_GUARD_LEFT,
    CO_GUARD_STUCK
} co_guard_kind;

typedef struct co_guard_report {
    co_guard_kind kind;
    int pid;    /* the worker's */
    int status; /* ENDED: from waitpid; NOT_STARTED: errno; STUCK: errno of kill, or 0 */
    /* LEFT: processes that the worker left running and that got SIGTERM; STUCK: those that could not be
     * ended */
    int n;
    int who;         /* STUCK: one of them */
    int64_t when_ns; /* CLOCK_REALTIME */
} co_guard_report;

/* The caller prepares everything before the fork: a guard allocates nothing, because the caller may have
 * threads.
 */
typedef struct co_guard_spec {
    char *const *argv;
    char *const *envp;
    const char *file; /* argv[0] as found in PATH */
    int out_fd, err_fd;
    sigset_t mask;        /* the worker's signal mask */
    struct rlimit nofile; /* how many descriptors the worker may open */
} co_guard_spec;

co_err co_guard_start(pid_t *guard, int *sock, const co_guard_spec *spec);
/* SIGKILL goes to the whole tree; a second SIGKILL shortens the wait for it. Other signals go to the worker's
 * process group. */
void co_guard_signal(int sock, int sig);

#endif
