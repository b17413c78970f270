/* options.c -- the core keys: one row each, from which parsing, --help, docs/keys.md and the run record
 * come. */
#include "train/plan_int.h"

#include <stddef.h>

#include "comm/deal.h"

#define AT(field) offsetof(co_train_cfg, field)

static const co_option top[] = {
    {"seed", CO_OPT_INT, AT(seed), "0", "everything random is a function of it", .min = 0,
     .max = 9007199254740991.0},
    {"task_name", CO_OPT_STR, AT(task_name), "train", "run folders are logs/<task_name>/runs/<date_time>",
     .may_change = true, .needed = true, .of_host = true},
    {"ckpt_path", CO_OPT_STR, AT(ckpt_path), "null",
     "checkpoint to continue from: a folder, or auto (newest good one of run.dir or of the newest unfinished "
     "run)",
     .alias = "trainer.resume_from_checkpoint", .may_change = true, .of_host = true},
    {"weights", CO_OPT_STR, AT(weights), "null",
     "first weights: a safetensors file or a file of torch.save (.pth, .pt, .ckpt) with the model's names "
     "(torchvision's for resnets), or a checkpoint",
     .of_host = true},
    {"weights_skip", CO_OPT_STR, AT(weights_skip), "null",
     "tensors to leave out of `weights`, by pattern (\"fc.*\" for other classes); they start as usual"},
    {"test", CO_OPT_BOOL, AT(test), "true", "evaluate the test split at the end", .may_change = true},
    {"test_ckpt", CO_OPT_ENUM, AT(test_ckpt), "best",
     "weights for that test: the best by callbacks.model_checkpoint.monitor (the last if there is no "
     "checkpoint of it), or "
     "the last",
     .choices = "best|last", .may_change = true},
    {"console", CO_OPT_ENUM, AT(console), "auto", "progress: a bar on a terminal, lines elsewhere",
     .choices = "auto|plain|bar|quiet|imagenet", .may_change = true, .of_host = true},
    {"log_every", CO_OPT_INT, AT(log_every), "10", "record the training loss every n steps", .min = 1,
     .max = 1e9, .alias = "trainer.log_every_n_steps", .may_change = true, .of_host = true},
    {0}};

static const co_option run[] = {
    {"dir", CO_OPT_STR, AT(run_dir), "null", "run folder; null: logs/<task_name>/runs/<date_time>",
     .alias = "trainer.default_root_dir hydra.run.dir", .may_change = true, .of_host = true},
    {"book", CO_OPT_BOOL, AT(book), "true",
     "write the log book: book.md, book.html and plots/ in the run folder", .may_change = true, .of_host = true},
    {0}};

static const co_option data[] = {
    {"batch_size", CO_OPT_INT, AT(batch_size), "64",
     "the global batch: samples per step, whatever the number of ranks", .min = 1, .max = 1048576,
     .alias = "datamodule.batch_size"},
    {"batch_size_per_rank", CO_OPT_INT, AT(batch_size_per_rank), "0",
     "0, or samples per rank: multiplied by the ranks into data.batch_size", .min = 0, .max = 1048576},
    {"eval_batch_size", CO_OPT_INT, AT(eval_batch_size), "0",
     "samples that count as one batch in validation and test (trainer.limit_val_batches, progress); 0: the "
     "global "
     "batch. Loss, metrics and memory do not depend on it",
     .min = 0, .max = 1048576,
     .alias = "data.val_batch_size datamodule.eval_batch_size datamodule.val_batch_size"},
    {"workers", CO_OPT_INT, AT(workers), "0", "loader threads per rank; 0: the rank loads by itself", .min = 0,
     .max = 64, .alias = "data.num_workers datamodule.num_workers", .may_change = true, .of_host = true},
    {"eval_slice", CO_OPT_INT, AT(eval_slice), "32", "samples that one rank evaluates together", .min = 1,
     .max = 4096},
    {0}};

static const co_option model[] = {
    {"pretrained", CO_OPT_STR, AT(pretrained), "null",
     "first weights: a file, as `weights` takes it, or true: those that timm and "
     "torchvision publish, downloaded once; a head (the model's last layer) of "
     "another size starts anew, and the first screen says so",
     .alias = "model.net.pretrained", .of_host = true},
    {0}};

