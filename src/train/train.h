/* train.h -- from a checked configuration to trained weights.
 *
 *     config -> data check -> graph -> plan -> arena -> ranks -> loop (step, evaluate, checkpoint) -> summary
 *
 * co_plan_new does everything that can be refused: it opens the data, builds the graphs, fixes slices,
 * schedule and memory, and starts nothing. co_train_run then makes the arena and the ranks and runs to the
 * end, a stop or a failure. What happens on the way is told through hooks, all called in the supervisor.
 *
 *     co_plan *plan;
 *     CO_TRY(co_plan_new(&plan, &spec));                 // CO_EINPUT: exit 2, nothing was started
 *     co_err err = co_train_run(plan, &hooks, &summary);
 *     co_plan_free(plan);
 *
 * Its parts: options.h, hooks.h. More doors, for what is done with trained weights: predict.h, translate.h,
 * recommend.h; and measure.h.
 */
#ifndef CO_TRAIN_TRAIN_H
#define CO_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mistakes.h"
#include "ckpt/ckpt.h"
#include "comm/arena.h"
#include "data/data.h"
#include "fetch/fetch.h"
#include "kernel/kernel.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "roster/roster.h"
#include "train/hooks.h"
#include "train/options.h"

typedef struct co_train_spec {
    const co_train_cfg *cfg;
    const co_model_def *model;
    const void *model_cfg;
    const co_dataset_def *data;
    const void *data_cfg;
    const co_optim_def *optim;
    const void *optim_cfg;
    const co_schedule_def *schedule;
    const void *schedule_cfg;
    char config_sha256[65];
    const char *ckpt_root; /* where checkpoints go; NULL: none are written */
    const char *resume;    /* checkpoint folder to start from; NULL: from the beginning */
    const char *log_dir;   /* a file per rank; NULL: none */
    const char *run_id;    /* names the writer of checkpoints; NULL: none */
    int hosts;             /* members of the largest view; 0 or 1: this host alone */
    bool meets;            /* co_train_run_over is used, also if this host is the only member */
    size_t aside_bytes;    /* the most memory for copies aside while a checkpoint is written; 0: 16 MiB */
    int helpers;          /* processes that the caller forks beside the ranks: only their memory is planned */
    size_t helpers_bytes; /* private memory that they need beyond that of any process */
    int64_t gradients_every; /* steps between two calls of hooks.gradients; 0: never */
    int64_t val_samples; /* CLASSIFY: for so many samples of the validation co_plan_val_choice has an answer */
    co_fetch_tell *fetch_tell; /* progress of model.pretrained=true while the plan is made; may be NULL */
    void *fetch_ctx;
    /* Refuses data whose tokens or rows have other meanings than in the run that `resume` or cfg->weights is of;
     * may be NULL. It is asked before weights are compared with the model, because it knows the cause. */
    co_err (*check_data)(const struct co_train_spec *spec, const co_dataset *data);
    /* co_plan_to_look only: the data set is opened from the vocabulary in the checkpoint, without samples,
     * if both have one. */
    bool vocabulary_only;
} co_train_spec;

/* What was decided. Printable; memory to the byte. */
typedef struct co_plan co_plan;
co_err co_plan_new(co_plan **out, const co_train_spec *spec);
/* For a configuration with mistakes: adds those that only a plan finds. `sure` are the parts that have no
 * mistake; the others are not looked at, and their rows in the spec may be NULL. */
enum {
    CO_SURE_TRAINER = 1,
    CO_SURE_CALLBACKS = 2,
    CO_SURE_MODEL = 4,
    CO_SURE_DATA = 8,
    CO_SURE_OPTIM = 16,
    CO_SURE_SCHEDULE = 32,
    CO_SURE_ALL = 63
};
co_err co_plan_check(const co_train_spec *spec, unsigned sure, co_mistakes *mistakes);
void co_plan_free(co_plan *p); /* NULL is fine */
/* Sets where the run writes. The folder is made only after the plan was accepted. Both strings are
 * borrowed. */
void co_plan_place(co_plan *p, const char *ckpt_root, const char *log_dir, const char *run_id);

typedef struct co_plan_facts {
    int ranks, ranks_asked, threads, slices; /* threads: of a rank */
    int at_once;                             /* threads of a rank that have slices of their own; 0: none */
    int64_t batch, steps_per_epoch, steps, epochs, samples_per_epoch;
    double evals_per_step;    /* validations */
    bool endless;             /* neither epochs nor steps are limited: `steps` is as far as is counted */
    bool schedule_spans;      /* the schedule's rates depend on `steps` */
    int64_t start_step;       /* 0, or where the checkpoint stands */
    const json_t *remembered; /* what hooks.remember gave for that checkpoint; NULL: nothing */
    size_t params, state_elements;
    size_t arena_bytes, private_bytes; /* planned: shared memory, and what each process adds in all */
    const co_layout *layout;
    const co_dataset *data;
    const char *kernels, *metric;
    const co_arena *arena; /* its regions, named */
    double flops_per_step;
    double wire_bytes;           /* several hosts: what each sends in a step, if all have the same share */
    int share_least, share_most; /* slices of a host in the first deal, in which hosts count as equally fast */
    char lines[2048];            /* the first screen, a line per fact */
} co_plan_facts;
const co_plan_facts *co_plan_facts_of(const co_plan *p);

