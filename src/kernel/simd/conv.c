/* conv.c -- convolutions as matrix products over zero-padded images (gemm.h, conv_input.c), without writing im2col
 * to memory: tables of offsets say where element (column, k) of the unfolded image lies, and packing reads it
 * from there.
 *
 *   CONV2D     C[o, (n,oh,ow)]     A = w [O, (c,kh,kw)]       B = padded x            k = (c, kh, kw)
 *   CONV2D_DX  C[c, (n,h,w)]       A = w^T [C, (o,kh,kw)]     B = padded dy           k = (o, kh, kw)
 *   CONV2D_DW  C[o, (c,kh,kw)]     A = dy [O, (n,oh,ow)]      B = padded x            k = (n, oh, ow)
 *
 * k runs in index order; padding takes part in the chain as zeros. DX with a stride is one product per phase
 * ((h + pad) mod stride, (w + pad) mod stride): only the taps that reach a pixel of that phase are in the
 * pixel's chain. Images go in groups that make about GEMM_NC columns (GEMM_KC of k for DW), so scratch does
 * not grow with n.
 *
 * Threads divide the images or the rows of C (CONV2D, DX), the columns or the rows of C (DW), and each pads and
 * packs what it reads. What they do not divide is packed by every thread, so they divide whatever leaves less
 * to pack twice: A if there are many columns, B if there are many rows. The faster ways of winograd.c and
 * conv_small.c prepare together what all threads read (kernel.h, prepare).
 */
#include "kernel/simd/simd_int.h"

#include <string.h>

#include "base/err.h"
#include "kernel/simd/conv_int.h"

static geom geom_of(const co_shape *x, const co_shape *w, const co_shape *y, const co_attr *a)
{
    return (geom){x->d[0], x->d[1], x->d[2], x->d[3],   w->d[0], y->d[2],
                  y->d[3], w->d[2], w->d[3], a->stride, a->pad};
}

static int64_t group(int64_t want, int64_t per_image, int64_t n)
{
    int64_t g = per_image > 0 ? want / per_image : n;
    return g < 1 ? 1 : g > n ? n : g;
}

static void clear(float *x, int64_t n)
{
    memset(x, 0, (size_t)n * sizeof *x);
}

/* t[(a, b, c)] = a * sa + b * sb + c * sc. Offsets have 32 bits, so a group of images may have 2^31 elements
 * (8 GiB). */
static void table(int32_t *t, int64_t na, int64_t sa, int64_t nb, int64_t sb, int64_t nc, int64_t sc)
{
    CO_ASSERT(na * sa <= INT32_MAX, "one image is larger than 8 GiB");
    for (int64_t a = 0; a < na; a++)
        for (int64_t b = 0; b < nb; b++)
            for (int64_t c = 0; c < nc; c++)
                *t++ = (int32_t)(a * sa + b * sb + c * sc);
}

/* A thread's share of a product: images [i0, i1) and rows [r0, r1) of C. */
typedef struct share {
    int64_t i0, i1, r0, r1;
} share;

static share share_of(const co_call *c, int64_t images, int64_t rows, bool few_columns)
{
    share s = {0, images, 0, rows};
    bool by_rows = images < c->nth ? rows > images : few_columns;

    if (by_rows)
        co_share(rows, c->ith, c->nth, &s.r0, &s.r1);
    else
        co_share(images, c->ith, c->nth, &s.i0, &s.i1);
    return s;
}

/* A call's scratch: first what its threads share, then each thread's own. */
static size_t spaces_bytes(const co_call *c, spaces s)
{
    return s.shared.used + s.own.used * (size_t)call_threads(c);
}

static spaces spaces_of(const co_call *c, spaces used)
{
    char *base = c->scratch;

    return (spaces){.shared = {.base = base},
                    .own = {.base = base + used.shared.used + used.own.used * (size_t)c->ith}};
}

/* ---- forward ---- */

typedef struct fwd {
    int64_t images; /* in a group */
    input in;
    float *padded; /* [images,C,plane] */
    int32_t *col, *k, *out;
    float *gemm;
} fwd;

