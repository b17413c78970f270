/* pool.c -- max and average pooling of images. */
#include "graph/graph_int.h"

static bool pool_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape;
    const co_attr *a = &op->attr;

    if (x->nd != 4)
        return op_fail(g, op, "x must be [N,C,H,W]");
    if (a->kh < 1 || a->kw < 1 || a->stride < 1 || a->pad < 0)
        return op_fail(
            g, op, "window %dx%d, stride %d, pad %d: window and stride must be at least 1, pad at least 0",
            a->kh, a->kw, a->stride, a->pad);
    if (a->pad > a->kh / 2 || a->pad > a->kw / 2) /* otherwise a window could lie entirely in the padding */
        return op_fail(g, op, "pad %d is more than half of the window %dx%d", a->pad, a->kh, a->kw);
    int64_t h = x->d[2] + 2 * (int64_t)a->pad - a->kh, w = x->d[3] + 2 * (int64_t)a->pad - a->kw;
    if (h < 0 || w < 0)
        return op_fail(g, op, "window %dx%d is larger than the padded image (pad %d)", a->kh, a->kw, a->pad);
    for (int i = 0; i < op->n_out; i++)
        op->out[i]->shape = CO_SHAPE(x->d[0], x->d[1], h / a->stride + 1, w / a->stride + 1);
    return true;
}

static void max_pool_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0, EMIT(g, CO_OP_MAX_POOL_GRAD, &op->attr, &op->in[0]->shape, dy, op->out[1]));
}

static void avg_pool_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0, EMIT(g, CO_OP_AVG_POOL_GRAD, &op->attr, &op->in[0]->shape, dy));
}

const struct op_row rows_pool[] = {
    {CO_OP_MAX_POOL, {"x"}, "f", "fi", 1, pool_shape, max_pool_grad, NULL, 0},
    {CO_OP_MAX_POOL_GRAD, {"dy", "idx"}, "fi", "f", 2, shape_given, NULL, NULL, ROW_INNER},
    {CO_OP_AVG_POOL, {"x"}, "f", "f", 1, pool_shape, avg_pool_grad, NULL, 0},
    {CO_OP_AVG_POOL_GRAD, {"dy"}, "f", "f", 1, shape_given, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_max_pool(co_graph *g, co_node *x, int k, int stride, int pad)
{
    return EMIT(g, CO_OP_MAX_POOL, (&(co_attr){.kh = k, .kw = k, .stride = stride, .pad = pad}), NULL, x);
}

co_node *co_avg_pool(co_graph *g, co_node *x, int kh, int kw, int stride, int pad)
{
    return EMIT(g, CO_OP_AVG_POOL, (&(co_attr){.kh = kh, .kw = kw, .stride = stride, .pad = pad}), NULL, x);
}
