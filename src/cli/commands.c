/* commands.c -- the table of commands, and the commands that are planned. */
#include "cli/cli_int.h"

#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "job/launch.h"
#include "term/help.h"

const command commands[] = {
    {"train", "[group=choice] [key=value] ...", "train a model", cmd_train,
     "  cohort train experiment=demo                    the built-in digits\n"
     "  cohort train data=digits model=cnn optim.lr=0.003 trainer.max_epochs=10\n"
     "  cohort train data=text data.path=book.txt model=lm trainer.devices=4\n"
     "  cohort train run.dir=logs/train/runs/DATE ckpt_path=auto        continue a run\n"
     "  cohort train --hosts node1,node2 data=digits             two hosts, over ssh\n"
     "  cohort train --nnodes=2 --rdzv-endpoint=node1:29400      typed on both hosts\n\n"
     "  --config-dir FOLDER   your own groups of YAML files (default: ./configs)\n"
     "  --multirun, -m        one run for each combination of values\n"
     "  --cfg job, --resolve  print the configuration; with the environment's values\n"
     "  --detach              run without this terminal (see attach, stop)\n"
     "  --json                print the summary instead of the run folder's name\n"},
    {"plan", "[group=choice] [key=value] ...", "what `cohort train` would take: memory, steps, time", cmd_plan,
     "  cohort plan experiment=demo\n"
     "  cohort plan data=digits model=cnn data.batch_size=512 trainer.devices=4\n"
     "  cohort plan --nnodes=2 --rdzv-endpoint=node1:29400 data=digits\n\n"
     "  --json                one object, memory in bytes\n"
     "  --parameters          every tensor of the model: name, shape, numbers\n"
     "  --config-dir FOLDER   your own groups of YAML files (default: ./configs)\n\n"
     "  Exit status 2: `cohort train` would refuse the same words.\n",
     true},
    {"test", "ckpt_path=FOLDER [key=value] ...", "evaluate a checkpoint", cmd_test,
     "  cohort test ckpt_path=logs/train/runs/DATE           its newest checkpoint\n"
     "  cohort test ckpt_path=logs/train/runs/DATE/checkpoints/best --split val\n"
     "  cohort test ckpt_path=elsewhere/epoch_009 data=digits model=cnn\n"
     "  cohort test weights=FILE.safetensors data=cifar10 model=resnet18\n\n"
     "  --split val|test      which samples (default: test)\n"
     "  --beam N, --limit N   translations: search width (1); only the first N\n"
     "  --json                one object, numbers in full\n"
     "  --config-dir FOLDER   your own groups of YAML files (default: ./configs)\n",
     true},
    {"predict", "ckpt_path=FOLDER [PICTURE|FOLDER] ... [key=value] ...",
     "run a checkpoint on pictures of your own or on a split", cmd_predict,
     "  cohort predict ckpt_path=logs/train/runs/DATE photo.jpg holiday/\n"
     "  cohort predict ckpt_path=logs/train/runs/DATE --limit 10\n"
     "  cohort predict ckpt_path=logs/train/runs/DATE --split val --json\n"
     "  cohort predict user=15 k=10                     what to recommend to a user\n"
     "  echo 'Good morning.' | cohort predict ckpt_path=RUN     a line translated\n\n"
     "  Pictures are resized and normalised as in the run's evaluation. A line has the\n"
     "  file and up to five classes with their probabilities, the likeliest first.\n\n"
     "  user=N: of a run on ratings, the k items (default 10) with the highest\n"
     "  predictions that the user has not rated: place, prediction, id, title. Without\n"
     "  ckpt_path, the newest run on ratings below logs/ is used.\n\n"
     "  A run on pairs of sentences translates the lines of standard input, one line each,\n"
     "  with the checkpoint alone; --split translates the sentences of a split. A run on\n"
     "  text says with --lines, or if its text file is gone, what follows each line.\n\n"
     "  A line of a split has the sample's number, then its class, probability, class\n"
     "  name and file; for regression its values; for text the likeliest next token.\n\n"
     "  --split val|test      which samples (default: test); not with pictures\n"
     "  --limit N             the first N only, samples or pictures\n"
     "  --logits              the numbers behind the choice, too\n"
     "  --beam N              follow the N best translations (default: 1, greedy)\n"
     "  --lines               read lines from standard input, not samples of a split\n"
     "  --json                an object per sample, with the label that it has\n"
     "  --config-dir FOLDER   your own groups of YAML files (default: ./configs)\n",
     true},
    {"launch", "[flags] PROGRAM [arguments]", "run any program on one or many hosts, as torchrun does",
     cmd_launch, co_launch_usage},
    {"host", "[flags] [--] PROGRAM [arguments]", "begin a job that other hosts join with a code", cmd_host,
     co_host_usage},
    {"join", "[flags]", "take part in a job that `cohort host` began on another host", cmd_join, co_join_usage},
    {"logs", "[FOLDER|RUN] ...", "what the workers of a launched job printed, all hosts in one", cmd_logs,
     logs_usage, true},
    {"book", "[FOLDER] | compare RUN RUN ...",
     "log books: of a run, of a folder of runs, of runs side by side", cmd_book, book_usage, true},
    {"board", "[FOLDER]", "a live page over runs, for the browser", cmd_board, board_usage},
    {"ckpt", "ls|hash|verify|export|import PATH ...", "checkpoints: list, hash, verify; weights out and in",
     cmd_ckpt,
     "  cohort ckpt ls logs/train/runs/DATE\n"
     "  cohort ckpt hash logs/train/runs/DATE/checkpoints/last\n"
     "  cohort ckpt verify logs/train/runs/DATE/checkpoints/last\n"
     "  cohort ckpt export logs/train/runs/DATE --out w.safetensors  for PyTorch\n"
     "  cohort ckpt export logs/train/runs/DATE --to hf --out mine   for timm\n"
     "  cohort ckpt import model.pth                                 from PyTorch\n"
     "  cohort ckpt import last.ckpt model=resnet18 --to model.safetensors\n\n"
     "  --out FILE            where export writes; it must not exist\n"
     "  --to safetensors|hf   what export writes: one file, or a folder with\n"
     "                        config.json as timm and the Hugging Face hub have it\n"
     "  --ema                 export the average of the weights (optim.ema)\n"
     "  --to FILE             where import writes; FILE.safetensors beside FILE.pth\n"
     "                        unless given. It must not exist\n"
     "  --prefix TEXT         import only tensors whose names begin so, without it;\n"
     "                        unless given, \"model.\", \"net.\", \"module.\" and\n"
     "                        \"_orig_mod.\" are taken off if all names have them\n"
     "  --drop-objects        import: leave out what is no tensor and no plain value,\n"
     "                        instead of refusing the file. Nothing is ever run\n"
     "  --json                an object per checkpoint, or for the file\n\n"
     "  import reads what torch.save writes (.pth, .pt, Lightning's .ckpt). With\n"
     "  model=NAME, and the keys of model and data that change shapes, it compares\n"
     "  names and shapes first.\n"
     "  Exit status of verify: 1 if any checkpoint is bad.\n",
     true},
    {"data", "get NAME | check|stats|pack FOLDER", "data sets: download; what a folder holds, what is wrong",
     cmd_data,
     "  cohort data get                      lists the sets that can be downloaded\n"
     "  cohort data get cifar10              into data/cifar-10-batches-bin\n"
     "  cohort data get movielens ~/sets     into ~/sets/ml-latest-small\n"
     "  cohort data check tiny-imagenet-200  recognises it, reads every sample\n"
     "  cohort data stats tiny-imagenet-200  with figures: per class, of ratings, ...\n"
     "  cohort data pack tiny-imagenet-200 --out tiny.pack    one file of it\n\n"
     "  get downloads from the publisher's address, compares the checksum and\n"
     "  unpacks. A download that was cut or killed goes on when the same line is\n"
     "  typed again. check finds unreadable pictures, labels out of range, classes\n"
     "  that val lacks, a val that looks like one class, and pictures that are in\n"
     "  train and in val.\n\n"
     "  --out FILE.pack       where pack writes; it must not exist\n"
     "  --force               get: download again what is there\n"
     "  --keep                get: keep the archive after unpacking\n"
     "  --mirror URL          get: files are at URL/NAME (also $COHORT_MIRROR)\n"
     "  --retries N           get: useless attempts per address (default 5)\n"
     "  --json                one object\n\n"
     "  Exit status 1: something is wrong with the data, or a download failed; a\n"
     "  sentence says what. 2: no such set or folder.\n",
     true},
    {"bench", "NAME [--json]", "the measurements of this program, as JSON", cmd_bench,
     "  cohort bench sameness\n"
     "  cohort bench kills --json\n"},
    {"ps", "", "training runs and launches on this machine", cmd_ps,
     "  cohort ps             epoch, step and time left of each run\n"
     "  cohort ps --json      an object per run or launch\n\n"
     "  A run of several hosts is listed on each of them, with all its hosts and their\n"
     "  states; a guest names the host with the record.\n",
     true},
    {"top", "[PID|FOLDER]", "a terminal monitor of runs: hosts, ranks, where their time goes", cmd_top,
     "  cohort top                        all runs and launches of this machine\n"
     "  cohort top 12345                  the hosts and ranks of one run\n"
     "  cohort top logs/train/runs/DATE   the same; also of a run that has ended\n"
     "  cohort top --once                 as text, once\n"
     "  cohort top --once --json          one object, for scripts\n\n"
     "  --every S             seconds between two looks (default: 2)\n"
     "  --once                print it and end; no terminal is needed\n"
     "  --json                with --once\n\n"
     "  Keys: Up and Down choose, Enter opens a run, Esc goes back, s sorts, / filters,\n"
     "  k stops a run (it asks first), h shows all keys, q quits.\n",
     true},
    {"attach", "[PID|FOLDER]", "watch a training run from another terminal", cmd_attach,
     "  cohort attach                     the only run there is\n"
     "  cohort attach 12345\n"
     "  cohort attach logs/train/runs/DATE\n\n"
     "  Ctrl-C leaves, and the run goes on. When the run ends, attach exits with the\n"
     "  run's exit status.\n",
     true},
    {"stop", "PID|FOLDER ... | --all", "ask a training run to save and stop", cmd_stop,
     "  cohort stop 12345\n"
     "  cohort stop logs/train/runs/DATE --wait\n"
     "  cohort stop --all\n\n"
     "  --wait                wait until the run has ended\n"
     "  --all                 every run on this machine\n"
     "  --json                an object per run\n"},
    {"wandb", "login|sync [FOLDER] ...", "Weights & Biases: store your key; upload a run later", cmd_wandb,
     wandb_usage},
    {"token", "", "make a token that lets hosts into a job", cmd_token,
     "  COHORT_TOKEN=$(cohort token)\n"
     "  kubectl create secret generic cohort-token \\\n"
     "      --from-literal=token=\"$(cohort token)\"\n",
     true},
    {"completion", "bash|zsh", "lines that teach bash or zsh to complete commands and keys", cmd_completion,
     "  source <(cohort completion bash)                  for this shell\n"
     "  cohort completion zsh > ~/.zfunc/_cohort          a folder of $fpath\n\n"
     "  `make install` puts both where the shells look.\n",
     true},
    {0}};

