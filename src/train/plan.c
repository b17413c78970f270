/* plan.c -- everything that is decided before anything is started: ranks, slices, steps, graphs, memory.
 *
 * Everything that is wrong with a configuration is found here: CO_EINPUT names the key, its value, and what
 * to give instead.
 */
#include "train/plan_int.h"
#include "train/predict.h"
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
        long long all = n * (plan->spec.hosts > 1 ? plan->spec.hosts : 1); /* every host has as many */
        if (plan->cfg.batch_size_per_rank * all > 1048576)
            return co_fail(CO_EINPUT, "data.batch_size_per_rank=%lld times %lld ranks is more than 1048576",
                           (long long)plan->cfg.batch_size_per_rank, all);
        plan->cfg.batch_size = plan->cfg.batch_size_per_rank * all;
    }
    plan->facts.ranks_asked = plan->ranks = (int)n;
    return CO_OK;
}

static co_err make_cuts(co_plan *plan)
{
    bool stats = plan->spec.model->batch_stats;

    plan->cut[CUT_FULL] = co_cut_make(plan->batch, plan->batch, plan->slices, stats);
    plan->cut[CUT_SHORT] =
        co_cut_make(plan->short_n ? plan->short_n : plan->batch, plan->batch, plan->slices, stats);
    return CO_OK;
}

/* As many threads for each rank as there are CPUs for it. Kernels that compute in a memory space of their own
 * are called by one thread. */
static co_err choose_threads(co_plan *plan)
{
    long long n = co_cpus_usable() / plan->ranks;

    CO_TRY(check_threads("trainer.threads", plan->cfg.threads));
    if (strcmp(plan->cfg.threads, "auto") != 0)
        co_str_to_i64(plan->cfg.threads, &n);
    if (n < 1 || plan->kernels->space)
        n = 1;
    plan->threads = n < CO_TEAM_MOST ? (int)n : CO_TEAM_MOST;
    return CO_OK;
}

/* The memory that a process adds to what it inherits: stack, libc's buffers, the loader; a saver's buffer of
 * up to 1 MiB. Measured, not derived. */
enum {
    RANK_EXTRA = 80 << 10,
    LOAD_EXTRA = 24 << 10,
    TEAM_EXTRA = 48 << 10,
    HELPER_EXTRA = 64 << 10,
    SUPERVISOR_EXTRA = 32 << 10,
    SAVE_BUFFER = 1 << 20
};

static size_t private_plan(const co_plan *plan)
{
    size_t now = co_memory_private(), depth = (size_t)loader_depth(plan);
    size_t state = plan->spec.ckpt_root ? plan->layout->count * sizeof(float) : 0;
    size_t searching = plan->translations.most ? search_bytes(&plan->translations.decoder) : 0;

    return now + plan->data->shared_bytes + SUPERVISOR_EXTRA + (state < SAVE_BUFFER ? state : SAVE_BUFFER) +
           (size_t)plan->ranks *
               (now + RANK_EXTRA + searching + depth * LOAD_EXTRA + (size_t)(plan->threads - 1) * TEAM_EXTRA) +
           (size_t)plan->spec.helpers * (now + HELPER_EXTRA) + plan->spec.helpers_bytes;
}

static void fill_facts(co_plan *plan)
{
    co_plan_facts *facts = &plan->facts;

    facts->ranks = plan->ranks;
    facts->threads = plan->threads;
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
        if (lo < hi && !co_is_text(&plan->data->io))
            facts->flops_per_step +=
                co_exec_info_of(exec_for(&plan->train, (co_slice_shape){.n = (int)(hi - lo)})->exec)->flops;
    }
}

/* --- the decisions ----------------------------------------------------------------------------------------
 * Each row of a table is one decision. It needs parts of the configuration and results of earlier rows; if one
 * of them is missing, because there was a mistake, the row is left out. So a mistake hides only the mistakes
 * that cannot be found without the thing that is wrong. */
