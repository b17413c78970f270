/* death.h -- how a process died and what to do about it. The trainer and the launcher both use it.
 *
 * The wait status says which signal or exit status it was. Why a signal was sent is often in the kernel's own
 * records: counters of the out-of-memory killer, the kernel log, a full /dev/shm, instructions that the CPU
 * lacks. The counters only help when they are compared with an earlier reading, so take one before the
 * processes start.
 *
 *     co_death_traces before;
 *     co_death_traces_take(&before, "");
 *     ...
 *     co_death_cause cause;
 *     co_death_tell(&cause, status, pid, &before);     // "killed by SIGKILL (9), by the kernel's ..."
 */
#ifndef CO_PROC_DEATH_H
#define CO_PROC_DEATH_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct co_death_traces {
    const char *root;    /* put before /proc, /sys and /dev: "" for this machine; borrowed */
    long long oom_kills; /* by the out-of-memory killer, so far; -1: unknown */
} co_death_traces;

typedef struct co_death_cause {
    int sig;            /* the signal that killed it; 0: it exited */
    int status;         /* its exit status if sig is 0 */
    bool out_of_memory; /* the kernel's out-of-memory killer sent the signal */
    char how[200];      /* "exited with status 3" */
    char advice[256];   /* one line, or "" */
} co_death_cause;

void co_death_traces_take(co_death_traces *out, const char *root);
/* `wait_status` is from waitpid. If only the counter explains a death, one of its kills is used up, so that a
 * later SIGKILL from somebody else is not blamed on the same kill. */
void co_death_tell(co_death_cause *out, int wait_status, pid_t pid, co_death_traces *before);

#endif