static fwd fwd_plan(const geom *g, space *s)
{
    int64_t p = g->oh * g->ow, taps = g->c * g->kh * g->kw;
    fwd f = {.images = group(GEMM_NC, p, g->n), .in = input_of(g)};
    f.padded = take(s, f.in.copied ? f.images * g->c * f.in.plane : 0, sizeof(float));
    f.col = take(s, f.images * p, sizeof(int32_t));
    f.out = take(s, f.images * p, sizeof(int32_t));
    f.k = take(s, taps, sizeof(int32_t));
    f.gemm = take(s, (int64_t)gemm_scratch(g->o, f.images * p, taps), sizeof(float));
    return f;
}

static geom fwd_geom(const co_call *c)
{
    return geom_of(&c->in[0].shape, &c->in[1].shape, &c->out[0].shape, c->attr);
}

static size_t conv2d_scratch(const co_call *c)
{
    geom g = fwd_geom(c);
    space s = {0};
    if (win_fits(&g))
        return spaces_bytes(c, win_scratch(&g));
    if (small_fits(&g))
        return spaces_bytes(c, small_scratch(&g, false, call_threads(c)));
    fwd_plan(&g, &s);
    return s.used * (size_t)call_threads(c);
}

static space own_space(const co_call *c, size_t each)
{
    return (space){.base = (char *)c->scratch + each * (size_t)c->ith};
}

static win_part fwd_win(const co_call *c)
{
    const float *bias = c->n_in > 2 ? c->in[2].p : NULL; /* [O] */

    return (win_part){c->in[0].p, c->in[1].p, bias, c->out[0].p, false, c->ith, call_threads(c)};
}

static small_part fwd_small(const co_call *c)
{
    const float *bias = c->n_in > 2 ? c->in[2].p : NULL; /* [O] */

    return (small_part){c->in[0].p, c->in[1].p, bias, c->out[0].p, false, c->ith, call_threads(c)};
}

static void conv2d_prepare(const co_call *c)
{
    geom g = fwd_geom(c);
    win_part win = fwd_win(c);
    small_part small = fwd_small(c);

    if (win_fits(&g))
        win_prepare(&g, &win, spaces_of(c, win_scratch(&g)));
    else if (small_fits(&g))
        small_prepare(&g, &small, spaces_of(c, small_scratch(&g, false, small.nth)));
}

static void conv2d(const co_call *c)
{
    geom g = fwd_geom(c);
    if (win_fits(&g)) {
        if (c->nth <= 1)
            conv2d_prepare(c);
        win_part part = fwd_win(c);
        win_run(&g, &part, spaces_of(c, win_scratch(&g)));
        return;
    }
    if (small_fits(&g)) {
        small_part part = fwd_small(c);
        small_run(&g, &part, spaces_of(c, small_scratch(&g, false, part.nth)));
        return;
    }
    space s = own_space(c, conv2d_scratch(c) / (size_t)call_threads(c));
    fwd f = fwd_plan(&g, &s);
    const float *x = c->in[0].p; /* [N,C,H,W] */
    float *y = c->out[0].p;      /* [N,O,OH,OW] */
    int64_t p = g.oh * g.ow, plane = f.in.plane, taps = g.c * g.kh * g.kw;
    share own = share_of(c, g.n, g.o, g.n * p < g.o);
    table(f.col, f.images, g.c * plane, g.oh, g.stride * f.in.row, g.ow, f.in.step);
    table(f.out, f.images, g.o * p, 1, 0, p, 1);
    input_taps(f.k, &g, &f.in);
    gemm m = {
        .m = own.r1 - own.r0,
        .k = taps,
        .a = {.p = (const float *)c->in[1].p + own.r0 * taps, .si = taps, .sk = 1}, /* w [O,C,KH,KW] */
        .b = {.ti = f.col, .tk = f.k, .rising = f.in.parts == 1},
        .cm = p,
        .tn = f.out,
        .bias_m = c->n_in > 2 ? (const float *)c->in[2].p + own.r0 : NULL, /* [O] */
    };
    if (f.in.copied)
        clear(f.padded, f.images * g.c * plane);
    for (int64_t i = own.i0; i < own.i1; i += f.images) {
        int64_t n = f.images < own.i1 - i ? f.images : own.i1 - i;
        m.b.p = x + i * g.c * g.h * g.w;
        if (f.in.copied) {
            input_put(f.padded, m.b.p, n * g.c, &g, &f.in);
            m.b.p = f.padded;
        }
        m.n = n * p;
        m.c = y + (i * g.o + own.r0) * p;
        gemm_run(&m, f.gemm, 0, 1);
    }
}

