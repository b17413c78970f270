/* winograd.c -- 3x3 convolutions of stride 1 by Winograd's algorithm F(2x2, 3x3) (Lavin and Gray, 2016).
 *
 * A tile is 4x4 pixels of the padded input d, and gives 2x2 pixels of the output. For one pair of channels
 *
 *     Y = At [ (G g Gt) . (Bt d B) ] A        16 products instead of 36
 *     dg = Gt [ sum over tiles of (A dY At) . (Bt d B) ] G
 *
 *          1  0  0          1  0 -1  0          1  1  1  0
 *     G = 1/2 1/2 1/2  Bt = 0  1  1  0     At = 0  1 -1 -1
 *         1/2-1/2 1/2       0 -1  1  0
 *          0  0  1          0  1  0 -1
 *
 * so that sums over channels (over tiles, for dg) are 16 matrix products, one for each of the 16 places of a 4x4 tile:
 *
 *     forward, dx   M[xi] [O, tiles] = V[xi] [O, C]     U[xi] [C, tiles]     then the output transform
 *     dw            S[xi] [O, C]     = Z[xi] [O, tiles] U[xi] [C, tiles]^T   then the transform of dg
 *
 * The gradient of the input is the same convolution of dy, with g turned by 180 degrees and the channels changed over.
 * Transforms compute lane by lane, lanes are tiles (of weights: channels); a product's element is one chain of FMAs
 * (gemm.h). So neither the groups of tiles, nor the width of vectors, nor threads change a bit.
 *
 * Threads divide the work in two phases (kernel.h, prepare), so that no transform is made twice:
 *
 *     forward, dx   first V, each its slivers of rows; then each its images (or its rows, if there are few images)
 *     dw            first S, each half of the 16 places, so half of each transform; then each its rows of dw
 */
#include "kernel/simd/winograd_int.h"

#include <string.h>

enum {
    WIN_LEAST_TILES = 64,    /* fewer: transforming the weights costs more than it saves */
    WIN_LEAST_CHANNELS = 32, /* fewer: the tiles' transforms do */
    GROUP_FLOATS = 1 << 17, /* of the transformed tiles of a group, both sides: they stay in the second cache */
};

bool win_fits(const geom *g)
{
    grid t = grid_of(g, 1);

    return g->kh == 3 && g->kw == 3 && g->stride == 1 && g->pad == 1 &&
           g->n * t.th * t.tw >= WIN_LEAST_TILES && g->c >= WIN_LEAST_CHANNELS && g->o >= WIN_LEAST_CHANNELS;
}

/* How the tiles of a call are grouped: whole images, or parts of one image if it is large. */
typedef struct groups {
    int64_t images, tiles; /* in a group */
} groups;

/* A tile has `floats` in the group's transformed tiles of both sides. */
static groups groups_of(const geom *g, const grid *t, int64_t floats, int64_t least)
{
    int64_t one = t->th * t->tw, most = GROUP_FLOATS / floats / NR * NR;
    groups by;

    most = most < least ? least : most;
    by.images = (most + one - 1) / one < g->n ? (most + one - 1) / one : g->n;
    by.tiles = most < by.images * one ? most : by.images * one;
    return by;
}

typedef struct win {
    grid t;
    groups by;
    int64_t u_step, m_step, v_step, v_slab; /* floats between two xi; between two slivers of rows */
    float *v;                               /* of all threads */
    float *planes, *taps, *u, *m;
    int32_t *tap; /* where a tap of a sliver lies */
} win;

static win win_plan(const geom *g, spaces *s)
{
    win w = {.t = grid_of(g, 1)};
    gemm_deal rows = gemm_deal_rows(g->o);

    w.by = groups_of(g, &w.t, XI * (g->c + g->o), NR);
    w.u_step = round_to(w.by.tiles, NR) * g->c;
    w.m_step = round_to(w.by.tiles, NR) * g->o;
    w.v_slab = g->c * MR + VW; /* a store runs past the end, and the next sliver may be another thread's */
    w.v_step = rows.n * w.v_slab;
    w.v = take(&s->shared, XI * w.v_step, sizeof(float));
    w.planes = take(&s->own, w.by.images * g->c * w.t.planes, sizeof(float));
    w.tap = take(&s->own, g->c * 9, sizeof(int32_t));
    w.taps = take(&s->own, g->c * 9 * MR + VW, sizeof(float));
    w.u = take(&s->own, XI * w.u_step, sizeof(float));
    w.m = take(&s->own, XI * w.m_step, sizeof(float));
    return w;
}

