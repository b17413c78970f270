/* jobs.c -- a slot's endless sequence of slices, for its loader.
 *
 * Job j of a slot is one of its leaves in one batch of one epoch; which one is arithmetic on j, so a replaced rank or a
 * resumed run begins anywhere:
 *
 *     epoch:   | whole batch: full leaves | whole batch: full leaves | ... | short batch: its leaves |
 */
#include "train/train_int.h"

#include "base/alloc.h"

struct jobs {
    rank *k;
    int n[CUTS]; /* leaves of this slot that have samples */
    int16_t leaf[CUTS][CO_MAX_SLICES];
    int64_t whole; /* whole batches of an epoch */
    int64_t per_epoch;
};

static void count_jobs(struct jobs *j, const co_plan *p, int slot)
{
    for (int cut = 0; cut < CUTS; cut++) {
        const co_fold *f = &p->tree[cut].fold[slot];
        for (int i = 0; i < f->n_ops; i++)
            if (f->op[i].leaf >= 0)
                j->leaf[cut][j->n[cut]++] = f->op[i].leaf;
    }
    j->whole = p->sched.steps_per_epoch - (p->short_n ? 1 : 0);
    j->per_epoch = j->whole * j->n[CUT_FULL] + (p->short_n ? j->n[CUT_SHORT] : 0);
}

static bool next(void *ctx, uint64_t index, co_load *job)
{
    struct jobs *j = ctx;
    const co_plan *p = j->k->p;
    int64_t epoch, rest, batch, nth;
    uint32_t lo, hi;

    if (j->per_epoch == 0)
        return false;
    epoch = (int64_t)index / j->per_epoch;
    rest = (int64_t)index % j->per_epoch;
    int cut = rest < j->whole * j->n[CUT_FULL] ? CUT_FULL : CUT_SHORT;
    if (cut == CUT_FULL) {
        batch = rest / j->n[CUT_FULL];
        nth = rest % j->n[CUT_FULL];
    } else {
        batch = j->whole;
        nth = rest - j->whole * j->n[CUT_FULL];
    }
    if (epoch * p->sched.steps_per_epoch + batch >= p->sched.steps)
        return false;
    co_cut_range(&p->tree[cut].cut, j->leaf[cut][nth], &lo, &hi);
    const uint32_t *ids = ids_of_step(p, epoch * p->sched.steps_per_epoch + batch + 1);
    job->split = CO_SPLIT_TRAIN;
    job->draw = (co_draw){
        .seed = (uint64_t)p->cfg.seed, .epoch = (uint32_t)epoch, .augment = p->cfg.overfit_batches == 0};
    for (uint32_t i = lo; i < hi; i++)
        job->ids[i - lo] = ids[i];
    job->shape.n = (int)(hi - lo);
    job->shape.len = co_slice_len(p->data, CO_SPLIT_TRAIN, job->ids, job->shape.n);
    return true;
}

void slice_dst(const shape_exec *e, char *buffer, co_slice_dst *dst)
{
    *dst = (co_slice_dst){
        .x = e->x == SIZE_MAX ? NULL : buffer + e->x,
        .y = e->y == SIZE_MAX ? NULL : buffer + e->y,
        .ids = e->ids == SIZE_MAX ? NULL : (int64_t *)(void *)(buffer + e->ids),
        .lens = e->lens == SIZE_MAX ? NULL : (int32_t *)(void *)(buffer + e->lens),
        .y2 = e->y2 == SIZE_MAX ? NULL : (int32_t *)(void *)(buffer + e->y2),
        .lam = e->lam == SIZE_MAX ? NULL : (float *)(void *)(buffer + e->lam),
    };
}

static void where(void *ctx, void *buffer, co_load *job)
{
    struct jobs *j = ctx;

    slice_dst(exec_for(&j->k->p->train, job->shape), buffer, &job->dst);
}

/* The index of the first leaf that is still to be computed: of the unit in progress, or of the next training step. */
static uint64_t first_job(const struct jobs *j, const rank *k)
{
    const co_plan *p = k->p;
    unit u = unit_now(p, k->r->ctl, k->who.unit);
    int64_t done = u.kind == UNIT_TRAIN ? u.step - 1 : u.step; /* whole steps */
    int64_t epoch = done / p->sched.steps_per_epoch, batch = done % p->sched.steps_per_epoch;
    uint64_t index = (uint64_t)(epoch * j->per_epoch + batch * j->n[CUT_FULL]);

    if (u.kind != UNIT_TRAIN)
        return index;
    const co_fold *f = &p->tree[cut_of_step(p, u.step)].fold[k->who.slot];
    uint32_t ops = co_mark_get(&k->me->progress, k->who.unit);
    for (uint32_t i = 0; i < ops && i < (uint32_t)f->n_ops; i++)
        index += f->op[i].leaf >= 0;
    return index;
}

co_err jobs_start(rank *k)
{
    const co_plan *p = k->p;
    struct jobs *j = co_zalloc(sizeof *j);
    int threads = (int)p->cfg.workers;

    if (!j)
        return CO_ENOMEM;
    j->k = k;
    count_jobs(j, p, (int)k->who.slot);
    k->job = first_job(j, k);
    k->jobs = j;
    return co_loader_start(&k->loader, &(co_loader_spec){.data = p->data,
                                                         .threads = threads,
                                                         .depth = threads ? threads + 2 : 1,
                                                         .ring = k->r->input[k->who.slot],
                                                         .slot_bytes = (p->train.input_bytes + 63) & ~(size_t)63,
                                                         .first = k->job,
                                                         .next = next,
                                                         .where = where,
                                                         .ctx = j});
}
