/* bench.c -- `cohort bench NAME`: the table of measurements; each prints one JSON object a line. */
#include "bench/bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "term/help.h"
#include "term/say.h"

typedef struct bench {
    const char *name, *help;
    int (*run)(int argc, char **argv);
    void (*more)(co_str *out); /* adds to what --help prints; or NULL */
    int (*run_planned)(int argc, char **argv, const co_bench_planner *planner); /* instead of run */
} bench;

static const bench benches[] = {
    {"sameness",
     "one weights_sha256 over ranks, loaders, stops, kills; --other PROGRAM, --columns NAMES, --cifar FOLDER",
     bench_sameness},
    {"kills", "recovery from SIGKILLs at random and in each phase; --kills N", bench_kills},
    {"start", "time from the command to the end of the first step, digits/mlp with 2 ranks", bench_start},
    {"scaling", "speed of two ranks relative to one, digits/cnn with batch 512", bench_scaling},
    {"threads", "resnet18 with one rank: several threads relative to one; --threads N, --rounds N, --steps N",
     bench_threads},
    {"trackers",
     "what trackers cost: all of them, and wandb with live upload, relative to none; how much later a run "
     "ends with a "
     "log book; --only trackers|wandb|book, --rounds N, --steps N",
     bench_trackers},
    {"vs-torch",
     "the same training in PyTorch with the best of several settings, in turn: speed, CPU time, memory, "
     "start; "
     "--task NAME (--help lists them), --data FOLDER, --rounds N, --steps N, --batch N, --size N, --ranks N, "
     "--threads N, --compile, --python P",
     bench_versus, versus_help},
    {"growth",
     "time per sample against batch, size of pictures, depth or length of sequences, beside PyTorch's, and "
     "cliffs; 3 to 5 minutes an axis; --axis batch|size|depth|length, --points N,N,..., --rounds N, --steps "
     "N, "
     "--plots DIR, --python P",
     NULL, growth_help, bench_growth},
    {"ops",
     "every kernel call of a slice's passes: shapes, algorithm, FLOPs, bytes, time with one and two ranks, "
     "share of "
     "the machine's peak; words like model=resnet18 choose the training; --rounds N",
     NULL, ops_help, bench_ops},
    {"data",
     "loading alone, by one core: samples/s, microseconds and share of each stage (read, decode, crop, ...), "
     "and of a loader "
     "with one thread; words like data=imagefolder data.dir=FOLDER choose the data; --vs WORDS, --made WxH, "
     "--samples N, "
     "--rounds N",
     NULL, data_help, bench_data},
    {"instructions",
     "of the kernels, in a step of three small models, by valgrind; --compare FILE, --record FILE", NULL,
     instructions_help, bench_instructions},
    {"sparse", "a factorisation of 20,000 and of 2,000,000 rows: samples/s, instructions; --rounds N, --steps N",
     bench_sparse},
    {"exchange",
     "45 MB added up between two processes over the link tcp, plain and with TLS; under mpirun "
     "-n 2 over the link mpi, beside MPI_Allreduce; --rounds N",
     bench_exchange},
    {"hosts",
     "resnet18 on two hosts over TLS, relative to one host with two ranks; a word: the batch; --lan, --mbit "
     "N, "
     "--rounds N, --steps N",
     bench_hosts},
    {"strangers",
     "resnet18 on two hosts over TLS, alone and with strangers at the link's port, in turn: samples/s, the "
     "carrier's "
     "CPU time; --strangers N, --rounds N, --steps N, --batch N",
     bench_strangers},
    {"wire",
     "resnet18 on two hosts over TLS and a wire of 1 Gbit/s: step time over the larger of compute and wire; "
     "needs "
     "root; --mbit N, --batch N, --rounds N, --steps N",
     bench_wire},
    {"gloo",
     "resnet18 on two hosts over TLS, beside PyTorch's DDP over gloo, and both exchanges alone; --python P, "
     "--lan, "
     "--mbit N, --batch N, --rounds N, --steps N",
     bench_gloo},
    {"apply", "the time of sum and apply in a step with 10 million parameters", bench_apply},
    {0}};

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int show_bench(const bench *b)
{
    co_str text = {0};

    co_str_addf(&text, "cohort bench %s [--json]\n    %s\n", b->name, b->help);
    if (b->more)
        b->more(&text);
    co_help_print(stdout, co_str_text(&text));
    co_str_fini(&text);
    return CO_EXIT_DONE;
}