spaces win_scratch(const geom *g)
{
    spaces s = {0};

    win_plan(g, &s);
    return s;
}

/* The first row of sliver s. */
static int64_t first_row(const gemm_deal *d, int64_t s)
{
    return s * d->rows + (s < d->longer ? s : d->longer);
}

/* Packs the weights of this thread's slivers of rows, and transforms them. w is [O,C,3,3]; back: [C,O,3,3]. */
void win_prepare(const geom *g, const win_part *part, spaces s)
{
    win w = win_plan(g, &s);
    gemm_deal d = gemm_deal_rows(g->o);
    gemm_side side = part->back ? (gemm_side){.p = part->w, .si = 9, .tk = w.tap, .rising = true}
                                : (gemm_side){.p = part->w, .si = g->c * 9, .sk = 1};
    int64_t s0, s1;

    co_share(d.n, part->ith, part->nth, &s0, &s1);
    for (int64_t k = 0; k < g->c * 9; k++)
        w.tap[k] = (int32_t)(k / 9 * g->o * 9 + k % 9);
    for (int64_t i = s0; i < s1; i++) {
        gemm_pack_a(w.taps, &side, first_row(&d, i), d.rows + (i < d.longer), 0, g->c * 9);
        win_weights(w.v + i * w.v_slab, w.v_step, w.taps, g->c, part->back);
    }
}

/* A thread's share: images [i0, i1) and slivers [s0, s1), which are rows [r0, r1). */
typedef struct win_share {
    int64_t i0, i1, s0, s1, r0, r1;
} win_share;

/* Threads that divide rows all transform all tiles, so they do it only if there are too few images, or so few
 * that the shares would be unequal. */
static win_share win_share_of(const geom *g, const win_part *part)
{
    gemm_deal d = gemm_deal_rows(g->o);
    win_share s = {0, g->n, 0, d.n, 0, 0};
    bool few = g->n < part->nth || (g->n % part->nth && g->n < 4 * part->nth);

    if (few && d.n > g->n)
        co_share(d.n, part->ith, part->nth, &s.s0, &s.s1);
    else
        co_share(g->n, part->ith, part->nth, &s.i0, &s.i1);
    s.r0 = first_row(&d, s.s0);
    s.r1 = first_row(&d, s.s1);
    return s;
}

/* These rows are dealt as the slivers were: fewer than MR places of all slivers are empty. */
static void products(const geom *g, const win *w, const win_share *own, int64_t n)
{
    int64_t rows = own->r1 - own->r0;

    for (int64_t xi = 0; xi < XI; xi++)
        for (int64_t i = 0; i < n; i += NR)
            gemm_sliver(w->v + xi * w->v_step + own->s0 * w->v_slab, w->v_slab, rows,
                        w->u + xi * w->u_step + i * g->c, g->c, w->m + xi * w->m_step + i * rows, false);
}

void win_run(const geom *g, const win_part *part, spaces s)
{
    win w = win_plan(g, &s);
    win_share own = win_share_of(g, part);
    int64_t one = w.t.th * w.t.tw, rows = own.r1 - own.r0;
    tiles in = {&w.t, w.planes, g->c, g->c * w.t.planes, 0, 0, WIN_WHOLE};
    const float *bias = part->bias ? part->bias + own.r0 : NULL;

    if (own.i1 <= own.i0 || rows <= 0)
        return;
    memset(w.planes, 0, (size_t)(w.by.images * in.stride) * sizeof *w.planes);
    for (int64_t i = own.i0; i < own.i1; i += w.by.images) {
        int64_t images = w.by.images < own.i1 - i ? w.by.images : own.i1 - i;
        float *y = part->out + (i * g->o + own.r0) * g->h * g->w;
        win_split(w.planes, part->in + i * g->c * g->h * g->w, images * g->c, g, &w.t);
        for (in.first = 0; in.first < images * one; in.first += w.by.tiles) {
            in.n = images * one - in.first < w.by.tiles ? images * one - in.first : w.by.tiles;
            win_input(w.u, w.u_step, &in);
            products(g, &w, &own, in.n);
            tiles out = in;
            out.stride = g->o * g->h * g->w;
            win_output(y, w.m, w.m_step, rows, bias, g, &out);
        }
    }
}

