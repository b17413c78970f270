/* graphs.c -- an executor for every slice shape that can occur: training and evaluation are planned before anything
 * starts; prediction asks for its shapes when it knows them. All executors of one model have one layout. */
#include "train/train_int.h"

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

co_err exec_set_add(exec_set *s, const co_plan *p, co_slice_shape shape, co_mode mode)
{
    co_graph *g;

    if (look_up(s, shape))
        return CO_OK;
    shape_exec *more = co_realloc(s->e, (size_t)(s->n + 1) * sizeof *more);
    if (!more)
        return CO_ENOMEM;
    s->e = more;
    CO_TRY(co_model_graph(&g, p->spec.model, p->spec.model_cfg, &p->data->io, &p->loss, shape, mode));
    shape_exec *e = &s->e[s->n];
    *e = (shape_exec){.shape = shape};
    co_err err = co_exec_new(&e->exec, g, p->kernels);
    co_graph_free(g);
    if (err)
        return co_fail_in(err, "model=%s", p->spec.model->name);
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
static co_err add_lengths(co_plan *p, exec_set *s, int n, co_mode mode)
{
    const co_io *io = &p->data->io;

    if (io->task != CO_TASK_LM)
        return exec_set_add(s, p, (co_slice_shape){.n = n}, mode);
    for (int64_t len = io->len_step; len < io->max_len + io->len_step; len += io->len_step)
        CO_TRY(exec_set_add(s, p, (co_slice_shape){n, (int)len}, mode));
    return CO_OK;
}

static co_err add_cut(co_plan *p, const co_cut *cut)
{
    for (int leaf = 0; leaf < cut->slices; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi)
            CO_TRY(add_lengths(p, &p->train, (int)(hi - lo), CO_MODE_TRAIN));
    }
    return CO_OK;
}

co_err make_train_graphs(co_plan *p)
{
    CO_TRY(add_cut(p, &p->tree[CUT_FULL].cut));
    if (p->short_n)
        CO_TRY(add_cut(p, &p->tree[CUT_SHORT].cut));
    p->layout = co_exec_layout(p->train.e[0].exec);
    return CO_OK;
}

co_err make_eval_graphs(co_plan *p)
{
    static const co_split splits[] = {CO_SPLIT_VAL, CO_SPLIT_TEST};
    uint32_t size = (uint32_t)p->cfg.eval_slice;

    for (size_t i = 0; i < CO_COUNT(splits); i++) {
        uint32_t n = p->eval_count[splits[i]];
        p->eval_items[splits[i]] = (n + size - 1) / size;
        if (p->eval_items[splits[i]] > p->max_items)
            p->max_items = p->eval_items[splits[i]];
        if (n >= size)
            CO_TRY(add_lengths(p, &p->eval, (int)size, CO_MODE_EVAL));
        if (n % size)
            CO_TRY(add_lengths(p, &p->eval, (int)(n % size), CO_MODE_EVAL));
    }
    if (!p->layout && p->eval.n)
        p->layout = co_exec_layout(p->eval.e[0].exec);
    for (int i = 0; i < p->eval.n; i++)
        CO_TRY(co_layout_same(p->layout, co_exec_layout(p->eval.e[i].exec)));
    return CO_OK;
}
