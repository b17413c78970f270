/* plan.c -- everything that is decided before anything is started: ranks, slices, steps, graphs, memory.
 *
 * What is wrong with the user's wishes is found here: CO_EINPUT with the key, its value and what would do.
 */
#include "train/train_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/* --- ranks, batch, slices ---------------------------------------------------------------------------------------- */
static co_err choose_ranks(co_plan *p)
{
    long long n;

    if (strcmp(p->cfg.devices, "auto") == 0)
        n = co_cpus_usable();
    else if (!co_str_to_i64(p->cfg.devices, &n) || n < 1 || n > CO_MAX_SLOTS)
        return co_fail(CO_EINPUT, "trainer.devices: \"%s\" is not auto or a number from 1 to %d",
                       p->cfg.devices, CO_MAX_SLOTS);
    if (p->cfg.batch_size_per_rank) {
        if (p->cfg.batch_size_per_rank * n > 1048576)
            return co_fail(CO_EINPUT, "data.batch_size_per_rank=%lld times %lld ranks is more than 1048576",
                           (long long)p->cfg.batch_size_per_rank, n);
        p->cfg.batch_size = p->cfg.batch_size_per_rank * n;
    }
    p->facts.ranks_asked = p->ranks = (int)n;
    return CO_OK;
}

static co_err choose_slices(co_plan *p)
{
    int64_t s = p->cfg.slices, batch = p->cfg.batch_size;
    bool stats = p->spec.model->batch_stats;

    if (s & (s - 1))
        return co_fail(CO_EINPUT, "trainer.slices: %lld is not a power of two", (long long)s);
    if (s == 0)
        s = co_slices_for((uint32_t)batch, stats);
    int64_t least = stats ? 2 : 1;
    if (batch / s < least)
        return co_fail(CO_EINPUT,
                       "data.batch_size=%lld is too small for %lld slices of at least %lld sample%s%s: take "
                       "data.batch_size=%lld or more, or fewer trainer.slices",
                       (long long)batch, (long long)s, (long long)least, least == 1 ? "" : "s",
                       stats ? " (the model has batch statistics)" : "", (long long)(s * least));
    if ((batch + s - 1) / s > CO_SLICE_MAX)
        return co_fail(CO_EINPUT,
                       "data.batch_size=%lld in %lld slices makes slices of more than %d samples: take more "
                       "trainer.slices",
                       (long long)batch, (long long)s, CO_SLICE_MAX);
    p->slices = (int)s;
    p->batch = (uint32_t)batch;
    if (p->ranks > p->slices)
        p->ranks = p->slices; /* the rest would be idle: the first screen says so */
    return CO_OK;
}

/* --- steps ------------------------------------------------------------------------------------------------------- */
static co_err limit_batches(const co_plan *p, int64_t all, int64_t *out)
{
    const char *text = p->cfg.limit_train_batches;
    long long n;
    double f;

    if (co_str_to_i64(text, &n) && n >= 1)
        *out = n < all ? n : all;
    else if (strchr(text, '.') && co_str_to_f64(text, &f) && f > 0 && f <= 1)
        *out = (int64_t)((double)all * f) < 1 ? 1 : (int64_t)((double)all * f);
    else
        return co_fail(CO_EINPUT,
                       "trainer.limit_train_batches: \"%s\" is not a number of batches (20) or a fraction "
                       "with a point (0.1)",
                       text);
    return CO_OK;
}

static co_err choose_steps(co_plan *p)
{
    int64_t count = p->data->count[CO_SPLIT_TRAIN], batch = p->batch;
    int64_t all = (count + batch - 1) / batch, per_epoch = all;
    schedule *s = &p->sched;

    if (count < 1)
        return co_fail(CO_EINPUT, "data=%s has no training samples", p->spec.data->name);
    CO_TRY(limit_batches(p, all, &per_epoch));
    p->short_n = per_epoch == all ? (uint32_t)(count % batch) : 0;
    s->steps_per_epoch = per_epoch;
    s->steps = per_epoch * p->cfg.max_epochs;
    if (p->cfg.max_steps >= 0 && p->cfg.max_steps < s->steps)
        s->steps = p->cfg.max_steps;
    if (s->steps > UINT32_MAX / 4)
        return co_fail(CO_EINPUT, "%lld steps are more than this version counts", (long long)s->steps);
    s->block = p->cfg.eval_every && p->data->count[CO_SPLIT_VAL] ? p->cfg.eval_every * per_epoch : 0;
    s->final_test = p->cfg.test && p->data->count[CO_SPLIT_TEST];
    s->first_step = p->start.step;
    if (p->start.step > s->steps)
        return co_fail(CO_EINPUT,
                       "the checkpoint stands at step %lld, past the %lld steps asked for: raise "
                       "trainer.max_epochs (or trainer.max_steps)",
                       (long long)p->start.step, (long long)s->steps);
    schedule_close(s);
    return CO_OK;
}

int cut_of_step(const co_plan *p, int64_t step)
{
    return p->short_n && step % p->sched.steps_per_epoch == 0 ? CUT_SHORT : CUT_FULL;
}

