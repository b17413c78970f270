/* embedding.c -- rows of a table by index, and their gradient.
 *
 * The gradient divides the rows among the threads. Each thread walks all positions and handles those whose
 * row it owns, so duplicates are added in position order for any number of threads. As a list of rows it has
 * the bits of the whole table's rows. */
#include "kernel/ref/real.h"

#include <string.h>

#include "base/sort.h"
#include "tensor/rows.h"

static void embedding(const co_call *c)
{
    const real *table = c->in[0].p;  /* [V,D] */
    const int32_t *idx = c->in[1].p; /* [n] */
    real *y = c->out[0].p;           /* [n,D] */
    int64_t V = c->in[0].shape.d[0], D = c->in[0].shape.d[1], lo, hi;

    co_share(co_shape_count(&c->in[1].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        if (idx[i] >= 0 && idx[i] < V)
            memcpy(y + i * D, table + idx[i] * D, (size_t)D * sizeof(real));
        else
            memset(y + i * D, 0, (size_t)D * sizeof(real));
    }
}

/* value = 0 + dy of the first position + dy of the second ..., as in the dense gradient */
static void add_positions(real *restrict value, const real *dy, const uint64_t *key, int64_t n, int64_t D)
{
    for (int64_t j = 0; j < D; j++)
        value[j] = 0 + dy[(int64_t)(uint32_t)key[0] * D + j];
    for (int64_t i = 1; i < n; i++)
        add_scaled(value, 1, dy + (int64_t)(uint32_t)key[i] * D, D);
}

static void embedding_rows(const co_call *c)
{
    const real *dy = c->in[0].p;     /* [n,D] */
    const int32_t *idx = c->in[1].p; /* [n] */
    real *value = c->out[0].p;       /* [cap,D] */
    uint32_t *row = c->out[1].p;     /* [cap] */
    int64_t cap = c->out[0].shape.d[0], D = c->out[0].shape.d[1], n = co_shape_count(&c->in[1].shape), lo, hi;
    uint64_t *key = (uint64_t *)c->scratch + c->ith * 2 * n; /* [2 n] */
    int64_t found = (int64_t)co_sort_positions(key, idx, (size_t)n, c->attr->rows), rows = 0;

    co_share(cap, c->ith, c->nth, &lo, &hi); /* every thread walks all keys and adds up its own rows */
    for (int64_t at = 0, end; at < found; at = end, rows++) {
        for (end = at + 1; end < found && key[end] >> 32 == key[at] >> 32;)
            end++;
        if (rows < lo || rows >= hi)
            continue;
        row[rows] = (uint32_t)(key[at] >> 32);
        add_positions(value + rows * D, dy, key + at, end - at, D);
    }
    for (int64_t i = rows > lo ? rows : lo; i < hi; i++) {
        row[i] = CO_NO_ROW;
        memset(value + i * D, 0, (size_t)D * sizeof(real));
    }
    if (c->ith == 0)
        *(uint32_t *)c->out[2].p = (uint32_t)rows;
}

static size_t keys_bytes(const co_call *c)
{
    return 2 * (size_t)co_shape_count(&c->in[1].shape) * sizeof(uint64_t);
}

static size_t embedding_rows_scratch(const co_call *c)
{
    return (size_t)c->nth * keys_bytes(c);
}

/* A thread's part of the scratch: keys, and a row. */
static size_t added_bytes(const co_call *c)
{
    size_t row = (size_t)c->out[0].shape.d[1] * sizeof(real);
    return keys_bytes(c) + (row + 7) / 8 * 8;
}

/* Adds to the rows that occur. The others would get + 0, which changes nothing: a gradient is never -0, because its
 * sums begin with 0. */
static void add_rows(const co_call *c, int64_t lo, int64_t hi)
{
    int64_t V = c->out[0].shape.d[0], D = c->out[0].shape.d[1], n = co_shape_count(&c->in[1].shape);
    uint64_t *key = (uint64_t *)(void *)((char *)c->scratch + (size_t)c->ith * added_bytes(c)); /* [2 n] */
    real *value = (real *)(void *)((char *)key + keys_bytes(c));                                /* [D] */
    int64_t found = (int64_t)co_sort_positions(key, c->in[1].p, (size_t)n, V);

    for (int64_t at = 0, end; at < found; at = end) {
        int64_t row = (int64_t)(key[at] >> 32);
        for (end = at + 1; end < found && (int64_t)(key[end] >> 32) == row;)
            end++;
        if (row < lo || row >= hi)
            continue;
        add_positions(value, c->in[0].p, key + at, end - at, D);
        add_scaled((real *)c->out[0].p + row * D, 1, value, D);
    }
}

static void embedding_grad(const co_call *c)
{
    const real *dy = c->in[0].p;     /* [n,D] */
    const int32_t *idx = c->in[1].p; /* [n] */
    real *dtable = c->out[0].p;      /* [V,D] */
    int64_t V = c->out[0].shape.d[0], D = c->out[0].shape.d[1], n = co_shape_count(&c->in[1].shape), lo, hi;

    co_share(V, c->ith, c->nth, &lo, &hi);
    if (c->add) {
        add_rows(c, lo, hi);
        return;
    }
    memset(dtable + lo * D, 0, (size_t)((hi - lo) * D) * sizeof(real));
    for (int64_t i = 0; i < n; i++)
        if (idx[i] >= lo && idx[i] < hi)
            add_scaled(dtable + idx[i] * D, 1, dy + i * D, D);
}

static size_t embedding_grad_scratch(const co_call *c)
{
    return (size_t)c->nth * added_bytes(c);
}

static bool always(const co_call *c)
{
    (void)c;
    return true;
}

void REF(embedding)(co_kernel_row *row)
{
    row[CO_OP_EMBEDDING].fn = embedding;
    row[CO_OP_EMBEDDING_GRAD] = (co_kernel_row){embedding_grad, embedding_grad_scratch, always};
    row[CO_OP_EMBEDDING_ROWS] = (co_kernel_row){embedding_rows, embedding_rows_scratch};
}
