/* hosts.h -- several hosts in one test: each with its arena, its ranks and its carrier, on the link `self`,
 * with a roster. Ranks are coroutines. One loop decides, from a seed, who goes on next and which message is
 * delivered, so a run can be repeated, and an accident can be put at any place.
 *
 * On the link `tcp` the same hosts are joined by sockets. Then the kernel decides when a message comes, so a
 * run cannot be repeated exactly. */
#ifndef TESTS_TRAIN_HOSTS_H
#define TESTS_TRAIN_HOSTS_H

#include "train/carrier_int.h"
#include "train/run_int.h"
#include "train/stage.h"

enum { HOSTS_MOST = 6 };

typedef enum {
    NOTHING,
    RANK_DIES,
    HOST_DIES,
    HOST_CUT_OFF, /* evicted; later it comes back as a newcomer */
    HOST_JOINS,
    HOST_LEAVES,
    STOP_WISHED
} accident;

typedef struct scene {
    const stage *stage; /* spec.hosts and the ranks are set by hosts_run */
    const course *course;
    bool tcp;               /* the link: tcp with TLS; otherwise self */
    int hosts, ranks;       /* at the beginning */
    int min;                /* fewer members: the roster waits for a newcomer. 0: 1 */
    int weight[HOSTS_MOST]; /* of the deal; all 0: equal */
    uint64_t seed;
    struct {
        accident what;
        int host;  /* its number; newcomers get the next free ones */
        long when; /* the point at which it happens; 0: never */
    } plan[3];
} scene;

typedef struct outcome {
    long points; /* that were passed */
    int views, given, newcomers;
    int64_t steps;
} outcome;

/* Runs it to its end and checks every host that is left: its results, its state, its snapshots. */
outcome hosts_run(const scene *s);

#endif
