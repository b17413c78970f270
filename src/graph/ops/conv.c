/* conv.c -- 2-d convolution. The gradients of x and weight are separate operators; the gradient of the bias
 * is a sum. */
#include "graph/graph_int.h"

static bool conv_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape, *w = &op->in[1]->shape;
    int stride = op->attr.stride, pad = op->attr.pad;

    if (x->nd != 4 || w->nd != 4)
        return op_fail(g, op, "x must be [N,C,H,W], weight [O,C,KH,KW]");
    if (x->d[1] != w->d[1])
        return op_fail(g, op, "x has %lld channels, weight is for %lld", (long long)x->d[1],
                       (long long)w->d[1]);
    if (stride < 1 || pad < 0)
        return op_fail(g, op, "stride %d, pad %d: stride must be at least 1, pad at least 0", stride, pad);
    int64_t h = x->d[2] + 2 * (int64_t)pad - w->d[2], v = x->d[3] + 2 * (int64_t)pad - w->d[3];
    if (h < 0 || v < 0)
        return op_fail(g, op, "the kernel is larger than the padded image (pad %d)", pad);
    if (op->n_in > 2 && !shape_is(op->in[2], 1, w->d[0]))
        return op_fail(g, op, "bias must be [%lld]", (long long)w->d[0]);
    op->out[0]->shape = CO_SHAPE(x->d[0], w->d[0], h / stride + 1, v / stride + 1);
    return true;
}

/* The weights' gradient comes first: hosts send it while the rest is computed, and x's memory is free for dx. */
static void conv_grad(co_graph *g, const struct op *op, co_node *dy)
{
    co_node *x = op->in[0], *w = op->in[1];

    if (grad_wants(op, 1))
        grad_add(g, op, 1, EMIT(g, CO_OP_CONV2D_DW, &op->attr, &w->shape, dy, x));
    if (op->n_in > 2 && grad_wants(op, 2))
        grad_add(g, op, 2, EMIT(g, CO_OP_SUM_CHANNELS, NULL, &op->in[2]->shape, dy));
    if (grad_wants(op, 0))
        grad_add(g, op, 0, EMIT(g, CO_OP_CONV2D_DX, &op->attr, &x->shape, dy, w));
}

/* All three are one product of (elements of y) x (weights of one output channel). */
static double products(const co_shape *y, const co_shape *w)
{
    return 2.0 * (double)co_shape_count(y) * (double)(w->d[1] * w->d[2] * w->d[3]);
}

static double conv_flops(const co_call *c)
{
    return products(&c->out[0].shape, &c->in[1].shape);
}

static double dx_flops(const co_call *c)
{
    return products(&c->in[0].shape, &c->in[1].shape);
}

static double dw_flops(const co_call *c)
{
    return products(&c->in[0].shape, &c->out[0].shape);
}

/* Along one axis: pairs of an output position and a tap that meet a pixel of x, not its padding. */
static double pairs_inside(int64_t out, int64_t taps, int64_t size, const co_attr *a)
{
    int64_t n = 0;

    for (int64_t i = 0; i < out; i++) {
        int64_t first = i * a->stride - a->pad, end = first + taps; /* pixels [first, end) */
        int64_t met = (end < size ? end : size) - (first > 0 ? first : 0);
        n += met > 0 ? met : 0;
    }
    return (double)n;
}

/* The three passes multiply the same pairs of a pixel and a weight. */
static double inside(const co_shape *x, const co_shape *w, const co_shape *y, const co_attr *a)
{
    return 2.0 * (double)(y->d[0] * y->d[1] * w->d[1]) * pairs_inside(y->d[2], w->d[2], x->d[2], a) *
           pairs_inside(y->d[3], w->d[3], x->d[3], a);
}

static double conv_useful(const co_call *c)
{
    return inside(&c->in[0].shape, &c->in[1].shape, &c->out[0].shape, c->attr);
}

static double dx_useful(const co_call *c)
{
    return inside(&c->out[0].shape, &c->in[1].shape, &c->in[0].shape, c->attr);
}

static double dw_useful(const co_call *c)
{
    return inside(&c->in[1].shape, &c->out[0].shape, &c->in[0].shape, c->attr);
}

const struct op_row rows_conv[] = {
    {CO_OP_CONV2D, {"x", "weight", "bias"}, "fff", "f", 2, conv_shape, conv_grad, conv_flops, 0, conv_useful},
    {CO_OP_CONV2D_DX, {"dy", "weight"}, "ff", "f", 2, shape_given, NULL, dx_flops, ROW_INNER, dx_useful},
    {CO_OP_CONV2D_DW, {"dy", "x"}, "ff", "f", 2, shape_given, NULL, dw_flops, ROW_INNER, dw_useful},
    {CO_OP_SUM_CHANNELS, {"x"}, "f", "f", 1, shape_given, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_conv2d(co_graph *g, co_node *x, co_node *w, co_node *bias, int stride, int pad)
{
    return emit(g, CO_OP_CONV2D, &(co_attr){.stride = stride, .pad = pad}, NULL, bias ? 3 : 2,
                (co_node *[]){x, w, bias});
}
