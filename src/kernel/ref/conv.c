/* conv.c -- two-dimensional convolution and its two gradients, computed directly.
 *
 * All three walk the same pairs: output position (oh, ow) and tap (i, j) meet input position (oh * stride + i
 * - pad, ow * stride + j - pad), where that lies inside the image. For one tap, the positions inside the
 * image form a rectangle, so the innermost loop needs no test and runs along memory.
 *
 *     conv2d     y  chain over (c, i, j)      threads divide planes (n, o)
 *     conv2d_dx  dx chain over (o, i, j)      threads divide planes (n, c)
 *     conv2d_dw  dw chain over (n, oh, ow)    threads divide filters o; four channels at a time
 */
#include "kernel/ref/real.h"

typedef struct conv_dims {
    int64_t N, C, H, W, O, KH, KW, OH, OW, stride, pad;
} conv_dims;

static conv_dims dims_of_conv(const co_call *c, const co_shape *x, const co_shape *w, const co_shape *y)
{
    return (conv_dims){x->d[0], x->d[1], x->d[2], x->d[3],         w->d[0],     w->d[2],
                       w->d[3], y->d[2], y->d[3], c->attr->stride, c->attr->pad};
}

typedef struct range {
    int64_t lo, hi;
} range;

/* The outputs in [0, out) for which tap k reads an input inside [0, in); {0, 0} if there are none. */
static range inside(const conv_dims *d, int64_t k, int64_t out, int64_t in)
{
    int64_t first = d->pad - k, last = in - 1 + d->pad - k; /* o * stride lies in [first, last] */
    range r = {first > 0 ? (first + d->stride - 1) / d->stride : 0, last < 0 ? 0 : last / d->stride + 1};

    if (r.hi > out)
        r.hi = out;
    return r.lo < r.hi ? r : (range){0, 0};
}

/* y [n] += v * x [0, stride, 2 stride, ...] */
static void row_forward(real *restrict y, const real *restrict x, real v, int64_t n, int64_t stride)
{
    if (stride == 1)
        add_scaled(y, v, x, n);
    else
        for (int64_t j = 0; j < n; j++)
            y[j] += v * x[j * stride];
}

/* dx [0, stride, 2 stride, ...] += v * dy [n] */
static void row_backward(real *restrict dx, const real *restrict dy, real v, int64_t n, int64_t stride)
{
    if (stride == 1)
        add_scaled(dx, v, dy, n);
    else
        for (int64_t j = 0; j < n; j++)
            dx[j * stride] += v * dy[j];
}

/* What one tap of value v adds to a row of n outputs, or to the inputs under it, which are `stride` apart. */
typedef void tap_row(real *to, const real *from, real v, int64_t n, int64_t stride);

/* Walks taps and rows; `forward`: y [OH,OW] += w [KH,KW] over x [H,W], otherwise x += w under y. */
static inline void each_tap(real *to, const real *from, const real *w, const conv_dims *d, tap_row *row,
                            bool forward)
{
    for (int64_t i = 0; i < d->KH; i++)
        for (int64_t j = 0; j < d->KW; j++) {
            range rh = inside(d, i, d->OH, d->H), rw = inside(d, j, d->OW, d->W);
            real v = w[i * d->KW + j];
            if (rw.lo == rw.hi)
                continue;
            for (int64_t oh = rh.lo; oh < rh.hi; oh++) {
                int64_t x = (oh * d->stride + i - d->pad) * d->W + rw.lo * d->stride + j - d->pad;
                int64_t y = oh * d->OW + rw.lo;
                row(to + (forward ? y : x), from + (forward ? x : y), v, rw.hi - rw.lo, d->stride);
            }
        }
}

static void conv2d(const co_call *c)
{
    const real *x = c->in[0].p, *w = c->in[1].p;        /* [N,C,H,W], [O,C,KH,KW] */
    const real *bias = c->n_in > 2 ? c->in[2].p : NULL; /* [O] */
    real *y = c->out[0].p;                              /* [N,O,OH,OW] */
    conv_dims d = dims_of_conv(c, &c->in[0].shape, &c->in[1].shape, &c->out[0].shape);
    int64_t in = d.H * d.W, out = d.OH * d.OW, taps = d.KH * d.KW, lo, hi;

    co_share(d.N * d.O, c->ith, c->nth, &lo, &hi);
    for (int64_t p = lo; p < hi; p++) {
        int64_t n = p / d.O, o = p % d.O;
        real *plane = y + p * out;
        for (int64_t q = 0; q < out; q++)
            plane[q] = 0;
        for (int64_t ch = 0; ch < d.C; ch++)
            each_tap(plane, x + (n * d.C + ch) * in, w + (o * d.C + ch) * taps, &d, row_forward, true);
        for (int64_t q = 0; bias && q < out; q++)
            plane[q] += bias[o];
    }
}

