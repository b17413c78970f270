/* conv_small.c -- convolutions of small pictures, and their gradients of the input, without products with
 * padding.
 *
 * A pixel of the output has the taps (kh, kw) whose source pixel exists. Pixels with the same taps are a
 * class: a 3x3 kernel with padding 1 has nine of them on 4 x 4 pixels, four on 2 x 2. The columns of a class,
 * over all images, are a matrix product of their own, whose k runs over (channel, taps of the class). Weights
 * are packed once with all taps; each class picks its own rows of them (gemm_picked).
 *
 * Threads divide the rows of the output, and all read all columns. So they first pack the columns together, each its
 * own slivers of the whole k, if they are not too large; one thread packs block by block, into its cache.
 *
 * The chain of a pixel is that of conv.c without its zeros. Leaving out a zero times a finite weight changes no bit,
 * but for the sign of a zero after an underflow. So the choice between both must not depend on the level (small_fits).
 */
#include "kernel/simd/conv_int.h"

#include <string.h>

enum { TAPS_MOST = 8, SIDE_MOST = 8, CLASSES_MOST = SIDE_MOST, CHANNELS_LEAST = 16 };
enum { WHOLE_MOST = 4 << 20 }; /* floats of columns that threads pack together */

/* Along one axis: positions of the output that have the same taps. */
typedef struct axis_class {
    int taps, tap[TAPS_MOST], shift[TAPS_MOST]; /* shift: of the source position, from the first tap's */
    int n, at[SIDE_MOST], base[SIDE_MOST];      /* output positions, and their first tap's source */
} axis_class;
typedef struct axis {
    int n;
    axis_class c[CLASSES_MOST];
} axis;

/* The source of output position i by tap a; -1: padding, or no pixel because of the stride. */
static int64_t source(const geom *g, bool back, int64_t i, int64_t a, int64_t size)
{
    int64_t at = back ? i + g->pad - a : i * g->stride - g->pad + a;

    if (back && at % g->stride != 0)
        return -1;
    at = back ? at / g->stride : at;
    return at >= 0 && at < size ? at : -1;
}

static axis_class class_of(const geom *g, bool back, int64_t i, int64_t k, int64_t size)
{
    axis_class c = {.n = 1, .at = {(int)i}};

    for (int64_t a = 0; a < k; a++) {
        int64_t at = source(g, back, i, a, size);
        if (at < 0)
            continue;
        if (!c.taps)
            c.base[0] = (int)at;
        c.shift[c.taps] = (int)at - c.base[0];
        c.tap[c.taps++] = (int)a;
    }
    return c;
}

static axis axis_of(const geom *g, bool back, int64_t outputs, int64_t k, int64_t size)
{
    axis x = {0};

    for (int64_t i = 0; i < outputs; i++) {
        axis_class one = class_of(g, back, i, k, size);
        int c = 0;
        while (c < x.n && (x.c[c].taps != one.taps || memcmp(x.c[c].tap, one.tap, sizeof one.tap) != 0))
            c++;
        if (c == x.n) {
            x.c[x.n++] = one;
            continue;
        }
        x.c[c].at[x.c[c].n] = (int)i;
        x.c[c].base[x.c[c].n++] = one.base[0];
    }
    return x;
}

/* Products along one axis that are not with padding. */
static int64_t valid(const geom *g, int64_t outputs, int64_t k, int64_t size)
{
    int64_t n = 0;

    for (int64_t i = 0; i < outputs; i++)
        for (int64_t a = 0; a < k; a++)
            n += source(g, false, i, a, size) >= 0;
    return n;
}

/* Tables of offsets have 32 bits, and all images are one group here: more go through conv.c, in smaller groups
 * and to the same bits. */
static bool offsets_fit(const geom *g)
{
    int64_t x = g->c * g->h * g->w, y = g->o * g->oh * g->ow;

    return g->n * (x > y ? x : y) <= INT32_MAX && g->o * g->c * g->kh * g->kw <= INT32_MAX;
}

bool small_fits(const geom *g)
{
    if (g->h > SIDE_MOST || g->w > SIDE_MOST || g->oh > SIDE_MOST || g->ow > SIDE_MOST || g->kh > TAPS_MOST ||
        g->kw > TAPS_MOST || g->c < CHANNELS_LEAST || g->o < CHANNELS_LEAST || !offsets_fit(g))
        return false;
    return 5 * valid(g, g->oh, g->kh, g->h) * valid(g, g->ow, g->kw, g->w) < 4 * g->oh * g->kh * g->ow * g->kw;
}

/* What is read (source) and written (out), in either direction. */
typedef struct small {
    int64_t channels, rows, sh, sw, oh, ow; /* source channels, all output channels */
    int64_t taps, block;                    /* kh * kw; channels in a block of k */
    axis y, x;
    int64_t slivers, b_step; /* of columns; floats of a sliver in a block of k */
    bool whole;              /* b holds all blocks, and is of all threads */
    float *a, *b, *sums;     /* one sliver of rows; columns of a class; [sliver][row][NR] */
    int32_t *wk, *tk, *ta;   /* where w's k lies; a class's k in the source; its rows in a sliver of A */
    int32_t *col;            /* [class][column] */
} small;

