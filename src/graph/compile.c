/* compile.c -- from a graph to an executor: which operators run, where tensors lie, which kernels are called.
 *
 *   1. differentiate, if it is a training graph
 *   2. an operator is live if something that leaves the graph (a home, the output) needs it; the live ones
 *      are the calls, in the order they were built
 *   3. every value gets a place: at home (leaf, stat), in the state or input, or a buffer of the workspace
 *      with the first and last call that touches it. If the kernels have a memory space of their own,
 *      everything is a buffer, and what the host gives or gets is a list of moves before the first and after
 *      the last call
 *      A value at home in the leaf also has a twin in the workspace: a run that adds to the leaf writes the
 *      twin, reads the twin, and adds it to the leaf once
 *   4. plan.c gives the buffers offsets, and the calls are bound to them
 *
 * Compiling leaves the graph unchanged: the operators that differentiation added are removed again, so the
 * graph can also be compiled for other kernels.
 */
#include "graph/graph_int.h"

/* Until the plan is made, the offset of a place in BASE_WORK is the number of a buffer. */
struct value { /* by node id; set for roots only */
    bool needed, placed;
    struct place at;
    int twin; /* number of the buffer that stands for a place in a leaf, or -1 */
};

struct compile {
    co_graph *g;
    const co_kernels *k;
    co_exec *e;
    struct value *v;
    struct op **live; /* [calls] */
    int *scratch;     /* [calls] number of the scratch's buffer, or -1 */
    int threads;      /* of the team */
    int64_t grain;    /* work that is worth a thread */
};

/* Work is counted in elements of the arguments; a product's floating-point operations are worth less. A grain
 * takes a thread a few microseconds, several times as long as meeting the others does. */
enum { GRAIN = 8192, FLOPS_PER_ELEMENT = 16 };

static size_t bytes_of(const struct compile *c, const co_node *n)
{
    size_t size = n->dtype == CO_F32 ? (size_t)c->k->real_size : co_dtype_size(n->dtype);
    return (size_t)co_shape_count(&n->shape) * size;
}

static struct value *value_of(const struct compile *c, co_node *n)
{
    return &c->v[root_of(n)->id];
}

/* --- 2: live operators ------------------------------------------------------------------------------- */

static bool is_live(const struct compile *c, const struct op *op)
{
    for (int i = 0; i < op->n_out; i++)
        if (op->out[i]->home || c->v[op->out[i]->id].needed)
            return op->id != OP_ALIAS;
    return false;
}

/* Fills c->live, and counts forward calls: those of operators below n_forward. */
static void find_calls(struct compile *c, int n_forward)
{
    co_graph *g = c->g;
    co_exec_info *info = &c->e->info;
    int n = 0;

    if (g->output)
        value_of(c, g->output)->needed = true;
    for (int i = g->n_op - 1; i >= 0; i--) {
        struct op *op = g->op[i];
        if (!is_live(c, op))
            continue;
        for (int k = 0; k < op->n_in; k++)
            value_of(c, op->in[k])->needed = true;
        c->live[n++] = op;
        info->forward_calls += i < n_forward;
    }
    for (int i = 0; i < n / 2; i++) {
        struct op *t = c->live[i];
        c->live[i] = c->live[n - 1 - i];
        c->live[n - 1 - i] = t;
    }
    info->calls = n;
}

/* --- 3: places --------------------------------------------------------------------------------------- */

static int add_buffer(struct compile *c, size_t bytes, int first, int last, const char *name)
{
    c->e->buffer[c->e->n_buffer] = (struct buffer){0, bytes, first, last, name};
    return c->e->n_buffer++;
}

/* Finds where the host keeps this root value; false if it exists in the workspace only. */
static bool host_place(const struct compile *c, const co_node *n, struct place *at)
{
    size_t real = (size_t)c->k->real_size;
    const co_entry *entry = c->e->layout.entry;

    if (n->kind == NODE_PARAM || n->kind == NODE_STAT)
        *at = (struct place){BASE_STATE, entry[n->entry].offset * real};
    else if (n->kind == NODE_INPUT)
        *at = (struct place){BASE_INPUT, c->e->input[n->entry].offset};
    else if (n->home == HOME_LEAF)
        *at = (struct place){BASE_LEAF, entry[n->home_at].offset * real};
    else if (n->home == HOME_ROWS)
        *at = (struct place){BASE_ROWS, (size_t)entry[n->home_at].list * sizeof(co_rows) + n->home_part};
    else if (n->home == HOME_STAT)
        *at = (struct place){BASE_STAT, (size_t)n->home_at * sizeof(double)};
    else
        return false;
    return true;
}

