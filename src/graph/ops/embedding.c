/* embedding.c -- rows of a table by index.
 *
 * The gradient of a row-sparse table is a list of rows, which autodiff.c sends to the table's list. It has
 * another shape than the table and is added to nothing: one operator alone may read such a table.
 *
 * pair_score is what a factorisation computes of its rows, in one operator: a slice of a few pairs costs less than ten
 * calls on it do. Its tables are row-sparse.
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

/* --- pair_score ------------------------------------------------------------------------------------------ */
static bool pair_score_shape(co_graph *g, struct op *op)
{
    const co_shape *a = &op->in[0]->shape, *b = &op->in[1]->shape;
    const co_shape *ia = &op->in[5]->shape, *ib = &op->in[6]->shape;

    if (a->nd != 2 || b->nd != 2 || a->d[1] != b->d[1])
        return op_fail(g, op, "a and b must be tables of one width");
    for (int i = 0; i < 2; i++)
        if (!shape_is(op->in[2 + i], 2, 1) || op->in[2 + i]->shape.d[0] != op->in[i]->shape.d[0])
            return op_fail(g, op, "a bias must have a row of one number for each row of its table");
    if (co_shape_count(&op->in[4]->shape) != 1)
        return op_fail(g, op, "bias must be one number");
    if (ia->nd != 1 || !co_shape_eq(ia, ib))
        return op_fail(g, op, "ia and ib must have one shape [n]");
    for (int i = 0; i < 4; i++)
        if (!op->in[i]->sparse)
            return op_fail(g, op, "tables must be row-sparse parameters");
    op->out[0]->shape = CO_SHAPE(ia->d[0], 1);
    return true;
}

/* The lists of one side: its table's, then its biases'. */
static void side_grad(co_graph *g, const struct op *op, co_node *dy, int own, int other)
{
    co_node *d = EMIT(g, CO_OP_PAIR_ROWS, (&(co_attr){.rows = op->in[own]->shape.d[0]}), NULL, dy,
                      op->in[other], op->in[5 + own], op->in[5 + other]);

    grad_add(g, op, own, d);
    grad_add(g, op, 2 + own, d ? d->op->out[3] : NULL);
}

static void pair_score_grad(co_graph *g, const struct op *op, co_node *dy)
{
    side_grad(g, op, dy, 0, 1);
    side_grad(g, op, dy, 1, 0);
    if (grad_wants(op, 4))
        grad_add(g, op, 4, EMIT(g, CO_OP_SUM_ROWS, NULL, &op->in[4]->shape, dy));
}

/* As those of the product with a row of ones. */
static double pair_score_flops(const co_call *c)
{
    return 2.0 * (double)co_shape_count(&c->in[5].shape) * (double)c->in[0].shape.d[1];
}

static bool pair_rows_shape(co_graph *g, struct op *op)
{
    int64_t pairs = co_shape_count(&op->in[2]->shape), rows = op->attr.rows, cap = pairs < rows ? pairs : rows;

    for (int i = 0; i < 6; i += 3) {
        op->out[i]->shape = CO_SHAPE(cap, i ? 1 : op->in[1]->shape.d[1]);
        op->out[i + 1]->shape = CO_SHAPE(cap);
        op->out[i + 2]->shape = CO_SHAPE(1);
    }
    return true;
}

const struct op_row rows_embedding[] = {
    {CO_OP_EMBEDDING, {"table", "idx"}, "fi", "f", 2, embedding_shape, embedding_grad, NULL, 0},
    {CO_OP_EMBEDDING_GRAD, {"dy", "idx"}, "fi", "f", 2, shape_given, NULL, NULL, ROW_INNER},
    {CO_OP_EMBEDDING_ROWS, {"dy", "idx"}, "fi", "fuu", 2, embedding_rows_shape, NULL, NULL, ROW_INNER},
    {CO_OP_PAIR_SCORE,
     {"a", "b", "a_bias", "b_bias", "bias", "ia", "ib"},
     "fffffii",
     "f",
     7,
     pair_score_shape,
     pair_score_grad,
     pair_score_flops,
     0},
    {CO_OP_PAIR_ROWS, {"dy", "b", "ia", "ib"}, "ffii", "fuufuu", 4, pair_rows_shape, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_embedding(co_graph *g, co_node *table, co_node *idx)
{
    return EMIT(g, CO_OP_EMBEDDING, NULL, NULL, table, idx);
}

co_node *co_pair_score(co_graph *g, const co_pair *of)
{
    return EMIT(g, CO_OP_PAIR_SCORE, NULL, NULL, of->table[0], of->table[1], of->biases[0], of->biases[1],
                of->bias, of->idx[0], of->idx[1]);
}