static small small_plan(const geom *g, bool back, int nth, spaces *s)
{
    small p = {.channels = back ? g->o : g->c, .rows = back ? g->c : g->o, .taps = g->kh * g->kw};

    p.sh = back ? g->oh : g->h, p.sw = back ? g->ow : g->w;
    p.oh = back ? g->h : g->oh, p.ow = back ? g->w : g->ow;
    p.y = axis_of(g, back, p.oh, g->kh, p.sh);
    p.x = axis_of(g, back, p.ow, g->kw, p.sw);
    p.block = GEMM_KC / p.taps > 0 ? GEMM_KC / p.taps : 1;
    for (int i = 0; i < p.y.n; i++)
        for (int j = 0; j < p.x.n; j++)
            p.slivers += (g->n * p.y.c[i].n * p.x.c[j].n + NR - 1) / NR;
    p.b_step = p.block * p.taps * NR;
    int64_t blocks = (p.channels + p.block - 1) / p.block;
    p.whole = nth > 1 && blocks * p.slivers * p.b_step <= WHOLE_MOST;
    p.b = take(p.whole ? &s->shared : &s->own, (p.whole ? blocks : 1) * p.slivers * p.b_step, sizeof(float));
    p.a = take(&s->own, p.block * p.taps * MR + VW, sizeof(float));
    p.sums = take(&s->own, p.slivers * p.rows * NR, sizeof(float));
    p.wk = take(&s->own, p.channels * p.taps, sizeof(int32_t));
    p.tk = take(&s->own, p.y.n * p.x.n * p.channels * p.taps, sizeof(int32_t));
    p.ta = take(&s->own, p.y.n * p.x.n * p.block * p.taps, sizeof(int32_t));
    p.col = take(&s->own, g->n * p.oh * p.ow, sizeof(int32_t));
    return p;
}

spaces small_scratch(const geom *g, bool back, int nth)
{
    spaces s = {0};

    small_plan(g, back, nth, &s);
    return s;
}

/* A class of pixels: rows of class i, columns of class j. */
typedef struct pixels {
    const axis_class *y, *x;
    int64_t columns, taps;
    int32_t *col, *tk, *ta;
} pixels;

/* Calls `each` for every class, in order, with the number of its first sliver. */
typedef void pixels_fn(void *ctx, const pixels *c, int64_t sliver);
static void each_class(const geom *g, const small *p, pixels_fn *each, void *ctx)
{
    int64_t sliver = 0, column = 0, number = 0;

    for (int i = 0; i < p->y.n; i++)
        for (int j = 0; j < p->x.n; j++, number++) {
            pixels c = {&p->y.c[i],
                        &p->x.c[j],
                        g->n * p->y.c[i].n * p->x.c[j].n,
                        p->y.c[i].taps * p->x.c[j].taps,
                        p->col + column,
                        p->tk + number * p->channels * p->taps,
                        p->ta + number * p->block * p->taps};
            each(ctx, &c, sliver);
            sliver += (c.columns + NR - 1) / NR;
            column += c.columns;
        }
}

typedef struct work {
    const geom *g;
    const small *p;
    const small_part *part;
    int64_t c0, n;  /* channels of this block */
    int64_t row, m; /* rows of this sliver of A */
    ahead next;     /* the weights of the next one */
    int64_t r0, r1; /* this thread's rows of the output */
    int64_t s0, s1; /* the slivers of columns that it packs */
} work;

/* A sliver of columns in the block that w is at. */
static float *columns_at(const work *w, int64_t sliver)
{
    int64_t block = w->p->whole ? w->c0 / w->p->block : 0;

    return w->p->b + (block * w->p->slivers + sliver) * w->p->b_step;
}

static void fill_tables(void *ctx, const pixels *c, int64_t sliver)
{
    const work *w = ctx;
    const small *p = w->p;
    int32_t *col = c->col, *tk = c->tk, *ta = c->ta;

    for (int64_t n = 0; n < w->g->n; n++)
        for (int i = 0; i < c->y->n; i++)
            for (int j = 0; j < c->x->n; j++)
                *col++ = (int32_t)(n * p->channels * p->sh * p->sw + c->y->base[i] * p->sw + c->x->base[j]);
    for (int64_t q = 0; q < p->channels; q++)
        for (int i = 0; i < c->y->taps; i++)
            for (int j = 0; j < c->x->taps; j++) {
                *tk++ = (int32_t)(q * p->sh * p->sw + c->y->shift[i] * p->sw + c->x->shift[j]);
                if (q < p->block)
                    *ta++ = (int32_t)((q * p->taps + c->y->tap[i] * w->g->kw + c->x->tap[j]) * MR);
            }
}

