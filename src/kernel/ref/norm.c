/* norm.c -- batch and layer normalisation.
 *
 * Statistics are sums of doubles over two passes (mean, then squared distances from it), so that a large mean
 * does not cost the variance its digits; they are rounded once. Gradients, with g = dy * gamma, xh = (x -
 * mean) * rstd and m values averaged in each mean:
 *
 *     dx = rstd * (g - sum(g) / m - xh * sum(g * xh) / m),   dgamma = sum(dy * xh),   dbeta = sum(dy)
 *
 * Threads divide the channels in batch norm. In layer norm they divide the rows, and the columns for dgamma
 * and dbeta. */
#include "kernel/ref/real.h"

/* x [N,C,S]: S is everything after the channel. */
typedef struct planes {
    int64_t N, C, S;
} planes;

static planes planes_of(const co_shape *s)
{
    return (planes){s->d[0], s->d[1], dims_product(s, 2, s->nd)};
}

static void batch_norm(const co_call *c)
{
    const real *x = c->in[0].p, *gamma = c->in[1].p, *beta = c->in[2].p; /* [N,C,S], [C], [C] */
    real *y = c->out[0].p, *mean = c->out[1].p, *rstd = c->out[2].p;     /* [N,C,S], [C], [C] */
    real *wmean = c->out[3].p, *wvar = c->out[4].p;                      /* [C], [C] */
    planes d = planes_of(&c->in[0].shape);
    int64_t m = d.N * d.S, lo, hi;

    co_share(d.C, c->ith, c->nth, &lo, &hi);
    for (int64_t ch = lo; ch < hi; ch++) {
        double sum = 0, squares = 0;
        for (int64_t n = 0; n < d.N; n++)
            for (int64_t s = 0; s < d.S; s++)
                sum += x[(n * d.C + ch) * d.S + s];
        double mu = sum / (double)m;
        for (int64_t n = 0; n < d.N; n++)
            for (int64_t s = 0; s < d.S; s++) {
                double far = x[(n * d.C + ch) * d.S + s] - mu;
                squares += far * far;
            }
        mean[ch] = (real)mu;
        rstd[ch] = (real)(1 / sqrt(squares / (double)m + c->attr->eps));
        wmean[ch] = (real)((double)d.N * mu);
        wvar[ch] = (real)((double)d.N * (squares / (double)(m > 1 ? m - 1 : 1)));
        for (int64_t n = 0; n < d.N; n++)
            for (int64_t s = 0; s < d.S; s++) {
                int64_t q = (n * d.C + ch) * d.S + s;
                y[q] = (x[q] - mean[ch]) * rstd[ch] * gamma[ch] + beta[ch];
            }
    }
}

static void batch_norm_grad(const co_call *c)
{
    const real *dy = c->in[0].p, *x = c->in[1].p, *gamma = c->in[2].p;   /* [N,C,S], [N,C,S], [C] */
    const real *mean = c->in[3].p, *rstd = c->in[4].p;                   /* [C], [C] */
    real *dx = c->out[0].p, *dgamma = c->out[1].p, *dbeta = c->out[2].p; /* [N,C,S], [C], [C] */
    planes d = planes_of(&c->in[0].shape);
    int64_t lo, hi;

    co_share(d.C, c->ith, c->nth, &lo, &hi);
    for (int64_t ch = lo; ch < hi; ch++) {
        double sum = 0, sum_xh = 0, m = (double)(d.N * d.S);
        for (int64_t n = 0; n < d.N; n++)
            for (int64_t s = 0; s < d.S; s++) {
                int64_t q = (n * d.C + ch) * d.S + s;
                sum += dy[q];
                sum_xh += dy[q] * ((x[q] - mean[ch]) * rstd[ch]);
            }
        dbeta[ch] = (real)sum;
        dgamma[ch] = (real)sum_xh;
        real a = (real)(sum / m), b = (real)(sum_xh / m), scale = gamma[ch] * rstd[ch];
        for (int64_t n = 0; n < d.N; n++)
            for (int64_t s = 0; s < d.S; s++) {
                int64_t q = (n * d.C + ch) * d.S + s;
                dx[q] = scale * (dy[q] - a - (x[q] - mean[ch]) * rstd[ch] * b);
            }
    }
}

