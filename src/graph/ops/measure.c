/* measure.c -- statistics of a slice, one double each, for stat slots. Gradients do not pass through them. */
#include "graph/graph_int.h"

static bool scalar_shape(co_graph *g, struct op *op)
{
    op->out[0]->shape = CO_SCALAR;
    return true;
}

static bool correct_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape, *t = &op->in[1]->shape;

    if (x->nd < 1 || co_shape_count(t) * x->d[x->nd - 1] != co_shape_count(x))
        return op_fail(g, op, "target must have one element for each row of logits");
    if (op->attr.k < 1 || op->attr.k > x->d[x->nd - 1])
        return op_fail(g, op, "k %d: must be between 1 and the number of classes", op->attr.k);
    return scalar_shape(g, op);
}

const struct op_row rows_measure[] = {
    {CO_OP_SUM_ALL, {"x"}, "f", "d", 1, scalar_shape, NULL, NULL, ROW_NO_GRAD},
    {CO_OP_COUNT_VALID, {"target"}, "i", "d", 1, scalar_shape, NULL, NULL, ROW_NO_GRAD},
    {CO_OP_CORRECT, {"logits", "target"}, "fi", "d", 2, correct_shape, NULL, NULL, ROW_NO_GRAD},
    {0}};

co_node *co_sum_all(co_graph *g, co_node *x)
{
    return EMIT(g, CO_OP_SUM_ALL, NULL, NULL, x);
}

co_node *co_count_valid(co_graph *g, co_node *target, int ignore)
{
    return EMIT(g, CO_OP_COUNT_VALID, (&(co_attr){.ignore = ignore}), NULL, target);
}

co_node *co_correct(co_graph *g, co_node *logits, co_node *target, int ignore, int k)
{
    return EMIT(g, CO_OP_CORRECT, (&(co_attr){.ignore = ignore, .k = k}), NULL, logits, target);
}
