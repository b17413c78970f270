/* hooks.h -- what a training tells while it runs: results of steps and evaluations, recoveries,
 * checkpoints. A part of train.h. */
#ifndef CO_TRAIN_HOOKS_H
#define CO_TRAIN_HOOKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/data.h"
#include "roster/roster.h"

typedef struct co_step_result {
    int64_t step; /* 1 for the first */
    int64_t epoch;
    double loss, metric, norm, lr;
    double top5;        /* CLASSIFY: share whose class is among the five likeliest */
    double data_wait;   /* share of the step that the ranks spent waiting for data, 0 to 1 */
    co_fill_times fill; /* time spent loading since the start, summed over all ranks and their threads */
    int64_t samples;
    int64_t counted; /* samples or tokens that loss and metric are means of */
    bool skipped;
    uint64_t t_ns;
} co_step_result;

/* The best value so far of a metric of the validation. */
typedef struct co_best {
    const char *name; /* "val/acc"; NULL: there is none */
    double value;
} co_best;
enum { CO_BESTS = 2 };

typedef struct co_eval_result {
    int64_t step, epoch;
    int64_t state_step; /* of the weights: `step`, but for a test of the best ones */
    co_split split;
    double loss, metric;
    double top5; /* CLASSIFY */
    int64_t count;
    uint64_t t_ns;       /* when it was done */
    int64_t bad;         /* samples that could not be read; they do not count */
    char bad_names[600]; /* the first few of those, each "file: reason" */
    /* After a validation: of callbacks.model_checkpoint's monitor, and of val/acc (val/mae) if that is
     * another. */
    co_best best[CO_BESTS];
    /* PAIRS: see translate.h. Lives until the hook returns. NULL: nothing was translated. */
    const struct co_translations *translations;
    uint32_t unit; /* for co_plan_val_choice */
} co_eval_result;

/* How the elements of a tensor are spread: count[i] of them lie between edge[i] and edge[i + 1]. */
enum { CO_BUCKETS = 64 };
typedef struct co_histogram {
    const char *name;
    int64_t num, not_finite; /* num: those that are finite; only they count below */
    double least, most, sum, squares;
    double edge[CO_BUCKETS + 1];
    int64_t count[CO_BUCKETS];
} co_histogram;

typedef struct co_recovery {
    int slot, pid;
    uint32_t inc;
    int64_t step;
    const char *how;   /* "killed by SIGKILL (9)", "made no progress for 3.1 s (state T) and was replaced" */
    const char *doing; /* "applying (unit 12, item 3)" */
} co_recovery;

/* Where the time of a rank went since the run began, and what it does now. */
typedef struct co_rank_times {
    int pid;                                             /* 0: it is being replaced */
    uint64_t input_ns, compute_ns, exchange_ns, wait_ns; /* exchange: for other hosts; wait: for other ranks */
    uint64_t beat;                                       /* changes with every piece of work */
    bool waits;                                          /* for other ranks, hosts, or a checkpoint */
    const char *doing;                                   /* "computing" */
} co_rank_times;

typedef struct co_train_hooks {
    void *ctx;
    void (*started)(void *ctx, double ms); /* ranks are running */
    void (*step)(void *ctx, const co_step_result *r);
    void (*eval)(void *ctx, const co_eval_result *r);
    /* Every spec.gradients_every steps, after `step`, for each parameter: its mean gradient before clipping. */
    void (*gradients)(void *ctx, int64_t step, const co_histogram *h);
    /* About 20 times a second while a split is evaluated: `done` of `of` items. May be NULL, as all of
     * these. */
    void (*evaluating)(void *ctx, co_split split, int64_t done, int64_t of);
    void (*saved)(void *ctx, int64_t step, const char *path, const char *failure); /* failure NULL: saved */
    void (*recovery)(void *ctx, const co_recovery *r);
    void (*notice)(void *ctx, const char *text);
    /* Before a checkpoint is begun: what the hooks were told so far goes to the record. `publish` is called
     * where the checkpoint is written (most often in a child process), right before it becomes visible. An
     * error from either means that the checkpoint is not made. So a checkpoint is never ahead of the
     * record. */
    co_err (*record)(void *ctx);
    co_err (*publish)(void *ctx, int64_t view); /* of the hosts, when the checkpoint was begun */
    int publish_fd; /* a descriptor that publish uses: it stays open in that process; 0 or -1: none */
    /* What the record needs again when the run continues from this state: a new object, or NULL. The manifest
     * keeps it; the continued run's plan has it as facts.remembered. */
    json_t *(*remember)(void *ctx);
    /* Several hosts: a new view. `adopt`: this host is the one that writes from now on, and had no place
     * for it: opens one (co_plan_place). */
    void (*view)(void *ctx, const co_roster_view *view);
    void (*talk)(void *ctx, const char *text); /* a line of the roster, which all hosts hear; NULL: see notice */
    co_err (*adopt)(void *ctx);
    /* The others go on without this host, or are out of reach. True: it will join them again, so what it
     * has need not be saved. May take a while. */
    bool (*comes_back)(void *ctx);
    /* About 20 times a second. An error ends the run at once and nothing more is saved: the folder is not
     * ours. */
    co_err (*turn)(void *ctx);
    /* Is the run to be saved and stopped? Called as often as `turn`, until it returns true. Unlike a signal,
     * it never counts as a second request, which would leave without saving. */
    bool (*wants_stop)(void *ctx);
    /* About 10 times a second: the ranks of this host. */
    void (*ranks)(void *ctx, const co_rank_times *ranks, int n);
} co_train_hooks;

#endif
