/* one_cycle.c -- the rate rises once and falls once, and the momentum does the opposite (Smith and Topin,
 * 2018), as in PyTorch's OneCycleLR:
 *
 *   rate       max / div_factor  ->  max  ->  max / div_factor / final_div_factor
 *   momentum   max_momentum      ->  base_momentum  ->  max_momentum
 *
 * The first phase ends at step pct_start * steps - 1, which may be a fraction; the last ends at steps - 1.
 * With three phases, the rate first falls back to where the rise began, in as many steps as it rose, and then
 * to its final value. Max is optim.lr.
 */
#include "optim/optim_int.h"

#include "base/maths.h"

enum { ANNEAL_COS, ANNEAL_LINEAR };

struct one_cycle_cfg {
    double pct_start, div_factor, final_div_factor, base_momentum, max_momentum;
    int anneal;
    bool three_phase, cycle_momentum;
};

#define AT(FIELD) offsetof(struct one_cycle_cfg, FIELD)
static const co_option options[] = {
    {"pct_start", CO_OPT_FLOAT, AT(pct_start), "0.3", "part of the run in which the rate rises", .min = 0,
     .max = 1},
    {"div_factor", CO_OPT_FLOAT, AT(div_factor), "25", "the first rate is optim.lr divided by this",
     .min = 1e-6, .max = 1e12},
    {"final_div_factor", CO_OPT_FLOAT, AT(final_div_factor), "1e4",
     "the last rate is the first divided by this", .min = 1e-6, .max = 1e12},
    {"anneal", CO_OPT_ENUM, AT(anneal), "cos", "the shape of rise and fall", .choices = "cos|linear"},
    {"three_phase", CO_OPT_BOOL, AT(three_phase), "false", "fall to the first rate, then to the last"},
    {"cycle_momentum", CO_OPT_BOOL, AT(cycle_momentum), "true",
     "lower the momentum (Adam: beta1) while the rate rises"},
    {"base_momentum", CO_OPT_FLOAT, AT(base_momentum), "0.85", "the momentum where the rate is highest",
     .min = 1e-6, .max = 0.9999999},
    {"max_momentum", CO_OPT_FLOAT, AT(max_momentum), "0.95", "the momentum where the rate is lowest",
     .min = 1e-6, .max = 0.9999999},
    {0}};
#undef AT

static co_err check(const void *cfg)
{
    const struct one_cycle_cfg *c = cfg;

    if (c->three_phase && c->pct_start > 0.5)
        return co_fail(
            CO_EINPUT,
            "schedule.pct_start=%g with schedule.three_phase=true: rise and fall take that part each; "
            "it can be 0.5 at most",
            c->pct_start);
    return CO_OK;
}

static double between(int anneal, double from, double to, double part)
{
    if (anneal == ANNEAL_LINEAR)
        return (to - from) * part + from;
    return to + (from - to) / 2 * (co_cos(PI * part) + 1);
}

/* The phase of the step, from 0, and how much of that phase has passed. */
static int phase_at(const struct one_cycle_cfg *c, const co_pace *at, double *part)
{
    double rise = c->pct_start * (double)at->steps, step = (double)at->step, begin = 0;
    double end[3] = {rise - 1, 2 * rise - 2, (double)at->steps - 1};
    int last = c->three_phase ? 2 : 1, phase = 0;

    if (!c->three_phase)
        end[1] = end[2];
    while (phase < last && step > end[phase])
        begin = end[phase++];
    *part = end[phase] > begin && step < end[phase] ? (step - begin) / (end[phase] - begin) : 1;
    return phase;
}

static double lr(const void *cfg, double base, const co_pace *at)
{
    const struct one_cycle_cfg *c = cfg;
    double first = base / c->div_factor, last = first / c->final_div_factor, part;
    int phase = phase_at(c, at, &part);

    if (phase == 0)
        return between(c->anneal, first, base, part);
    if (c->three_phase && phase == 1)
        return between(c->anneal, base, first, part);
    return between(c->anneal, c->three_phase ? first : base, last, part);
}

static double momentum(const void *cfg, const co_pace *at)
{
    const struct one_cycle_cfg *c = cfg;
    double part;

    if (!c->cycle_momentum)
        return 0;
    switch (phase_at(c, at, &part)) {
    case 0:
        return between(c->anneal, c->max_momentum, c->base_momentum, part);
    case 1:
        return between(c->anneal, c->base_momentum, c->max_momentum, part);
    default:
        return c->max_momentum;
    }
}

const co_schedule_def one_cycle_def = {
    .name = "one_cycle",
    .help = "rises to optim.lr, then falls far below its start; momentum does the opposite",
    .options = options,
    .cfg_size = sizeof(struct one_cycle_cfg),
    .check = check,
    .lr = lr,
    .momentum = momentum,
};