static const co_option trainer[] = {
    {"devices", CO_OPT_STR, AT(devices), "auto", "ranks on this host; auto: as many as CPUs may be used",
     .may_change = true, .needed = true, .check = check_devices, .of_host = true},
    {"threads", CO_OPT_STR, AT(threads), "auto",
     "threads of each rank; auto: the usable CPUs divided by the ranks, so that no CPU is idle when a batch "
     "has "
     "fewer slices than the host has CPUs. The results are the same for any number",
     .may_change = true, .needed = true, .check = check_threads, .of_host = true},
    {"num_nodes", CO_OPT_INT, AT(num_nodes), "1",
     "hosts, as --nnodes=N; flags or the environment say where they meet", .min = 1, .max = CO_MAX_MEMBERS,
     .may_change = true, .of_host = true},
    {"link", CO_OPT_ENUM, AT(link), "auto",
     "what carries the messages between hosts: tcp, or the MPI that drives the cluster's network. auto: mpi "
     "under "
     "mpirun or srun --mpi where its library loads, else tcp. The results are the same; only with tcp a run "
     "goes on "
     "when a host is lost",
     .choices = "auto|tcp|mpi", .may_change = true},
    {"strategy", CO_OPT_ENUM, AT(strategy), "ddp",
     "how state is spread over hosts; one host holds one copy either way", .choices = "ddp|fsdp",
     .may_change = true},
    {"max_epochs", CO_OPT_INT, AT(max_epochs), "10",
     "passes over the training data; -1: no limit. If only max_steps is given, it is -1", .min = -1,
     .max = 1e9, .may_change = true, .check = check_limit},
    {"max_steps", CO_OPT_INT, AT(max_steps), "-1",
     "steps of the whole run; with max_epochs too, whichever comes first; -1: no limit", .min = -1,
     .max = 4e9, .may_change = true, .check = check_limit},
    {"slices", CO_OPT_INT, AT(slices), "0",
     "parts of a batch, a power of two, and the most ranks that can work; 0: by batch and model", .min = 0,
     .max = 256, .check = check_slices},
    {"limit_train_batches", CO_OPT_STR, AT(limit_train_batches), "1.0",
     "batches per epoch: a whole number, or a fraction with a point", .needed = true,
     .check = check_train_batches},
    {"eval_every", CO_OPT_INT, AT(eval_every), "1",
     "evaluate the validation split every n epochs; 0: never; -1: by val_check_interval over the whole run",
     .min = -1, .max = 1e9, .alias = "trainer.check_val_every_n_epoch"},
    {"val_check_interval", CO_OPT_STR, AT(val_check_interval), "1.0",
     "validate every n steps (500) or after each fraction of an epoch (0.25), in the epochs that "
     "trainer.eval_every chooses",
     .check = check_interval},
    {"on_nan", CO_OPT_ENUM, AT(on_nan), "stop",
     "what a step does whose gradient is not finite: end the run, or be skipped", .choices = "stop|skip"},
    {"clip_norm", CO_OPT_FLOAT, AT(clip_norm), "0", "clip the gradient's norm to this; 0: no clipping",
     .min = 0, .max = 1e30, .alias = "trainer.gradient_clip_val"},
    {"clip_value", CO_OPT_FLOAT, AT(clip_value), "0",
     "clip every element of the gradient to plus or minus this; 0: no clipping", .min = 0, .max = 1e30},
    {"gradient_clip_algorithm", CO_OPT_ENUM, AT(clip_how), "norm",
     "what trainer.gradient_clip_val (clip_norm) clips", .choices = "norm|value"},
    {"accumulate", CO_OPT_INT, AT(accumulate), "1",
     "not needed: data.batch_size is the whole batch of a step, and its slices share the memory of one",
     .min = 1, .max = 1e6, .alias = "trainer.accumulate_grad_batches"},
    {"min_epochs", CO_OPT_INT, AT(min_epochs), "0",
     "early stopping and max_time do not end the run before this many epochs", .min = 0, .max = 1e9,
     .may_change = true},
    {"min_steps", CO_OPT_INT, AT(min_steps), "0",
     "early stopping and max_time do not end the run before this many steps", .min = 0, .max = 4e9,
     .may_change = true},
    {"max_time", CO_OPT_STR, AT(max_time), "null",
     "end the run, saved, after this long: 90s, 15m, 2h, 1d or DD:HH:MM:SS", .may_change = true,
     .check = check_time},
    {"spot_url", CO_OPT_STR, AT(spot_url), "null",
     "a cloud's address that answers with 200 when this machine is about to be taken away; asked every 5 s, "
     "and then "
     "the run ends, saved, with status 75",
     .may_change = true, .of_host = true},
    {"limit_val_batches", CO_OPT_STR, AT(limit_val_batches), "1.0",
     "validate on this many batches only: a whole number (0: none), or a fraction with a point",
     .needed = true, .check = check_eval_batches},
    {"limit_test_batches", CO_OPT_STR, AT(limit_test_batches), "1.0",
     "test on this many batches only: a whole number (0: none), or a fraction with a point", .needed = true,
     .check = check_eval_batches},
    {"overfit_batches", CO_OPT_INT, AT(overfit_batches), "0",
     "n: train on the first n batches only, again and again; a model that cannot learn them is broken",
     .min = 0, .max = 1e9},
    {"verify_every", CO_OPT_INT, AT(verify_every), "100",
     "several hosts: every n steps, and when a checkpoint is due, they compare the hashes of their weights, "
     "and one "
     "slice is computed by two or three of them; 0: never",
     .min = 0, .max = 1e9, .may_change = true},
    {"overlap", CO_OPT_INT, AT(overlap), "32",
     "several hosts: at most so many slices of a rank go backward together, so that gradients travel while "
     "others are "
     "computed; a rank begins with two and takes more while it has to wait for the wire; 0: none",
     .min = 0, .max = 256, .may_change = true, .of_host = true},
    {"slices_at_once", CO_OPT_BOOL, AT(slices_at_once), "true",
     "a rank with two to four threads, and at least as many slices, computes other slices with each thread; "
     "false: all its threads share one slice after the other, which is slower and takes less memory",
     .may_change = true, .of_host = true},
    {"fast_dev_run", CO_OPT_BOOL, AT(fast_dev_run), "false",
     "one batch to train, validate and test on, no checkpoints: does it run at all?"},
    {"profiler", CO_OPT_ENUM, AT(profiler), "none", "where the time goes, by operator, at the end",
     .choices = "none|simple", .may_change = true, .of_host = true},
    {"spike", CO_OPT_FLOAT, AT(spike), "6",
     "report a loss this many standard deviations above its recent mean; 0: never", .min = 0, .max = 1e6,
     .may_change = true, .of_host = true},
    {"system_every", CO_OPT_FLOAT, AT(system_every),
     "2", "seconds between two records of what the run takes of its machines (system/...), more in a long run; 0: none",
     .min = 0, .max = 86400, .may_change = true, .of_host = true},
    {"kernels", CO_OPT_STR, AT(kernels),
     "auto", "instruction level: auto (the best of this CPU), avx512, avx2, fma128, ref (plain C), or far (for tests)",
     .needed = true, .check = check_kernels, .hashed = co_kernels_plain, .of_host = true},
    {"stall_s", CO_OPT_FLOAT, AT(stall_s), "3", "seconds without progress after which a rank is replaced",
     .min = 0.05, .max = 86400, .may_change = true, .of_host = true},
    {"pin", CO_OPT_BOOL, AT(pin), "true", "pin each rank to a CPU of its own, if there are enough",
     .may_change = true, .of_host = true},
    {0}};

