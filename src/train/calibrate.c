/* calibrate.c -- how long a step will take, from a few slices computed in this process before anything is started.
 *
 *     step = the most slices that one rank has * (load + slice) + sum and apply
 *
 * The machine is taken as it is: ranks are assumed to have a CPU each while there are enough.
 */
#include "train/train_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/maths.h"
#include "comm/tree.h"

enum { ROUNDS = 3 };

/* Memory for one slice of training. */
struct bench {
    co_plan *p;
    const shape_exec *e;
    void *block;
    float *state, *leaf, *other;
    char *input, *work;
    leaf_stat stat;
    uint32_t *ids;
    co_slice_shape shape;
};

static size_t lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static co_err bench_open(struct bench *b, co_plan *p)
{
    size_t state = lines(p->layout->leaf_count * sizeof(float)), input = lines(p->train.input_bytes);
    uint32_t lo, hi;

    if (p->kernels->space)
        return co_fail(CO_EINPUT, "trainer.kernels=%s computes elsewhere: nothing to measure here",
                       p->cfg.kernels);
    co_cut_range(&p->tree[CUT_FULL].cut, 0, &lo, &hi);
    *b = (struct bench){.p = p, .block = co_zalloc(64 + 3 * state + input + p->train.work_bytes)};
    b->ids = co_array(hi, sizeof *b->ids);
    if (!b->block || !b->ids)
        return CO_ENOMEM;
    char *at = (char *)(((uintptr_t)b->block + 63) & ~(uintptr_t)63);
    b->state = (float *)(void *)at;
    b->leaf = (float *)(void *)(at + state);
    b->other = (float *)(void *)(at + 2 * state);
    b->input = at + 3 * state;
    b->work = b->input + input;
    memcpy(b->ids, ids_of_step(p, 1), (hi - lo) * sizeof *b->ids);
    b->shape = (co_slice_shape){(int)(hi - lo), co_slice_len(p->data, CO_SPLIT_TRAIN, b->ids, (int)(hi - lo))};
    b->e = exec_for(&p->train, b->shape);
    co_fpu_init();
    co_layout_initialise(p->layout, b->state, (uint64_t)p->cfg.seed);
    return CO_OK;
}

static void bench_close(struct bench *b)
{
    co_free(b->block);
    co_free(b->ids);
}

static void load(struct bench *b)
{
    co_slice_dst dst;

    slice_dst(b->e, b->input, &dst);
    b->p->data->fill(b->p->data, CO_SPLIT_TRAIN, b->ids, b->shape,
                     &(co_draw){.seed = (uint64_t)b->p->cfg.seed, .augment = true}, &dst);
}

static co_bases bases_of(struct bench *b)
{
    return (co_bases){
        .state = b->state, .leaf = b->leaf, .input = b->input, .work = b->work, .stat = b->stat.stat};
}

static void compute(struct bench *b)
{
    co_bases bases = bases_of(b);

    co_exec_run(b->e->exec, &bases, &(co_run){.seed = (uint64_t)b->p->cfg.seed, .step = 1}, NULL);
}

static void add(struct bench *b)
{
    co_leaf_add(CO_ADD_VALUES, b->other, b->other, b->leaf, b->p->layout->count);
}

/* As an update with one moment: reads and writes about as much as any. */
static void update(struct bench *b)
{
    float *w = b->state, *m = b->other;

    for (size_t i = 0; i < b->p->layout->count; i++) {
        m[i] = 0.9f * m[i] + b->leaf[i];
        w[i] -= 1e-30f * m[i];
    }
}

/* The least of a few, in milliseconds: what else the machine does only adds. */
static double time_of(struct bench *b, void (*what)(struct bench *))
{
    double least = 0;

    what(b);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t t0 = co_now_ns();
        what(b);
        double ms = (double)(co_now_ns() - t0) * 1e-6;
        least = i == 0 || ms < least ? ms : least;
    }
    return least;
}

static co_err time_evaluation(co_plan *p, double *ms)
{
    look l = {0};
    leaf_stat stat;

    *ms = 0;
    if (!p->eval_items[CO_SPLIT_VAL])
        return CO_OK;
    co_err err = look_open(&l, p, &p->eval);
    for (int i = 0; !err && i < ROUNDS; i++) {
        uint64_t t0 = co_now_ns();
        l.bases.stat = stat.stat;
        run_item(p, &p->eval, CO_SPLIT_VAL, 0, &l.bases, NULL);
        double took = (double)(co_now_ns() - t0) * 1e-6;
        *ms = i == 0 || took < *ms ? took : *ms;
    }
    look_close(&l);
    return err;
}

co_err co_plan_calibrate(co_plan *p, co_calibration *out)
{
    struct bench b = {0};
    co_err err = bench_open(&b, p);
    int most = (p->slices + p->ranks - 1) / p->ranks;
    double cpus = p->ranks < co_cpus_usable() ? p->ranks : co_cpus_usable(), crowd = p->ranks / cpus;

    *out = (co_calibration){0};
    if (!err) {
        out->load_ms = time_of(&b, load);
        out->slice_ms = time_of(&b, compute);
        out->sum_apply_ms = (time_of(&b, add) * (p->slices - 1) + time_of(&b, update)) / cpus;
        err = time_evaluation(p, &out->eval_item_ms);
    }
    bench_close(&b);
    double ahead = p->cfg.workers ? 0 : out->load_ms; /* with threads, loading goes on beside */
    out->step_ms = most * crowd * (ahead + out->slice_ms) + out->sum_apply_ms;
    double eval = (double)p->eval_items[CO_SPLIT_VAL] * out->eval_item_ms / cpus;
    out->epoch_s = ((double)p->sched.steps_per_epoch * out->step_ms + (p->sched.block ? eval : 0)) * 1e-3;
    return err;
}

/* --- by operator ----------------------------------------------------------------------------------------------------- */
struct laps {
    uint64_t last;
    float *ms; /* [calls] */
};

static void lap(void *ctx, int call, const co_arg *out, int n_out)
{
    struct laps *l = ctx;
    uint64_t now = co_now_ns();
    float ms = (float)(now - l->last) * 1e-6f;

    (void)out;
    (void)n_out;
    l->ms[call] = l->ms[call] == 0 || ms < l->ms[call] ? ms : l->ms[call];
    l->last = co_now_ns();
}

co_err co_plan_profile(co_plan *p, co_op_time **out, int *n)
{
    struct bench b = {0};
    co_err err = bench_open(&b, p);

    *out = NULL;
    *n = 0;
    if (!err) {
        const co_exec_info *info = co_exec_info_of(b.e->exec);
        struct laps l = {.ms = co_array((size_t)info->calls, sizeof *l.ms)};
        co_op_time *list = co_array((size_t)info->calls, sizeof *list);
        load(&b);
        for (int i = 0; l.ms && list && i < ROUNDS + 1; i++) {
            co_bases bases = bases_of(&b);
            l.last = co_now_ns();
            co_exec_run_watched(b.e->exec, &bases, &(co_run){.seed = (uint64_t)p->cfg.seed, .step = 1},
                                &(co_watcher){&l, lap});
        }
        for (int i = 0; l.ms && list && i < info->calls; i++)
            list[i] = (co_op_time){co_exec_call_name(b.e->exec, i), i >= info->forward_calls, l.ms[i]};
        err = l.ms && list ? CO_OK : CO_ENOMEM;
        if (err)
            co_free(list);
        *out = err ? NULL : list;
        *n = err ? 0 : info->calls;
        co_free(l.ms);
    }
    bench_close(&b);
    return err;
}
