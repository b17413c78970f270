/* wandb_media_int.h -- pictures, tables, histograms and texts of the record, for wandb. */
#ifndef CO_TRACK_WANDB_MEDIA_INT_H
#define CO_TRACK_WANDB_MEDIA_INT_H

#include "wandb/wandb.h"

/* A line that is no scalar. `dir` is the run folder. One that has nothing for wandb is passed over. */
co_err wandb_take_media(co_wandb *run, const char *dir, const json_t *line, int64_t step, const char *name,
                        double t);

#endif