static const co_option optim[] = {
    {"no_decay", CO_OPT_STR, AT(no_decay), "none",
     "parameters without weight decay: none, norm_bias (biases and norms), or patterns (\"*.bias,bn?.*\")",
     .needed = true},
    {"lr_groups", CO_OPT_STR, AT(lr_groups), "null",
     "the rate of some parameters, by pattern and factor: \"fc.*:10,layer1.*:0.1\""},
    {"freeze", CO_OPT_STR, AT(freeze), "null", "parameters that are not trained, by pattern: \"conv1.*,bn1.*\""},
    {"layer_decay", CO_OPT_FLOAT, AT(layer_decay), "1",
     "the learning rate of each block is this times the rate of the next; the last block has the full rate",
     .min = 0.01, .max = 1},
    {"ema", CO_OPT_FLOAT, AT(ema), "0",
     "decay of a running average of the weights, which is evaluated and saved beside them; 0: none", .min = 0,
     .max = 0.9999999},
    {0}};

static const co_option schedule_core[] = {
    {"warmup_steps", CO_OPT_INT, AT(warmup_steps), "0", "steps of warm-up before the schedule begins",
     .min = 0, .max = 4e9},
    {"warmup_epochs", CO_OPT_INT, AT(warmup_epochs), "0", "the same, in epochs", .min = 0, .max = 1e6},
    {"warmup_start", CO_OPT_FLOAT, AT(warmup_start), "0.01", "the first step's share of the rate", .min = 0,
     .max = 1},
    {0}};

