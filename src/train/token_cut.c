/* token_cut.c -- which samples of a batch belong to a leaf.
 *
 * A batch of anything but text is cut by samples (comm/tree.h). A batch of text is cut by tokens, so that
 * slices weigh the same. Its samples stay in order; with W tokens in all, cut j of S lies where the tokens
 * before it are nearest to j W / S (of two such places the first), but every slice has a sample. So the
 * cuts are a function of the lengths and of S, and a leaf has samples exactly when it has some in the cut
 * by samples: who adds what does not depend on lengths.
 *
 *     lengths 9 2 2 2 5 5 5, S = 3:   | 9 | 2 2 2 5 | 5 5 |       cuts near 10 and 20
 */
#include "train/plan_int.h"

static int64_t weight(const co_plan *plan, uint32_t id)
{
    return co_sample_weight(plan->data, CO_SPLIT_TRAIN, id);
}

/* Walks the cuts in order. */
struct walk {
    const co_plan *plan;
    const uint32_t *ids;
    uint32_t n, at;        /* samples of the batch; those before the last cut considered */
    int64_t before, total; /* tokens of samples [0, at), of all */
};

/* Moves on to the place nearest to cut j of `slices`. */
static void nearest(struct walk *walk, int64_t j, int64_t slices)
{
    while (walk->at < walk->n) {
        int64_t here = walk->before * slices - j * walk->total; /* < 0: the cut lies further right */
        int64_t next = here + weight(walk->plan, walk->ids[walk->at]) * slices;
        if (here >= 0 || next >= -here)
            return;
        walk->before += weight(walk->plan, walk->ids[walk->at++]);
    }
}

void slice_range(const co_plan *plan, const uint32_t *ids, int64_t step, int leaf, uint32_t *lo, uint32_t *hi)
{
    const co_cut *cut = &plan->cut[cut_of_step(plan, step)];
    int64_t slices = cut->used, slice = leaf / (cut->slices / cut->used);
    struct walk walk = {.plan = plan, .ids = ids, .n = cut->n};

    co_cut_range(cut, leaf, lo, hi);
    if (!plan->data->length || *lo == *hi || cut->n < (uint32_t)slices)
        return;
    for (uint32_t i = 0; i < cut->n; i++)
        walk.total += weight(plan, ids[i]);
    *hi = 0;
    for (int64_t j = 1; j <= slice + 1; j++) {
        uint32_t last = cut->n - (uint32_t)(slices - j), cut_at = cut->n;
        if (j < slices) {
            nearest(&walk, j, slices);
            cut_at = walk.at < *hi + 1 ? *hi + 1 : walk.at > last ? last : walk.at;
        }
        *lo = *hi;
        *hi = cut_at;
    }
}
