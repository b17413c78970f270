/* plan.c -- everything that is decided before anything is started: ranks, slices, steps, graphs, memory.
 *
 * Everything that is wrong with a configuration is found here: CO_EINPUT names the key, its value, and what
 * to give instead.
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
    long long n = co_cpus_usable() < CO_MAX_SLOTS ? co_cpus_usable() : CO_MAX_SLOTS;

    CO_TRY(check_devices("trainer.devices", plan->cfg.devices));
    if (strcmp(plan->cfg.devices, "auto") != 0)
        co_str_to_i64(plan->cfg.devices, &n);
    if (plan->cfg.batch_size_per_rank) {
        if (plan->cfg.batch_size_per_rank * n > 1048576)
            return co_fail(CO_EINPUT, "data.batch_size_per_rank=%lld times %lld ranks is more than 1048576",
                           (long long)plan->cfg.batch_size_per_rank, n);
        plan->cfg.batch_size = plan->cfg.batch_size_per_rank * n;
    }
    plan->facts.ranks_asked = plan->ranks = (int)n;
    return CO_OK;
}

static void make_cuts(co_plan *plan)
{
    bool stats = plan->spec.model->batch_stats;

    plan->cut[CUT_FULL] = co_cut_make(plan->batch, plan->batch, plan->slices, stats);
    plan->cut[CUT_SHORT] =
        co_cut_make(plan->short_n ? plan->short_n : plan->batch, plan->batch, plan->slices, stats);
}

/* The memory that a process adds to what it inherits: stack, libc's buffers, the loader; a saver's buffer of
 * up to 1 MiB. Measured, not derived. */
enum {
    RANK_EXTRA = 80 << 10,
    LOAD_EXTRA = 24 << 10,
    HELPER_EXTRA = 64 << 10,
    SUPERVISOR_EXTRA = 32 << 10,
    SAVE_BUFFER = 1 << 20
};

static size_t private_plan(const co_plan *plan)
{
    size_t now = co_memory_private(), depth = (size_t)loader_depth(plan);
    size_t state = plan->spec.ckpt_root ? plan->layout->count * sizeof(float) : 0;

    return now + plan->data->shared_bytes + SUPERVISOR_EXTRA + (state < SAVE_BUFFER ? state : SAVE_BUFFER) +
           (size_t)plan->ranks * (now + RANK_EXTRA + depth * LOAD_EXTRA) +
           (size_t)plan->spec.helpers * (now + HELPER_EXTRA);
}

static void fill_facts(co_plan *plan)
{
    co_plan_facts *facts = &plan->facts;

    facts->ranks = plan->ranks;
    facts->slices = plan->slices;
    facts->batch = plan->batch;
    facts->steps_per_epoch = plan->units.steps_per_epoch;
    facts->steps = plan->units.steps;
    facts->evals_per_step = plan->units.cycle ? (double)plan->units.per_cycle / (double)plan->units.cycle : 0;
    facts->samples_per_epoch = plan->data->count[CO_SPLIT_TRAIN];
    facts->start_step = plan->start.step;
    facts->remembered = json_object_get(plan->start.extra, "record");
    facts->layout = plan->layout;
    facts->data = plan->data;
    facts->kernels = co_kernels_name(plan->kernels);
    facts->metric = co_metric_name(plan->data->io.task);
    facts->state_elements = plan->layout->count;
    for (int i = 0; i < plan->layout->n; i++)
        if (plan->layout->entry[i].kind == CO_KIND_PARAM)
            facts->params += plan->layout->entry[i].count;
    facts->arena_bytes = plan->arena.bytes;
    facts->arena = &plan->arena;
    facts->private_bytes = private_plan(plan);
    if (!plan->train.n)
        return;
    facts->epochs = (plan->units.steps + plan->units.steps_per_epoch - 1) / plan->units.steps_per_epoch;
    const co_cut *cut = &plan->cut[CUT_FULL];
    for (int leaf = 0; leaf < cut->slices; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi && plan->data->io.task != CO_TASK_LM)
            facts->flops_per_step +=
                co_exec_info_of(exec_for(&plan->train, (co_slice_shape){.n = (int)(hi - lo)})->exec)->flops;
    }
}

/* Finds the kernels, opens the data, and checks that the model can be trained on it. */
static co_err make_parts(co_plan *plan)
{
    plan->loss = (co_loss){.label_smoothing = plan->cfg.label_smoothing};
    co_err err = co_kernels_get(&plan->kernels, plan->cfg.kernels);
    if (err)
        return co_fail_in(err, "trainer.kernels");
    CO_TRY(co_dataset_open(&plan->data, plan->spec.data, plan->spec.data_cfg));
    if (plan->spec.model->check)
        CO_TRY(plan->spec.model->check(plan->spec.model_cfg, &plan->data->io));
    return plan->spec.resume ? co_ckpt_read_meta(&plan->start, plan->spec.resume) : CO_OK;
}

static co_err make_to_train(co_plan *plan)
{
    CO_TRY(choose_ranks(plan));
    CO_TRY(make_parts(plan));
    CO_TRY(choose_slices(plan));
    if (plan->spec.optim->check)
        CO_TRY(plan->spec.optim->check(plan->spec.optim_cfg));
    if (plan->spec.schedule && plan->spec.schedule->check)
        CO_TRY(plan->spec.schedule->check(plan->spec.schedule_cfg));
    CO_TRY(choose_eval(plan));
    CO_TRY(choose_steps(plan));
    CO_TRY(make_watch(plan));
    CO_TRY(check_save_name(plan));
    make_cuts(plan);
    CO_TRY(make_train_graphs(plan));
    CO_TRY(make_eval_graphs(plan));
    CO_TRY(co_order_new(&plan->order, plan->data, CO_SPLIT_TRAIN, plan->batch, (uint64_t)plan->cfg.seed,
                        plan->cfg.overfit_batches == 0));
    plan->moments = plan->spec.optim->moments(plan->spec.optim_cfg, plan->moment_name);
    plan->recipe.lr = plan->spec.optim->lr(plan->spec.optim_cfg);
    CO_TRY(make_recipe(plan));
    plan->chunk = co_layout_chunk(plan->layout);
    plan->chunks = co_layout_chunks(plan->layout);
    CO_TRY(plan_rows(plan));
    plan->hosts = plan->spec.hosts > 1 ? plan->spec.hosts : 1;
    CO_TRY(check_resume(plan));
    CO_TRY(check_weights(plan));
    unit_order_close(&plan->units);
    CO_TRY(choose_buffers(plan));
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
