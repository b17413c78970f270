/* ragged.c -- samples of different lengths that lie end to end: which operators keep a ragged dimension, and
 * the operators that need to know where a sample begins.
 *
 * Dimension 0 of a ragged value has a capacity; how many of its rows a run computes is given with the run
 * (co_bases.ragged). An operator takes ragged values if it is in the table `flows`, which says what happens
 * to the rows; every other operator refuses them. So no kernel ever sees rows that are not there.
 */
#include "graph/graph_int.h"

#include <string.h>

/* Letters of the inputs, '>', letters of the outputs:
 *   r  one row for each row of the operator's ragged dimension
 *   s  the same if it has as many dimensions as input 0; else it is broadcast, and has no ragged dimension
 *   .  no ragged dimension
 *   k  rows of a second ragged dimension, that of the keys
 *   *  anything
 */
static const struct flow {
    co_op id;
    const char *rows;
} flows[] = {
    {CO_OP_LINEAR, "r..>r"},
    {CO_OP_MATMUL, "r.>r"},
    {CO_OP_MATMUL_TN_SUM, "rr>."},
    {CO_OP_SUM_ROWS, "r>."},
    {CO_OP_LAYER_NORM, "r..>rrr"},
    {CO_OP_LAYER_NORM_GRAD, "rr.rr>r.."},
    {CO_OP_RELU, "r>r"},
    {CO_OP_RELU_GRAD, "rr>r"},
    {CO_OP_GELU, "r>r"},
    {CO_OP_GELU_GRAD, "rr>r"},
    {CO_OP_SOFTMAX, "r>r"},
    {CO_OP_SOFTMAX_GRAD, "rr>r"},
    {CO_OP_DROPOUT, "r..>r"},
    {CO_OP_ADD, "rs>r"},
    {CO_OP_MUL, "rs>r"},
    {CO_OP_SCALE, "r>r"},
    {CO_OP_COPY, "r>r"},
    {CO_OP_TRANSPOSE, "r>r"},
    {CO_OP_CONCAT, "rrrrrrrr>r"},
    {CO_OP_SLICE, "r>r"},
    {CO_OP_PAD, "r>r"},
    {CO_OP_EMBEDDING, ".r>r"},
    {CO_OP_EMBEDDING_GRAD, "rr>."},
    {CO_OP_EMBEDDING_ROWS, "rr>..."},
    {CO_OP_CROSS_ENTROPY, "rr>rr"},
    {CO_OP_CROSS_ENTROPY_GRAD, "rrrr>r"},
    {CO_OP_VALID, "r>r"},
    {CO_OP_MSE, "rr>r"},
    {CO_OP_MSE_GRAD, "rrr>r"},
    {CO_OP_MAE, "rr>r"},
    {CO_OP_MAE_GRAD, "rrr>r"},
    {CO_OP_BCE, "rr>r"},
    {CO_OP_BCE_GRAD, "rrr>r"},
    {CO_OP_SUM_ALL, "r>."},
    {CO_OP_COUNT_VALID, "r>."},
    {CO_OP_CORRECT, "rr>."},
    {CO_OP_RAGGED_ATTENTION, "rkk...>rr"},
    {CO_OP_RAGGED_ATTENTION_GRAD, "rrkkr...>rkk"},
    {CO_OP_POSITIONS, ".r>r"},
    {CO_OP_SINUSOIDS, "r>r"},
    {CO_OP_PICK_ROWS, ".*r>r"},
};

static const char *flow_of(int id)
{
    for (size_t i = 0; i < CO_COUNT(flows); i++)
        if ((int)flows[i].id == id)
            return flows[i].rows;
    return NULL;
}

/* Does the operator move or sum over dimension 0 in a way that its row of the table does not mean? */
static bool keeps_rows(const struct op *op)
{
    const co_shape *x = &op->in[0]->shape;

    switch (op->id) {
    case CO_OP_MATMUL:
        return !op->attr.ta && x->nd == 2 && op->in[1]->shape.nd == 2;
    case CO_OP_TRANSPOSE:
        return op->attr.perm[0] == 0;
    case CO_OP_CONCAT:
    case CO_OP_SLICE:
    case CO_OP_PAD:
        return op->attr.axis > 0;
    case CO_OP_SOFTMAX:
    case CO_OP_LAYER_NORM:
        return x->nd > 1;
    default:
        return true;
    }
}