uint32_t samples_of_step(const co_plan *p, int64_t step)
{
    return cut_of_step(p, step) == CUT_SHORT ? p->short_n : p->batch;
}

static co_err make_trees(co_plan *p)
{
    bool stats = p->spec.model->batch_stats;
    co_cut full = co_cut_make(p->batch, p->batch, p->slices, stats);
    co_cut last = co_cut_make(p->short_n ? p->short_n : p->batch, p->batch, p->slices, stats);

    CO_TRY(co_tree_init(&p->tree[CUT_FULL], &full, p->ranks));
    return co_tree_init(&p->tree[CUT_SHORT], &last, p->ranks);
}

/* --- graphs: an executor for every slice shape that can occur ------------------------------------------------------ */
const shape_exec *exec_for(const exec_set *s, co_slice_shape shape)
{
    for (int i = 0; i < s->n; i++)
        if (s->e[i].shape.n == shape.n && s->e[i].shape.len == shape.len)
            return &s->e[i];
    CO_ASSERT(false, "every slice shape was planned for");
    return NULL;
}

static void find_input(const co_exec *e, const char *name, size_t *offset)
{
    co_dtype dtype;
    co_shape shape;

    if (co_exec_input(e, name, offset, &dtype, &shape) != CO_OK)
        *offset = SIZE_MAX;
}

static co_err add_shape(co_plan *p, exec_set *s, co_slice_shape shape, co_mode mode)
{
    for (int i = 0; i < s->n; i++)
        if (s->e[i].shape.n == shape.n && s->e[i].shape.len == shape.len)
            return CO_OK;
    shape_exec *more = co_realloc(s->e, (size_t)(s->n + 1) * sizeof *more);
    if (!more)
        return CO_ENOMEM;
    s->e = more;
    co_graph *g;
    CO_TRY(co_model_graph(&g, p->spec.model, p->spec.model_cfg, &p->data->io, shape, mode));
    shape_exec *e = &s->e[s->n];
    *e = (shape_exec){.shape = shape};
    co_err err = co_exec_new(&e->exec, g, p->kernels);
    co_graph_free(g);
    if (err)
        return co_fail_in(err, "model=%s", p->spec.model->name);
    s->n++;
    find_input(e->exec, "x", &e->x);
    find_input(e->exec, "y", &e->y);
    find_input(e->exec, "ids", &e->ids);
    find_input(e->exec, "lens", &e->lens);
    const co_exec_info *info = co_exec_info_of(e->exec);
    if (info->input_bytes > s->input_bytes)
        s->input_bytes = info->input_bytes;
    if (info->work_bytes > s->work_bytes)
        s->work_bytes = info->work_bytes;
    if (info->output_bytes > s->output_bytes)
        s->output_bytes = info->output_bytes;
    return CO_OK;
}

/* n samples at every padded length the data can have. */
static co_err add_lengths(co_plan *p, exec_set *s, int n, co_mode mode)
{
    const co_io *io = &p->data->io;

    if (io->task != CO_TASK_LM)
        return add_shape(p, s, (co_slice_shape){.n = n}, mode);
    for (int64_t len = io->len_step; len < io->max_len + io->len_step; len += io->len_step)
        CO_TRY(add_shape(p, s, (co_slice_shape){n, (int)len}, mode));
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

static co_err make_graphs(co_plan *p)
{
    static const co_split splits[] = {CO_SPLIT_VAL, CO_SPLIT_TEST};
    uint32_t size = (uint32_t)p->cfg.eval_slice;

    CO_TRY(add_cut(p, &p->tree[CUT_FULL].cut));
    if (p->short_n)
        CO_TRY(add_cut(p, &p->tree[CUT_SHORT].cut));
    for (size_t i = 0; i < CO_COUNT(splits); i++) {
        uint32_t n = p->data->count[splits[i]];
        p->eval_items[splits[i]] = (n + size - 1) / size;
        if (p->eval_items[splits[i]] > p->max_items)
            p->max_items = p->eval_items[splits[i]];
        if (n >= size)
            CO_TRY(add_lengths(p, &p->eval, (int)size, CO_MODE_EVAL));
        if (n % size)
            CO_TRY(add_lengths(p, &p->eval, (int)(n % size), CO_MODE_EVAL));
    }
    p->layout = co_exec_layout(p->train.e[0].exec);
    for (int i = 0; i < p->eval.n; i++)
        CO_TRY(co_layout_same(p->layout, co_exec_layout(p->eval.e[i].exec)));
    return CO_OK;
}

static void free_set(exec_set *s)
{
    for (int i = 0; i < s->n; i++)
        co_exec_free(s->e[i].exec);
    co_free(s->e);
}

/* --- together ------------------------------------------------------------------------------------------------------- */
/* A checkpoint of other data, slices or batch would silently be another run. */
static co_err check_resume(const co_plan *p)
{
    const co_ckpt_meta *m = &p->start;

    if (!p->spec.resume)
        return CO_OK;
    if (m->slices != p->slices || m->global_batch != p->batch)
        return co_fail(
            CO_EINPUT,
            "checkpoint %s was made with data.batch_size=%lld in %lld slices, this run has %u in %d: "
            "give the same, or start anew without ckpt_path",
            p->spec.resume, (long long)m->global_batch, (long long)m->slices, p->batch, p->slices);
    if (m->seed != (uint64_t)p->cfg.seed)
        return co_fail(CO_EINPUT, "checkpoint %s was made with seed=%llu, this run has seed=%lld",
                       p->spec.resume, (unsigned long long)m->seed, (long long)p->cfg.seed);
    if (strcmp(m->kernels, co_kernels_name(p->kernels)) != 0)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with kernels %s, this run has %s: give trainer.kernels=%.*s",
                       p->spec.resume, m->kernels, co_kernels_name(p->kernels), (int)strcspn(m->kernels, "."),
                       m->kernels);
    return CO_OK;
}

