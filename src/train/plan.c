/* plan.c -- everything that is decided before anything is started: ranks, slices, steps, graphs, memory.
 *
 * What is wrong with the user's wishes is found here: CO_EINPUT with the key, its value and what would do.
 */
#include "train/plan_int.h"
#include "train/regions_int.h"
#include "train/save_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "proc/crew.h"

/* --- ranks, batch, slices ------------------------------------------------------------------------------- */
static co_err choose_ranks(co_plan *plan)
{
    long long n;

    if (strcmp(plan->cfg.devices, "auto") == 0)
        n = co_cpus_usable() < CO_MAX_SLOTS ? co_cpus_usable() : CO_MAX_SLOTS;
    else if (!co_str_to_i64(plan->cfg.devices, &n) || n < 1 || n > CO_MAX_SLOTS)
        return co_fail(CO_EINPUT, "trainer.devices: \"%s\" is not auto or a number from 1 to %d",
                       plan->cfg.devices, CO_MAX_SLOTS);
    if (plan->cfg.batch_size_per_rank) {
        if (plan->cfg.batch_size_per_rank * n > 1048576)
            return co_fail(CO_EINPUT, "data.batch_size_per_rank=%lld times %lld ranks is more than 1048576",
                           (long long)plan->cfg.batch_size_per_rank, n);
        plan->cfg.batch_size = plan->cfg.batch_size_per_rank * n;
    }
    plan->facts.ranks_asked = plan->ranks = (int)n;
    return CO_OK;
}

static co_err choose_slices(co_plan *plan)
{
    int64_t s = plan->cfg.slices, batch = plan->cfg.batch_size;
    bool stats = plan->spec.model->batch_stats;

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
    plan->slices = (int)s;
    plan->batch = (uint32_t)batch;
    if (plan->ranks > plan->slices)
        plan->ranks = plan->slices; /* the rest would be idle: the first screen says so */
    return CO_OK;
}

/* --- steps ---------------------------------------------------------------------------------------------- */
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

/* The nearer of the two limits; with neither, as far as units are counted. */
static co_err limit_steps(co_plan *plan, int64_t per_epoch)
{
    const int64_t most = UINT32_MAX / 4, epochs = plan->cfg.max_epochs, steps = plan->cfg.max_steps;
    int64_t *out = &plan->units.steps;

    if (epochs == 0)
        return co_fail(CO_EINPUT, "trainer.max_epochs: 0 is out of range (allowed: 1 to 1e9; -1: no limit)");
    *out = epochs > 0 ? per_epoch * epochs : INT64_MAX;
    if (steps >= 0 && steps < *out)
        *out = steps;
    plan->facts.endless = *out == INT64_MAX;
    if (plan->facts.endless)
        *out = most;
    if (*out > most)
        return co_fail(CO_EINPUT, "%lld steps are more than this version counts", (long long)*out);
    return CO_OK;
}

static co_err choose_steps(co_plan *plan)
{
    int64_t count = plan->data->count[CO_SPLIT_TRAIN], batch = plan->batch;
    int64_t all = (count + batch - 1) / batch, per_epoch = all;
    unit_order *order = &plan->units;

    if (count < 1)
        return co_fail(CO_EINPUT, "data=%s has no training samples", plan->spec.data->name);
    CO_TRY(limit_batches("limit_train_batches", plan->cfg.limit_train_batches, all, &per_epoch));
    if (plan->cfg.overfit_batches)
        per_epoch = plan->cfg.overfit_batches < all ? plan->cfg.overfit_batches : all;
    if (plan->cfg.fast_dev_run)
        per_epoch = plan->cfg.max_epochs = 1;
    plan->short_n = per_epoch == all ? (uint32_t)(count % batch) : 0;
    order->steps_per_epoch = per_epoch;
    CO_TRY(limit_steps(plan, per_epoch));
    order->block =
        plan->cfg.eval_every && plan->eval_count[CO_SPLIT_VAL] ? plan->cfg.eval_every * per_epoch : 0;
    order->final_test = plan->cfg.test && plan->eval_count[CO_SPLIT_TEST];
    order->first_step = plan->start.step;
    if (plan->cfg.max_time)
        CO_TRY(parse_duration(plan->cfg.max_time, &plan->max_time_ns));
    return CO_OK;
}

