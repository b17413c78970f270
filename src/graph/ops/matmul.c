/* matmul.c -- matrix products, and the sums that give the gradients of their biases.
 *
 * With c = a b:  da = dc b^T,  db = a^T dc. Where b is one matrix shared by all leading indices of a, db is
 * one sum over all rows (MATMUL_TN_SUM), not a sum of one product per index.
 */
#include "graph/graph_int.h"

static int64_t side(const co_shape *s, int from_end)
{
    return s->d[s->nd - from_end];
}

static int64_t dim(const co_node *n, int from_end)
{
    return side(&n->shape, from_end);
}

/* Swaps the last two dimensions. */
static co_node *flip(co_graph *g, co_node *x)
{
    int perm[CO_MAX_DIMS], nd = x ? x->shape.nd : 0;
    for (int i = 0; i < nd; i++)
        perm[i] = i < nd - 2 ? i : 2 * nd - 3 - i;
    return co_transpose(g, x, perm);
}

static bool matmul_shape(co_graph *g, struct op *op)
{
    const co_node *a = op->in[0], *b = op->in[1];
    bool ta = op->attr.ta, tb = op->attr.tb;

    if (a->shape.nd < 2 || b->shape.nd < 2)
        return op_fail(g, op, "needs two dimensions at least");
    if (b->shape.nd != 2 && b->shape.nd != a->shape.nd)
        return op_fail(g, op, "b must have a's leading dimensions or none");
    for (int i = 0; b->shape.nd > 2 && i < a->shape.nd - 2; i++)
        if (a->shape.d[i] != b->shape.d[i])
            return op_fail(g, op, "leading dimensions differ");
    if (dim(a, ta ? 2 : 1) != dim(b, tb ? 1 : 2))
        return op_fail(g, op, "inner sizes differ%s%s", ta ? " (a is transposed)" : "",
                       tb ? " (b is transposed)" : "");
    co_shape *c = &op->out[0]->shape;
    *c = a->shape;
    c->d[c->nd - 2] = dim(a, ta ? 1 : 2);
    c->d[c->nd - 1] = dim(b, tb ? 2 : 1);
    return true;
}

static void matmul_grad(co_graph *g, const struct op *op, co_node *dy)
{
    co_node *a = op->in[0], *b = op->in[1];
    int ta = op->attr.ta, tb = op->attr.tb;
    bool shared = a->shape.nd > 2 && b->shape.nd == 2;

    if (grad_wants(op, 0)) {
        co_node *da;
        if (!ta || shared) {
            da = EMIT(g, CO_OP_MATMUL, (&(co_attr){.tb = !tb}), NULL, dy, b); /* [..,M,K] */
            da = ta ? flip(g, da) : da;
        } else {
            da = EMIT(g, CO_OP_MATMUL, (&(co_attr){.ta = tb, .tb = 1}), NULL, b, dy); /* [..,K,M] */
        }
        grad_add(g, op, 0, da);
    }
    if (!grad_wants(op, 1))
        return;
    if (shared) {
        co_node *rows = ta ? flip(g, a) : a; /* [..,M,K] */
        grad_add(g, op, 1,
                 tb ? EMIT(g, CO_OP_MATMUL_TN_SUM, NULL, NULL, dy, rows)   /* [N,K] */
                    : EMIT(g, CO_OP_MATMUL_TN_SUM, NULL, NULL, rows, dy)); /* [K,N] */
    } else {
        grad_add(g, op, 1,
                 tb ? EMIT(g, CO_OP_MATMUL, (&(co_attr){.ta = 1, .tb = ta}), NULL, dy, a)
                    : EMIT(g, CO_OP_MATMUL, (&(co_attr){.ta = !ta}), NULL, a, dy));
    }
}

static double matmul_flops(const co_call *c)
{
    return 2.0 * (double)co_shape_count(&c->out[0].shape) * (double)side(&c->in[0].shape, c->attr->ta ? 2 : 1);
}

static bool tn_sum_shape(co_graph *g, struct op *op)
{
    op->out[0]->shape = CO_SHAPE(dim(op->in[0], 1), dim(op->in[1], 1));
    return true;
}

static double tn_sum_flops(const co_call *c)
{
    return 2.0 * (double)co_shape_count(&c->in[0].shape) * (double)side(&c->in[1].shape, 1);
}

static bool linear_shape(co_graph *g, struct op *op)
{
    const co_node *x = op->in[0], *w = op->in[1];

    if (x->shape.nd < 1 || w->shape.nd != 2)
        return op_fail(g, op, "weight must be [out,in] and x must end in that in");
    if (dim(x, 1) != w->shape.d[1])
        return op_fail(g, op, "inner sizes differ");
    if (op->n_in > 2 && !shape_is(op->in[2], 1, w->shape.d[0]))
        return op_fail(g, op, "bias must be [%lld]", (long long)w->shape.d[0]);
    op->out[0]->shape = x->shape;
    op->out[0]->shape.d[x->shape.nd - 1] = w->shape.d[0];
    return true;
}

static void linear_grad(co_graph *g, const struct op *op, co_node *dy)
{
    co_node *x = op->in[0], *w = op->in[1];
    int64_t out = w->shape.d[0], in = w->shape.d[1];

    if (!dy)
        return;
    dy = co_reshape(g, dy, CO_SHAPE(-1, out)); /* [R,O] */
    if (grad_wants(op, 1))
        grad_add(g, op, 1, EMIT(g, CO_OP_MATMUL_TN_SUM, NULL, NULL, dy, co_reshape(g, x, CO_SHAPE(-1, in))));
    if (op->n_in > 2 && grad_wants(op, 2))
        grad_add(g, op, 2, EMIT(g, CO_OP_SUM_ROWS, NULL, &op->in[2]->shape, dy));
    if (grad_wants(op, 0))
        grad_add(g, op, 0, co_reshape(g, EMIT(g, CO_OP_MATMUL, NULL, NULL, dy, w), x->shape));
}

static double linear_flops(const co_call *c)
{
    return 2.0 * (double)co_shape_count(&c->in[0].shape) * (double)c->in[1].shape.d[0];
}

const struct op_row rows_matmul[] = {
    {CO_OP_MATMUL, {"a", "b"}, "ff", "f", 2, matmul_shape, matmul_grad, matmul_flops, 0},
    {CO_OP_MATMUL_TN_SUM, {"a", "b"}, "ff", "f", 2, tn_sum_shape, NULL, tn_sum_flops, ROW_INNER},
    {CO_OP_LINEAR, {"x", "weight", "bias"}, "fff", "f", 2, linear_shape, linear_grad, linear_flops, 0},
    {CO_OP_SUM_ROWS, {"x"}, "f", "f", 1, shape_given, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_matmul(co_graph *g, co_node *a, co_node *b, bool ta, bool tb)
{
    return EMIT(g, CO_OP_MATMUL, (&(co_attr){.ta = ta, .tb = tb}), NULL, a, b);
}

co_node *co_linear(co_graph *g, co_node *x, co_node *w, co_node *bias)
{
    return emit(g, CO_OP_LINEAR, NULL, NULL, bias ? 3 : 2, (co_node *[]){x, w, bias});
}
