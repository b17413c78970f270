/* strangers.c -- what strangers at the port of a host's link cost: resnet18 on two hosts with TLS, without strangers
 * and with them, in turn; the medians count. The weights of all runs must be the same.
 *
 * The strangers come at the second host, spread over the time that the run before them took (see crowd.c). They use
 * this machine's CPUs too: `strangers_cpu_s` is the time of the thread that plays them.
 */
#include "bench/bench_int.h"

#include <string.h>

enum { MAX_ROUNDS = 50 };

typedef struct figures {
    double rate[2][MAX_ROUNDS], ratio[MAX_ROUNDS], carrier_cpu_s[2][MAX_ROUNDS], own_cpu_s[MAX_ROUNDS];
    double secs; /* of the last run without strangers */
    int came, refused;
    char sha[65];
} figures;

typedef struct strangers_line {
    int rounds, steps, batch, strangers;
} strangers_line;

static co_err read_line(strangers_line *l, int argc, char **argv)
{
    const char *rounds = NULL, *steps = NULL, *batch = NULL, *strangers = NULL;
    bool json = false; /* it always is */

    *l = (strangers_line){.rounds = 5, .steps = 100, .batch = 64, .strangers = 2000};
    CO_TRY(co_flags_parse("bench strangers", argc, argv,
                          (const co_flag[]){{"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--batch", "N", .value = &batch},
                                            {"--strangers", "N", .value = &strangers},
                                            {"--json", .on = &json},
                                            {0}}));
    CO_TRY(bench_number("strangers", "--rounds", rounds, MAX_ROUNDS, &l->rounds));
    CO_TRY(bench_number("strangers", "--steps", steps, 1000000, &l->steps));
    CO_TRY(bench_number("strangers", "--batch", batch, 65536, &l->batch));
    return bench_number("strangers", "--strangers", strangers, 1000000, &l->strangers);
}

/* All runs end with the weights of the first. */
static co_err same_weights(figures *f, const trial *t)
{
    const char *sha = json_string_value(json_object_get(t->summary, "weights_sha256"));

    if (!sha || strlen(sha) != 64)
        return co_fail(CO_EFAIL, "a summary has no weights_sha256");
    if (!f->sha[0])
        memcpy(f->sha, sha, sizeof f->sha);
    return strcmp(f->sha, sha) == 0
               ? CO_OK
               : co_fail(CO_EFAIL, "a run ended with the weights %.16s, the first with %.16s", sha, f->sha);
}

/* arm 1: among strangers. */
static co_err run_once(const strangers_line *l, const pair *p, const char *root, figures *f, int i, int arm)
{
    static crowd c;
    const char *words[PAIR_WORDS];
    char batch[40], steps[40];
    trial t;

    snprintf(batch, sizeof batch, "data.batch_size=%d", l->batch);
    snprintf(steps, sizeof steps, "trainer.max_steps=%d", l->steps);
    int n = pair_words(words, batch, steps, "trainer.devices=1");
    words[n++] = "--rdzv-id=" CROWD_RUN;
    CO_TRY(crowd_start(&c, arm ? l->strangers : 0, 0.8 * f->secs));
    co_err err = pair_train(&t, p, root, words, n), seen = crowd_stop(&c);
    if (!err)
        err = seen;
    if (!err)
        err = same_weights(f, &t);
    if (!err) {
        f->rate[arm][i] = trial_number(&t, "samples_per_s");
        if (!arm)
            f->secs = trial_number(&t, "wall_s");
        f->carrier_cpu_s[arm][i] = c.carrier_cpu_s[1];
    }
    if (!err && arm) {
        f->own_cpu_s[i] = c.own_cpu_s;
        f->came = i == 0 || c.came < f->came ? c.came : f->came;
        f->refused = i == 0 || c.refused < f->refused ? c.refused : f->refused;
    }
    trial_free(&t);
    return err;
}

static co_err measure(const strangers_line *l, const pair *p, const char *root, figures *f)
{
    for (int i = 0; i < l->rounds; i++) {
        for (int arm = 0; arm < 2; arm++)
            CO_TRY(run_once(l, p, root, f, i, arm));
        f->ratio[i] = f->rate[1][i] / f->rate[0][i];
        co_say("round %d of %d: %.1f samples/s, among strangers %.1f", i + 1, l->rounds, f->rate[0][i],
               f->rate[1][i]);
    }
    return CO_OK;
}

static void report(const strangers_line *l, figures *f)
{
    printf("{\"task\":\"strangers\",\"model\":\"resnet18 64x64\",\"batch\":%d,\"steps\":%d,\"rounds\":%d,"
           "\"wall_s\":%.1f,\"strangers\":%d,\"least_came\":%d,\"least_refused\":%d,\"samples_per_s\":%.1f,"
           "\"among_strangers_samples_per_s\":%.1f,\"ratio\":%.3f,\"carrier_cpu_s\":%.2f,"
           "\"among_strangers_carrier_cpu_s\":%.2f,\"strangers_cpu_s\":%.2f,\"weights_sha256\":\"%s\"}\n",
           l->batch, l->steps, l->rounds, f->secs, l->strangers, f->came, f->refused,
           median(f->rate[0], l->rounds), median(f->rate[1], l->rounds), median(f->ratio, l->rounds),
           median(f->carrier_cpu_s[0], l->rounds), median(f->carrier_cpu_s[1], l->rounds),
           median(f->own_cpu_s, l->rounds), f->sha);
}

int bench_strangers(int argc, char **argv)
{
    static figures f;
    strangers_line l;
    char root[64];
    pair p;

    if (read_line(&l, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = pair_open(&p, false, 0);
    if (err) {
        pair_close(&p);
        return co_say_error(err);
    }
    err = trial_folder(root);
    if (!err)
        err = measure(&l, &p, root, &f);
    if (!err)
        report(&l, &f);
    pair_close(&p);
    return trial_ended(err, root);
}
