/* main.c -- the table of commands. Alone, `cohort` says what it is and what to type first. */
#include "cli/cli.h"
#include "cli/cli_int.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "bench/bench.h"
#include "job/launch.h"

const command commands[] = {
    {"train", "train a model: cohort train [group=choice] [key=value] ...", cmd_train,
     "  cohort train experiment=demo\n"
     "  cohort train data=digits model=cnn optim=adamw optim.lr=0.003 trainer.max_epochs=10\n"
     "  cohort train data=text data.path=book.txt model=lm trainer.devices=4\n"
     "  cohort train run.dir=logs/train/runs/2026-11-16_10-00-00 ckpt_path=auto      continue a run\n"
     "  cohort train -m optim.lr=0.1,0.01 'seed=range(1,4)'         six runs, one after the other\n\n"
     "  --config-dir FOLDER   groups of YAML files of your own (default: ./configs, if it is there)\n"
     "  --multirun, -m        run every combination of the alternatives, in logs/TASK/multiruns/DATE/NUMBER\n"
     "  --cfg job             print the configuration and do nothing (--resolve: values from the environment "
     "too)\n"
     "  --detach              go on without this terminal (cohort attach, cohort stop)\n"
     "  --json                the summary on standard output, instead of the run folder's name\n\n"
     "  Habits of other programs are taken, each said as the key it becomes: torchrun's flags "
     "(--standalone,\n"
     "  --nproc_per_node=4), those of main.py and train.py (-a resnet18 -b 32 --epochs 1 --lr 0.1 DIR), the\n"
     "  tutorial's `50 10`, Lightning's keys. `cohort train --help habits` lists them all.\n"},
    {"plan", "say what `train` would do with the same words: memory, steps, time", cmd_plan,
     "  cohort plan experiment=demo\n"
     "  cohort plan data=digits model=cnn data.batch_size=512 trainer.devices=4 --json\n\n"
     "  --json                one object, memory in bytes\n"
     "  --parameters          every tensor of the model: name, shape, numbers\n"
     "  --config-dir FOLDER   groups of YAML files of your own\n"
     "  exit status 2: `train` would refuse\n"},
    {"test", "evaluate a checkpoint", cmd_test,
     "  cohort test ckpt_path=logs/train/runs/DATE                        the newest one, its own "
     "configuration\n"
     "  cohort test ckpt_path=logs/train/runs/DATE/checkpoints/last --split val --json\n"
     "  cohort test ckpt_path=elsewhere/epoch_009 data=digits model=cnn\n"
     "  cohort test weights=model.safetensors data=cifar10 data.dir=FOLDER model=resnet18\n\n"
     "  --split val|test      which samples (default: test)\n"
     "  --json                one object, numbers in full\n"
     "  --config-dir FOLDER   groups of YAML files of your own\n"},
    {"predict", "run a checkpoint on a split, a line per sample", cmd_predict,
     "  cohort predict ckpt_path=logs/train/runs/DATE --limit 10\n"
     "  cohort predict ckpt_path=logs/train/runs/DATE --split val --json\n\n"
     "  a line: the sample's number, then class, probability, the class's name and the file, or values, or "
     "the likeliest\n"
     "  next token; --json adds the label that the data give it\n\n"
     "  --split val|test      which samples (default: test)\n"
     "  --limit N             the first N only\n"
     "  --logits              the numbers behind the choice, too\n"
     "  --json                an object per sample\n"
     "  --config-dir FOLDER   groups of YAML files of your own\n"},
    {"launch", "torchrun's command line for any program: cohort launch [flags] PROGRAM [arguments]",
     cmd_launch, co_launch_usage},
    {"host", "begin a job that others join with a code: cohort host [flags] [--] PROGRAM [arguments]",
     cmd_host, co_host_usage},
    {"join", "take part in a job that `cohort host` began on another host", cmd_join, co_join_usage},
    {"logs", "what the workers of a launched job printed, all hosts as one: logs [FOLDER|RUN]", cmd_logs,
     logs_usage},
    {"ckpt", "checkpoints: ls, hash, verify, export", cmd_ckpt,
     "  cohort ckpt ls logs/train/runs/DATE\n"
     "  cohort ckpt hash logs/train/runs/DATE/checkpoints/last\n"
     "  cohort ckpt verify logs/train/runs/DATE/checkpoints/last\n"
     "  cohort ckpt export logs/train/runs/DATE --out model.safetensors    the weights, for PyTorch\n\n"
     "  --out FILE            where export writes; it must not exist\n"
     "  --ema                 export the average of the weights (optim.ema)\n"
     "  --json                an object per checkpoint\n"
     "  exit status of verify: 1 if any is bad\n"},
    {"bench", "measurements as JSON: sameness, kills, start, scaling, apply, vs-torch", co_bench_run,
     "  cohort bench sameness\n"
     "  cohort bench kills --json\n"},
    {"ps", "runs on this machine", cmd_ps,
     "  cohort ps\n"
     "  cohort ps --json      an object per run\n"},
    {"attach", "watch a run from another terminal", cmd_attach,
     "  cohort attach                     the only run there is\n"
     "  cohort attach 12345\n"
     "  cohort attach logs/train/runs/DATE\n\n"
     "  Ctrl-C leaves the run as it is; when the run ends, its exit status is that of attach\n"},
    {"token", "make a token that lets hosts into a job: COHORT_TOKEN=$(cohort token)", cmd_token,
     "  kubectl create secret generic cohort-token --from-literal=token=\"$(cohort token)\"\n"},
    {"stop", "ask a run to save and stop", cmd_stop,
     "  cohort stop 12345\n"
     "  cohort stop logs/train/runs/DATE --wait\n"
     "  cohort stop --all\n\n"
     "  --wait                until it has ended\n"
     "  --json                an object per run\n"},
    {"completion", "lines that teach bash or zsh to complete: completion bash|zsh", cmd_completion,
     "  source <(cohort completion bash)                  for this shell\n"
     "  cohort completion zsh > ~/.zfunc/_cohort          a folder of $fpath\n"
     "  `make install` puts both where the shells look\n"},
    {0}};

