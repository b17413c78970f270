/* calibrate.c -- predicts how long a step will take, by computing a few slices in this process before the run
 * starts.
 *
 *     step = the most slices that one rank has * (load + slice) + sum and apply
 *
 * Threads that compute slices at once (at_once.c) compute as many in the time of one slice on one thread; the slices
 * that are left over are shared by all threads of the rank.
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

#include "base/clock.h"
#include "proc/crew.h"
#include "train/measure_int.h"

enum { ROUNDS = 3 };

static void add(struct one_slice *slice)
{
    co_leaf_add(slice->other, slice->other, slice->leaf, slice->plan->layout->dense);
}

/* Stands for the optimiser: an update with one moment, which moves about as much memory as any other. */
static void update(struct one_slice *slice)
{
    float *w = slice->state, *m = slice->other;

    for (size_t i = 0; i < slice->plan->layout->dense; i++) {
        m[i] = 0.9f * m[i] + slice->leaf[i];
        w[i] -= 1e-30f * m[i];
    }
}

/* The shortest of a few rounds, in milliseconds: other load on the machine only makes a round longer. */
static double time_of(struct one_slice *slice, void (*what)(struct one_slice *))
{
    double least = 0;

    what(slice);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t t0 = co_now_ns();
        what(slice);
        double ms = (double)(co_now_ns() - t0) * 1e-6;
        least = i == 0 || ms < least ? ms : least;
    }
    return least;
}

static co_err time_evaluation(co_plan *plan, double *ms)
{
    struct offline offline = {0};
    leaf_stat stat;

    co_split split = plan->eval_items[CO_SPLIT_VAL] ? CO_SPLIT_VAL : CO_SPLIT_TEST;

    *ms = 0;
    if (!plan->eval_items[split])
        return CO_OK;
    co_err err = offline_open(&offline, plan, &plan->eval);
    for (int i = 0; !err && i < ROUNDS; i++) {
        uint64_t t0 = co_now_ns();
        offline.bases.stat = stat.stat;
        run_item(plan, &plan->eval, split, 0, &offline.bases, NULL);
        double took = (double)(co_now_ns() - t0) * 1e-6;
        *ms = i == 0 || took < *ms ? took : *ms;
    }
    offline_close(&offline);
    return err;
}

/* What a prediction is made of. */
struct measured {
    double ahead_ms; /* to load a slice, if a rank waits for it; 0: loader threads work while slices are computed */
    double alone_ms;  /* a slice by one thread; 0: threads do not compute slices at once */
    double shared_ms; /* a slice by all threads of a rank together */
    double add_ms, update_ms;
    double wide;        /* CPUs that a rank's threads use */
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
    int most = (share + plan->ranks - 1) / plan->ranks, at_once = plan->at_once > 1 ? plan->at_once : 0;
    int rounds = at_once ? most / at_once : 0, left = most - rounds * at_once;
    double together = rounds * m->alone_ms * at_once / m->wide;

    return m->crowd * (most * m->ahead_ms + together + left * m->shared_ms) + sum_and_apply(plan, m, hosts);
}

static void foretell(const co_plan *plan, const struct measured *m, co_calibration *out)
{
    int hosts = plan->spec.hosts > 1 ? plan->spec.hosts : 1;

    out->sum_apply_ms = sum_and_apply(plan, m, hosts);
    out->alone_ms = step_of(plan, m, plan->slices, 1);
    out->work_ms = hosts > 1 ? step_of(plan, m, plan->facts.share_most, hosts) : out->alone_ms;
    out->wire_ms = plan->facts.wire_bytes * 8e-6 / CO_WIRE_GBITS;
    out->step_ms = out->work_ms + out->wire_ms;
    double item_s = out->eval_item_ms * 1e-3 / (m->cpus * hosts);
    double val_s = (double)plan->eval_items[CO_SPLIT_VAL] * item_s;
    out->epoch_s =
        (double)plan->units.steps_per_epoch * (out->step_ms * 1e-3 + val_s * plan->facts.evals_per_step);
    out->test_s = plan->units.final_test ? (double)plan->eval_items[CO_SPLIT_TEST] * item_s : 0;
    double epochs = (double)(plan->facts.steps - plan->facts.start_step) / (double)plan->facts.steps_per_epoch;
    out->total_s = epochs * out->epoch_s + out->test_s + (plan->units.final_val ? val_s : 0);
}

double co_calibration_efficiency(const co_calibration *c, int hosts, double gbits)
{
    double step = c->work_ms + c->wire_ms * CO_WIRE_GBITS / gbits;

    return hosts > 1 && step > 0 ? c->alone_ms / (hosts * step) : 1;
}

co_err co_plan_calibrate(co_plan *plan, co_calibration *out)
{
    struct one_slice slice = {0};
    struct measured m = {0};
    co_err err = one_slice_open(&slice, plan);
    int usable = co_cpus_usable(), wide = plan->threads < usable ? plan->threads : usable;

    *out = (co_calibration){0};
    m.wide = wide;
    m.cpus = plan->ranks * wide < usable ? plan->ranks * wide : usable;
    m.crowd = plan->ranks * wide / m.cpus;
    if (!err) {
        out->load_ms = time_of(&slice, one_slice_load);
        m.shared_ms = time_of(&slice, one_slice_compute);
        m.alone_ms = plan->at_once > 1 ? time_of(&slice, one_slice_compute_alone) : 0;
        out->slice_ms = plan->at_once > 1 ? m.alone_ms : m.shared_ms;
        m.ahead_ms = plan->cfg.workers ? 0 : out->load_ms;
        m.add_ms = time_of(&slice, add);
        m.update_ms = time_of(&slice, update);
        err = time_evaluation(plan, &out->eval_item_ms);
    }
    one_slice_close(&slice);
    if (!err)
        foretell(plan, &m, out);
    return err;
}
