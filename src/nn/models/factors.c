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

static co_node *table_of(co_graph *g, const struct factors_cfg *c, const char *name, int64_t count,
                         int64_t width, co_init init)
{
    return co_param(g, name, CO_SHAPE(count, width), init, c->sparse ? CO_PARAM_SPARSE : 0);
}

/* The same as co_pair_score, operator by operator, for tables with dense gradients. */
static co_node *plain_score(co_graph *g, const co_pair *of, int64_t width)
{
    co_node *user = co_embedding(g, of->table[0], of->idx[0]);       /* [n, width] */
    co_node *item = co_embedding(g, of->table[1], of->idx[1]);       /* [n, width] */
    co_node *user_bias = co_embedding(g, of->biases[0], of->idx[0]); /* [n, 1] */
    co_node *item_bias = co_embedding(g, of->biases[1], of->idx[1]);
    co_node *ones = co_fill(g, CO_SHAPE(1, width), 1);
    co_node *dot = co_linear(g, co_mul(g, user, item), ones, NULL); /* [n, 1] */
    co_node *both = co_add(g, user_bias, item_bias);

    return co_add(g, co_add(g, dot, both), of->bias);
}

static co_node *build(const co_build *b, const void *cfg)
{
    const struct factors_cfg *c = cfg;
    co_graph *g = b->g;
    double spread = c->spread > 0 ? c->spread : 1 / sqrt((double)c->width);
    const co_init zero = {CO_INIT_ZERO, 0}, small = {CO_INIT_NORMAL, (float)spread};
    const co_init mean = {CO_INIT_VALUE, (float)b->io->y_mean};
    int64_t users = b->io->users, items = b->io->items;
    co_pair of = {.idx = {b->x, b->items}};

    of.table[0] = table_of(g, c, "user.weight", users, c->width, small);
    of.table[1] = table_of(g, c, "item.weight", items, c->width, small);
    of.biases[0] = table_of(g, c, "user_bias.weight", users, 1, zero);
    of.biases[1] = table_of(g, c, "item_bias.weight", items, 1, zero);
    of.bias = co_param(g, "bias", CO_SHAPE(1), mean, CO_PARAM_NO_DECAY);
    return c->sparse ? co_pair_score(g, &of) : plain_score(g, &of, c->width); /* [n, 1] */
}

const co_model_def factors_def = {
    .name = "factors",
    .help = "matrix factorisation of ratings, for recommenders",
    .options = options,
    .cfg_size = sizeof(struct factors_cfg),
    .check = check,
    .build = build,
};
