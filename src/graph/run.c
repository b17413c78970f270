/* run.c -- runs an executor, and answers questions about it.
 *
 * An executor is read-only. Each call's addresses are computed on the stack from the caller's bases, so
 * threads can share one executor, each with its own bases. Running allocates nothing and cannot fail.
 *
 * The threads of a team run the same call, each with its own (ith, nth), and meet before the next call
 * begins. The compiler decided how many threads a call is worth; the caller computes the small ones alone.
 */
#include "graph/graph_int.h"

#include <pthread.h>
#include <string.h>

void co_exec_free(co_exec *e)
{
    if (!e)
        return;
    co_layout_fini(&e->layout);
    co_pool_fini(&e->pool);
    co_free(e);
}

const co_exec_info *co_exec_info_of(const co_exec *e)
{
    return &e->info;
}

const co_layout *co_exec_layout(const co_exec *e)
{
    return &e->layout;
}

size_t co_exec_rows(const co_exec *e, int i)
{
    return e->rows[i];
}

co_shape co_exec_output_shape(const co_exec *e)
{
    return e->output_shape;
}

const char *co_exec_call_name(const co_exec *e, int i)
{
    return i >= 0 && i < e->info.calls ? e->call[i].name : "?";
}

co_err co_exec_input(const co_exec *e, const char *name, size_t *offset, co_dtype *dtype, co_shape *shape)
{
    for (int i = 0; i < e->n_input; i++) {
        const struct input *in = &e->input[i];
        if (strcmp(in->name, name) != 0)
            continue;
        *offset = in->offset;
        *dtype = in->dtype;
        *shape = in->shape;
        return CO_OK;
    }
    return co_fail(CO_EINPUT, "the graph has no input '%s'", name);
}

static void *address(void *const base[BASE_COUNT], struct place at)
{
    char *place = (char *)base[at.base] + at.offset;

    return at.base == BASE_ROWS ? *(void **)(void *)place : place;
}

/* As long as this run's rows. */
static co_shape shape_of(const struct arg *arg, const co_bases *how)
{
    co_shape shape = arg->plain.shape;

    if (arg->ragged) {
        int64_t rows = how->ragged[arg->ragged];
        CO_ASSERT(rows > 0 && rows <= shape.d[0], "the rows of a ragged dimension fit its capacity");
        shape.d[0] = rows;
    }
    return shape;
}

static void resolve(co_arg *to, const struct arg *from, int n, void *const base[BASE_COUNT],
                    const co_bases *how, bool twins)
{
    for (int i = 0; i < n; i++) {
        bool twin = twins && from[i].at.base == BASE_LEAF;
        to[i] = from[i].plain;
        to[i].p = address(base, twin ? from[i].twin : from[i].at);
        if (from[i].ragged)
            to[i].shape = shape_of(&from[i], how);
    }
}

/* dst += src, element by element: a finished gradient into its finished sibling. */
static void add_to(void *dst, const void *src, size_t n, int real_size)
{
    if (real_size == sizeof(double))
        for (size_t i = 0; i < n; i++)
            ((double *)dst)[i] += ((const double *)src)[i];
    else
        for (size_t i = 0; i < n; i++)
            ((float *)dst)[i] += ((const float *)src)[i];
}

struct addition {
    const co_exec *e;
    const struct call *call;
    void *const *base;
};

/* Adds thread ith's share of the gradients that a call has made. */
static void add_share(void *ctx, int ith, int nth)
{
    const struct addition *all = ctx;

    for (int i = 0; i < all->call->n_out; i++) {
        const struct arg *out = &all->call->out[i];
        size_t size = (size_t)all->e->real_size;
        int64_t lo, hi;
        if (out->at.base != BASE_LEAF)
            continue;
        co_share(co_shape_count(&out->plain.shape), ith, nth, &lo, &hi);
        char *dst = address(all->base, out->at), *src = address(all->base, out->twin);
        add_to(dst + (size_t)lo * size, src + (size_t)lo * size, (size_t)(hi - lo), all->e->real_size);
    }
}

static int threads_of(const struct call *call, const co_team *team)
{
    int size = co_team_size(team);

    return call->threads < size ? call->threads : size;
}

/* True: its gradients are where they belong. False: in a run that adds to the leaf, they are in their twins. */
static bool run_call(const struct call *call, void *const base[BASE_COUNT], const co_run *run,
                     const co_bases *how, const co_watcher *w, co_arg out[CO_MAX_OUT])
{
    co_arg in[CO_MAX_IN];
    co_call c = {.attr = &call->attr,
                 .in = in,
                 .out = out,
                 .n_in = call->n_in,
                 .n_out = call->n_out,
                 .scratch = address(base, (struct place){BASE_WORK, call->scratch}),
                 .run = run};

    resolve(in, call->in, call->n_in, base, how, how->add);
    resolve(out, call->out, call->n_out, base, how, how->add);
    if (how->add && call->may_add && call->row.adds && !w &&
        call->row.adds(&c)) { /* a watcher wants to see the gradient itself */
        c.add = true;
        resolve(out, call->out, call->n_out, base, how, false);
    }
    co_kernel_run(&call->row, &c, how->team, threads_of(call, how->team));
    return c.add || !how->add;
}