/* With a memory space, values from the host are copied in before the first call, and values with a home are
 * copied out after the last. */
static void add_moves(struct compile *c, const co_node *n, struct place host, struct place work)
{
    co_exec *e = c->e;
    struct buffer *b = &e->buffer[work.offset];

    if (!n->home) {
        e->put[e->n_put++] = (struct move){host, work, b->bytes};
        b->first = 0;
    }
    if (n->home) {
        e->get[e->n_get++] = (struct move){work, host, b->bytes};
        b->last = e->info.calls;
    }
}

/* Gives a place to a root value when it first occurs, at call `call`. */
static void place_value(struct compile *c, co_node *root, int call, const char *name)
{
    struct value *v = &c->v[root->id];
    struct place host;
    bool outside = host_place(c, root, &host);

    v->placed = true;
    v->twin = -1;
    if (root->home == HOME_ROWS && root->home_part == offsetof(co_rows, value))
        c->e->rows[c->e->layout.entry[root->home_at].list] = (size_t)root->shape.d[0];
    if (outside && !c->k->space) {
        v->at = host;
        if (host.base == BASE_LEAF)
            v->twin = add_buffer(c, bytes_of(c, root), call, call, name);
        return;
    }
    int b = add_buffer(c, bytes_of(c, root), call, call, root->kind == NODE_VALUE ? name : root->name);
    v->at = (struct place){BASE_WORK, (size_t)b};
    if (outside)
        add_moves(c, root, host, v->at);
}

static void touch(struct compile *c, co_node *n, int call, const char *name)
{
    struct value *v = value_of(c, n);
    if (!v->placed)
        place_value(c, root_of(n), call, name);
    int b = v->at.base == BASE_WORK ? (int)v->at.offset : v->twin;
    if (b >= 0 && c->e->buffer[b].last < call)
        c->e->buffer[b].last = call;
}

/* A call as the operator's formulas see it: shapes and attributes, no addresses; ragged values are as long as their
 * capacity. */
struct bare_call {
    co_arg in[CO_MAX_IN], out[CO_MAX_OUT];
    co_call c;
};

static const co_call *bare(struct bare_call *b, const struct op *op, int threads)
{
    *b = (struct bare_call){
        .c = {.attr = &op->attr, .in = b->in, .out = b->out, .n_in = op->n_in, .n_out = op->n_out, .nth = threads}};
    for (int i = 0; i < op->n_in; i++)
        b->in[i] = (co_arg){NULL, op->in[i]->dtype, op->in[i]->shape};
    for (int i = 0; i < op->n_out; i++)
        b->out[i] = (co_arg){NULL, op->out[i]->dtype, op->out[i]->shape};
    return &b->c;
}

static double flops_of(const struct op *op)
{
    const struct op_row *row = op_row_of(op->id);
    struct bare_call b;

    return row && row->flops ? row->flops(bare(&b, op, 1)) : 0;
}

/* How many threads share a call. A single number is a reduction, which is never divided. */
static int threads_of(const struct compile *c, const struct op *op)
{
    int64_t work = (int64_t)(flops_of(op) / FLOPS_PER_ELEMENT), most = 0;

    if (c->k->space)
        return 1; /* another memory space is entered by one thread */
    for (int i = 0; i < op->n_in; i++)
        if (op_rows_by(op->id, i) < 0) /* else few rows are read */
            work += co_shape_count(&op->in[i]->shape);
    for (int i = 0; i < op->n_out; i++) {
        int64_t n = co_shape_count(&op->out[i]->shape);
        work += n;
        most = n > most ? n : most;
    }
    int64_t worth = most > 1 ? work / c->grain : 1;
    return worth < 1 ? 1 : worth < c->threads ? (int)worth : c->threads;
}

static size_t scratch_bytes(const struct compile *c, const struct op *op, int threads)
{
    co_scratch_fn fn = c->k->row[op->id].scratch;
    struct bare_call b;

    return fn ? fn(bare(&b, op, threads)) : 0;
}

static co_err place_all(struct compile *c)
{
    co_exec *e = c->e;

    for (int i = 0; i < e->info.calls; i++) {
        struct op *op = c->live[i];
        char name[160];
        op_text(name, sizeof name, op);
        char *kept = co_pool_str(&e->pool, name);
        if (!kept)
            return CO_ENOMEM;
        e->call[i].name = kept;
        if (!c->k->row[op->id].fn)
            return co_fail(CO_EINPUT, "%s: kernel set %s has no kernel for it", name, c->k->level);
        for (int k = 0; k < op->n_in; k++)
            touch(c, op->in[k], i, kept);
        for (int k = 0; k < op->n_out; k++)
            touch(c, op->out[k], i, kept);
        e->call[i].threads = threads_of(c, op);
        e->info.split_calls += e->call[i].threads > 1;
        size_t scratch = scratch_bytes(c, op, e->call[i].threads);
        c->scratch[i] = scratch ? add_buffer(c, scratch, i, i, kept) : -1;
        e->info.flops += flops_of(op);
    }
    if (c->g->output)
        touch(c, c->g->output, e->info.calls, "output");
    return CO_OK;
}

