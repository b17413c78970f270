/* graphs.c -- builds an executor for every slice shape that can occur. Those of training and evaluation are
 * built with the plan; prediction adds its own. All executors of a model have the same parameter layout. */
#include "train/plan_int.h"

#include "base/alloc.h"

static const shape_exec *look_up(const exec_set *set, co_slice_shape shape)
{
    for (int i = 0; i < set->n; i++)
        if (set->e[i].shape.n == shape.n && set->e[i].shape.len == shape.len)
            return &set->e[i];
    return NULL;
}

const shape_exec *exec_for(const exec_set *set, co_slice_shape shape)
{
    const shape_exec *shaped = look_up(set, shape);

    CO_ASSERT(shaped, "every slice shape was planned for");
    return shaped;
}

static size_t input_at(const co_exec *exec, const char *name)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;

    return co_exec_input(exec, name, &offset, &dtype, &shape) == CO_OK ? offset : SIZE_MAX;
}

static void grow(size_t *most, size_t bytes)
{
    if (bytes > *most)
        *most = bytes;
}

co_err exec_set_add(exec_set *set, const co_plan *plan, co_slice_shape shape, co_mode mode)
{
    co_graph *graph;

    if (look_up(set, shape))
        return CO_OK;
    shape_exec *more = co_realloc(set->e, (size_t)(set->n + 1) * sizeof *more);
    if (!more)
        return CO_ENOMEM;
    set->e = more;
    CO_TRY(co_model_graph(&graph, plan->spec.model, plan->spec.model_cfg, &plan->data->io, &plan->loss, shape,
                          mode));
    shape_exec *shaped = &set->e[set->n];
    *shaped = (shape_exec){.shape = shape};
    co_err err = co_exec_new_team(&shaped->exec, graph, plan->kernels, plan->threads, 0);
    co_graph_free(graph);
    if (err)
        return co_fail_in(err, "model=%s", plan->spec.model->name);
    set->n++;
    shaped->x = input_at(shaped->exec, "x");
    shaped->y = input_at(shaped->exec, "y");
    shaped->ids = input_at(shaped->exec, "ids");
    shaped->lens = input_at(shaped->exec, "lens");
    shaped->items = input_at(shaped->exec, "items");
    shaped->y2 = input_at(shaped->exec, "y2");
    shaped->lam = input_at(shaped->exec, "lam");
    const co_exec_info *info = co_exec_info_of(shaped->exec);
    grow(&set->input_bytes, info->input_bytes);
    grow(&set->work_bytes, info->work_bytes);
    grow(&set->output_bytes, info->output_bytes);
    return CO_OK;
}

void exec_set_fini(exec_set *set)
{
    for (int i = 0; i < set->n; i++)
        co_exec_free(set->e[i].exec);
    co_free(set->e);
    *set = (exec_set){0};
}

/* Adds shapes of n samples, for text one for every padded length that the data can have. */
static co_err add_lengths(co_plan *plan, exec_set *set, int n, co_mode mode)
{
    const co_io *io = &plan->data->io;

    if (io->task != CO_TASK_LM)
        return exec_set_add(set, plan, (co_slice_shape){.n = n}, mode);
    for (int64_t len = io->len_step; len < io->max_len + io->len_step; len += io->len_step)
        CO_TRY(exec_set_add(set, plan, (co_slice_shape){n, (int)len}, mode));
    return CO_OK;
}

static co_err add_cut(co_plan *plan, const co_cut *cut)
{
    for (int leaf = 0; leaf < cut->slices; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi)
            CO_TRY(add_lengths(plan, &plan->train, (int)(hi - lo), CO_MODE_TRAIN));
    }
    return CO_OK;
}

co_err make_train_graphs(co_plan *plan)
{
    CO_TRY(add_cut(plan, &plan->cut[CUT_FULL]));
    if (plan->short_n)
        CO_TRY(add_cut(plan, &plan->cut[CUT_SHORT]));
    plan->layout = co_exec_layout(plan->train.e[0].exec);
    return CO_OK;
}

co_err make_eval_graphs(co_plan *plan)
{
    static const co_split splits[] = {CO_SPLIT_VAL, CO_SPLIT_TEST};
    uint32_t size = (uint32_t)plan->cfg.eval_slice;

    for (size_t i = 0; i < CO_COUNT(splits); i++) {
        uint32_t n = plan->eval_count[splits[i]];
        plan->eval_items[splits[i]] = (n + size - 1) / size;
        if (plan->eval_items[splits[i]] > plan->max_items)
            plan->max_items = plan->eval_items[splits[i]];
        if (n >= size)
            CO_TRY(add_lengths(plan, &plan->eval, (int)size, CO_MODE_EVAL));
        if (n % size)
            CO_TRY(add_lengths(plan, &plan->eval, (int)(n % size), CO_MODE_EVAL));
    }
    if (!plan->layout && plan->eval.n)
        plan->layout = co_exec_layout(plan->eval.e[0].exec);
    for (int i = 0; i < plan->eval.n; i++)
        CO_TRY(co_layout_same(plan->layout, co_exec_layout(plan->eval.e[i].exec)));
    return CO_OK;
}

void slice_dst(const shape_exec *shaped, char *buffer, co_slice_dst *dst)
{
    *dst = (co_slice_dst){
        .x = shaped->x == SIZE_MAX ? NULL : buffer + shaped->x,
        .y = shaped->y == SIZE_MAX ? NULL : buffer + shaped->y,
        .ids = shaped->ids == SIZE_MAX ? NULL : (int64_t *)(void *)(buffer + shaped->ids),
        .lens = shaped->lens == SIZE_MAX ? NULL : (int32_t *)(void *)(buffer + shaped->lens),
        .items = shaped->items == SIZE_MAX ? NULL : (int32_t *)(void *)(buffer + shaped->items),
        .y2 = shaped->y2 == SIZE_MAX ? NULL : (int32_t *)(void *)(buffer + shaped->y2),
        .lam = shaped->lam == SIZE_MAX ? NULL : (float *)(void *)(buffer + shaped->lam),
    };
}