const command *command_find(const char *name)
{
    const command *c = commands;

    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

int show_usage(const char *command_name)
{
    const command *c = command_find(command_name);
    co_str text = {0};

    if (c) {
        co_str_addf(&text, "cohort %s%s%s\n    %s\n\n%s", c->name, *c->words ? " " : "", c->words, c->help,
                    c->usage);
        co_help_print(stdout, co_str_text(&text));
    }
    co_str_fini(&text);
    return CO_EXIT_DONE;
}

/* Commands of the design that do not exist yet, and what to use meanwhile. */
static const struct {
    const char *name, *what, *meanwhile;
} planned[] = {
    {"fit", "the largest batch that fits", "`cohort plan data.batch_size=N ...` says what a batch takes"},
    {"doctor", "a check of hosts, network, disk and data",
     "`cohort help` shows this machine, `cohort plan ...` checks a command line and its data"},
    {"gcp", "clusters on Google Cloud", "`cohort launch --hosts HOST,HOST PROGRAM` starts a job over ssh"},
    {"k8s", "jobs on Kubernetes", "`cohort launch PROGRAM` as the command of an indexed Job"},
    {"slurm", "jobs under Slurm", "srun `cohort launch PROGRAM`, or the same inside an sbatch script"},
    {"ssh", "clusters over ssh", "`cohort launch --hosts HOST,HOST PROGRAM` starts a job over ssh"}};

bool command_is_planned(const char *name)
{
    co_str text = {0};

    for (size_t i = 0; i < CO_COUNT(planned); i++)
        if (strcmp(planned[i].name, name) == 0) {
            co_str_addf(&text, "cohort: %s is planned, not built yet (%s); meanwhile:\n  %s\n", name,
                        planned[i].what, planned[i].meanwhile);
            co_help_print(stderr, co_str_text(&text));
            co_str_fini(&text);
            return true;
        }
    return false;
}

void command_unknown(const char *name)
{
    const char *names[CO_COUNT(commands)];
    size_t n = 0;

    for (const command *c = commands; c->name; c++)
        names[n++] = c->name;
    const char *near = co_str_nearest(name, names, n);
    fprintf(stderr, "cohort: no command \"%s\"%s%s%s\n", name, near ? "; did you mean " : "",
            near ? near : "", near ? "?" : "");
    list_commands(stderr);
}

void list_commands(FILE *to)
{
    co_str text = {0};

    co_str_add(&text, "Commands:\n");
    for (const command *c = commands; c->name; c++)
        co_str_addf(&text, "  %-10s  %s\n", c->name, c->help);
    co_str_add(&text, "\n`cohort help COMMAND` shows its examples and flags.\n");
    co_help_print(to, co_str_text(&text));
    co_str_fini(&text);
}
