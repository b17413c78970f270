/* tune_curve.c -- the learning-rate range test: the rate rises with every step, and the rate at which the
 * loss falls fastest is a good one (L. Smith, Cyclical Learning Rates, WACV 2017; the rules are those of
 * fastai and Lightning).
 *
 * Losses are smoothed by an exponential average (0.98) with bias correction. A smoothed loss above four times
 * the best ends the search. The result depends on the losses alone and is computed with our own maths
 * functions: the same bits give the same rate. */
#include "cli/tune_int.h"

#include <math.h>

#include "base/alloc.h"
#include "base/maths.h"

#define BETA     0.98
#define RUN_AWAY 4.0
#define NOISE    0.005 /* a smaller fall of the loss does not count */

co_err lr_curve_init(lr_curve *c, size_t room)
{
    *c = (lr_curve){.room = room, .weight = 1};
    c->lr = co_array(room, sizeof *c->lr);
    c->loss = co_array(room, sizeof *c->loss);
    c->smooth = co_array(room, sizeof *c->smooth);
    if (c->lr && c->loss && c->smooth)
        return CO_OK;
    lr_curve_fini(c);
    return CO_ENOMEM;
}

void lr_curve_fini(lr_curve *c)
{
    co_free(c->lr);
    co_free(c->loss);
    co_free(c->smooth);
    *c = (lr_curve){0};
}

void lr_curve_add(lr_curve *c, double lr, double loss)
{
    if (c->over || c->n == c->room)
        return;
    if (!isfinite(loss)) {
        c->over = true;
        return;
    }
    c->mean = BETA * c->mean + (1 - BETA) * loss;
    c->weight *= BETA; /* BETA^n: the weight that the average still lacks */
    double smooth = c->mean / (1 - c->weight);
    c->lr[c->n] = lr;
    c->loss[c->n] = loss;
    c->smooth[c->n++] = smooth;
    if (c->n == 1 || smooth < c->best)
        c->best = smooth;
    c->over = smooth > RUN_AWAY * c->best;
}

/* d smooth / d log(lr) at i, from its neighbours inside [first, last]. */
static double slope(const lr_curve *c, size_t i, size_t first, size_t last)
{
    size_t lo = i > first ? i - 1 : i, hi = i < last ? i + 1 : i;

    return (c->smooth[hi] - c->smooth[lo]) / (co_log(c->lr[hi]) - co_log(c->lr[lo]));
}

co_err lr_curve_suggest(lr_curve *c)
{
    size_t first = LR_SKIP_FIRST, last = c->n - 1 - LR_SKIP_LAST, at = first;
    double steepest = 0, least = INFINITY;

    if (c->n < LR_SKIP_FIRST + LR_SKIP_LAST + 2)
        return co_fail(CO_EINPUT,
                       "tune.lr: the loss ran away after %zu steps, too few to judge by: begin lower "
                       "(tune.lr_min), or take more tune.steps",
                       c->n);
    for (size_t i = first; i <= last; i++) {
        double s = slope(c, i, first, last);
        least = fmin(least, c->smooth[i]);
        if (s < steepest) {
            steepest = s;
            at = i;
        }
    }
    if (!(steepest < 0) || least > (1 - NOISE) * c->smooth[first])
        return co_fail(
            CO_EINPUT,
            "tune.lr: the loss falls nowhere between %g and %g: widen tune.lr_min and tune.lr_max, or "
            "leave tune.lr out",
            c->lr[0], c->lr[c->n - 1]);
    c->at = at;
    return CO_OK;
}
