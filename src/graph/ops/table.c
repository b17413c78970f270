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
