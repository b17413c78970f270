/* crew.h -- a crew of worker processes, watched by the process that started them.
 *
 * The supervisor forks each rank, holds a pidfd of it, and learns of its death at once. A rank that stops
 * making progress is fenced (SIGKILL, then its exit is observed) before it counts as dead; only then may a
 * new incarnation take its slot. Ranks die with the supervisor (parent-death signal) and are the
 * out-of-memory killer's first choice.
 *
 * Deadlines run on the supervisor's own scheduled time: a turn that took long (suspend, Ctrl-Z of the group,
 * an overloaded machine) counts as one ordinary turn. See the table of time-outs below.
 *
 *     co_crew *crew;
 *     CO_TRY(co_crew_start(&crew, &spec));
 *     while (co_crew_alive(crew) > 0)
 *         CO_TRY(co_crew_turn(crew, 50, fds, n_fds));
 *     co_crew_free(crew);
 */
#ifndef CO_PROC_CREW_H
#define CO_PROC_CREW_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/fds.h"

enum { CO_CREW_MOST = 64 }; /* members of a crew */

/* All time-outs of a crew. */
enum {
    CO_TURN_MS = 50,       /* the longest turn of the supervisor while all is well */
    CO_LATE_TURN_MS = 200, /* what a turn counts at most towards a deadline */
    CO_BUSY_FACTOR = 20,   /* time spent computing or in disk wait counts a 20th towards the deadline */
    CO_FENCE_MS = 10000    /* a SIGKILLed rank that does not exit by then (D state) ends the run */
};

typedef struct co_death {
    int slot;
    uint32_t inc;
    pid_t pid;
    int status;     /* from waitpid */
    bool fenced;    /* killed by us because it stalled */
    double still_s; /* how long it had made no progress */
    char state;     /* /proc state when fenced: 'T' stopped, 'S', 'D', 'R' */
    uint64_t seen_ns;
} co_death;

typedef enum { CO_CREW_LET_GO, CO_CREW_REPLACE, CO_CREW_END } co_verdict;

typedef struct co_crew_spec {
    int size;
    void *ctx;
    /* In the child. Its return value is the exit status. Signals are blocked as in the supervisor. */
    int (*main)(void *ctx, int slot, uint32_t inc);
    uint64_t (*turns)(void *ctx, int slot); /* heartbeat: changes while the rank makes progress */
    bool (*waiting)(void *ctx, int slot);   /* waits for others: no deadline, unless it is stopped */
    co_verdict (*died)(void *ctx, const co_death *d);
    void (*notice)(void *ctx, int slot, const char *text); /* "rank 1 (pid 12) is stopped ..." */
    double stall_s;
    const char *log_dir; /* a file per rank for its standard error; NULL: inherited */
    bool pin;            /* rank i on CPUs of its own among those that this process may use */
    int cpus_each;       /* so many; 0: one */
    co_fds keep;         /* stay open in a rank, beside the standard streams; all others are closed */
} co_crew_spec;

typedef struct co_crew co_crew;

co_err co_crew_start(co_crew **out, const co_crew_spec *spec);
/* One turn: waits up to timeout_ms for a death, a signal or one of fds, then handles deaths and stalls.
 * CO_EFAIL: `died` returned END, a fork failed, or a fenced rank does not exit. */
co_err co_crew_turn(co_crew *c, int timeout_ms, struct pollfd *fds, int n_fds);
int co_crew_alive(const co_crew *c);
pid_t co_crew_pid(const co_crew *c, int slot); /* 0 if there is none */
void co_crew_kill(co_crew *c, int slot);       /* SIGKILL; the death is handled like any other */
void co_crew_free(co_crew *c);                 /* kills and reaps the ranks that are left; NULL is fine */

/* A single child of ours, for background work: forked like a rank, watched by pidfd. */
typedef struct co_child_spec {
    int (*main)(void *ctx); /* in the child; its return value is the exit status */
    void *ctx;
    co_fds keep; /* stay open in the child, beside the standard streams; all others are closed */
} co_child_spec;
co_err co_child_start(pid_t *pid, int *pidfd, const co_child_spec *spec);

/* Private (anonymous) memory of this process that is resident, in bytes; pages still shared with the parent
 * count too. */
size_t co_memory_private(void);

/* CPUs this process may use: affinity, then cgroup quota. */
int co_cpus_usable(void);

/* Blocks the signals that ask us to stop (SIGINT, SIGTERM, SIGUSR1) until co_signals_open reads them.
 * */
sigset_t co_signals_hold(void);
/* Opens a descriptor for these signals, and ignores SIGHUP and SIGPIPE in the whole process from now on. */
co_err co_signals_open(int *fd);
/* The signal that came, 0 if none. */
int co_signals_next(int fd);

#endif
