/* norm.c -- batch and layer normalisation, SUM_ROWS and SUM_CHANNELS.
 *
 * Sums along memory (over a channel's planes, over a row) follow sums.h. Sums across rows (SUM_ROWS, dgamma
 * and dbeta of layer norm) keep a column in a lane and run in row order, in double. Statistics take two
 * passes: first the mean, then the squared distances from it. With g = dy * gamma, xh = (x - mean) * rstd and
 * m values averaged in each mean:
 *
 *     dx = rstd * (g - sum(g) / m - xh * sum(g * xh) / m),   dgamma = sum(dy * xh),   dbeta = sum(dy)
 *
 * Threads divide the channels in batch norm. In layer norm they divide the rows, and the columns for dgamma
 * and dbeta.
 */
#include "kernel/simd/simd_int.h"

#include <math.h>

#include "kernel/kernel_int.h"
#include "kernel/simd/sums.h"

/* ---- sums along a row of n ---- */

typedef struct plain_row {
    sum16 sum;
    const float *x;
} plain_row;

ALWAYS_INLINE void plain_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    plain_row *r = ctx;
    sum16_add(&r->sum, part, v_load_n(r->x + i, lanes));
}

static void add_row(sum16 *a, const float *x, int64_t n)
{
    plain_row r = {*a, x};
    each_step(n, plain_step, &r);
    *a = r.sum;
}

typedef struct far_row {
    sum16 sum;
    const float *x;
    vd mu;
} far_row;

ALWAYS_INLINE void far_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    far_row *r = ctx;
    vf v = v_load_n(r->x + i, lanes);
    vd lo = vd_low(v) - r->mu, hi = vd_high(v) - r->mu;
    if (lanes < VW) {
        lo = vd_keep(lo, lanes);
        hi = vd_keep(hi, lanes - VW / 2);
    }
    sum16_add_halves(&r->sum, part, lo * lo, hi * hi);
}

/* Squares of x - mu; mu is a double. */
static void add_far(sum16 *a, const float *x, int64_t n, double mu)
{
    far_row r = {*a, x, vd_set(mu)};
    each_step(n, far_step, &r);
    *a = r.sum;
}

typedef struct grad_row {
    sum16 sum, sum_xh;
    const float *dy, *x, *gamma; /* gamma [n], or NULL for ones */
    vf mean, rstd;
} grad_row;

ALWAYS_INLINE void grad_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    grad_row *r = ctx;
    vf g = v_load_n(r->dy + i, lanes); /* +0 past the end, so products there are +0 too */
    if (r->gamma)
        g *= v_load_n(r->gamma + i, lanes);
    sum16_add(&r->sum, part, g);
    sum16_add(&r->sum_xh, part, g * ((v_load_n(r->x + i, lanes) - r->mean) * r->rstd));
}

/* sum += g, sum_xh += g * (x - mean) * rstd, where g = dy * gamma */
ALWAYS_INLINE void add_grads(sum16 *sum, sum16 *sum_xh, const float *dy, const float *x, const float *gamma,
                             float mean, float rstd, int64_t n)
{
    grad_row r = {*sum, *sum_xh, dy, x, gamma, v_set(mean), v_set(rstd)};
    each_step(n, grad_step, &r);
    *sum = r.sum;
    *sum_xh = r.sum_xh;
}

typedef struct dx_row {
    float *dx;
    const float *dy, *x, *gamma; /* gamma [n], or NULL for ones */
    vf mean, rstd, scale, a, b;
} dx_row;

ALWAYS_INLINE void dx_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    const dx_row *r = ctx;
    vf g = v_load_n(r->dy + i, lanes);
    if (r->gamma)
        g *= v_load_n(r->gamma + i, lanes);
    vf xh = (v_load_n(r->x + i, lanes) - r->mean) * r->rstd;
    v_store_n(r->dx + i, lanes, r->scale * (g - r->a - xh * r->b));
}

/* dx = scale * (dy * gamma - a - (x - mean) * rstd * b) */
static void put_dx(float *dx, const float *dy, const float *x, const float *gamma, float mean, float rstd,
                   float scale, double a, double b, int64_t n)
{
    dx_row r = {dx, dy, x, gamma, v_set(mean), v_set(rstd), v_set(scale), v_set((float)a), v_set((float)b)};
    each_step(n, dx_step, &r);
}

