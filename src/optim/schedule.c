/* schedule.c -- the table of learning-rate schedules, the warm-up that may come before any of them, and
 * `constant`. To add a schedule: a file under schedules/ and a row here. */
#include "optim/optim_int.h"

#include <string.h>

const co_schedule_def *const co_schedules[] = {
    &constant_def,   &step_def,      &multistep_def, &exponential_def, &cosine_def,
    &polynomial_def, &one_cycle_def, &plateau_def,   &range_def,       NULL};

const co_schedule_def *co_schedule_find(const char *name)
{
    for (int i = 0; co_schedules[i]; i++)
        if (strcmp(co_schedules[i]->name, name) == 0)
            return co_schedules[i];
    return NULL;
}

static double constant_lr(const void *cfg, double base, const co_pace *at)
{
    (void)cfg;
    (void)at;
    return base;
}

static const co_option none[] = {{0}};

const co_schedule_def constant_def = {
    .name = "constant", .help = "the same rate at every step", .options = none, .lr = constant_lr};

int64_t pace_per_epoch(const co_pace *at)
{
    return at->steps_per_epoch > 0 ? at->steps_per_epoch : 1;
}

int64_t pace_epoch(const co_pace *at)
{
    return at->step / pace_per_epoch(at);
}

static co_pace after_warmup(const co_pace *absolute, int64_t warmup)
{
    co_pace own = *absolute;

    own.step = absolute->step > warmup ? absolute->step - warmup : 0;
    own.steps = absolute->steps - warmup;
    return own;
}

double co_schedule_lr(const co_schedule_def *def, const void *cfg, double base, int64_t warmup, double start,
                      const co_pace *absolute)
{
    co_pace own = after_warmup(absolute, warmup);

    if (absolute->step < warmup)
        return base * (start + (1 - start) * (double)absolute->step / (double)warmup);
    return def->lr(cfg, base, &own);
}

double co_schedule_momentum(const co_schedule_def *def, const void *cfg, int64_t warmup, const co_pace *absolute)
{
    co_pace own = after_warmup(absolute, warmup);

    return def->momentum ? def->momentum(cfg, &own) : 0;
}
