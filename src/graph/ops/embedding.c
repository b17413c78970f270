/* embedding.c -- rows of a table by index.
 *
 * The gradient of a row-sparse table goes to the leaf unchanged: values at the parameter's place, then one
 * mark per row. The marks of a dense table are ignored.
 */
#include "graph/graph_int.h"

static bool embedding_shape(co_graph *g, struct op *op)
{
    const co_shape *table = &op->in[0]->shape, *idx = &op->in[1]->shape;

    if (table->nd != 2)
        return op_fail(g, op, "table must be [rows,width]");
    if (idx->nd >= CO_MAX_DIMS)
        return op_fail(g, op, "idx has too many dimensions");
    op->out[0]->shape = *idx;
    op->out[0]->shape.d[op->out[0]->shape.nd++] = table->d[1];
    return true;
}

static void embedding_grad(co_graph *g, const struct op *op, co_node *dy)
{
    co_node *table = op->in[0];

    if (!grad_wants(op, 0))
        return;
    co_node *d =
        EMIT(g, CO_OP_EMBEDDING_GRAD, (&(co_attr){.sparse = table->sparse}), &table->shape, dy, op->in[1]);
    if (d && table->sparse) {
        d->op->out[1]->home = HOME_MARKS;
        d->op->out[1]->home_at = table->entry;
    }
    grad_add(g, op, 0, d);
}

static bool embedding_grad_shape(co_graph *g, struct op *op)
{
    op->out[1]->shape = CO_SHAPE(op->out[0]->shape.d[0]);
    return true;
}

const struct op_row rows_embedding[] = {
    {CO_OP_EMBEDDING, {"table", "idx"}, "fi", "f", 2, embedding_shape, embedding_grad, NULL, 0},
    {CO_OP_EMBEDDING_GRAD, {"dy", "idx"}, "fi", "fu", 2, embedding_grad_shape, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_embedding(co_graph *g, co_node *table, co_node *idx)
{
    return EMIT(g, CO_OP_EMBEDDING, NULL, NULL, table, idx);
}
