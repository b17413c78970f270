/* place.h -- what started this launcher, and what that says about the job: how many launchers meet, which
 * of them this is, where they meet and how the token gets from the first to the others.
 *
 * Slurm, Open MPI and PMIx, MPICH and other PMI, Kubernetes and RANK/WORLD_SIZE/MASTER_ADDR are each a row
 * of one table (place/find.c) and a file of their own. Nobody is asked for anything that the environment
 * knows.
 *
 *     co_place p;
 *     CO_TRY(co_place_find(&p, &ask));            // from the environment alone; p.name "" if nothing started us
 *     CO_TRY(co_place_share(&p, &meet, ...));      // waits for the first launcher, if this is another
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
    int nproc;
    int node_rank; /* -1: not given */
} co_place_ask;

typedef struct co_place {
    char name[160];                  /* "Slurm job 12 step 0"; "": nothing we know started us */
    char reading[200];               /* how a value with two meanings was taken, or "" */
    char run_id[128];                /* "": it has no name for the job */
    char host[CO_HOST_NAME];         /* what it calls this host; "": nothing */
    char first[CO_HOST_NAME];        /* the first launcher's host, if it is known beforehand */
    char endpoint[CO_HOST_NAME + 8]; /* where to meet, if it is known beforehand */
    int seats, seat;                 /* launchers that meet, and which of them this is */
    int nodes, node;                 /* hosts, and which; 0, -1: not known */
    int tasks, task;                 /* launchers on this host, and which of them this is */
    int tasks_most;  /* launchers on the host that has most; on this one, if hosts are not known */
    bool quiet;      /* another launcher writes to the same terminal and says what concerns all */
    bool outside;    /* in a Slurm allocation, not in a step: `start` brings us into one */
    char start[256]; /* the words before our own that start us once on each host */
    const struct place_row *row;
    struct lobby *lobby; /* Slurm: where the first launcher answers the others */
    void *channel;       /* PMIx, PMI: the connection */
} co_place;

/* CO_EINPUT: what was asked for cannot be had in this place (both values, the right line), or the
 * environment contradicts itself. A launcher inside a worker of another launcher is in no place: it starts
 * its workers on this host alone. */
co_err co_place_find(co_place *out, const co_place_ask *ask);
/* Fills endpoint, role, token, further addresses, this host's name. The first launcher listens and tells
 * the others; these wait until it does (under mpirun all wait for all), up to where->join_timeout_s,
 * `told` getting a line when that takes long. */
co_err co_place_share(co_place *p, co_meet *where, void (*told)(const char *line));
/* "Slurm job 12 step 0: 2 hosts, this is 0 (node1); they meet at node1:29400"; "": not this launcher's to
 * say. */
void co_place_say(char *out, size_t size, const co_place *p, const co_meet *where);
void co_place_close(co_place *p); /* zeroed is fine */

#endif
