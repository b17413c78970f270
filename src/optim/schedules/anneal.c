/* anneal.c -- schedules that go from one rate to another over the whole run, smoothly.
 *
 *   cosine       end + (base - end) * (1 + cos(pi p)) / 2        PyTorch's CosineAnnealingLR
 *   polynomial   end + (base - end) * (1 - p) ^ power            PyTorch's PolynomialLR, whose end is 0
 *   range        start * (end / start) ^ p                       for a search of the learning rate
 *
 * p is the part of the run that is done: t / T, where t of T steps (or epochs, if the option says so) precede
 * this one. The end rate would therefore come one step after the last. Only `range` divides by T - 1, so its
 * last step has the end rate.
 */
#include "optim/optim_int.h"

#include "base/maths.h"

enum { BY_STEP, BY_EPOCH };

struct anneal_cfg {
    double end, power, start;
    int by;
};

static double part_done(int by, const co_pace *at)
{
    int64_t t = at->step, whole = at->steps;

    if (by == BY_EPOCH) {
        t = pace_epoch(at);
        whole = (at->steps + pace_per_epoch(at) - 1) / pace_per_epoch(at);
    }
    return t >= whole ? 1 : (double)t / (double)whole;
}

/* --- cosine --------------------------------------------------------------------------------------------- */

static const co_option cosine_options[] = {{"eta_min", CO_OPT_FLOAT, offsetof(struct anneal_cfg, end), "0",
                                            "the rate at the end", .min = 0, .max = 1e6},
                                           {"by", CO_OPT_ENUM, offsetof(struct anneal_cfg, by), "step",
                                            "whether the rate falls every step or every epoch",
                                            .choices = "step|epoch"},
                                           {0}};

/* (1 + cos(pi p)) / 2 is the square of cos(pi p / 2); in that form it keeps its digits where it is small. */
static double cosine_lr(const void *cfg, double base, const co_pace *at)
{
    const struct anneal_cfg *c = cfg;
    double p = part_done(c->by, at), wave = p < 1 ? co_cos(0.5 * PI * p) : 0;

    return c->end + (base - c->end) * (wave * wave);
}

const co_schedule_def cosine_def = {
    .name = "cosine",
    .help = "falls along half a cosine over the whole run",
    .options = cosine_options,
    .cfg_size = sizeof(struct anneal_cfg),
    .lr = cosine_lr,
};

/* --- polynomial ----------------------------------------------------------------------------------------- */

static const co_option polynomial_options[] = {
    {"power", CO_OPT_FLOAT, offsetof(struct anneal_cfg, power), "1",
     "1: a straight line; more: faster at first", .min = 0, .max = 100},
    {"end", CO_OPT_FLOAT, offsetof(struct anneal_cfg, end), "0", "the rate at the end", .min = 0, .max = 1e6},
    {"by", CO_OPT_ENUM, offsetof(struct anneal_cfg, by), "step",
     "whether the rate falls every step or every epoch", .choices = "step|epoch"},
    {0}};

static double polynomial_lr(const void *cfg, double base, const co_pace *at)
{
    const struct anneal_cfg *c = cfg;

    return c->end + (base - c->end) * co_pow(1 - part_done(c->by, at), c->power);
}

const co_schedule_def polynomial_def = {
    .name = "polynomial",
    .help = "falls as a power of the remaining part of the run",
    .options = polynomial_options,
    .cfg_size = sizeof(struct anneal_cfg),
    .lr = polynomial_lr,
};

/* --- range ---------------------------------------------------------------------------------------------- */

static const co_option range_options[] = {{"start_lr", CO_OPT_FLOAT, offsetof(struct anneal_cfg, start),
                                           "1e-6", "the first step's rate", .min = 1e-12, .max = 1e6},
                                          {"end_lr", CO_OPT_FLOAT, offsetof(struct anneal_cfg, end), "1",
                                           "the last step's rate", .min = 1e-12, .max = 1e6},
                                          {0}};

static double range_lr(const void *cfg, double base, const co_pace *at)
{
    const struct anneal_cfg *c = cfg;

    (void)base;
    if (at->step <= 0)
        return c->start;
    if (at->step >= at->steps - 1)
        return c->end;
    return c->start * co_pow(c->end / c->start, (double)at->step / (double)(at->steps - 1));
}

const co_schedule_def range_def = {
    .name = "range",
    .help = "from one rate to another by equal factors, independent of optim.lr",
    .options = range_options,
    .cfg_size = sizeof(struct anneal_cfg),
    .lr = range_lr,
};
