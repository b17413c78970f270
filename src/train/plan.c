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
        n = co_cpus_usable() < CO_MAX_SLOTS ? co_cpus_usable() : CO_MAX_SLOTS;
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
        return co_fail(CO_EINPUT, "trainer.slices: %lld is not a power of two (1, 2, 4, 8 ...)", (long long)s);
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
static co_err limit_batches(const char *key, const char *text, int64_t all, int64_t *out)
{
    long long n;
    double f;

    if (co_str_to_i64(text, &n) && n >= 1)
        *out = n < all ? n : all;
    else if (strchr(text, '.') && co_str_to_f64(text, &f) && f > 0 && f <= 1)
        *out = (int64_t)((double)all * f) < 1 ? 1 : (int64_t)((double)all * f);
    else
        return co_fail(CO_EINPUT,
                       "trainer.%s: \"%s\" is not a number of batches (20) or a fraction with a point (0.1)",
                       key, text);
    return CO_OK;
}

static co_err choose_steps(co_plan *p)
{
    int64_t count = p->data->count[CO_SPLIT_TRAIN], batch = p->batch;
    int64_t all = (count + batch - 1) / batch, per_epoch = all;
    schedule *s = &p->sched;

    if (count < 1)
        return co_fail(CO_EINPUT, "data=%s has no training samples", p->spec.data->name);
    CO_TRY(limit_batches("limit_train_batches", p->cfg.limit_train_batches, all, &per_epoch));
    if (p->cfg.overfit_batches)
        per_epoch = p->cfg.overfit_batches < all ? p->cfg.overfit_batches : all;
    if (p->cfg.fast_dev_run)
        per_epoch = p->cfg.max_epochs = 1;
    p->short_n = per_epoch == all ? (uint32_t)(count % batch) : 0;
    s->steps_per_epoch = per_epoch;
    s->steps = per_epoch * p->cfg.max_epochs;
    if (p->cfg.max_steps >= 0 && p->cfg.max_steps < s->steps)
        s->steps = p->cfg.max_steps;
    if (s->steps > UINT32_MAX / 4)
        return co_fail(CO_EINPUT, "%lld steps are more than this version counts", (long long)s->steps);
    s->block = p->cfg.eval_every && p->eval_count[CO_SPLIT_VAL] ? p->cfg.eval_every * per_epoch : 0;
    s->final_test = p->cfg.test && p->eval_count[CO_SPLIT_TEST];
    s->first_step = p->start.step;
    if (p->cfg.max_time)
        CO_TRY(parse_duration(p->cfg.max_time, &p->max_time_ns));
    return CO_OK;
}

/* How many samples of a split are looked at: batches are the run's, also where only its checkpoint is looked at. */
static co_err limit_eval(co_plan *p, co_split split, const char *key, const char *text)
{
    int64_t count = p->data->count[split], n;
    int64_t size = p->batch                    ? p->batch
                   : p->start.global_batch > 0 ? p->start.global_batch
                                               : p->cfg.batch_size;

    CO_TRY(limit_batches(key, text, (count + size - 1) / size, &n));
    if (p->cfg.fast_dev_run)
        n = 1;
    p->eval_count[split] = (uint32_t)(n * size < count ? n * size : count);
    return CO_OK;
}

static co_err choose_eval(co_plan *p)
{
    CO_TRY(limit_eval(p, CO_SPLIT_VAL, "limit_val_batches", p->cfg.limit_val_batches));
    return limit_eval(p, CO_SPLIT_TEST, "limit_test_batches", p->cfg.limit_test_batches);
}

