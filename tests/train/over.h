/* over.h -- hosts as processes of this machine, over loopback, with the real roster and the link tcp. A
 * script says what happens to whom after which step. */
#ifndef TESTS_TRAIN_OVER_H
#define TESTS_TRAIN_OVER_H

#include "train/stage.h"

enum { OVER_HOSTS = 8, OVER_EVENTS = 16 };

typedef enum {
    OVER_NOTHING,
    OVER_KILL,      /* all processes of the host */
    OVER_KILL_HEAD, /* the supervisor; the other processes of the host must follow it */
    OVER_KILL_RANK, /* one rank of it */
    OVER_KILL_CARRIER,
    OVER_STOP, /* SIGTERM to the supervisor */
    OVER_FREEZE,
    OVER_THAW,       /* SIGSTOP, SIGCONT to all processes of the host */
    OVER_JOIN,       /* this host comes */
    OVER_PAUSE,      /* SIGSTOP to all processes of the host, SIGCONT `ms` later */
    OVER_PAUSE_RANK, /* the same for one rank */
    OVER_STRANGERS,  /* hundreds connect to the port of this host's link */
    OVER_CUT,        /* the network passes nothing to or from the host for `ms`; on loopback it is paused */
    OVER_SLOW        /* the host's cable is slow for `ms`; on loopback nothing happens */
} over_what;

/* What the test saw of the first host, and what was left behind. */
typedef struct over_story {
    int64_t reported; /* it reported the steps 1 to this one, each once and in order; -1: it did not */
    int recoveries;
    double recovery_s[OVER_EVENTS]; /* from an accident to the first step after it */
    int orphans;                    /* processes that outlived the supervisor of their host */
    int strangers;                  /* that connected while the run went on */
} over_story;

struct ns_lan;

typedef struct over_scene {
    const char *name;                                    /* for messages; may be NULL */
    const char *const *words;                            /* of the stage */
    const char *own[OVER_HOSTS][3];                      /* further words of each host */
    int hosts, ranks;                                    /* at the beginning; each */
    int most, least;                                     /* hosts; 0: as many as at the beginning, 1 */
    bool plain;                                          /* without TLS */
    int deadline_s;                                      /* 0: 45 */
    int weigh_ms;                                        /* see co_train_hosts */
    int slow;                                            /* this host's first rank is slowed down; 0: none */
    const struct ns_lan *lan;                            /* hosts are namespaces; NULL: all on loopback */
    over_story *story;                                   /* may be NULL */
    int64_t flip_at[OVER_HOSTS], spoil_from[OVER_HOSTS]; /* see co_train_hosts */
    struct {
        over_what what;
        int host;
        int64_t after; /* the first host has reported this step */
        int ms, rank;
        int in_view; /* in its so many-th view, or a later one */
    } event[OVER_EVENTS];
} over_scene;

typedef struct over_end {
    bool there; /* it ended by itself and reported */
    int status; /* co_status */
    co_err err;
    int64_t steps, best_step;
    char sha[65], why[512];
    int views;
    int redeals; /* of these: because the hosts' speeds had changed */
    double wall_s;
    int slow_lines; /* that named a slow host */
    char slow[300]; /* the last of them */
} over_end;

/* digits/cnn: 46 steps, a run of a second or two: long enough for a host to join. */
extern const char *const over_digits[];

/* Runs it to its end, or fails after deadline_s. */
void over_run(const over_scene *scene, over_end end[OVER_HOSTS]);
/* The weights of the same stage trained by one host with one rank. */
void over_alone(const char *const *words, char sha[65]);

#endif
