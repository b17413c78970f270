/* graph.c -- the graph itself: its first mistake and its leaves. emit.c adds operators; ends.c sets the loss
 * and outputs.
 *
 * Errors are sticky: the graph keeps the first mistake, and every later call returns NULL, so model code
 * needs no checks. Memory comes from the graph's pool and dies with it.
 */
#include "graph/graph_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES_LOG2 = 40 }; /* limit of one tensor; it keeps every sum of sizes far from overflow */

co_err co_graph_new(co_graph **out, bool training)
{
    co_graph *g = co_zalloc(sizeof *g);
    if (!g)
        return CO_ENOMEM;
    g->training = training;
    *out = g;
    return CO_OK;
}

void co_graph_free(co_graph *g)
{
    if (!g)
        return;
    co_pool_fini(&g->pool);
    co_free(g->op);
    co_free(g->node);
    co_free(g->entry);
    co_free(g);
}

bool co_graph_training(const co_graph *g)
{
    return g->training;
}

co_err co_graph_error(const co_graph *g)
{
    return g->err ? co_fail(g->err, "%s", g->msg) : CO_OK;
}

co_node *co_graph_fail(co_graph *g, const char *fmt, ...)
{
    if (g->err)
        return NULL;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(g->msg, sizeof g->msg, fmt, ap);
    va_end(ap);
    g->err = CO_EINPUT;
    return NULL;
}

void graph_nomem(co_graph *g)
{
    if (g->err)
        return;
    g->err = CO_ENOMEM;
    snprintf(g->msg, sizeof g->msg, "%s", co_errmsg());
}

const co_shape *co_node_shape(const co_node *n)
{
    static const co_shape none = {.nd = -1};
    return n ? &n->shape : &none;
}

bool graph_grow(co_graph *g, void *array, int n, int *room, size_t size)
{
    void **p = array;
    if (n < *room)
        return true;
    int more = *room ? *room * 2 : 64;
    void *bigger = co_realloc(*p, (size_t)more * size);
    if (!bigger) {
        graph_nomem(g);
        return false;
    }
    *p = bigger;
    *room = more;
    return true;
}

bool shape_sane(const co_shape *s, co_dtype t)
{
    size_t bytes;
    if (s->nd < 0 || s->nd > CO_MAX_DIMS)
        return false;
    for (int i = 0; i < s->nd; i++)
        if (s->d[i] < 1)
            return false;
    return co_shape_bytes(&bytes, s, t) && bytes <= (size_t)1 << MAX_BYTES_LOG2;
}

bool graph_add_node(co_graph *g, co_node *n)
{
    if (!graph_grow(g, &g->node, g->n_node, &g->room_node, sizeof *g->node))
        return false;
    n->id = g->n_node;
    g->node[g->n_node++] = n;
    return true;
}

/* --- leaves ------------------------------------------------------------------------------------------ */

static co_node *add_leaf(co_graph *g, node_kind kind, const char *name, co_dtype dtype, co_shape shape)
{
    char dims[128];

    if (!shape_sane(&shape, dtype))
        return co_graph_fail(g, "'%s': shape %s: every dimension must be at least 1, and the whole below 1 TiB",
                             name, co_shape_text(dims, sizeof dims, &shape));
    co_node *n = co_pool_alloc(&g->pool, sizeof *n);
    char *copy = co_pool_str(&g->pool, name);
    if (!n || !copy || !graph_add_node(g, n)) {
        graph_nomem(g);
        return NULL;
    }
    n->kind = kind;
    n->name = copy;
    n->dtype = dtype;
    n->shape = shape;
    n->grad = kind == NODE_PARAM;
    return n;
}

/* Returns the existing leaf if it was declared before with the same type and shape. */
static co_node *seen_leaf(co_graph *g, co_node *n, node_kind kind, co_dtype dtype, const co_shape *shape)
{
    char a[128], b[128];

    if (n->kind != kind || n->dtype != dtype || !co_shape_eq(&n->shape, shape))
        return co_graph_fail(g, "'%s' is declared twice and differently: %s %s, then %s %s", n->name,
                             co_dtype_name(n->dtype), co_shape_text(a, sizeof a, &n->shape),
                             co_dtype_name(dtype), co_shape_text(b, sizeof b, shape));
    return n;
}

