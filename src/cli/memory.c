/* memory.c -- what the record of a run remembers across a stop: sums over the epoch in progress, and the
 * recent losses that spikes are measured against.
 *
 * A checkpoint holds it in its manifest (extra.record), in the state right after the checkpoint's step was
 * recorded. So a run that continues inside an epoch records the means of the whole epoch.
 */
#include "cli/train_int.h"

#include <stddef.h>

/* Where each number is stored; saving and loading both use these tables. */
static const struct {
    const char *key;
    size_t offset;
} reals[] = {{"epoch_loss", offsetof(training, epoch_loss)},
             {"epoch_metric", offsetof(training, epoch_metric)},
             {"mean_loss", offsetof(training, mean_loss)},
             {"mean_metric", offsetof(training, mean_metric)},
             {"spike_mean", offsetof(training, spikes.mean)},
             {"spike_variance", offsetof(training, spikes.variance)},
             {"spike_level", offsetof(training, spikes.level)}},
  counts[] = {{"epoch_samples", offsetof(training, epoch_samples)},
              {"epochs_closed", offsetof(training, epochs_closed)},
              {"spike_seen", offsetof(training, spikes.seen)},
              {"spike_told", offsetof(training, spikes.told)}};

json_t *memory_json(void *ctx)
{
    const char *s = ctx;
    json_t *out = json_object();

    for (size_t i = 0; i < CO_COUNT(reals); i++)
        json_object_set_new(out, reals[i].key,
                            co_json_num(*(const double *)(const void *)(s + reals[i].offset)));
    for (size_t i = 0; i < CO_COUNT(counts); i++)
        json_object_set_new(out, counts[i].key,
                            json_integer(*(const int64_t *)(const void *)(s + counts[i].offset)));
    return out;
}

void memory_recall(training *s)
{
    const json_t *from = co_plan_facts_of(s->plan)->remembered;
    char *to = (char *)s;
    double real;
    long long count;

    for (size_t i = 0; i < CO_COUNT(reals); i++)
        if (co_json_f64(from, reals[i].key, &real))
            *(double *)(void *)(to + reals[i].offset) = real;
    for (size_t i = 0; i < CO_COUNT(counts); i++)
        if (co_json_i64(from, counts[i].key, &count) && count >= 0)
            *(int64_t *)(void *)(to + counts[i].offset) = count;
}
