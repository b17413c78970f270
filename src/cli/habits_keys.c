/* habits_keys.c -- the table of keys and choices of Lightning, its Hydra template, timm and Hydra itself.
 *
 * Another name for one of our keys is an alias in the option tables. This table has the rest: keys that
 * need to be translated, keys that have no effect here, and features that do not exist yet. Values are
 * matched like file names in a shell.
 */
#include "cli/habits_int.h"

#define NO_GPU "GPUs are not in this version; the ranks are processes on CPUs: trainer.accelerator=cpu"
#define NO_SUCH_TIMM                                                                                         \
    "of timm's models there are resnet18 to resnet152 and the vision transformers "                          \
    "vit_{tiny,small,base,large}_patch16_224, vit_{small,base,large}_patch32_224 "                           \
    "(model=vit_tiny_patch16_224)"
#define WEIGHTS_IN_NAME                                                                                      \
    "what follows the dot names pretrained weights; give the part before the dot, and "                      \
    "model.pretrained=true "                                                                                 \
    "or weights=FILE.safetensors"
#define TRACKERS      "this tracker is not built yet: use logger=csv, which writes csv/metrics.csv, or logger=none"
#define OWN_SCHEDULES "the schedules here are the rows of schedule= (cohort train --help schedule)"

#define BECOMES(keys, values, to)                                                                            \
    {                                                                                                        \
        keys, values, CO_HABIT_BECOMES, to                                                                   \
    }
#define BECOMES_SAYS(keys, values, to, s)                                                                    \
    {                                                                                                        \
        keys, values, CO_HABIT_BECOMES, to, s                                                                \
    }
#define DROP(keys, values, s)                                                                                \
    {                                                                                                        \
        keys, values, CO_HABIT_DROPPED, NULL, s                                                              \
    }
#define REFUSE(keys, values, s)                                                                              \
    {                                                                                                        \
        keys, values, CO_HABIT_REFUSED, NULL, s                                                              \
    }

