/* duel.c -- two ways to train, in turn, so that both meet the same machine.
 *
 * Every round runs both; odd rounds run the second first, so that what the machine does by and by (it warms up, it
 * fills its caches) favours neither. What counts is the median of the rounds' ratios: a round that something
 * disturbed does not move it. All runs must end with the same weights.
 */
#include "bench/bench_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

co_err trial_same_weights(char first[65], const trial *t)
{
    const char *sha = co_json_str(t->summary, "weights_sha256");

    if (!sha || strlen(sha) != 64)
        return co_fail(CO_EFAIL, "a summary has no weights_sha256");
    if (!first[0])
        memcpy(first, sha, 65);
    return strcmp(first, sha) == 0
               ? CO_OK
               : co_fail(CO_EFAIL, "a run ended with the weights %.16s, the first with %.16s", sha, first);
}

static co_err run_arm(duel *d, int arm, int round, duel_once once, void *ctx)
{
    trial t = {0};
    co_err err = once(ctx, arm, round, &t);

    if (!err)
        err = trial_same_weights(d->sha, &t);
    if (!err) {
        d->rate[arm][round] = trial_number(&t, "samples_per_s");
        d->secs[arm][round] = t.secs;
        d->cpu_s[arm][round] = t.cpu_s;
        d->beside_s[arm][round] = t.beside_s;
    }
    trial_free(&t);
    return err;
}

co_err duel_run(duel *d, duel_once once, void *ctx)
{
    for (int i = 0; i < d->rounds; i++) {
        for (int arm = 0; arm < 2; arm++)
            CO_TRY(run_arm(d, i % 2 ? 1 - arm : arm, i, once, ctx));
        if (!(d->rate[0][i] > 0) || !(d->rate[1][i] > 0))
            return co_fail(CO_EFAIL, "a summary has no samples_per_s; give more --steps");
        d->ratio[i] = d->by_time ? d->secs[1][i] / d->secs[0][i] : d->rate[1][i] / d->rate[0][i];
        if (d->by_time)
            co_say("round %d of %d: %s %.0f ms, %s %.0f ms", i + 1, d->rounds, d->name[0],
                   1e3 * d->secs[0][i], d->name[1], 1e3 * d->secs[1][i]);
        else
            co_say("round %d of %d: %s %.1f samples/s, %s %.1f: %.3f, by CPU time %.3f", i + 1, d->rounds,
                   d->name[0], d->rate[0][i], d->name[1], d->rate[1][i], d->ratio[i],
                   d->cpu_s[0][i] / d->cpu_s[1][i]);
    }
    return CO_OK;
}

double duel_median(const double *x, int n)
{
    double copy[DUEL_ROUNDS];

    memcpy(copy, x, (size_t)n * sizeof *x);
    return median(copy, n);
}

double duel_ratio(const duel *d)
{
    return duel_median(d->ratio, d->rounds);
}

double duel_cpu_ratio(const duel *d)
{
    double ratio[DUEL_ROUNDS];

    for (int i = 0; i < d->rounds; i++)
        ratio[i] = d->cpu_s[0][i] / d->cpu_s[1][i];
    return duel_median(ratio, d->rounds);
}

double duel_beside(const duel *d)
{
    double part[DUEL_ROUNDS];

    for (int i = 0; i < d->rounds; i++)
        part[i] = (d->beside_s[1][i] - d->beside_s[0][i]) / (d->cpu_s[1][i] - d->beside_s[1][i]);
    return duel_median(part, d->rounds);
}

/* Of n values, `k` or fewer lie below the median with the probability of as many heads in n throws of a coin. The
 * interval leaves out the values at both ends that are below, or above, with 2.5 % or less. */
void duel_interval(const double *x, int n, double *low, double *high)
{
    double copy[DUEL_ROUNDS], heads = ldexp(1, -n), sum = heads;
    int left_out = 0;

    while (sum <= 0.025 && left_out < n / 2) {
        left_out++;
        heads *= (double)(n - left_out + 1) / left_out;
        sum += heads;
    }
    left_out -= left_out > 0;
    memcpy(copy, x, (size_t)n * sizeof *x);
    qsort(copy, (size_t)n, sizeof *copy, by_double);
    *low = copy[left_out];
    *high = copy[n - 1 - left_out];
}

double duel_rate(const duel *d, int arm)
{
    return duel_median(d->rate[arm], d->rounds);
}
