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

/* Leaves without samples count as zero; their places hold another step's numbers. */
static double tree_of_leaves(const struct rank *rank, int64_t step, int which, int from, int n)
{
    uint32_t lo, hi;

    if (n > 1)
        return tree_of_leaves(rank, step, which, from, n / 2) +
               tree_of_leaves(rank, step, which, from + n / 2, n / 2);
    co_cut_range(&rank->plan->cut[cut_of_step(rank->plan, step)], from, &lo, &hi);
    const double *stat = (const double *)&rank->regions->leaf[step & 1][from];
    return lo < hi ? stat[which] : 0;
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
    double loss = tree_of_leaves(rank, step, CO_STAT_LOSS, 0, plan->slices);
    double count = tree_of_leaves(rank, step, CO_STAT_COUNT, 0, plan->slices);
    double right = tree_of_leaves(rank, step, CO_STAT_METRIC, 0, plan->slices);
    double inv = count > 0 ? 1.0 / count : 0;
    size_t parts = plan->chunks + (size_t)plan->rows.n;
    double squares = parts ? tree_of(&norm[0].squares, sizeof *norm / sizeof(double), parts) : 0;

    *out = (decision){.loss = loss * inv, .metric = right * inv, .count = count, .slice = -1, .step = step};
    out->top5 = tree_of_leaves(rank, step, CO_STAT_TOP5, 0, plan->slices) * inv;
    out->bad = tree_of_leaves(rank, step, STAT_BAD, 0, plan->slices);
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
