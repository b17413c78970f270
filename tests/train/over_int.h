/* over_int.h -- what the two halves of over.h share: over.c has the hosts and the loop, over_accidents.c what happens
 * to them. */
#ifndef TESTS_TRAIN_OVER_INT_H
#define TESTS_TRAIN_OVER_INT_H

#include <sys/types.h>

#include "net/net.h"
#include "roster/roster.h"
#include "train/over.h"

enum { TOLD_STEP, TOLD_END, TOLD_LINE, TOLD_PORT };

/* What a host reports to the test, through a pipe. */
struct told {
    int kind;
    int64_t step; /* or a port */
    int views;    /* that this host has entered */
    uint64_t t_ns;
    over_end end;
    char text[400];
};

struct player {
    pid_t pid; /* 0: not started, or reaped */
    int pipe, port;
    int64_t step;
    int views;
};

/* Whom to continue, and when. */
struct pause {
    pid_t pid; /* negative: a process group; 0: nobody */
    uint64_t until_ns;
};

/* The first host has not got over this accident yet. */
struct wound {
    uint64_t t_ns; /* 0: none */
    int64_t step;
    int views;
    bool needs_view;
};

struct theatre {
    const over_scene *scene;
    over_story story;
    co_meet meet;
    co_token token;
    struct player host[OVER_HOSTS];
    bool done[OVER_EVENTS];
    struct pause pause[OVER_EVENTS];
    struct wound wound[OVER_EVENTS];
    pid_t strangers, slowed;
    uint64_t slow_ns;
};
extern struct theatre over_play;

void over_start(int number); /* this host comes */

void over_happen(int event);
void over_accident_turn(uint64_t now);        /* continues who was stopped long enough */
void over_first_steps(const struct told *it); /* the first host has reported a step */
int over_reap_orphans(void);                  /* how many there were */

#endif
