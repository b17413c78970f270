/* neumf.c -- neural matrix factorisation (He, Liao, Zhang, Nie, Hu and Chua, Neural Collaborative Filtering,
 * 2017):
 *
 *     gmf  = user . item, element by element                                 [n, width]
 *     mlp  = ReLU layers over the user's and the item's row side by side,
 *            each half as wide as the one before                             [n, width]
 *     rating = predict_layer(gmf and mlp side by side)
 *
 * The two halves have tables of their own; the rows of the second are width * 2^(layers - 1) wide. Names of
 * parameters are those of the PyTorch version that is most in use. Tables start small (normal, model.spread),
 * linear layers as PyTorch's do, and the last bias starts at the mean of the ratings to train on, where the
 * data knows it. The gradients of the tables are row-sparse, as in factors.c.
 */
#include "nn/nn_int.h"

#include <math.h>
#include <stdio.h>

enum { MOST_LAYERS = 8 };

struct neumf_cfg {
    int64_t width, layers;
    double spread, dropout;
    bool sparse;
};

static const co_option options[] = {
    {"width", CO_OPT_INT, offsetof(struct neumf_cfg, width), "16",
     "numbers per user and per item in the product, and outputs of the last layer", .min = 1, .max = 4096},
    {"layers", CO_OPT_INT, offsetof(struct neumf_cfg, layers), "3", "layers of the other half", .min = 1,
     .max = MOST_LAYERS},
    {"spread", CO_OPT_FLOAT, offsetof(struct neumf_cfg, spread), "0.01",
     "standard deviation of the tables' numbers at the start", .min = 0, .max = 100},
    {"dropout", CO_OPT_FLOAT, offsetof(struct neumf_cfg, dropout), "0",
     "share of values dropped before each layer", .min = 0, .max = 0.99},
    {"sparse", CO_OPT_BOOL, offsetof(struct neumf_cfg, sparse), "true",
     "row-sparse gradients and lazy updates for users and items"},
    {0}};

static co_err check(const void *cfg, const co_io *io)
{
    return check_is_ratings("neumf", io);
}

/* The rows of `table` for these users or items: idx [n] -> [n, width] */
static co_node *rows_of(const co_build *b, const struct neumf_cfg *c, const char *table, bool users,
                        int64_t width)
{
    co_shape shape = CO_SHAPE(users ? b->io->users : b->io->items, width);
    co_node *weight = co_param(b->g, table, shape, (co_init){CO_INIT_NORMAL, (float)c->spread},
                               c->sparse ? CO_PARAM_SPARSE : 0);

    return co_embedding(b->g, weight, users ? b->x : b->items);
}

static co_node *product_half(const co_build *b, const struct neumf_cfg *c)
{
    co_node *user = rows_of(b, c, "embed_user_GMF.weight", true, c->width);
    co_node *item = rows_of(b, c, "embed_item_GMF.weight", false, c->width);

    return co_mul(b->g, user, item); /* [n, width] */
}

static co_node *layers_half(const co_build *b, const struct neumf_cfg *c)
{
    int64_t wide = c->width << (c->layers - 1);
    co_node *user = rows_of(b, c, "embed_user_MLP.weight", true, wide);
    co_node *item = rows_of(b, c, "embed_item_MLP.weight", false, wide);
    co_node *h = co_concat(b->g, (co_node *const[]){user, item}, 2, 1); /* [n, 2 wide] */
    char name[NAME_MAX_LEN];

    for (int i = 0; i < (int)c->layers; i++, wide /= 2) {
        snprintf(name, sizeof name, "MLP_layers.%d", 3 * i);
        h = co_dropout(b->g, h, b->ids, (float)c->dropout, name);
        snprintf(name, sizeof name, "MLP_layers.%d", 3 * i + 1);    /* 3 i + 2 is the ReLU */
        h = co_relu(b->g, co_nn_linear(b->g, h, wide, true, name)); /* [n, wide] */
    }
    return h;
}

static co_node *build(const co_build *b, const void *cfg)
{
    const struct neumf_cfg *c = cfg;
    co_graph *g = b->g;
    co_node *gmf = product_half(b, c), *mlp = layers_half(b, c); /* [n, width] each */
    co_node *both = co_concat(g, (co_node *const[]){gmf, mlp}, 2, 1);
    co_init by_fan_in = {CO_INIT_UNIFORM, (float)(1 / sqrt(2 * (double)c->width))};
    co_init mean = {CO_INIT_VALUE, (float)b->io->y_mean};
    co_node *weight = co_param(g, "predict_layer.weight", CO_SHAPE(1, 2 * c->width), by_fan_in, 0);
    co_node *bias = co_param(g, "predict_layer.bias", CO_SHAPE(1), mean, CO_PARAM_NO_DECAY);

    return co_linear(g, both, weight, bias); /* [n, 1] */
}

const co_model_def neumf_def = {
    .name = "neumf",
    .help = "neural matrix factorisation of ratings, for recommenders",
    .options = options,
    .cfg_size = sizeof(struct neumf_cfg),
    .check = check,
    .build = build,
};
