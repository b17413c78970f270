/* pointwise.c -- operators on one element or one row at a time; sums and products that broadcast.
 *
 * The second operand of ADD and MUL may be a suffix of the first's dimensions: [N,T,C] + [C]. Its gradient is
 * then the sum over the rows to which it was broadcast.
 */
#include "graph/graph_int.h"

#include <math.h>

#include "base/rng.h"

static void relu_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0, EMIT(g, CO_OP_RELU_GRAD, NULL, NULL, dy, op->out[0]));
}

static void gelu_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0, EMIT(g, CO_OP_GELU_GRAD, NULL, NULL, dy, op->in[0]));
}

static bool softmax_shape(co_graph *g, struct op *op)
{
    if (op->in[0]->shape.nd < 1)
        return op_fail(g, op, "x must have at least one dimension");
    return shape_like_0(g, op);
}

static void softmax_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0, EMIT(g, CO_OP_SOFTMAX_GRAD, NULL, NULL, dy, op->out[0]));
}

static bool dropout_shape(co_graph *g, struct op *op)
{
    const co_shape *x = &op->in[0]->shape;

    if (op->n_in > 2 &&
        (x->nd < 1 || op->in[1]->shape.nd != 1 || !shape_is(op->in[2], 1, op->in[1]->shape.d[0] + 1)))
        return op_fail(g, op, "ids must be [n], offsets [n + 1]");
    if (op->n_in == 2 && (x->nd < 1 || !shape_is(op->in[1], 1, x->d[0])))
        return op_fail(g, op, "ids must have one element for each sample of x [n,...]");
    if (op->n_in == 2 && op->in[0]->ragged)
        return op_fail(g, op, "x is ragged: co_ragged_dropout knows where a sample begins");
    return shape_like_0(g, op);
}

static void dropout_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0,
             emit(g, CO_OP_DROPOUT, &op->attr, NULL, op->n_in, (co_node *[]){dy, op->in[1], op->in[2]}));
}

static bool broadcast_shape(co_graph *g, struct op *op)
{
    const co_shape *a = &op->in[0]->shape, *b = &op->in[1]->shape;

    if (b->nd > a->nd)
        return op_fail(g, op, "b has more dimensions than a: give the larger one first");
    for (int i = 1; i <= b->nd; i++)
        if (a->d[a->nd - i] != b->d[b->nd - i])
            return op_fail(g, op, "b's dimensions are not the last ones of a");
    return shape_like_0(g, op);
}

/* The gradient of an operand that was broadcast to every row of d: the sum of the rows. */
static co_node *sum_to(co_graph *g, co_node *d, const co_shape *shape)
{
    if (!d || co_shape_eq(&d->shape, shape))
        return d;
    int64_t cols = co_shape_count(shape);
    co_node *rows = co_reshape(g, d, CO_SHAPE(-1, cols));
    return co_reshape(g, EMIT(g, CO_OP_SUM_ROWS, NULL, &CO_SHAPE(cols), rows), *shape);
}

static void add_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0, dy);
    if (grad_wants(op, 1))
        grad_add(g, op, 1, sum_to(g, dy, &op->in[1]->shape));
}

static void mul_grad(co_graph *g, const struct op *op, co_node *dy)
{
    if (grad_wants(op, 0))
        grad_add(g, op, 0, co_mul(g, dy, op->in[1]));
    if (grad_wants(op, 1))
        grad_add(g, op, 1, sum_to(g, co_mul(g, dy, op->in[0]), &op->in[1]->shape));
}

static bool scale_shape(co_graph *g, struct op *op)
{
    if (!isfinite(op->attr.value))
        return op_fail(g, op, "value %g: must be finite", (double)op->attr.value);
    return shape_like_0(g, op);
}

static void scale_grad(co_graph *g, const struct op *op, co_node *dy)
{
    grad_add(g, op, 0, co_scale(g, dy, op->attr.value));
}