/* How many samples of a split are looked at: batches are the run's, also where only its checkpoint is looked
 * at. */
static co_err limit_eval(co_plan *plan, co_split split, const char *key, const char *text)
{
    int64_t count = plan->data->count[split], n;
    int64_t size = plan->batch                    ? plan->batch
                   : plan->start.global_batch > 0 ? plan->start.global_batch
                                                  : plan->cfg.batch_size;

    CO_TRY(limit_batches(key, text, (count + size - 1) / size, &n));
    if (plan->cfg.fast_dev_run)
        n = 1;
    plan->eval_count[split] = (uint32_t)(n * size < count ? n * size : count);
    return CO_OK;
}

static co_err choose_eval(co_plan *plan)
{
    CO_TRY(limit_eval(plan, CO_SPLIT_VAL, "limit_val_batches", plan->cfg.limit_val_batches));
    return limit_eval(plan, CO_SPLIT_TEST, "limit_test_batches", plan->cfg.limit_test_batches);
}

static co_err make_trees(co_plan *plan)
{
    bool stats = plan->spec.model->batch_stats;
    co_cut full = co_cut_make(plan->batch, plan->batch, plan->slices, stats);
    co_cut last = co_cut_make(plan->short_n ? plan->short_n : plan->batch, plan->batch, plan->slices, stats);

    CO_TRY(co_tree_init(&plan->tree[CUT_FULL], &full, plan->ranks));
    return co_tree_init(&plan->tree[CUT_SHORT], &last, plan->ranks);
}

/* --- together ------------------------------------------------------------------------------------------- */
/* First weights that do not fit are refused before anything starts; a run that continues has its own. */
static co_err check_weights(const co_plan *plan)
{
    if (plan->cfg.weights_skip && !plan->cfg.weights)
        return co_fail(CO_EINPUT, "weights_skip=%s without weights=FILE", plan->cfg.weights_skip);
    return plan->cfg.weights && !plan->spec.resume
               ? co_weights_load(plan->cfg.weights, plan->layout, plan->cfg.weights_skip, NULL)
               : CO_OK;
}

/* A checkpoint of another model, optimiser, batch or seed would silently be another run. */
static co_err check_resume(const co_plan *plan)
{
    const co_ckpt_meta *m = &plan->start;

    if (!plan->spec.resume)
        return CO_OK;
    co_err err = co_ckpt_fits(plan->spec.resume, plan->layout, 0,
                              NULL); /* the model first: much else follows from it */
    if (err)
        return co_fail(err,
                       "%s; it was made with model=%s: give that model with its keys, or start anew without "
                       "ckpt_path",
                       co_errmsg(), m->model);
    if (m->slices != plan->slices || m->global_batch != plan->batch)
        return co_fail(
            CO_EINPUT,
            "checkpoint %s was made with data.batch_size=%lld in %lld slices, this run has %u in %d: "
            "give the same, or start anew without ckpt_path",
            plan->spec.resume, (long long)m->global_batch, (long long)m->slices, plan->batch, plan->slices);
    if (m->samples != samples_until(plan, m->step) || m->epoch != m->step / plan->units.steps_per_epoch)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with epochs of another length (trainer.limit_train_batches, "
                       "or the data): "
                       "give the same, or start anew without ckpt_path",
                       plan->spec.resume);
    if (m->seed != (uint64_t)plan->cfg.seed)
        return co_fail(
            CO_EINPUT,
            "checkpoint %s was made with seed=%llu, this run has seed=%lld: give the same, or start "
            "anew without ckpt_path",
            plan->spec.resume, (unsigned long long)m->seed, (long long)plan->cfg.seed);
    if (strcmp(m->optim, plan->spec.optim->name) != 0)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with optim=%s, this run has optim=%s: give the same, or start "
                       "anew without ckpt_path",
                       plan->spec.resume, m->optim, plan->spec.optim->name);
    if (strcmp(m->kernels, co_kernels_name(plan->kernels)) != 0)
        return co_fail(CO_EINPUT,
                       "checkpoint %s was made with kernels %s, this run has %s: give trainer.kernels=%.*s",
                       plan->spec.resume, m->kernels, co_kernels_name(plan->kernels),
                       (int)strcspn(m->kernels, "."), m->kernels);
    CO_TRY(co_ckpt_fits(plan->spec.resume, plan->layout, plan->moments, plan->moment_name));
    if (m->step > plan->units.steps)
        return co_fail(CO_EINPUT,
                       "the checkpoint stands at step %lld, past the %lld steps asked for: raise "
                       "trainer.max_epochs (or trainer.max_steps)",
                       (long long)m->step, (long long)plan->units.steps);
    return CO_OK;
}

