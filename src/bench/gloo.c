/* gloo.c -- `cohort bench gloo`: two hosts of ours beside PyTorch's DistributedDataParallel over gloo, alternating.
 *
 *     training    resnet18 at 64x64, one process on one CPU each side: A B C A B C ...
 *                 A cohort with TLS, B DDP, C DDP with channels_last; both plain. A is compared with the better one
 *     exchange    45 MB added up between the two: ours and gloo's all-reduce in turn, both plain
 *
 * The hosts talk over loopback, or with --lan over a bridge between two namespaces. One JSON object for each of the
 * two; a ratio above 1 says that ours is faster. gloo's TLS would be compared with ours, but PyPI's build of PyTorch
 * lacks it: `gloo_tls` says whether this one has it. PyTorch's side is bench/torch/gloo.py.
 */
#include "bench/bench_int.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "net/net.h"

enum { MAX_ROUNDS = 50, MAX_EXCHANGES = 1000, MORE = 24 };
enum { COHORT, DDP, DDP_LAST, ARMS };
static const char *const arm_names[] = {"cohort", "ddp", "ddp, channels_last"};

typedef struct gloo {
    torch_side torch;
    const char *script_given;
    bool lan;
    int mbit, batch, rounds, steps, exchanges;
    char root[64];
    json_t *versions;
    pair pair;
    double rate[ARMS][MAX_ROUNDS];
    double ms[2][MAX_ROUNDS * 20]; /* of the exchange: ours, gloo's */
    double cpu_ms;                 /* ours, one host and exchange */
} gloo;

static co_err read_line(gloo *g, int argc, char **argv)
{
    const char *mbit = NULL, *batch = NULL, *rounds = NULL, *steps = NULL;
    bool json = false; /* it always is */

    *g = (gloo){.batch = 64, .rounds = 5, .steps = 10, .exchanges = 10};
    CO_TRY(co_flags_parse("bench gloo", argc, argv,
                          (const co_flag[]){{"--lan", .on = &g->lan},
                                            {"--mbit", "N", .value = &mbit},
                                            {"--batch", "N", .value = &batch},
                                            {"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--python", "PROGRAM", .value = &g->torch.python},
                                            {"--script", "FILE", .value = &g->script_given},
                                            {"--json", .on = &json},
                                            {0}}));
    CO_TRY(bench_number("gloo", "--mbit", mbit, 1000000, &g->mbit));
    CO_TRY(bench_number("gloo", "--batch", batch, 65536, &g->batch));
    CO_TRY(bench_number("gloo", "--rounds", rounds, MAX_ROUNDS, &g->rounds));
    return bench_number("gloo", "--steps", steps, 1000000, &g->steps);
}

static co_err check_torch(gloo *g)
{
    if (torch_run(&g->torch, (const char *const[]){"--check", NULL}, true, &g->versions) != CO_OK)
        return torch_missing(&g->torch, "PyTorch");
    return json_is_true(json_object_get(g->versions, "gloo")) ? CO_OK
                                                              : torch_missing(&g->torch, "PyTorch's gloo");
}

/* --- PyTorch's two processes ---------------------------------------------------------------------------- */
/* `more` has room for what says where the other one is. */
static co_err run_torch(const gloo *g, const char *more[MORE], int n, json_t **out)
{
    char port_text[16], log[96];
    int port, status = 0;
    co_err err = CO_OK;

    CO_TRY(co_net_free_port(&port));
    snprintf(port_text, sizeof port_text, "%d", port);
    snprintf(log, sizeof log, "%s/gloo.log", g->root);
    const char *const where[] = {"--address", g->pair.address[0], "--port", port_text,
                                 "--device",  g->pair.device,     "--rank", "1"};
    memcpy(more + n, where, sizeof where);
    n += (int)CO_COUNT(where);
    more[n] = NULL;
    CO_TRY(pair_enter(&g->pair, 1));
    pid_t second = torch_start(&g->torch, more, log);
    pair_leave(&g->pair);
    if (second < 0)
        return co_fail(CO_EIO, "fork: %m");
    more[n - 1] = "0";
    err = pair_enter(&g->pair, 0);
    if (!err)
        err = torch_run(&g->torch, more, false, out);
    pair_leave(&g->pair);
    if (err)
        kill(second, SIGKILL);
    waitpid(second, &status, 0);
    return !err && status != 0 ? co_fail(CO_EFAIL, "PyTorch's second process failed, see %s", log) : err;
}

static co_err train_torch(gloo *g, int arm, int round, double *parameters)
{
    char batch[16], steps[16];
    json_t *j = NULL;

    snprintf(batch, sizeof batch, "%d", g->batch);
    snprintf(steps, sizeof steps, "%d", g->steps);
    const char *more[MORE] = {"train", "--size", "64", "--batch", batch, "--steps", steps, "--channels-last"};
    CO_TRY(run_torch(g, more, arm == DDP_LAST ? 8 : 7, &j));
    bool there =
        co_json_f64(j, "samples_per_s", &g->rate[arm][round]) && co_json_f64(j, "parameters", parameters);
    json_decref(j);
    return there ? CO_OK : co_fail(CO_EFAIL, "%s: a figure is missing from its output", g->torch.script);
}

/* --- training ------------------------------------------------------------------------------------------- */
static co_err train_cohort(gloo *g, int round, double *parameters)
{
    const char *words[PAIR_WORDS];
    char batch[40], steps[40];
    trial t;

    snprintf(batch, sizeof batch, "data.batch_size=%d", g->batch);
    snprintf(steps, sizeof steps, "trainer.max_steps=%d", g->steps + 1); /* the first is not timed */
    int n = pair_words(words, batch, steps, "trainer.devices=1");
    words[n++] = "optim.lr=0.01";
    words[n++] = "optim.momentum=0.9";
    co_err err = pair_train(&t, &g->pair, g->root, words, n);
    g->rate[COHORT][round] = err ? 0 : trial_number(&t, "samples_per_s");
    *parameters = err ? 0 : trial_number(&t, "parameters");
    trial_free(&t);
    return err;
}

