/* factors.c -- matrix factorisation of ratings (Koren, Bell and Volinsky, 2009):
 *
 *     rating = bias + user_bias[u] + item_bias[i] + user[u] . item[i]
 *
 * `bias` starts at the mean of the ratings to train on, where the data knows it.
 * Users and items have a row of `width` numbers each. The data says how many users and items there are. A
 * batch touches few rows, so the gradients are row-sparse and the rows that it does not touch stay as they
 * are: a step costs the same for a thousand users and for ten million.
 */
#include "nn/nn_int.h"

#include <math.h>

struct factors_cfg {
    int64_t width;
    double spread;
    bool sparse;
};

static const co_option options[] = {{"width", CO_OPT_INT, offsetof(struct factors_cfg, width), "32",
                                     "numbers per user and per item", .min = 1, .max = 65536},
                                    {"spread", CO_OPT_FLOAT, offsetof(struct factors_cfg, spread), "0",
                                     "standard deviation of those numbers at the start; 0: 1 / sqrt(width)",
                                     .min = 0, .max = 100},
                                    {"sparse", CO_OPT_BOOL, offsetof(struct factors_cfg, sparse), "true",
                                     "row-sparse gradients and lazy updates for users and items"},
                                    {0}};

static co_err check(const void *cfg, const co_io *io)
{
    return check_is_ratings("factors", io);
}

/* The rows of `table` for these users or items: idx [n] -> [n, width] */
static co_node *rows_of(co_graph *g, const struct factors_cfg *c, const char *table, co_node *idx,
                        int64_t count, int64_t width, co_init init)
{
    int flags = c->sparse ? CO_PARAM_SPARSE : 0;
    co_node *weight = co_param(g, table, CO_SHAPE(count, width), init, flags);

    return co_embedding(g, weight, idx);
}

static co_node *build(const co_build *b, const void *cfg)
{
    const struct factors_cfg *c = cfg;
    co_graph *g = b->g;
    double spread = c->spread > 0 ? c->spread : 1 / sqrt((double)c->width);
    const co_init zero = {CO_INIT_ZERO, 0}, small = {CO_INIT_NORMAL, (float)spread};
    int64_t users = b->io->users, items = b->io->items;

    co_node *user = rows_of(g, c, "user.weight", b->x, users, c->width, small);     /* [n, width] */
    co_node *item = rows_of(g, c, "item.weight", b->items, items, c->width, small); /* [n, width] */
    co_node *user_bias = rows_of(g, c, "user_bias.weight", b->x, users, 1, zero);   /* [n, 1] */
    co_node *item_bias = rows_of(g, c, "item_bias.weight", b->items, items, 1, zero);
    co_init mean = {CO_INIT_VALUE, (float)b->io->y_mean};
    co_node *bias = co_param(g, "bias", CO_SHAPE(1), mean, CO_PARAM_NO_DECAY);

    co_node *ones = co_fill(g, CO_SHAPE(1, c->width), 1);
    co_node *dot = co_linear(g, co_mul(g, user, item), ones, NULL); /* [n, 1] */
    co_node *both = co_add(g, user_bias, item_bias);
    return co_add(g, co_add(g, dot, both), bias);
}

const co_model_def factors_def = {
    .name = "factors",
    .help = "matrix factorisation of ratings, for recommenders",
    .options = options,
    .cfg_size = sizeof(struct factors_cfg),
    .check = check,
    .build = build,
};
