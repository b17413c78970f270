/* norm.c -- batch and layer normalisation, SUM_ROWS and SUM_CHANNELS.
 *
 * Sums along memory (a channel's planes, a row) are those of sums.h. Sums across rows (SUM_ROWS, dgamma and dbeta
 * of layer norm) keep a column in a lane and run in row order, in double. Statistics take two passes, mean and
 * then squared distances from it. With g = dy * gamma, xh = (x - mean) * rstd and m values behind each mean:
 *
 *     dx = rstd * (g - sum(g) / m - xh * sum(g * xh) / m),   dgamma = sum(dy * xh),   dbeta = sum(dy)
 *
 * Threads share channels; layer norm rows, and columns for dgamma and dbeta.
 */
#include "kernel/simd/simd_int.h"

#include <math.h>

#include "kernel/kernel_int.h"
#include "kernel/simd/sums.h"

/* ---- sums along a row of n ---- */

static void add_row(sum16 *a, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + SUM_STEP <= n; i += SUM_STEP) {
        sum16_add(a, 0, v_load(x + i));
        sum16_add(a, 1, v_load(x + i + VW));
    }
    for (int half = 0; i < n; half++, i += VW)
        sum16_add(a, half, v_load_n(x + i, lanes_left(i, n)));
}

/* Squares of x - mu; mu is a double. */
static void add_far(sum16 *a, const float *x, int64_t n, double mu)
{
    vd m = vd_set(mu);
    for (int64_t i = 0, half = 0; i < n; i += VW, half ^= 1) {
        int64_t left = lanes_left(i, n);
        vf v = left == VW ? v_load(x + i) : v_load_n(x + i, left);
        vd lo = vd_low(v) - m, hi = vd_high(v) - m;
        if (left < VW) {
            lo = vd_keep(lo, left);
            hi = vd_keep(hi, left - VW / 2);
        }
        a->s[2 * half] += lo * lo;
        a->s[2 * half + 1] += hi * hi;
    }
}

/* sum += g, sum_xh += g * (x - mean) * rstd, where g = dy, or dy * gamma with gamma [n] */
static void add_grads(sum16 *sum, sum16 *sum_xh, const float *dy, const float *x, const float *gamma, float mean,
                      float rstd, int64_t n)
{
    vf m = v_set(mean), r = v_set(rstd);
    for (int64_t i = 0, half = 0; i < n; i += VW, half ^= 1) {
        int64_t left = lanes_left(i, n);
        vf g = v_load_n(dy + i, left); /* +0 past the end: so is every product with it */
        if (gamma)
            g *= v_load_n(gamma + i, left);
        vf xh = (v_load_n(x + i, left) - m) * r;
        sum16_add(sum, (int)half, g);
        sum16_add(sum_xh, (int)half, g * xh);
    }
}

/* dx = scale * (g - a - (x - mean) * rstd * b) */
static void put_dx(float *dx, const float *dy, const float *x, const float *gamma, float mean, float rstd, float scale,
                   float a, float b, int64_t n)
{
    vf m = v_set(mean), r = v_set(rstd), s = v_set(scale), va = v_set(a), vb = v_set(b);
    for (int64_t i = 0; i < n; i += VW) {
        int64_t left = lanes_left(i, n);
        vf g = v_load_n(dy + i, left);
        if (gamma)
            g *= v_load_n(gamma + i, left);
        v_store_n(dx + i, left, s * (g - va - (v_load_n(x + i, left) - m) * r * vb));
    }
}

/* ---- channels ---- */

/* x [N,C,S]: S is everything after the channel. */
typedef struct planes {
    int64_t N, C, S;
} planes;

static planes planes_of(const co_shape *s)
{
    return (planes){s->d[0], s->d[1], dims_product(s, 2, s->nd)};
}

static double channel_sum(const float *x, planes d, int64_t ch)
{
    sum16 a;
    sum16_init(&a);
    for (int64_t n = 0; n < d.N; n++)
        add_row(&a, x + (n * d.C + ch) * d.S, d.S);
    return sum16_total(&a);
}

static void sum_channels(const co_call *c)
{
    const float *x = c->in[0].p; /* [N,C,S] */
    float *y = c->out[0].p;      /* [C] */
    planes d = planes_of(&c->in[0].shape);
    int64_t lo, hi;
    co_share(d.C, c->ith, c->nth, &lo, &hi);
    for (int64_t ch = lo; ch < hi; ch++)
        y[ch] = (float)channel_sum(x, d, ch);
}