/* What a process adds to what it inherits: stack, libc's buffers, the loader; the supervisor saves at the end
 * through a buffer of up to 1 MiB. Measured, not derived. */
enum { RANK_EXTRA = 80 << 10, LOAD_EXTRA = 24 << 10, SUPERVISOR_EXTRA = 32 << 10, SAVE_BUFFER = 1 << 20 };

static size_t private_plan(const co_plan *plan)
{
    size_t now = co_memory_private(), depth = (size_t)(plan->cfg.workers ? plan->cfg.workers + 2 : 1);
    size_t state = plan->spec.ckpt_root ? plan->layout->count * sizeof(float) : 0;

    return now + plan->data->shared_bytes + SUPERVISOR_EXTRA + (state < SAVE_BUFFER ? state : SAVE_BUFFER) +
           (size_t)plan->ranks * (now + RANK_EXTRA + depth * LOAD_EXTRA);
}

static void fill_facts(co_plan *plan)
{
    co_plan_facts *f = &plan->facts;

    f->ranks = plan->ranks;
    f->slices = plan->slices;
    f->batch = plan->batch;
    f->steps_per_epoch = plan->units.steps_per_epoch;
    f->steps = plan->units.steps;
    f->samples_per_epoch = plan->data->count[CO_SPLIT_TRAIN];
    f->start_step = plan->start.step;
    f->remembered = json_object_get(plan->start.extra, "record");
    f->layout = plan->layout;
    f->data = plan->data;
    f->kernels = co_kernels_name(plan->kernels);
    f->metric = co_metric_name(plan->data->io.task);
    f->state_elements = plan->layout->count;
    for (int i = 0; i < plan->layout->n; i++)
        if (plan->layout->entry[i].kind == CO_KIND_PARAM)
            f->params += plan->layout->entry[i].count;
    f->arena_bytes = plan->arena.bytes;
    f->arena = &plan->arena;
    f->private_bytes = private_plan(plan);
    if (!plan->train.n)
        return;
    f->epochs = (plan->units.steps + plan->units.steps_per_epoch - 1) / plan->units.steps_per_epoch;
    const co_cut *cut = &plan->tree[CUT_FULL].cut;
    for (int leaf = 0; leaf < cut->slices; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi && plan->data->io.task != CO_TASK_LM)
            f->flops_per_step +=
                co_exec_info_of(exec_for(&plan->train, (co_slice_shape){.n = (int)(hi - lo)})->exec)->flops;
    }
}

/* Kernels, data, and whether model and data go together. */
static co_err make_parts(co_plan *plan)
{
    plan->loss = (co_loss){.label_smoothing = plan->cfg.label_smoothing};
    CO_TRY(co_kernels_get(&plan->kernels, plan->cfg.kernels));
    CO_TRY(co_dataset_open(&plan->data, plan->spec.data, plan->spec.data_cfg));
    if (plan->spec.model->check)
        CO_TRY(plan->spec.model->check(plan->spec.model_cfg, &plan->data->io));
    return plan->spec.resume ? co_ckpt_read_meta(&plan->start, plan->spec.resume) : CO_OK;
}

