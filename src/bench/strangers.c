/* strangers.c -- what strangers at the port of a host's link cost: resnet18 on two hosts with TLS, without strangers
 * and with them, in turn; the medians count. The weights of all runs must be the same.
 *
 * The strangers come at the second host, spread over the time that the run before them took (see crowd.c). They use
 * this machine's CPUs too: `strangers_cpu_s` is the time of the thread that plays them.
 */
#include "bench/bench_int.h"

typedef struct strangers_line {
    int steps, batch, strangers;
} strangers_line;

typedef struct figures {
    strangers_line line;
    const pair *pair;
    const char *root;
    double carrier_cpu_s[2][DUEL_ROUNDS], own_cpu_s[DUEL_ROUNDS];
    double secs; /* of the last run without strangers */
    int came, refused;
} figures;

static co_err read_line(strangers_line *l, int *rounds, int argc, char **argv)
{
    const bench_flag flags[] = {{"--rounds", 1, DUEL_ROUNDS, rounds},
                                {"--steps", 1, 1000000, &l->steps},
                                {"--batch", 1, 65536, &l->batch},
                                {"--strangers", 1, 1000000, &l->strangers},
                                {0}};

    *l = (strangers_line){.steps = 100, .batch = 64, .strangers = 2000};
    return bench_flags("strangers", argc, argv, flags, NULL);
}

static void note(figures *f, const crowd *c, const trial *t, int arm, int round)
{
    f->carrier_cpu_s[arm][round] = c->carrier_cpu_s[1];
    if (!arm) {
        f->secs = trial_number(t, "wall_s");
        return;
    }
    f->own_cpu_s[round] = c->own_cpu_s;
    f->came = round == 0 || c->came < f->came ? c->came : f->came;
    f->refused = round == 0 || c->refused < f->refused ? c->refused : f->refused;
}

/* arm 1: among strangers. The first run of all is without them, so `secs` is known. */
static co_err once(void *ctx, int arm, int round, trial *t)
{
    static crowd c;
    figures *f = ctx;
    const char *words[PAIR_WORDS];
    char batch[40], steps[40];

    snprintf(batch, sizeof batch, "data.batch_size=%d", f->line.batch);
    snprintf(steps, sizeof steps, "trainer.max_steps=%d", f->line.steps);
    int n = pair_words(words, batch, steps, "trainer.devices=1");
    words[n++] = "--rdzv-id=" CROWD_RUN;
    CO_TRY(crowd_start(&c, arm ? f->line.strangers : 0, 0.8 * f->secs));
    co_err err = pair_train(t, f->pair, f->root, words, n), seen = crowd_stop(&c);
    if (!err)
        err = seen;
    if (!err)
        note(f, &c, t, arm, round);
    return err;
}

static void report(figures *f, const duel *d)
{
    const strangers_line *l = &f->line;

    printf("{\"task\":\"strangers\",\"model\":\"resnet18 64x64\",\"batch\":%d,\"steps\":%d,\"rounds\":%d,"
           "\"wall_s\":%.1f,\"strangers\":%d,\"least_came\":%d,\"least_refused\":%d,\"samples_per_s\":%.1f,"
           "\"among_strangers_samples_per_s\":%.1f,\"ratio\":%.3f,\"carrier_cpu_s\":%.2f,"
           "\"among_strangers_carrier_cpu_s\":%.2f,\"strangers_cpu_s\":%.2f,\"weights_sha256\":\"%s\"}\n",
           l->batch, l->steps, d->rounds, f->secs, l->strangers, f->came, f->refused, duel_rate(d, 0),
           duel_rate(d, 1), duel_ratio(d), median(f->carrier_cpu_s[0], d->rounds),
           median(f->carrier_cpu_s[1], d->rounds), median(f->own_cpu_s, d->rounds), d->sha);
}

int bench_strangers(int argc, char **argv)
{
    static figures f;
    static duel d = {.rounds = 5, .name = {"alone", "among strangers"}};
    char root[64];
    pair p;

    if (read_line(&f.line, &d.rounds, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    f.pair = &p;
    f.root = root;
    co_err err = pair_open(&p, false, 0);
    if (err) {
        pair_close(&p);
        return co_say_error(err);
    }
    err = trial_folder(root);
    if (!err)
        err = duel_run(&d, once, &f);
    if (!err)
        report(&f, &d);
    pair_close(&p);
    return trial_ended(err, root);
}