/* ---- gradient of the input ---- */

/* One axis of one phase: pixels i = first + stride * q, q < n, reach output position at + q - t by tap f +
 * stride * t, t < taps. */
typedef struct phase {
    int64_t first, n, at, f, taps;
} phase;

static phase phase_of(int64_t f, int64_t size, int64_t k, int64_t stride, int64_t pad)
{
    phase p = {.f = f, .first = ((f - pad) % stride + stride) % stride};
    p.n = p.first < size ? (size - 1 - p.first) / stride + 1 : 0;
    p.at = (p.first + pad - f) / stride;
    p.taps = f < k ? (k - 1 - f) / stride + 1 : 0;
    return p;
}

/* The output positions that any phase reads: [lo, lo + n). */
static void reach(int64_t *lo, int64_t *n, int64_t size, int64_t k, int64_t stride, int64_t pad)
{
    int64_t a = INT64_MAX, b = INT64_MIN;
    for (int64_t f = 0; f < stride; f++) {
        phase p = phase_of(f, size, k, stride, pad);
        if (!p.n || !p.taps)
            continue;
        a = p.at - p.taps + 1 < a ? p.at - p.taps + 1 : a;
        b = p.at + p.n > b ? p.at + p.n : b;
    }
    *lo = a < b ? a : 0;
    *n = a < b ? b - a : 1;
}

typedef struct back {
    int64_t images, pixels;    /* in a group; of one phase of an image, at most */
    int64_t top, left, hp, wp; /* padded row r is output row r + top (top may be negative) */
    float *padded;             /* [images,O,hp,wp] */
    int32_t *col, *out, *k, *wk;
    float *gemm;
    float *halves; /* [even or odd column of dx][C,images,pixels of a phase]; see is_halved */
} back;

/* With a stride of two, neighbouring pixels of a row of dx are of two phases. Products write them one by one, so both
 * phases go to memory of their own, and from there to dx by vectors. */
static bool is_halved(const geom *g)
{
    return g->stride == 2 && g->w % 2 == 0;
}

static back back_plan(const geom *g, space *s)
{
    back b = {0};
    int64_t pixels = ((g->h + g->stride - 1) / g->stride) * ((g->w + g->stride - 1) / g->stride);
    int64_t taps = g->o * g->kh * g->kw;
    b.images = group(GEMM_NC, pixels, g->n);
    b.pixels = pixels;
    reach(&b.top, &b.hp, g->h, g->kh, g->stride, g->pad);
    reach(&b.left, &b.wp, g->w, g->kw, g->stride, g->pad);
    b.padded = take(s, b.images * g->o * b.hp * b.wp, sizeof(float));
    b.col = take(s, b.images * pixels, sizeof(int32_t));
    b.out = take(s, b.images * pixels, sizeof(int32_t));
    b.k = take(s, taps, sizeof(int32_t));
    b.wk = take(s, taps, sizeof(int32_t));
    b.gemm = take(s, (int64_t)gemm_scratch(g->c, b.images * pixels, taps), sizeof(float));
    b.halves = take(s, is_halved(g) ? 2 * g->c * b.images * pixels : 0, sizeof(float));
    return b;
}

static geom back_geom(const co_call *c)
{
    return geom_of(&c->out[0].shape, &c->in[1].shape, &c->in[0].shape, c->attr);
}

/* The gradient of the input is a convolution of dy, with as many channels as y has. */
static geom turn(geom g)
{
    int64_t c = g.c;
    g.c = g.o;
    g.o = c;
    return g;
}

static size_t conv2d_dx_scratch(const co_call *c)
{
    geom g = back_geom(c);
    space s = {0};
    if (win_fits(&g)) {
        geom turned = turn(g);
        return spaces_bytes(c, win_scratch(&turned));
    }
    if (small_fits(&g))
        return spaces_bytes(c, small_scratch(&g, true, call_threads(c)));
    back_plan(&g, &s);
    return s.used * (size_t)call_threads(c);
}