/* A gradient that lies in the provider's space is added to the leaf piece by piece. Each get may cost much
 * (far changes the protection of its whole memory), so pieces are large and shared by all threads of the
 * process. */
static void fetch_and_add(const co_exec *e, const struct move *m, void *const base[BASE_COUNT],
                          size_t work_bytes)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    static double piece[1 << 19]; /* 4 MiB, aligned for both sizes of an element; untouched without a space */
    char *dst = address(base, m->to), *src = address(base, m->from);

    pthread_mutex_lock(&one_at_a_time);
    for (size_t at = 0; at < m->len; at += sizeof piece) {
        size_t len = m->len - at < sizeof piece ? m->len - at : sizeof piece;
        e->space->get(base[BASE_WORK], work_bytes, piece, src + at, len);
        add_to(dst + at, piece, len / (size_t)e->real_size, e->real_size);
    }
    pthread_mutex_unlock(&one_at_a_time);
}

static void fetch(const co_exec *e, const struct move *m, void *const base[BASE_COUNT], const co_bases *how)
{
    size_t len = m->ragged ? (size_t)how->ragged[m->ragged] * m->row_size : m->len;

    if (!base[m->to.base]) /* the caller does not want the output */
        return;
    if (how->add && m->to.base == BASE_LEAF) {
        fetch_and_add(e, m, base, how->work_bytes);
        return;
    }
    void *dst = address(base, m->to), *src = address(base, m->from);
    if (e->space)
        e->space->get(base[BASE_WORK], how->work_bytes, dst, src, len);
    else
        memcpy(dst, src, len);
}

/* --- beside a sibling ------------------------------------------------------------------------------------- */
static bool is_at_least(uint32_t now, uint32_t least)
{
    return now >= least;
}

/* Waits until the sibling has finished so many calls. */
static void follow(const co_bases *how, uint32_t calls)
{
    if (how->pace.before)
        co_bell_wait(how->pace.before, how->pace.spin, is_at_least, calls);
}

static void tell_done(const co_bases *how, uint32_t calls)
{
    if (how->pace.done)
        co_bell_set(how->pace.done, calls);
}

static void run_calls(const co_exec *e, const co_bases *bases, void *const base[BASE_COUNT],
                      const co_run *run, int from, int to, _Atomic uint32_t *beat, const co_watcher *w)
{
    const co_space_ops *space = e->space;

    for (int i = from; i < to; i++) {
        if (beat)
            atomic_store_explicit(beat, (uint32_t)i + 1, memory_order_relaxed);
        if (space)
            space->enter(bases->work, bases->work_bytes);
        co_arg out[CO_MAX_OUT];
        if (e->call[i].settled >= 0)
            follow(bases, (uint32_t)e->call[i].settled + 1);
        bool added = run_call(&e->call[i], base, run, bases, w, out);
        if (!added && !space && e->call[i].settled >= 0)
            co_team_run(bases->team, threads_of(&e->call[i], bases->team), add_share,
                        &(struct addition){e, &e->call[i], base});
        if (w)
            w->after(w->ctx, i, out, e->call[i].n_out);
        if (space)
            space->leave(bases->work, bases->work_bytes);
        tell_done(bases, (uint32_t)i + 1);
    }
}

#define BASES_OF(b)                                                                                          \
    {                                                                                                        \
        (b)->state, (b)->leaf, (b)->input, (b)->work, (b)->stat, (b)->output, (void *)(b)->rows              \
    }

/* Asks for the rows that a lookup reads, every cache line of them, in three arrays of one layout. */
static void fetch_rows(const struct lookup *of, const int32_t *row, const char *a, const char *b, const char *c)
{
    size_t bytes = of->row_bytes;
    uint64_t rows = (uint64_t)of->rows;

    for (int64_t i = 0; i < of->n; i++) {
        uint64_t number = (uint32_t)row[i]; /* a negative one is past the last row too */
        size_t first = of->table + number * bytes, end = first + bytes, at = first & ~(size_t)63;
        if (number >= rows)
            continue;
        do {
            __builtin_prefetch(a + at);
            __builtin_prefetch(b + at);
            __builtin_prefetch(c + at);
        } while ((at += 64) < end);
    }
    __asm__ volatile(""); /* else compilers see that nothing comes of it, and leave it out */
}

/* The rows of tables that a run reads may lie anywhere in memory: they are all asked for before the first is waited
 * for, in the state and in two arrays beside it. */
static void fetch_tables(const co_exec *e, const co_bases *bases)
{
    const char *state = bases->state, *first = bases->n_beside > 0 ? (void *)bases->beside[0] : state;
    const char *second = bases->n_beside > 1 ? (void *)bases->beside[1] : first;

    for (int i = 0; i < e->n_lookup; i++)
        fetch_rows(&e->lookup[i], (const int32_t *)(void *)((char *)bases->input + e->lookup[i].idx), state,
                   first, second);
}

