/* reduce.c -- sums and counts: chains of double in index order. Threads divide the columns and channels; one
 * thread computes an operator whose result is a single number. */
#include "kernel/ref/real.h"

static void sum_rows(const co_call *c)
{
    enum { BLOCK = 64 };        /* columns summed at the same time */
    const real *x = c->in[0].p; /* [R,C] */
    real *y = c->out[0].p;      /* [C] */
    int64_t C = co_shape_count(&c->out[0].shape), R = co_shape_count(&c->in[0].shape) / C, lo, hi;

    co_share(C, c->ith, c->nth, &lo, &hi);
    for (int64_t j0 = lo; j0 < hi; j0 += BLOCK) {
        int64_t n = hi - j0 < BLOCK ? hi - j0 : BLOCK;
        double sum[BLOCK] = {0};
        for (int64_t r = 0; r < R; r++)
            for (int64_t j = 0; j < n; j++)
                sum[j] += x[r * C + j0 + j];
        for (int64_t j = 0; j < n; j++)
            y[j0 + j] = (real)sum[j];
    }
}

static void sum_channels(const co_call *c)
{
    const real *x = c->in[0].p; /* [N,C,S] */
    real *y = c->out[0].p;      /* [C] */
    const co_shape *s = &c->in[0].shape;
    int64_t N = s->d[0], C = s->d[1], S = dims_product(s, 2, s->nd), lo, hi;

    co_share(C, c->ith, c->nth, &lo, &hi);
    for (int64_t ch = lo; ch < hi; ch++) {
        double sum = 0;
        for (int64_t n = 0; n < N; n++)
            for (int64_t q = 0; q < S; q++)
                sum += x[(n * C + ch) * S + q];
        y[ch] = (real)sum;
    }
}

static void sum_all(const co_call *c)
{
    const real *x = c->in[0].p;
    double sum = 0;

    if (c->ith != 0)
        return;
    for (int64_t i = 0, n = co_shape_count(&c->in[0].shape); i < n; i++)
        sum += x[i];
    *(double *)c->out[0].p = sum;
}

static void count_valid(const co_call *c)
{
    const int32_t *target = c->in[0].p;
    int64_t count = 0;

    if (c->ith != 0)
        return;
    for (int64_t i = 0, n = co_shape_count(&c->in[0].shape); i < n; i++)
        count += target[i] != c->attr->ignore;
    *(double *)c->out[0].p = (double)count;
}

/* How many elements rank before x[t]: larger ones, equal ones with a lower index, and nans. If x[t] is nan,
 * all n rank before it, so a nan never counts as right. */
static int64_t place_of(const real *x, int64_t n, int64_t t)
{
    int64_t before = 0;

    for (int64_t j = 0; j < n; j++)
        before += !(x[j] < x[t] || (x[j] == x[t] && j >= t));
    return before;
}

static void correct(const co_call *c)
{
    const real *logits = c->in[0].p;    /* [R,C] */
    const int32_t *target = c->in[1].p; /* [R] */
    int64_t C = shape_last(&c->in[0].shape), R = shape_rows(&c->in[0].shape), count = 0;

    if (c->ith != 0)
        return;
    for (int64_t r = 0; r < R; r++) {
        int64_t t = target[r];
        if (t != c->attr->ignore && t >= 0 && t < C)
            count += place_of(logits + r * C, C, t) < c->attr->k;
    }
    *(double *)c->out[0].p = (double)count;
}

void REF(reduce)(co_kernel_row *row)
{
    row[CO_OP_SUM_ROWS].fn = sum_rows;
    row[CO_OP_SUM_CHANNELS].fn = sum_channels;
    row[CO_OP_SUM_ALL].fn = sum_all;
    row[CO_OP_COUNT_VALID].fn = count_valid;
    row[CO_OP_CORRECT].fn = correct;
}