/* y = (x - mean) * rstd * gamma + beta, with one gamma and beta */
static void normalise(float *y, const float *x, int64_t n, float mean, float rstd, float gamma, float beta)
{
    vf m = v_set(mean), r = v_set(rstd), g = v_set(gamma), b = v_set(beta);
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        v_store(y + i, (v_load(x + i) - m) * r * g + b);
    if (i < n)
        v_store_n(y + i, n - i, (v_load_n(x + i, n - i) - m) * r * g + b);
}

static void batch_norm(const co_call *c)
{
    const float *x = c->in[0].p, *gamma = c->in[1].p, *beta = c->in[2].p; /* [N,C,S], [C], [C] */
    float *y = c->out[0].p, *mean = c->out[1].p, *rstd = c->out[2].p;     /* [N,C,S], [C], [C] */
    float *wmean = c->out[3].p, *wvar = c->out[4].p;                      /* [C], [C] */
    planes d = planes_of(&c->in[0].shape);
    int64_t m = d.N * d.S, lo, hi;
    co_share(d.C, c->ith, c->nth, &lo, &hi);
    for (int64_t ch = lo; ch < hi; ch++) {
        double mu = channel_sum(x, d, ch) / (double)m;
        sum16 far;
        sum16_init(&far);
        for (int64_t n = 0; n < d.N; n++)
            add_far(&far, x + (n * d.C + ch) * d.S, d.S, mu);
        double squares = sum16_total(&far);
        mean[ch] = (float)mu;
        rstd[ch] = (float)(1 / sqrt(squares / (double)m + c->attr->eps));
        wmean[ch] = (float)((double)d.N * mu);
        wvar[ch] = (float)((double)d.N * (squares / (double)(m > 1 ? m - 1 : 1)));
        for (int64_t n = 0; n < d.N; n++) {
            int64_t at = (n * d.C + ch) * d.S;
            normalise(y + at, x + at, d.S, mean[ch], rstd[ch], gamma[ch], beta[ch]);
        }
    }
}

static void batch_norm_grad(const co_call *c)
{
    const float *dy = c->in[0].p, *x = c->in[1].p, *gamma = c->in[2].p;   /* [N,C,S], [N,C,S], [C] */
    const float *mean = c->in[3].p, *rstd = c->in[4].p;                   /* [C], [C] */
    float *dx = c->out[0].p, *dgamma = c->out[1].p, *dbeta = c->out[2].p; /* [N,C,S], [C], [C] */
    planes d = planes_of(&c->in[0].shape);
    int64_t lo, hi;
    co_share(d.C, c->ith, c->nth, &lo, &hi);
    for (int64_t ch = lo; ch < hi; ch++) {
        sum16 s, sx;
        sum16_init(&s), sum16_init(&sx);
        for (int64_t n = 0; n < d.N; n++) {
            int64_t at = (n * d.C + ch) * d.S;
            add_grads(&s, &sx, dy + at, x + at, NULL, mean[ch], rstd[ch], d.S);
        }
        double sum = sum16_total(&s), sum_xh = sum16_total(&sx), m = (double)(d.N * d.S);
        dbeta[ch] = (float)sum;
        dgamma[ch] = (float)sum_xh;
        for (int64_t n = 0; n < d.N; n++) {
            int64_t at = (n * d.C + ch) * d.S;
            put_dx(dx + at, dy + at, x + at, NULL, mean[ch], rstd[ch], gamma[ch] * rstd[ch], (float)(sum / m),
                   (float)(sum_xh / m), d.S);
        }
    }
}

static void batch_norm_eval(const co_call *c)
{
    const float *x = c->in[0].p, *gamma = c->in[1].p, *beta = c->in[2].p; /* [N,C,S], [C], [C] */
    const float *mean = c->in[3].p, *var = c->in[4].p;                    /* [C], [C] */
    float *y = c->out[0].p;                                               /* [N,C,S] */
    planes d = planes_of(&c->in[0].shape);
    int64_t lo, hi;
    co_share(d.C, c->ith, c->nth, &lo, &hi);
    for (int64_t ch = lo; ch < hi; ch++) {
        float rstd = (float)(1 / sqrt((double)var[ch] + c->attr->eps));
        for (int64_t n = 0; n < d.N; n++) {
            int64_t at = (n * d.C + ch) * d.S;
            normalise(y + at, x + at, d.S, mean[ch], rstd, gamma[ch], beta[ch]);
        }
    }
}

/* ---- rows ---- */