static co_err make_to_train(co_plan *plan)
{
    CO_TRY(choose_ranks(plan));
    CO_TRY(choose_slices(plan));
    CO_TRY(make_parts(plan));
    if (plan->spec.optim->check)
        CO_TRY(plan->spec.optim->check(plan->spec.optim_cfg));
    if (plan->spec.schedule && plan->spec.schedule->check)
        CO_TRY(plan->spec.schedule->check(plan->spec.schedule_cfg));
    CO_TRY(choose_eval(plan));
    CO_TRY(choose_steps(plan));
    CO_TRY(make_watch(plan));
    CO_TRY(check_save_name(plan));
    CO_TRY(make_trees(plan));
    CO_TRY(make_train_graphs(plan));
    CO_TRY(make_eval_graphs(plan));
    CO_TRY(co_order_new(&plan->order, plan->data, CO_SPLIT_TRAIN, plan->batch, (uint64_t)plan->cfg.seed,
                        plan->cfg.overfit_batches == 0));
    plan->moments = plan->spec.optim->moments(plan->spec.optim_cfg, plan->moment_name);
    plan->recipe.lr = plan->spec.optim->lr(plan->spec.optim_cfg);
    CO_TRY(make_recipe(plan));
    plan->chunk = co_layout_chunk(plan->layout);
    plan->chunks = co_layout_chunks(plan->layout);
    plan->sparse = plan->layout->leaf_count > plan->layout->count;
    CO_TRY(check_resume(plan));
    CO_TRY(check_weights(plan));
    unit_order_close(&plan->units);
    regions_reserve(plan);
    fill_facts(plan);
    plan_lines(plan);
    return co_arena_fits(&plan->arena);
}

static co_err make_to_look(co_plan *plan)
{
    CO_TRY(make_parts(plan));
    CO_TRY(choose_eval(plan));
    CO_TRY(make_eval_graphs(plan));
    if (!plan->layout)
        return co_fail(CO_EINPUT, "data=%s has nothing to validate or test with", plan->spec.data->name);
    if (plan->spec.resume)
        CO_TRY(co_ckpt_fits(plan->spec.resume, plan->layout, 0, NULL));
    CO_TRY(check_weights(plan));
    fill_facts(plan);
    return CO_OK;
}

static co_err plan_new(co_plan **out, const co_train_spec *spec, co_err (*make)(co_plan *plan))
{
    co_plan *plan = co_zalloc(sizeof *plan);

    if (!plan)
        return CO_ENOMEM;
    plan->spec = *spec;
    plan->cfg = *spec->cfg;
    if (plan->cfg.fast_dev_run)
        plan->spec.ckpt_root = NULL;
    co_err err = make(plan);
    if (err) {
        co_plan_free(plan);
        return err;
    }
    *out = plan;
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

void co_plan_free(co_plan *plan)
{
    if (!plan)
        return;
    co_tree_fini(&plan->tree[CUT_FULL]);
    co_tree_fini(&plan->tree[CUT_SHORT]);
    exec_set_fini(&plan->train);
    exec_set_fini(&plan->eval);
    co_order_free(plan->order);
    co_dataset_close(plan->data);
    co_arena_close(&plan->arena);
    co_free(plan->regions);
    co_free(plan->recipe.rule);
    co_free(plan->choice);
    co_ckpt_meta_fini(&plan->start);
    co_free(plan);
}

void co_plan_place(co_plan *plan, const char *ckpt_root, const char *log_dir)
{
    CO_ASSERT(plan->cfg.fast_dev_run || !plan->spec.ckpt_root == !ckpt_root,
              "whether to save was planned for");
    plan->spec.ckpt_root = plan->cfg.fast_dev_run ? NULL : ckpt_root;
    plan->spec.log_dir = log_dir;
}

const co_plan_facts *co_plan_facts_of(const co_plan *plan)
{
    return &plan->facts;
}