enum {
    TRAINER = CO_SURE_TRAINER,
    CALLBACKS = CO_SURE_CALLBACKS,
    MODEL = CO_SURE_MODEL,
    DATA_KEYS = CO_SURE_DATA,
    OPTIM_KEYS = CO_SURE_OPTIM,
    SCHEDULE_KEYS = CO_SURE_SCHEDULE,
    RANKS = 1 << 6,
    SLICES = 1 << 7,
    KERNELS = 1 << 8,
    DATA = 1 << 9,
    FITS = 1 << 10, /* the model and the data belong together */
    OPTIM = 1 << 11,
    SCHEDULE = 1 << 12,
    START = 1 << 13, /* the checkpoint's description, if there is one */
    EVALS = 1 << 14,
    STEPS = 1 << 15,
    MONITOR = 1 << 16,
    CUTS_MADE = 1 << 17,
    GRAPHS = 1 << 18,
    EVAL_GRAPHS = 1 << 19,
    RECIPE = 1 << 20,
    GIVEN = 1 << 21, /* trainer.slices fits the batch, if it is given */
    THREADS = 1 << 22,
    WEIGHTS = 1 << 23,    /* the file of first weights is there, if one is given */
    SAME_MODEL = 1 << 24, /* as in the checkpoint; also if there is none */
    SAME_BATCH = 1 << 25,
    SAME_OPTIM = 1 << 26,
    SAME_WORDS = 1 << 27 /* tokens and rows mean what they meant in the run that the weights are of */
};

typedef struct decision {
    co_err (*make)(co_plan *plan);
    unsigned needs, gives;
} decision;

static co_err find_kernels(co_plan *plan)
{
    co_err err = co_kernels_get(&plan->kernels, plan->cfg.kernels);
    return err ? co_fail_in(err, "trainer.kernels") : CO_OK;
}

/* *done: the data set was opened from the checkpoint's vocabulary. */
static co_err open_vocabulary(co_plan *plan, bool *done)
{
    const co_dataset_def *def = plan->spec.data;
    co_ckpt_meta meta = {0};

    *done = false;
    if (!plan->spec.vocabulary_only || !plan->spec.resume || !def->open_vocabulary)
        return CO_OK;
    CO_TRY(co_ckpt_read_meta(&meta, plan->spec.resume));
    const char *text = co_json_str(meta.extra, "vocabulary");
    co_err err = text ? def->open_vocabulary(&plan->data, text, strlen(text)) : CO_OK;
    if (text && !err) {
        plan->data->def = def;
        *done = true;
    }
    co_ckpt_meta_fini(&meta);
    return err ? co_fail_in(err, "checkpoint %s", plan->spec.resume) : CO_OK;
}

static co_err open_data(co_plan *plan)
{
    bool done;

    CO_TRY(open_vocabulary(plan, &done));
    return done ? CO_OK : co_dataset_open(&plan->data, plan->spec.data, plan->spec.data_cfg);
}

static co_err check_words(co_plan *plan)
{
    return plan->spec.check_data ? plan->spec.check_data(&plan->spec, plan->data) : CO_OK;
}

static co_err check_model(co_plan *plan)
{
    const co_model_def *model = plan->spec.model;

    return model->check ? model->check(plan->spec.model_cfg, &plan->data->io) : CO_OK;
}

static co_err read_start(co_plan *plan)
{
    return plan->spec.resume ? co_ckpt_read_meta(&plan->start, plan->spec.resume) : CO_OK;
}

static co_err check_optim(co_plan *plan)
{
    const co_optim_def *optim = plan->spec.optim;

    return optim->check ? optim->check(plan->spec.optim_cfg) : CO_OK;
}

static co_err check_schedule(co_plan *plan)
{
    const co_schedule_def *schedule = plan->spec.schedule;

    return schedule && schedule->check ? schedule->check(plan->spec.schedule_cfg) : CO_OK;
}

static co_err make_audit_order(co_plan *plan)
{
    if (plan->hosts == 1)
        return CO_OK;
    return co_order_new(&plan->audit_order, plan->data, CO_SPLIT_TRAIN, (uint64_t)plan->cfg.seed,
                        plan->cfg.overfit_batches == 0);
}

static co_err make_order(co_plan *plan)
{
    return co_order_new(&plan->order, plan->data, CO_SPLIT_TRAIN, (uint64_t)plan->cfg.seed,
                        plan->cfg.overfit_batches == 0);
}

static co_err choose_updates(co_plan *plan)
{
    plan->moments = plan->spec.optim->moments(plan->spec.optim_cfg, plan->moment_name);
    plan->recipe.lr = plan->spec.optim->lr(plan->spec.optim_cfg);
    CO_TRY(make_recipe(plan));
    plan->chunk = co_layout_chunk(plan->layout);
    plan->chunks = co_layout_chunks(plan->layout);
    return plan_rows(plan);
}

