/* attention.c -- scaled dot-product attention over heads, one operator. The probabilities carry the mask to
 * the gradient, which therefore needs no lens. */
#include "graph/graph_int.h"

static bool attention_shape(co_graph *g, struct op *op)
{
    const co_shape *q = &op->in[0]->shape, *k = &op->in[1]->shape, *v = &op->in[2]->shape;
    int heads = op->attr.heads;

    if (q->nd != 3 || k->nd != 3)
        return op_fail(g, op, "q, k, v must be [B,T,C]");
    if (!co_shape_eq(k, v))
        return op_fail(g, op, "k and v differ");
    if (q->d[0] != k->d[0] || q->d[2] != k->d[2])
        return op_fail(g, op, "q and k differ in B or C");
    if (heads < 1 || q->d[2] % heads != 0)
        return op_fail(g, op, "%d heads do not divide %lld channels", heads, (long long)q->d[2]);
    if (op->n_in > 3 && !shape_is(op->in[3], 1, q->d[0]))
        return op_fail(g, op, "lens must be [%lld]", (long long)q->d[0]);
    op->out[0]->shape = *q;
    op->out[1]->shape = CO_SHAPE(q->d[0], heads, q->d[1], k->d[1]);
    return true;
}

static void attention_grad(co_graph *g, const struct op *op, co_node *dy)
{
    co_node *dq =
        EMIT(g, CO_OP_ATTENTION_GRAD, &op->attr, NULL, dy, op->in[0], op->in[1], op->in[2], op->out[1]);
    grad_add_qkv(g, op, dq);
}

/* Forward: scores and values, two products of [Tq,Tk,C]. */
static double attention_flops(const co_call *c)
{
    const co_shape *q = &c->in[0].shape, *k = &c->in[1].shape;
    return 4.0 * (double)co_shape_count(q) * (double)k->d[1];
}

/* Backward: dprobs, dv, dq, dk, four of them. */
static double attention_grad_flops(const co_call *c)
{
    const co_shape *q = &c->in[1].shape, *k = &c->in[2].shape;
    return 8.0 * (double)co_shape_count(q) * (double)k->d[1];
}

/* The share of the pairs of a query and a key that a causal mask leaves: query i has keys 0 to i. */
static double unmasked(const co_shape *q, const co_shape *k, const co_attr *a)
{
    double pairs = 0;

    if (!a->causal)
        return 1;
    for (int64_t i = 0; i < q->d[1]; i++)
        pairs += (double)(i + 1 < k->d[1] ? i + 1 : k->d[1]);
    return pairs / (double)(q->d[1] * k->d[1]);
}

static double attention_useful(const co_call *c)
{
    return attention_flops(c) * unmasked(&c->in[0].shape, &c->in[1].shape, c->attr);
}

static double attention_grad_useful(const co_call *c)
{
    return attention_grad_flops(c) * unmasked(&c->in[1].shape, &c->in[2].shape, c->attr);
}

const struct op_row rows_attention[] = {{CO_OP_ATTENTION,
                                         {"q", "k", "v", "lens"},
                                         "fffi",
                                         "ff",
                                         3,
                                         attention_shape,
                                         attention_grad,
                                         attention_flops,
                                         0,
                                         attention_useful},
                                        {CO_OP_ATTENTION_GRAD,
                                         {"dy", "q", "k", "v", "probs"},
                                         "fffff",
                                         "fff",
                                         5,
                                         attention_grad_shape,
                                         NULL,
                                         attention_grad_flops,
                                         ROW_INNER,
                                         attention_grad_useful},
                                        {0}};

co_node *co_attention(co_graph *g, co_node *q, co_node *k, co_node *v, co_node *lens, int heads, bool causal)
{
    return emit(g, CO_OP_ATTENTION, &(co_attr){.heads = heads, .causal = causal}, NULL, lens ? 4 : 3,
                (co_node *[]){q, k, v, lens});
}
