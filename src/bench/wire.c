/* wire.c -- how close a step of two hosts comes to the bound that compute and wire set.
 *
 * Two hosts with one rank on one CPU each, TLS, joined by a bridge at 1 Gbit/s each way. A step cannot be shorter than
 * the time a rank computes, nor than the time the planned bytes take on the wire:
 *
 *     wire       planned bytes of a host and step / rate
 *     compute    the time that a rank computes in a step: passes, adding up, applying
 *     ratio      step / max(compute, wire)
 *
 * A rank slows down while the carrier uses the same CPU, so one host with two ranks on the same CPUs runs too,
 * in turn: `one_host_ms` is its step, and `ratio_one_host` is step / max(one_host, wire). The medians count, and all
 * runs must end with the same weights.
 */
#include "bench/bench_int.h"

typedef struct wire_line {
    int mbit, batch, rounds, steps;
} wire_line;

typedef struct figures {
    double step_ms[DUEL_ROUNDS], compute_ms[DUEL_ROUNDS], one_host_ms[DUEL_ROUNDS];
    double planned, sent; /* bytes a step */
    char sha[65];
} figures;

static co_err read_line(wire_line *l, int argc, char **argv)
{
    const bench_flag flags[] = {{"--mbit", 1, 1000000, &l->mbit},
                                {"--batch", 1, 65536, &l->batch},
                                {"--rounds", 1, DUEL_ROUNDS, &l->rounds},
                                {"--steps", 1, 1000000, &l->steps},
                                {0}};

    *l = (wire_line){.mbit = 1000, .batch = 64, .rounds = 5, .steps = 10};
    return bench_flags("wire", argc, argv, flags, NULL);
}

/* The slower host's. */
static double compute_of(const trial *t)
{
    double a = pair_figure(t, 0, "compute_s"), b = pair_figure(t, 1, "compute_s");

    return 1e3 * (a > b ? a : b) / trial_number(t, "steps");
}

static co_err measure(const wire_line *l, const pair *p, const char *root, figures *f)
{
    const char *words[PAIR_WORDS];
    char batch[40], steps[40];
    trial t;

    snprintf(batch, sizeof batch, "data.batch_size=%d", l->batch);
    snprintf(steps, sizeof steps, "trainer.max_steps=%d", l->steps + 1); /* the first is not timed */
    for (int i = 0; i < l->rounds; i++) {
        pair_words(words, batch, steps, "trainer.devices=2");
        co_err err = trial_once(&t, root, words);
        if (!err)
            err = trial_same_weights(f->sha, &t);
        f->one_host_ms[i] = err ? 0 : 1e3 * l->batch / trial_number(&t, "samples_per_s");
        trial_free(&t);
        CO_TRY(err);
        err = pair_train(&t, p, root, words, pair_words(words, batch, steps, "trainer.devices=1"));
        if (!err)
            err = trial_same_weights(f->sha, &t);
        if (!err) {
            f->step_ms[i] = 1e3 * l->batch / trial_number(&t, "samples_per_s");
            f->compute_ms[i] = compute_of(&t);
            f->planned = trial_number(&t, "planned_wire_bytes");
            f->sent = pair_figure(&t, 0, "sent_bytes") / trial_number(&t, "steps");
        }
        trial_free(&t);
        CO_TRY(err);
        co_say("round %d of %d: step %.0f ms, compute %.0f ms, one host %.0f ms", i + 1, l->rounds,
               f->step_ms[i], f->compute_ms[i], f->one_host_ms[i]);
    }
    return CO_OK;
}

static void report(const wire_line *l, figures *f)
{
    double wire = f->planned * 8 / (1e3 * l->mbit), ratio[DUEL_ROUNDS], of_one[DUEL_ROUNDS];

    for (int i = 0; i < l->rounds; i++) {
        ratio[i] = f->step_ms[i] / (f->compute_ms[i] > wire ? f->compute_ms[i] : wire);
        of_one[i] = f->step_ms[i] / (f->one_host_ms[i] > wire ? f->one_host_ms[i] : wire);
    }
    printf(
        "{\"task\":\"wire\",\"model\":\"resnet18 64x64\",\"batch\":%d,\"mbit\":%d,\"tls\":true,\"rounds\":%d,"
        "\"step_ms\":%.1f,\"compute_ms\":%.1f,\"wire_ms\":%.1f,\"ratio\":%.3f,\"one_host_ms\":%.1f,"
        "\"ratio_one_host\":%.3f,\"planned_bytes_a_step\":%.0f,\"sent_bytes_a_step\":%.0f}\n",
        l->batch, l->mbit, l->rounds, median(f->step_ms, l->rounds), median(f->compute_ms, l->rounds), wire,
        median(ratio, l->rounds), median(f->one_host_ms, l->rounds), median(of_one, l->rounds), f->planned,
        f->sent);
}

int bench_wire(int argc, char **argv)
{
    static figures f;
    wire_line l;
    char root[64];
    pair p;

    if (read_line(&l, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = pair_open(&p, true, l.mbit);
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
