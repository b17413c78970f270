/* place.h -- finds out which scheduler started this launcher, and what that scheduler says about the job:
 * how many launchers meet, which of them this is, where they meet, and how the token gets from the first
 * launcher to the others.
 *
 * Slurm, Open MPI and PMIx, MPICH and other PMI, Kubernetes and RANK/WORLD_SIZE/MASTER_ADDR are each a row
 * of one table (place/find.c) with a file of its own. The user need not type anything that is in the
 * environment.
 *
 *     co_place p;
 *     CO_TRY(co_place_find(&p, &ask));             // reads the environment; p.name is "" outside a scheduler
 *     CO_TRY(co_place_share(&p, &meet, ...));      // waits for the first launcher, unless this is the first
 *     ... co_roster_open, co_job_run ...
 *     co_place_close(&p);
 */
#ifndef CO_PLACE_PLACE_H
#define CO_PLACE_PLACE_H

#include <stdbool.h>

#include "base/err.h"
#include "roster/roster.h"

/* What the command line says. */
typedef struct co_place_ask {
    int min_hosts, max_hosts; /* 0: --nnodes was not given */
    const char *hosts_key;    /* the setting that gave them, for messages; NULL: --nnodes */
    int nproc;
    int node_rank; /* -1: not given */
    /* It is a training, which has one process on each host. Tasks that share a machine with all others are
     * hosts of their own. */
    bool training;
} co_place_ask;

typedef struct co_place {
    char name[160];                  /* "Slurm job 12 step 0"; "": no scheduler that we know */
    char reading[200];               /* how we read a variable that has two meanings, or "" */
    char run_id[128];                /* from the scheduler's name for the job; "": it has none */
    char host[CO_HOST_NAME];         /* the scheduler's name for this host; "": it has none */
    char first[CO_HOST_NAME];        /* the first launcher's host; "": the environment does not say */
    char endpoint[CO_HOST_NAME + 8]; /* where to meet; "": the environment does not say */
    int seats, seat;                 /* number of launchers that meet, and the index of this one */
    int nodes, node;                 /* number of hosts, and the index of this one; 0, -1: not known */
    int tasks, task;                 /* number of launchers on this host, and the index of this one */
    int tasks_most; /* the most launchers on any host; if the hosts are not known, those on this host */
    bool training;  /* as asked */
    bool quiet;     /* another launcher on the same terminal prints what concerns all */
    /* May be set before co_place_share: a child of this process, made by fork, is going to call MPI_Init.
     * It needs the connection to PMI, which then stays open until co_place_close; call that after the
     * child ended. */
    bool for_mpi;
    bool outside;    /* in a Slurm allocation but not in a step: run `start` to get into one */
    char start[256]; /* the command to put before our own; it starts us once on each host */
    const struct place_row *row;
    struct lobby *lobby; /* Slurm: where the first launcher answers the others */
    void *channel;       /* PMIx, PMI: the connection */
} co_place;

/* CO_EINPUT: the command line does not fit this place (the message has both values and the right line), or
 * the environment contradicts itself. A launcher inside a worker of another launcher counts as outside any
 * scheduler: it starts its workers on this host alone. A training there takes the worker's variables. */
co_err co_place_find(co_place *out, const co_place_ask *ask);
/* Fills in the endpoint, role, token, further addresses and this host's name. The first launcher listens
 * and sends this to the others, which wait for it (under mpirun every launcher waits for all), at most
 * where->join_timeout_s. `talk` is called with a line of text when the wait is long. */
co_err co_place_share(co_place *p, co_meet *where, void (*talk)(const char *line));
/* "Slurm job 12 step 0: 2 hosts, this is 0 (node1); they meet at node1:29400"; "" if another launcher
 * prints it. */
void co_place_say(char *out, size_t size, const co_place *p, const co_meet *where);
void co_place_close(co_place *p); /* zeroed is fine */

#endif
