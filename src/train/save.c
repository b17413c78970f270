/* save.c -- a checkpoint of state k, written while later steps go on.
 *
 * The saver is a child process that reads the arena. A chunk that was not applied since is read where it lies; one that
 * was, is read from where the applier put it aside. Which of the two holds is known only after reading: the applier sets
 * the aside mark before it changes the chunk, so a copy made while the mark was still unset is good.
 */
#include "train/train_int.h"

#include <stdio.h>
#include <string.h>

/* A copy that may race with the applier: its value is used only if the mark says that it did not. */
__attribute__((no_sanitize("thread"))) static void racy_copy(float *dst, const float *src, size_t n)
{
    const volatile float *from = src;

    for (size_t i = 0; i < n; i++)
        dst[i] = from[i];
}

co_err snapshot_read(void *ctx, int part, size_t offset, size_t count, float *dst)
{
    const snapshot *s = ctx;
    const float *live = part == 0 ? s->r->state : s->r->moment[part - 1];
    size_t chunk = s->p->chunk;

    while (count > 0) {
        size_t c = offset / chunk, n = (c + 1) * chunk - offset;
        if (n > count)
            n = count;
        racy_copy(dst, live + offset, n);
        atomic_thread_fence(memory_order_seq_cst);
        if (s->unit && co_mark_get(&s->r->aside_mark[c], s->unit) == 1)
            memcpy(dst, s->r->aside[part] + offset, n * sizeof *dst);
        dst += n;
        offset += n;
        count -= n;
    }
    return CO_OK;
}

int64_t samples_until(const co_plan *p, int64_t step)
{
    int64_t per = p->sched.steps_per_epoch, whole = step / per, rest = step % per;
    int64_t epoch = per * p->batch - (p->short_n ? p->batch - p->short_n : 0);

    return whole * epoch + rest * p->batch;
}

co_err save_state(const co_plan *p, const regions *r, uint32_t snap_unit, int64_t step, int64_t applied,
                  const watch w[2])
{
    snapshot snap = {p, r, snap_unit};
    co_ckpt_meta meta = {.step = step,
                         .applied = applied,
                         .epoch = step / p->sched.steps_per_epoch,
                         .samples = samples_until(p, step),
                         .seed = (uint64_t)p->cfg.seed,
                         .slices = p->slices,
                         .global_batch = p->batch};
    char name[SAVE_NAME];

    snprintf(meta.model, sizeof meta.model, "%s", p->spec.model->name);
    snprintf(meta.data, sizeof meta.data, "%s", p->spec.data->name);
    snprintf(meta.optim, sizeof meta.optim, "%s", p->spec.optim->name);
    snprintf(meta.kernels, sizeof meta.kernels, "%s", co_kernels_name(p->kernels));
    snprintf(meta.config_sha256, sizeof meta.config_sha256, "%s", p->spec.config_sha256);
    snprintf(meta.data_sha256, sizeof meta.data_sha256, "%s", p->data->fingerprint);
    if (p->sched.block && !(meta.extra = watch_json(p, &w[0], &w[1], step)))
        return CO_ENOMEM;
    save_name(p, step, &w[1], name);
    co_err err = co_ckpt_save(p->spec.ckpt_root, name, p->layout, p->moments, p->moment_name, &meta,
                              &(co_ckpt_source){snapshot_read, &snap});
    json_decref(meta.extra);
    CO_TRY(err);
    return co_ckpt_prune_but_best(p->spec.ckpt_root, (int)p->cfg.ckpt_keep, (int)p->cfg.ckpt_top);
}
