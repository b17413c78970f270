/* conv_small_dw.c -- the gradient of the weights of convolutions of small pictures, without products with padding.
 *
 * dw of one tap is a product over the positions of dy whose source pixel exists: one of four on 2 x 2 pixels for the
 * corners of a 3x3 kernel, all four for its middle. dy and x are packed once, position by position; each tap picks its
 * positions of both (gemm_paired). The sums of all taps of a tile go to a buffer, and from there to dw, whose taps lie
 * side by side.
 *
 * The chain of a weight is that of conv.c without its zeros, so no bit changes.
 */
#include "kernel/simd/conv_int.h"

enum { POSITIONS_MOST = 1024 }; /* the packed slivers of a tile stay in the first cache */

bool small_dw_fits(const geom *g)
{
    return small_fits(g) && g->n * g->oh * g->ow <= POSITIONS_MOST && g->n * g->h * g->w <= 4 * POSITIONS_MOST;
}

typedef struct small_dw_plan {
    int64_t taps, positions, sources; /* of dy, of x, over all images */
    float *a;                         /* [sliver of rows][position][MR] */
    float *b;                         /* of all threads: [sliver of channels][source][NR] */
    float *sums;                      /* [tap][MR][NR] */
    int32_t *at_y, *at_x;             /* where position and source lie, from row or channel 0 */
    int32_t *ta, *tb, *n; /* [tap][]: its positions and sources as offsets in slivers; [tap]: how many */
} small_dw_plan;

static small_dw_plan plan_of(const geom *g, spaces *s)
{
    small_dw_plan p = {.taps = g->kh * g->kw, .positions = g->n * g->oh * g->ow, .sources = g->n * g->h * g->w};

    p.a = take(&s->own, gemm_deal_rows(g->o).n * p.positions * MR + VW, sizeof(float));
    p.b = take(&s->shared, (g->c + NR - 1) / NR * p.sources * NR, sizeof(float));
    p.sums = take(&s->own, p.taps * MR * NR, sizeof(float));
    p.at_y = take(&s->own, p.positions, sizeof(int32_t));
    p.at_x = take(&s->own, p.sources, sizeof(int32_t));
    p.ta = take(&s->own, p.taps * p.positions, sizeof(int32_t));
    p.tb = take(&s->own, p.taps * p.positions, sizeof(int32_t));
    p.n = take(&s->own, p.taps, sizeof(int32_t));
    return p;
}

spaces small_dw_scratch(const geom *g)
{
    spaces s = {0};

    plan_of(g, &s);
    return s;
}

static void list_positions(int32_t *at, int64_t images, int64_t channels, int64_t pixels)
{
    for (int64_t n = 0; n < images; n++)
        for (int64_t i = 0; i < pixels; i++)
            *at++ = (int32_t)(n * channels * pixels + i);
}

/* The positions that have tap (kh, kw), image by image and row by row. */
static void list_tap(const geom *g, const small_dw_plan *p, int64_t kh, int64_t kw)
{
    int64_t tap = kh * g->kw + kw, n = 0;
    int32_t *ta = p->ta + tap * p->positions, *tb = p->tb + tap * p->positions;

    for (int64_t image = 0; image < g->n; image++)
        for (int64_t y = 0; y < g->oh; y++)
            for (int64_t x = 0; x < g->ow; x++) {
                int64_t sy = y * g->stride - g->pad + kh, sx = x * g->stride - g->pad + kw;
                if (sy < 0 || sy >= g->h || sx < 0 || sx >= g->w)
                    continue;
                ta[n] = (int32_t)(((image * g->oh + y) * g->ow + x) * MR);
                tb[n++] = (int32_t)(((image * g->h + sy) * g->w + sx) * NR);
            }
    p->n[tap] = (int32_t)n;
}

/* Packs this thread's slivers of channels. */
void small_dw_prepare(const geom *g, const dw_part *part, spaces s)
{
    small_dw_plan p = plan_of(g, &s);
    gemm_side channels = {.p = part->x, .si = g->h * g->w, .tk = p.at_x, .rising = true};
    int64_t s0, s1;

    co_share((g->c + NR - 1) / NR, part->ith, part->nth, &s0, &s1);
    list_positions(p.at_x, g->n, g->c, g->h * g->w);
    for (int64_t c = s0 * NR; c < g->c && c < s1 * NR; c += NR)
        gemm_pack_b(p.b + c * p.sources, &channels, c, g->c - c < NR ? g->c - c : NR, 0, p.sources);
}

static void pack_rows(const geom *g, const small_dw_plan *p, const float *dy, int64_t r0, int64_t r1)
{
    gemm_side rows = {.p = dy, .si = g->oh * g->ow, .tk = p->at_y, .rising = true};
    gemm_deal d = gemm_deal_rows(r1 - r0);

    list_positions(p->at_y, g->n, g->o, g->oh * g->ow);
    for (int64_t s = 0, r = r0; s < d.n; s++) {
        int64_t m = d.rows + (s < d.longer);
        gemm_pack_a(p->a + s * p->positions * MR, &rows, r, m, 0, p->positions);
        r += m;
    }
}

void small_dw(const geom *g, const dw_part *part, spaces s)
{
    small_dw_plan p = plan_of(g, &s);
    int64_t r0, r1;

    co_share(g->o, part->ith, part->nth, &r0, &r1);
    if (r1 <= r0)
        return;
    gemm_deal d = gemm_deal_rows(r1 - r0);
    for (int64_t kh = 0; kh < g->kh; kh++)
        for (int64_t kw = 0; kw < g->kw; kw++)
            list_tap(g, &p, kh, kw);
    pack_rows(g, &p, part->dy, r0, r1);
    gemm_pairs taps = {p.taps, p.positions, p.ta, p.tb, p.n};
    for (int64_t sliver = 0, r = r0; sliver < d.n; sliver++) {
        int64_t m = d.rows + (sliver < d.longer);
        for (int64_t c = 0; c < g->c; c += NR) {
            int64_t n = g->c - c < NR ? g->c - c : NR;
            int64_t more = g->c - c - n < NR ? g->c - c - n : NR;
            ahead next =
                ahead_of(part->dw + (r * g->c + c + n) * p.taps, m, more * p.taps, g->c * p.taps, (int)p.taps);
            gemm_paired(&taps, p.a + sliver * p.positions * MR, p.b + c * p.sources, p.sums, m, &next);
            for (int64_t i = 0; i < m; i++)
                taps_give(part->dw + ((r + i) * g->c + c) * p.taps, p.sums + i * NR, MR * NR, p.taps, n,
                          part->add);
        }
        r += m;
    }
}