static void show_benches(FILE *to)
{
    co_str text = {0};

    co_str_add(&text, "cohort bench NAME [--json]\n");
    for (const bench *b = benches; b->name; b++)
        co_str_addf(&text, "  %-12s  %s\n", b->name, b->help);
    co_help_print(to, co_str_text(&text));
    co_str_fini(&text);
}

static int run_bench(const bench *b, int argc, char **argv, const co_bench_planner *planner)
{
    if (wants_help(argc, argv))
        return show_bench(b);
    return b->run ? b->run(argc, argv) : b->run_planned(argc, argv, planner);
}

int co_bench_run(int argc, char **argv, const co_bench_planner *planner)
{
    const char *names[CO_COUNT(benches)];
    size_t n = 0;

    for (const bench *b = benches; b->name; b++) {
        if (argc > 1 && strcmp(argv[1], b->name) == 0)
            return run_bench(b, argc - 1, argv + 1, planner);
        names[n++] = b->name;
    }
    if (argc < 2 || wants_help(2, argv)) {
        show_benches(stdout);
        return CO_EXIT_DONE;
    }
    const char *near = co_str_nearest(argv[1], names, n);
    co_notice("no bench \"%s\"%s%s%s", argv[1], near ? "; did you mean " : "", near ? near : "",
              near ? "?" : "");
    show_benches(stderr);
    return CO_EXIT_USAGE;
}

/* --- what the benches share ----------------------------------------------------------------------------- */
int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_double);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

const char *self(void)
{
    return "/proc/self/exe";
}

co_err bench_flags(const char *bench_name, int argc, char **argv, const bench_flag *flags, const co_flag *other)
{
    co_flag all[BENCH_FLAGS + 3] = {{0}};
    const char *text[BENCH_FLAGS] = {NULL};
    bool json = false;
    char name[64];
    int n = 0;

    for (; flags[n].flag; n++) {
        CO_ASSERT(n < BENCH_FLAGS, "a bench has a few flags");
        all[n] = (co_flag){flags[n].flag, "N", .value = &text[n]};
    }
    all[n] = (co_flag){"--json", .on = &json};
    if (other)
        all[n + 1] = *other;
    snprintf(name, sizeof name, "bench %s", bench_name);
    CO_TRY(co_flags_parse(name, argc, argv, all));
    for (int i = 0; i < n; i++) {
        long long x;
        if (!text[i])
            continue;
        if (!co_str_to_i64(text[i], &x) || x < flags[i].least || x > flags[i].most)
            return co_fail(CO_EINPUT, "%s: %s %s is not a number from %d to %d", name, flags[i].flag, text[i],
                           flags[i].least, flags[i].most);
        *flags[i].out = (int)x;
    }
    return CO_OK;
}

co_err bench_settings(const char *bench_name, int *argc, char **argv, const char *words[BENCH_WORDS], int n)
{
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        if (argv[i][0] == '-' || !strchr(argv[i], '=')) {
            argv[kept++] = argv[i];
            continue;
        }
        if (n == BENCH_WORDS - 1)
            return co_fail(CO_EINPUT, "bench %s: more than %d settings", bench_name, BENCH_WORDS - 1);
        words[n++] = argv[i];
    }
    words[n] = NULL;
    *argc = kept;
    return CO_OK;
}

co_err bench_number(const char *bench_name, const char *flag, const char *text, long long most, int *out)
{
    long long n;

    if (!text)
        return CO_OK;
    if (!co_str_to_i64(text, &n) || n < 1 || n > most)
        return co_fail(CO_EINPUT, "bench %s: %s %s is not a number from 1 to %lld", bench_name, flag, text,
                       most);
    *out = (int)n;
    return CO_OK;
}
