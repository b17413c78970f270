/* accidents.h -- a job on the hosts of a lan, and the steps of a schedule that disturb it.
 *
 * The workers are those of worker.h that create a file with their name and wait for the file `go`. All files
 * are in the current folder.
 */
#ifndef TESTS_LAUNCH_ACCIDENTS_H
#define TESTS_LAUNCH_ACCIDENTS_H

#include "hosts.h"
#include "roster/schedules.h"

enum { BOUND_S = 40 }; /* a step that takes longer hangs */

typedef struct stage {
    const ns_lan *lan;
    schedule s;
    char mark[64], text[700];
    pid_t agent[HOSTS]; /* 0: none runs */
    int started;        /* launchers so far; numbers their output files */
    bool killed;        /* a supervisor was killed: we adopted its processes */
} stage;

void say_screens(void);
/* Fails the test if the condition is false, and prints the schedule and all output. */
#define HOLDS(g, cond, ...)                                                                                  \
    ((cond) ? (void)0 : (say_screens(), test_fail(__FILE__, __LINE__, (g)->text, __VA_ARGS__)))

void start_agent(stage *g, int host);
void ends_with(stage *g, int host, int want); /* waits for a launcher's end */
/* Waits until the job is in the expected state; host `but` is not checked (-1: all are). */
void settles(stage *g, const outlook *o, int but);
void lets_go(void); /* all workers, also later ones, end with status 0 */
/* Does the step. False: its outcome cannot be predicted. */
bool happens(stage *g, const outlook *now, const outlook *next, const event *e);

#endif
