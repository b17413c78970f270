/* decide.c -- what becomes of a step once its sum is there: loss, norm, learning rate, apply it or not.
 *
 * Every rank decides by itself. All of them read the same bytes and add them up along the same fixed trees,
 * so all of them come to the same decision.
 */
#include "train/rank_int.h"

#include <math.h>

#include "optim/optim.h"

double tree_of(const double *x, size_t stride, size_t n)
{
    if (n == 1)
        return *x;
    size_t left = (size_t)1 << (63 - __builtin_clzll(n - 1)); /* largest power of two below n */
    return tree_of(x, stride, left) + tree_of(x + left * stride, stride, n - left);
}

/* total = the statistics of leaves [from, from + n), each along the tree. Leaves without samples count as zero; their
 * places hold another step's numbers. */
static void tree_of_leaves(const leaf_stat *leaf, const co_cut *cut, int from, int n, double total[LEAF_STATS])
{
    double right[LEAF_STATS];

    if (n == 1) {
        bool empty = co_cut_is_empty(cut, from, from + 1);
        for (int i = 0; i < LEAF_STATS; i++)
            total[i] = empty ? 0 : ((const double *)&leaf[from])[i];
        return;
    }
    tree_of_leaves(leaf, cut, from, n / 2, total);
    tree_of_leaves(leaf, cut, from + n / 2, n / 2, right);
    for (int i = 0; i < LEAF_STATS; i++)
        total[i] = total[i] + right[i];
}

static int first_not_finite(const struct rank *rank, int64_t step)
{
    const co_cut *cut = &rank->plan->cut[cut_of_step(rank->plan, step)];

    for (int i = 0; i < rank->plan->slices; i++) {
        uint32_t lo, hi;
        co_cut_range(cut, i, &lo, &hi);
        if (lo < hi && !isfinite(rank->regions->leaf[step & 1][i].stat[CO_STAT_LOSS]))
            return i;
    }
    return -1;
}

/* The step's learning rate and momentum. */
static void pace(const struct rank *rank, int64_t step, decision *out)
{
    const co_plan *plan = rank->plan;
    const co_schedule_def *def = plan->spec.schedule;
    co_pace at = {
        .step = step - 1, .steps = plan->units.steps, .steps_per_epoch = plan->units.steps_per_epoch, .drop = 1};

    out->lr = plan->recipe.lr;
    if (!def)
        return;
    if (def->watches)
        at.drop = watch_get(rank->regions->ctl->watch[evals_before(&plan->units, step) & 1]).plateau.drop;
    out->lr = co_schedule_lr(def, plan->spec.schedule_cfg, plan->recipe.lr, plan->recipe.warmup,
                             plan->cfg.warmup_start, &at);
    out->momentum = co_schedule_momentum(def, plan->spec.schedule_cfg, plan->recipe.warmup, &at);
}

void decide(const struct rank *rank, int64_t step, decision *out)
{
    const co_plan *plan = rank->plan;
    const chunk_stat *norm = rank->regions->norm[step & 1];
    double total[LEAF_STATS];

    tree_of_leaves(rank->regions->leaf[step & 1], &plan->cut[cut_of_step(plan, step)], 0, plan->slices, total);
    double loss = total[CO_STAT_LOSS], count = total[CO_STAT_COUNT];
    double inv = count > 0 ? 1.0 / count : 0;
    size_t parts = plan->chunks + (size_t)plan->rows.n;
    double squares = parts ? tree_of(&norm[0].squares, sizeof *norm / sizeof(double), parts) : 0;

    *out = (decision){
        .loss = loss * inv, .metric = total[CO_STAT_METRIC] * inv, .count = count, .slice = -1, .step = step};
    out->top5 = total[CO_STAT_TOP5] * inv;
    out->bad = total[STAT_BAD];
    pace(rank, step, out);
    out->norm = sqrt(squares) * inv;
    out->finite = isfinite(loss) && isfinite(out->norm);
    for (size_t c = 0; c < parts; c++)
        out->finite = out->finite && norm[c].finite;
    if (!out->finite)
        out->slice = first_not_finite(rank, step);
    out->scale = (float)(inv * co_clip_factor(out->norm, plan->recipe.clip_norm));
    out->inv_samples = (float)(1.0 / samples_of_step(plan, step));
    out->apply = out->finite && count > 0 && !must_stop(plan, out->bad);
    out->t =
        atomic_load_explicit(&rank->regions->ctl->applied[(step - 1) & 1], memory_order_relaxed) + out->apply;
}