co_node *co_input(co_graph *g, const char *name, co_dtype dtype, co_shape shape)
{
    if (g->err)
        return NULL;
    for (int i = 0; i < g->n_node; i++)
        if (g->node[i]->kind == NODE_INPUT && strcmp(g->node[i]->name, name) == 0)
            return seen_leaf(g, g->node[i], NODE_INPUT, dtype, &shape);
    return add_leaf(g, NODE_INPUT, name, dtype, shape);
}

static struct entry *find_entry(co_graph *g, const char *name)
{
    for (int i = 0; i < g->n_entry; i++)
        if (strcmp(g->entry[i].e.name, name) == 0)
            return &g->entry[i];
    return NULL;
}

/* A leaf with a place in the layout. */
static co_node *add_stored(co_graph *g, node_kind kind, const co_entry *e)
{
    if (g->err)
        return NULL;
    struct entry *seen = find_entry(g, e->name);
    if (seen && !seen->node)
        return co_graph_fail(g, "'%s' is a counter already", e->name);
    if (seen)
        return seen_leaf(g, seen->node, kind, CO_F32, &e->shape);
    if (!graph_grow(g, &g->entry, g->n_entry, &g->room_entry, sizeof *g->entry))
        return NULL;
    co_node *n = add_leaf(g, kind, e->name, CO_F32, e->shape);
    if (!n)
        return NULL;
    n->entry = g->n_entry;
    n->sparse = e->sparse;
    g->entry[g->n_entry] = (struct entry){*e, n};
    g->entry[g->n_entry++].e.name = n->name;
    return n;
}

co_node *co_param(co_graph *g, const char *name, co_shape shape, co_init init, int flags)
{
    bool sparse = flags & CO_PARAM_SPARSE;
    if (sparse && shape.nd != 2)
        return co_graph_fail(g, "'%s': a row-sparse parameter has two dimensions", name);
    return add_stored(g, NODE_PARAM,
                      &(co_entry){.name = name,
                                  .kind = CO_KIND_PARAM,
                                  .dtype = CO_F32,
                                  .shape = shape,
                                  .init = init,
                                  .sparse = sparse,
                                  .no_decay = flags & CO_PARAM_NO_DECAY});
}

void co_param_grid(co_graph *g, co_node *param, int64_t h, int64_t w)
{
    if (!param)
        return;
    const co_shape *s = &param->shape;
    if (param->kind != NODE_PARAM || h < 1 || w < 1 || s->nd != 3 || s->d[0] != 1 || s->d[1] != 1 + h * w) {
        co_graph_fail(g, "'%s' is no position embedding [1, 1 + %lld * %lld, d]", param->name, (long long)h,
                      (long long)w);
        return;
    }
    g->entry[param->entry].e.grid[0] = h;
    g->entry[param->entry].e.grid[1] = w;
}

co_node *co_stat(co_graph *g, const char *name, co_shape shape, co_init init, float momentum)
{
    return add_stored(g, NODE_STAT,
                      &(co_entry){.name = name,
                                  .kind = CO_KIND_STAT,
                                  .dtype = CO_F32,
                                  .shape = shape,
                                  .init = init,
                                  .momentum = momentum});
}

void co_counter(co_graph *g, const char *name)
{
    if (g->err)
        return;
    struct entry *seen = find_entry(g, name);
    if (seen && seen->node)
        co_graph_fail(g, "'%s' is a parameter or statistic already", name);
    if (seen || !graph_grow(g, &g->entry, g->n_entry, &g->room_entry, sizeof *g->entry))
        return;
    char *copy = co_pool_str(&g->pool, name);
    if (!copy) {
        graph_nomem(g);
        return;
    }
    g->entry[g->n_entry++] = (struct entry){.e = {.name = copy,
                                                  .kind = CO_KIND_COUNTER,
                                                  .dtype = CO_I64,
                                                  .shape = CO_SCALAR,
                                                  .init = {CO_INIT_ZERO, 0}}};
}
