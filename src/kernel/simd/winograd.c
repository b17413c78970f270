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

static groups groups_of(const geom *g, const grid *t, int64_t least)
{
    int64_t one = t->th * t->tw, most = GROUP_FLOATS / XI / (g->c + g->o) / NR * NR;
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
    float *planes, *taps, *v, *u, *m;
    int32_t *tap; /* where a tap of a sliver lies */
} win;

static win win_plan(const geom *g, space *s)
{
    win w = {.t = grid_of(g, 1)};
    gemm_deal rows = gemm_deal_rows(g->o);

    w.by = groups_of(g, &w.t, NR);
    w.u_step = round_to(w.by.tiles, NR) * g->c;
    w.m_step = round_to(w.by.tiles, NR) * g->o;
    w.v_slab = g->c * MR;
    w.v_step = rows.n * w.v_slab + VW; /* a store runs past the end */
    w.planes = take(s, w.by.images * g->c * w.t.planes, sizeof(float));
    w.tap = take(s, g->c * 9, sizeof(int32_t));
    w.taps = take(s, g->c * 9 * MR + VW, sizeof(float));
    w.v = take(s, XI * w.v_step, sizeof(float));
    w.u = take(s, XI * w.u_step, sizeof(float));
    w.m = take(s, XI * w.m_step, sizeof(float));
    return w;
}

size_t win_scratch(const geom *g)
{
    space s = {0};

    win_plan(g, &s);
    return s.used;
}

/* Packs the weights of these rows of the output, sliver by sliver, and transforms them. w is [O,C,3,3]; back:
 * [C,O,3,3]. */
static void pack_weights(const win *w, const geom *g, const win_part *part)
{
    gemm_deal d = gemm_deal_rows(part->r1 - part->r0);
    gemm_side side = part->back ? (gemm_side){.p = part->w, .si = 9, .tk = w->tap, .rising = true}
                                : (gemm_side){.p = part->w, .si = g->c * 9, .sk = 1};

    for (int64_t k = 0; k < g->c * 9; k++)
        w->tap[k] = (int32_t)(k / 9 * g->o * 9 + k % 9);
    for (int64_t s = 0, r = part->r0; s < d.n; s++) {
        int64_t m = d.rows + (s < d.longer);
        gemm_pack_a(w->taps, &side, r, m, 0, g->c * 9);
        win_weights(w->v + s * w->v_slab, w->v_step, w->taps, g->c, part->back);
        r += m;
    }
}

static void products(const geom *g, const win *w, int64_t rows, int64_t n)
{
    for (int64_t xi = 0; xi < XI; xi++)
        for (int64_t i = 0; i < n; i += NR)
            gemm_sliver(w->v + xi * w->v_step, w->v_slab, rows, w->u + xi * w->u_step + i * g->c, g->c,
                        w->m + xi * w->m_step + i * rows, false);
}

void win_run(const geom *g, const win_part *part, space s)
{
    win w = win_plan(g, &s);
    int64_t one = w.t.th * w.t.tw, rows = part->r1 - part->r0;
    tiles in = {&w.t, w.planes, g->c, g->c * w.t.planes, 0, 0};
    const float *bias = part->bias ? part->bias + part->r0 : NULL;

    if (part->i1 <= part->i0 || rows <= 0)
        return;
    pack_weights(&w, g, part);
    memset(w.planes, 0, (size_t)(w.by.images * in.stride) * sizeof *w.planes);
    for (int64_t i = part->i0; i < part->i1; i += w.by.images) {
        int64_t images = w.by.images < part->i1 - i ? w.by.images : part->i1 - i;
        float *y = part->out + (i * g->o + part->r0) * g->h * g->w;
        win_split(w.planes, part->in + i * g->c * g->h * g->w, images * g->c, g, &w.t);
        for (in.first = 0; in.first < images * one; in.first += w.by.tiles) {
            in.n = images * one - in.first < w.by.tiles ? images * one - in.first : w.by.tiles;
            win_input(w.u, w.u_step, &in);
            products(g, &w, rows, in.n);
            tiles out = in;
            out.stride = g->o * g->h * g->w;
            win_output(y, w.m, w.m_step, rows, bias, g, &out);
        }
    }
}