static const co_option loss[] = {{"label_smoothing", CO_OPT_FLOAT, AT(label_smoothing), "0",
                                  "share of the target spread over all classes", .min = 0, .max = 0.999,
                                  .alias = "model.label_smoothing"},
                                 {0}};

static const co_option tune[] = {
    {"lr", CO_OPT_BOOL, AT(tune_lr), "false",
     "search for a learning rate first, show the curve, and train with that rate", .may_change = true,
     .of_host = true},
    {"lr_min", CO_OPT_FLOAT, AT(tune_min), "1e-6", "where the search begins", .min = 1e-12, .max = 10,
     .may_change = true, .of_host = true},
    {"lr_max", CO_OPT_FLOAT, AT(tune_max), "1", "and ends", .min = 1e-12, .max = 1e4, .may_change = true,
     .of_host = true},
    {"steps", CO_OPT_INT, AT(tune_steps), "100", "steps of the search", .min = 10, .max = 1e5,
     .may_change = true, .of_host = true},
    {0}};

static const co_option early[] = {
    {"patience", CO_OPT_INT, AT(early_patience), "0",
     "end after this many evaluations in a row without an improvement; 0: never", .min = 0, .max = 1e9},
    {"monitor", CO_OPT_STR, AT(early_monitor), "val/loss",
     "what has to improve: val/loss, val/acc, val/acc5, val/mae or val/rmse", .needed = true,
     .check = check_monitor},
    {"mode", CO_OPT_ENUM, AT(early_mode), "auto", "auto: max for accuracies, min for the rest",
     .choices = "auto|min|max"},
    {"min_delta", CO_OPT_FLOAT, AT(early_delta), "0", "less than this is no improvement", .min = 0, .max = 1e30},
    {"stopping_threshold", CO_OPT_STR, AT(early_reach), "null",
     "end when the monitored value reaches this (good enough)", .check = check_threshold},
    {"divergence_threshold", CO_OPT_STR, AT(early_diverge), "null",
     "end when the monitored value gets as bad as this (hopeless)", .check = check_threshold},
    {0}};

static const co_option checkpoint[] = {
    {"enabled", CO_OPT_BOOL, AT(ckpt_enabled), "true", "write checkpoints", .may_change = true},
    {"every_n_steps", CO_OPT_INT, AT(ckpt_every_steps), "0", "save after every n-th step, exactly; 0: by epochs",
     .min = 0, .max = 4e9, .alias = "callbacks.model_checkpoint.every_n_train_steps", .may_change = true},
    {"every_n_epochs", CO_OPT_INT, AT(ckpt_every_epochs), "1",
     "save at the end of every n-th epoch, not more often than min_interval_s; 0: only at the end", .min = 0,
     .max = 1e9, .may_change = true},
    {"min_interval_s", CO_OPT_FLOAT, AT(ckpt_min_interval_s), "10",
     "at least this many seconds between two epoch checkpoints", .min = 0, .max = 1e9, .may_change = true,
     .of_host = true},
    {"stall_s", CO_OPT_FLOAT, AT(ckpt_stall_s), "600",
     "seconds without progress after which a save, or reading the best one to test it, is given up",
     .min = 0.05, .max = 1e6, .may_change = true, .of_host = true},
    {"keep", CO_OPT_INT, AT(ckpt_keep), "2", "how many of the newest checkpoints are kept, besides the best",
     .min = 2, .max = 1e6, .may_change = true, .of_host = true},
    {"dirpath", CO_OPT_STR, AT(ckpt_dir), "null", "where they go; null: checkpoints/ in the run folder",
     .may_change = true, .of_host = true},
    {"filename", CO_OPT_STR, AT(ckpt_filename), "null",
     "their names, as Lightning's: \"epoch_{epoch:03d}\", \"{step}-{val/acc:.2f}\"; null: epoch_009, "
     "step_00000123",
     .may_change = true, .of_host = true},
    {"monitor", CO_OPT_STR, AT(ckpt_monitor), "null",
     "what decides which one is best: val/loss, val/acc, val/acc5, val/mae, val/rmse; null: val/acc, val/mae "
     "or,"
     " of ratings, val/rmse",
     .may_change = true, .check = check_monitor},
    {"mode", CO_OPT_ENUM, AT(ckpt_mode), "auto", "auto: max for accuracies, min for the rest",
     .choices = "auto|min|max", .may_change = true},
    {"save_top_k", CO_OPT_INT, AT(ckpt_top), "1",
     "how many of the best are kept, besides the newest; a new best is always saved; -1: all, 0: none",
     .min = -1, .max = 1e6, .may_change = true},
    {"save_last", CO_OPT_BOOL, AT(ckpt_last), "true",
     "a link `last` to the newest: always made, it is how runs continue", .may_change = true, .of_host = true},
    {0}};