const struct op_row rows_pointwise[] = {
    {CO_OP_RELU, {"x"}, "f", "f", 1, shape_like_0, relu_grad, NULL, 0},
    {CO_OP_RELU_GRAD, {"dy", "y"}, "ff", "f", 2, shape_like_0, NULL, NULL, ROW_INNER},
    {CO_OP_GELU, {"x"}, "f", "f", 1, shape_like_0, gelu_grad, NULL, 0},
    {CO_OP_GELU_GRAD, {"dy", "x"}, "ff", "f", 2, shape_like_0, NULL, NULL, ROW_INNER},
    {CO_OP_SOFTMAX, {"x"}, "f", "f", 1, softmax_shape, softmax_grad, NULL, 0},
    {CO_OP_SOFTMAX_GRAD, {"dy", "y"}, "ff", "f", 2, shape_like_0, NULL, NULL, ROW_INNER},
    {CO_OP_DROPOUT, {"x", "ids", "offsets"}, "fli", "f", 2, dropout_shape, dropout_grad, NULL, 0},
    {CO_OP_ADD, {"a", "b"}, "ff", "f", 2, broadcast_shape, add_grad, NULL, 0},
    {CO_OP_MUL, {"a", "b"}, "ff", "f", 2, broadcast_shape, mul_grad, NULL, 0},
    {CO_OP_SCALE, {"x"}, "f", "f", 1, scale_shape, scale_grad, NULL, 0},
    {CO_OP_FILL, {NULL}, "", "f", 0, shape_given, NULL, NULL, ROW_NO_GRAD},
    {CO_OP_COPY, {"x"}, "*", "*", 1, shape_like_0, NULL, NULL, ROW_INNER},
    {0}};

co_node *co_relu(co_graph *g, co_node *x)
{
    return EMIT(g, CO_OP_RELU, NULL, NULL, x);
}

co_node *co_gelu(co_graph *g, co_node *x)
{
    return EMIT(g, CO_OP_GELU, NULL, NULL, x);
}

co_node *co_softmax(co_graph *g, co_node *x)
{
    return EMIT(g, CO_OP_SOFTMAX, NULL, NULL, x);
}

/* Two dropouts with the same stream would drop the same elements of a sample. */
bool dropout_stream(co_graph *g, const char *name, uint32_t *stream)
{
    *stream = co_rng_stream(name);
    for (int i = 0; i < g->n_op; i++)
        if ((g->op[i]->id == CO_OP_DROPOUT || (g->op[i]->id == CO_OP_RAGGED_ATTENTION && g->op[i]->attr.p > 0)) &&
            g->op[i]->attr.stream == *stream) {
            co_graph_fail(g, "dropout '%s': its random stream is that of dropout '%s': give each its own name",
                          name, g->op[i]->label);
            return false;
        }
    return true;
}

static co_node *drop(co_graph *g, co_node *x, co_node *ids, co_node *offsets, float p, const char *name)
{
    if (g->err)
        return NULL;
    if (!(p >= 0 && p < 1))
        return co_graph_fail(g, "dropout '%s': p %g: must be in [0,1)", name, (double)p);
    if (!g->training || p == 0)
        return x;
    uint32_t stream;
    if (!dropout_stream(g, name, &stream))
        return NULL;
    char *label = co_pool_str(&g->pool, name);
    if (!label) {
        graph_nomem(g);
        return NULL;
    }
    g->from = &(struct op){.label = label};
    co_node *y = emit(g, CO_OP_DROPOUT, &(co_attr){.p = p, .stream = stream}, NULL, offsets ? 3 : 2,
                      (co_node *[]){x, ids, offsets});
    g->from = NULL;
    return y;
}

co_node *co_dropout(co_graph *g, co_node *x, co_node *ids, float p, const char *name)
{
    return drop(g, x, ids, NULL, p, name);
}

co_node *co_ragged_dropout(co_graph *g, co_node *x, const co_spans *spans, float p, const char *name)
{
    if (!g->err && !spans->offsets)
        return co_graph_fail(g, "dropout '%s': the offsets are missing (NULL)", name);
    return drop(g, x, spans->ids, spans->offsets, p, name);
}

co_node *co_add(co_graph *g, co_node *a, co_node *b)
{
    return EMIT(g, CO_OP_ADD, NULL, NULL, a, b);
}

co_node *co_mul(co_graph *g, co_node *a, co_node *b)
{
    return EMIT(g, CO_OP_MUL, NULL, NULL, a, b);
}

co_node *co_scale(co_graph *g, co_node *x, float value)
{
    return EMIT(g, CO_OP_SCALE, (&(co_attr){.value = value}), NULL, x);
}

co_node *co_fill(co_graph *g, co_shape shape, float value)
{
    return emit(g, CO_OP_FILL, &(co_attr){.value = value}, &shape, 0, NULL);
}
