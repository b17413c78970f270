/* nn.c -- the table of models, and the parts of a graph that do not depend on the model: the task's inputs,
 * loss and statistics.
 *
 *   inputs (tensor/io.h) -> def->build() -> prediction -> loss rows [R] -> sums in the stat slots
 *
 * R is the number of rows: samples, or tokens. Rows whose target is CO_IGNORE do not count. The
 * loss is not averaged here: a leaf is the gradient of the sum of the rows, and the step divides by the count
 * of the whole batch. To add a model: a file under models/ and a row here.
 */
#include "nn/nn_int.h"

#include <math.h>
#include <string.h>

const co_model_def *const co_models[] = {&linear_def,      &mlp_def,
                                         &cnn_def,         &lm_def,
                                         &transformer_def, &factors_def,
                                         &neumf_def,       &fastnet_def,
                                         &resnet_defs[0],  &resnet_defs[1],
                                         &resnet_defs[2],  &resnet_defs[3],
                                         &resnet_defs[4],  &vit_defs[0],
                                         &vit_defs[1],     &vit_defs[2],
                                         &vit_defs[3],     &vit_defs[4],
                                         &vit_defs[5],     &vit_defs[6],
                                         &vit_defs[7],     NULL};

const co_model_def *co_model_find(const char *name)
{
    for (int i = 0; co_models[i]; i++)
        if (strcmp(co_models[i]->name, name) == 0)
            return co_models[i];
    return NULL;
}

const char *co_metric_name(co_task task)
{
    return task == CO_TASK_REGRESS ? "mae" : "acc";
}

bool co_has_rmse(const co_io *io)
{
    return io->users > 0;
}

double co_rmse(double loss)
{
    return sqrt(loss);
}

co_err check_is_numbers(const char *model, const co_io *io)
{
    if (co_is_text(io))
        return co_fail(CO_EINPUT, "model=%s needs samples of numbers; the data is text; try model=%s", model,
                       io->task == CO_TASK_LM ? "lm" : "transformer");
    return check_is_not_ratings(model, io);
}

co_err check_is_not_ratings(const char *model, const co_io *io)
{
    if (io->users)
        return co_fail(CO_EINPUT,
                       "model=%s cannot use ratings; the data has pairs of a user and an item; try "
                       "model=factors",
                       model);
    return CO_OK;
}

co_err check_is_ratings(const char *model, const co_io *io)
{
    if (!io->users)
        return co_fail(CO_EINPUT,
                       "model=%s needs ratings (pairs of a user and an item); try data=fake_ratings or"
                       " data=movielens",
                       model);
    return CO_OK;
}

co_err check_heads(int64_t d_model, int64_t heads)
{
    if (d_model % heads == 0)
        return CO_OK;
    return co_fail(
        CO_EINPUT, "model.d_model=%lld cannot be cut into model.heads=%lld equal heads; try model.d_model=%lld",
        (long long)d_model, (long long)heads, (long long)((d_model / heads + 1) * heads));
}

int64_t predictions(const co_io *io)
{
    return io->task == CO_TASK_REGRESS ? io->y_width : io->classes;
}

co_node *flatten(const co_build *b)
{
    return co_reshape(b->g, b->x, CO_SHAPE(b->shape.n, co_shape_count(&b->io->x)));
}

static co_err check_shape(const co_io *io, co_slice_shape shape)
{
    bool x = shape.tokens > 0, y = shape.targets > 0;

    if (shape.n < 1)
        return co_fail(CO_EINPUT, "a slice of %d samples: a graph needs one at least", shape.n);
    if (co_is_text(io) && (!x || (io->task == CO_TASK_PAIRS && !y)))
        return co_fail(CO_EINPUT, "a slice of text without tokens: a graph needs one at least");
    return CO_OK;
}

/* The targets. y2 and lam are NULL unless samples are mixed in pairs. */
struct answer {
    co_node *y, *y2, *lam;
};

static co_spans spans(co_build *b, const char *name)
{
    return (co_spans){.offsets = co_input(b->g, name, CO_I32, CO_SHAPE(b->shape.n + 1)),
                      .ids = b->ids,
                      .longest = b->io->max_len};
}