typedef struct norm_row {
    float *y;
    const float *x, *gamma, *beta; /* [n], [n]; NULL: g and b */
    vf mean, rstd, g, b;
} norm_row;

ALWAYS_INLINE void norm_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    const norm_row *r = ctx;
    vf g = r->gamma ? v_load_n(r->gamma + i, lanes) : r->g, b = r->beta ? v_load_n(r->beta + i, lanes) : r->b;
    v_store_n(r->y + i, lanes, (v_load_n(r->x + i, lanes) - r->mean) * r->rstd * g + b);
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

/* y[j] = sum over r of x[r * C + j] for j in [lo, hi), in row order */
static void sum_columns(float *y, const float *x, int64_t R, int64_t C, int64_t lo, int64_t hi)
{
    int64_t j = lo;
    for (; j + 2 * VW <= hi; j += 2 * VW) {
        vd a = vd_set(0), b = a, c = a, d = a;
        for (int64_t r = 0; r < R; r++) {
            vf v = v_load(x + r * C + j), w = v_load(x + r * C + j + VW);
            a += vd_low(v), b += vd_high(v), c += vd_low(w), d += vd_high(w);
        }
        v_store(y + j, v_of_halves(a, b));
        v_store(y + j + VW, v_of_halves(c, d));
    }
    for (; j < hi; j += VW) {
        int64_t n = lanes_left(j, hi);
        vd a = vd_set(0), b = a;
        for (int64_t r = 0; r < R; r++) {
            vf v = v_load_n(x + r * C + j, n);
            a += vd_low(v), b += vd_high(v);
        }
        v_store_n(y + j, n, v_of_halves(a, b));
    }
}

static void sum_channels(const co_call *c)
{
    const float *x = c->in[0].p; /* [N,C,S] */
    float *y = c->out[0].p;      /* [C] */
    planes d = planes_of(&c->in[0].shape);
    int64_t lo, hi;
    co_share(d.C, c->ith, c->nth, &lo, &hi);
    if (d.S == 1)
        sum_columns(y, x, d.N, d.C, lo, hi); /* same sums: a row of one has one partial sum */
    else
        for (int64_t ch = lo; ch < hi; ch++)
            y[ch] = (float)channel_sum(x, d, ch);
}

/* y = (x - mean) * rstd * gamma + beta, with one gamma and beta */
static void normalise(float *y, const float *x, int64_t n, float mean, float rstd, float gamma, float beta)
{
    norm_row r = {y, x, NULL, NULL, v_set(mean), v_set(rstd), v_set(gamma), v_set(beta)};
    each_step(n, norm_step, &r);
}

/* For S = 1 channels are contiguous, so lanes hold VW channels at a time, of which n exist. The sums equal
 * those of one channel at a time, because a row of one element has one partial sum. */
typedef struct lanes {
    vd lo, hi;
} lanes;

static void batch_norm_lanes(const co_call *c, planes d, int64_t ch, int64_t n)
{
    const float *x = (const float *)c->in[0].p + ch;
    float *y = (float *)c->out[0].p + ch;
    vd count = vd_set((double)d.N), eps = vd_set(c->attr->eps), zero = vd_set(0);
    lanes s = {zero, zero}, q = {zero, zero};
    for (int64_t r = 0; r < d.N; r++) {
        vf v = v_load_n(x + r * d.C, n);
        s.lo += vd_low(v), s.hi += vd_high(v);
    }
    s.lo /= count, s.hi /= count;
    for (int64_t r = 0; r < d.N; r++) {
        vf v = v_load_n(x + r * d.C, n);
        vd lo = vd_low(v) - s.lo, hi = vd_high(v) - s.hi;
        q.lo += lo * lo, q.hi += hi * hi;
    }
    vd one = vd_set(1), free = vd_set((double)(d.N > 1 ? d.N - 1 : 1));
    vf mean = v_of_halves(s.lo, s.hi);
    vf rstd = v_of_halves(one / vd_sqrt(q.lo / count + eps), one / vd_sqrt(q.hi / count + eps));
    v_store_n((float *)c->out[1].p + ch, n, mean);
    v_store_n((float *)c->out[2].p + ch, n, rstd);
    v_store_n((float *)c->out[3].p + ch, n, v_of_halves(count * s.lo, count * s.hi));
    v_store_n((float *)c->out[4].p + ch, n, v_of_halves(count * (q.lo / free), count * (q.hi / free)));
    vf gamma = v_load_n((const float *)c->in[1].p + ch, n), beta = v_load_n((const float *)c->in[2].p + ch, n);
    for (int64_t r = 0; r < d.N; r++)
        v_store_n(y + r * d.C, n, (v_load_n(x + r * d.C, n) - mean) * rstd * gamma + beta);
}

