/* room.c -- how many samples and tokens a slice of text can have: the capacity that its executor is built
 * for.
 *
 * A batch of B samples has at most the tokens of the B longest ones. A cut by tokens (token_cut.c) misses
 * its place by less than a sample, so no slice weighs more than a S-th of that and the heaviest sample.
 * Memory that a slice does not use is never touched.
 */
#include "train/plan_int.h"

#include "base/alloc.h"

/* Counts of samples by length. */
struct lengths {
    uint32_t *count; /* [most + 1] */
    int most, least;
};

static co_err count_lengths(struct lengths *out, const co_dataset *data,
                            int (*length)(const co_dataset *d, co_split s, uint32_t id))
{
    uint32_t n = data->count[CO_SPLIT_TRAIN];

    *out = (struct lengths){.least = INT32_MAX};
    for (uint32_t i = 0; i < n; i++) {
        int len = length(data, CO_SPLIT_TRAIN, i);
        out->most = len > out->most ? len : out->most;
        out->least = len < out->least ? len : out->least;
    }
    if (!(out->count = co_array((size_t)out->most + 1, sizeof *out->count)))
        return CO_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        out->count[length(data, CO_SPLIT_TRAIN, i)]++;
    return CO_OK;
}

/* The tokens of the `n` longest samples. */
static int64_t longest(const struct lengths *of, uint32_t n)
{
    int64_t sum = 0;

    for (int len = of->most; len > 0 && n > 0; len--) {
        uint32_t some = of->count[len] < n ? of->count[len] : n;
        sum += (int64_t)some * len;
        n -= some;
    }
    return sum;
}

static int least(int64_t a, int64_t b)
{
    int64_t n = a < b ? a : b;

    return n < INT32_MAX ? (int)n : INT32_MAX;
}

co_err room_for_training(co_plan *plan)
{
    const co_dataset *data = plan->data;
    uint32_t batch = plan->batch < data->count[CO_SPLIT_TRAIN] ? plan->batch : data->count[CO_SPLIT_TRAIN];
    struct lengths weight = {0}, x = {0}, y = {0};

    if (!co_is_text(&data->io) || batch == 0)
        return CO_OK;
    co_err err = count_lengths(&weight, data, co_sample_weight);
    if (!err)
        err = count_lengths(&x, data, data->length);
    if (!err && data->target_length)
        err = count_lengths(&y, data, data->target_length);
    if (!err) {
        int64_t most = 0;
        for (int cut = 0; cut < CUTS; cut++) {
            int64_t slice = longest(&weight, plan->cut[cut].n) / plan->cut[cut].used + 1 + weight.most;
            most = slice > most ? slice : most;
        }
        plan->room = (co_slice_shape){.n = least(batch, most / weight.least),
                                      .tokens = least(most, longest(&x, batch)),
                                      .targets = y.count ? least(most, longest(&y, batch)) : 0};
        if (plan->room.n > CO_SLICE_MAX)
            err = co_fail(
                CO_EINPUT,
                "data.batch_size=%u in %d slices may make slices of more than %d samples of text: take more "
                "trainer.slices or a smaller batch",
                plan->batch, plan->slices, CO_SLICE_MAX);
    }
    co_free(weight.count);
    co_free(x.count);
    co_free(y.count);
    return err;
}

co_slice_shape room_for_evaluation(const co_plan *plan)
{
    static const co_split splits[] = {CO_SPLIT_VAL, CO_SPLIT_TEST};
    uint32_t size = (uint32_t)plan->cfg.eval_slice;
    co_slice_shape most = {.n = (int)size, .tokens = 1, .targets = plan->data->target_length ? 1 : 0};

    for (size_t s = 0; s < CO_COUNT(splits); s++)
        for (uint32_t at = 0; at < plan->eval_count[splits[s]]; at += size) {
            co_slice_shape item = {0};
            for (uint32_t id = at; id < at + size && id < plan->eval_count[splits[s]]; id++) {
                co_slice_shape one = co_slice_of(plan->data, splits[s], &id, 1);
                item.tokens += one.tokens;
                item.targets += one.targets;
            }
            most.tokens = item.tokens > most.tokens ? item.tokens : most.tokens;
            most.targets = item.targets > most.targets ? item.targets : most.targets;
        }
    return most;
}