/* The ragged dimension that an input must have: *rows or *keys, which the first such input decides. */
static bool input_flows(co_graph *g, const struct op *op, int i, char letter, int *rows, int *keys)
{
    const co_node *n = op->in[i];
    bool broadcast = letter == 's' && n->shape.nd < op->in[0]->shape.nd;
    int *dim = letter == 'k' ? keys : rows;

    if (letter == '*')
        return true;
    if (letter == '.' || broadcast)
        return n->ragged == 0 || op_fail(g, op, "%s must not be ragged", op_row_of(op->id)->role[i]);
    if (*dim < 0)
        *dim = n->ragged;
    return *dim == n->ragged || op_fail(g, op, "%s has another ragged dimension than the inputs before it",
                                        op_row_of(op->id)->role[i]);
}

bool ragged_flow(co_graph *g, struct op *op)
{
    const char *flow = flow_of(op->id), *out = flow ? strchr(flow, '>') + 1 : NULL;
    int rows = -1, keys = -1;
    bool any = false;

    for (int i = 0; i < op->n_in; i++)
        any |= op->in[i]->ragged != 0;
    if (!any)
        return true;
    if (!flow || !keeps_rows(op))
        return op_fail(g, op, "it cannot take values whose first dimension is ragged");
    for (int i = 0; i < op->n_in; i++)
        if (!input_flows(g, op, i, flow[i], &rows, &keys))
            return false;
    for (int i = 0; i < op->n_out; i++)
        op->out[i]->ragged = out[i] == 'r' ? rows : out[i] == 'k' ? keys : 0;
    return true;
}

co_node *co_input_ragged(co_graph *g, const char *name, co_dtype dtype, co_shape shape, int dim)
{
    CO_ASSERT(dim > 0 && dim < CO_RAGGED_DIMS && shape.nd > 0, "a ragged dimension has a number");
    co_node *n = co_input(g, name, dtype, shape);

    if (n)
        n->ragged = dim;
    return n;
}

/* --- the operators ----------------------------------------------------------------------------------- */

static bool offsets_fit(co_graph *g, struct op *op, int at)
{
    const co_shape *a = &op->in[at]->shape, *b = &op->in[at + 1]->shape;

    if (a->nd != 1 || a->d[0] < 2 || !co_shape_eq(a, b))
        return op_fail(g, op, "the offsets must both be [n + 1]");
    if (op->n_in > at + 2 && !shape_is(op->in[at + 2], 1, a->d[0] - 1))
        return op_fail(g, op, "ids must be [%lld]", (long long)a->d[0] - 1);
    return true;
}

static bool attention_shape(co_graph *g, struct op *op)
{
    const co_shape *q = &op->in[0]->shape, *k = &op->in[1]->shape;
    int heads = op->attr.heads;

    if (q->nd != 2 || k->nd != 2 || !co_shape_eq(k, &op->in[2]->shape) || q->d[1] != k->d[1])
        return op_fail(g, op, "q must be [Tq,C], k and v [Tk,C]");
    if (heads < 1 || q->d[1] % heads != 0)
        return op_fail(g, op, "%d heads do not divide %lld channels", heads, (long long)q->d[1]);
    if (op->attr.longest < 1)
        return op_fail(g, op, "the longest sample must have a key");
    op->out[0]->shape = *q;
    op->out[1]->shape = CO_SHAPE(q->d[0], heads);
    return offsets_fit(g, op, 3);
}

static void attention_grad(co_graph *g, const struct op *op, co_node *dy)
{
    co_node *in[CO_MAX_IN] = {dy, op->in[0], op->in[1], op->in[2], op->out[1], op->in[3], op->in[4]};
    int n = 7;

    if (op->n_in > 5)
        in[n++] = op->in[5];
    co_node *dq = emit(g, CO_OP_RAGGED_ATTENTION_GRAD, &op->attr, NULL, n, in);
    grad_add_qkv(g, op, dq);
}

/* Pairs of a query and a key of the same sample; if causal, only those that are not masked. Without the offsets'
 * addresses: at most as many keys for each query as the longest sample has. */
static double pairs(const co_call *c, const co_arg *q, const co_arg *offsets, bool causal)
{
    const int32_t *query = offsets[0].p, *key = offsets[1].p; /* [n + 1] */
    double n = 0;

    if (!query || !key)
        return (double)q->shape.d[0] * c->attr->longest;
    for (int64_t i = 0; i + 1 < offsets[0].shape.d[0]; i++) {
        double nq = query[i + 1] - query[i], nk = key[i + 1] - key[i];
        if (!causal)
            n += nq * nk;
        else if (nq <= nk)
            n += nq * (nq + 1) / 2;
        else
            n += nk * (nk + 1) / 2 + (nq - nk) * nk;
    }
    return n;
}

