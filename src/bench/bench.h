/* bench.h -- `cohort bench NAME`: the measurements; prints one JSON object a line on standard output. */
#ifndef CO_BENCH_BENCH_H
#define CO_BENCH_BENCH_H

#include "base/err.h"

struct co_plan;

/* How a bench gets the plan of a training: the command line belongs to the caller. */
typedef struct co_bench_planner {
    /* The plan of `cohort train WORDS`; words end with NULL and live as long as the plan. *held is for close. */
    co_err (*open)(struct co_plan **plan, void **held, const char *const *words);
    void (*close)(void *held);
} co_bench_planner;

/* argv[0] is "bench", argv[1] the bench's name. Returns the exit status. */
int co_bench_run(int argc, char **argv, const co_bench_planner *planner);

#endif
