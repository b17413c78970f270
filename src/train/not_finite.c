/* not_finite.c -- where a loss or gradient that is not finite came from: which slice, which samples, which
 * operator.
 *
 * Nothing is recorded while steps run. A step that ended the run was not applied, so its state is still
 * there, and its slices are computed again here, one operator at a time, until the first number that is not
 * finite appears.
 */
#include "train/super_int.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"

struct search {
    const co_exec *exec;
    int call; /* -1: not found */
};

static bool all_finite(const co_arg *arg)
{
    int64_t n = co_shape_count(&arg->shape);

    if (arg->dtype == CO_F64) {
        const double *x = arg->p;
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(x[i]))
                return false;
    } else if (arg->dtype == CO_F32) {
        const float *x = arg->p;
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(x[i]))
                return false;
    }
    return true;
}

static void after_call(void *ctx, int call, const co_arg *out, int n_out)
{
    struct search *search = ctx;

    for (int i = 0; i < n_out && search->call < 0; i++)
        if (!all_finite(&out[i]))
            search->call = call;
}

/* The samples of a slice of a step. */
static const uint32_t *slice_ids(const co_plan *plan, int64_t step, int slice, int *n)
{
    const uint32_t *ids = ids_of_step(plan, plan->order, step);
    uint32_t lo, hi;

    slice_range(plan, ids, step, slice, &lo, &hi);
    *n = (int)(hi - lo);
    return ids + lo;
}

/* Computes a slice again; the name of the first call whose result is not finite, or NULL. */
static const char *first_call(const struct run *run, int64_t step, int slice, bool *backward)
{
    const co_plan *plan = run->plan;
    int n;
    const uint32_t *ids = slice_ids(plan, step, slice, &n);

    if (n == 0)
        return NULL;
    co_slice_shape shape = co_slice_of(plan->data, CO_SPLIT_TRAIN, ids, n);
    const shape_exec *shaped = exec_for(&plan->train, shape);
    struct search search = {shaped->exec, -1};
    co_slice_dst dst;
    leaf_stat stat;
    co_draw draw = {.seed = (uint64_t)plan->cfg.seed,
                    .epoch = (uint32_t)((step - 1) / plan->units.steps_per_epoch),
                    .augment = plan->cfg.overfit_batches == 0};

    slice_dst(shaped, run->regions->input[0], &dst);
    co_dataset_fill(plan->data, CO_SPLIT_TRAIN, ids, shape, &draw, &dst);
    co_rows rows[MAX_LISTS];
    rows_of_leaf(plan, run->regions, 0, rows);
    co_bases bases = {.state = run->regions->state,
                      .leaf = leaf_buffer_of(plan, run->regions, 0, 0),
                      .rows = rows,
                      .input = run->regions->input[0],
                      .work = run->regions->work[0],
                      .stat = stat.stat};
    set_rows(&bases, shape);
    co_exec_run_watched(shaped->exec, &bases,
                        &(co_run){.seed = (uint64_t)plan->cfg.seed, .step = (uint32_t)step},
                        &(co_watcher){&search, after_call});
    *backward = search.call >= co_exec_info_of(shaped->exec)->forward_calls;
    return search.call < 0 ? NULL : co_exec_call_name(shaped->exec, search.call);
}

static void add_ids(co_str *out, const uint32_t *ids, int n)
{
    enum { SHOWN = 12 };

    for (int i = 0; i < n && i < SHOWN; i++)
        co_str_addf(out, "%s%u", i ? ", " : "", ids[i]);
    if (n > SHOWN)
        co_str_addf(out, " and %d more", n - SHOWN);
}

void blame_not_finite(const struct run *run, int64_t step, int slice)
{
    const co_plan *plan = run->plan;
    co_str text = {0};
    const char *call = NULL;
    bool backward = false;
    int n = 0, at = slice >= 0 ? slice : 0;

    for (; !plan->kernels->space && !call && at < plan->slices; at++) {
        call = first_call(run, step, at, &backward);
        if (slice >= 0 || call)
            break;
    }
    co_str_addf(&text, "step %lld: the %s not finite", (long long)step, slice >= 0 ? "loss is" : "gradient is");
    if (slice >= 0 || call) {
        const uint32_t *ids = slice_ids(plan, step, at, &n);
        co_str_addf(&text, " in slice %d (samples ", at);
        add_ids(&text, ids, n);
        co_str_addf(&text, ")");
    }
    if (call)
        co_str_addf(&text, "; the first operator whose result is not finite is %s (%s)", call,
                    backward ? "backward" : "forward");
    co_str_addf(&text, ". The state before it is saved; try a smaller optim.lr, trainer.clip_norm=1, or "
                       "trainer.on_nan=skip.");
    snprintf(run->out->blame, sizeof run->out->blame, "%s", co_str_text(&text));
    co_str_fini(&text);
}

void report_skipped(const struct run *run, int64_t step, int slice, bool empty)
{
    co_str text = {0};
    int n = 0;

    co_str_addf(&text, "step %lld left out: %s", (long long)step,
                slice >= 0 ? "the loss is not finite"
                : empty    ? "none of its samples counts"
                           : "the gradient is not finite");
    if (slice >= 0) {
        const uint32_t *ids = slice_ids(run->plan, step, slice, &n);
        co_str_addf(&text, " in slice %d (samples ", slice);
        add_ids(&text, ids, n);
        co_str_addf(&text, ")");
    }
    run_notice(run, co_str_text(&text));
    co_str_fini(&text);
}
