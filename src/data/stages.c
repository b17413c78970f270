/* stages.c -- which part of filling a sample takes how much CPU time, for `cohort bench data`.
 *
 * A lap gives the time since the one before to a stage, so that the stages add up to the whole. The clock is the
 * thread's CPU time: other programs on the machine do not count.
 *
 * Cost: a system call a lap, some tenths of a microsecond. The bench measures that and takes it out.
 */
#include "data/data.h"

#include <time.h>

static const struct {
    const char *name, *help;
} rows[CO_STAGES] = {
    [CO_STAGE_READ] = {"read", "the file's bytes, from memory (data.cache_mb) or disk"},
    [CO_STAGE_DECODE] = {"decode", "bytes to pixels"},
    [CO_STAGE_DRAW] = {"draw", "random choices"},
    [CO_STAGE_CROP] = {"crop", "resize and crop"},
    [CO_STAGE_BRIGHTNESS] = {"brightness", "colour jitter"},
    [CO_STAGE_CONTRAST] = {"contrast", "colour jitter"},
    [CO_STAGE_SATURATION] = {"saturation", "colour jitter"},
    [CO_STAGE_HUE] = {"hue", "colour jitter"},
    [CO_STAGE_TRIVIAL] = {"trivial", "TrivialAugmentWide"},
    [CO_STAGE_NORMALISE] = {"normalise", "flip, and bytes to floats"},
    [CO_STAGE_ERASE] = {"erase", "random erasing"},
    [CO_STAGE_MIX] = {"mix", "MixUp, CutMix"},
    [CO_STAGE_FILL] = {"fill", "labels, tokens, ratings, all else"},
};

const char *co_stage_name(co_stage s)
{
    return rows[s].name;
}

const char *co_stage_help(co_stage s)
{
    return rows[s].help;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void co_stage_begin(co_stage_times *t)
{
    if (t)
        t->last = cpu_ns();
}

void co_stage_lap(co_stage_times *t, co_stage s)
{
    if (!t)
        return;
    uint64_t now = cpu_ns();
    t->ns[s] += now - t->last;
    t->laps[s]++;
    t->last = now;
}
