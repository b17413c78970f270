/* embedding.c -- rows of a table by index.
 *
 * The gradient of a row-sparse table is a list of rows, which autodiff.c sends to the table's list. It has
 * another shape than the table and is added to nothing: one embedding alone may read such a table.
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
    if (table->sparse)
        grad_add(g, op, 0,
                 EMIT(g, CO_OP_EMBEDDING_ROWS, (&(co_attr){.rows = table->shape.d[0]}), NULL, dy, op->in[1]));
    else
        grad_add(g, op, 0, EMIT(g, CO_OP_EMBEDDING_GRAD, NULL, &table->shape, dy, op->in[1]));
}

static bool embedding_rows_shape(co_graph *g, struct op *op)
{
    const co_shape *dy = &op->in[0]->shape;
    int64_t positions = co_shape_count(&op->in[1]->shape), rows = op->attr.rows;
    int64_t cap = positions < rows ? positions : rows;

    op->out[0]->shape = CO_SHAPE(cap, dy->d[dy->nd - 1]);
    op->out[1]->shape = CO_SHAPE(cap);
    op->out[2]->shape = CO_SHAPE(1);
    return true;
}

const struct op_row rows_embedding[] = {
    {CO_OP_EMBEDDING, {"table", "idx"}, "fi", "f", 2, embedding_shape, embedding_grad, NULL, 0},
    {CO_OP_EMBEDDING_GRAD, {"dy", "idx"}, "fi", "f", 2, shape_given, NULL, NULL, ROW_INNER},
    {CO_OP_EMBEDDING_ROWS, {"dy", "idx"}, "fi", "fuu", 2, embedding_rows_shape, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_embedding(co_graph *g, co_node *table, co_node *idx)
{
    return EMIT(g, CO_OP_EMBEDDING, NULL, NULL, table, idx);
}