/* --- 4: binding -------------------------------------------------------------------------------------- */

static struct place planned(const struct compile *c, struct place p)
{
    if (p.base == BASE_WORK)
        p.offset = c->e->buffer[p.offset].offset;
    return p;
}

static struct arg *bind_args(struct compile *c, co_node **n, int count)
{
    struct arg *a = co_pool_alloc(&c->e->pool, (size_t)count * sizeof *a + 1);
    for (int i = 0; a && i < count; i++) {
        const struct value *v = value_of(c, n[i]);
        struct place twin = {BASE_WORK, v->twin < 0 ? 0 : c->e->buffer[v->twin].offset};
        a[i] = (struct arg){planned(c, v->at), twin, n[i]->ragged, {NULL, n[i]->dtype, n[i]->shape}};
    }
    return a;
}

static bool is_listed(const co_exec *e, const struct lookup *of)
{
    for (int i = 0; i < e->n_lookup; i++)
        if (e->lookup[i].table == of->table && e->lookup[i].idx == of->idx)
            return true;
    return false;
}

/* Whatever the size of the table, so that a step has the same instructions for all sizes. */
static void add_lookups(struct compile *c, const struct call *call)
{
    co_exec *e = c->e;

    for (int i = 0; i < call->n_in; i++) {
        int by = op_rows_by(call->op, i);
        if (by < 0 || call->in[i].at.base != BASE_STATE || call->in[by].at.base != BASE_INPUT ||
            call->in[by].ragged)
            continue;
        const co_shape *table = &call->in[i].plain.shape;
        struct lookup of = {call->in[i].at.offset, call->in[by].at.offset,
                            co_shape_count(&call->in[by].plain.shape), table->d[0],
                            (size_t)(co_shape_count(table) / table->d[0]) * sizeof(float)};
        if (!is_listed(e, &of))
            e->lookup[e->n_lookup++] = of;
    }
}

/* May the kernel of call i add its gradient to the leaf by itself? */
static bool may_add(const struct compile *c, int i)
{
    const struct op *op = c->live[i];
    const struct value *v = value_of(c, op->out[0]);

    return op->n_out == 1 && v->twin >= 0 && c->e->buffer[v->twin].last == i;
}

/* The last call that uses a gradient which call i writes to the leaf; -1: it writes none. */
static int settled_after(const struct compile *c, int i)
{
    const struct op *op = c->live[i];
    int last = -1;

    for (int k = 0; k < op->n_out; k++) {
        const struct value *v = value_of(c, op->out[k]);
        if (v->twin >= 0 && c->e->buffer[v->twin].last > last)
            last = c->e->buffer[v->twin].last;
    }
    return last;
}

static co_err bind_calls(struct compile *c)
{
    co_exec *e = c->e;

    for (int i = 0; i < e->info.calls; i++) {
        struct op *op = c->live[i];
        struct call *call = &e->call[i];
        call->op = (co_op)op->id;
        call->row = c->k->row[op->id];
        call->attr = op->attr;
        call->n_in = op->n_in;
        call->n_out = op->n_out;
        call->in = bind_args(c, op->in, op->n_in);
        call->out = bind_args(c, op->out, op->n_out);
        if (!call->in || !call->out)
            return CO_ENOMEM;
        add_lookups(c, call);
        call->may_add = may_add(c, i);
        call->settled = settled_after(c, i);
        call->scratch = c->scratch[i] < 0 ? 0 : e->buffer[c->scratch[i]].offset;
    }
    return CO_OK;
}

static void bind_moves(struct compile *c)
{
    co_exec *e = c->e;
    co_node *output = c->g->output;

    if (output) {
        e->info.output_bytes = bytes_of(c, output);
        e->output_shape = output->shape;
        e->get[e->n_get++] =
            (struct move){value_of(c, output)->at,
                          {BASE_OUTPUT, 0},
                          e->info.output_bytes,
                          output->ragged,
                          e->info.output_bytes / (size_t)(output->ragged ? output->shape.d[0] : 1)};
    }
    for (int i = 0; i < e->n_put; i++)
        e->put[i].to = planned(c, e->put[i].to);
    for (int i = 0; i < e->n_get; i++)
        e->get[i].from = planned(c, e->get[i].from);
}

