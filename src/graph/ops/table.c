/* table.c -- all rows of all families, and the shape rules that several of them share. To add an operator:
 * its name in kernel.h, a row in one of the family files, a case in the gradient test. */
#include "graph/graph_int.h"

static const struct op_row *const families[] = {rows_matmul,    rows_conv,    rows_norm,      rows_pool,
                                                rows_pointwise, rows_move,    rows_embedding, rows_attention,
                                                rows_loss,      rows_measure, rows_ragged};

const struct op_row *op_row_of(int id)
{
    for (size_t f = 0; f < CO_COUNT(families); f++)
        for (const struct op_row *r = families[f]; r->in; r++)
            if ((int)r->id == id)
                return r;
    return NULL;
}

int op_rows_by(int id, int i)
{
    static const struct {
        co_op id;
        int table, idx;
    } readers[] = {{CO_OP_EMBEDDING, 0, 1},  {CO_OP_PAIR_SCORE, 0, 5}, {CO_OP_PAIR_SCORE, 1, 6},
                   {CO_OP_PAIR_SCORE, 2, 5}, {CO_OP_PAIR_SCORE, 3, 6}, {CO_OP_PAIR_ROWS, 1, 3}};

    for (size_t k = 0; k < CO_COUNT(readers); k++)
        if ((int)readers[k].id == id && readers[k].table == i)
            return readers[k].idx;
    return -1;
}

bool shape_given(co_graph *g, struct op *op)
{
    return true;
}

bool shape_like_0(co_graph *g, struct op *op)
{
    op->out[0]->shape = op->in[0]->shape;
    return true;
}

bool shape_like_1(co_graph *g, struct op *op)
{
    op->out[0]->shape = op->in[1]->shape;
    return true;
}

bool attention_grad_shape(co_graph *g, struct op *op)
{
    for (int i = 0; i < 3; i++)
        op->out[i]->shape = op->in[i + 1]->shape;
    return true;
}

bool shape_is(const co_node *n, int nd, int64_t last)
{
    return n->shape.nd == nd && n->shape.d[nd - 1] == last;
}
