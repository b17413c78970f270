/* autodiff.c -- the backward pass, appended to the graph by the gradient rules of the operator table.
 *
 *     for each operator, last to first:  dy = sum of what its readers sent
 *                                        its rule emits dx and sends it to each input
 *
 * A value read several times gets several contributions. They are added in the order of use in the forward
 * graph (operator, then input position), not in the order in which they arrive, so the bits of the sum do not
 * depend on the order of the backward walk. A parameter's gradient is complete before it enters the leaf: no
 * kernel adds into a leaf.
 *
 * At the end every parameter has one value whose home is the leaf: the gradient itself (the compiler lets its
 * operator write there, without a copy), a copy if that value already has another home, or zeros if there is
 * no gradient. Statistics that no norm wrote get zeros too.
 */
#include "graph/graph_int.h"

struct part {
    struct part *next;
    int op, in; /* the use that sent it */
    co_node *d;
};

struct walk {
    struct part **parts; /* by id of the forward value, in order of use */
    int at;              /* the operator being differentiated */
};

bool grad_wants(const struct op *op, int i)
{
    return op->in[i]->grad;
}

void grad_add(co_graph *g, const struct op *op, int i, co_node *d)
{
    struct walk *w = g->walk;
    co_node *x = op->in[i];

    if (g->err || !d || !x->grad)
        return;
    CO_ASSERT(x->sparse || co_shape_eq(&d->shape, &x->shape), "a gradient has its value's shape");
    struct part *p = co_pool_alloc(&g->pool, sizeof *p);
    if (!p) {
        graph_nomem(g);
        return;
    }
    struct part **to = &w->parts[x->id];
    while (*to && ((*to)->op < w->at || ((*to)->op == w->at && (*to)->in < i)))
        to = &(*to)->next;
    *p = (struct part){*to, w->at, i, d};
    *to = p;
}

void grad_add_qkv(co_graph *g, const struct op *op, co_node *dq)
{
    for (int i = 0; dq && i < 3; i++)
        grad_add(g, op, i, dq->op->out[i]);
}

static co_node *constant(co_graph *g, co_shape shape, float value)
{
    return emit(g, CO_OP_FILL, &(co_attr){.value = value}, &shape, 0, NULL);
}

/* Returns NULL if there are no contributions. */
static co_node *sum_parts(co_graph *g, const co_node *x)
{
    struct part *p = g->walk->parts[x->id];
    co_node *sum = p ? p->d : NULL;

    for (p = p ? p->next : NULL; p; p = p->next)
        sum = EMIT(g, CO_OP_ADD, NULL, NULL, sum, p->d);
    return sum;
}

static void walk_back(co_graph *g, struct walk *w, int n_op)
{
    for (w->at = n_op - 1; w->at >= 0 && !g->err; w->at--) {
        const struct op *op = g->op[w->at];
        g->from = op;
        co_node *dy = op->out[0]->grad ? sum_parts(g, op->out[0]) : NULL;
        if (!dy)
            continue;
        if (op->id == OP_ALIAS)
            grad_add(g, op, 0, co_reshape(g, dy, op->in[0]->shape));
        else
            op_row_of(op->id)->grad(g, op, dy);
    }
}

static void send_home(co_node *value, home_kind home, int entry)
{
    if (!value)
        return;
    value->home = home;
    value->home_at = entry;
}

static void send_to_list(co_node *value, int entry, size_t part)
{
    send_home(value, HOME_ROWS, entry);
    if (value)
        value->home_part = part;
}

/* Gives the list of a row-sparse parameter its parts: those of the gradient, or a count of zero if there is
 * none. */
static void settle_rows(co_graph *g, co_node *x, co_node *d)
{
    if (!d) { /* zero has the same bits as a float and as an integer */
        send_to_list(constant(g, CO_SHAPE(1), 0), x->entry, offsetof(co_rows, count));
        return;
    }
    co_node **list = d->op->out; /* value, row, count; an operator may make several lists */
    while (*list != d)
        list++;
    send_to_list(list[0], x->entry, offsetof(co_rows, value));
    send_to_list(list[1], x->entry, offsetof(co_rows, row));
    send_to_list(list[2], x->entry, offsetof(co_rows, count));
}

/* Gives the leaf of `x` its value: the gradient d, or zeros if there is none. */
static void settle(co_graph *g, co_node *x, co_node *d)
{
    if (x->sparse) {
        settle_rows(g, x, d);
        return;
    }
    co_node *value = d ? root_of(d) : constant(g, x->shape, 0);

    if (value && (!value->op || value->home))
        value = EMIT(g, CO_OP_COPY, NULL, NULL, d);
    send_home(value, HOME_LEAF, x->entry);
}

static void settle_all(co_graph *g)
{
    for (int i = 0; i < g->n_entry && !g->err; i++) {
        co_node *x = g->entry[i].node;
        if (!x || (x->kind == NODE_STAT && x->only)) /* a counter, or written by its norm */
            continue;
        struct op from = {.number = g->n_op, .label = label_of(g, x->name)};
        if (!from.label) {
            graph_nomem(g);
            return;
        }
        g->from = &from;
        settle(g, x, x->kind == NODE_PARAM ? sum_parts(g, x) : NULL);
        g->from = NULL;
    }
}

co_err graph_differentiate(co_graph *g)
{
    struct walk w = {0};
    int n_op = g->n_op;

    if (!g->loss)
        return co_fail(CO_EINPUT, "a training graph needs a loss: co_graph_loss");
    w.parts = co_array((size_t)g->n_node, sizeof *w.parts);
    if (!w.parts)
        return CO_ENOMEM;
    g->walk = &w;
    w.at = n_op; /* the loss is used after everything */
    g->from = g->loss->op;
    co_node *ones = constant(g, g->loss->shape, 1);
    if (ones)
        ones->ragged = g->loss->ragged;
    grad_add(g, &(struct op){.in = {g->loss}}, 0, ones);
    walk_back(g, &w, n_op);
    settle_all(g);
    g->from = NULL;
    g->walk = NULL;
    co_free(w.parts);
    return co_graph_error(g);
}