typedef enum { CO_STATUS_DONE, CO_STATUS_STOPPED, CO_STATUS_FAILED } co_status;

/* Where the ranks' time went, summed over the ranks of this host. */
typedef struct co_time_split {
    double input_s, compute_s, exchange_s, wait_s; /* exchange: for other hosts; wait: for other ranks */
} co_time_split;

/* The steps after the first one of this start: what speed is computed from. */
typedef struct co_timed {
    int64_t steps, samples;
    int64_t counted; /* terms of the loss: samples, or the tokens that are predicted */
    double wall_s;
    double cpu_s; /* of this host's supervisor and ranks */
} co_timed;

typedef struct co_train_summary {
    co_status status;
    int64_t steps, epochs, samples;
    double wall_s, samples_per_s;
    char weights_sha256[65];
    double loss, train_metric, val_loss, val_metric, test_loss, test_metric; /* NaN: there was none */
    double best;
    int64_t best_step;
    bool tested_best;           /* the test's figures are of the best state; if not, of the last */
    int64_t tested_step;        /* of that state */
    const char *monitor;        /* what `best` is of: "val/acc" */
    double val_top5, test_top5; /* nan where there is none */
    int64_t bad_samples;        /* how many training samples could not be read; each counts once */
    bool early;                 /* ended before its steps were done: early stopping or max_time */
    size_t peak_memory_bytes;
    int recoveries;
    double recovery_median_ms, recovery_p99_ms; /* nan if none */
    double cpu_user_s, cpu_sys_s;               /* of the supervisor and the ranks */
    double supervisor_cpu_s;                    /* its part of both */
    co_timed timed;
    co_time_split split;
    int views;                             /* several hosts: how many this host was in */
    uint64_t wire_sent, wire_got;          /* bytes of messages to and from other hosts */
    uint64_t steady_allocs, steady_faults; /* after warm-up, in the rank that had most */
    uint64_t first_step_ns;                /* when the first step was done, co_now_ns() */
    double sum_apply_ms;                   /* median cost of sum + apply of a step */
    char blame[2048];                      /* what failed, in one paragraph; "" if nothing failed */
    char saved[1024];                      /* the last good checkpoint; "" if none */
} co_train_summary;

/* Accuracy by class, of the test samples: right[c] of count[c]. After a run that was tested. */
typedef struct co_class_result {
    int64_t label;
    const char *name; /* NULL: none */
    int64_t count, right;
} co_class_result;
/* The class that was chosen for a test sample, and the right one. False: the run was not tested, or the
 * sample could not be read. */
bool co_plan_choice(const co_plan *p, uint32_t id, int64_t *chosen, int64_t *right);
/* The same for a sample of the validation, id < spec.val_samples, and only within hooks.eval. False also
 * if another host evaluated the sample. */
bool co_plan_val_choice(const co_plan *p, const co_eval_result *r, uint32_t id, int64_t *chosen,
                        int64_t *right);
/* *out is the caller's (co_free); NULL and 0 where there is nothing to tell. */
co_err co_plan_classes(const co_plan *p, co_class_result **out, int *n);

/* Several hosts: how this one meets the others. */
typedef struct co_train_hosts {
    co_roster *roster;  /* open, for a job of views; its events are taken here from now on */
    struct co_tls *tls; /* for the link; NULL: plain */
    int listener;       /* where the link of this host listens; -1: nowhere */
    int elastic_min;    /* this host may leave alone (SIGINT) while so many are left; 0: all stop together */
    int link;           /* co_link_kind: tcp or mpi, the same on all hosts */
    uint64_t run, birth;
    bool returned; /* it was cut off and came back: what fault.host_* rehearses is behind it */
    /* For tests: a bit of this host's weights flips before this step; its leaves are wrong from this step
     * on. 0: never */
    int64_t flip_at, spoil_from;
    int weigh_ms; /* for tests: between two measurements of this host's speed; 0: 10 s */
} co_train_hosts;

/* CO_OK also for a requested stop (status says which). CO_EFAIL: summary->blame says why. */
co_err co_train_run(co_plan *p, const co_train_hooks *hooks, co_train_summary *out);
/* The same with other hosts. The plan was made with spec.hosts. */
co_err co_train_run_over(co_plan *p, const co_train_hosts *hosts, const co_train_hooks *hooks,
                         co_train_summary *out);

#endif