/* The inputs of text: see tensor/io.h. Returns y. */
static co_node *declare_text(co_build *b, co_mode mode)
{
    bool pairs = b->io->task == CO_TASK_PAIRS;
    int dim = pairs ? CO_RAGGED_Y : CO_RAGGED_X;
    co_shape x = CO_SHAPE(b->shape.tokens), y = pairs ? CO_SHAPE(b->shape.targets) : x;

    b->x = co_input_ragged(b->g, "x", CO_I32, x, CO_RAGGED_X);
    if (pairs)
        b->given = co_input_ragged(b->g, "given", CO_I32, y, CO_RAGGED_Y);
    co_node *target = mode == CO_MODE_PREDICT ? NULL : co_input_ragged(b->g, "y", CO_I32, y, dim);
    b->ids = co_input(b->g, "ids", CO_I64, CO_SHAPE(b->shape.n));
    b->x_spans = spans(b, "offsets");
    if (pairs)
        b->y_spans = spans(b, "y_offsets");
    return target;
}

static bool is_mirrored(const co_io *io, co_mode mode)
{
    return io->mirror && io->task == CO_TASK_CLASSIFY && mode != CO_MODE_TRAIN;
}

/* Declares the inputs that the task has, and returns the targets (all NULL when predicting). */
static struct answer declare_inputs(co_build *b, co_mode mode)
{
    const co_io *io = b->io;
    int64_t n = b->shape.n;
    co_shape x = {1 + io->x.nd, {n}}, y = CO_SHAPE(n);
    co_dtype x_type = CO_F32, y_type = CO_I32;

    if (co_is_text(io))
        return (struct answer){.y = declare_text(b, mode)};
    for (int i = 0; i < io->x.nd; i++)
        x.d[1 + i] = io->x.d[i];
    if (io->task == CO_TASK_REGRESS) {
        y_type = CO_F32;
        y = CO_SHAPE(n, io->y_width);
    }
    if (io->users) {
        x_type = CO_I32;
        x = CO_SHAPE(n);
    }
    if (is_mirrored(io, mode))
        x.d[0] = 2 * n;
    b->x = co_input(b->g, "x", x_type, x);
    if (io->users)
        b->items = co_input(b->g, "items", CO_I32, CO_SHAPE(n));
    struct answer a = {.y = mode == CO_MODE_PREDICT ? NULL : co_input(b->g, "y", y_type, y)};
    if (mode == CO_MODE_TRAIN && io->mix && io->task == CO_TASK_CLASSIFY) {
        a.y2 = co_input(b->g, "y2", CO_I32, y);
        a.lam = co_input(b->g, "lam", CO_F32, CO_SHAPE(n));
    }
    b->ids = co_input(b->g, "ids", CO_I64, CO_SHAPE(n));
    return a;
}

/* lam * loss(y) + (1 - lam) * loss(y2) for each row [n]; 0 where y is ignored, whatever y2 is. */
static co_node *mixed_loss(co_graph *g, co_node *logits, const struct answer *a, float smooth)
{
    co_node *counts = co_valid(g, a->y, CO_IGNORE);            /* [n] 1 or 0 */
    co_node *own = co_mul(g, counts, a->lam);                  /* [n] lam or 0 */
    co_node *others = co_add(g, counts, co_scale(g, own, -1)); /* [n] 1 - lam or 0 */
    co_node *first = co_cross_entropy(g, logits, a->y, smooth, CO_IGNORE);
    co_node *second = co_cross_entropy(g, logits, a->y2, smooth, CO_IGNORE);

    first = co_mul(g, first, own);
    second = co_mul(g, second, others);
    return co_add(g, first, second);
}

/* A slot that the task does not use is set to zero. */
static co_node *nothing(co_graph *g)
{
    return co_sum_all(g, co_fill(g, CO_SHAPE(1), 0));
}

