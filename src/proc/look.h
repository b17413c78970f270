/* look.h -- what /proc says about processes: who they are, how much they compute, what they wait for. The
 * reader of /proc/PID/... for all rooms that may include it.
 *
 *     co_proc *all;
 *     int n = co_proc_scan(&all);
 *     const co_proc *who = co_proc_suspect(all, n, top);
 */
#ifndef CO_PROC_LOOK_H
#define CO_PROC_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct co_proc {
    pid_t pid, ppid, session;
    char state;
    uint64_t ticks;   /* CPU time of its own threads */
    uint64_t started; /* clock ticks after boot: with the pid, it names one process until the next boot */
} co_proc;

/* One process; false: it is gone, or may not be read. System calls only, so a forked child of a threaded
 * process may call it. */
bool co_proc_read(co_proc *out, pid_t pid);
/* Like co_proc_read, but if any thread runs or waits for a disk, the state is that thread's: the main thread
 * may only sleep until it is done. */
bool co_proc_read_busiest(co_proc *out, pid_t pid);
/* The bytes that it has read so far, from files and pipes; 0 if the kernel does not say. They stand still
 * while a read hangs; CPU time may grow, because the kernel tries again and again. */
uint64_t co_proc_bytes_read(pid_t pid);

/* Reads the beginning of /proc/PID/NAME; pid 0: of /proc/NAME. Returns its length; 0 and "" if it cannot be
 * read. System calls only. */
size_t co_proc_text(char *out, size_t size, pid_t pid, const char *name);
/* The number in the line "KEY: NUMBER ..." of such a text; -1 if there is none. */
int64_t co_proc_number(const char *text, const char *key);
/* The children of the process's main thread, at most `most`. Returns their number; -1 if the kernel does not
 * list them. */
int co_proc_children(pid_t *out, int most, pid_t pid);

/* All processes that /proc lists, by pid; the caller frees *out with co_free. 0 if /proc cannot be read. */
int co_proc_scan(co_proc **out);
/* CPU ticks of `top` and all below it. */
uint64_t co_proc_ticks(const co_proc *p, int n, pid_t top);
/* The process at or below `top` that delays the others: one in disk wait if there is one; else the child that
 * top waits for; else top. */
const co_proc *co_proc_suspect(const co_proc *p, int n, pid_t top);
/* Kills and reaps processes that we adopted from a worker: those of its session, and those with both entries
 * in their environment. `mark` must be in the environment of this job's workers alone: our guards and the
 * anchor are children, too, and have the environment that we were started with. */
void co_proc_kill_adopted(pid_t session, const char *mark, const char *rank);

/* What a process waits for. */
typedef struct co_proc_wait {
    const char *state; /* "asleep", "disk wait", ... */
    char where[128];   /* "sleep", "read of /a/file"; "": unknown */
    const char *means; /* explains a call whose name does not; or "" */
    bool for_others;   /* it waits in a lock, a socket or a poll: another process is likely the cause */
} co_proc_wait;
void co_proc_wait_of(co_proc_wait *w, const co_proc *p);

#endif
