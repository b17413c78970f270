/* data_measure.c -- times the stages of loading, and the loader, of each arm in turn.
 *
 * A round loads the same steps of the training for every arm. The next round goes on with later steps, so random
 * choices vary from round to round and are the same for all arms. In a round, each arm fills its samples by this
 * thread, with a clock at every stage, and then loads them again by a loader with one thread and no clocks
 * inside.
 *
 * All times are CPU times: of this thread, and for the loader of the whole process. The clock's own time is
 * measured first and taken out of every stage. Where the set times no stage of its own (text, ratings), a slice
 * takes little more than the clock, so its samples are filled once more without it. A first round warms up and
 * does not count.
 */
#include "bench/data_int.h"

#include <string.h>
#include <time.h>

static uint64_t process_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Nanoseconds that a lap takes by itself. */
static double lap_ns(void)
{
    enum { ROUNDS = 9, LAPS = 400 };
    double ns[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        co_stage_times t = {0};
        co_stage_begin(&t);
        for (int i = 0; i < LAPS; i++)
            co_stage_lap(&t, CO_STAGE_FILL);
        ns[round] = (double)t.ns[CO_STAGE_FILL] / LAPS;
    }
    return median(ns, ROUNDS);
}

/* Did the set time a stage of its own? */
static bool has_stages(const co_stage_times *t)
{
    for (int s = 0; s < CO_STAGE_FILL; s++)
        if (t->laps[s])
            return true;
    return false;
}

/* round < 0: to warm up. */
static co_err fill_round(const data_bench *b, data_arm *a, int round, int64_t step, double lap)
{
    co_stage_times t = {0};
    int n;

    CO_TRY(co_loading_fill(a->loading, step, b->samples, &t, &n));
    if (!has_stages(&t)) {
        uint64_t began = process_ns();
        CO_TRY(co_loading_fill(a->loading, step, b->samples, NULL, &n));
        t = (co_stage_times){.ns = {[CO_STAGE_FILL] = process_ns() - began}};
    }
    for (int s = 0; s < CO_STAGES && round >= 0; s++) {
        double us = ((double)t.ns[s] - lap * (double)t.laps[s]) * 1e-3 / n;
        a->stage_us[s][round] = us > 0 ? us : 0;
    }
    return CO_OK;
}

static co_err loader_round(const data_bench *b, data_arm *a, int round, int64_t step)
{
    uint64_t began = process_ns();
    int n;

    CO_TRY(co_loading_run(a->loading, step, b->samples, &n));
    if (round >= 0)
        a->loader_us[round] = (double)(process_ns() - began) * 1e-3 / n;
    return CO_OK;
}

co_err data_measure(data_bench *b)
{
    double lap = lap_ns();

    for (int round = -1; round < b->rounds; round++)
        for (int i = 0; i < b->arms; i++) {
            data_arm *a = &b->arm[i];
            int64_t batch = co_plan_facts_of(a->plan)->batch,
                    step = 1 + (round + 1) * ((b->samples + batch - 1) / batch);
            CO_TRY(fill_round(b, a, round, step, lap));
            CO_TRY(loader_round(b, a, round, step));
        }
    return CO_OK;
}

static double median_of(const double *x, int n)
{
    double copy[DATA_MOST_ROUNDS];

    memcpy(copy, x, (size_t)n * sizeof *x);
    return median(copy, n);
}

double data_stage_us(const data_bench *b, const data_arm *a, co_stage s)
{
    return median_of(a->stage_us[s], b->rounds);
}

double data_all_us(const data_bench *b, const data_arm *a)
{
    double sum = 0;

    for (int s = 0; s < CO_STAGES; s++)
        sum += data_stage_us(b, a, (co_stage)s);
    return sum;
}

double data_loader_us(const data_bench *b, const data_arm *a)
{
    return median_of(a->loader_us, b->rounds);
}

double data_speedup(const data_bench *b, const data_arm *a)
{
    double ratio[DATA_MOST_ROUNDS];

    for (int i = 0; i < b->rounds; i++)
        ratio[i] = b->arm[0].loader_us[i] / a->loader_us[i];
    return median(ratio, b->rounds);
}