static co_err train_in_turn(gloo *g)
{
    double parameters[ARMS] = {0};

    for (int round = 0; round < g->rounds; round++)
        for (int arm = 0; arm < ARMS; arm++) {
            CO_TRY(arm == COHORT ? train_cohort(g, round, &parameters[arm])
                                 : train_torch(g, arm, round, &parameters[arm]));
            if (parameters[arm] != parameters[COHORT])
                return co_fail(CO_EFAIL,
                               "resnet18 has %.0f parameters here, %.0f in PyTorch: not the same model",
                               parameters[COHORT], parameters[arm]);
            co_say("round %d of %d: %-18s %.1f samples/s", round + 1, g->rounds, arm_names[arm],
                   g->rate[arm][round]);
        }
    return CO_OK;
}

static void report_training(gloo *g)
{
    double ratio[MAX_ROUNDS], copy[ARMS][MAX_ROUNDS], middle[ARMS];
    char cpu[128];

    memcpy(copy, g->rate, sizeof copy);
    for (int arm = 0; arm < ARMS; arm++)
        middle[arm] = median(copy[arm], g->rounds);
    int best = middle[DDP_LAST] > middle[DDP] ? DDP_LAST : DDP;
    for (int i = 0; i < g->rounds; i++)
        ratio[i] = g->rate[COHORT][i] / g->rate[best][i];
    cpu_fact("model name", cpu, sizeof cpu);
    json_t *j = json_pack("{ss ss ss si si si si sf sf sf ss sf sO ss}", "task", "gloo", "model",
                          "resnet18 64x64", "network", g->lan || g->mbit ? "bridge" : "loopback", "mbit",
                          g->mbit, "batch", g->batch, "rounds", g->rounds, "steps", g->steps,
                          "cohort_tls_samples_per_s", middle[COHORT], "ddp_samples_per_s", middle[DDP],
                          "ddp_channels_last_samples_per_s", middle[DDP_LAST], "compared_with", arm_names[best],
                          "ratio", median(ratio, g->rounds), "versions", g->versions, "cpu", cpu);
    co_json_print(j);
}

/* --- the exchange alone --------------------------------------------------------------------------------- */
static co_err add_up_torch(gloo *g, double *ms)
{
    char count[16], rounds[16];
    json_t *j = NULL;

    snprintf(count, sizeof count, "%d", EXCHANGE_COUNT);
    snprintf(rounds, sizeof rounds, "%d", g->exchanges);
    const char *more[MORE] = {"allreduce", "--count", count, "--rounds", rounds};
    CO_TRY(run_torch(g, more, 5, &j));
    const json_t *list = json_object_get(j, "ms");
    bool there = (int)json_array_size(list) == g->exchanges;
    for (int i = 0; i < g->exchanges && there; i++)
        ms[i] = json_number_value(json_array_get(list, (size_t)i));
    json_decref(j);
    return there ? CO_OK : co_fail(CO_EFAIL, "%s: a figure is missing from its output", g->torch.script);
}

static co_err exchange_in_turn(gloo *g)
{
    double ratio[MAX_ROUNDS], cpu_ms, middle[2];
    int n = g->exchanges, all = g->rounds * n;

    for (int round = 0; round < g->rounds; round++) {
        double *ours = g->ms[0] + (size_t)(round * n), *theirs = g->ms[1] + (size_t)(round * n);
        CO_TRY(exchange_measure(&g->pair, false, n, ours, &cpu_ms));
        CO_TRY(add_up_torch(g, theirs));
        ratio[round] = median(theirs, n) / median(ours, n);
        co_say("round %d of %d: exchange %.1f ms, gloo's all-reduce %.1f ms", round + 1, g->rounds,
               median(ours, n), median(theirs, n));
    }
    for (int i = 0; i < 2; i++)
        middle[i] = median(g->ms[i], all);
    json_t *j = json_pack("{ss ss ss si si si sf sf sf sO}", "task", "gloo exchange", "network",
                          g->lan || g->mbit ? "bridge" : "loopback", "tls", "plain on both sides", "mbit",
                          g->mbit, "bytes", (int)(EXCHANGE_COUNT * sizeof(float)), "exchanges", all,
                          "cohort_plain_ms", middle[0], "gloo_plain_ms", middle[1], "ratio",
                          median(ratio, g->rounds), "gloo_tls", json_object_get(g->versions, "gloo_tls"));
    co_json_print(j);
    return CO_OK;
}

static co_err measure(gloo *g)
{
    CO_TRY(exchange_in_turn(g));
    fflush(stdout);
    CO_TRY(train_in_turn(g));
    report_training(g);
    return CO_OK;
}

int bench_gloo(int argc, char **argv)
{
    static gloo g;
    co_err err = read_line(&g, argc, argv);

    if (!err)
        err = torch_find(&g.torch, "gloo", "gloo.py", g.script_given);
    if (!err)
        err = check_torch(&g);
    if (!err)
        err = pair_open(&g.pair, g.lan, g.mbit);
    if (err)
        return co_say_error(CO_EINPUT);
    err = trial_folder(g.root);
    if (!err)
        err = measure(&g);
    pair_close(&g.pair);
    json_decref(g.versions);
    return trial_ended(err, g.root);
}
