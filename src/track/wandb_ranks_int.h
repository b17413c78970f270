/* wandb_ranks_int.h -- logger.wandb.per_rank: a run of wandb for each rank but rank 0, whose run is the
 * tracker's. */
#ifndef CO_TRACK_WANDB_RANKS_INT_H
#define CO_TRACK_WANDB_RANKS_INT_H

#include "track/tracker.h"
#include "wandb/wandb.h"

enum { WANDB_RANKS_MOST = 128 };

/* The runs of this host's ranks begin with the start, those of other hosts with the first figure of each. */
typedef struct wandb_ranks {
    const co_wandb_cfg *cfg;
    const co_run_facts *facts;
    const co_wandb *first; /* the run of rank 0 */
    json_t *config;        /* of the last start; NULL: none yet */
    double began;          /* when the first start began */
    char host[256];        /* of the host that writes the record; "": not known */
    co_wandb *run[WANDB_RANKS_MOST];
    char label[WANDB_RANKS_MOST][128]; /* "rank3", "node2-rank1" */
    int n;
} wandb_ranks;

/* A start of the run: a line `run_start`, which says how many ranks this host has. */
co_err wandb_ranks_begin(wandb_ranks *ranks, const json_t *line, double t);
/* A figure of rank `number` of `host` ("": of the host that writes the record), which is not rank 0's. */
co_err wandb_ranks_take(wandb_ranks *ranks, const char *host, long number, const char *name, double value,
                        double t);
co_err wandb_ranks_flush(wandb_ranks *ranks);
/* Something that the user should hear of one of these runs, after the name of its rank; false: nothing. */
bool wandb_ranks_notice(wandb_ranks *ranks, char *out, size_t size);
/* The private memory that the runs need if the training has so many ranks. */
size_t wandb_ranks_memory(int ranks);
void wandb_ranks_close(wandb_ranks *ranks);

#endif
