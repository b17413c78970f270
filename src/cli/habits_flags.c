/* habits_flags.c -- the table of other programs' flags, and of what their bare words mean.
 *
 * Rows are tried in order; the last row of a flag matches any value. The programs are main.py
 * (pytorch/examples, imagenet), train.py (its elastic version, and the transformer's; both mean the batch
 * per process), and torchrun.
 */
#include "cli/habits_int.h"

#define PER_PROCESS                                                                                          \
    "per process: a step's batch is this times the ranks; of all ranks together: data.batch_size"
#define GIVEN_BY_RUN "not needed: the run has its own exchange between ranks and between hosts"
#define RANK_FILES   "not needed: each rank has its file in ranks/ of the run folder"
#define NO_SCRIPT                                                                                            \
    "cohort train runs no script: it trains its own models; `cohort launch` with the same words runs it"

#define KEY(names, what, key)                                                                                \
    {                                                                                                        \
        names, NULL, CO_HABIT_BECOMES, key, NULL, what                                                       \
    }
#define KEY_SAYS(names, what, key, s)                                                                        \
    {                                                                                                        \
        names, NULL, CO_HABIT_BECOMES, key, s, what                                                          \
    }
/* a flag that says which hosts train, and where they meet */
#define HOSTS(names, what, flag)                                                                             \
    {                                                                                                        \
        names, NULL, CO_HABIT_DROPPED, .takes = what, .host = flag                                           \
    }
#define DROP(names, what, s)                                                                                 \
    {                                                                                                        \
        names, NULL, CO_HABIT_DROPPED, NULL, s, what                                                         \
    }
#define REFUSE(names, what, s)                                                                               \
    {                                                                                                        \
        names, NULL, CO_HABIT_REFUSED, NULL, s, what                                                         \
    }

#define WANDB(names, key)                                                                                    \
    {                                                                                                        \
        names, NULL, CO_HABIT_BECOMES, key, "the run goes to W&B, too", "NAME",                              \
            .also = "logger.wandb.enabled=true"                                                              \
    }

