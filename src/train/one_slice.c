/* one_slice.c -- memory for one slice of training in this process, its samples, and its passes. */
#include "train/measure_int.h"

#include "base/alloc.h"
#include "base/maths.h"

static size_t lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* A batch larger than the training set is not a whole one: step 1 is cut as its short batch is. */
bool one_slice_use(struct one_slice *s, int leaf)
{
    const uint32_t *ids = ids_of_step(s->plan, s->plan->order, 1);
    uint32_t lo, hi;

    slice_range(s->plan, ids, 1, leaf, &lo, &hi);
    if (lo == hi)
        return false;
    s->ids = ids + lo;
    s->shape = co_slice_of(s->plan->data, CO_SPLIT_TRAIN, s->ids, (int)(hi - lo));
    s->e = exec_for(&s->plan->train, s->shape);
    return true;
}

co_err one_slice_open(struct one_slice *s, co_plan *plan)
{
    size_t state = lines(plan->layout->count * sizeof(float)),
           dense = lines(plan->layout->dense * sizeof(float)),
           rows = lines(plan->rows.leaf_elements * sizeof(float)), input = lines(plan->train.input_bytes);

    *s = (struct one_slice){.plan = plan};
    if (plan->kernels->space)
        return co_fail(CO_EINPUT, "trainer.kernels=%s computes elsewhere: nothing to measure here",
                       plan->cfg.kernels);
    s->block = co_zalloc(64 + state + 2 * dense + rows + input + plan->train.work_bytes);
    if (!s->block)
        return CO_ENOMEM;
    char *at = (char *)(((uintptr_t)s->block + 63) & ~(uintptr_t)63);
    s->state = (float *)(void *)at;
    s->leaf = (float *)(void *)(at + state);
    s->other = (float *)(void *)(at + state + dense);
    s->lists = (float *)(void *)(at + state + 2 * dense);
    s->input = at + state + 2 * dense + rows;
    rows_of_leaf(plan, &(struct regions){.leaf_rows = s->lists}, 0, s->rows);
    s->work = s->input + input;
    for (int leaf = 0; leaf < plan->slices && !s->ids; leaf++)
        one_slice_use(s, leaf);
    CO_ASSERT(s->ids, "step 1 has samples");
    co_fpu_init();
    co_layout_initialise(plan->layout, s->state, (uint64_t)plan->cfg.seed);
    return co_team_start(&s->team, plan->threads, CO_TEAM_SPIN, false);
}

void one_slice_close(struct one_slice *s)
{
    co_team_stop(s->team);
    co_free(s->block);
}

void one_slice_load(struct one_slice *s)
{
    co_slice_dst dst;

    slice_dst(s->e, s->input, &dst);
    co_dataset_fill(s->plan->data, CO_SPLIT_TRAIN, s->ids, s->shape,
                    &(co_draw){.seed = (uint64_t)s->plan->cfg.seed, .augment = true}, &dst);
}

co_bases one_slice_bases(struct one_slice *s)
{
    co_bases bases = {.state = s->state,
                      .leaf = s->leaf,
                      .rows = s->rows,
                      .input = s->input,
                      .work = s->work,
                      .stat = s->stat.stat,
                      .team = s->team};

    set_rows(&bases, s->shape);
    return bases;
}

co_run one_slice_run(const struct one_slice *s)
{
    return (co_run){.seed = (uint64_t)s->plan->cfg.seed, .step = 1};
}

static void compute(struct one_slice *s, co_team *team)
{
    co_bases bases = one_slice_bases(s);
    co_run run = one_slice_run(s);

    bases.team = team;
    co_exec_run(s->e->exec, &bases, &run, NULL);
}

void one_slice_compute(struct one_slice *s)
{
    compute(s, s->team);
}

void one_slice_compute_alone(struct one_slice *s)
{
    compute(s, NULL);
}