const uint32_t *ids_of_step(const co_plan *p, int64_t step)
{
    int64_t per = p->sched.steps_per_epoch;

    return co_order_epoch(p->order, (uint32_t)((step - 1) / per)) + (step - 1) % per * p->batch;
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

/* --- together ------------------------------------------------------------------------------------------------------- */
/* First weights that do not fit are refused before anything starts; a run that continues has its own. */
static co_err check_weights(const co_plan *p)
{
    if (p->cfg.weights_skip && !p->cfg.weights)
        return co_fail(CO_EINPUT, "weights_skip=%s without weights=FILE", p->cfg.weights_skip);
    return p->cfg.weights && !p->spec.resume
               ? co_weights_load(p->cfg.weights, p->layout, p->cfg.weights_skip, NULL)
               : CO_OK;
}

/* A checkpoint of another model, optimiser, batch or seed would silently be another run. */
static co_err check_resume(const co_plan *p)
{
    const co_ckpt_meta *m = &p->start;

    if (!p->spec.resume)
        return CO_OK;
    co_err err =
        co_ckpt_fits(p->spec.resume, p->layout, 0, NULL); /* the model first: much else follows from it */
    if (err)
        return co_fail(err,
                       "%s; it was made with model=%s: give that model with its keys, or start anew without "
                       "ckpt_path",
                       co_errmsg(), m->model);
    if (m->slices != p->slices || m->global_batch != p->batch)
        return co_fail(
            CO_EINPUT,
            "checkpoint %s was made with data.batch_size=%lld in %lld slices, this run has %u in %d: "
            "give the same, or start anew without ckpt_path",
            p->spec.resume, (long long)m->global_batch, (long long)m->slices, p->batch, p->slices);
    if (m->samples != samples_until(p, m->step) || m->epoch != m->step / p->sched.steps_per_epoch)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with epochs of another length (trainer.limit_train_batches, "
                       "or the data): "
                       "give the same, or start anew without ckpt_path",
                       p->spec.resume);
    if (m->seed != (uint64_t)p->cfg.seed)
        return co_fail(
            CO_EINPUT,
            "checkpoint %s was made with seed=%llu, this run has seed=%lld: give the same, or start "
            "anew without ckpt_path",
            p->spec.resume, (unsigned long long)m->seed, (long long)p->cfg.seed);
    if (strcmp(m->optim, p->spec.optim->name) != 0)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with optim=%s, this run has optim=%s: give the same, or start "
                       "anew without ckpt_path",
                       p->spec.resume, m->optim, p->spec.optim->name);
    if (strcmp(m->kernels, co_kernels_name(p->kernels)) != 0)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with kernels %s, this run has %s: give trainer.kernels=%.*s",
                       p->spec.resume, m->kernels, co_kernels_name(p->kernels), (int)strcspn(m->kernels, "."),
                       m->kernels);
    CO_TRY(co_ckpt_fits(p->spec.resume, p->layout, p->moments, p->moment_name));
    if (m->step > p->sched.steps)
        return co_fail(CO_EINPUT,
                       "the checkpoint stands at step %lld, past the %lld steps asked for: raise "
                       "trainer.max_epochs (or trainer.max_steps)",
                       (long long)m->step, (long long)p->sched.steps);
    return CO_OK;
}

/* What a process adds to what it inherits: stack, libc's buffers, the loader; the supervisor saves at the end through a
 * buffer of up to 1 MiB. Measured, not derived. */
enum { RANK_EXTRA = 80 << 10, LOAD_EXTRA = 24 << 10, SUPERVISOR_EXTRA = 32 << 10, SAVE_BUFFER = 1 << 20 };

static size_t private_plan(const co_plan *p)
{
    size_t now = co_memory_private(), depth = (size_t)(p->cfg.workers ? p->cfg.workers + 2 : 1);
    size_t state = p->spec.ckpt_root ? p->layout->count * sizeof(float) : 0;

    return now + p->data->shared_bytes + SUPERVISOR_EXTRA + (state < SAVE_BUFFER ? state : SAVE_BUFFER) +
           (size_t)p->ranks * (now + RANK_EXTRA + depth * LOAD_EXTRA);
}

static void fill_facts(co_plan *p)
{
    co_plan_facts *f = &p->facts;

    f->ranks = p->ranks;
    f->slices = p->slices;
    f->batch = p->batch;
    f->steps_per_epoch = p->sched.steps_per_epoch;
    f->steps = p->sched.steps;
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
    f->private_bytes = private_plan(p);
    if (!p->train.n)
        return;
    f->epochs = (p->sched.steps + p->sched.steps_per_epoch - 1) / p->sched.steps_per_epoch;
    const co_cut *cut = &p->tree[CUT_FULL].cut;
    for (int leaf = 0; leaf < cut->slices; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi && p->data->io.task != CO_TASK_LM)
            f->flops_per_step +=
                co_exec_info_of(exec_for(&p->train, (co_slice_shape){.n = (int)(hi - lo)})->exec)->flops;
    }
}

