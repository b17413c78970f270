/* calibrate.c -- predicts how long a step will take, by computing a few slices in this process before the run
 * starts.
 *
 *     step = the most slices that one rank has * (load + slice) + sum and apply
 *
 * Of several hosts each has its share of the slices, and what it sends is added:
 *
 *     step = the most slices that one rank of a host has * (load + slice) + sum and apply + bytes / rate of the wire
 *
 * Other hosts are taken to be like this one. A run sends while it computes, so this is the most that the wire costs.
 *
 * Each thread of each rank is assumed to have a CPU of its own if there are enough; otherwise they share.
 */
#include "train/evaluate_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/maths.h"
#include "proc/crew.h"
#include "train/measure.h"

enum { ROUNDS = 3 };

/* Memory for one slice of training. */
struct bench {
    co_plan *plan;
    const shape_exec *e;
    void *block;
    float *state, *leaf, *other, *lists;
    co_rows rows[MAX_LISTS];
    char *input, *work;
    co_team *team;
    leaf_stat stat;
    const uint32_t *ids; /* [shape.n], the order's */
    co_slice_shape shape;
};

static size_t lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* The first slice of step 1 that has samples. A batch larger than the training set is not a whole one: step 1
 * is cut as its short batch is. */
static const uint32_t *first_slice(const co_plan *plan, uint32_t *n)
{
    const uint32_t *ids = ids_of_step(plan, plan->order, 1);
    uint32_t lo = 0, hi = 0;

    for (int leaf = 0; leaf < plan->slices && lo == hi; leaf++)
        slice_range(plan, ids, 1, leaf, &lo, &hi);
    *n = hi - lo;
    return ids + lo;
}

static co_err bench_open(struct bench *bench, co_plan *plan)
{
    size_t state = lines(plan->layout->count * sizeof(float)),
           dense = lines(plan->layout->dense * sizeof(float)),
           rows = lines(plan->rows.leaf_elements * sizeof(float)), input = lines(plan->train.input_bytes);
    uint32_t n;

    if (plan->kernels->space)
        return co_fail(CO_EINPUT, "trainer.kernels=%s computes elsewhere: nothing to measure here",
                       plan->cfg.kernels);
    *bench = (struct bench){.plan = plan, .ids = first_slice(plan, &n)};
    bench->block = co_zalloc(64 + state + 2 * dense + rows + input + plan->train.work_bytes);
    if (!bench->block)
        return CO_ENOMEM;
    char *at = (char *)(((uintptr_t)bench->block + 63) & ~(uintptr_t)63);
    bench->state = (float *)(void *)at;
    bench->leaf = (float *)(void *)(at + state);
    bench->other = (float *)(void *)(at + state + dense);
    bench->lists = (float *)(void *)(at + state + 2 * dense);
    bench->input = at + state + 2 * dense + rows;
    rows_of_leaf(plan, &(struct regions){.leaf_rows = bench->lists}, 0, bench->rows);
    bench->work = bench->input + input;
    bench->shape = co_slice_of(plan->data, CO_SPLIT_TRAIN, bench->ids, (int)n);
    bench->e = exec_for(&plan->train, bench->shape);
    co_fpu_init();
    co_layout_initialise(plan->layout, bench->state, (uint64_t)plan->cfg.seed);
    return co_team_start(&bench->team, plan->threads, CO_TEAM_SPIN, false);
}

static void bench_close(struct bench *bench)
{
    co_team_stop(bench->team);
    co_free(bench->block);
}

static void load(struct bench *bench)
{
    co_slice_dst dst;

    slice_dst(bench->e, bench->input, &dst);
    co_dataset_fill(bench->plan->data, CO_SPLIT_TRAIN, bench->ids, bench->shape,
                    &(co_draw){.seed = (uint64_t)bench->plan->cfg.seed, .augment = true}, &dst);
}

static co_bases bases_of(struct bench *bench)
{
    co_bases bases = {.state = bench->state,
                      .leaf = bench->leaf,
                      .rows = bench->rows,
                      .input = bench->input,
                      .work = bench->work,
                      .stat = bench->stat.stat,
                      .team = bench->team};

    set_rows(&bases, bench->shape);
    return bases;
}

static void compute(struct bench *bench)
{
    co_bases bases = bases_of(bench);

    co_exec_run(bench->e->exec, &bases, &(co_run){.seed = (uint64_t)bench->plan->cfg.seed, .step = 1}, NULL);
}

static void add(struct bench *bench)
{
    co_leaf_add(bench->other, bench->other, bench->leaf, bench->plan->layout->dense);
}

/* Stands for the optimiser: an update with one moment, which moves about as much memory as any other. */
static void update(struct bench *bench)
{
    float *w = bench->state, *m = bench->other;

    for (size_t i = 0; i < bench->plan->layout->dense; i++) {
        m[i] = 0.9f * m[i] + bench->leaf[i];
        w[i] -= 1e-30f * m[i];
    }
}

/* The shortest of a few rounds, in milliseconds: other load on the machine only makes a round longer. */
static double time_of(struct bench *bench, void (*what)(struct bench *))
{
    double least = 0;

    what(bench);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t t0 = co_now_ns();
        what(bench);
        double ms = (double)(co_now_ns() - t0) * 1e-6;
        least = i == 0 || ms < least ? ms : least;
    }
    return least;
}

