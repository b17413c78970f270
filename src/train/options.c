/* options.c -- the core keys: one row each, from which parsing, --help, docs/keys.md and the run record come. */
#include "train/train.h"

#include <stddef.h>

#define AT(field) offsetof(co_train_cfg, field)

static const co_option top[] = {
    {"seed", CO_OPT_INT, AT(seed), "0", "everything random is a function of it", .min = 0,
     .max = 9007199254740991.0},
    {"task_name", CO_OPT_STR, AT(task_name), "train", "run folders are logs/<task_name>/runs/<date_time>",
     .may_change = true},
    {"ckpt_path", CO_OPT_STR, AT(ckpt_path), "null",
     "checkpoint to continue from: a folder, or auto (newest good one of run.dir or of the newest unfinished "
     "run)",
     .alias = "trainer.resume_from_checkpoint", .may_change = true},
    {"test", CO_OPT_BOOL, AT(test), "true", "evaluate the test split at the end", .may_change = true},
    {"console", CO_OPT_ENUM, AT(console), "auto", "progress: a bar on a terminal, lines elsewhere",
     .choices = "auto|plain|bar|quiet", .may_change = true},
    {"log_every", CO_OPT_INT, AT(log_every), "10", "record the training loss every n steps", .min = 1,
     .max = 1e9, .alias = "trainer.log_every_n_steps", .may_change = true},
    {0}};

static const co_option run[] = {{"dir", CO_OPT_STR, AT(run_dir), "null",
                                 "run folder; null: logs/<task_name>/runs/<date_time>",
                                 .alias = "trainer.default_root_dir hydra.run.dir", .may_change = true},
                                {0}};

static const co_option data[] = {
    {"batch_size", CO_OPT_INT, AT(batch_size), "64",
     "the global batch: samples per step, whatever the number of ranks", .min = 1, .max = 1048576,
     .alias = "datamodule.batch_size"},
    {"batch_size_per_rank", CO_OPT_INT, AT(batch_size_per_rank), "0",
     "0, or samples per rank: multiplied by the ranks into data.batch_size", .min = 0, .max = 1048576},
    {"workers", CO_OPT_INT, AT(workers), "0", "loader threads per rank; 0: the rank loads by itself",
     .min = 0, .max = 64, .alias = "data.num_workers datamodule.num_workers", .may_change = true},
    {"eval_slice", CO_OPT_INT, AT(eval_slice), "32", "samples evaluated together", .min = 1, .max = 4096},
    {0}};

static const co_option trainer[] = {
    {"devices", CO_OPT_STR, AT(devices), "auto", "ranks on this host; auto: as many as CPUs may be used",
     .may_change = true},
    {"num_nodes", CO_OPT_INT, AT(num_nodes), "1", "hosts", .min = 1, .max = 1, .may_change = true},
    {"strategy", CO_OPT_ENUM, AT(strategy), "ddp",
     "how state is spread over hosts; one host holds one copy either way", .choices = "ddp|fsdp",
     .may_change = true},
    {"max_epochs", CO_OPT_INT, AT(max_epochs), "10", "passes over the training data", .min = 1, .max = 1e9,
     .may_change = true},
    {"max_steps", CO_OPT_INT, AT(max_steps), "-1", "end after so many steps in all; -1: max_epochs decides",
     .min = -1, .max = 4e9, .may_change = true},
    {"slices", CO_OPT_INT, AT(slices), "0",
     "parts of a batch, a power of two: the most ranks that can work; 0: by batch and model", .min = 0,
     .max = 256},
    {"limit_train_batches", CO_OPT_STR, AT(limit_train_batches), "1.0",
     "batches per epoch: a whole number, or a fraction with a point"},
    {"eval_every", CO_OPT_INT, AT(eval_every), "1", "evaluate the validation split every n epochs; 0: never",
     .min = 0, .max = 1e9, .alias = "trainer.check_val_every_n_epoch", .may_change = true},
    {"on_nan", CO_OPT_ENUM, AT(on_nan), "stop",
     "a step whose gradient is not finite ends the run, or is left out", .choices = "stop|skip"},
    {"clip_norm", CO_OPT_FLOAT, AT(clip_norm), "0", "clip the gradient's norm to this; 0: no clipping",
     .min = 0, .max = 1e30, .alias = "trainer.gradient_clip_val"},
    {"kernels", CO_OPT_STR, AT(kernels), "auto",
     "instruction level: auto, ref, avx2, or far (a test of memory spaces)"},
    {"stall_s", CO_OPT_FLOAT, AT(stall_s), "3", "a rank without progress for so long is replaced",
     .min = 0.05, .max = 86400, .may_change = true},
    {"pin", CO_OPT_BOOL, AT(pin), "true", "one CPU per rank while there are enough", .may_change = true},
    {0}};

static const co_option checkpoint[] = {
    {"enabled", CO_OPT_BOOL, AT(ckpt_enabled), "true", "write checkpoints", .may_change = true},
    {"every_n_steps", CO_OPT_INT, AT(ckpt_every_steps), "0",
     "save after every n-th step, exactly; 0: by epochs", .min = 0, .max = 4e9,
     .alias = "callbacks.model_checkpoint.every_n_train_steps", .may_change = true},
    {"every_n_epochs", CO_OPT_INT, AT(ckpt_every_epochs), "1",
     "save at the end of every n-th epoch, not more often than min_interval_s; 0: only at the end", .min = 0,
     .max = 1e9, .may_change = true},
    {"min_interval_s", CO_OPT_FLOAT, AT(ckpt_min_interval_s), "10",
     "least time between two epoch checkpoints", .min = 0, .max = 1e9, .may_change = true},
    {"keep", CO_OPT_INT, AT(ckpt_keep), "2", "generations kept", .min = 2, .max = 1e6,
     .alias = "callbacks.model_checkpoint.save_top_k", .may_change = true},
    {0}};

static const co_option fault[] = {
    {"phase", CO_OPT_ENUM, AT(fault_phase), "none",
     "rehearsal: when ranks are killed (or, with stopped, SIGSTOPped)",
     .choices = "none|random|loading|forward|backward|sum|apply|evaluation|checkpoint|stopped",
     .may_change = true},
    {"kills", CO_OPT_INT, AT(fault_kills), "0", "rehearsal: how many kills", .min = 0, .max = 1e6,
     .may_change = true},
    {"mean_ms", CO_OPT_FLOAT, AT(fault_mean_ms), "20", "rehearsal: mean time between two", .min = 0.01,
     .max = 1e9, .may_change = true},
    {"seed", CO_OPT_INT, AT(fault_seed), "1", "rehearsal: which ranks, when", .min = 0, .max = 1e15,
     .may_change = true},
    {0}};

const co_train_table co_train_tables[] = {{"", top},
                                          {"run.", run},
                                          {"data.", data},
                                          {"trainer.", trainer},
                                          {"callbacks.model_checkpoint.", checkpoint},
                                          {"fault.", fault},
                                          {0}};
