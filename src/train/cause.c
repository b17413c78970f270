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
    co_str_addf(&text, "step %lld: the %s not finite", (long long)step, slice >= 0 ? "loss is" : "gradient is");
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

/* Samples that were looked at together: of a step, or of a whole split. */
struct seen {
    co_split split;
    const uint32_t *ids; /* NULL: 0 .. n - 1 */
    uint32_t n;
};

/* Names the `bad` of them that cannot be read, training samples each once in a run; `first` gets the first. Every look at
 * a sample is a file read and decoded, so it ends with the last bad one. */
static int name_bad(super *s, const struct seen *all_of, uint64_t bad, bool all, char *first, size_t room)
{
    const co_dataset *d = s->p->data;
    uint64_t nobody = 0;
    int found = 0;

    for (uint32_t i = 0; i < all_of->n && bad > 0 && d->check; i++) {
        uint32_t id = all_of->ids ? all_of->ids[i] : i;
        uint64_t *word = all_of->split == CO_SPLIT_TRAIN ? &s->known_bad[id / 64] : &nobody,
                 bit = (uint64_t)1 << id % 64;
        bool told = !all && (*word & bit);
        if (!told && d->check(d, all_of->split, id) == CO_OK)
            continue;
        bad--;
        if (told)
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

static struct seen seen_in(const co_plan *p, const unit *u)
{
    co_split split = u->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST;

    if (u->kind == UNIT_TRAIN)
        return (struct seen){CO_SPLIT_TRAIN, ids_of_step(p, u->step), samples_of_step(p, u->step)};
    return (struct seen){split, NULL, p->eval_count[split]};
}

void tell_bad(super *s, int64_t step, uint64_t bad)
{
    struct seen of = seen_in(s->p, &(unit){UNIT_TRAIN, step});
    char first[1024];

    if (bad != UINT64_MAX && !s->p->data->stop_on_bad)
        name_bad(s, &of, bad, false, first, sizeof first);
}

/* bad = UINT64_MAX: it could be read once, and then it could not. */
static void describe_bad(super *s, const unit *u, uint64_t bad)
{
    struct seen of = seen_in(s->p, u);
    char first[1024] = "it can be read again now";
    int n = name_bad(s, &of, bad, true, first, sizeof first);
    const char *then = bad == UINT64_MAX
                           ? "; is the disk or the network in trouble? Continue with ckpt_path=auto."
                       : u->kind != UNIT_TRAIN ? "; none is left to evaluate on: is data.dir right?"
                       : co_option_find(s->p->spec.data->options, "on_error")
                           ? "; mend or remove the file, or leave such samples out with data.on_error=skip."
                           : ".";

    if (bad == UINT64_MAX)
        snprintf(s->out->blame, sizeof s->out->blame,
                 "%s %lld: a sample that was there when the run began could not be read: %s. The state "
                 "before it is saved%s",
                 u->kind == UNIT_TRAIN ? "step" : "evaluation after step", (long long)u->step, first, then);
    else
        snprintf(s->out->blame, sizeof s->out->blame,
                 "%s %lld: %d sample%s could not be read: %s. The state before it is saved%s",
                 u->kind == UNIT_TRAIN ? "step" : "evaluation after step", (long long)u->step, n,
                 n == 1 ? "" : "s", first, then);
}

void tell_skipped(super *s, int64_t step, int slice, bool empty)
{
    co_str text = {0};
    int n = 0;

    co_str_addf(&text, "step %lld left out: %s", (long long)step,
                slice >= 0 ? "the loss is not finite"
                : empty    ? "none of its samples counts"
                           : "the gradient is not finite");
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
    uint32_t n = (uint32_t)(atomic_load(&s->r->ctl->pc) >> 8) - 1;
    unit u = unit_now(s->p, s->r->ctl, n);
    const result *r = &s->r->ctl->ring[n % RING];
    uint64_t bad = atomic_load(&r->bad);

    if (bad == UINT64_MAX || (bad && (u.kind != UNIT_TRAIN || s->p->data->stop_on_bad)))
        describe_bad(s, &u, bad);
    else
        describe_nan(s, u.step, (int)atomic_load(&r->slice) - 1);
}