/* Computes the pixels of dx in one phase, for n images whose padded dy is in b->padded. */
static void back_phase(const geom *g, const back *b, gemm *m, phase ph, phase pw, int64_t n)
{
    int64_t plane = b->hp * b->wp, kk = g->kh * g->kw;
    m->n = n * ph.n * pw.n;
    m->k = g->o * ph.taps * pw.taps;
    if (!m->n)
        return;
    table(b->col, n, g->o * plane, ph.n, b->wp, pw.n, 1);
    table(b->k, g->o, plane, ph.taps, -b->wp, pw.taps, -1);
    table(b->wk, g->o, g->c * kk, ph.taps, g->stride * g->kw, pw.taps, g->stride);
    gemm one = *m;
    one.a.p += ph.f * g->kw + pw.f;
    one.b.p = b->padded + (ph.at - b->top) * b->wp + pw.at - b->left;
    if (is_halved(g)) {
        one.c = b->halves + pw.first * one.m * one.n;
        one.cm = one.n;
        one.cn = 1;
        one.tn = NULL;
    } else {
        table(b->out, n, g->c * g->h * g->w, ph.n, g->stride * g->w, pw.n, g->stride);
        one.c += ph.first * g->w + pw.first;
    }
    gemm_run(&one, b->gemm, 0, 1);
}

static void zip_row(float *to, const float *even, const float *odd, int64_t n)
{
    int64_t x = 0;

    for (; x + VW <= n; x += VW) {
        vf lo, hi;
        v_zip(&lo, &hi, v_load(even + x), v_load(odd + x));
        v_store(to + 2 * x, lo);
        v_store(to + 2 * x + VW, hi);
    }
    for (; x < n; x++)
        to[2 * x] = even[x], to[2 * x + 1] = odd[x];
}

/* The rows of dx that are of phase ph, of both halves. */
static void zip_halves(const geom *g, const back *b, const gemm *m, phase ph, int64_t n)
{
    int64_t w = g->w / 2, all = m->m * n * ph.n * w;
    const float *from = b->halves;

    for (int64_t r = 0; r < m->m; r++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t y = 0; y < ph.n; y++, from += w)
                zip_row(m->c + r * m->cm + i * g->c * g->h * g->w + (ph.first + 2 * y) * g->w, from,
                        from + all, w);
}

static win_part back_win(const co_call *c)
{
    return (win_part){c->in[0].p, c->in[1].p, NULL, c->out[0].p, true, c->ith, call_threads(c)};
}

static small_part back_small(const co_call *c)
{
    return (small_part){c->in[0].p, c->in[1].p, NULL, c->out[0].p, true, c->ith, call_threads(c)};
}

static void conv2d_dx_prepare(const co_call *c)
{
    geom g = back_geom(c), turned = turn(g);
    win_part win = back_win(c);
    small_part small = back_small(c);

    if (win_fits(&g))
        win_prepare(&turned, &win, spaces_of(c, win_scratch(&turned)));
    else if (small_fits(&g))
        small_prepare(&g, &small, spaces_of(c, small_scratch(&g, true, small.nth)));
}