/* logits [rows, classes], target [rows]: one row per sample or token. */
static void add_class_loss(const co_build *b, co_node *logits, const struct answer *a, const co_loss *how)
{
    co_graph *g = b->g;
    co_node *target = a->y;
    float smooth = (float)how->label_smoothing;
    co_node *loss = a->lam ? mixed_loss(g, logits, a, smooth)
                           : co_cross_entropy(g, logits, target, smooth, CO_IGNORE); /* [rows] */

    co_graph_loss(g, loss);
    co_graph_stat(g, CO_STAT_LOSS, co_sum_all(g, loss));
    co_graph_stat(g, CO_STAT_COUNT, co_count_valid(g, target, CO_IGNORE));
    co_graph_stat(g, CO_STAT_METRIC, co_correct(g, logits, target, CO_IGNORE, 1));
    if (b->io->task == CO_TASK_CLASSIFY)
        co_graph_stat(g, CO_STAT_TOP5,
                      co_correct(g, logits, target, CO_IGNORE, b->io->classes < 5 ? (int)b->io->classes : 5));
    else
        co_graph_stat(g, CO_STAT_TOP5, nothing(g));
}

static void add_distance_loss(const co_build *b, co_node *pred, co_node *y)
{
    co_graph *g = b->g;
    co_node *loss = co_mse(g, pred, y); /* [n] */

    co_graph_loss(g, loss);
    co_graph_stat(g, CO_STAT_LOSS, co_sum_all(g, loss));
    co_graph_stat(g, CO_STAT_COUNT, co_sum_all(g, co_fill(g, CO_SHAPE(b->shape.n), 1)));
    co_graph_stat(g, CO_STAT_METRIC, co_sum_all(g, co_mae(g, pred, y)));
    co_graph_stat(g, CO_STAT_TOP5, nothing(g));
}

static void check_prediction(const co_build *b, const char *model, co_node *pred)
{
    co_task task = b->io->task;
    int rows = task == CO_TASK_LM ? b->shape.tokens : task == CO_TASK_PAIRS ? b->shape.targets : b->shape.n;
    co_shape want = CO_SHAPE(rows, predictions(b->io));
    char is[96], should[96];

    if (pred && !co_shape_eq(co_node_shape(pred), &want))
        co_graph_fail(b->g, "model '%s' predicts %s where the task needs %s", model,
                      co_shape_text(is, sizeof is, co_node_shape(pred)),
                      co_shape_text(should, sizeof should, &want));
}

static co_node *predict(const co_build *b, const void *cfg)
{
    co_node *pred = b->def->build(b, cfg);

    check_prediction(b, b->def->name, pred);
    return pred;
}

/* x [2n,...] -> [n,classes] */
static co_node *mean_of_mirrored(const co_build *b, const void *cfg)
{
    co_build both = *b;
    int64_t n = b->shape.n;

    both.shape.n *= 2;
    co_node *pred = predict(&both, cfg); /* [2n,classes] */
    co_node *plain = co_slice(b->g, pred, 0, 0, n);
    co_node *mirrored = co_slice(b->g, pred, 0, n, n);
    return co_scale(b->g, co_add(b->g, plain, mirrored), 0.5f);
}

co_err co_model_graph(co_graph **out, const co_model_def *def, const void *cfg, const co_io *io,
                      const co_loss *loss, co_slice_shape shape, co_mode mode)
{
    static const co_loss plain;
    co_build b = {.def = def, .io = io, .shape = shape};

    CO_TRY(def->check(cfg, io));
    CO_TRY(check_shape(io, shape));
    CO_TRY(co_graph_new(&b.g, mode == CO_MODE_TRAIN));
    struct answer a = declare_inputs(&b, mode);
    co_node *pred = is_mirrored(io, mode) ? mean_of_mirrored(&b, cfg) : predict(&b, cfg);
    if (mode == CO_MODE_PREDICT)
        co_graph_output(b.g, pred);
    else if (io->task == CO_TASK_REGRESS)
        add_distance_loss(&b, pred, a.y);
    else
        add_class_loss(&b, pred, &a, loss ? loss : &plain);
    if (mode == CO_MODE_EVAL)
        co_graph_output(b.g, pred);

    co_err err = co_graph_error(b.g);
    if (err) {
        co_graph_free(b.g);
        return co_fail_in(err, "model '%s'", def->name);
    }
    *out = b.g;
    return CO_OK;
}
