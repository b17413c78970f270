/* hosts.c -- what a second host costs: two hosts with one rank on one CPU each, TLS between them, against one host with
 * two ranks on the same two CPUs. The two alternate; the medians count. The hosts talk over loopback, or with --lan
 * each has a network namespace of its own. */
#include "bench/bench_int.h"

enum { MAX_ROUNDS = 50 };

typedef struct host_line {
    int rounds;
    bool lan;
    int mbit;
    char batch[40], steps[40];
} host_line;

static co_err read_line(host_line *l, int argc, char **argv)
{
    const char *mbit = NULL, *rounds = NULL, *steps = NULL;
    bool word = argc > 1 && argv[1][0] != '-', json = false; /* it always is JSON */
    int batch = 256, n = 6;

    *l = (host_line){.rounds = 5};
    if (word)
        CO_TRY(bench_number("hosts", "the batch", argv[1], 65536, &batch));
    CO_TRY(co_flags_parse("bench hosts", argc - word, argv + word,
                          (const co_flag[]){{"--lan", .on = &l->lan},
                                            {"--mbit", "N", .value = &mbit},
                                            {"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--json", .on = &json},
                                            {0}}));
    CO_TRY(bench_number("hosts", "--mbit", mbit, 1000000, &l->mbit));
    CO_TRY(bench_number("hosts", "--rounds", rounds, MAX_ROUNDS, &l->rounds));
    CO_TRY(bench_number("hosts", "--steps", steps, 1000000, &n));
    snprintf(l->batch, sizeof l->batch, "data.batch_size=%d", batch);
    snprintf(l->steps, sizeof l->steps, "trainer.max_steps=%d", n);
    return CO_OK;
}

static co_err measure(const host_line *l, const pair *p, const char *root)
{
    const char *words[PAIR_WORDS];
    double rate[2][MAX_ROUNDS], ratio[MAX_ROUNDS], sent = 0, planned = 0;
    co_err err = CO_OK;
    trial t;

    for (int i = 0; i < l->rounds; i++) {
        for (int arm = 0; arm < 2; arm++) {
            int n = pair_words(words, l->batch, l->steps, arm ? "trainer.devices=1" : "trainer.devices=2");
            err = arm ? pair_train(&t, p, root, words, n) : trial_once(&t, root, words);
            rate[arm][i] = err ? 0 : trial_number(&t, "samples_per_s");
            if (!err && arm) {
                sent = pair_figure(&t, 0, "sent_bytes") / trial_number(&t, "steps");
                planned = trial_number(&t, "planned_wire_bytes");
            }
            trial_free(&t);
            CO_TRY(err);
        }
        ratio[i] = rate[1][i] / rate[0][i];
    }
    printf("{\"task\":\"hosts\",\"model\":\"resnet18 64x64\",\"batch\":%s,\"network\":\"%s\",\"mbit\":%d,"
           "\"one_host_samples_per_s\":%.1f,\"two_hosts_samples_per_s\":%.1f,\"ratio\":%.3f,"
           "\"sent_bytes_a_step\":%.0f,\"planned_bytes_a_step\":%.0f}\n",
           l->batch + sizeof "data.batch_size", p->home >= 0 ? "bridge" : "loopback", l->mbit,
           median(rate[0], l->rounds), median(rate[1], l->rounds), median(ratio, l->rounds), sent, planned);
    return CO_OK;
}

int bench_hosts(int argc, char **argv)
{
    host_line l;
    char root[64];
    pair p;

    if (read_line(&l, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = pair_open(&p, l.lan, l.mbit);
    if (err) {
        pair_close(&p);
        return co_say_error(err);
    }
    err = trial_folder(root);
    if (!err)
        err = measure(&l, &p, root);
    pair_close(&p);
    return trial_ended(err, root);
}
