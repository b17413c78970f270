/* embedding.c -- rows of a table by index, and their gradient.
 *
 * The gradient divides the rows of the table among the threads. Each thread walks all positions and handles
 * those whose row it owns, so duplicates are added in position order for any number of threads. A row is
 * cleared at its first position, so sparse and dense gradients agree in the rows that are present. */
#include "kernel/ref/real.h"

#include <string.h>

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

static void embedding_grad(const co_call *c)
{
    const real *dy = c->in[0].p;     /* [n,D] */
    const int32_t *idx = c->in[1].p; /* [n] */
    real *dtable = c->out[0].p;      /* [V,D] */
    uint32_t *marks = c->out[1].p;   /* [V] */
    int64_t V = c->out[0].shape.d[0], D = c->out[0].shape.d[1], n = co_shape_count(&c->in[1].shape), lo, hi;

    co_share(V, c->ith, c->nth, &lo, &hi);
    memset(marks + lo, 0, (size_t)(hi - lo) * sizeof *marks);
    if (!c->attr->sparse)
        memset(dtable + lo * D, 0, (size_t)((hi - lo) * D) * sizeof(real));
    for (int64_t i = 0; i < n; i++) {
        if (idx[i] < lo || idx[i] >= hi)
            continue;
        real *row = dtable + idx[i] * D;
        if (!marks[idx[i]])
            memset(row, 0, (size_t)D * sizeof(real));
        marks[idx[i]] = 1;
        add_scaled(row, 1, dy + i * D, D);
    }
}

void REF(embedding)(co_kernel_row *row)
{
    row[CO_OP_EMBEDDING].fn = embedding;
    row[CO_OP_EMBEDDING_GRAD].fn = embedding_grad;
}