static void run_all(const co_exec *e, const co_bases *bases, const co_run *run, _Atomic uint32_t *beat,
                    const co_watcher *w)
{
    void *const base[BASE_COUNT] = BASES_OF(bases);

    for (int i = 0; i < e->n_put; i++)
        e->space->put(bases->work, bases->work_bytes, address(base, e->put[i].to),
                      address(base, e->put[i].from), e->put[i].len);
    fetch_tables(e, bases);
    run_calls(e, bases, base, run, 0, e->info.calls, beat, w);
    if (e->n_get)
        follow(bases, (uint32_t)e->info.calls + 1);
    for (int i = 0; i < e->n_get; i++)
        fetch(e, &e->get[i], base, bases);
    tell_done(bases, (uint32_t)e->info.calls + 1);
}

void co_exec_run_part(const co_exec *e, const co_bases *bases, const co_run *run, int from, int to,
                      _Atomic uint32_t *beat)
{
    void *const base[BASE_COUNT] = BASES_OF(bases);

    CO_ASSERT(!e->space, "calls of another memory space run all together");
    run_calls(e, bases, base, run, from, to, beat, NULL);
}

void co_exec_leaf_parts(const co_exec *e, int from, int to, co_leaf_fn *each, void *ctx)
{
    for (int i = from; i < to; i++)
        for (int k = 0; k < e->call[i].n_out; k++) {
            const struct arg *out = &e->call[i].out[k];
            if (out->at.base == BASE_LEAF)
                each(ctx, i, out->at.offset / (size_t)e->real_size, (size_t)co_shape_count(&out->plain.shape));
        }
}

bool co_exec_reads_leaf(const co_exec *e)
{
    for (int i = 0; i < e->info.calls; i++)
        if (e->call[i].settled > i)
            return true;
    return false;
}

void co_exec_run(const co_exec *e, const co_bases *bases, const co_run *run, _Atomic uint32_t *beat)
{
    run_all(e, bases, run, beat, NULL);
}

void co_exec_run_watched(const co_exec *e, const co_bases *bases, const co_run *run, const co_watcher *w)
{
    run_all(e, bases, run, NULL, w);
}

static size_t bytes_of(const co_exec *e, const co_arg *arg)
{
    size_t size = arg->dtype == CO_F32 ? (size_t)e->real_size : co_dtype_size(arg->dtype);

    return (size_t)co_shape_count(&arg->shape) * size;
}

/* Of a table only the rows that are read count. */
static size_t bytes_read(const co_exec *e, co_op op, const co_arg *in, int k)
{
    int by = op_rows_by(op, k);

    if (by < 0)
        return bytes_of(e, &in[k]);
    return bytes_of(e, &in[k]) / (size_t)in[k].shape.d[0] * (size_t)co_shape_count(&in[by].shape);
}

/* Shapes, and the addresses of what lies in the input, which may be offsets; all other values come and go. */
static void resolve_facts(co_arg *to, const struct arg *from, int n, const co_bases *how)
{
    for (int i = 0; i < n; i++)
        to[i] = (co_arg){from[i].at.base == BASE_INPUT ? (char *)how->input + from[i].at.offset : NULL,
                         from[i].plain.dtype, shape_of(&from[i], how)};
}

void co_exec_call_facts(const co_exec *e, int i, const co_kernels *kernels, const co_bases *bases,
                        co_call_facts *out)
{
    const struct call *call = &e->call[i];
    const struct op_row *row = op_row_of(call->op);
    co_arg in[CO_MAX_IN], to[CO_MAX_OUT];
    const co_call args = {
        .attr = &call->attr, .in = in, .out = to, .n_in = call->n_in, .n_out = call->n_out, .nth = 1};

    resolve_facts(in, call->in, call->n_in, bases);
    resolve_facts(to, call->out, call->n_out, bases);
    *out = (co_call_facts){.op = call->op,
                           .name = call->name,
                           .backward = i >= e->info.forward_calls,
                           .n_in = call->n_in,
                           .n_out = call->n_out,
                           .counted = row->flops != NULL,
                           .algorithm = co_kernels_algorithm(kernels, call->op, &args)};
    if (row->flops) {
        out->flops = row->flops(&args);
        out->useful = row->useful ? row->useful(&args) : out->flops;
    }
    for (int k = 0; k < call->n_in; k++) {
        out->in[k] = in[k].shape;
        out->bytes += bytes_read(e, call->op, in, k);
    }
    for (int k = 0; k < call->n_out; k++) {
        out->out[k] = to[k].shape;
        out->bytes += bytes_of(e, &to[k]);
    }
}

void co_exec_print(const co_exec *e, co_str *out)
{
    co_str_addf(out, "workspace %zu bytes (%zu without reuse), %d calls, %d of them forward\n",
                e->info.work_bytes, e->info.naive_bytes, e->info.calls, e->info.forward_calls);
    co_str_addf(out, "%12s %12s %6s %6s  %s\n", "offset", "bytes", "first", "last", "name");
    for (int i = 0; i < e->n_buffer; i++) {
        const struct buffer *b = &e->buffer[i];
        co_str_addf(out, "%12zu %12zu %6d %6d  %s\n", b->offset, b->bytes, b->first, b->last, b->name);
    }
}
