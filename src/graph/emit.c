/* emit.c -- adds operators to a graph. Model code, gradient rules and the compiler all use it; there is no
 * other way.
 *
 * The row of the operator table says how many inputs of which dtypes it takes and what comes out; its shape
 * rule checks the rest. Only a checked operator enters the graph's lists.
 */
#include "graph/graph_int.h"

#include <string.h>

co_node *root_of(co_node *n)
{
    while (n->op && n->op->id == OP_ALIAS)
        n = n->op->in[0];
    return n;
}

static co_dtype dtype_of_letter(char c)
{
    return c == 'i' ? CO_I32 : c == 'l' ? CO_I64 : c == 'u' ? CO_U32 : c == 'd' ? CO_F64 : CO_F32;
}

static bool inputs_fit(co_graph *g, struct op *op, const struct op_row *row)
{
    for (int i = 0; i < op->n_in; i++) {
        co_node *n = op->in[i];
        if (!n)
            return op_fail(g, op, "%s is missing (NULL)", row->role[i]);
        if (row->in[i] != '*' && n->dtype != dtype_of_letter(row->in[i]))
            return op_fail(g, op, "%s must be %s", row->role[i], co_dtype_name(dtype_of_letter(row->in[i])));
    }
    return true;
}

static bool is_inner(const struct op *op)
{
    const struct op_row *row = op_row_of(op->id);

    return row && row->flags & ROW_INNER;
}

/* Only operators that look rows up can produce a row-sparse gradient, and only one of them may read such a
 * parameter. */
static bool sparse_rule(co_graph *g, struct op *op)
{
    for (int i = 0; i < op->n_in; i++) {
        co_node *n = op->in[i];
        if (!n->sparse || is_inner(op)) /* a gradient may read what its operator reads */
            continue;
        if (op_rows_by(op->id, i) < 0)
            return op_fail(
                g, op,
                "'%s' is row-sparse: only an operator that looks up rows (embedding, pair_score) may read it",
                n->name);
        if (n->only)
            return op_fail(g, op,
                           "'%s' is row-sparse: only one embedding may read it; declare it dense to share it",
                           n->name);
        n->only = op;
    }
    return true;
}

static struct op *new_op(co_graph *g, int id, int n_in, co_node *const *in, int n_out)
{
    struct op *op = co_pool_alloc(&g->pool, sizeof *op);
    if (!op)
        goto nomem;
    op->id = id;
    op->n_in = n_in;
    op->n_out = n_out;
    op->number = g->from ? g->from->number : g->n_op;
    op->label = g->from ? g->from->label : NULL;
    for (int i = 0; i < n_in; i++) {
        op->in[i] = in[i];
        co_node *root = in[i] ? root_of(in[i]) : NULL;
        if (!g->from && !op->label && root && root->kind == NODE_PARAM && !(op->label = label_of(g, root->name)))
            goto nomem;
    }
    for (int i = 0; i < n_out; i++) {
        op->out[i] = co_pool_alloc(&g->pool, sizeof **op->out);
        if (!op->out[i])
            goto nomem;
        op->out[i]->op = op;
    }
    return op;
nomem:
    graph_nomem(g);
    return NULL;
}

/* Enters a checked operator into the graph's lists. */
static co_node *add_op(co_graph *g, struct op *op, bool differentiable)
{
    for (int i = 0; i < op->n_out; i++)
        if (!shape_sane(&op->out[i]->shape, op->out[i]->dtype)) {
            op_fail(g, op, "the result has a dimension below 1 or more than 1 TiB");
            return NULL;
        }
    if (!graph_grow(g, &g->op, g->n_op, &g->room_op, sizeof *g->op))
        return NULL;
    for (int i = 0; i < op->n_out; i++)
        if (!graph_add_node(g, op->out[i]))
            return NULL;
    for (int i = 0; i < op->n_in; i++)
        op->out[0]->grad |= differentiable && op->in[i]->grad;
    g->op[g->n_op++] = op;
    return op->out[0];
}

co_node *emit(co_graph *g, co_op id, const co_attr *attr, const co_shape *want, int n_in, co_node *const *in)
{
    const struct op_row *row = op_row_of(id);

    if (g->err)
        return NULL;
    CO_ASSERT(row && n_in >= row->min_in && n_in <= (int)strlen(row->in), "operator table");
    struct op *op = new_op(g, id, n_in, in, (int)strlen(row->out));
    if (!op)
        return NULL;
    if (attr)
        op->attr = *attr;
    if (want)
        op->out[0]->shape = *want;
    if (!inputs_fit(g, op, row) || !sparse_rule(g, op))
        return NULL;
    for (int i = 0; i < op->n_out; i++)
        op->out[i]->dtype = row->out[i] == '*' ? op->in[0]->dtype : dtype_of_letter(row->out[i]);
    if (!row->shape(g, op) || !ragged_flow(g, op))
        return NULL;
    return add_op(g, op, row->grad != NULL);
}

/* Fills in the one dimension of -1, if there is one. */
static bool solve_shape(co_shape *s, int64_t count)
{
    int open = -1;
    int64_t known = 1;

    if (s->nd < 0 || s->nd > CO_MAX_DIMS)
        return false;
    for (int i = 0; i < s->nd; i++) {
        if (s->d[i] == -1 && open < 0)
            open = i;
        else if (s->d[i] < 1 || __builtin_mul_overflow(known, s->d[i], &known))
            return false;
    }
    if (open >= 0) {
        s->d[open] = count / known;
        known *= s->d[open];
    }
    return known == count;
}

co_node *co_reshape(co_graph *g, co_node *x, co_shape shape)
{
    if (g->err || (x && !x->sparse && co_shape_eq(&x->shape, &shape)))
        return g->err ? NULL : x;
    struct op *op = new_op(g, OP_ALIAS, 1, &x, 1);
    if (!op)
        return NULL;
    if (!x) {
        op_fail(g, op, "x is missing (NULL)");
        return NULL;
    }
    if (!sparse_rule(g, op))
        return NULL;
    co_shape solved = shape;
    if (!solve_shape(&solved, co_shape_count(&x->shape))) {
        char dims[128];
        op_fail(g, op, "does not have the elements of %s", co_shape_text(dims, sizeof dims, &shape));
        return NULL;
    }
    if (x->ragged && (solved.nd < 1 || solved.d[0] != x->shape.d[0])) {
        op_fail(g, op, "x is ragged: its first dimension stays as it is");
        return NULL;
    }
    op->out[0]->shape = solved;
    op->out[0]->dtype = x->dtype;
    op->out[0]->ragged = x->ragged;
    return add_op(g, op, true);
}