static const decision to_train[] = {{choose_ranks, TRAINER | DATA_KEYS, RANKS},
                                    {check_given_slices, RANKS | MODEL, GIVEN},
                                    {find_kernels, TRAINER, KERNELS},
                                    {open_data, DATA_KEYS, DATA},
                                    {check_model, MODEL | DATA, FITS},
                                    {read_start, 0, START},
                                    {choose_slices, GIVEN | FITS | START, SLICES},
                                    {choose_threads, KERNELS | SLICES, THREADS},
                                    {check_accumulate, TRAINER | RANKS, 0},
                                    {check_optim, OPTIM_KEYS, OPTIM},
                                    {check_schedule, SCHEDULE_KEYS, SCHEDULE},
                                    {choose_eval, TRAINER | DATA | SLICES | START, EVALS},
                                    {choose_steps, SLICES | EVALS | SCHEDULE, STEPS},
                                    {choose_best, CALLBACKS | DATA, MONITOR},
                                    {choose_early, CALLBACKS | DATA, 0},
                                    {choose_plateau, SCHEDULE | DATA, 0},
                                    {make_watch, MONITOR | STEPS, 0},
                                    {check_save_name, MONITOR | STEPS, 0},
                                    {make_cuts, STEPS, CUTS_MADE},
                                    {make_train_graphs, KERNELS | FITS | CUTS_MADE | THREADS, GRAPHS},
                                    {make_eval_graphs, GRAPHS | EVALS, EVAL_GRAPHS},
                                    {plan_translations, EVAL_GRAPHS | STEPS, 0},
                                    {make_order, SLICES | DATA, 0},
                                    {make_audit_order, SLICES | DATA, 0},
                                    {choose_updates, GRAPHS | OPTIM | SCHEDULE | STEPS, RECIPE},
                                    {check_words, DATA, SAME_WORDS},
                                    {check_same_model, GRAPHS | START | SAME_WORDS, SAME_MODEL},
                                    {check_same_batch, SLICES | START, SAME_BATCH},
                                    {check_same_epochs, STEPS | SAME_BATCH, 0},
                                    {check_same_seed, START, 0},
                                    {check_same_optim, OPTIM | START, SAME_OPTIM},
                                    {check_same_kernels, KERNELS | START, 0},
                                    {check_same_moments, RECIPE | SAME_MODEL | SAME_OPTIM, 0},
                                    {check_steps_left, STEPS | SAME_BATCH, 0},
                                    {find_weights, 0, WEIGHTS},
                                    {check_weights, GRAPHS | WEIGHTS | SAME_WORDS, 0},
                                    {0}};

/* Recommending and predicting files need no split: without val and test, the graph of one sample gives the layout. */
static co_err find_layout(co_plan *plan)
{
    if (plan->layout)
        return CO_OK;
    if (co_is_text(&plan->data->io))
        return co_fail(CO_EINPUT, "data=%s has nothing to validate or test with", plan->spec.data->name);
    CO_TRY(exec_set_add(&plan->eval, plan, (co_slice_shape){.n = 1}, CO_MODE_EVAL));
    plan->layout = co_exec_layout(plan->eval.e[0].exec);
    return CO_OK;
}

static const decision to_look[] = {{find_kernels, TRAINER, KERNELS},
                                   {open_data, DATA_KEYS, DATA},
                                   {check_model, MODEL | DATA, FITS},
                                   {read_start, 0, START},
                                   {choose_eval, TRAINER | DATA | START, EVALS},
                                   {make_eval_graphs, KERNELS | FITS | EVALS, EVAL_GRAPHS},
                                   {find_layout, EVAL_GRAPHS, GRAPHS},
                                   {check_words, DATA, SAME_WORDS},
                                   {check_weights_fit, GRAPHS | SAME_WORDS, 0},
                                   {find_weights, 0, WEIGHTS},
                                   {check_weights, GRAPHS | WEIGHTS | SAME_WORDS, 0},
                                   {0}};

/* Runs the table. An error that is not the user's mistake ends it; mistakes found before are reported first. */
static co_err decide_all(co_plan *plan, const decision *row, unsigned have, co_mistakes *mistakes)
{
    for (; row->make; row++) {
        if ((row->needs & have) != row->needs)
            continue;
        co_err err = row->make(plan);
        if (!err)
            have |= row->gives;
        else if (err != CO_EINPUT && err != CO_ENOMEM && mistakes->n)
            break;
        CO_TRY(co_mistake(mistakes, err));
    }
    co_errclear();
    return CO_OK;
}

