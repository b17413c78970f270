/* loss.c -- losses. A loss is one number per row and never their mean: the step divides once, at the root of
 * the summation tree.
 *
 * Squared and absolute error are symmetric, so a target that depends on parameters gets the negated gradient.
 * Binary cross entropy is not symmetric: the builder refuses a target that depends on a parameter.
 */
#include "graph/graph_int.h"

static bool cross_entropy_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape, *t = &op->in[1]->shape;

    if (x->nd < 1 || t->nd != x->nd - 1)
        return op_fail(g, op, "target must have logits' dimensions but the last");
    for (int i = 0; i < t->nd; i++)
        if (t->d[i] != x->d[i])
            return op_fail(g, op, "target must have logits' dimensions but the last");
    if (!(op->attr.smooth >= 0 && op->attr.smooth < 1))
        return op_fail(g, op, "smoothing %g: must be in [0,1)", (double)op->attr.smooth);
    for (int i = 0; i < 2; i++)
        op->out[i]->shape = CO_SHAPE(co_shape_count(t));
    return true;
}

static void cross_entropy_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0,
             EMIT(g, CO_OP_CROSS_ENTROPY_GRAD, &op->attr, NULL, dy, op->in[0], op->in[1], op->out[1]));
}

static bool error_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape;

    if (x->nd < 1 || !co_shape_eq(x, &op->in[1]->shape))
        return op_fail(g, op, "pred and target must have one shape [n,...]");
    if (op->id == CO_OP_BCE && op->in[1]->grad)
        return op_fail(g, op, "target must not depend on a parameter");
    op->out[0]->shape = CO_SHAPE(x->d[0]);
    return true;
}

static void error_grad(co_graph *g, const struct op *op, co_node *dy)
{
    co_op id = op->id == CO_OP_MSE ? CO_OP_MSE_GRAD : op->id == CO_OP_MAE ? CO_OP_MAE_GRAD : CO_OP_BCE_GRAD;
    co_node *d = EMIT(g, id, NULL, NULL, dy, op->in[0], op->in[1]);

    grad_add(g, op, 0, d);
    if (grad_wants(op, 1))
        grad_add(g, op, 1, co_scale(g, d, -1));
}

const struct op_row rows_loss[] = {
    {CO_OP_CROSS_ENTROPY, {"logits", "target"}, "fi", "ff", 2, cross_entropy_shape, cross_entropy_grad, NULL, 0},
    /* clang-format off */
    {CO_OP_CROSS_ENTROPY_GRAD, {"dloss", "logits", "target", "lse"}, "ffif", "f", 4, shape_like_1, NULL, NULL,
     ROW_INNER},
    /* clang-format on */
    {CO_OP_VALID, {"target"}, "i", "f", 1, shape_like_0, NULL, NULL, ROW_NO_GRAD},
    {CO_OP_MSE, {"pred", "target"}, "ff", "f", 2, error_shape, error_grad, NULL, 0},
    {CO_OP_MSE_GRAD, {"dloss", "pred", "target"}, "fff", "f", 3, shape_like_1, NULL, NULL, ROW_INNER},
    {CO_OP_MAE, {"pred", "target"}, "ff", "f", 2, error_shape, error_grad, NULL, 0},
    {CO_OP_MAE_GRAD, {"dloss", "pred", "target"}, "fff", "f", 3, shape_like_1, NULL, NULL, ROW_INNER},
    {CO_OP_BCE, {"pred", "target"}, "ff", "f", 2, error_shape, error_grad, NULL, 0},
    {CO_OP_BCE_GRAD, {"dloss", "pred", "target"}, "fff", "f", 3, shape_like_1, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_cross_entropy(co_graph *g, co_node *logits, co_node *target, float smooth, int ignore)
{
    return EMIT(g, CO_OP_CROSS_ENTROPY, (&(co_attr){.smooth = smooth, .ignore = ignore}), NULL, logits, target);
}

co_node *co_valid(co_graph *g, co_node *target, int ignore)
{
    return EMIT(g, CO_OP_VALID, (&(co_attr){.ignore = ignore}), NULL, target);
}

co_node *co_mse(co_graph *g, co_node *pred, co_node *target)
{
    return EMIT(g, CO_OP_MSE, NULL, NULL, pred, target);
}

co_node *co_mae(co_graph *g, co_node *pred, co_node *target)
{
    return EMIT(g, CO_OP_MAE, NULL, NULL, pred, target);
}

co_node *co_bce(co_graph *g, co_node *pred, co_node *target)
{
    return EMIT(g, CO_OP_BCE, NULL, NULL, pred, target);
}
