/* mlp.c -- fully connected layers with ReLU and dropout: fc1, fc2, ..., head. */
#include "nn/nn_int.h"

#include <stdio.h>

struct mlp_cfg {
    int64_t hidden, layers;
    double dropout;
};

static const co_option options[] = {
    {"hidden", CO_OPT_INT, offsetof(struct mlp_cfg, hidden), "128", "width of the hidden layers", .min = 1,
     .max = 65536},
    {"layers", CO_OPT_INT, offsetof(struct mlp_cfg, layers), "2", "hidden layers", .min = 1, .max = 100},
    {"dropout", CO_OPT_FLOAT, offsetof(struct mlp_cfg, dropout), "0.1", "share of hidden values dropped",
     .min = 0, .max = 0.99},
    {0}};

static co_err check(const void *cfg, const co_io *io)
{
    return check_is_numbers("mlp", io);
}

static co_node *build(const co_build *b, const void *cfg)
{
    const struct mlp_cfg *c = cfg;
    co_graph *g = b->g;
    co_node *h = flatten(b); /* [n, features] */
    char name[NAME_MAX_LEN];

    for (int i = 1; i <= (int)c->layers; i++) {
        snprintf(name, sizeof name, "fc%d", i);
        h = co_relu(g, co_nn_linear(g, h, c->hidden, true, name)); /* [n, hidden] */
        snprintf(name, sizeof name, "drop%d", i);
        h = co_dropout(g, h, b->ids, (float)c->dropout, name);
    }
    return co_nn_linear(g, h, predictions(b->io), true, "head");
}

const co_model_def mlp_def = {
    .name = "mlp",
    .help = "fully connected layers with ReLU and dropout",
    .options = options,
    .cfg_size = sizeof(struct mlp_cfg),
    .check = check,
    .build = build,
};
