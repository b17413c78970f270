/* run_int.h -- a run under way: what all of the supervisor's files read, and ranks and savers inherit through
 * fork. Seen by this room only. */
#ifndef CO_TRAIN_RUN_INT_H
#define CO_TRAIN_RUN_INT_H

#include "train/plan_int.h"
#include "train/regions_int.h"

struct run {
    co_plan *plan;
    struct regions *regions;
    const co_train_hooks *hooks;
    const co_train_hosts *hosts; /* NULL: this host is alone */
    co_train_summary *out;       /* each file fills in the fields that it knows */
    int bell;                    /* eventfd: a rank has something for the supervisor */
    uint64_t began_ns;
};

void run_notice(const struct run *run, const char *text); /* to the hook, if there is one */
int64_t steps_done(const struct run *run);                /* of the state, when the ranks are gone */
/* In the child: a rank from its beginning to its end. The exit status. */
int rank_main(const struct run *run, int slot, uint32_t inc);

#endif
