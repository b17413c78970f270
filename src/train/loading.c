/* loading.c -- loads the slices of a training, in the order of its steps, and computes nothing with them: for
 * `cohort bench data`. By the calling thread, with the time of each stage; or by a loader with one thread. */
#include "train/measure_int.h"

#include "base/alloc.h"
#include "base/maths.h"
#include "train/rank_int.h"

enum { DEPTH = 2 };

struct co_loading {
    co_plan *plan;
    void *block;
    char *ring;   /* [DEPTH] slices */
    co_load *job; /* for the calling thread */
    int64_t step; /* where the next slice is looked for */
    int leaf;
    int wanted, loaded; /* samples */
};

co_err co_loading_open(co_loading **out, co_plan *plan)
{
    co_loading *l = co_zalloc(sizeof *l);

    if (!l)
        return CO_ENOMEM;
    l->plan = plan;
    l->block = co_zalloc(64 + DEPTH * loader_slot_bytes(plan));
    l->job = l->block ? co_zalloc(sizeof *l->job) : NULL;
    if (!l->job) {
        co_loading_close(l);
        return CO_ENOMEM;
    }
    l->ring = (char *)(((uintptr_t)l->block + 63) & ~(uintptr_t)63);
    co_fpu_init();
    *out = l;
    return CO_OK;
}

void co_loading_close(co_loading *l)
{
    if (!l)
        return;
    co_free(l->job);
    co_free(l->block);
    co_free(l);
}

static void begin(co_loading *l, int64_t step, int samples)
{
    l->step = step;
    l->leaf = 0;
    l->wanted = samples;
    l->loaded = 0;
}

/* Slices without samples are passed over. */
static bool next(void *ctx, uint64_t index, co_load *job)
{
    co_loading *l = ctx;

    if (l->loaded >= l->wanted)
        return false;
    do {
        load_of_leaf(l->plan, l->plan->order, l->step, l->leaf, job);
        l->step += ++l->leaf == l->plan->slices;
        l->leaf %= l->plan->slices;
    } while (job->shape.n == 0);
    l->loaded += job->shape.n;
    return true;
}

static void where(void *ctx, void *buffer, co_load *job)
{
    co_loading *l = ctx;

    slice_dst(exec_for(&l->plan->train, job->shape), buffer, &job->dst);
}

/* As training judges them: a sample that cannot be read is an error, unless the keys say to leave it out. */
static co_err judge(const co_dataset *d, const co_load *job)
{
    if (job->bad < 0)
        return co_dataset_lost();
    for (int i = 0; job->bad && d->stop_on_bad && d->check && i < job->shape.n; i++)
        CO_TRY(d->check(d, job->split, job->ids[i]));
    return CO_OK;
}

co_err co_loading_fill(co_loading *l, int64_t step, int samples, co_stage_times *times, int *loaded)
{
    const co_dataset *d = l->plan->data;
    co_load *job = l->job;

    begin(l, step, samples);
    while (next(l, 0, job)) {
        where(l, l->ring, job);
        job->draw.stages = times;
        co_stage_begin(times);
        job->bad = co_dataset_fill(d, job->split, job->ids, job->shape, &job->draw, &job->dst);
        co_stage_lap(times, CO_STAGE_FILL);
        CO_TRY(judge(d, job));
    }
    *loaded = l->loaded;
    return CO_OK;
}

co_err co_loading_run(co_loading *l, int64_t step, int samples, int *loaded)
{
    const co_load *job;
    co_loader *loader;
    void *buffer;
    co_err err = CO_OK;

    begin(l, step, samples);
    CO_TRY(co_loader_start(&loader, &(co_loader_spec){.data = l->plan->data,
                                                      .threads = 1,
                                                      .depth = DEPTH,
                                                      .ring = l->ring,
                                                      .slot_bytes = loader_slot_bytes(l->plan),
                                                      .next = next,
                                                      .where = where,
                                                      .ctx = l}));
    for (uint64_t i = 0; !err && (job = co_loader_get(loader, i, &buffer)) != NULL; i++)
        err = judge(l->plan->data, job);
    co_loader_stop(loader);
    *loaded = l->loaded;
    return err;
}