double co_graph_flops(const co_graph *g)
{
    double sum = 0;

    for (int i = 0; i < g->n_op; i++)
        sum += flops_of(g->op[i]);
    return sum;
}

size_t co_graph_params(const co_graph *g)
{
    size_t sum = 0;

    for (int i = 0; i < g->n_entry; i++)
        if (g->entry[i].e.kind == CO_KIND_PARAM)
            sum += (size_t)co_shape_count(&g->entry[i].e.shape);
    return sum;
}

/* --- the whole --------------------------------------------------------------------------------------- */

static co_err lay_out(struct compile *c)
{
    for (int i = 0; i < c->g->n_entry; i++)
        CO_TRY(co_layout_add(&c->e->layout, &c->g->entry[i].e));
    co_layout_close(&c->e->layout);
    c->e->rows = co_pool_alloc(&c->e->pool, (size_t)c->e->layout.lists * sizeof *c->e->rows + 1);
    return c->e->rows ? CO_OK : CO_ENOMEM;
}

static co_err lay_out_inputs(struct compile *c)
{
    co_exec *e = c->e;

    for (int i = 0; i < c->g->n_node; i++) {
        co_node *n = c->g->node[i];
        if (n->kind != NODE_INPUT)
            continue;
        char *name = co_pool_str(&e->pool, n->name);
        if (!name)
            return CO_ENOMEM;
        n->entry = e->n_input;
        e->input[e->n_input++] = (struct input){name, e->info.input_bytes, n->dtype, n->shape};
        e->info.input_bytes += (bytes_of(c, n) + ALIGN - 1) / ALIGN * ALIGN;
    }
    return CO_OK;
}

static co_err make_room(struct compile *c)
{
    size_t nodes = (size_t)c->g->n_node, ops = (size_t)c->g->n_op;
    size_t moves = c->k->space ? nodes + 1 : 1; /* without a memory space only the output is copied */
    co_pool *pool = &c->e->pool;

    c->v = co_array(nodes, sizeof *c->v);
    c->live = co_array(ops, sizeof(struct op *));
    c->scratch = co_array(ops, sizeof *c->scratch);
    c->e->call = co_pool_alloc(pool, ops * sizeof *c->e->call + 1);
    c->e->lookup = co_pool_alloc(pool, nodes * sizeof *c->e->lookup + 1);
    c->e->buffer = co_pool_alloc(pool, (nodes + ops) * sizeof *c->e->buffer + 1);
    c->e->input = co_pool_alloc(pool, nodes * sizeof *c->e->input + 1);
    c->e->put = co_pool_alloc(pool, moves * sizeof *c->e->put);
    c->e->get = co_pool_alloc(pool, moves * sizeof *c->e->get);
    bool ok = c->v && c->live && c->scratch && c->e->call && c->e->lookup && c->e->buffer && c->e->input &&
              c->e->put && c->e->get;
    return ok ? CO_OK : CO_ENOMEM;
}

static co_err compile(struct compile *c, int n_forward)
{
    co_exec *e = c->e;

    CO_TRY(make_room(c));
    CO_TRY(lay_out(c));
    CO_TRY(lay_out_inputs(c));
    find_calls(c, n_forward);
    CO_TRY(place_all(c));
    CO_TRY(plan_buffers(e->buffer, e->n_buffer, &e->info.work_bytes, &e->info.naive_bytes));
    bind_moves(c);
    return bind_calls(c);
}

co_err co_exec_new(co_exec **out, co_graph *g, const co_kernels *kernels)
{
    return co_exec_new_team(out, g, kernels, 1, 0);
}

co_err co_exec_new_team(co_exec **out, co_graph *g, const co_kernels *kernels, int threads, int64_t grain)
{
    int n_op = g->n_op, n_node = g->n_node;
    struct compile c = {.g = g, .k = kernels, .threads = threads, .grain = grain > 0 ? grain : GRAIN};
    co_err err;

    CO_TRY(co_graph_error(g));
    c.e = co_zalloc(sizeof *c.e);
    if (!c.e)
        return CO_ENOMEM;
    co_layout_init(&c.e->layout);
    c.e->space = kernels->space;
    c.e->real_size = kernels->real_size;
    err = g->training ? graph_differentiate(g) : CO_OK;
    if (!err)
        err = compile(&c, n_op);
    g->n_op = n_op;
    g->n_node = n_node;
    g->err = CO_OK; /* running out of memory here is not a mistake of the graph */
    co_free(c.v);
    co_free(c.live);
    co_free(c.scratch);
    if (err)
        co_exec_free(c.e);
    else
        *out = c.e;
    return err;
}