static void batch_norm_eval(const co_call *c)
{
    const real *x = c->in[0].p, *gamma = c->in[1].p, *beta = c->in[2].p; /* [N,C,S], [C], [C] */
    const real *mean = c->in[3].p, *var = c->in[4].p;                    /* [C], [C] */
    real *y = c->out[0].p;                                               /* [N,C,S] */
    planes d = planes_of(&c->in[0].shape);
    int64_t lo, hi;

    co_share(d.N * d.C, c->ith, c->nth, &lo, &hi);
    for (int64_t p = lo; p < hi; p++) {
        int64_t ch = p % d.C;
        real rstd = (real)(1 / sqrt((double)var[ch] + c->attr->eps));
        for (int64_t q = p * d.S; q < (p + 1) * d.S; q++)
            y[q] = (x[q] - mean[ch]) * rstd * gamma[ch] + beta[ch];
    }
}

static void layer_norm(const co_call *c)
{
    const real *x = c->in[0].p, *gamma = c->in[1].p, *beta = c->in[2].p; /* [R,C], [C], [C] */
    real *y = c->out[0].p, *mean = c->out[1].p, *rstd = c->out[2].p;     /* [R,C], [R], [R] */
    int64_t C = shape_last(&c->in[0].shape), lo, hi;

    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        const real *row = x + r * C;
        double sum = 0, squares = 0;
        for (int64_t j = 0; j < C; j++)
            sum += row[j];
        double mu = sum / (double)C;
        for (int64_t j = 0; j < C; j++)
            squares += (row[j] - mu) * (row[j] - mu);
        mean[r] = (real)mu;
        rstd[r] = (real)layer_norm_rstd(squares, C, c->attr);
        for (int64_t j = 0; j < C; j++)
            y[r * C + j] = (row[j] - mean[r]) * rstd[r] * gamma[j] + beta[j];
    }
}

static void layer_norm_dx(real *dx, const real *dy, const real *x, const real *gamma, real mean, real rstd,
                          int64_t C, const co_attr *attr)
{
    double sum = 0, sum_xh = 0;

    for (int64_t j = 0; j < C; j++) {
        real g = dy[j] * gamma[j];
        sum += g;
        sum_xh += g * ((x[j] - mean) * rstd);
    }
    real a = (real)(sum / (double)C), b = (real)(sum_xh / layer_norm_divisor(rstd, C, attr));
    for (int64_t j = 0; j < C; j++)
        dx[j] = rstd * (dy[j] * gamma[j] - a - (x[j] - mean) * rstd * b);
}

static void layer_norm_grad(const co_call *c)
{
    enum { BLOCK = 64 };                                                 /* columns summed at the same time */
    const real *dy = c->in[0].p, *x = c->in[1].p, *gamma = c->in[2].p;   /* [R,C], [R,C], [C] */
    const real *mean = c->in[3].p, *rstd = c->in[4].p;                   /* [R], [R] */
    real *dx = c->out[0].p, *dgamma = c->out[1].p, *dbeta = c->out[2].p; /* [R,C], [C], [C] */
    int64_t C = shape_last(&c->in[0].shape), R = shape_rows(&c->in[0].shape), lo, hi;

    co_share(R, c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++)
        layer_norm_dx(dx + r * C, dy + r * C, x + r * C, gamma, mean[r], rstd[r], C, c->attr);

    co_share(C, c->ith, c->nth, &lo, &hi);
    for (int64_t j0 = lo; j0 < hi; j0 += BLOCK) {
        int64_t n = hi - j0 < BLOCK ? hi - j0 : BLOCK;
        double sum[BLOCK] = {0}, sum_xh[BLOCK] = {0};
        for (int64_t r = 0; r < R; r++)
            for (int64_t j = 0; j < n; j++) {
                int64_t q = r * C + j0 + j;
                sum[j] += dy[q];
                sum_xh[j] += dy[q] * ((x[q] - mean[r]) * rstd[r]);
            }
        for (int64_t j = 0; j < n; j++) {
            dbeta[j0 + j] = (real)sum[j];
            dgamma[j0 + j] = (real)sum_xh[j];
        }
    }
}

void REF(norm)(co_kernel_row *row)
{
    row[CO_OP_BATCH_NORM].fn = batch_norm;
    row[CO_OP_BATCH_NORM_GRAD].fn = batch_norm_grad;
    row[CO_OP_BATCH_NORM_EVAL].fn = batch_norm_eval;
    row[CO_OP_LAYER_NORM].fn = layer_norm;
    row[CO_OP_LAYER_NORM_GRAD].fn = layer_norm_grad;
}
