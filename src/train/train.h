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
 */
#ifndef CO_TRAIN_TRAIN_H
#define CO_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mistakes.h"
#include "base/option.h"
#include "ckpt/ckpt.h"
#include "comm/arena.h"
#include "data/data.h"
#include "fetch/fetch.h"
#include "kernel/kernel.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "roster/roster.h"

typedef enum { CO_ON_NAN_STOP, CO_ON_NAN_SKIP } co_on_nan;
typedef enum { CO_TEST_BEST, CO_TEST_LAST } co_test_ckpt;
typedef enum {
    CO_FAULT_NONE,
    CO_FAULT_RANDOM,
    CO_FAULT_LOAD,
    CO_FAULT_FORWARD,
    CO_FAULT_BACKWARD,
    CO_FAULT_SUM,
    CO_FAULT_APPLY,
    CO_FAULT_EVAL,
    CO_FAULT_CHECKPOINT,
    CO_FAULT_STOPPED
} co_fault;

/* The core keys: seed, data.batch_size, trainer.* ... filled by the tables below. */
typedef struct co_train_cfg {
    int64_t seed;
    bool book;
    char *task_name, *run_dir, *ckpt_path, *weights, *weights_skip, *pretrained;
    bool test;
    int test_ckpt; /* co_test_ckpt */
    /* data. */
    int64_t batch_size, batch_size_per_rank, eval_batch_size, workers, eval_slice;
    /* trainer. */
    char *devices, *threads, *limit_train_batches, *kernels;
    char *limit_val_batches, *limit_test_batches, *max_time, *val_check_interval, *spot_url;
    int64_t num_nodes, max_epochs, max_steps, min_epochs, min_steps, slices, eval_every, accumulate,
        overfit_batches, verify_every, overlap;
    int on_nan, strategy, link /* co_link_kind */, profiler, clip_how;
    double clip_norm, clip_value, stall_s, spike, system_every;
    bool pin, fast_dev_run;
    /* optim.: on top of the optimiser's own */
    char *no_decay, *lr_groups, *freeze;
    double ema, layer_decay;
    /* schedule.: on top of the schedule's own */
    int64_t warmup_steps, warmup_epochs;
    double warmup_start;
    /* loss. */
    double label_smoothing;
    /* tune. */
    bool tune_lr;
    double tune_min, tune_max;
    int64_t tune_steps;
    /* callbacks.model_checkpoint. */
    bool ckpt_enabled, ckpt_last;
    char *ckpt_dir, *ckpt_filename, *ckpt_monitor;
    int ckpt_mode;
    int64_t ckpt_every_steps, ckpt_every_epochs, ckpt_keep, ckpt_top;
    double ckpt_min_interval_s, ckpt_stall_s;
    /* callbacks.early_stopping. */
    char *early_monitor, *early_reach, *early_diverge;
    int early_mode;
    int64_t early_patience;
    double early_delta;
    /* console */
    int console;
    int64_t log_every;
    /* fault.: rehearsal of accidents */
    int fault_phase;
    int64_t fault_kills, fault_seed;
    double fault_mean_ms;
    int64_t fault_host_kill, fault_host_cut; /* steps */
    double fault_host_cut_s, fault_host_slow, fault_host_join_s;
} co_train_cfg;

/* Tables by key prefix, ending with {0}; offsets are into co_train_cfg. */
typedef struct co_train_table {
    const char *prefix;
    const co_option *options;
} co_train_table;
extern const co_train_table co_train_tables[];

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
    co_fetch_tell *fetch_tell; /* progress of model.pretrained=true while the plan is made; may be NULL */
    void *fetch_ctx;
    /* co_plan_to_look only: the data set is opened from the vocabulary in the checkpoint, without samples, if both have
     * one. */
    bool vocabulary_only;
} co_train_spec;

/* What was decided. Printable; memory to the byte. */
typedef struct co_plan co_plan;
co_err co_plan_new(co_plan **out, const co_train_spec *spec);
/* For a configuration with mistakes: adds those that only a plan finds. `sure` are the parts that have no mistake;
 * the others are not looked at, and their rows in the spec may be NULL. */
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

