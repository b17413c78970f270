/* accidents.h -- a job on hosts of a lan to which the steps of a schedule happen.
 *
 * The workers are those of worker.h that say by a file who they are and wait for the file `go`. All in the
 * current folder.
 */
#ifndef TESTS_LAUNCH_ACCIDENTS_H
#define TESTS_LAUNCH_ACCIDENTS_H

#include "hosts.h"
#include "roster/schedules.h"

enum { BOUND_S = 40 }; /* nothing takes longer: it hangs */

typedef struct stage {
    const ns_lan *lan;
    schedule s;
    char mark[64], text[700];
    pid_t agent[HOSTS]; /* 0: none runs */
    int started;        /* so far, for the names of their screens */
    bool killed;        /* a supervisor was: what it started came to us */
} stage;

void say_screens(void);
/* What must hold; if not, the schedule is said, and all that was printed. */
#define HOLDS(g, cond, ...)                                                                                  \
    ((cond) ? (void)0 : (say_screens(), test_fail(__FILE__, __LINE__, (g)->text, __VA_ARGS__)))

void start_agent(stage *g, int host);
void ends_with(stage *g, int host, int want); /* waits for a launcher's end */
/* Waits until the job is as it should be; nothing is asked of host `but` (-1: nobody). */
void settles(stage *g, const outlook *o, int but);
void lets_go(void); /* workers that are up, or come up, end well */
/* Does it. False: nobody can say what must come of it. */
bool happens(stage *g, const outlook *now, const outlook *next, const event *e);

#endif