static void conv2d_dx(const co_call *c)
{
    geom g = back_geom(c);
    if (win_fits(&g)) {
        geom turned = turn(g);
        if (c->nth <= 1)
            conv2d_dx_prepare(c);
        win_part part = back_win(c);
        win_run(&turned, &part, spaces_of(c, win_scratch(&turned)));
        return;
    }
    if (small_fits(&g)) {
        small_part part = back_small(c);
        small_run(&g, &part, spaces_of(c, small_scratch(&g, true, part.nth)));
        return;
    }
    space s = own_space(c, conv2d_dx_scratch(c) / (size_t)call_threads(c));
    back b = back_plan(&g, &s);
    const float *dy = c->in[0].p; /* [N,O,OH,OW] */
    float *dx = c->out[0].p;      /* [N,C,H,W] */
    /* Packing A costs more here than packing B: w is read across its rows. */
    share own = share_of(c, g.n, g.c, g.n * b.pixels <= 2 * g.c);
    const float *w = (const float *)c->in[1].p + own.r0 * g.kh * g.kw; /* [O,C,KH,KW] */
    gemm m = {
        .m = own.r1 - own.r0,
        .a = {.p = w, .si = g.kh * g.kw, .tk = b.wk, .rising = true},
        .b = {.ti = b.col, .tk = b.k},
        .cm = g.h * g.w,
        .tn = b.out,
    };
    clear(b.padded, b.images * g.o * b.hp * b.wp);
    for (int64_t i = own.i0; i < own.i1; i += b.images) {
        int64_t n = b.images < own.i1 - i ? b.images : own.i1 - i;
        pad_planes(b.padded, dy + i * g.o * g.oh * g.ow, n * g.o, g.oh, g.ow, -b.top, -b.left, b.hp, b.wp);
        m.c = dx + (i * g.c + own.r0) * g.h * g.w;
        for (int64_t fh = 0; fh < g.stride; fh++) {
            phase ph = phase_of(fh, g.h, g.kh, g.stride, g.pad);
            for (int64_t fw = 0; fw < g.stride; fw++)
                back_phase(&g, &b, &m, ph, phase_of(fw, g.w, g.kw, g.stride, g.pad), n);
            if (is_halved(&g))
                zip_halves(&g, &b, &m, ph, n);
        }
    }
}

/* ---- gradient of the weights ---- */

typedef struct wgrad {
    int64_t images;
    input in;
    float *padded; /* [images,C,plane] */
    int32_t *col, *k, *dyk;
    float *gemm;
} wgrad;

static wgrad wgrad_plan(const geom *g, space *s)
{
    int64_t p = g->oh * g->ow, cols = g->c * g->kh * g->kw;
    wgrad f = {.images = group(GEMM_KC, p, g->n), .in = input_of(g)};
    f.padded = take(s, f.in.copied ? f.images * g->c * f.in.plane : 0, sizeof(float));
    f.col = take(s, cols, sizeof(int32_t));
    f.k = take(s, f.images * p, sizeof(int32_t));
    f.dyk = take(s, f.images * p, sizeof(int32_t));
    f.gemm = take(s, (int64_t)gemm_scratch(g->o, cols, f.images * p), sizeof(float));
    return f;
}

static geom wgrad_geom(const co_call *c)
{
    return geom_of(&c->in[1].shape, &c->out[0].shape, &c->in[0].shape, c->attr);
}

static size_t conv2d_dw_scratch(const co_call *c)
{
    geom g = wgrad_geom(c);
    space s = {0};
    if (win_fits(&g))
        return spaces_bytes(c, win_dw_scratch(&g));
    if (small_dw_fits(&g))
        return spaces_bytes(c, small_dw_scratch(&g));
    wgrad_plan(&g, &s);
    return s.used * (size_t)call_threads(c);
}

/* Where the sums of all images are finished in one block. */
static bool conv2d_dw_adds(const co_call *c)
{
    geom g = wgrad_geom(c);

    return win_fits(&g) || small_dw_fits(&g) || g.n * g.oh * g.ow <= GEMM_KC;
}

/* A thread's share of dw: rows [r0, r1), columns [c0, c1), which need channels [ch0, ch1) of x. */
typedef struct dw_share {
    int64_t r0, r1, c0, c1, ch0, ch1;
} dw_share;

static dw_share dw_share_of(const co_call *c, const geom *g)
{
    int64_t cols = g->c * g->kh * g->kw, taps = g->kh * g->kw, slivers = (cols + NR - 1) / NR;
    dw_share s = {0, g->o, 0, cols, 0, g->c};

    if (cols > g->o && slivers >= c->nth) {
        co_share(slivers, c->ith, c->nth, &s.c0, &s.c1);
        s.c0 *= NR;
        s.c1 = s.c1 * NR < cols ? s.c1 * NR : cols;
        s.ch0 = s.c0 / taps;
        s.ch1 = (s.c1 + taps - 1) / taps;
    } else
        co_share(g->o, c->ith, c->nth, &s.r0, &s.r1);
    return s;
}

static dw_part dw_part_of(const co_call *c)
{
    return (dw_part){c->in[0].p, c->in[1].p, c->out[0].p, c->add, c->ith, call_threads(c)};
}