/* --- while it runs -------------------------------------------------------------------------------------- */
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
    /* After a validation: of callbacks.model_checkpoint's monitor, and of val/acc (val/mae) if that is another */
    co_best best[CO_BESTS];
} co_eval_result;

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
    /* Several hosts: a new view. `adopt`: this host is the one that writes from now on, and had no place for it:
     * opens one (co_plan_place). */
    void (*view)(void *ctx, const co_roster_view *view);
    void (*talk)(void *ctx, const char *text); /* a line of the roster, which all hosts hear; NULL: see notice */
    co_err (*adopt)(void *ctx);
    /* The others go on without this host, or are out of reach. True: it will join them again, so what it has need not
     * be saved. May take a while. */
    bool (*comes_back)(void *ctx);
    /* About 20 times a second. An error ends the run at once and nothing more is saved: the folder is not
     * ours. */
    co_err (*turn)(void *ctx);
    /* About 10 times a second: the ranks of this host. */
    void (*ranks)(void *ctx, const co_rank_times *ranks, int n);
} co_train_hooks;

typedef enum { CO_STATUS_DONE, CO_STATUS_STOPPED, CO_STATUS_FAILED } co_status;

/* Where the ranks' time went, summed over the ranks of this host. */
typedef struct co_time_split {
    double input_s, compute_s, exchange_s, wait_s; /* exchange: for other hosts; wait: for other ranks */
} co_time_split;

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
    double cpu_user_s, cpu_sys_s;
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
/* The class that was chosen for a test sample, and the right one. False: the run was not tested, or the sample could
 * not be read. */
bool co_plan_choice(const co_plan *p, uint32_t id, int64_t *chosen, int64_t *right);
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
    /* For tests: a bit of this host's weights flips before this step; its leaves are wrong from this step on. 0:
     * never */
    int64_t flip_at, spoil_from;
    int weigh_ms; /* for tests: between two measurements of this host's speed; 0: 10 s */
} co_train_hosts;

/* CO_OK also for a requested stop (status says which). CO_EFAIL: summary->blame says why. */
co_err co_train_run(co_plan *p, const co_train_hooks *hooks, co_train_summary *out);
/* The same with other hosts. The plan was made with spec.hosts. */
co_err co_train_run_over(co_plan *p, const co_train_hosts *hosts, const co_train_hooks *hooks,
                         co_train_summary *out);

/* --- measured beforehand -------------------------------------------------------------------------------- */
typedef struct co_calibration {
    double slice_ms, load_ms; /* a slice's forward and backward pass, and filling it */
    double sum_apply_ms;      /* by this plan's ranks together */
    double eval_item_ms;
    double alone_ms; /* a step if this host had all slices */
    double work_ms;  /* a step with this host's share of the slices, without the wire; one host: alone_ms */
    double wire_ms;  /* what a host sends in a step, at CO_WIRE_GBITS; one host: 0 */
    double step_ms, epoch_s; /* work and wire one after the other; epoch_s with its evaluation */
} co_calibration;
enum { CO_WIRE_GBITS = 1 }; /* Gbit/s, assumed: nothing is measured between hosts before they meet */
/* A step of this host alone / (hosts * a step of all hosts), with a wire of `gbits`. One host: 1. */
double co_calibration_efficiency(const co_calibration *c, int hosts, double gbits);
/* Measures a few slices in this process; their results are thrown away. */
co_err co_plan_calibrate(co_plan *p, co_calibration *out);

typedef struct co_op_time {
    const char *name; /* "conv2d 'layer1.0.conv1'", owned by the plan */
    bool backward;
    double ms; /* per slice, the shortest of a few rounds */
} co_op_time;
/* Where a slice's time goes, call by call; *out is the caller's (co_free). */
co_err co_plan_profile(co_plan *p, co_op_time **out, int *n);

/* --- without ranks: evaluate or predict with a checkpoint's weights ------------------------------------- */
/* A plan that serves only the two functions below. It trains nothing, so batch, seed and kernels may differ
 * from the checkpoint's. */