/* --- the gradient of the weights ------------------------------------------------------------------------ */

/* An even number of threads works in pairs: a pair has some rows of dw, and each of the two half of the places. */
typedef struct dw_share {
    int64_t r0, r1; /* of S */
    win_half half;
    int64_t first, places; /* of S */
    int64_t d0, d1;        /* of these rows, those that it gives to dw */
} dw_share;

static dw_share dw_share_of(const geom *g, int ith, int nth)
{
    bool pairs = nth % 2 == 0;
    int parts = pairs ? nth / 2 : nth;
    dw_share s = {.half = pairs ? (ith % 2 ? WIN_LOWER : WIN_UPPER) : WIN_WHOLE};

    co_share(g->o, pairs ? ith / 2 : ith, parts, &s.r0, &s.r1);
    s.places = places_of(s.half);
    s.first = s.half == WIN_LOWER ? XI / 2 : 0;
    co_share(s.r1 - s.r0, pairs ? ith % 2 : 0, pairs ? 2 : 1, &s.d0, &s.d1);
    return s;
}

typedef struct win_grad {
    grid tx, ty;
    groups by;
    int64_t u_step, z_step, s_step, u_slab, z_slab;
    float *s;     /* of all threads: [xi][thread's rows][sliver of channels][row][NR] */
    float *x, *y; /* planes */
    float *u, *z;
} win_grad;

enum { DW_LEAST_TILES = 64 }; /* of a group: S is read and written once for each */

static win_grad win_grad_plan(const geom *g, int nth, spaces *s)
{
    win_grad w = {.tx = grid_of(g, 1), .ty = grid_of(g, 0)};
    int64_t width, channels = round_to(g->c, NR), places = dw_share_of(g, 0, nth).places;

    w.by = groups_of(g, &w.tx, places * (g->c + g->o), DW_LEAST_TILES);
    width = round_to(w.by.tiles, VW);
    w.u_slab = width * NR;
    w.z_slab = width * MR;
    w.u_step = channels * width;
    w.z_step = gemm_deal_rows(g->o).n * w.z_slab + VW; /* a store runs past the end */
    w.s_step = channels * g->o;
    w.s = take(&s->shared, XI * w.s_step, sizeof(float));
    w.x = take(&s->own, w.by.images * g->c * w.tx.planes, sizeof(float));
    w.y = take(&s->own, w.by.images * g->o * w.ty.planes, sizeof(float));
    w.u = take(&s->own, places * w.u_step, sizeof(float));
    w.z = take(&s->own, places * w.z_step, sizeof(float));
    return w;
}

/* Enough for a thread of a pair and for one alone: fewer threads than planned may make the call. */
spaces win_dw_scratch(const geom *g)
{
    spaces alone = {0}, pair = {0};

    win_grad_plan(g, 1, &alone);
    win_grad_plan(g, 2, &pair);
    return alone.own.used > pair.own.used ? alone : pair;
}

/* The sums of a thread's rows and places. */
static float *sums_of(const geom *g, const win_grad *w, const dw_share *own)
{
    return w->s + own->first * w->s_step + own->r0 * round_to(g->c, NR);
}

static void dw_products(const geom *g, const win_grad *w, const dw_share *own, int64_t n, bool resume)
{
    int64_t rows = own->r1 - own->r0;
    float *s = sums_of(g, w, own);

    for (int64_t xi = 0; xi < own->places; xi++)
        for (int64_t c = 0; c < g->c; c += NR)
            gemm_sliver(w->z + xi * w->z_step, w->z_slab, rows, w->u + xi * w->u_step + c / NR * w->u_slab, n,
                        s + xi * w->s_step + c * rows, resume);
}

