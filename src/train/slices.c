/* slices.c -- how many slices a batch is cut into: trainer.slices, or a formula of batch, model and data set
 * only (comm/tree.h), or what the checkpoint that the run continues was made with. */
#include "train/plan_int.h"

/* The tokens of n samples of the set's mean length, rounded up to a multiple of 16 per sample.
 * 0 unless it is text. */
static int mean_tokens(const co_dataset *data, int n,
                       int (*length)(const co_dataset *d, co_split s, uint32_t id))
{
    enum { STEP = 16 };
    uint32_t count = data->count[CO_SPLIT_TRAIN];
    int64_t sum = 0;

    if (!length || count == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        sum += length(data, CO_SPLIT_TRAIN, i);
    int64_t mean = (sum + count - 1) / count, len = (mean + STEP - 1) / STEP * STEP;
    return n * (int)(len < STEP ? STEP : len);
}

/* Multiply-adds of a sample's forward pass, and parameters. */
static co_err measure(const co_plan *plan, co_slicing *of)
{
    enum { SAMPLES = 2 }; /* batch statistics need two */
    co_slice_shape shape = {SAMPLES, mean_tokens(plan->data, SAMPLES, plan->data->length),
                            mean_tokens(plan->data, SAMPLES, plan->data->target_length)};
    co_graph *graph;

    CO_TRY(co_model_graph(&graph, plan->spec.model, plan->spec.model_cfg, &plan->data->io, &plan->loss, shape,
                          CO_MODE_TRAIN));
    co_err err = co_graph_error(graph);
    of->params = (double)co_graph_params(graph);
    of->macs = co_graph_flops(graph) / 2 / SAMPLES;
    co_graph_free(graph);
    return err ? co_fail_in(err, "model=%s", plan->spec.model->name) : CO_OK;
}

static co_err refuse(const co_plan *plan, int64_t slices)
{
    int64_t batch = plan->cfg.batch_size, least = plan->spec.model->batch_stats ? 2 : 1;

    if (batch / slices < least)
        return co_fail(CO_EINPUT,
                       "data.batch_size=%lld is too small for %lld slices of at least %lld sample%s%s: take "
                       "data.batch_size=%lld or more, or fewer trainer.slices",
                       (long long)batch, (long long)slices, (long long)least, least == 1 ? "" : "s",
                       least == 2 ? " (the model has batch statistics)" : "", (long long)(slices * least));
    if ((batch + slices - 1) / slices > CO_SLICE_MAX)
        return co_fail(CO_EINPUT,
                       "data.batch_size=%lld in %lld slices makes slices of more than %d samples: take more "
                       "trainer.slices",
                       (long long)batch, (long long)slices, CO_SLICE_MAX);
    return CO_OK;
}

co_err check_given_slices(co_plan *plan)
{
    return plan->cfg.slices > 0 ? refuse(plan, plan->cfg.slices) : CO_OK;
}

/* The most that a slot of this host needs if the host has leaves [from, to). */
static int buffers_for(co_plan *plan, co_tree *tree, int from, int to)
{
    int most = 1;

    for (int cut = 0; cut < CUTS; cut++) {
        co_tree_deal(tree, &plan->cut[cut], from, to);
        most = co_tree_buffers(tree) > most ? co_tree_buffers(tree) : most;
    }
    return most;
}

co_err choose_buffers(co_plan *plan)
{
    co_tree tree;

    CO_TRY(co_tree_init(&tree, plan->ranks));
    plan->n_buffers = buffers_for(plan, &tree, 0, plan->slices);
    for (int from = 0; plan->hosts > 1 && from < plan->slices; from++) /* any run of leaves may be dealt */
        for (int to = from + 1; to <= plan->slices; to++) {
            int n = buffers_for(plan, &tree, from, to);
            plan->n_buffers = n > plan->n_buffers ? n : plan->n_buffers;
        }
    co_tree_fini(&tree);
    return CO_OK;
}

co_err choose_slices(co_plan *plan)
{
    int64_t s = plan->cfg.slices, batch = plan->cfg.batch_size;
    co_slicing of = {.batch = (uint32_t)batch, .batch_stats = plan->spec.model->batch_stats};

    if (s & (s - 1))
        return co_fail(CO_EINPUT, "trainer.slices: %lld is not a power of two (1, 2, 4, 8 ...)", (long long)s);
    if (s == 0 && plan->spec.resume && plan->start.global_batch == batch)
        s = plan->start.slices; /* fixed for the life of a run, also where the formula has changed since */
    if (s == 0) {
        CO_TRY(measure(plan, &of));
        s = co_slices_for(&of);
    }
    CO_TRY(refuse(plan, s));
    plan->slices = (int)s;
    plan->batch = (uint32_t)batch;
    if (plan->ranks > plan->slices)
        plan->ranks = plan->slices; /* more ranks would be idle; the first screen says so */
    return CO_OK;
}