co_err co_plan_to_look(co_plan **out, const co_train_spec *spec);
co_err co_plan_check_look(const co_train_spec *spec, unsigned sure, co_mistakes *mistakes);

/* Evaluates CO_SPLIT_VAL or CO_SPLIT_TEST. Gives the same values for a state as the run's own evaluation
 * did. */
co_err co_evaluate(co_plan *p, co_split split, co_eval_result *out, char weights_sha256[65]);

typedef struct co_prediction {
    int64_t id; /* of the sample in its split */
    co_task task;
    bool unreadable;     /* the sample could not be read; ignore the other fields */
    int64_t label;       /* CLASSIFY: the right class; negative: the data has none */
    const char *file;    /* the file it came from; NULL: it has no file of its own */
    int64_t choice;      /* CLASSIFY: the likeliest class; LM: the likeliest token after the sample's end */
    double probability;  /* of the choice */
    const char *text;    /* LM: the token's text */
    const float *values; /* [n] REGRESS: the prediction; else the logits */
    int64_t n;
} co_prediction;
/* Each sample of the split in order, the first `limit` of them (< 0: all). What *r points to lives until
 * `each` returns.
 */
co_err co_predict(co_plan *p, co_split split, int64_t limit, void (*each)(void *ctx, const co_prediction *r),
                  void *ctx);
/* The same for the samples of CO_SPLIT_TEST of another set, made for this plan by co_pictures_open. */
co_err co_predict_on(co_plan *p, co_dataset *data, int64_t limit,
                     void (*each)(void *ctx, const co_prediction *r), void *ctx);

/* --- pairs of sentences: translating -------------------------------------------------------------------- */
typedef struct co_translator co_translator;
typedef struct co_source {
    const int32_t *token; /* of the sources' vocabulary, with begin and end */
    int n;
} co_source;
typedef struct co_translation {
    const int32_t *token; /* [n] without begin and end; as text: */
    int n;
    double score; /* mean log probability of a token, the end among them */
    const char *text;
} co_translation;
/* beam: how many translations of a sentence are followed at a time; 1: greedy. At most CO_BEAM_MOST. */
enum { CO_BEAM_MOST = 32 };
co_err co_translator_open(co_translator **out, co_plan *p, int beam);
void co_translator_close(co_translator *t); /* NULL is fine */
/* What `best` points to lives until `each` returns. */
co_err co_translate(co_translator *t, const co_source *source, int n,
                    void (*each)(void *ctx, int i, const co_translation *best), void *ctx);
/* Translates samples [0, limit) of a split (< 0: all), and scores the translations against the targets. `each` may be
 * NULL. */
typedef struct co_translated {
    int64_t id;
    const char *source, *target, *predicted;
} co_translated;
typedef struct co_translation_scores {
    double bleu, cer, wer; /* BLEU: 0 to 100; error rates: shares of characters and words */
    int64_t sentences;
} co_translation_scores;
co_err co_translate_split(co_plan *p, co_split split, int64_t limit, int beam, co_translation_scores *out,
                          void (*each)(void *ctx, const co_translated *t), void *ctx);

/* --- ratings: what to recommend -------------------------------------------------------------------------- */
typedef struct co_recommended {
    uint32_t item; /* its row */
    float score;   /* the prediction */
} co_recommended;
/* The k items (or fewer, *n) that the user of this row has not rated and that have the highest predictions,
 * highest first; out[k]. With a checkpoint's weights, or after a training with the last ones. CO_EINPUT: no
 * ratings. */
co_err co_recommend(co_plan *p, uint32_t user, int k, co_recommended *out, int *n);

typedef struct co_hits {
    int k;
    int64_t users, cases;  /* a case is a held-out rating */
    double hit_rate, ndcg; /* at k, means over the cases */
} co_hits;
/* Leave one out: how often the item of a held-out rating is among the k that stand highest of it and all items
 * that the user has not rated. At most about `most` predictions are made, for users evenly spread; 0: all. */
co_err co_hit_rates(co_plan *p, co_split split, int k, int64_t most, co_hits *out);

#endif
