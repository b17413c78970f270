/* graphs.c -- builds an executor for every slice shape that can occur. A slice of text may have any number
 * of samples and tokens up to the room that room.c worked out, and one executor takes them all. Those of
 * training and evaluation are built with the plan; prediction adds its own. All executors of a model have
 * the same parameter layout. */
#include "train/plan_int.h"

#include "base/alloc.h"

static bool takes(const shape_exec *shaped, co_slice_shape shape)
{
    const co_slice_shape *room = &shaped->shape;

    if (room->tokens > 0)
        return shape.n <= room->n && shape.tokens <= room->tokens && shape.targets <= room->targets;
    return shape.n == room->n;
}

static const shape_exec *look_up(const exec_set *set, co_slice_shape shape)
{
    for (int i = 0; i < set->n; i++)
        if (takes(&set->e[i], shape))
            return &set->e[i];
    return NULL;
}

void set_rows(co_bases *bases, co_slice_shape shape)
{
    bases->ragged[CO_RAGGED_X] = shape.tokens;
    bases->ragged[CO_RAGGED_Y] = shape.targets;
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

/* Where the mirror images of x go; SIZE_MAX: the graph does not want them. */
static size_t mirror_at(const shape_exec *shaped)
{
    size_t offset;
    co_dtype dtype;
    co_shape x;

    if (co_exec_input(shaped->exec, "x", &offset, &dtype, &x) != CO_OK || dtype != CO_F32 ||
        x.d[0] != 2 * (int64_t)shaped->shape.n)
        return SIZE_MAX;
    return offset + (size_t)co_shape_count(&x) / 2 * sizeof(float);
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
    shaped->mirror = plan->data->io.mirror && mode != CO_MODE_TRAIN ? mirror_at(shaped) : SIZE_MAX;
    shaped->y = input_at(shaped->exec, "y");
    shaped->ids = input_at(shaped->exec, "ids");
    shaped->given = input_at(shaped->exec, "given");
    shaped->offsets = input_at(shaped->exec, "offsets");
    shaped->y_offsets = input_at(shaped->exec, "y_offsets");
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

static co_err add_cut(co_plan *plan, const co_cut *cut)
{
    for (int leaf = 0; leaf < cut->slices; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi)
            CO_TRY(exec_set_add(&plan->train, plan, (co_slice_shape){.n = (int)(hi - lo)}, CO_MODE_TRAIN));
    }
    return CO_OK;
}

co_err make_train_graphs(co_plan *plan)
{
    bool text = co_is_text(&plan->data->io);

    CO_TRY(room_for_training(plan));
    if (text)
        CO_TRY(exec_set_add(&plan->train, plan, plan->room, CO_MODE_TRAIN));
    else
        CO_TRY(add_cut(plan, &plan->cut[CUT_FULL]));
    if (plan->short_n && !text)
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
        if (co_is_text(&plan->data->io))
            continue;
        if (n >= size)
            CO_TRY(exec_set_add(&plan->eval, plan, (co_slice_shape){.n = (int)size}, CO_MODE_EVAL));
        if (n % size)
            CO_TRY(exec_set_add(&plan->eval, plan, (co_slice_shape){.n = (int)(n % size)}, CO_MODE_EVAL));
    }
    if (co_is_text(&plan->data->io) && (plan->max_items || plan->spec.vocabulary_only))
        CO_TRY(exec_set_add(&plan->eval, plan, room_for_evaluation(plan), CO_MODE_EVAL));
    if (!plan->layout && plan->eval.n)
        plan->layout = co_exec_layout(plan->eval.e[0].exec);
    for (int i = 0; i < plan->eval.n; i++)
        CO_TRY(co_layout_same(plan->layout, co_exec_layout(plan->eval.e[i].exec)));
    return CO_OK;
}

static void *at(char *buffer, size_t offset)
{
    return offset == SIZE_MAX ? NULL : buffer + offset;
}

void slice_dst(const shape_exec *shaped, char *buffer, co_slice_dst *dst)
{
    *dst = (co_slice_dst){.x = at(buffer, shaped->x),
                          .mirror = at(buffer, shaped->mirror),
                          .y = at(buffer, shaped->y),
                          .ids = at(buffer, shaped->ids),
                          .items = at(buffer, shaped->items),
                          .y2 = at(buffer, shaped->y2),
                          .lam = at(buffer, shaped->lam),
                          .given = at(buffer, shaped->given),
                          .offsets = at(buffer, shaped->offsets),
                          .y_offsets = at(buffer, shaped->y_offsets),
                          .room = shaped->shape.n};
}
