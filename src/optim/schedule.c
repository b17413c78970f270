/* schedule.c -- the table of learning-rate schedules. */
#include "optim/optim_int.h"

#include <string.h>

static double constant_lr(const void *cfg, double base, const co_pace *at)
{
    (void)cfg;
    (void)at;
    return base;
}

static const co_option none[] = {{0}};

const co_schedule_def constant_def = {
    .name = "constant", .help = "the same rate all along", .options = none, .lr = constant_lr};

const co_schedule_def *const co_schedules[] = {&constant_def, NULL};

const co_schedule_def *co_schedule_find(const char *name)
{
    for (int i = 0; co_schedules[i]; i++)
        if (strcmp(co_schedules[i]->name, name) == 0)
            return co_schedules[i];
    return NULL;
}
