/* schedules.h -- a schedule of accidents drawn from a seed, and a model of what must become of the job.
 *
 * The model knows nothing of the program but its promises: a failure costs a restart, a lost host too, a
 * host that joins none; a signal to a supervisor ends the job with 75; without the host that keeps the
 * roster (host 0 here) the others end with 75. In two of three schedules a step waits until the last one
 * has settled, so that the model has one answer; the others are hasty.
 */
#ifndef TESTS_LAUNCH_SCHEDULES_H
#define TESTS_LAUNCH_SCHEDULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOSTS = 4, EVENTS = 3 };

/* What happens, in the words that are printed. Short: less than silence may last; long: more. */
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
    int host, local; /* whom */
    int status;      /* EXIT_WORKER: with which */
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
    bool hasty;                           /* steps come one after the other, whatever has come of the last */
    int n;
    event at[EVENTS];
} schedule;

schedule schedule_draw(uint64_t seed);
void schedule_text(char *out, size_t size, const schedule *s);
outlook outlook_start(const schedule *s);
outlook outlook_after(const schedule *s, outlook now, const event *e);
int outlook_hosts(const outlook *o);
/* Hasty ones have many ends. Whether a launcher on this host may end with this status in any of them. */
bool schedule_allows(const schedule *s, int host, int status);
/* Whether no step was aimed at its supervisor or its cable: such hosts all end alike. */
bool schedule_spares(const schedule *s, int host);

#endif
