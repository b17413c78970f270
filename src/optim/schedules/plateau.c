/* plateau.c -- the rate drops when a value stops getting better: PyTorch's ReduceLROnPlateau.
 *
 * The rate is base * drop, and drop changes after evaluations only. So the rate of a step depends only on its
 * number and on the results of earlier evaluations, which the checkpoint holds. A value that is not finite
 * never counts as better.
 */
#include "optim/optim_int.h"

#include <math.h>
#include <string.h>

enum { MODE_AUTO, MODE_MIN, MODE_MAX };
enum { THRESHOLD_REL, THRESHOLD_ABS };

struct plateau_cfg {
    char *monitor;
    int mode, threshold_mode;
    double factor, threshold, min_lr, eps;
    int64_t patience, cooldown;
};

#define AT(FIELD) offsetof(struct plateau_cfg, FIELD)
static const co_option options[] = {
    {"monitor", CO_OPT_STR, AT(monitor), "val/loss",
     "what has to improve: val/loss, val/acc, val/acc5, val/mae or val/rmse"},
    {"mode", CO_OPT_ENUM, AT(mode), "auto", "auto: max for accuracies, min for the rest",
     .choices = "auto|min|max"},
    {"factor", CO_OPT_FLOAT, AT(factor), "0.1", "what a drop leaves of the rate", .min = 0, .max = 0.9999999},
    {"patience", CO_OPT_INT, AT(patience), "10", "evaluations without improvement to tolerate", .min = 0,
     .max = 1e9},
    {"threshold", CO_OPT_FLOAT, AT(threshold), "1e-4", "smaller improvements do not count", .min = 0,
     .max = 1e30},
    {"threshold_mode", CO_OPT_ENUM, AT(threshold_mode), "rel",
     "whether the threshold is a fraction of the best value or a difference", .choices = "rel|abs"},
    {"cooldown", CO_OPT_INT, AT(cooldown), "0", "evaluations to ignore after a drop", .min = 0, .max = 1e9},
    {"min_lr", CO_OPT_FLOAT, AT(min_lr), "0", "the rate never drops below", .min = 0, .max = 1e6},
    {"eps", CO_OPT_FLOAT, AT(eps), "1e-8", "skip a drop that is not larger than this", .min = 0, .max = 1},
    {0}};
#undef AT

static co_err check(const void *cfg)
{
    const struct plateau_cfg *c = cfg;

    if (!c->monitor)
        return co_fail(
            CO_EINPUT,
            "schedule.monitor=null: plateau needs a value to monitor (try schedule.monitor=val/loss)");
    return CO_OK;
}

static double lr(const void *cfg, double base, const co_pace *at)
{
    (void)cfg;
    return base * at->drop;
}

const char *co_plateau_monitor(const void *cfg)
{
    return ((const struct plateau_cfg *)cfg)->monitor;
}

static bool better(const struct plateau_cfg *c, double value, double best)
{
    bool up = c->mode == MODE_MAX || (c->mode == MODE_AUTO && strstr(c->monitor, "acc"));

    if (c->threshold_mode == THRESHOLD_ABS)
        return up ? value > best + c->threshold : value < best - c->threshold;
    return up ? value > best * (c->threshold + 1) : value < best * (1 - c->threshold);
}

static void drop(const struct plateau_cfg *c, double base, co_plateau *p)
{
    double old = base * p->drop, lower = old * c->factor;
    bool least = lower < c->min_lr;

    if (old - (least ? c->min_lr : lower) > c->eps)
        p->drop = least ? c->min_lr / base : p->drop * c->factor;
}

void co_plateau_see(const void *cfg, double base, double value, co_plateau *p)
{
    const struct plateau_cfg *c = cfg;

    if (isfinite(value) && (p->seen == 0 || better(c, value, p->best))) {
        p->best = value;
        p->bad = 0;
    } else {
        p->bad++;
    }
    p->seen += isfinite(value) ? 1 : 0;
    if (p->cooldown > 0) {
        p->cooldown--;
        p->bad = 0;
    }
    if (p->bad > c->patience) {
        drop(c, base, p);
        p->cooldown = c->cooldown;
        p->bad = 0;
    }
}

const co_schedule_def plateau_def = {
    .name = "plateau",
    .help = "drops by a factor when a value stops getting better",
    .options = options,
    .cfg_size = sizeof(struct plateau_cfg),
    .check = check,
    .lr = lr,
    .watches = true,
};