/* All tiles are in one group, and one thread has all of them: their sums go to dw at once, not through S. */
static bool dw_at_once(const geom *g, const win_grad *w, int nth)
{
    return nth == 1 && w->by.tiles >= g->n * w->tx.th * w->tx.tw;
}

/* The sums of a sliver of rows and a sliver of channels, all places of it, and from them to dw. */
static void dw_tiles(const geom *g, const dw_part *part, const win_grad *w)
{
    int64_t n = g->n * w->tx.th * w->tx.tw;
    gemm_deal d = gemm_deal_rows(g->o);
    float sums[XI * MR * NR];

    for (int64_t c = 0; c < g->c; c += NR) {
        int64_t channels = g->c - c < NR ? g->c - c : NR;
        for (int64_t i = 0, r = 0; i < d.n; i++) {
            int64_t m = d.rows + (i < d.longer);
            float *dw = part->dw + (r * g->c + c) * 9;
            int64_t more = i + 1 < d.n ? d.rows + (i + 1 < d.longer) : 0;
            ahead next = ahead_of(dw + m * g->c * 9, more, channels * 9, g->c * 9, XI);
            for (int64_t xi = 0; xi < XI; xi++) {
                ahead_ask(&next, true);
                gemm_sliver(w->z + xi * w->z_step + i * w->z_slab, w->z_slab, m,
                            w->u + xi * w->u_step + c / NR * w->u_slab, n, sums + xi * MR * NR, false);
            }
            for (int64_t k = 0; k < m; k++)
                win_dw_row(dw + k * g->c * 9, sums + k * NR, MR * NR, 0, channels, part->add);
            r += m;
        }
    }
}

void win_dw_prepare(const geom *g, const dw_part *part, spaces s)
{
    win_grad w = win_grad_plan(g, part->nth, &s);
    dw_share own = dw_share_of(g, part->ith, part->nth);
    int64_t one = w.tx.th * w.tx.tw, rows = own.r1 - own.r0, plane = g->h * g->w;
    tiles in = {&w.tx, w.x, g->c, g->c * w.tx.planes, 0, 0, own.half};
    tiles out = {&w.ty, w.y, rows, rows * w.ty.planes, 0, 0, own.half};

    if (rows <= 0)
        return;
    memset(w.x, 0, (size_t)(w.by.images * g->c * w.tx.planes) * sizeof *w.x);
    memset(w.y, 0, (size_t)(w.by.images * g->o * w.ty.planes) * sizeof *w.y);
    for (int64_t i = 0; i < g->n; i += w.by.images) {
        int64_t images = w.by.images < g->n - i ? w.by.images : g->n - i;
        win_split(w.x, part->x + i * g->c * plane, images * g->c, g, &w.tx);
        for (int64_t image = 0; image < images; image++)
            win_split(w.y + image * out.stride, part->dy + ((i + image) * g->o + own.r0) * plane, rows, g,
                      &w.ty);
        for (int64_t first = 0; first < images * one; first += w.by.tiles) {
            in.first = out.first = first;
            in.n = out.n = images * one - first < w.by.tiles ? images * one - first : w.by.tiles;
            win_input_turned(w.u, w.u_step, w.u_slab, &in);
            win_dy_turned(w.z, w.z_step, w.z_slab, &out);
            if (!dw_at_once(g, &w, part->nth))
                dw_products(g, &w, &own, in.n, i + first > 0);
        }
    }
}

void win_dw(const geom *g, const dw_part *part, spaces s)
{
    win_grad w = win_grad_plan(g, part->nth, &s);
    dw_share own = dw_share_of(g, part->ith, part->nth);
    int64_t rows = own.r1 - own.r0;

    if (dw_at_once(g, &w, part->nth)) {
        dw_tiles(g, part, &w);
        return;
    }
    own.first = 0; /* all places, by now */
    for (int64_t r = own.d0; r < own.d1; r++)
        win_dw_row(part->dw + (own.r0 + r) * g->c * 9, sums_of(g, &w, &own) + r * NR, w.s_step, rows * NR,
                   g->c, part->add);
}
