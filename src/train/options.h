/* options.h -- the core keys of a training: seed, data.batch_size, trainer.* ... A part of train.h. */
#ifndef CO_TRAIN_OPTIONS_H
#define CO_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

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
    bool pin, fast_dev_run, slices_at_once;
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
    /* callbacks.translations. */
    int64_t translate_every, translate_val, translate_test;
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

#endif
