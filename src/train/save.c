/* save.c -- a checkpoint of state k, written while later steps go on.
 *
 * The saver is a child process that reads the arena. If a chunk was changed since state k, its old bytes lie
 * aside; otherwise they are still in place. The saver copies the chunk in place first and looks at the
 * chunk's aside mark after that: whoever changes a chunk sets the mark before, so a copy is good if the mark
 * was still unset after copying.
 *
 * If the pool for copies aside is smaller than the state, ranks may wait for the saver. So the saver says
 * when it has read everything (snapshot_read_through), before it waits for the disk. From then on state k is
 * only in the saver's files: if the saver dies later, this checkpoint is lost.
 */
#include "train/save_int.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "train/aside_int.h"

/* Copies bytes that another process may be changing. The copy is used only if the mark says that nobody
 * did. */
__attribute__((no_sanitize("thread"))) static void racy_copy(float *dst, const float *src, size_t n)
{
    const volatile float *from = src;

    for (size_t i = 0; i < n; i++)
        dst[i] = from[i];
}

/* If the part was changed, replaces the n elements from `offset` on by its copy. Padding after a table has no
 * copy: it never changes. */
static void read_aside(const snapshot *snap, size_t part, int array, size_t offset, size_t n, float *dst)
{
    const float *copy = aside_find(snap->plan, snap->regions, snap->unit, part, array);
    size_t lo, span = part_span(snap->plan, part, &lo);

    if (!copy || offset >= lo + span)
        return;
    size_t most = lo + span - offset;
    memcpy(dst, copy + (offset - lo), (n < most ? n : most) * sizeof *dst);
}

co_err snapshot_read(void *ctx, int array, size_t offset, size_t count, float *dst)
{
    const snapshot *snap = ctx;
    const float *live = array == 0 ? snap->regions->state : snap->regions->moment[array - 1];
    size_t chunk = snap->plan->chunk, dense = snap->plan->layout->dense;

    while (count > 0) {
        size_t part = offset / chunk, end = (part + 1) * chunk;
        if (end > dense)
            end = dense;
        if (offset >= dense)
            part = snap->plan->chunks + range_of_offset(snap->plan, offset, &end);
        size_t n = end - offset < count ? end - offset : count;
        atomic_fetch_add_explicit(&snap->regions->ctl->save_beat, 1, memory_order_relaxed);
        racy_copy(dst, live + offset, n);
        atomic_thread_fence(memory_order_seq_cst);
        if (snap->unit)
            read_aside(snap, part, array, offset, n, dst);
        dst += n;
        offset += n;
        count -= n;
    }
    return CO_OK;
}

/* Lets the ranks change the state without copies, unless that gains nothing: no rank waits if the pool holds
 * everything, or if no step follows (unit 0: the last state; a test). Then a saver that dies can be
 * replaced. */
void snapshot_read_through(void *ctx)
{
    const snapshot *snap = ctx;

    if (snap->unit && !aside_holds_all(snap->plan) &&
        unit_now(snap->plan, snap->regions->ctl, snap->unit).kind != UNIT_TEST)
        aside_done(snap->regions, snap->unit);
}

/* The hosts may change while a saver, another process, reads this. */
static int64_t view_of(const struct regions *regions)
{
    return __atomic_load_n(&regions->deal->view, __ATOMIC_RELAXED);
}

co_err snapshot_ready(void *ctx, int64_t view)
{
    const snapshot *snap = ctx;
    const co_train_hooks *hooks = snap->hooks;
    const co_deal *deal = snap->regions->deal;
    int64_t newest = view_of(snap->regions);

    if (newest != view &&
        __atomic_load_n(&deal->writer, __ATOMIC_RELAXED) != __atomic_load_n(&deal->me, __ATOMIC_RELAXED))
        return co_fail(CO_EFAIL,
                       "it was begun in view %lld of the hosts, and in view %lld another host writes them",
                       (long long)view, (long long)newest);
    return hooks && hooks->publish ? hooks->publish(hooks->ctx, view) : CO_OK;
}

/* What the tokens mean, so that the checkpoint can be used without the data. A larger one than a manifest can
 * hold is left out. Returns `extra`, or NULL if memory is out. */
static json_t *add_vocabulary(const co_plan *plan, json_t *extra)
{
    enum { MOST = 6 << 20 };
    co_str text = {0};

    if (!extra || !plan->data->vocabulary)
        return extra;
    plan->data->vocabulary(plan->data, &text);
    bool good = co_str_err(&text) == CO_OK;
    if (good && text.len < MOST)
        good = json_object_set_new(extra, "vocabulary", json_string(co_str_text(&text))) == 0;
    co_str_fini(&text);
    if (good)
        return extra;
    json_decref(extra);
    return NULL;
}

/* The manifest's `extra`: what evaluations led to, and the results. NULL if memory is out. */
static json_t *extra_of(const co_plan *plan, const saved_state *what)
{
    json_t *extra =
        plan->units.cycle ? watch_json(plan, &what->seen[0], &what->seen[1], what->step) : json_object();

    if (extra && what->results && json_object_update(extra, what->results) != 0) {
        json_decref(extra);
        return NULL;
    }
    return add_vocabulary(plan, extra);
}

/* Too many checkpoints are a nuisance, not a checkpoint that failed. */
static void prune(const co_plan *plan, const co_ckpt_writer *me)
{
    if (co_ckpt_prune_but_best(plan->spec.ckpt_root, (int)plan->cfg.ckpt_keep, (int)plan->cfg.ckpt_top, me) !=
        CO_OK)
        co_log_say(CO_LOG_WARN, "old checkpoints could not be removed: %s", co_errmsg());
}

co_err save_state(const struct run *run, const saved_state *what)
{
    const co_plan *plan = run->plan;
    snapshot snap = {plan, run->regions, what->unit, run->hooks};
    co_ckpt_writer me = {plan->spec.run_id, view_of(run->regions)};
    co_ckpt_meta meta = {.step = what->step,
                         .applied = what->applied,
                         .epoch = what->step / plan->units.steps_per_epoch,
                         .samples = samples_until(plan, what->step),
                         .seed = (uint64_t)plan->cfg.seed,
                         .slices = plan->slices,
                         .global_batch = plan->batch,
                         .view = me.view};
    char name[SAVE_NAME];

    snprintf(meta.model, sizeof meta.model, "%s", plan->spec.model->name);
    snprintf(meta.data, sizeof meta.data, "%s", plan->spec.data->name);
    snprintf(meta.optim, sizeof meta.optim, "%s", plan->spec.optim->name);
    snprintf(meta.kernels, sizeof meta.kernels, "%s", co_kernels_name(plan->kernels));
    snprintf(meta.config_sha256, sizeof meta.config_sha256, "%s", plan->spec.config_sha256);
    snprintf(meta.data_sha256, sizeof meta.data_sha256, "%s", plan->data->fingerprint);
    if (!(meta.extra = extra_of(plan, what)))
        return co_fail(CO_ENOMEM, "no memory for the manifest");
    save_name(plan, what->step, &what->seen[1], name);
    const co_ckpt_source src = {snapshot_read, &snap, snapshot_ready, snapshot_read_through, .by = me};
    co_err err =
        co_ckpt_save(plan->spec.ckpt_root, name, plan->layout, plan->moments, plan->moment_name, &meta, &src);
    json_decref(meta.extra);
    if (!err)
        prune(plan, &me);
    return err;
}