typedef struct win_grad {
    grid tx, ty;
    groups by;
    int64_t u_step, z_step, s_step, u_slab, z_slab;
    float *x, *y; /* planes */
    float *u, *z, *s;
} win_grad;

enum { DW_LEAST_TILES = 64 }; /* of a group: S is read and written once for each */

static win_grad win_grad_plan(const geom *g, space *s)
{
    win_grad w = {.tx = grid_of(g, 1), .ty = grid_of(g, 0)};
    int64_t width, channels = round_to(g->c, NR);

    w.by = groups_of(g, &w.tx, DW_LEAST_TILES);
    width = round_to(w.by.tiles, VW);
    w.u_slab = width * NR;
    w.z_slab = width * MR;
    w.u_step = channels * width;
    w.z_step = gemm_deal_rows(g->o).n * w.z_slab + VW; /* a store runs past the end */
    w.s_step = channels * g->o;
    w.x = take(s, w.by.images * g->c * w.tx.planes, sizeof(float));
    w.y = take(s, w.by.images * g->o * w.ty.planes, sizeof(float));
    w.u = take(s, XI * w.u_step, sizeof(float));
    w.z = take(s, XI * w.z_step, sizeof(float));
    w.s = take(s, XI * w.s_step, sizeof(float));
    return w;
}

size_t win_dw_scratch(const geom *g)
{
    space s = {0};

    win_grad_plan(g, &s);
    return s.used;
}

static void dw_products(const geom *g, const win_grad *w, int64_t rows, int64_t n, bool resume)
{
    for (int64_t xi = 0; xi < XI; xi++)
        for (int64_t c = 0; c < g->c; c += NR)
            gemm_sliver(w->z + xi * w->z_step, w->z_slab, rows, w->u + xi * w->u_step + c / NR * w->u_slab, n,
                        w->s + xi * w->s_step + c * rows, resume);
}

void win_dw(const geom *g, const dw_part *part, space s)
{
    win_grad w = win_grad_plan(g, &s);
    int64_t one = w.tx.th * w.tx.tw, r0 = part->r0, rows = part->r1 - r0, plane = g->h * g->w;
    tiles in = {&w.tx, w.x, g->c, g->c * w.tx.planes, 0, 0};
    tiles out = {&w.ty, w.y, rows, rows * w.ty.planes, 0, 0};

    if (rows <= 0)
        return;
    memset(w.x, 0, (size_t)(w.by.images * g->c * w.tx.planes) * sizeof *w.x);
    memset(w.y, 0, (size_t)(w.by.images * g->o * w.ty.planes) * sizeof *w.y);
    for (int64_t i = 0; i < g->n; i += w.by.images) {
        int64_t images = w.by.images < g->n - i ? w.by.images : g->n - i;
        win_split(w.x, part->x + i * g->c * plane, images * g->c, g, &w.tx);
        for (int64_t image = 0; image < images; image++)
            win_split(w.y + image * out.stride, part->dy + ((i + image) * g->o + r0) * plane, rows, g, &w.ty);
        for (int64_t first = 0; first < images * one; first += w.by.tiles) {
            in.first = out.first = first;
            in.n = out.n = images * one - first < w.by.tiles ? images * one - first : w.by.tiles;
            win_input_turned(w.u, w.u_step, w.u_slab, &in);
            win_dy_turned(w.z, w.z_step, w.z_slab, &out);
            dw_products(g, &w, rows, in.n, i + first > 0);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        win_dw_row(part->dw + (r0 + r) * g->c * 9, w.s + r * NR, w.s_step, rows * NR, g->c, part->add);
}
