/* move.c -- operators that only move elements: transpose, concat, slice and its gradient pad. */
#include "graph/graph_int.h"

#include <limits.h>

static bool transpose_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape;
    unsigned seen = 0;

    for (int i = 0; i < x->nd; i++) {
        int p = op->attr.perm[i];
        if (p < 0 || p >= x->nd || (seen & 1u << p))
            return op_fail(g, op, "perm is not an order of the %d dimensions", x->nd);
        seen |= 1u << p;
        op->out[0]->shape.d[i] = x->d[p];
    }
    op->out[0]->shape.nd = x->nd;
    return true;
}

static void transpose_grad(co_graph *g, const struct op *op, co_node *dy)
{
    int back[CO_MAX_DIMS];
    for (int i = 0; i < op->in[0]->shape.nd; i++)
        back[op->attr.perm[i]] = i;
    grad_add(g, op, 0, co_transpose(g, dy, back));
}

static bool concat_shape(co_graph *g, struct op *op)
{
    int axis = op->attr.axis;
    co_shape *y = &op->out[0]->shape;

    *y = op->in[0]->shape;
    if (axis < 0 || axis >= y->nd)
        return op_fail(g, op, "there is no axis %d", axis);
    for (int i = 1; i < op->n_in; i++) {
        co_shape x = op->in[i]->shape;
        int64_t len = x.d[axis];
        x.d[axis] = y->d[axis];
        if (!co_shape_eq(&x, y))
            return op_fail(g, op, "dimensions other than axis %d differ", axis);
        y->d[axis] += len;
    }
    return true;
}

static void concat_grad(co_graph *g, const struct op *op, co_node *dy)
{
    int axis = op->attr.axis;
    int64_t start = 0;

    for (int i = 0; i < op->n_in; i++) {
        int64_t len = op->in[i]->shape.d[axis];
        if (grad_wants(op, i))
            grad_add(g, op, i, co_slice(g, dy, axis, start, len));
        start += len;
    }
}

static void slice_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0, EMIT(g, CO_OP_PAD, &op->attr, &op->in[0]->shape, dy));
}

/* The wanted shape gives the length; co_slice has checked it. */
const struct op_row rows_move[] = {
    {CO_OP_TRANSPOSE, {"x"}, "f", "f", 1, transpose_shape, transpose_grad, NULL, 0},
    {CO_OP_CONCAT,
     {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"},
     "ffffffff",
     "f",
     1,
     concat_shape,
     concat_grad,
     NULL,
     0},
    {CO_OP_SLICE, {"x"}, "f", "f", 1, shape_given, slice_grad, NULL, 0},
    {CO_OP_PAD, {"dy"}, "f", "f", 1, shape_given, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_transpose(co_graph *g, co_node *x, const int *perm)
{
    co_attr attr = {0};
    for (int i = 0; x && i < x->shape.nd; i++)
        attr.perm[i] = perm[i];
    return EMIT(g, CO_OP_TRANSPOSE, &attr, NULL, x);
}

/* Joins more than CO_MAX_IN pieces: eight at a time into larger pieces, until one call can take the rest. */
static co_node *concat_many(co_graph *g, co_node *const *x, int n, int axis)
{
    int groups = (n + CO_MAX_IN - 1) / CO_MAX_IN;
    co_node **piece = co_array((size_t)groups, sizeof *piece);
    if (!piece) {
        graph_nomem(g);
        return NULL;
    }
    for (int i = 0; i < groups; i++) {
        int at = i * CO_MAX_IN;
        piece[i] = co_concat(g, x + at, n - at < CO_MAX_IN ? n - at : CO_MAX_IN, axis);
    }
    co_node *y = co_concat(g, piece, groups, axis);
    co_free(piece);
    return y;
}

co_node *co_concat(co_graph *g, co_node *const *x, int n, int axis)
{
    if (g->err)
        return NULL;
    if (n < 1)
        return co_graph_fail(g, "concat: nothing to join");
    if (n > CO_MAX_IN)
        return concat_many(g, x, n, axis);
    return emit(g, CO_OP_CONCAT, &(co_attr){.axis = axis}, NULL, n, x);
}

co_node *co_slice(co_graph *g, co_node *x, int axis, int64_t start, int64_t len)
{
    if (g->err)
        return NULL;
    if (!x)
        return co_graph_fail(g, "slice: x is missing (NULL)");
    char dims[128];
    co_shape y = x->shape;
    if (axis < 0 || axis >= y.nd)
        return co_graph_fail(g, "slice: x %s: there is no axis %d", co_shape_text(dims, sizeof dims, &y), axis);
    if (start < 0 || start > INT_MAX || len < 1 || start > y.d[axis] || len > y.d[axis] - start)
        return co_graph_fail(g, "slice: x %s: [%lld,%lld) does not lie in axis %d",
                             co_shape_text(dims, sizeof dims, &y), (long long)start, (long long)(start + len),
                             axis);
    y.d[axis] = len;
    return EMIT(g, CO_OP_SLICE, (&(co_attr){.axis = axis, .start = (int)start}), &y, x);
}
