/* graphs.c -- an executor for every slice shape that can occur: training and evaluation are planned before
 * anything starts; prediction asks for its shapes when it knows them. All executors of one model have one
 * layout. */
#include "train/plan_int.h"

#include "base/alloc.h"

static const shape_exec *look_up(const exec_set *s, co_slice_shape shape)
{
    for (int i = 0; i < s->n; i++)
        if (s->e[i].shape.n == shape.n && s->e[i].shape.len == shape.len)
            return &s->e[i];
    return NULL;
}

const shape_exec *exec_for(const exec_set *s, co_slice_shape shape)
{
    const shape_exec *e = look_up(s, shape);

    CO_ASSERT(e, "every slice shape was planned for");
    return e;
}

static size_t input_at(const co_exec *e, const char *name)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;

    return co_exec_input(e, name, &offset, &dtype, &shape) == CO_OK ? offset : SIZE_MAX;
}

static void grow(size_t *most, size_t bytes)
{
    if (bytes > *most)
        *most = bytes;
}

co_err exec_set_add(exec_set *s, const co_plan *plan, co_slice_shape shape, co_mode mode)
{
    co_graph *g;

    if (look_up(s, shape))
        return CO_OK;
    shape_exec *more = co_realloc(s->e, (size_t)(s->n + 1) * sizeof *more);
    if (!more)
        return CO_ENOMEM;
    s->e = more;
    CO_TRY(co_model_graph(&g, plan->spec.model, plan->spec.model_cfg, &plan->data->io, &plan->loss, shape,
                          mode));
    shape_exec *e = &s->e[s->n];
    *e = (shape_exec){.shape = shape};
    co_err err = co_exec_new(&e->exec, g, plan->kernels);
    co_graph_free(g);
    if (err)
        return co_fail_in(err, "model=%s", plan->spec.model->name);
    s->n++;
    e->x = input_at(e->exec, "x");
    e->y = input_at(e->exec, "y");
    e->ids = input_at(e->exec, "ids");
    e->lens = input_at(e->exec, "lens");
    e->y2 = input_at(e->exec, "y2");
    e->lam = input_at(e->exec, "lam");
    const co_exec_info *info = co_exec_info_of(e->exec);
    grow(&s->input_bytes, info->input_bytes);
    grow(&s->work_bytes, info->work_bytes);
    grow(&s->output_bytes, info->output_bytes);
    return CO_OK;
}

void exec_set_fini(exec_set *s)
{
    for (int i = 0; i < s->n; i++)
        co_exec_free(s->e[i].exec);
    co_free(s->e);
    *s = (exec_set){0};
}

/* n samples at every padded length the data can have. */
static co_err add_lengths(co_plan *plan, exec_set *s, int n, co_mode mode)
{
    const co_io *io = &plan->data->io;

    if (io->task != CO_TASK_LM)
        return exec_set_add(s, plan, (co_slice_shape){.n = n}, mode);
    for (int64_t len = io->len_step; len < io->max_len + io->len_step; len += io->len_step)
        CO_TRY(exec_set_add(s, plan, (co_slice_shape){n, (int)len}, mode));
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
    CO_TRY(add_cut(plan, &plan->tree[CUT_FULL].cut));
    if (plan->short_n)
        CO_TRY(add_cut(plan, &plan->tree[CUT_SHORT].cut));
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
