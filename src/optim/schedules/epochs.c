/* epochs.c -- schedules whose rate changes between epochs and is constant within one: PyTorch's StepLR,
 * MultiStepLR and ExponentialLR in their closed forms.
 *
 *   step          base * gamma ^ floor(epoch / step_size)
 *   multistep     base * gamma ^ (milestones reached)
 *   exponential   base * gamma ^ epoch
 *
 * PyTorch multiplies the rate once per drop, so its result differs by one rounding per factor.
 */
#include "optim/optim_int.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/maths.h"

struct epochs_cfg {
    int64_t step_size;
    double gamma;
    char *milestones;
};

/* --- step ----------------------------------------------------------------------------------------------- */

static const co_option step_options[] = {{"step_size", CO_OPT_INT, offsetof(struct epochs_cfg, step_size),
                                          "30", "epochs between two drops", .min = 1, .max = 1e9},
                                         {"gamma", CO_OPT_FLOAT, offsetof(struct epochs_cfg, gamma), "0.1",
                                          "what a drop leaves of the rate", .min = 0, .max = 10},
                                         {0}};

static double step_lr(const void *cfg, double base, const co_pace *at)
{
    const struct epochs_cfg *c = cfg;

    return base * co_pow(c->gamma, (double)(pace_epoch(at) / c->step_size));
}

const co_schedule_def step_def = {
    .name = "step",
    .help = "drops by a factor every few epochs",
    .options = step_options,
    .cfg_size = sizeof(struct epochs_cfg),
    .lr = step_lr,
};

/* --- multistep ------------------------------------------------------------------------------------------ */

static const co_option multistep_options[] = {{"milestones", CO_OPT_STR,
                                               offsetof(struct epochs_cfg, milestones), "30,60,80",
                                               "epochs before which the rate drops, rising: [30,60]"},
                                              {"gamma", CO_OPT_FLOAT, offsetof(struct epochs_cfg, gamma),
                                               "0.1", "what a drop leaves of the rate", .min = 0, .max = 10},
                                              {0}};

/* The next whole number of "[30, 60]" or "30,60", with the comma after it. Returns false at the end of the
 * list and at anything that is not a number; *at then points past blanks and brackets. */
static bool next_milestone(const char **at, int64_t *out)
{
    char *end;

    while (isspace((unsigned char)**at) || **at == '[')
        ++*at;
    if (!isdigit((unsigned char)**at))
        return false;
    *out = strtoll(*at, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    *at = *end == ',' ? end + 1 : end;
    return true;
}

static co_err multistep_check(const void *cfg)
{
    const struct epochs_cfg *c = cfg;
    const char *text = c->milestones ? c->milestones : "", *at = text;
    int64_t last = 0, epoch;

    while (next_milestone(&at, &epoch)) {
        if (epoch <= last || epoch > 1000000000)
            return co_fail(
                CO_EINPUT,
                "schedule.milestones: \"%s\": %lld is not above the one before it (write rising epochs "
                "from 1 on: [30,60])",
                text, (long long)epoch);
        last = epoch;
    }
    while (*at == ']' || isspace((unsigned char)*at))
        at++;
    if (*at || last == 0)
        return co_fail(
            CO_EINPUT,
            "schedule.milestones: \"%s\" is not a list of epochs (write rising whole numbers: [30,60])", text);
    return CO_OK;
}

static double multistep_lr(const void *cfg, double base, const co_pace *at)
{
    const struct epochs_cfg *c = cfg;
    const char *text = c->milestones;
    int64_t epoch, reached = 0;

    while (next_milestone(&text, &epoch))
        reached += epoch <= pace_epoch(at);
    return base * co_pow(c->gamma, (double)reached);
}

const co_schedule_def multistep_def = {
    .name = "multistep",
    .help = "drops by a factor at given epochs",
    .options = multistep_options,
    .cfg_size = sizeof(struct epochs_cfg),
    .check = multistep_check,
    .lr = multistep_lr,
};

/* --- exponential ---------------------------------------------------------------------------------------- */

static const co_option exponential_options[] = {{"gamma", CO_OPT_FLOAT, offsetof(struct epochs_cfg, gamma),
                                                 "0.95", "what an epoch leaves of the rate", .min = 0,
                                                 .max = 10},
                                                {0}};

static double exponential_lr(const void *cfg, double base, const co_pace *at)
{
    const struct epochs_cfg *c = cfg;

    return base * co_pow(c->gamma, (double)pace_epoch(at));
}

const co_schedule_def exponential_def = {
    .name = "exponential",
    .help = "drops by a factor every epoch",
    .options = exponential_options,
    .cfg_size = sizeof(struct epochs_cfg),
    .lr = exponential_lr,
};