/* Kernels, data, and whether model and data go together. */
static co_err make_parts(co_plan *p)
{
    p->loss = (co_loss){.label_smoothing = p->cfg.label_smoothing};
    CO_TRY(co_kernels_get(&p->kernels, p->cfg.kernels));
    CO_TRY(co_dataset_open(&p->data, p->spec.data, p->spec.data_cfg));
    if (p->spec.model->check)
        CO_TRY(p->spec.model->check(p->spec.model_cfg, &p->data->io));
    return p->spec.resume ? co_ckpt_read_meta(&p->start, p->spec.resume) : CO_OK;
}

static co_err make_to_train(co_plan *p)
{
    CO_TRY(choose_ranks(p));
    CO_TRY(choose_slices(p));
    CO_TRY(make_parts(p));
    if (p->spec.optim->check)
        CO_TRY(p->spec.optim->check(p->spec.optim_cfg));
    if (p->spec.schedule && p->spec.schedule->check)
        CO_TRY(p->spec.schedule->check(p->spec.schedule_cfg));
    CO_TRY(choose_eval(p));
    CO_TRY(choose_steps(p));
    CO_TRY(make_watch(p));
    CO_TRY(check_save_name(p));
    CO_TRY(make_trees(p));
    CO_TRY(make_train_graphs(p));
    CO_TRY(make_eval_graphs(p));
    CO_TRY(co_order_new(&p->order, p->data, CO_SPLIT_TRAIN, p->batch, (uint64_t)p->cfg.seed,
                        p->cfg.overfit_batches == 0));
    p->moments = p->spec.optim->moments(p->spec.optim_cfg, p->moment_name);
    p->lr = p->spec.optim->lr(p->spec.optim_cfg);
    CO_TRY(make_recipe(p));
    p->chunk = co_layout_chunk(p->layout);
    p->chunks = co_layout_chunks(p->layout);
    p->sparse = p->layout->leaf_count > p->layout->count;
    CO_TRY(check_resume(p));
    CO_TRY(check_weights(p));
    schedule_close(&p->sched);
    regions_reserve(p);
    fill_facts(p);
    plan_lines(p);
    return co_arena_fits(&p->arena);
}

static co_err make_to_look(co_plan *p)
{
    CO_TRY(make_parts(p));
    CO_TRY(choose_eval(p));
    CO_TRY(make_eval_graphs(p));
    if (!p->layout)
        return co_fail(CO_EINPUT, "data=%s has nothing to validate or test with", p->spec.data->name);
    if (p->spec.resume)
        CO_TRY(co_ckpt_fits(p->spec.resume, p->layout, 0, NULL));
    CO_TRY(check_weights(p));
    fill_facts(p);
    return CO_OK;
}

static co_err plan_new(co_plan **out, const co_train_spec *spec, co_err (*make)(co_plan *p))
{
    co_plan *p = co_zalloc(sizeof *p);

    if (!p)
        return CO_ENOMEM;
    p->spec = *spec;
    p->cfg = *spec->cfg;
    if (p->cfg.fast_dev_run)
        p->spec.ckpt_root = NULL;
    co_err err = make(p);
    if (err) {
        co_plan_free(p);
        return err;
    }
    *out = p;
    return CO_OK;
}

co_err co_plan_new(co_plan **out, const co_train_spec *spec)
{
    return plan_new(out, spec, make_to_train);
}

co_err co_plan_to_look(co_plan **out, const co_train_spec *spec)
{
    return plan_new(out, spec, make_to_look);
}

void co_plan_free(co_plan *p)
{
    if (!p)
        return;
    co_tree_fini(&p->tree[CUT_FULL]);
    co_tree_fini(&p->tree[CUT_SHORT]);
    exec_set_fini(&p->train);
    exec_set_fini(&p->eval);
    co_order_free(p->order);
    co_dataset_close(p->data);
    co_arena_close(&p->arena);
    co_free(p->at);
    co_free(p->treat);
    co_free(p->choice);
    co_ckpt_meta_fini(&p->start);
    co_free(p);
}

void co_plan_place(co_plan *p, const char *ckpt_root, const char *log_dir)
{
    CO_ASSERT(p->cfg.fast_dev_run || !p->spec.ckpt_root == !ckpt_root, "whether to save was planned for");
    p->spec.ckpt_root = p->cfg.fast_dev_run ? NULL : ckpt_root;
    p->spec.log_dir = log_dir;
}

const co_plan_facts *co_plan_facts_of(const co_plan *p)
{
    return &p->facts;
}
