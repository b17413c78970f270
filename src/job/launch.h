/* launch.h -- the command lines of `cohort launch`, `cohort host` and `cohort join`: torchrun's flags for
 * any program.
 *
 * argv[0] is the command's name. Each returns the exit status.
 *
 * If the program is our own training (`train WORDS`, or this binary with `train WORDS`), no worker is
 * started: every host calls `train` with its words and the hosts that the command has found.
 */
#ifndef CO_JOB_LAUNCH_H
#define CO_JOB_LAUNCH_H

#include "job/meet.h"

typedef struct co_launch_calls {
    int (*help)(const char *command); /* for --help */
    /* argv[0] is "train". `hosts` is borrowed. */
    int (*train)(int argc, char **argv, co_hosts_line *hosts);
    /* Workers of another program: they are about to start, and they have ended. */
    void (*began)(const char *job, const char *what);
    void (*ended)(void);
} co_launch_calls;

extern const char co_launch_usage[], co_host_usage[], co_join_usage[];

int co_launch_run(int argc, char **argv, const co_launch_calls *calls);
int co_host_run(int argc, char **argv, const co_launch_calls *calls);
int co_join_run(int argc, char **argv, const co_launch_calls *calls);

#endif
