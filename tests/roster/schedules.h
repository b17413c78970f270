/* schedules.h -- a random schedule of accidents, made from a seed, and a model that predicts how the job
 * ends.
 *
 * The model contains only what the program promises. A failure or a lost host costs a restart; a host that
 * joins does not. A signal to a supervisor ends the job with 75. If the host that keeps the roster (host 0
 * here) is lost, the others end with 75. In two of three schedules each step waits until the effects of the
 * last one are over, so that the model has one answer. The others are hasty: their steps do not wait.
 */
#ifndef TESTS_LAUNCH_SCHEDULES_H
#define TESTS_LAUNCH_SCHEDULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOSTS = 4, EVENTS = 3 };

/* What can happen, with the words that are printed. SHORT: too short for a host to count as lost; LONG: long
 * enough. */
#define EVENT_KINDS(X)                                                                                       \
    X(KILL_WORKER, "kill -9 of worker")                                                                      \
    X(EXIT_WORKER, "bad exit of worker")                                                                     \
    X(KILL_ALL, "kill -9 of all workers of the host of")                                                     \
    X(STOP_WORKER, "stop and continue worker")                                                               \
    X(KILL_BESIDE_STOPPED, "stop a worker, kill -9 of")                                                      \
    X(KILL_AGENT, "kill -9 of the supervisor of")                                                            \
    X(TERM_AGENT, "SIGTERM to the supervisor of")                                                            \
    X(TERM_STUCK, "stop a worker, SIGTERM to the supervisor of")                                             \
    X(FREEZE_SHORT, "stop shortly the supervisor of")                                                        \
    X(FREEZE_LONG, "stop for long the supervisor of")                                                        \
    X(CUT_SHORT, "pull shortly the cable of")                                                                \
    X(CUT_LONG, "pull for long the cable of")                                                                \
    X(JOIN, "a new supervisor on the host of")
#define EVENT_NAME(name, words) EV_##name,
typedef enum { EVENT_KINDS(EVENT_NAME) EVENT_COUNT } event_kind;

typedef struct event {
    event_kind kind;
    int host, local; /* the host, and the worker on it */
    int status;      /* EXIT_WORKER: the exit status */
} event;

/* Whether the job goes on, and how each host's launcher has ended. */
typedef struct outlook {
    bool over, in[HOSTS];
    int restarts;
    int status[HOSTS]; /* of launchers that ended in the last step; -1: none did */
} outlook;

typedef struct schedule {
    uint64_t seed;
    int hosts, min, max, nproc, restarts; /* hosts: at the start */
    bool hasty;                           /* steps do not wait for the effects of the last one */
    int n;
    event at[EVENTS];
} schedule;

schedule schedule_draw(uint64_t seed);
void schedule_text(char *out, size_t size, const schedule *s);
outlook outlook_start(const schedule *s);
outlook outlook_after(const schedule *s, outlook now, const event *e);
int outlook_hosts(const outlook *o);
/* A hasty schedule can end in several ways. Whether a launcher on this host may end with this status in one.
 */
bool schedule_allows(const schedule *s, int host, int status);
/* Whether no step concerns the host's supervisor or its cable. All hosts of this kind end with one status. */
bool schedule_spares(const schedule *s, int host);

#endif
