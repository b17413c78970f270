/* pool.c -- MAX_POOL: lanes are neighbouring columns of one output row.
 *
 * Every lane visits its window in the reference's order and takes a pixel that is larger, or nan, or the
 * first, so it gives the reference's bits. Vectors handle the columns whose windows are horizontally inside
 * the image, at a stride of 1 or 2. The last vector overlaps the one before it and writes the same values
 * twice. Other columns are computed one by one. Where a row has fewer columns than a vector has lanes, the lanes of
 * a vector are windows of several rows, if all of them are inside the image. Threads divide the planes (n, c).
 */
#include "kernel/simd/simd_int.h"

#include <math.h>

#include "kernel/kernel_int.h"

/* One output row: its windows cover rows [h0, h1) of the plane. */
typedef struct strip {
    const float *x; /* [H,W] */
    int64_t W, h0, h1;
    int64_t kw, stride, pad;
    float *y;     /* [OW] */
    int32_t *idx; /* [OW] */
} strip;

static void one_column(const strip *s, int64_t ow)
{
    int64_t left = ow * s->stride - s->pad, w0 = left > 0 ? left : 0,
            w1 = left + s->kw < s->W ? left + s->kw : s->W;
    float best = -INFINITY;
    int32_t at = -1;
    for (int64_t h = s->h0; h < s->h1; h++)
        for (int64_t w = w0; w < w1; w++) {
            float e = s->x[h * s->W + w];
            if (e > best || e != e || at < 0) {
                best = e;
                at = (int32_t)(h * s->W + w);
            }
        }
    s->y[ow] = best;
    s->idx[ow] = at;
}

/* Loads p[0], p[stride], ... for a stride of 1 or 2, and reads nothing past the last element. */
ALWAYS_INLINE vf load_every(const float *p, int64_t stride)
{
    return stride == 1 ? v_load(p) : v_load_even(p);
}

ALWAYS_INLINE void columns(const strip *s, int64_t ow, int64_t stride)
{
    int64_t left = ow * stride - s->pad;
    vi lane = vi_lanes() * vi_set((uint32_t)stride);
    vf best = load_every(s->x + s->h0 * s->W + left, stride);
    vi at = lane + vi_set((uint32_t)(s->h0 * s->W + left));
    for (int64_t h = s->h0; h < s->h1; h++)
        for (int64_t q = h * s->W + left; q < h * s->W + left + s->kw; q++) {
            vf e = load_every(s->x + q, stride), take = v_either(v_gt(e, best), v_nan(e));
            best = v_pick(take, e, best);
            at = vi_pick(take, lane + vi_set((uint32_t)q), at);
        }
    v_store(s->y + ow, best);
    vi_store(s->idx + ow, at);
}

static void pool_row(const strip *s, int64_t OW)
{
    /* Columns [lo, hi) have whole windows. */
    int64_t lo = (s->pad + s->stride - 1) / s->stride, room = s->W + s->pad - s->kw;
    int64_t hi = room < 0 ? 0 : room / s->stride + 1;
    hi = hi < OW ? hi : OW;
    if (hi - lo < VW || s->stride > 2 || s->h0 >= s->h1)
        lo = hi = OW;
    for (int64_t ow = 0; ow < lo; ow++)
        one_column(s, ow);
    for (int64_t ow = lo; ow < hi; ow += VW) {
        int64_t at = ow + VW <= hi ? ow : hi - VW;
        if (s->stride == 1)
            columns(s, at, 1);
        else
            columns(s, at, 2);
    }
    for (int64_t ow = hi; ow < OW; ow++)
        one_column(s, ow);
}

/* --- small planes: lanes are windows ------------------------------------------------------------------------- */
enum { SMALL = 64 };

/* Where the windows of a plane begin; 0 of them: the plane is not small, or a window is not whole. */
typedef struct small_plane {
    int64_t n, W, kh, kw;
    int32_t from[SMALL];
} small_plane;

static void small_plane_of(small_plane *s, const co_call *c)
{
    const co_shape *xs = &c->in[0].shape, *ys = &c->out[0].shape;
    const co_attr *a = c->attr;
    int64_t OH = ys->d[2], OW = ys->d[3];

    *s = (small_plane){.W = xs->d[3], .kh = a->kh, .kw = a->kw};
    if (OW >= VW || OH * OW < VW || OH * OW > SMALL || a->pad > 0 ||
        (OH - 1) * a->stride + a->kh > xs->d[2] || (OW - 1) * a->stride + a->kw > xs->d[3])
        return;
    s->n = OH * OW;
    for (int64_t q = 0; q < s->n; q++)
        s->from[q] = (int32_t)(q / OW * a->stride * s->W + q % OW * a->stride);
}

static void pool_small(const small_plane *s, const float *x, float *y, int32_t *idx)
{
    for (int64_t i = 0; i < s->n; i += VW) {
        int64_t q = i + VW <= s->n ? i : s->n - VW;
        vi from = vi_load(s->from + q), at = from;
        vf best = v_gather(x, from);
        for (int64_t h = 0; h < s->kh; h++)
            for (int64_t w = 0; w < s->kw; w++) {
                vi here = from + vi_set((uint32_t)(h * s->W + w));
                vf e = v_gather(x, here), take = v_either(v_gt(e, best), v_nan(e));
                best = v_pick(take, e, best);
                at = vi_pick(take, here, at);
            }
        v_store(y + q, best);
        vi_store(idx + q, at);
    }
}

static void max_pool(const co_call *c)
{
    const float *x = c->in[0].p; /* [N,C,H,W] */
    float *y = c->out[0].p;      /* [N,C,OH,OW] */
    int32_t *idx = c->out[1].p;  /* [N,C,OH,OW] */
    const co_shape *xs = &c->in[0].shape, *ys = &c->out[0].shape;
    const co_attr *a = c->attr;
    int64_t H = xs->d[2], W = xs->d[3], OH = ys->d[2], OW = ys->d[3], lo, hi;
    small_plane small;

    co_share(xs->d[0] * xs->d[1], c->ith, c->nth, &lo, &hi);
    small_plane_of(&small, c);
    for (int64_t p = lo; p < hi && small.n; p++)
        pool_small(&small, x + p * H * W, y + p * small.n, idx + p * small.n);
    for (int64_t p = lo; p < hi && !small.n; p++)
        for (int64_t oh = 0; oh < OH; oh++) {
            int64_t top = oh * a->stride - a->pad, at = (p * OH + oh) * OW;
            strip s = {.x = x + p * H * W, .W = W, .y = y + at, .idx = idx + at};
            s.kw = a->kw, s.stride = a->stride, s.pad = a->pad;
            s.h0 = top > 0 ? top : 0, s.h1 = top + a->kh < H ? top + a->kh : H;
            pool_row(&s, OW);
        }
}

void rows_pool(co_kernels *k)
{
    k->row[CO_OP_MAX_POOL] = (co_kernel_row){max_pool, NULL};
}
