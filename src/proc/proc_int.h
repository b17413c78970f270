/* proc_int.h -- what the files of this room share. */
#ifndef CO_PROC_PROC_INT_H
#define CO_PROC_PROC_INT_H

#include <sys/types.h>

/* All times of guards and of the anchor; those of a crew are in crew.h. */
enum {
    LINGER_MS = 250,       /* how long processes that a worker left may run before they get SIGTERM */
    LEFT_BEHIND_MS = 5000, /* from that SIGTERM to SIGKILL */
    STUCK_MS = 10000,      /* a process that still exists this long after SIGKILL is held by the kernel */
    HOPELESS_MS = 2000,    /* the same for a process that we may not kill, or after a second order to kill */
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
pid_t number_of(const char *text);                                     /* "12" */
void each_process(void (*see)(void *ctx, const char *pid), void *ctx); /* all in /proc */

#endif