const co_conf_habit habit_flags[] = {
    /* what a bare word is */
    {"FOLDER", NULL, CO_HABIT_BECOMES, "data.dir", "the data", .base = "imagenet"},
    {"RUN", NULL, CO_HABIT_BECOMES, "ckpt_path", "a run, or a checkpoint"},
    REFUSE("FOLDER2", NULL, "a second folder; the data are in one (data.dir)"),
    REFUSE("MISSING", NULL, "no such folder; a word without = is the folder with the data (data.dir)"),
    {"NUMBER1", NULL, CO_HABIT_BECOMES, "trainer.max_epochs", "the first number: epochs in all"},
    {"NUMBER2", NULL, CO_HABIT_BECOMES, "callbacks.model_checkpoint.every_n_epochs",
     "the second: epochs from one checkpoint to the next"},
    REFUSE("NUMBER3", NULL,
           "a third number has no meaning: the first is the epochs in all, "
           "the second the epochs between checkpoints"),
    /* the DDP tutorial's scripts are known by name; another one needs words that name data (habits_script) */
    {"SCRIPT", "single_gpu.py|*/single_gpu.py", CO_HABIT_BECOMES, "trainer.devices=1",
     "the tutorial's script is not run: its task is here", .base = "toy"},
    {"SCRIPT",
     "multigpu.py|*/multigpu.py|multigpu_torchrun.py|*/multigpu_torchrun.py|multinode.py|*/multinode.py",
     CO_HABIT_DROPPED, .says = "the tutorial's script is not run: its task is here", .base = "toy"},
    DROP("SCRIPT", NULL, "not run: cohort trains its own models, with the words beside it"),

    /* main.py and its children */
    {"-a --arch", NULL, CO_HABIT_BECOMES, "model", NULL, "NAME", .base = "imagenet"},
    KEY_SAYS("-j --workers --num-workers", "N", "data.workers", "loader threads of each rank"),
    KEY("--epochs --num-epochs", "N", "trainer.max_epochs"),
    {"--start-epoch", "0", CO_HABIT_DROPPED, .takes = "N"},
    REFUSE("--start-epoch", "N", "a checkpoint knows its epoch; ckpt_path=FOLDER continues from it"),
    {"-b --batch-size", NULL, CO_HABIT_BECOMES, "data.batch_size",
     "of all ranks together; main.py with --multiprocessing-distributed means the batch of one host", "N",
     .with = "--multiprocessing-distributed"},
    KEY_SAYS("-b --batch-size", "N", "data.batch_size_per_rank", PER_PROCESS),
    KEY("--val-batch-size --eval-batch-size --test-batch-size --val-batch", "N", "data.eval_batch_size"),
    KEY("--lr --learning-rate", "RATE", "optim.lr"),
    KEY("--momentum", "M", "optim.momentum"),
    KEY("--wd --weight-decay", "DECAY", "optim.weight_decay"),
    KEY_SAYS("-p --print-freq", "N", "log_every", "steps"),
    {"--resume", "", CO_HABIT_DROPPED, .takes = "FOLDER"},
    KEY("--resume", "FOLDER", "ckpt_path"),
    REFUSE("-e --evaluate", NULL, "evaluating is a command of its own: cohort test ckpt_path=FOLDER"),
    {"--pretrained", NULL, CO_HABIT_BECOMES, "model.pretrained=true"},
    {"--world-size", "-1", CO_HABIT_DROPPED, .takes = "N"},
    HOSTS("--world-size", "N", "--nnodes"),
    {"--rank", "-1", CO_HABIT_DROPPED, .takes = "N"},
    HOSTS("--rank", "N", "--node-rank"),
    {"--dist-url", "env://*", CO_HABIT_DROPPED, .takes = "TEXT"},
    {"--dist-url", "file://*", CO_HABIT_REFUSED,
     .says = "hosts meet at an address: --dist-url tcp://HOST:PORT, HOST being the first one's",
     .takes = "TEXT"},
    HOSTS("--dist-url", "TEXT", "--rdzv-endpoint"),
    DROP("--dist-backend", "TEXT", GIVEN_BY_RUN),
    KEY("--seed", "N", "seed"),
    REFUSE("--gpu", "N", "GPUs are not in this version; without it the ranks are processes on CPUs"),
    DROP("--no-accel --no-cuda", NULL, "no effect: ranks always run on CPUs"),
    DROP("--multiprocessing-distributed", NULL,
         "no effect: a run always has trainer.devices ranks (auto: one per CPU)"),
    REFUSE("--dummy", NULL, "give a folder of pictures, or data=fake_images data.size=224 data.classes=1000"),
    DROP("--checkpoint-file", "FILE",
         "checkpoints are folders in the run folder; ckpt_path=auto continues the newest unfinished run"),
    DROP("--local-rank", "N", "not needed: ranks are started and numbered here"),
    WANDB("--wandb-project", "logger.wandb.project"),
    WANDB("--wandb-run-group --wandb-group", "logger.wandb.group"),
    WANDB("--wandb-entity", "logger.wandb.entity"),
    WANDB("--wandb-name --wandb-run-name", "logger.wandb.name"),

    /* the transformer's train.py; words that only it has choose its recipe */
    KEY_SAYS("--seq-len", "N", "data.max_len", "tokens of a sentence; longer ones are left out and counted"),
    KEY("--d-model", "N", "model.d_model"),
    {"--lang-src", NULL, CO_HABIT_BECOMES, "data.lang_src", NULL, "LANG", .base = "en_it"},
    {"--lang-tgt", NULL, CO_HABIT_BECOMES, "data.lang_tgt", NULL, "LANG", .base = "en_it"},
    {"--tokenizer-file", NULL, CO_HABIT_DROPPED,
     .says = "the run writes tokenizer_en.json and its like into its folder; data.tokenizer_src=FILE and "
             "data.tokenizer_tgt=FILE take others",
     .takes = "FILE", .base = "en_it"},
    {"--model-folder", NULL, CO_HABIT_BECOMES, "run.dir", "checkpoints are below it", "FOLDER", .base = "en_it"},
    DROP("--model-basename", "NAME",
         "checkpoints are named epoch_009 or by callbacks.model_checkpoint.filename"),
    {"--preload", "", CO_HABIT_DROPPED, .takes = "latest"},
    {"--preload", "latest", CO_HABIT_BECOMES, "ckpt_path=auto", "the newest of run.dir, if there is one",
     "latest"},
    {"--preload", NULL, CO_HABIT_BECOMES, "ckpt_path",
     "the number of an epoch in run.dir, or a checkpoint's folder", "latest"},

    /* torchrun */
    HOSTS("--standalone", NULL, "--standalone"),
    {"--nproc-per-node", "auto|cpu", CO_HABIT_BECOMES, "trainer.devices=auto", "ranks on this host", "N",
     .host = "--nproc-per-node"},
    {"--nproc-per-node", "gpu|cuda|xpu|mps", CO_HABIT_REFUSED,
     .says = "GPUs are not in this version; --nproc_per_node=cpu takes every CPU", .takes = "N"},
    {"--nproc-per-node", NULL, CO_HABIT_BECOMES, "trainer.devices", "ranks on this host", "N",
     .host = "--nproc-per-node"},
    HOSTS("--nnodes", "N|MIN:MAX", "--nnodes"),
    HOSTS("--node-rank", "N", "--node-rank"),
    HOSTS("--rdzv-id", "ID", "--rdzv-id"),
    HOSTS("--rdzv-backend", "NAME", "--rdzv-backend"),
    HOSTS("--rdzv-endpoint", "HOST:PORT", "--rdzv-endpoint"),
    HOSTS("--rdzv-conf", "KEY=VALUE,...", "--rdzv-conf"),
    HOSTS("--master-addr", "HOST", "--master-addr"),
    HOSTS("--master-port", "PORT", "--master-port"),
    HOSTS("--local-addr", "HOST", "--local-addr"),
    HOSTS("--port", "PORT", "--port"),
    HOSTS("--insecure", NULL, "--insecure"),
    HOSTS("--hosts", "HOST,HOST,...", "--hosts"),
    HOSTS("--hostfile", "FILE", "--hostfile"),
    HOSTS("--ssh", "COMMAND", "--ssh"),
    HOSTS("--env", "NAME=VALUE,...", "--env"),
    DROP("--max-restarts", "N",
         "not needed: a rank that dies is replaced within its step, as often as it takes"),
    DROP("--log-dir", "FOLDER", RANK_FILES),
    DROP("-t --tee -r --redirects --local-ranks-filter --logs-specs", "WHICH", RANK_FILES),
    DROP("--monitor-interval --start-method --role --event-log-handler --signals-to-handle --numa-binding",
         "TEXT", "not needed: ranks are watched, started and placed on CPUs by the run itself"),
    DROP("--virtual-local-rank", NULL, GIVEN_BY_RUN),
    REFUSE("--no-python --run-path --module", NULL, NO_SCRIPT),
    {0}};
