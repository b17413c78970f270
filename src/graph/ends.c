/* ends.c -- what the graph computes for its caller: the loss, the statistics and the output. */
#include "graph/graph_int.h"

void co_graph_loss(co_graph *g, co_node *rows)
{
    if (g->err)
        return;
    if (!rows)
        co_graph_fail(g, "loss: rows are missing (NULL)");
    else if (g->loss)
        co_graph_fail(g, "loss: there is one already");
    else if (rows->dtype != CO_F32)
        co_graph_fail(g, "loss: rows must be F32, not %s", co_dtype_name(rows->dtype));
    else if (g->training && !rows->grad)
        co_graph_fail(g, "loss: it depends on no parameter, so there is nothing to train");
    else
        g->loss = rows;
}

void co_graph_stat(co_graph *g, int slot, co_node *f64_scalar)
{
    if (g->err)
        return;
    if (!f64_scalar) {
        co_graph_fail(g, "stat %d: the value is missing (NULL)", slot);
        return;
    }
    if (slot < 0 || slot >= MAX_STAT_SLOTS || g->slot_used[slot]) {
        co_graph_fail(g, "stat %d: slots are 0 to %d, each used once", slot, MAX_STAT_SLOTS - 1);
        return;
    }
    co_node *root = root_of(f64_scalar);
    if (root->dtype != CO_F64 || co_shape_count(&root->shape) != 1) {
        co_graph_fail(g, "stat %d: must be one F64, as sum_all, count_valid and correct give", slot);
        return;
    }
    if (!root->op || root->home) /* it already has a place: copy it into this slot */
        root = EMIT(g, CO_OP_COPY, NULL, NULL, root);
    if (!root)
        return;
    g->slot_used[slot] = true;
    root->home = HOME_STAT;
    root->home_at = slot;
}

void co_graph_output(co_graph *g, co_node *n)
{
    if (g->err)
        return;
    if (!n)
        co_graph_fail(g, "output: the value is missing (NULL)");
    else if (g->output)
        co_graph_fail(g, "output: there is one already");
    else
        g->output = n;
}
