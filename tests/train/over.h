/* over.h -- hosts as processes of this machine, over loopback, with the real roster and the link tcp. A script says
 * what happens to whom after which step. */
#ifndef TESTS_TRAIN_OVER_H
#define TESTS_TRAIN_OVER_H

#include "train/stage.h"

enum { OVER_HOSTS = 6, OVER_EVENTS = 6 };

typedef enum {
    OVER_NOTHING,
    OVER_KILL,      /* the supervisor, and with it all processes of the host */
    OVER_KILL_RANK, /* one rank of it */
    OVER_KILL_CARRIER,
    OVER_STOP, /* SIGTERM to the supervisor */
    OVER_FREEZE,
    OVER_THAW, /* SIGSTOP, SIGCONT to all processes of the host */
    OVER_JOIN  /* this host comes */
} over_what;

typedef struct over_scene {
    const char *const *words;                            /* of the stage */
    int hosts, ranks;                                    /* at the beginning; each */
    int most, least;                                     /* hosts; 0: as many as at the beginning, 1 */
    bool plain;                                          /* without TLS */
    int64_t flip_at[OVER_HOSTS], spoil_from[OVER_HOSTS]; /* see co_train_hosts */
    struct {
        over_what what;
        int host;
        int64_t after; /* the first host has reported this step */
    } event[OVER_EVENTS];
} over_scene;

typedef struct over_end {
    bool there; /* it ended by itself and reported */
    int status; /* co_status */
    co_err err;
    int64_t steps;
    char sha[65], why[512];
    int views;
    double wall_s;
} over_end;

/* Runs it to its end. */
void over_run(const over_scene *scene, over_end end[OVER_HOSTS]);
/* The weights of the same stage trained by one host with one rank. */
void over_alone(const char *const *words, char sha[65]);

#endif