const co_conf_habit habit_keys[] = {
    /* the global batch replaces a batch per rank that was given earlier */
    {"data.batch_size", "*", CO_HABIT_UNSETS, "data.batch_size_per_rank"},
    {"datamodule.batch_size", "*", CO_HABIT_UNSETS, "data.batch_size_per_rank",
     "the batch of all ranks together here; per process: data.batch_size_per_rank"},

    /* trainer. */
    REFUSE("trainer", "gpu|cuda|mps|tpu|xpu", "GPUs are not in this version; trainer=cpu, or trainer=ddp"),
    BECOMES("trainer", "ddp_spawn|ddp_fork|ddp_notebook", "trainer=ddp"),
    REFUSE("trainer", "deepspeed*", "there are ddp and fsdp; checkpoints of either load in either"),
    BECOMES("trainer.max_epochs", "null", "trainer.max_epochs=-1"),
    DROP("trainer.accelerator", "cpu|auto|null", NULL),
    DROP("trainer.gpus", "0|null", NULL),
    {"trainer.accelerator trainer.gpus", NULL, CO_HABIT_REFUSED, .says = NO_GPU, .spared = true},
    BECOMES("trainer.devices", "-1", "trainer.devices=auto"),
    DROP("trainer.precision", "32|32-true|fp32|float32|null", NULL),
    {"trainer.precision", NULL, CO_HABIT_REFUSED,
     .says = "everything is computed in 32-bit floats here (trainer.precision=32)", .spared = true},
    BECOMES("trainer.strategy", "auto|ddp_*|single_device", "trainer.strategy=ddp"),
    BECOMES("trainer.strategy", "fsdp_*|fully_sharded*", "trainer.strategy=fsdp"),
    DROP("trainer.sync_batchnorm", NULL,
         "not needed: batch statistics are of a slice, the same for any number of ranks"),
    DROP("trainer.deterministic", "[Ff]alse|0", "every run is deterministic here"),
    DROP("trainer.deterministic trainer.benchmark trainer.inference_mode trainer.enable_model_summary", NULL,
         NULL),
    BECOMES("trainer.enable_progress_bar", "[Ff]alse|0", "console=plain"),
    DROP("trainer.enable_progress_bar", NULL, NULL),
    BECOMES("trainer.enable_checkpointing", NULL, "callbacks.model_checkpoint.enabled"),
    DROP("trainer.num_sanity_val_steps", NULL, "not needed: everything is checked before the first step"),
    BECOMES("trainer.check_val_every_n_epoch trainer.eval_every", "null|[Nn]one", "trainer.eval_every=-1"),
    DROP("trainer.use_distributed_sampler trainer.replace_sampler_ddp", "[Tt]rue|1", NULL),
    REFUSE("trainer.use_distributed_sampler trainer.replace_sampler_ddp", NULL,
           "each sample counts exactly once an epoch here, whoever computes it; that cannot be turned off"),
    BECOMES("trainer.logger", "[Ff]alse|0|null", "logger=none"),
    DROP("trainer.logger", NULL, "logger= chooses the trackers; events.jsonl is always written"),
    DROP("trainer.detect_anomaly", NULL, "not needed: trainer.on_nan says what a value that is not finite does"),
    BECOMES("trainer.auto_lr_find", NULL, "tune.lr"),
    DROP("trainer.plugins trainer.reload_dataloaders_every_n_epochs", "null|0|[[]]", NULL),

    /* model. */
    REFUSE("model", "vit_*.*", WEIGHTS_IN_NAME),
    REFUSE("model", "deit*|swin*|vit_huge*|vit_giant*|convnext*|efficientnet*", NO_SUCH_TIMM),
    BECOMES("model.net.model_name model.model_name model.net.arch", NULL, "model"),
    BECOMES("model.net.pretrained model.pretrained", "[Ff]alse|0", "model.pretrained=null"),
    BECOMES("model.net.pretrained model.pretrained", "True|1", "model.pretrained=true"),
    DROP("model.net.num_classes model.num_classes model.net.output_size model.net.input_size", NULL,
         "not needed: the sizes of samples and the number of classes come from the data"),
    BECOMES("model._target_", "*.MNISTLitModule", "model.name=mlp"),
    {"model.net._target_", "*.SimpleDenseNet", CO_HABIT_BECOMES, "model.layers=3",
     .says = "the mlp here has no batch norm", .also = "model.dropout=0", .loud = true},
    BECOMES_SAYS("model.net.lin1_size", NULL, "model.hidden", "one width for all hidden layers of model=mlp"),
    {"model.net.lin2_size model.net.lin3_size", NULL, CO_HABIT_DROPPED,
     .says = "not used: the mlp here has one width for all hidden layers", .loud = true,
     .unless = "model.hidden"},
    BECOMES("model.lr", NULL, "optim.lr"),
    BECOMES("model.weight_decay", NULL, "optim.weight_decay"),
    BECOMES("model.optimizer._target_", "*.SGD", "optim=sgd"),
    BECOMES("model.optimizer._target_", "*.AdamW", "optim=adamw"),
    BECOMES("model.optimizer._target_", "*.Adam", "optim=adam"),
    BECOMES("model.optimizer._target_", "*.SparseAdam", "optim=sparse_adam"),
    REFUSE("model.optimizer._target_", NULL,
           "the optimisers here are the rows of optim= (cohort train --help optim)"),
    DROP("model.optimizer._partial_ model.scheduler._partial_ model.compile compile", "[Tt]rue|[Ff]alse|1|0",
         NULL),
    BECOMES("model.optimizer.*", NULL, "optim.*"),
    BECOMES("model.scheduler._target_", "*.StepLR", "schedule=step"),
    BECOMES("model.scheduler._target_", "*.MultiStepLR", "schedule=multistep"),
    BECOMES("model.scheduler._target_", "*.ExponentialLR", "schedule=exponential"),
    BECOMES("model.scheduler._target_", "*.CosineAnnealingLR", "schedule=cosine"),
    BECOMES("model.scheduler._target_", "*.PolynomialLR", "schedule=polynomial"),
    BECOMES("model.scheduler._target_", "*.OneCycleLR", "schedule=one_cycle"),
    BECOMES("model.scheduler._target_", "*.ReduceLROnPlateau", "schedule=plateau"),
    REFUSE("model.scheduler._target_", NULL, OWN_SCHEDULES),
    BECOMES("model.scheduler.*", NULL, "schedule.*"),

    /* data. */
    BECOMES("datamodule", NULL, "data"),
    BECOMES("datamodule.*", NULL, "data.*"),
    DROP("data.pin_memory data.persistent_workers", NULL, "not needed: ranks read from memory that they share"),
    {"data.train_val_test_split", NULL, CO_HABIT_REFUSED,
     .says = "the test part is the set's own; data.val_fraction=0.1 is the part of the rest to validate on",
     .spared = true},
    BECOMES_SAYS("paths.data_dir", NULL, "data.dir", "with a set that has files"),

    /* callbacks, loggers */
    BECOMES("callbacks.model_checkpoint", "null|[Ff]alse", "callbacks.model_checkpoint.enabled=false"),
    BECOMES("callbacks.early_stopping", "null|[Ff]alse", "callbacks.early_stopping.patience=0"),
    DROP("callbacks.model_summary.* callbacks.rich_progress_bar.* callbacks.lr_monitor.* callbacks.timer.*",
         NULL, "the first screen, the progress and the learning rate are always there"),
    DROP("callbacks.model_checkpoint.auto_insert_metric_name callbacks.model_checkpoint.verbose "
         "callbacks.model_checkpoint.save_weights_only callbacks.model_checkpoint.save_on_train_epoch_end "
         "callbacks.early_stopping.verbose callbacks.early_stopping.strict "
         "callbacks.early_stopping.check_finite "
         "callbacks.early_stopping.check_on_train_epoch_end callbacks.model_checkpoint.train_time_interval",
         NULL, "means nothing here"),
    BECOMES_SAYS("logger", "*comet*|*neptune*|*aim*", "logger=csv", TRACKERS),
    BECOMES("logger.csv._target_", NULL, "logger.csv.enabled=true"), /* the template's logger/csv.yaml */
    BECOMES("logger.tensorboard._target_", NULL, "logger.tensorboard.enabled=true"),
    DROP("logger.tensorboard.save_dir", "*${paths.*|*${hydra:*", NULL), /* the run folder: the default here */
    BECOMES("logger.tensorboard.save_dir logger.tensorboard.log_dir", NULL, "logger.tensorboard.dir"),
    DROP("logger.tensorboard.log_graph logger.tensorboard.default_hp_metric logger.tensorboard.prefix "
         "logger.tensorboard.version logger.tensorboard.sub_dir logger.tensorboard.max_queue "
         "logger.tensorboard.flush_secs logger.csv.save_dir logger.csv.name logger.csv.prefix "
         "logger.csv.version logger.csv.flush_logs_every_n_steps",
         NULL, NULL),
    BECOMES("logger.wandb._target_", NULL, "logger.wandb.enabled=true"),
    DROP("logger.wandb.save_dir", "*paths.*", NULL), /* the template's: the run folder */
    DROP("logger.wandb.tags", "[[]]|null", NULL),
    DROP("logger.wandb.log_model logger.wandb.prefix logger.wandb.anonymous logger.wandb.checkpoint_name",
         NULL, "means nothing here: checkpoints stay in the run folder"),
    BECOMES("logger.mlflow._target_", NULL, "logger.mlflow.enabled=true"),
    DROP("logger.mlflow.tracking_uri", "*paths.*|file:*|/*|./*|mlruns*",
         "a folder of files is not written; `mlflow server` and logger.mlflow.tracking_uri=http://HOST:5000"),
    DROP("logger.mlflow.tags logger.mlflow.save_dir logger.mlflow.prefix logger.mlflow.artifact_location",
         NULL, "means nothing here"),
    DROP("logger.comet.* logger.neptune.* logger.aim.*", NULL, TRACKERS),

    /* the template's own and Hydra's */
    DROP("train", "[Tt]rue|1", NULL),
    REFUSE("train", NULL, "evaluating is a command of its own: cohort test ckpt_path=FOLDER"),
    BECOMES("ckpt_path", "last", "ckpt_path=auto"),
    DROP("tags", NULL, "kept in overrides.yaml of the run folder"),
    DROP("extras extras.*", NULL, NULL),
    BECOMES("paths.output_dir", NULL, "run.dir"),
    DROP("paths paths.*", NULL,
         "means nothing here: data.dir is where the data are, run.dir where the run goes"),
    DROP("optimized_metric", NULL, "the table of a sweep has all metrics"),
    REFUSE("hparams_search", NULL,
           "searches come later; -m runs every combination of given values: -m optim.lr=0.1,0.01 seed=1,2"),
    DROP("hydra.*", NULL, "Hydra's own settings mean nothing here"),
    DROP("*._target_", NULL, "the program's own parts are used"),
    DROP("*._partial_ *._recursive_ *._convert_", NULL, NULL),
    {0}};