static void introduce(void)
{
    printf("cohort %s trains neural networks on any number of processes to the same weights, bit for bit.\n\n"
           "  cohort train experiment=demo        train the built-in digits (a few seconds)\n"
           "  cohort train --help                 every key, with its default\n"
           "  cohort plan ...                     what the same words would take: memory, steps, time\n"
           "  cohort train ckpt_path=auto ...     continue the newest unfinished run\n"
           "  cohort ps                           runs on this machine; cohort attach watches one\n\n",
           COHORT_VERSION);
    show_here();
}

static void list_commands(FILE *to)
{
    fprintf(to, "commands:\n");
    for (const command *c = commands; c->name; c++)
        fprintf(to, "  %-10s  %s\n", c->name, c->help);
    fprintf(to, "\n`cohort COMMAND --help` shows examples.\n");
}

int show_usage(const char *command_name)
{
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, command_name) == 0)
            printf("%s: %s\n\n%s", c->name, c->help, c->usage);
    return EXIT_DONE;
}

static void log_sink(void *ctx, co_log_level level, const char *text)
{
    (void)ctx;
    say("%s%s", level == CO_LOG_ERROR ? "error: " : level == CO_LOG_WARN ? "warning: " : "", text);
}

/* With 0, 1 or 2 closed, the next file we open would become standard output or error, and talk would go into it. */
static void hold_standard_descriptors(void)
{
    int fd;

    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
        ;
    if (fd >= 0)
        close(fd);
}

/* Who was started by something that ignores SIGCHLD ignores it, too: the kernel would reap our children, and we would wait for
 * news of them for ever. */
static void hear_of_children(void)
{
    struct sigaction was;

    if (sigaction(SIGCHLD, NULL, &was) == 0 && was.sa_handler == SIG_IGN)
        signal(SIGCHLD, SIG_DFL);
}

int co_cli_main(int argc, char **argv)
{
    const char *names[CO_COUNT(commands)];
    size_t n = 0;

    hold_standard_descriptors();
    hear_of_children();
    co_log_to(log_sink, NULL, CO_LOG_INFO);
    if (argc < 2) {
        introduce();
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("cohort %s\n", COHORT_VERSION);
        return EXIT_DONE;
    }
    if (argc > 2 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "--man") == 0)
        return cmd_man(argc - 2, argv + 2);
    if (argc > 2 && strcmp(argv[1], "help") == 0) { /* help COMMAND is COMMAND --help */
        static char flag_help[] = "--help";
        argv[1] = argv[2];
        argv[2] = flag_help;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        introduce();
        printf("\n");
        list_commands(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "complete") == 0)
        return cmd_complete(argc - 1, argv + 1);
    for (const command *c = commands; c->name; c++) {
        if (strcmp(c->name, argv[1]) == 0)
            return c->run(argc - 1, argv + 1);
        names[n++] = c->name;
    }
    const char *near = co_str_nearest(argv[1], names, n);
    fprintf(stderr, "cohort: no command \"%s\"%s%s%s\n", argv[1], near ? "; did you mean " : "",
            near ? near : "", near ? "?" : "");
    list_commands(stderr);
    return EXIT_USAGE;
}
