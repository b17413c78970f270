/* over_int.h -- what the parts of over.h share: over.c has the hosts and the loop, over_accidents.c what
 * happens to them, over_net.c what happens to their cables. */
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
    int go; /* a newcomer that is ready joins when it reads a byte here; 0: it was sent one */
    int64_t step;
    uint64_t step_ns; /* when it reported that step */
    int views;
};

/* Whom to continue, and when. */
struct pause {
    pid_t pid; /* negative: a process group; 0: nobody */
    uint64_t until_ns;
};

/* Until when a host's cable is cut, and until when it is slow; 0: it is not. */
struct cable {
    uint64_t cut_ns, slow_ns;
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
    uint64_t began_ns;
    over_story story;
    co_meet meet;
    co_token token;
    struct player host[OVER_HOSTS];
    bool done[OVER_EVENTS];
    struct pause pause[OVER_EVENTS];
    struct cable cable[OVER_HOSTS];
    struct wound wound[OVER_EVENTS];
    pid_t strangers, slowed;
    uint64_t slow_ns;
};
extern struct theatre over_play;

void over_start(int number); /* this host comes; a newcomer gets ready and waits for over_join */
void over_join(int number);

void over_happen(int event);
void over_pause(pid_t pid, int ms);           /* negative: a process group */
void over_accident_turn(uint64_t now);        /* continues who was stopped long enough */
void over_first_steps(const struct told *it); /* the first host has reported a step */
int over_reap_orphans(void);                  /* how many there were */

/* over_net.c; only where hosts are namespaces */
void over_cut(int host, int ms);
void over_slow(int host, int ms);
void over_net_turn(uint64_t now); /* mends the cables whose time has come */
void over_net_end(void);          /* mends all cables */

#endif
