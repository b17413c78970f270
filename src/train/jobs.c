/* jobs.c -- a slot's endless sequence of slices, for its loader.
 *
 * Job j of a slot is one of its leaves in one batch of one epoch. Which one follows from j by arithmetic, so
 * a replaced rank, a resumed run or a new deal can begin at any job:
 *
 *     epoch:   | whole batch: full leaves | whole batch: full leaves | ... | short batch: its leaves |
 */
#include "train/rank_int.h"

#include "base/alloc.h"

struct jobs {
    struct rank *rank;
    int n[CUTS]; /* leaves of this slot that have samples */
    int16_t leaf[CUTS][CO_MAX_SLICES];
    int64_t whole; /* whole batches of an epoch */
    int64_t per_epoch;
};

static void count_jobs(struct jobs *jobs, const struct rank *rank)
{
    const co_plan *plan = rank->plan;

    for (int cut = 0; cut < CUTS; cut++) {
        const co_fold *fold = &rank->tree[cut].fold[rank->who.slot];
        for (int i = 0; i < fold->n_ops; i++)
            if (fold->op[i].leaf >= 0)
                jobs->leaf[cut][jobs->n[cut]++] = fold->op[i].leaf;
    }
    jobs->whole = plan->units.steps_per_epoch - (plan->short_n ? 1 : 0);
    jobs->per_epoch = jobs->whole * jobs->n[CUT_FULL] + (plan->short_n ? jobs->n[CUT_SHORT] : 0);
}

void load_of_leaf(const co_plan *plan, co_order *order, int64_t step, int leaf, co_load *load)
{
    const uint32_t *ids = ids_of_step(plan, order, step);
    uint32_t lo, hi;

    slice_range(plan, ids, step, leaf, &lo, &hi);
    load->split = CO_SPLIT_TRAIN;
    load->draw = (co_draw){.seed = (uint64_t)plan->cfg.seed,
                           .epoch = (uint32_t)((step - 1) / plan->units.steps_per_epoch),
                           .augment = plan->cfg.overfit_batches == 0};
    for (uint32_t i = lo; i < hi; i++)
        load->ids[i - lo] = ids[i];
    load->shape = co_slice_of(plan->data, CO_SPLIT_TRAIN, load->ids, (int)(hi - lo));
}

static bool next(void *ctx, uint64_t index, co_load *job)
{
    struct jobs *jobs = ctx;
    const co_plan *plan = jobs->rank->plan;
    int64_t epoch, rest, batch, nth;

    if (jobs->per_epoch == 0)
        return false;
    epoch = (int64_t)index / jobs->per_epoch;
    rest = (int64_t)index % jobs->per_epoch;
    int cut = rest < jobs->whole * jobs->n[CUT_FULL] ? CUT_FULL : CUT_SHORT;
    if (cut == CUT_FULL) {
        batch = rest / jobs->n[CUT_FULL];
        nth = rest % jobs->n[CUT_FULL];
    } else {
        batch = jobs->whole;
        nth = rest - jobs->whole * jobs->n[CUT_FULL];
    }
    if (epoch * plan->units.steps_per_epoch + batch >= plan->units.steps)
        return false;
    load_of_leaf(plan, plan->order, epoch * plan->units.steps_per_epoch + batch + 1, jobs->leaf[cut][nth], job);
    return true;
}

static void where(void *ctx, void *buffer, co_load *job)
{
    struct jobs *jobs = ctx;

    slice_dst(exec_for(&jobs->rank->plan->train, job->shape), buffer, &job->dst);
}

static uint64_t job_of_step(const struct jobs *jobs, const co_plan *plan, int64_t step)
{
    int64_t epoch = (step - 1) / plan->units.steps_per_epoch, batch = (step - 1) % plan->units.steps_per_epoch;

    return (uint64_t)(epoch * jobs->per_epoch + batch * jobs->n[CUT_FULL]);
}

static co_err start_at(struct rank *rank, uint64_t job)
{
    const co_plan *plan = rank->plan;

    rank->job = job;
    return co_loader_start(&rank->loader, &(co_loader_spec){.data = plan->data,
                                                            .threads = (int)plan->cfg.workers,
                                                            .depth = loader_depth(plan),
                                                            .ring = rank->regions->input[rank->who.slot],
                                                            .slot_bytes = loader_slot_bytes(plan),
                                                            .first = job,
                                                            .next = next,
                                                            .where = where,
                                                            .ctx = rank->jobs});
}

co_err jobs_start(struct rank *rank)
{
    const co_plan *plan = rank->plan;
    unit u = unit_now(plan, rank->regions->ctl, rank->who.unit);
    bool done = u.kind != UNIT_TRAIN || co_mark_get(&rank->me->progress, rank->turn) != 0;

    if (!rank->jobs)
        rank->jobs = co_zalloc(sizeof *rank->jobs);
    if (!rank->jobs)
        return CO_ENOMEM;
    *rank->jobs = (struct jobs){.rank = rank};
    count_jobs(rank->jobs, rank);
    return start_at(rank, job_of_step(rank->jobs, plan, u.step + (done ? 1 : 0)));
}

const co_load *next_slice(struct rank *rank, int leaf, void **input)
{
    rank_phase(rank, CO_PHASE_LOAD, (uint32_t)leaf);
    fault_point(rank, CO_FAULT_LOAD);
    const co_load *job = co_loader_get(rank->loader, rank->job++, input);
    CO_ASSERT(job, "a slice that is due is in the sequence");
    struct unread what = {job->split, (uint32_t)leaf, job->ids, job->shape.n, job->bad};
    return job->bad == 0 || nobody_reads(rank, &what) ? job : NULL;
}

static void stop_loader(struct rank *rank)
{
    if (!rank->loader)
        return;
    rank->waited_ns += co_loader_wait_ns(rank->loader);
    co_loader_stop(rank->loader);
    rank->loader = NULL;
}

void jobs_follow(struct rank *rank, int64_t step)
{
    uint64_t job = job_of_step(rank->jobs, rank->plan, step);
    co_err err = CO_OK;

    if (rank->job == job)
        return;
    stop_loader(rank);
    err = start_at(rank, job);
    CO_ASSERT(err == CO_OK, "a loader that ran can run again");
}

void jobs_dealt(struct rank *rank)
{
    stop_loader(rank); /* its threads read what follows */
    *rank->jobs = (struct jobs){.rank = rank};
    count_jobs(rank->jobs, rank);
    rank->job = UINT64_MAX; /* nobody's: the loader starts again with the next step */
}