/* --- plans ------------------------------------------------------------------------------------------------ */
static co_err finish_to_train(co_plan *plan)
{
    if (plan->spec.hosts > CO_MAX_MEMBERS)
        return co_fail(CO_EINPUT, "%d hosts are more than the %d that are possible", plan->spec.hosts,
                       CO_MAX_MEMBERS);
    int least = plan->spec.meets ? 2 : 1; /* a plan for several can be frozen */
    plan->hosts = plan->spec.hosts > least ? plan->spec.hosts : least;
    unit_order_close(&plan->units);
    CO_TRY(choose_buffers(plan));
    choose_aside(plan);
    group_plan(plan);
    CO_TRY(at_once_plan(plan));
    plan->facts.at_once = plan->at_once;
    regions_reserve(plan);
    fill_facts(plan);
    plan_lines(plan);
    return co_arena_fits(&plan->arena);
}

static co_err finish_to_look(co_plan *plan)
{
    fill_facts(plan);
    return CO_OK;
}

static co_plan *plan_begin(const co_train_spec *spec)
{
    co_plan *plan = co_zalloc(sizeof *plan);

    if (!plan)
        return NULL;
    plan->spec = *spec;
    plan->cfg = *spec->cfg;
    plan->threads = 1;
    plan->loss = (co_loss){.label_smoothing = plan->cfg.label_smoothing};
    if (plan->cfg.fast_dev_run)
        plan->spec.ckpt_root = NULL;
    return plan;
}

static co_err plan_new(co_plan **out, const co_train_spec *spec, const decision *rows,
                       co_err (*finish)(co_plan *plan))
{
    co_plan *plan = plan_begin(spec);
    co_mistakes mistakes = {0};
    co_err err = plan ? decide_all(plan, rows, CO_SURE_ALL, &mistakes) : CO_ENOMEM;

    if (!err)
        err = co_mistakes_tell(&mistakes);
    co_mistakes_fini(&mistakes);
    if (!err)
        err = fetch_weights(plan);
    if (!err)
        err = finish(plan);
    if (err) {
        co_plan_free(plan);
        return err;
    }
    *out = plan;
    return CO_OK;
}

co_err co_plan_new(co_plan **out, const co_train_spec *spec)
{
    return plan_new(out, spec, to_train, finish_to_train);
}

co_err co_plan_to_look(co_plan **out, const co_train_spec *spec)
{
    return plan_new(out, spec, to_look, finish_to_look);
}

static co_err plan_check(const co_train_spec *spec, const decision *rows, unsigned sure, co_mistakes *mistakes)
{
    co_plan *plan = plan_begin(spec);
    co_err err = plan ? decide_all(plan, rows, sure, mistakes) : CO_ENOMEM;

    co_plan_free(plan);
    return err;
}

co_err co_plan_check(const co_train_spec *spec, unsigned sure, co_mistakes *mistakes)
{
    return plan_check(spec, to_train, sure, mistakes);
}

co_err co_plan_check_look(const co_train_spec *spec, unsigned sure, co_mistakes *mistakes)
{
    return plan_check(spec, to_look, sure, mistakes);
}

void co_plan_free(co_plan *plan)
{
    if (!plan)
        return;
    exec_set_fini(&plan->train);
    exec_set_fini(&plan->eval);
    decoder_fini(&plan->translations.decoder);
    co_order_free(plan->order);
    co_order_free(plan->audit_order);
    co_dataset_close(plan->data);
    co_arena_close(&plan->arena);
    co_free(plan->regions);
    co_free(plan->recipe.rule);
    co_free(plan->choice);
    co_free(plan->first.skip);
    co_free(plan->first.got);
    co_ckpt_meta_fini(&plan->start);
    co_free(plan);
}

void co_plan_place(co_plan *plan, const char *ckpt_root, const char *log_dir, const char *run_id)
{
    CO_ASSERT(plan->cfg.fast_dev_run || !plan->spec.ckpt_root == !ckpt_root,
              "whether to save was planned for");
    plan->spec.ckpt_root = plan->cfg.fast_dev_run ? NULL : ckpt_root;
    plan->spec.log_dir = log_dir;
    plan->spec.run_id = run_id;
}

const co_plan_facts *co_plan_facts_of(const co_plan *plan)
{
    return &plan->facts;
}
