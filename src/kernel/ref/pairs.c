/* pairs.c -- the score of pairs of rows of two tables, and its gradient as lists of rows.
 *
 * Each stands for many calls, and has their bits: EMBEDDING of four tables, MUL, LINEAR by a row of ones, and ADD
 * give the score; MATMUL by that row of ones, MUL and EMBEDDING_ROWS give the gradient. Hence the zeros that sums
 * begin with.
 */
#include "kernel/ref/real.h"

#include <string.h>

#include "base/sort.h"
#include "tensor/rows.h"

/* Row i of a table; NULL: there is none, and zeros stand for it. */
static const real *row_of_pair(const co_arg *table, int32_t i)
{
    int64_t V = table->shape.d[0], D = table->shape.d[1];

    return i >= 0 && i < V ? (const real *)table->p + i * D : NULL;
}

static real element_of(const real *row, int64_t j)
{
    return row ? row[j] : 0;
}

static void pair_score(const co_call *c)
{
    const real *bias = c->in[4].p;                    /* [1] */
    const int32_t *ia = c->in[5].p, *ib = c->in[6].p; /* [n] */
    real *y = c->out[0].p;                            /* [n,1] */
    int64_t D = c->in[0].shape.d[1], lo, hi;

    co_share(co_shape_count(&c->in[5].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        const real *a = row_of_pair(&c->in[0], ia[i]), *b = row_of_pair(&c->in[1], ib[i]); /* [D] */
        real dot = 0;
        for (int64_t j = 0; j < D; j++) {
            real product = element_of(a, j) * element_of(b, j);
            dot += product;
        }
        real both = element_of(row_of_pair(&c->in[2], ia[i]), 0) + element_of(row_of_pair(&c->in[3], ib[i]), 0);
        y[i] = (dot + both) + bias[0];
    }
}

/* value [D] = the sum over positions of dy times the other row; *bias = the sum of dy */
static void add_pairs(const co_call *c, const uint64_t *key, int64_t n, real *value, real *bias)
{
    const real *dy = c->in[0].p;        /* [n,1] */
    const int32_t *others = c->in[3].p; /* [n] */
    int64_t D = c->out[0].shape.d[1];

    *bias = 0;
    memset(value, 0, (size_t)D * sizeof *value);
    for (int64_t k = 0; k < n; k++) {
        uint32_t at = (uint32_t)key[k];
        const real *other = row_of_pair(&c->in[1], others[at]);
        real g = 0 + dy[at];
        for (int64_t j = 0; j < D; j++) {
            real product = g * element_of(other, j);
            value[j] += product;
        }
        *bias += dy[at];
    }
}

static void pair_rows(const co_call *c)
{
    real *value = c->out[0].p, *bias = c->out[3].p;       /* [cap,D], [cap,1] */
    uint32_t *row = c->out[1].p, *bias_row = c->out[4].p; /* [cap] */
    int64_t cap = c->out[0].shape.d[0], D = c->out[0].shape.d[1], n = co_shape_count(&c->in[2].shape), lo, hi;
    uint64_t *key = (uint64_t *)c->scratch + c->ith * 2 * n; /* [2 n] */
    int64_t found = (int64_t)co_sort_positions(key, c->in[2].p, (size_t)n, c->attr->rows), rows = 0;

    co_share(cap, c->ith, c->nth, &lo, &hi); /* every thread walks all keys and adds up its own rows */
    for (int64_t at = 0, end; at < found; at = end, rows++) {
        for (end = at + 1; end < found && key[end] >> 32 == key[at] >> 32;)
            end++;
        if (rows < lo || rows >= hi)
            continue;
        row[rows] = bias_row[rows] = (uint32_t)(key[at] >> 32);
        add_pairs(c, key + at, end - at, value + rows * D, bias + rows);
    }
    for (int64_t i = rows > lo ? rows : lo; i < hi; i++) {
        row[i] = bias_row[i] = CO_NO_ROW;
        bias[i] = 0;
        memset(value + i * D, 0, (size_t)D * sizeof *value);
    }
    if (c->ith == 0)
        *(uint32_t *)c->out[2].p = *(uint32_t *)c->out[5].p = (uint32_t)rows;
}

static size_t pair_rows_scratch(const co_call *c)
{
    return (size_t)c->nth * 2 * (size_t)co_shape_count(&c->in[2].shape) * sizeof(uint64_t);
}

void REF(pairs)(co_kernel_row *row)
{
    row[CO_OP_PAIR_SCORE].fn = pair_score;
    row[CO_OP_PAIR_ROWS] = (co_kernel_row){pair_rows, pair_rows_scratch};
}