static const co_option translations[] = {
    {"every_n_val", CO_OPT_INT, AT(translate_every), "1",
     "pairs of sentences: translate after every n-th validation, and after that of the last planned step; "
     "0: never",
     .min = 0, .max = 1e9, .may_change = true},
    {"sentences", CO_OPT_INT, AT(translate_val), "32",
     "how many sentences of the validation split are translated then, greedily, for BLEU, cer, wer and three "
     "samples; -1: all. BLEU of fewer than 200 is a rough figure",
     .min = -1, .max = 4e9, .may_change = true},
    {"test_sentences", CO_OPT_INT, AT(translate_test), "-1",
     "how many sentences of the test split are translated at the end; -1: all, 0: none", .min = -1,
     .max = 4e9, .may_change = true},
    {0}};

static const co_option fault[] = {
    {"phase", CO_OPT_ENUM, AT(fault_phase), "none",
     "rehearsal: when ranks are killed (or, with stopped, SIGSTOPped)",
     .choices = "none|random|loading|forward|backward|sum|apply|evaluation|checkpoint|stopped",
     .may_change = true, .of_host = true},
    {"kills", CO_OPT_INT, AT(fault_kills), "0", "rehearsal: how many kills", .min = 0, .max = 1e6,
     .may_change = true, .of_host = true},
    {"mean_ms", CO_OPT_FLOAT, AT(fault_mean_ms), "20", "rehearsal: mean time between two", .min = 0.01,
     .max = 1e9, .may_change = true, .of_host = true},
    {"seed", CO_OPT_INT, AT(fault_seed), "1", "rehearsal: which ranks, when", .min = 0, .max = 1e15,
     .may_change = true, .of_host = true},
    {"host_kill", CO_OPT_INT, AT(fault_host_kill), "0",
     "rehearsal: this host is killed (SIGKILL) after this step; 0: never", .min = 0, .max = 4e9,
     .may_change = true, .of_host = true},
    {"host_cut", CO_OPT_INT, AT(fault_host_cut), "0",
     "rehearsal: after this step the other hosts hear nothing of this one for fault.host_cut_s seconds; its "
     "supervisor and its carrier are stopped for that long. 0: never",
     .min = 0, .max = 4e9, .may_change = true, .of_host = true},
    {"host_cut_s", CO_OPT_FLOAT, AT(fault_host_cut_s), "5",
     "rehearsal: how long fault.host_cut lasts; a host that is silent for 3 s counts as lost", .min = 0.01,
     .max = 86400, .may_change = true, .of_host = true},
    {"host_slow", CO_OPT_FLOAT, AT(fault_host_slow), "1",
     "rehearsal: the ranks of this host take this many times as long for each slice", .min = 1, .max = 1000,
     .may_change = true, .of_host = true},
    {"host_join_s", CO_OPT_FLOAT, AT(fault_host_join_s), "0",
     "rehearsal: this host waits so many seconds before it looks for the others", .min = 0, .max = 86400,
     .may_change = true, .of_host = true},
    {0}};

const co_train_table co_train_tables[] = {{"", top},
                                          {"run.", run},
                                          {"data.", data},
                                          {"model.", model},
                                          {"trainer.", trainer},
                                          {"optim.", optim},
                                          {"schedule.", schedule_core},
                                          {"loss.", loss},
                                          {"tune.", tune},
                                          {"callbacks.model_checkpoint.", checkpoint},
                                          {"callbacks.early_stopping.", early},
                                          {"callbacks.translations.", translations},
                                          {"fault.", fault},
                                          {0}};
