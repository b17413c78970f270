/* norm.c -- batch norm over the slice, its evaluation form, layer norm.
 *
 * In a training graph, batch norm writes the slice's statistics, times the number of samples, to the leaf:
 * wmean and wvar (outputs 3 and 4) take the places of running_mean and running_var. Two norms cannot share
 * statistics.
 */
#include "graph/graph_int.h"

enum { Y, MEAN, RSTD, WMEAN, WVAR };

static bool affine_fits(co_graph *g, struct op *op, int64_t channels)
{
    if (!(op->attr.eps > 0))
        return op_fail(g, op, "eps %g: must be above 0", (double)op->attr.eps);
    for (int i = 1; i < op->n_in; i++)
        if (!shape_is(op->in[i], 1, channels))
            return op_fail(g, op, "%s must be [%lld]", op_row_of(op->id)->role[i], (long long)channels);
    op->out[Y]->shape = op->in[0]->shape;
    return true;
}

static bool batch_norm_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape;

    if (x->nd < 2)
        return op_fail(g, op, "x must be [N,C,...]");
    for (int i = MEAN; i < op->n_out; i++)
        op->out[i]->shape = CO_SHAPE(x->d[1]);
    return affine_fits(g, op, x->d[1]);
}

static bool layer_norm_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape;

    if (x->nd < 1)
        return op_fail(g, op, "x must have a dimension to normalise over");
    int64_t channels = x->d[x->nd - 1];
    for (int i = MEAN; i < op->n_out; i++)
        op->out[i]->shape = CO_SHAPE(co_shape_count(x) / channels);
    return affine_fits(g, op, channels);
}

static void norm_grad(co_graph *g, const struct op *op, co_node *dy)
{
    co_op id = op->id == CO_OP_BATCH_NORM ? CO_OP_BATCH_NORM_GRAD : CO_OP_LAYER_NORM_GRAD;
    co_node *dx = EMIT(g, id, &op->attr, NULL, dy, op->in[0], op->in[1], op->out[MEAN], op->out[RSTD]);

    for (int i = 0; dx && i < 3; i++)
        grad_add(g, op, i, dx->op->out[i]);
}

/* dy, x, gamma, mean, rstd -> dx, dgamma, dbeta */
static bool norm_grad_shape(co_graph *g, struct op *op)
{
    op->out[0]->shape = op->in[1]->shape;
    op->out[1]->shape = op->out[2]->shape = op->in[2]->shape;
    return true;
}

#define NORM_GRAD_ROLES                                                                                      \
    {                                                                                                        \
        "dy", "x", "gamma", "mean", "rstd"                                                                   \
    }
const struct op_row rows_norm[] = {
    {CO_OP_BATCH_NORM, {"x", "gamma", "beta"}, "fff", "fffff", 3, batch_norm_shape, norm_grad, NULL, 0},
    {CO_OP_BATCH_NORM_GRAD, NORM_GRAD_ROLES, "fffff", "fff", 5, norm_grad_shape, NULL, NULL, ROW_INNER},
    {CO_OP_BATCH_NORM_EVAL,
     {"x", "gamma", "beta", "running_mean", "running_var"},
     "fffff",
     "f",
     5,
     batch_norm_shape,
     NULL,
     NULL,
     ROW_NO_GRAD},
    {CO_OP_LAYER_NORM, {"x", "gamma", "beta"}, "fff", "fff", 3, layer_norm_shape, norm_grad, NULL, 0},
    {CO_OP_LAYER_NORM_GRAD, NORM_GRAD_ROLES, "fffff", "fff", 5, norm_grad_shape, NULL, NULL, ROW_INNER},
    {0}};

/* Puts the norm's output `value` into the leaf, at the place of the running statistic `stat`. */
static bool send_home(co_graph *g, co_node *value, co_node *stat, const char *role)
{
    struct op *op = value->op;

    if (!stat || stat->kind != NODE_STAT || !shape_is(stat, 1, value->shape.d[0]))
        return op_fail(g, op, "%s must be a statistic [%lld] made by co_stat", role,
                       (long long)value->shape.d[0]);
    if (stat->only)
        return op_fail(g, op, "'%s' is written by another batch norm already", stat->name);
    stat->only = op;
    value->home = HOME_LEAF;
    value->home_at = stat->entry;
    return true;
}

co_node *co_batch_norm(co_graph *g, co_node *x, co_node *gamma, co_node *beta, co_node *rmean, co_node *rvar,
                       float eps)
{
    co_attr attr = {.eps = eps};

    if (!g->training)
        return EMIT(g, CO_OP_BATCH_NORM_EVAL, &attr, NULL, x, gamma, beta, rmean, rvar);
    co_node *y = EMIT(g, CO_OP_BATCH_NORM, &attr, NULL, x, gamma, beta);
    if (!y || !send_home(g, y->op->out[WMEAN], rmean, "running_mean") ||
        !send_home(g, y->op->out[WVAR], rvar, "running_var"))
        return NULL;
    return y;
}

co_node *co_std_norm(co_graph *g, co_node *x, co_node *alpha, co_node *bias, float eps)
{
    return EMIT(g, CO_OP_LAYER_NORM, (&(co_attr){.eps = eps, .unbiased = 1}), NULL, x, alpha, bias);
}

co_node *co_layer_norm(co_graph *g, co_node *x, co_node *gamma, co_node *beta, float eps)
{
    return EMIT(g, CO_OP_LAYER_NORM, (&(co_attr){.eps = eps}), NULL, x, gamma, beta);
}