static void conv2d_dx(const co_call *c)
{
    const real *dy = c->in[0].p, *w = c->in[1].p; /* [N,O,OH,OW], [O,C,KH,KW] */
    real *dx = c->out[0].p;                       /* [N,C,H,W] */
    conv_dims d = dims_of_conv(c, &c->out[0].shape, &c->in[1].shape, &c->in[0].shape);
    int64_t in = d.H * d.W, out = d.OH * d.OW, taps = d.KH * d.KW, lo, hi;

    co_share(d.N * d.C, c->ith, c->nth, &lo, &hi);
    for (int64_t p = lo; p < hi; p++) {
        int64_t n = p / d.C, ch = p % d.C;
        real *plane = dx + p * in;
        for (int64_t q = 0; q < in; q++)
            plane[q] = 0;
        for (int64_t o = 0; o < d.O; o++)
            each_tap(plane, dy + (n * d.O + o) * out, w + (o * d.C + ch) * taps, &d, row_backward, false);
    }
}

/* acc [4] = sum over (n, oh, ow) of dy of filter o times x of four channels, for tap (i, j). */
static void tap_sums(real *restrict acc, const real *dy, const real *const x[4], const conv_dims *d,
                     int64_t i, int64_t j)
{
    range rh = inside(d, i, d->OH, d->H), rw = inside(d, j, d->OW, d->W);
    real a0 = 0, a1 = 0, a2 = 0, a3 = 0;

    for (int64_t n = 0; n < d->N; n++)
        for (int64_t oh = rh.lo; oh < rh.hi; oh++) {
            int64_t at = n * d->C * d->H * d->W + (oh * d->stride + i - d->pad) * d->W + j - d->pad;
            const real *g = dy + n * d->O * d->OH * d->OW + oh * d->OW;
            for (int64_t ow = rw.lo; ow < rw.hi; ow++) {
                int64_t q = at + ow * d->stride;
                a0 += g[ow] * x[0][q];
                a1 += g[ow] * x[1][q];
                a2 += g[ow] * x[2][q];
                a3 += g[ow] * x[3][q];
            }
        }
    acc[0] = a0;
    acc[1] = a1;
    acc[2] = a2;
    acc[3] = a3;
}

static void conv2d_dw(const co_call *c)
{
    const real *dy = c->in[0].p, *x = c->in[1].p; /* [N,O,OH,OW], [N,C,H,W] */
    real *dw = c->out[0].p;                       /* [O,C,KH,KW] */
    conv_dims d = dims_of_conv(c, &c->in[1].shape, &c->out[0].shape, &c->in[0].shape);
    int64_t taps = d.KH * d.KW, lo, hi;

    co_share(d.O, c->ith, c->nth, &lo, &hi);
    for (int64_t o = lo; o < hi; o++)
        for (int64_t ch = 0; ch < d.C; ch += 4) {
            const real *four[4];
            for (int u = 0; u < 4; u++) /* past the end: the last channel again, not stored */
                four[u] = x + (ch + u < d.C ? ch + u : d.C - 1) * d.H * d.W;
            for (int64_t t = 0; t < taps; t++) {
                real acc[4];
                tap_sums(acc, dy + o * d.OH * d.OW, four, &d, t / d.KW, t % d.KW);
                for (int u = 0; u < 4 && ch + u < d.C; u++)
                    dw[(o * d.C + ch + u) * taps + t] = acc[u];
            }
        }
}

void REF(conv)(co_kernel_row *row)
{
    row[CO_OP_CONV2D].fn = conv2d;
    row[CO_OP_CONV2D_DX].fn = conv2d_dx;
    row[CO_OP_CONV2D_DW].fn = conv2d_dw;
}