static void batch_norm_grad_lanes(const co_call *c, planes d, int64_t ch, int64_t n)
{
    const float *dy = (const float *)c->in[0].p + ch, *x = (const float *)c->in[1].p + ch;
    float *dx = (float *)c->out[0].p + ch;
    vf gamma = v_load_n((const float *)c->in[2].p + ch, n),
       mean = v_load_n((const float *)c->in[3].p + ch, n), rstd = v_load_n((const float *)c->in[4].p + ch, n);
    vd zero = vd_set(0), count = vd_set((double)d.N);
    lanes s = {zero, zero}, q = {zero, zero};
    for (int64_t r = 0; r < d.N; r++) {
        vf g = v_load_n(dy + r * d.C, n), gx = g * ((v_load_n(x + r * d.C, n) - mean) * rstd);
        s.lo += vd_low(g), s.hi += vd_high(g);
        q.lo += vd_low(gx), q.hi += vd_high(gx);
    }
    v_store_n((float *)c->out[1].p + ch, n, v_of_halves(q.lo, q.hi));
    v_store_n((float *)c->out[2].p + ch, n, v_of_halves(s.lo, s.hi));
    vf a = v_of_halves(s.lo / count, s.hi / count), b = v_of_halves(q.lo / count, q.hi / count),
       scale = gamma * rstd;
    for (int64_t r = 0; r < d.N; r++) {
        vf xh = (v_load_n(x + r * d.C, n) - mean) * rstd;
        v_store_n(dx + r * d.C, n, scale * (v_load_n(dy + r * d.C, n) - a - xh * b));
    }
}

static void batch_norm(const co_call *c)
{
    const float *x = c->in[0].p, *gamma = c->in[1].p, *beta = c->in[2].p; /* [N,C,S], [C], [C] */
    float *y = c->out[0].p, *mean = c->out[1].p, *rstd = c->out[2].p;     /* [N,C,S], [C], [C] */
    float *wmean = c->out[3].p, *wvar = c->out[4].p;                      /* [C], [C] */
    planes d = planes_of(&c->in[0].shape);
    int64_t m = d.N * d.S, lo, hi;
    co_share(d.C, c->ith, c->nth, &lo, &hi);
    for (; d.S == 1 && lo < hi; lo += VW)
        batch_norm_lanes(c, d, lo, lanes_left(lo, hi));
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
    for (; d.S == 1 && lo < hi; lo += VW)
        batch_norm_grad_lanes(c, d, lo, lanes_left(lo, hi));
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
            put_dx(dx + at, dy + at, x + at, NULL, mean[ch], rstd[ch], gamma[ch] * rstd[ch], sum / m,
                   sum_xh / m, d.S);
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
        rstd[r] = (float)layer_norm_rstd(sum16_total(&far), C, c->attr);
        norm_row y_row = {y + r * C, row, gamma, beta, v_set(mean[r]), v_set(rstd[r]), v_zero(), v_zero()};
        each_step(C, norm_step, &y_row);
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
        put_dx(dx + r * C, dy + r * C, x + r * C, gamma, mean[r], rstd[r], rstd[r],
               sum16_total(&s) / (double)C, sum16_total(&sx) / layer_norm_divisor(rstd[r], C, c->attr), C);
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
    sum_columns(y, x, R, C, lo, hi);
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
