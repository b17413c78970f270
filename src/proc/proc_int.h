/* proc_int.h -- what the files of this room share. */
#ifndef CO_PROC_PROC_INT_H
#define CO_PROC_PROC_INT_H

#include <stdbool.h>
#include <sys/types.h>

#include "proc/look.h"

/* All times of guards, of the anchor and of signals; those of a crew are in crew.h. */
enum {
    LINGER_MS = 250,       /* how long processes that a worker left may run before they get SIGTERM */
    LEFT_BEHIND_MS = 5000, /* from that SIGTERM to SIGKILL */
    STUCK_MS = 10000,      /* a process that still exists this long after SIGKILL is held by the kernel */
    HOPELESS_MS = 2000,    /* the same for a process that we may not kill, or after a second order to kill */
    ADOPTED_MS = 2,      /* between two searches for adopted processes while one of them is in an exec ... */
    ADOPTED_TURNS = 100, /* ... and how many searches there are at most; who is left then lives on */
    ONE_REQUEST_MS = 1000, /* signals from programs within this time are one request */
    SWEEP_MS = 20          /* from one search for processes to kill to the next */
};

/* children.c: a guard's children, found and signalled by system calls alone. */
typedef struct sweep {
    int sig;
    pid_t group;       /* spare the members of this process group ... */
    int had;           /* ... that do not ignore this signal: they already got it; 0: spare nobody */
    int sent, refused; /* out: how many got the signal; how many we may not signal */
    pid_t one;         /* out: a process that we may not signal, or else one that got the signal */
    int why;           /* out: errno of `one`; 0: it was signalled */
} sweep;
void children_signal(sweep *s);

/* stat.c: one thread of a process. */
bool read_thread(co_proc *out, pid_t pid, pid_t thread);

/* read.c: by system calls alone. */
enum { TASK_NAME = 64 };
void task_name(char out[TASK_NAME], pid_t thread, const char *file); /* "task/TID/FILE", below /proc/PID */
int open_of(pid_t pid, const char *name);                        /* /proc/PID/NAME; -1: cannot be opened */
void each_process(void (*see)(void *ctx, pid_t pid), void *ctx); /* all in /proc */
bool in_environ(pid_t pid, const char *entry);                   /* is NAME=VALUE in its environment? */

#endif