static void layer_norm(const co_call *c)
{
    const float *x = c->in[0].p, *gamma = c->in[1].p, *beta = c->in[2].p; /* [R,C], [C], [C] */
    float *y = c->out[0].p, *mean = c->out[1].p, *rstd = c->out[2].p;     /* [R,C], [R], [R] */
    int64_t C = shape_last(&c->in[0].shape), lo, hi;
    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        const float *row = x + r * C;
        sum16 a, far;
        sum16_init(&a), sum16_init(&far);
        add_row(&a, row, C);
        double mu = sum16_total(&a) / (double)C;
        add_far(&far, row, C, mu);
        mean[r] = (float)mu;
        rstd[r] = (float)(1 / sqrt(sum16_total(&far) / (double)C + c->attr->eps));
        vf m = v_set(mean[r]), s = v_set(rstd[r]);
        for (int64_t i = 0; i < C; i += VW) {
            int64_t n = lanes_left(i, C);
            vf xh = (v_load_n(row + i, n) - m) * s;
            v_store_n(y + r * C + i, n, xh * v_load_n(gamma + i, n) + v_load_n(beta + i, n));
        }
    }
}

/* dgamma and dbeta of columns [j, j + n), n <= VW */
static void layer_norm_columns(const co_call *c, int64_t j, int64_t n, int64_t C, int64_t R)
{
    const float *dy = c->in[0].p, *x = c->in[1].p, *mean = c->in[3].p, *rstd = c->in[4].p;
    vd lo = vd_set(0), hi = vd_set(0), xlo = vd_set(0), xhi = vd_set(0);
    for (int64_t r = 0; r < R; r++) {
        vf g = v_load_n(dy + r * C + j, n);
        vf gx = g * ((v_load_n(x + r * C + j, n) - v_set(mean[r])) * v_set(rstd[r]));
        lo += vd_low(g), hi += vd_high(g);
        xlo += vd_low(gx), xhi += vd_high(gx);
    }
    v_store_n((float *)c->out[1].p + j, n, v_of_halves(xlo, xhi));
    v_store_n((float *)c->out[2].p + j, n, v_of_halves(lo, hi));
}

static void layer_norm_grad(const co_call *c)
{
    const float *dy = c->in[0].p, *x = c->in[1].p, *gamma = c->in[2].p; /* [R,C], [R,C], [C] */
    const float *mean = c->in[3].p, *rstd = c->in[4].p;                 /* [R], [R] */
    float *dx = c->out[0].p;                                            /* [R,C] */
    int64_t C = shape_last(&c->in[0].shape), R = shape_rows(&c->in[0].shape), lo, hi;
    co_share(R, c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        sum16 s, sx;
        sum16_init(&s), sum16_init(&sx);
        add_grads(&s, &sx, dy + r * C, x + r * C, gamma, mean[r], rstd[r], C);
        put_dx(dx + r * C, dy + r * C, x + r * C, gamma, mean[r], rstd[r], rstd[r], (float)(sum16_total(&s) / (double)C),
               (float)(sum16_total(&sx) / (double)C), C);
    }
    co_share(C, c->ith, c->nth, &lo, &hi);
    for (int64_t j = lo; j < hi; j += VW)
        layer_norm_columns(c, j, lanes_left(j, hi), C, R);
}

static void sum_rows(const co_call *c)
{
    const float *x = c->in[0].p; /* [R,C] */
    float *y = c->out[0].p;      /* [C] */
    int64_t C = co_shape_count(&c->out[0].shape), R = co_shape_count(&c->in[0].shape) / C, lo, hi;
    co_share(C, c->ith, c->nth, &lo, &hi);
    for (int64_t j = lo; j < hi; j += VW) {
        int64_t n = lanes_left(j, hi);
        vd a = vd_set(0), b = vd_set(0);
        for (int64_t r = 0; r < R; r++) {
            vf v = v_load_n(x + r * C + j, n);
            a += vd_low(v), b += vd_high(v);
        }
        v_store_n(y + j, n, v_of_halves(a, b));
    }
}

void rows_norm(co_kernels *k)
{
    k->row[CO_OP_SUM_ROWS] = (co_kernel_row){sum_rows, NULL};
    k->row[CO_OP_SUM_CHANNELS] = (co_kernel_row){sum_channels, NULL};
    k->row[CO_OP_BATCH_NORM] = (co_kernel_row){batch_norm, NULL};
    k->row[CO_OP_BATCH_NORM_GRAD] = (co_kernel_row){batch_norm_grad, NULL};
    k->row[CO_OP_BATCH_NORM_EVAL] = (co_kernel_row){batch_norm_eval, NULL};
    k->row[CO_OP_LAYER_NORM] = (co_kernel_row){layer_norm, NULL};
    k->row[CO_OP_LAYER_NORM_GRAD] = (co_kernel_row){layer_norm_grad, NULL};
}