static void fill_facts(co_plan *p)
{
    co_plan_facts *f = &p->facts;

    f->ranks = p->ranks;
    f->slices = p->slices;
    f->batch = p->batch;
    f->steps_per_epoch = p->sched.steps_per_epoch;
    f->steps = p->sched.steps;
    f->epochs = (p->sched.steps + p->sched.steps_per_epoch - 1) / p->sched.steps_per_epoch;
    f->samples_per_epoch = p->data->count[CO_SPLIT_TRAIN];
    f->start_step = p->start.step;
    f->layout = p->layout;
    f->data = p->data;
    f->kernels = co_kernels_name(p->kernels);
    f->metric = co_metric_name(p->data->io.task);
    f->state_elements = p->layout->count;
    for (int i = 0; i < p->layout->n; i++)
        if (p->layout->entry[i].kind == CO_KIND_PARAM)
            f->params += p->layout->entry[i].count;
    f->arena_bytes = p->arena.bytes;
    f->arena = &p->arena;
    const co_cut *cut = &p->tree[CUT_FULL].cut;
    for (int leaf = 0; leaf < cut->slices; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi && p->data->io.task != CO_TASK_LM)
            f->flops_per_step +=
                co_exec_info_of(exec_for(&p->train, (co_slice_shape){.n = (int)(hi - lo)})->exec)->flops;
    }
    plan_lines(p);
}

static co_err make(co_plan *p)
{
    CO_TRY(co_kernels_get(&p->kernels, p->cfg.kernels));
    CO_TRY(choose_ranks(p));
    CO_TRY(choose_slices(p));
    CO_TRY(co_dataset_open(&p->data, p->spec.data, p->spec.data_cfg));
    if (p->spec.model->check)
        CO_TRY(p->spec.model->check(p->spec.model_cfg, &p->data->io));
    if (p->spec.optim->check)
        CO_TRY(p->spec.optim->check(p->spec.optim_cfg));
    if (p->spec.resume)
        CO_TRY(co_ckpt_read_meta(&p->start, p->spec.resume));
    CO_TRY(choose_steps(p));
    CO_TRY(check_resume(p));
    CO_TRY(make_trees(p));
    CO_TRY(make_graphs(p));
    CO_TRY(co_order_new(&p->order, p->data, CO_SPLIT_TRAIN, p->batch, (uint64_t)p->cfg.seed, true));
    p->moments = p->spec.optim->moments(p->spec.optim_cfg, p->moment_name);
    p->lr = p->spec.optim->lr(p->spec.optim_cfg);
    p->chunk = co_layout_chunk(p->layout);
    p->chunks = co_layout_chunks(p->layout);
    p->sparse = p->layout->leaf_count > p->layout->count;
    regions_reserve(p);
    fill_facts(p);
    return co_arena_fits(&p->arena);
}

co_err co_plan_new(co_plan **out, const co_train_spec *spec)
{
    co_plan *p = co_zalloc(sizeof *p);

    if (!p)
        return CO_ENOMEM;
    p->spec = *spec;
    p->cfg = *spec->cfg;
    co_err err = make(p);
    if (err) {
        co_plan_free(p);
        return err;
    }
    *out = p;
    return CO_OK;
}

void co_plan_free(co_plan *p)
{
    if (!p)
        return;
    co_tree_fini(&p->tree[CUT_FULL]);
    co_tree_fini(&p->tree[CUT_SHORT]);
    free_set(&p->train);
    free_set(&p->eval);
    co_order_free(p->order);
    co_dataset_close(p->data);
    co_arena_close(&p->arena);
    co_free(p->at);
    co_ckpt_meta_fini(&p->start);
    co_free(p);
}

void co_plan_place(co_plan *p, const char *ckpt_root, const char *log_dir)
{
    CO_ASSERT(!p->spec.ckpt_root == !ckpt_root, "whether to save was planned for");
    p->spec.ckpt_root = ckpt_root;
    p->spec.log_dir = log_dir;
}

const co_plan_facts *co_plan_facts_of(const co_plan *p)
{
    return &p->facts;
}