static void pack_columns(void *ctx, const pixels *c, int64_t sliver)
{
    const work *w = ctx;
    gemm_side side = {.p = w->part->in, .ti = c->col, .tk = c->tk, .rising = !w->part->back};

    for (int64_t j = 0; j < c->columns && c->taps; j += NR, sliver++)
        if (sliver >= w->s0 && sliver < w->s1)
            gemm_pack_b(columns_at(w, sliver), &side, j, c->columns - j < NR ? c->columns - j : NR,
                        w->c0 * c->taps, w->n * c->taps);
}

static void add_products(void *ctx, const pixels *c, int64_t sliver)
{
    work *w = ctx;
    const small *p = w->p;

    for (int64_t j = 0; j < c->columns && c->taps; j += NR, sliver++) {
        ahead_ask(&w->next, false);
        gemm_picked(p->a, c->ta, columns_at(w, sliver), w->n * c->taps,
                    p->sums + (sliver * p->rows + w->row) * NR, w->m, c->columns - j);
    }
}

static void give_out(void *ctx, const pixels *c, int64_t sliver)
{
    const work *w = ctx;
    const small *p = w->p;
    int64_t column = 0, pixels_of = p->oh * p->ow;

    for (int64_t n = 0; n < w->g->n; n++)
        for (int i = 0; i < c->y->n; i++)
            for (int j = 0; j < c->x->n; j++, column++) {
                const float *from = p->sums + (sliver + column / NR) * p->rows * NR + column % NR;
                float *to = w->part->out + n * p->rows * pixels_of + c->y->at[i] * p->ow + c->x->at[j];
                for (int64_t r = w->r0; r < w->r1; r++)
                    to[r * pixels_of] = w->part->bias ? from[r * NR] + w->part->bias[r] : from[r * NR];
            }
}

/* The weights of the sliver of `more` rows that is packed after this one; after the last of a block there is none. */
static ahead next_weights(const work *w, int64_t more)
{
    const float *weights = w->part->w; /* [O,C,KH,KW]; back: rows are channels c, k runs over o */
    int64_t taps = w->p->taps, wide = w->g->c * taps, r = w->row + w->m;
    int parts = (int)w->p->slivers;

    return w->part->back ? ahead_of(weights + w->c0 * wide + r * taps, w->n, more * taps, wide, parts)
                         : ahead_of(weights + r * wide + w->c0 * taps, more, w->n * taps, wide, parts);
}

/* One block of k: columns are packed once, rows sliver by sliver. */
static void one_block(work *w, const gemm_side *weights)
{
    gemm_deal d = gemm_deal_rows(w->r1 - w->r0);

    if (!w->p->whole)
        each_class(w->g, w->p, pack_columns, w);
    w->row = w->r0;
    for (int64_t s = 0; s < d.n; s++) {
        w->m = d.rows + (s < d.longer);
        gemm_pack_a(w->p->a, weights, w->row, w->m, w->c0 * w->p->taps, w->n * w->p->taps);
        w->next = next_weights(w, s + 1 < d.n ? d.rows + (s + 1 < d.longer) : 0);
        each_class(w->g, w->p, add_products, w);
        w->row += w->m;
    }
}

static void next_block(work *w, int64_t c0)
{
    w->c0 = c0;
    w->n = w->p->channels - c0 < w->p->block ? w->p->channels - c0 : w->p->block;
}

/* The tables stay in this thread's scratch, for small_run. */
void small_prepare(const geom *g, const small_part *part, spaces s)
{
    small p = small_plan(g, part->back, part->nth, &s);
    work w = {.g = g, .p = &p, .part = part};

    if (!p.whole)
        return;
    co_share(p.slivers, part->ith, part->nth, &w.s0, &w.s1);
    each_class(g, &p, fill_tables, &w);
    for (int64_t c0 = 0; c0 < p.channels; c0 += p.block) {
        next_block(&w, c0);
        each_class(g, &p, pack_columns, &w);
    }
}

void small_run(const geom *g, const small_part *part, spaces s)
{
    small p = small_plan(g, part->back, part->nth, &s);
    work w = {.g = g, .p = &p, .part = part, .s1 = p.slivers};
    int64_t taps = p.taps;
    gemm_side weights = part->back ? (gemm_side){.p = part->w, .si = taps, .tk = p.wk, .rising = true}
                                   : (gemm_side){.p = part->w, .si = g->c * taps, .sk = 1};

    co_share(p.rows, part->ith, part->nth, &w.r0, &w.r1);
    if (w.r1 <= w.r0)
        return;
    for (int64_t k = 0; k < p.channels * taps; k++)
        p.wk[k] = (int32_t)(k / taps * g->c * taps + k % taps);
    if (!p.whole)
        each_class(g, &p, fill_tables, &w);
    memset(p.sums, 0, (size_t)(p.slivers * p.rows * NR) * sizeof *p.sums);
    for (int64_t c0 = 0; c0 < p.channels; c0 += p.block) {
        next_block(&w, c0);
        one_block(&w, &weights);
    }
    each_class(g, &p, give_out, &w);
}