static void conv2d_dw_prepare(const co_call *c)
{
    geom g = wgrad_geom(c);
    dw_part part = dw_part_of(c);

    if (win_fits(&g))
        win_dw_prepare(&g, &part, spaces_of(c, win_dw_scratch(&g)));
    else if (small_dw_fits(&g))
        small_dw_prepare(&g, &part, spaces_of(c, small_dw_scratch(&g)));
}

static void conv2d_dw(const co_call *c)
{
    geom g = wgrad_geom(c);
    if (win_fits(&g) || small_dw_fits(&g)) {
        dw_part part = dw_part_of(c);
        if (c->nth <= 1)
            conv2d_dw_prepare(c);
        if (win_fits(&g))
            win_dw(&g, &part, spaces_of(c, win_dw_scratch(&g)));
        else
            small_dw(&g, &part, spaces_of(c, small_dw_scratch(&g)));
        return;
    }
    space s = own_space(c, conv2d_dw_scratch(c) / (size_t)call_threads(c));
    wgrad f = wgrad_plan(&g, &s);
    const float *dy = c->in[0].p; /* [N,O,OH,OW] */
    const float *x = c->in[1].p;  /* [N,C,H,W] */
    int64_t p = g.oh * g.ow, plane = f.in.plane, cols = g.c * g.kh * g.kw;
    dw_share own = dw_share_of(c, &g);
    input_taps(f.col, &g, &f.in);
    table(f.k, f.images, g.c * plane, g.oh, g.stride * f.in.row, g.ow, f.in.step);
    table(f.dyk, f.images, g.o * p, 1, 0, p, 1);
    gemm m = {
        .m = own.r1 - own.r0,
        .n = own.c1 - own.c0,
        .a = {.si = p, .tk = f.dyk, .rising = true},
        .b = {.ti = f.col + own.c0, .tk = f.k, .rising = true},
        .c = (float *)c->out[0].p + own.r0 * cols + own.c0, /* [O,C,KH,KW] */
        .cm = cols,
        .cn = 1,
        .add = c->add,
    };
    if (f.in.copied)
        clear(f.padded, f.images * g.c * plane);
    int64_t i = 0;
    do { /* runs once even without images, to write zeros */
        int64_t n = f.images < g.n - i ? f.images : g.n - i;
        m.b.p = x + i * g.c * g.h * g.w;
        if (f.in.copied) {
            for (int64_t image = 0; image < n; image++)
                input_put(f.padded + (image * g.c + own.ch0) * plane,
                          m.b.p + (image * g.c + own.ch0) * g.h * g.w, own.ch1 - own.ch0, &g, &f.in);
            m.b.p = f.padded;
        }
        m.a.p = dy + (i * g.o + own.r0) * p;
        m.k = n * p;
        m.resume = i > 0;
        gemm_run(&m, f.gemm, 0, 1);
        i += n;
    } while (i < g.n);
}

/* ---- which of them computes a call ---- */

static const char *algorithm(const geom *g, bool small)
{
    return win_fits(g) ? "winograd" : small ? "small" : "product";
}

static const char *conv2d_algorithm(const co_call *c)
{
    geom g = fwd_geom(c);
    return algorithm(&g, small_fits(&g));
}

static const char *conv2d_dx_algorithm(const co_call *c)
{
    geom g = back_geom(c);
    return algorithm(&g, small_fits(&g));
}

static const char *conv2d_dw_algorithm(const co_call *c)
{
    geom g = wgrad_geom(c);
    return algorithm(&g, small_dw_fits(&g));
}

void rows_conv(co_kernels *k)
{
    k->row[CO_OP_CONV2D] =
        (co_kernel_row){conv2d, conv2d_scratch, .prepare = conv2d_prepare, .algorithm = conv2d_algorithm};
    k->row[CO_OP_CONV2D_DX] = (co_kernel_row){conv2d_dx, conv2d_dx_scratch, .prepare = conv2d_dx_prepare,
                                              .algorithm = conv2d_dx_algorithm};
    k->row[CO_OP_CONV2D_DW] =
        (co_kernel_row){conv2d_dw, conv2d_dw_scratch, conv2d_dw_adds, conv2d_dw_prepare, conv2d_dw_algorithm};
}
