/* cause.c -- why a step went wrong: which slice, which samples, which operator.
 *
 * Nothing is recorded while steps run. A step that ended the run was not applied, so its state is still there, and its
 * slices are computed again here, one operator at a time, until the first number that is not finite appears.
 */
#include "train/train_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/* --- the first number that is not finite ---------------------------------------------------------------------------- */
struct search {
    const co_exec *exec;
    int call; /* -1: not found */
};

static bool all_finite(const co_arg *a)
{
    int64_t n = co_shape_count(&a->shape);

    if (a->dtype == CO_F64) {
        const double *x = a->p;
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(x[i]))
                return false;
    } else if (a->dtype == CO_F32) {
        const float *x = a->p;
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(x[i]))
                return false;
    }
    return true;
}

static void after_call(void *ctx, int call, const co_arg *out, int n_out)
{
    struct search *s = ctx;

    for (int i = 0; i < n_out && s->call < 0; i++)
        if (!all_finite(&out[i]))
            s->call = call;
}

/* The samples of a slice of a step. */
static const uint32_t *slice_ids(const co_plan *p, int64_t step, int slice, int *n)
{
    uint32_t lo, hi;

    co_cut_range(&p->tree[cut_of_step(p, step)].cut, slice, &lo, &hi);
    *n = (int)(hi - lo);
    return ids_of_step(p, step) + lo;
}

/* Computes a slice again; the name of the first call whose result is not finite, or NULL. */
static const char *first_call(super *s, int64_t step, int slice, bool *backward)
{
    co_plan *p = s->p;
    int n;
    const uint32_t *ids = slice_ids(p, step, slice, &n);

    if (n == 0)
        return NULL;
    co_slice_shape shape = {n, co_slice_len(p->data, CO_SPLIT_TRAIN, ids, n)};
    const shape_exec *e = exec_for(&p->train, shape);
    struct search search = {e->exec, -1};
    co_slice_dst dst;
    leaf_stat stat;
    co_draw draw = {.seed = (uint64_t)p->cfg.seed,
                    .epoch = (uint32_t)((step - 1) / p->sched.steps_per_epoch),
                    .augment = p->cfg.overfit_batches == 0};

    slice_dst(e, s->r->input[0], &dst);
    p->data->fill(p->data, CO_SPLIT_TRAIN, ids, shape, &draw, &dst);
    co_exec_run_watched(e->exec,
                        &(co_bases){.state = s->r->state,
                                    .leaf = leaf_buffer_of(p, s->r, 0, 0),
                                    .input = s->r->input[0],
                                    .work = s->r->work[0],
                                    .stat = stat.stat},
                        &(co_run){.seed = (uint64_t)p->cfg.seed, .step = (uint32_t)step},
                        &(co_watcher){&search, after_call});
    *backward = search.call >= co_exec_info_of(e->exec)->forward_calls;
    return search.call < 0 ? NULL : co_exec_call_name(e->exec, search.call);
}

static void add_ids(co_str *out, const uint32_t *ids, int n)
{
    enum { SHOWN = 12 };

    for (int i = 0; i < n && i < SHOWN; i++)
        co_str_addf(out, "%s%u", i ? ", " : "", ids[i]);
    if (n > SHOWN)
        co_str_addf(out, " and %d more", n - SHOWN);
}

/* --- told ------------------------------------------------------------------------------------------------------------ */
static void describe_nan(super *s, int64_t step, int slice)
{
    co_plan *p = s->p;
    co_str text = {0};
    const char *call = NULL;
    bool backward = false;
    int n = 0, at = slice >= 0 ? slice : 0;

    for (; !p->kernels->space && !call && at < p->slices; at++) {
        call = first_call(s, step, at, &backward);
        if (slice >= 0 || call)
            break;
    }
    co_str_addf(&text, "step %lld: the %s not finite", (long long)step,
                slice >= 0 ? "loss is" : "gradient is");
    if (slice >= 0 || call) {
        const uint32_t *ids = slice_ids(p, step, at, &n);
        co_str_addf(&text, " in slice %d (samples ", at);
        add_ids(&text, ids, n);
        co_str_addf(&text, ")");
    }
    if (call)
        co_str_addf(&text, "; the first operator whose result is not finite is %s (%s)", call,
                    backward ? "backward" : "forward");
    co_str_addf(&text, ". The state before it is saved; try a smaller optim.lr, trainer.clip_norm=1, or "
                       "trainer.on_nan=skip.");
    snprintf(s->out->blame, sizeof s->out->blame, "%s", co_str_text(&text));
    co_str_fini(&text);
}

/* Names the samples of a step that cannot be read, each once in a run; `first` gets the first of them. */
static int name_bad(super *s, int64_t step, bool all, char *first, size_t room)
{
    const co_plan *p = s->p;
    const uint32_t *ids = ids_of_step(p, step);
    int found = 0;

    for (uint32_t i = 0; i < samples_of_step(p, step); i++) {
        uint64_t *word = &s->known_bad[ids[i] / 64], bit = (uint64_t)1 << ids[i] % 64;
        if ((!all && (*word & bit)) || !p->data->check ||
            p->data->check(p->data, CO_SPLIT_TRAIN, ids[i]) == CO_OK)
            continue;
        if (found++ == 0)
            snprintf(first, room, "%s", co_errmsg());
        s->out->bad_samples += !(*word & bit);
        *word |= bit;
        if (!all && s->hooks->notice) {
            char text[1200];
            snprintf(text, sizeof text, "%s: left out (%lld so far)", co_errmsg(),
                     (long long)s->out->bad_samples);
            s->hooks->notice(s->hooks->ctx, text);
        }
        co_errclear();
    }
    return found;
}

void tell_bad(super *s, int64_t step)
{
    char first[1024];

    if (!s->p->data->stop_on_bad)
        name_bad(s, step, false, first, sizeof first);
}

void tell_skipped(super *s, int64_t step, int slice)
{
    co_str text = {0};
    int n = 0;

    co_str_addf(&text, "step %lld left out: the %s not finite", (long long)step,
                slice >= 0 ? "loss is" : "gradient is");
    if (slice >= 0) {
        const uint32_t *ids = slice_ids(s->p, step, slice, &n);
        co_str_addf(&text, " in slice %d (samples ", slice);
        add_ids(&text, ids, n);
        co_str_addf(&text, ")");
    }
    if (s->hooks->notice)
        s->hooks->notice(s->hooks->ctx, co_str_text(&text));
    co_str_fini(&text);
}

void describe_failure(super *s)
{
    uint32_t u = (uint32_t)(atomic_load(&s->r->ctl->pc) >> 8) - 1;
    int64_t step = unit_now(s->p, s->r->ctl, u).step;
    const result *r = &s->r->ctl->ring[u % RING];
    char first[1024] = "";

    if (atomic_load(&r->bad) && s->p->data->stop_on_bad) {
        int n = name_bad(s, step, true, first, sizeof first);
        snprintf(s->out->blame, sizeof s->out->blame,
                 "step %lld: %d sample%s could not be read: %s. The state before it is saved; mend or remove "
                 "the file, "
                 "or leave such samples out with data.on_error=skip.",
                 (long long)step, n, n == 1 ? "" : "s", first);
        return;
    }
    describe_nan(s, step, (int)atomic_load(&r->slice) - 1);
}
