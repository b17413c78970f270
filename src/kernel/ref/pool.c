/* pool.c -- pooling over windows of an image; threads divide the planes (n, c).
 *
 * A window of output (oh, ow) covers kh rows from oh * stride - pad and kw columns from ow * stride - pad;
 * only the part inside the image is visited. Max pooling passes a nan on, so that it shows in the loss. A
 * window without any pixel gives -inf and index -1, and no gradient goes through it. */
#include "kernel/ref/real.h"

typedef struct window {
    int64_t h0, h1, w0, w1;
} window;

static window window_at(const co_attr *a, int64_t oh, int64_t ow, int64_t H, int64_t W)
{
    int64_t h = oh * a->stride - a->pad, w = ow * a->stride - a->pad;

    return (window){h > 0 ? h : 0, h + a->kh < H ? h + a->kh : H, w > 0 ? w : 0, w + a->kw < W ? w + a->kw : W};
}

static void max_pool(const co_call *c)
{
    const real *x = c->in[0].p; /* [N,C,H,W] */
    real *y = c->out[0].p;      /* [N,C,OH,OW] */
    int32_t *idx = c->out[1].p; /* [N,C,OH,OW] */
    const co_shape *xs = &c->in[0].shape, *ys = &c->out[0].shape;
    int64_t H = xs->d[2], W = xs->d[3], OH = ys->d[2], OW = ys->d[3], lo, hi;

    co_share(xs->d[0] * xs->d[1], c->ith, c->nth, &lo, &hi);
    for (int64_t p = lo; p < hi; p++)
        for (int64_t q = 0; q < OH * OW; q++) {
            const real *plane = x + p * H * W;
            window v = window_at(c->attr, q / OW, q % OW, H, W);
            real best = (real)-INFINITY;
            int32_t at = -1;
            for (int64_t h = v.h0; h < v.h1; h++)
                for (int64_t w = v.w0; w < v.w1; w++) {
                    real e = plane[h * W + w];
                    if (e > best || e != e || at < 0) {
                        best = e;
                        at = (int32_t)(h * W + w);
                    }
                }
            y[p * OH * OW + q] = best;
            idx[p * OH * OW + q] = at;
        }
}

static void max_pool_grad(const co_call *c)
{
    const real *dy = c->in[0].p;     /* [N,C,OH,OW] */
    const int32_t *idx = c->in[1].p; /* [N,C,OH,OW] */
    real *dx = c->out[0].p;          /* [N,C,H,W] */
    const co_shape *xs = &c->out[0].shape;
    int64_t in = xs->d[2] * xs->d[3], out = dims_product(&c->in[0].shape, 2, 4), lo, hi;

    co_share(xs->d[0] * xs->d[1], c->ith, c->nth, &lo, &hi);
    for (int64_t p = lo; p < hi; p++) {
        for (int64_t q = 0; q < in; q++)
            dx[p * in + q] = 0;
        for (int64_t q = p * out; q < (p + 1) * out; q++)
            if (idx[q] >= 0)
                dx[p * in + idx[q]] += dy[q];
    }
}

static void avg_pool(const co_call *c)
{
    const real *x = c->in[0].p; /* [N,C,H,W] */
    real *y = c->out[0].p;      /* [N,C,OH,OW] */
    const co_shape *xs = &c->in[0].shape, *ys = &c->out[0].shape;
    int64_t H = xs->d[2], W = xs->d[3], OH = ys->d[2], OW = ys->d[3], lo, hi;
    real area = (real)(c->attr->kh * c->attr->kw);

    co_share(xs->d[0] * xs->d[1], c->ith, c->nth, &lo, &hi);
    for (int64_t p = lo; p < hi; p++)
        for (int64_t q = 0; q < OH * OW; q++) {
            window v = window_at(c->attr, q / OW, q % OW, H, W);
            real sum = 0;
            for (int64_t h = v.h0; h < v.h1; h++)
                for (int64_t w = v.w0; w < v.w1; w++)
                    sum += x[(p * H + h) * W + w];
            y[p * OH * OW + q] = sum / area;
        }
}

static void avg_pool_grad(const co_call *c)
{
    const real *dy = c->in[0].p; /* [N,C,OH,OW] */
    real *dx = c->out[0].p;      /* [N,C,H,W] */
    const co_shape *xs = &c->out[0].shape, *ys = &c->in[0].shape;
    int64_t H = xs->d[2], W = xs->d[3], OH = ys->d[2], OW = ys->d[3], lo, hi;
    real area = (real)(c->attr->kh * c->attr->kw);

    co_share(xs->d[0] * xs->d[1], c->ith, c->nth, &lo, &hi);
    for (int64_t p = lo; p < hi; p++) {
        real *plane = dx + p * H * W;
        for (int64_t q = 0; q < H * W; q++)
            plane[q] = 0;
        for (int64_t q = 0; q < OH * OW; q++) {
            window v = window_at(c->attr, q / OW, q % OW, H, W);
            real g = dy[p * OH * OW + q] / area;
            for (int64_t h = v.h0; h < v.h1; h++)
                for (int64_t w = v.w0; w < v.w1; w++)
                    plane[h * W + w] += g;
        }
    }
}

void REF(pool)(co_kernel_row *row)
{
    row[CO_OP_MAX_POOL].fn = max_pool;
    row[CO_OP_MAX_POOL_GRAD].fn = max_pool_grad;
    row[CO_OP_AVG_POOL].fn = avg_pool;
    row[CO_OP_AVG_POOL_GRAD].fn = avg_pool_grad;
}