/* Forward: scores and values, two products for each pair. */
static double attention_flops(const co_call *c)
{
    return 4.0 * (double)c->in[0].shape.d[1] * pairs(c, &c->in[0], &c->in[3], false);
}

static double attention_useful(const co_call *c)
{
    return 4.0 * (double)c->in[0].shape.d[1] * pairs(c, &c->in[0], &c->in[3], c->attr->causal);
}

/* Backward: the scores once more, dprobs, dv, dq, dk. */
static double attention_grad_flops(const co_call *c)
{
    return 10.0 * (double)c->in[1].shape.d[1] * pairs(c, &c->in[1], &c->in[5], false);
}

static double attention_grad_useful(const co_call *c)
{
    return 10.0 * (double)c->in[1].shape.d[1] * pairs(c, &c->in[1], &c->in[5], c->attr->causal);
}

static bool positions_shape(co_graph *g, struct op *op)
{
    if (op->in[0]->shape.nd != 1 || op->in[1]->shape.nd != 1)
        return op_fail(g, op, "offsets must be [n + 1], x [T]");
    op->out[0]->shape = op->in[1]->shape;
    return true;
}

static bool pick_shape(co_graph *g, struct op *op)
{
    const co_shape *a = &op->in[0]->shape, *b = &op->in[1]->shape, *idx = &op->in[2]->shape;

    if (a->nd != 2 || b->nd != 2 || idx->nd != 1 || a->d[1] != b->d[1])
        return op_fail(g, op, "a and b must be [rows,width] of one width, idx [K]");
    op->out[0]->shape = CO_SHAPE(idx->d[0], a->d[1]);
    return true;
}

const struct op_row rows_ragged[] = {
    {CO_OP_RAGGED_ATTENTION,
     {"q", "k", "v", "q_offsets", "k_offsets", "ids"},
     "fffiil",
     "ff",
     5,
     attention_shape,
     attention_grad,
     attention_flops,
     0,
     attention_useful},
    {CO_OP_RAGGED_ATTENTION_GRAD,
     {"dy", "q", "k", "v", "lse", "q_offsets", "k_offsets", "ids"},
     "fffffiil",
     "fff",
     7,
     attention_grad_shape,
     NULL,
     attention_grad_flops,
     ROW_INNER,
     attention_grad_useful},
    {CO_OP_POSITIONS, {"offsets", "x"}, "i*", "i", 2, positions_shape, NULL, NULL, ROW_NO_GRAD},
    {CO_OP_SINUSOIDS, {"positions"}, "i", "f", 1, shape_given, NULL, NULL, ROW_NO_GRAD},
    {CO_OP_PICK_ROWS, {"a", "b", "idx"}, "ffi", "f", 3, pick_shape, NULL, NULL, ROW_NO_GRAD},
    {0}};

co_node *co_ragged_attention(co_graph *g, co_node *q, co_node *k, co_node *v, const co_spans *q_spans,
                             const co_spans *k_spans, int heads, bool causal, float p, const char *name)
{
    co_attr attr = {.heads = heads, .causal = causal, .longest = (int)k_spans->longest, .p = p};
    bool drops = g->training && p > 0;

    if (g->err)
        return NULL;
    if (!(p >= 0 && p < 1))
        return co_graph_fail(g, "ragged_attention '%s': p %g: must be in [0,1)", name, (double)p);
    if (!drops)
        attr.p = 0;
    else if (!dropout_stream(g, name, &attr.stream))
        return NULL;
    char *label = co_pool_str(&g->pool, name);
    if (!label) {
        graph_nomem(g);
        return NULL;
    }
    g->from = &(struct op){.label = label, .number = g->n_op};
    co_node *y = emit(g, CO_OP_RAGGED_ATTENTION, &attr, NULL, drops ? 6 : 5,
                      (co_node *[]){q, k, v, q_spans->offsets, k_spans->offsets, q_spans->ids});
    g->from = NULL;
    return y;
}

co_node *co_positions(co_graph *g, const co_spans *spans, co_node *x)
{
    return EMIT(g, CO_OP_POSITIONS, NULL, NULL, spans->offsets, x);
}

co_node *co_sinusoids(co_graph *g, co_node *positions, int64_t width)
{
    const co_shape *s = co_node_shape(positions);

    if (!g->err && s->nd != 1)
        return co_graph_fail(g, "sinusoids: positions must be [T]");
    return EMIT(g, CO_OP_SINUSOIDS, NULL, &CO_SHAPE(s->d[0], width), positions);
}

co_node *co_pick_rows(co_graph *g, co_node *a, co_node *b, co_node *idx)
{
    return EMIT(g, CO_OP_PICK_ROWS, NULL, NULL, a, b, idx);
}
