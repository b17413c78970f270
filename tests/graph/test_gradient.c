/* test_gradient.c -- every operator's gradient against central differences, in double.
 *
 * A case builds one operator from parameters; the loss is the squared error of its result against a random
 * target, so that every element has a different weight.
 */
#include <math.h>
#include <string.h>

#include "graph/grad_cases.h"
#include "graph/graph_int.h"
#include "graph/rig.h"
#include "harness.h"
#include "kernel/wide.h"

/* --- the check --------------------------------------------------------------------------------------- */

static co_graph *graph_of(const grad_case *c)
{
    co_graph *g;
    CHECK_OK(co_graph_new(&g, true));
    co_node *y = c->build(g);
    CHECK_OK(co_graph_error(g));
    co_shape rows = CO_SHAPE(1, co_shape_count(co_node_shape(y)));
    co_node *loss = co_mse(g, co_reshape(g, y, rows), co_input(g, "weights", CO_F32, rows));
    loss = co_scale(g, loss,
                    (float)rows.d[1]); /* a sum and not a mean, so that no element's contribution is tiny */
    co_graph_loss(g, loss);
    co_graph_stat(g, 0, co_sum_all(g, loss));
    return g;
}

static double loss_at(rig *r, size_t i, double x)
{
    double kept = rig_get(r, r->b.state, i);
    rig_set(r, r->b.state, i, x);
    rig_run(r);
    rig_set(r, r->b.state, i, kept);
    return r->stat[0];
}

/* Largest error relative to 1 + |gradient|. */
static double check_entry(rig *r, const grad_case *c, const co_entry *e, const double *leaf)
{
    const double h = 1e-5;
    double worst = 0;

    for (size_t i = e->offset; i < e->offset + e->count; i++) {
        double x = rig_get(r, r->b.state, i);
        double want = (loss_at(r, i, x + h) - loss_at(r, i, x - h)) / (2 * h);
        double off = fabs(leaf[i] - want) / (1 + fabs(want));
        CHECK(off < 1e-7, "%s: d%s[%zu] = %.12g, differences say %.12g", c->name, e->name, i - e->offset,
              leaf[i], want);
        worst = fmax(worst, off);
    }
    return worst;
}

static double check_case(const grad_case *c)
{
    rig r;
    co_graph *g = graph_of(c);
    double worst = 0, size = 0;

    rig_open(&r, g, test_kernels_wide());
    co_graph_free(g);
    rig_fill(&r, 11);
    rig_poison(&r, 0xff);
    rig_run(&r);
    double *leaf = co_alloc(r.leaf_len);
    memcpy(leaf, r.b.leaf, r.leaf_len);
    const co_layout *l = co_exec_layout(r.e);
    for (int k = 0; k < l->n; k++) {
        const co_entry *e = &l->entry[k];
        if (e->kind != CO_KIND_PARAM)
            continue;
        worst = fmax(worst, check_entry(&r, c, e, leaf));
        for (size_t i = 0; i < e->count; i++)
            size = fmax(size, fabs(leaf[e->offset + i]));
    }
    CHECK((size > 0) == !c->flat, "%s: largest gradient %g: does the case show anything?", c->name, size);
    co_free(leaf);
    rig_close(&r);
    return worst;
}

TEST(gradients_of_all_operators_agree_with_finite_differences)
{
    double worst = 0;
    for (int i = 0; i < grad_case_count; i++)
        worst = fmax(worst, check_case(&grad_cases[i]));
    test_note("%d cases, largest error %.1e", grad_case_count, worst);
}

/* The case's own operator is in its graph; the call names tell which ones its backward pass uses. */
static void mark_ops(bool *seen, const grad_case *c)
{
    co_graph *g = graph_of(c);
    co_exec *e;
    bool own = false;

    for (int i = 0; i < g->n_op; i++)
        own = own || g->op[i]->id == (int)c->op;
    CHECK(own, "case %s has no %s", c->name, co_op_name(c->op));
    CHECK_OK(co_exec_new(&e, g, test_kernels_wide()));
    for (int i = 0; i < co_exec_info_of(e)->calls; i++) {
        const char *name = co_exec_call_name(e, i);
        size_t len = strcspn(name, " #");
        for (int op = 0; op < CO_OP_COUNT; op++)
            if (strlen(co_op_name((co_op)op)) == len && strncmp(co_op_name((co_op)op), name, len) == 0)
                seen[op] = true;
    }
    co_exec_free(e);
    co_graph_free(g);
}

TEST(every_operator_has_a_row_and_every_differentiable_one_a_gradient_case)
{
    bool case_for[CO_OP_COUNT] = {0}, seen[CO_OP_COUNT] = {0};
    for (int i = 0; i < grad_case_count; i++) {
        case_for[grad_cases[i].op] = true;
        mark_ops(seen, &grad_cases[i]);
    }
    for (int op = 0; op < CO_OP_COUNT; op++) {
        const char *name = co_op_name((co_op)op);
        const struct op_row *row = op_row_of(op);
        CHECK(row, "%s has no row", name);
        CHECK((row->grad == NULL) == ((row->flags & (ROW_INNER | ROW_NO_GRAD)) != 0),
              "%s: a gradient rule or a flag that says why not", name);
        CHECK(!row->grad || case_for[op], "%s has no gradient case", name);
        CHECK(seen[op] || op == CO_OP_COPY || row->flags & ROW_NO_GRAD, "%s runs in no case", name);
        for (int i = 0; row->in[i]; i++)
            CHECK(row->role[i], "%s: input %d has no role", name, i);
    }
}