static co_err time_evaluation(co_plan *plan, double *ms)
{
    struct offline offline = {0};
    leaf_stat stat;

    *ms = 0;
    if (!plan->eval_items[CO_SPLIT_VAL])
        return CO_OK;
    co_err err = offline_open(&offline, plan, &plan->eval);
    for (int i = 0; !err && i < ROUNDS; i++) {
        uint64_t t0 = co_now_ns();
        offline.bases.stat = stat.stat;
        run_item(plan, &plan->eval, CO_SPLIT_VAL, 0, &offline.bases, NULL);
        double took = (double)(co_now_ns() - t0) * 1e-6;
        *ms = i == 0 || took < *ms ? took : *ms;
    }
    offline_close(&offline);
    return err;
}

/* What a prediction is made of. */
struct measured {
    double ahead_ms; /* to load a slice, if a rank waits for it; 0: loader threads work while slices are computed */
    double slice_ms, add_ms, update_ms;
    double cpus, crowd; /* CPUs in use; threads for each of them */
};

/* Of `hosts` hosts, each adds up its own leaves, then all hosts' pieces of its part of the chunks: together
 * (slices - 1) / hosts additions of the whole gradient. Each updates all of the weights. */
static double sum_and_apply(const co_plan *plan, const struct measured *m, int hosts)
{
    return (m->add_ms * (plan->slices - 1) / hosts + m->update_ms) / m->cpus;
}

/* A step of a host with `share` of the slices. */
static double step_of(const co_plan *plan, const struct measured *m, int share, int hosts)
{
    int most = (share + plan->ranks - 1) / plan->ranks;

    return most * m->crowd * (m->ahead_ms + m->slice_ms) + sum_and_apply(plan, m, hosts);
}

static void foretell(const co_plan *plan, const struct measured *m, co_calibration *out)
{
    int hosts = plan->spec.hosts > 1 ? plan->spec.hosts : 1;

    out->sum_apply_ms = sum_and_apply(plan, m, hosts);
    out->alone_ms = step_of(plan, m, plan->slices, 1);
    out->work_ms = hosts > 1 ? step_of(plan, m, plan->facts.share_most, hosts) : out->alone_ms;
    out->wire_ms = plan->facts.wire_bytes * 8e-6 / CO_WIRE_GBITS;
    out->step_ms = out->work_ms + out->wire_ms;
    double eval = (double)plan->eval_items[CO_SPLIT_VAL] * out->eval_item_ms / (m->cpus * hosts) *
                  plan->facts.evals_per_step;
    out->epoch_s = (double)plan->units.steps_per_epoch * (out->step_ms + eval) * 1e-3;
}

double co_calibration_efficiency(const co_calibration *c, int hosts, double gbits)
{
    double step = c->work_ms + c->wire_ms * CO_WIRE_GBITS / gbits;

    return hosts > 1 && step > 0 ? c->alone_ms / (hosts * step) : 1;
}

co_err co_plan_calibrate(co_plan *plan, co_calibration *out)
{
    struct bench bench = {0};
    struct measured m = {0};
    co_err err = bench_open(&bench, plan);
    int usable = co_cpus_usable(), wide = plan->threads < usable ? plan->threads : usable;

    *out = (co_calibration){0};
    m.cpus = plan->ranks * wide < usable ? plan->ranks * wide : usable;
    m.crowd = plan->ranks * wide / m.cpus;
    if (!err) {
        out->load_ms = time_of(&bench, load);
        out->slice_ms = m.slice_ms = time_of(&bench, compute);
        m.ahead_ms = plan->cfg.workers ? 0 : out->load_ms;
        m.add_ms = time_of(&bench, add);
        m.update_ms = time_of(&bench, update);
        err = time_evaluation(plan, &out->eval_item_ms);
    }
    bench_close(&bench);
    if (!err)
        foretell(plan, &m, out);
    return err;
}

/* --- by operator ---------------------------------------------------------------------------------------- */
struct laps {
    uint64_t last;
    float *ms; /* [calls] */
};

static void lap(void *ctx, int call, const co_arg *out, int n_out)
{
    struct laps *laps = ctx;
    uint64_t now = co_now_ns();
    float ms = (float)(now - laps->last) * 1e-6f;

    (void)out;
    (void)n_out;
    laps->ms[call] = laps->ms[call] == 0 || ms < laps->ms[call] ? ms : laps->ms[call];
    laps->last = co_now_ns();
}

co_err co_plan_profile(co_plan *plan, co_op_time **out, int *n)
{
    struct bench bench = {0};
    co_err err = bench_open(&bench, plan);

    *out = NULL;
    *n = 0;
    if (!err) {
        const co_exec_info *info = co_exec_info_of(bench.e->exec);
        struct laps laps = {.ms = co_array((size_t)info->calls, sizeof *laps.ms)};
        co_op_time *list = co_array((size_t)info->calls, sizeof *list);
        load(&bench);
        for (int i = 0; laps.ms && list && i < ROUNDS + 1; i++) {
            co_bases bases = bases_of(&bench);
            laps.last = co_now_ns();
            co_exec_run_watched(bench.e->exec, &bases, &(co_run){.seed = (uint64_t)plan->cfg.seed, .step = 1},
                                &(co_watcher){&laps, lap});
        }
        for (int i = 0; laps.ms && list && i < info->calls; i++)
            list[i] = (co_op_time){co_exec_call_name(bench.e->exec, i), i >= info->forward_calls, laps.ms[i]};
        err = laps.ms && list ? CO_OK : CO_ENOMEM;
        if (err)
            co_free(list);
        *out = err ? NULL : list;
        *n = err ? 0 : info->calls;
        co_free(laps.ms);
    }
    bench_close(&bench);
    return err;
}
