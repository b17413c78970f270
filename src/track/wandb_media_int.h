/* wandb_media_int.h -- pictures, tables, histograms and texts of the record, for wandb. */
#ifndef CO_TRACK_WANDB_MEDIA_INT_H
#define CO_TRACK_WANDB_MEDIA_INT_H

#include "base/seen.h"
#include "wandb/wandb.h"

/* Pictures of one name and step come as lines of their own and are one value for wandb; they gather here. */
typedef struct wandb_media {
    co_wandb *run;
    const char *dir;          /* the run folder; borrowed */
    json_t *files, *captions; /* of the pictures that wait; NULL: none */
    char name[256];
    int64_t step;
    double t;
    int width, height;
    co_seen written; /* hashes of the names of files that the run has been given */
} wandb_media;

/* A line that is no scalar. One that has nothing for wandb is passed over. */
co_err wandb_media_take(wandb_media *m, const json_t *line, int64_t step, const char *name, double t);
/* Hands over the pictures that wait; call it before any other line is taken. */
co_err wandb_media_settle(wandb_media *m);
void wandb_media_fini(wandb_media *m);

#endif
