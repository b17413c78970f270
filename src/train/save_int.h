/* save_int.h -- a checkpoint of one state: its name, its bytes, what the manifest says. Seen by this room
 * only. */
#ifndef CO_TRAIN_SAVE_INT_H
#define CO_TRAIN_SAVE_INT_H

#include "train/plan_int.h"
#include "train/regions_int.h"
#include "train/run_int.h"
#include "train/watch_int.h"

/* The state as it was before unit `unit`, while later steps are applied. unit = 0: as it is now. */
typedef struct snapshot {
    const co_plan *plan;
    const struct regions *regions;
    uint32_t unit;
    const co_train_hooks *hooks; /* NULL: nobody is asked before it becomes visible */
} snapshot;
co_err snapshot_read(void *snapshot, int array, size_t offset, size_t count, float *dst);
void snapshot_read_through(void *snapshot); /* all that is needed has been read */
/* Everything is written: may it become visible? Not if the hosts are no longer those of `view`. */
co_err snapshot_ready(void *snapshot, int64_t view);

/* What is saved: the state before unit `unit` (0: as it is now). */
typedef struct saved_state {
    uint32_t unit;
    int64_t step, applied;
    watch seen[2];   /* before and after the evaluation of that state */
    json_t *results; /* the last results up to that state, and what the record remembers; NULL: nothing */
} saved_state;
co_err save_state(const struct run *run, const saved_state *what);

enum { SAVE_NAME = 160 };
/* name.c: epoch_009, step_00000123, or as callbacks.model_checkpoint.filename says. `now`: after the state's
 * evaluation. */
void save_name(const co_plan *plan, int64_t step, const watch *now, char name[SAVE_NAME]);
co_err check_save_name(co_plan *plan);

#endif
