/* winograd_tiles.c -- splits images into planes, and transforms tiles (winograd.c has the algorithm).
 *
 * Tiles overlap, and every second pixel begins one. So a padded image is first split into four planes, by odd
 * and even rows and columns: neighbouring tiles then lie next to each other in each plane, and a vector holds
 * VW of them.
 */
#include "kernel/simd/winograd_int.h"

#include <string.h>

void win_split(float *dst, const float *src, int64_t channels, const geom *g, const grid *t)
{
    int64_t plane = t->ph * t->pw;

    for (int64_t c = 0; c < channels; c++, dst += t->planes)
        for (int64_t y = 0; y < g->h; y++, src += g->w) {
            float *rows = dst + ((y + t->border) & 1) * 2 * plane + (y + t->border) / 2 * t->pw;
            if (t->border) /* pixel 0 is column 1 of the padded image */
                split_row(rows + plane, rows + 1, src, g->w);
            else
                split_row(rows, rows + plane, src, g->w);
        }
}

/* --- lanes: VW tiles, one after the other, of a group of images ----------------------------------------- */

/* Where the lanes lie: side by side, in runs of VW / 2, of VW / 4, of 2, or anywhere. */
typedef enum { LANES_RUN, LANES_HALVES, LANES_QUARTERS, LANES_PAIRS, LANES_ANY } lanes_kind;
typedef struct lanes {
    lanes_kind kind;
    int32_t at[VW]; /* of each tile, in the planes of the first channel of the group's first image */
} lanes;

/* Are the tiles of every run of n neighbours? Places rise with the tiles, so comparing the ends of a run is enough. */
static bool are_runs(const int32_t at[VW], int64_t n, int64_t apart)
{
    for (int64_t i = 0; i < VW; i += n)
        if (at[i + n - 1] - at[i] != apart)
            return false;
    return true;
}

/* Of a plane with rows of pw and images `stride` apart; tiles from n on repeat the last one. */
static lanes lanes_of(const grid *t, int64_t stride, int64_t first, int64_t n)
{
    lanes l = {LANES_ANY, {0}};

    for (int64_t i = 0; i < VW; i++) {
        int64_t tile = first + i < n ? first + i : n - 1, in_image = tile % (t->th * t->tw);
        l.at[i] = (int32_t)(tile / (t->th * t->tw) * stride + in_image / t->tw * t->pw + in_image % t->tw);
    }
    if (first + VW > n)
        return l;
    l.kind = are_runs(l.at, VW, VW - 1)           ? LANES_RUN
             : are_runs(l.at, VW / 2, VW / 2 - 1) ? LANES_HALVES
             : are_runs(l.at, VW / 4, VW / 4 - 1) ? LANES_QUARTERS
             : are_runs(l.at, 2, 1)               ? LANES_PAIRS
                                                  : LANES_ANY;
    return l;
}

ALWAYS_INLINE vf load_lanes(const float *p, const lanes *l, lanes_kind kind)
{
    const int32_t *at = l->at;

    return kind == LANES_RUN      ? v_load(p + at[0])
           : kind == LANES_HALVES ? v_load_halves(p + at[0], p + at[VW / 2])
           : kind == LANES_QUARTERS
               ? v_load_quarters(p + at[0], p + at[VW / 4], p + at[VW / 2], p + at[3 * VW / 4])
           : kind == LANES_PAIRS ? v_load_pairs(p, at)
                                 : v_gather(p, vi_load(at));
}

/* --- transforms ----------------------------------------------------------------------------------------- */

ALWAYS_INLINE bool is_in(int row, win_half half)
{
    return half == WIN_WHOLE || (half == WIN_UPPER) == (row < 2);
}

/* Bt d B of VW tiles of one channel: u + xi * step. */
ALWAYS_INLINE void input_tile(float *u, int64_t step, const float *p, const grid *t, const lanes *l,
                              lanes_kind kind, win_half half)
{
    int64_t plane = t->ph * t->pw;
    vf r[4][4];

    UNROLL for (int j = 0; j < 4; j++)
    {
        const float *col = p + (j & 1) * plane + j / 2;
        vf d0 = load_lanes(col, l, kind), d1 = load_lanes(col + 2 * plane, l, kind);
        vf d2 = load_lanes(col + t->pw, l, kind), d3 = load_lanes(col + 2 * plane + t->pw, l, kind);
        r[0][j] = d0 - d2, r[1][j] = d1 + d2, r[2][j] = d2 - d1, r[3][j] = d1 - d3;
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        float *to = u + 4 * (half == WIN_LOWER ? i - 2 : i) * step;
        if (!is_in(i, half))
            continue;
        v_store(to, r[i][0] - r[i][2]);
        v_store(to + step, r[i][1] + r[i][2]);
        v_store(to + 2 * step, r[i][2] - r[i][1]);
        v_store(to + 3 * step, r[i][1] - r[i][3]);
    }
}

/* A dY At of VW tiles of one channel. */
ALWAYS_INLINE void dy_tile(float *z, int64_t step, const float *p, const grid *t, const lanes *l,
                           lanes_kind kind, win_half half)
{
    int64_t plane = t->ph * t->pw;
    vf r[4][2];

    UNROLL for (int j = 0; j < 2; j++)
    {
        vf y0 = load_lanes(p + j * plane, l, kind), y1 = load_lanes(p + (2 + j) * plane, l, kind);
        r[0][j] = y0, r[1][j] = y0 + y1, r[2][j] = y0 - y1, r[3][j] = v_zero() - y1;
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        float *to = z + 4 * (half == WIN_LOWER ? i - 2 : i) * step;
        if (!is_in(i, half))
            continue;
        v_store(to, r[i][0]);
        v_store(to + step, r[i][0] + r[i][1]);
        v_store(to + 2 * step, r[i][0] - r[i][1]);
        v_store(to + 3 * step, v_zero() - r[i][1]);
    }
}

typedef void tile_fn(float *out, int64_t step, const float *p, const grid *t, const lanes *l);
#define TILE_FN(name, tile, kind, half)                                                                      \
    static void name(float *out, int64_t step, const float *p, const grid *t, const lanes *l)                \
    {                                                                                                        \
        tile(out, step, p, t, l, kind, half);                                                                \
    }
#define TILE_FNS(name, tile, half)                                                                           \
    TILE_FN(name##_run, tile, LANES_RUN, half)                                                               \
    TILE_FN(name##_halves, tile, LANES_HALVES, half)                                                         \
    TILE_FN(name##_quarters, tile, LANES_QUARTERS, half)                                                     \
    TILE_FN(name##_pairs, tile, LANES_PAIRS, half)                                                           \
    TILE_FN(name##_any, tile, LANES_ANY, half)
TILE_FNS(input, input_tile, WIN_WHOLE)
TILE_FNS(input_upper, input_tile, WIN_UPPER)
TILE_FNS(input_lower, input_tile, WIN_LOWER)
TILE_FNS(dy, dy_tile, WIN_WHOLE)
TILE_FNS(dy_upper, dy_tile, WIN_UPPER)
TILE_FNS(dy_lower, dy_tile, WIN_LOWER)

static tile_fn *tile_for(const tiles *in, lanes_kind kind)
{
#define KINDS(name)                                                                                          \
    {                                                                                                        \
        name##_run, name##_halves, name##_quarters, name##_pairs, name##_any                                 \
    }
    static tile_fn *const by_kind[2][3][5] = {{KINDS(dy), KINDS(dy_upper), KINDS(dy_lower)},
                                              {KINDS(input), KINDS(input_upper), KINDS(input_lower)}};
#undef KINDS

    return by_kind[in->t->border][in->half][kind];
}

void win_input(float *u, int64_t step, const tiles *in)
{
    for (int64_t i = 0; i < round_to(in->n, NR); i += VW) {
        lanes l = lanes_of(in->t, in->stride, in->first + i, in->first + in->n);
        tile_fn *fn = tile_for(in, l.kind);
        float *out = u + i / NR * NR * in->channels + i % NR;
        for (int64_t c = 0; c < in->channels; c++)
            fn(out + c * NR, step, in->planes + c * in->t->planes, in->t, &l);
    }
}

/* VW tiles of n channels from c on (n <= VW), turned: lanes become channels. out + xi * step + tile *
 * width. */
static void turn_block(float *out, int64_t step, int64_t width, const tiles *in, const lanes *l, int64_t c,
                       int64_t n)
{
    float buf[XI * VW * VW];
    tile_fn *fn = tile_for(in, l->kind);

    for (int64_t i = 0; i < n; i++)
        fn(buf + i * VW, VW * VW, in->planes + (c + i) * in->t->planes, in->t, l);
    for (int64_t xi = 0; xi < places_of(in->half); xi++) {
        const float *row[VW];
        vf r[VW];
        for (int64_t i = 0; i < VW; i++)
            row[i] = buf + xi * VW * VW + (i < n ? i : n - 1) * VW;
        v_load_turned(r, row, 0, VW);
        UNROLL for (int k = 0; k < VW; k++) v_store(out + xi * step + k * width, r[k]);
    }
}

void win_input_turned(float *u, int64_t step, int64_t slab, const tiles *in)
{
    for (int64_t i = 0; i < in->n; i += VW) {
        lanes l = lanes_of(in->t, in->stride, in->first + i, in->first + in->n);
        for (int64_t c = 0; c < in->channels; c += VW) {
            int64_t n = in->channels - c < VW ? in->channels - c : VW;
            turn_block(u + c / NR * slab + i * NR + c % NR, step, NR, in, &l, c, n);
        }
    }
}

/* A store of VW floats runs past the MR of its tile, so tiles are done in order, and slivers too. */
void win_dy_turned(float *z, int64_t step, int64_t slab, const tiles *in)
{
    gemm_deal d = gemm_deal_rows(in->channels);

    for (int64_t s = 0, c = 0; s < d.n; s++) {
        int64_t m = d.rows + (s < d.longer);
        for (int64_t i = 0; i < in->n; i += VW) {
            lanes l = lanes_of(in->t, in->stride, in->first + i, in->first + in->n);
            turn_block(z + s * slab + i * MR, step, MR, in, &l, c, m);
        }
        c += m;
    }
}

/* --- output --------------------------------------------------------------------------------------------- */

/* Where the output of VW tiles goes in a plane of one channel: two rows of two pixels for each lane. */
typedef struct place {
    int64_t h, w;
    int64_t run;    /* so many tiles lie side by side: VW / 2, VW / 4 or 2; 0: none, or pixels are missing */
    int32_t at[VW]; /* each tile's first pixel */
    int64_t n;      /* lanes that exist */
} place;

static place place_of(const geom *g, const grid *t, int64_t stride, int64_t first, int64_t n)
{
    place p = {.h = g->h, .w = g->w, .n = n - first < VW ? n - first : VW};

    for (int64_t i = 0; i < VW; i++) {
        int64_t tile = first + i < n ? first + i : n - 1, in_image = tile % (t->th * t->tw);
        p.at[i] =
            (int32_t)(tile / (t->th * t->tw) * stride + 2 * (in_image / t->tw) * g->w + 2 * (in_image % t->tw));
    }
    if (p.n == VW && g->h % 2 == 0 && g->w % 2 == 0)
        for (int64_t run = VW / 2; run >= 2 && !p.run; run /= 2)
            p.run = are_runs(p.at, run, 2 * run - 2) ? run : 0;
    return p;
}

/* `run` is a constant where this is called. */
ALWAYS_INLINE void store_runs(float *y, const place *p, vf out[2][2], int64_t run)
{
    float buf[2 * VW];

    UNROLL for (int r = 0; r < 2; r++)
    {
        vf lo, hi;
        v_zip(&lo, &hi, out[r][0], out[r][1]);
        v_store(buf, lo);
        v_store(buf + VW, hi);
        UNROLL for (int64_t i = 0; i < VW; i += run)
            memcpy(y + p->at[i] + r * p->w, buf + 2 * i, 2 * (size_t)run * sizeof *buf);
    }
}

static void store_pixels(float *y, const place *p, vf out[2][2], const grid *t, int64_t first)
{
    float buf[4][VW];
    for (int i = 0; i < 4; i++)
        v_store(buf[i], out[i / 2][i % 2]);
    for (int64_t i = 0; i < p->n; i++) {
        int64_t in_image = (first + i) % (t->th * t->tw), row = 2 * (in_image / t->tw),
                col = 2 * (in_image % t->tw);
        for (int64_t k = 0; k < 4; k++)
            if (row + k / 2 < p->h && col + k % 2 < p->w)
                y[p->at[i] + k / 2 * p->w + k % 2] = buf[k][i];
    }
}

ALWAYS_INLINE void store_tiles(float *y, const place *p, vf out[2][2], const grid *t, int64_t first)
{
    if (p->run == VW / 2)
        store_runs(y, p, out, VW / 2);
    else if (p->run == VW / 4)
        store_runs(y, p, out, VW / 4);
    else if (p->run == 2)
        store_runs(y, p, out, 2);
    else
        store_pixels(y, p, out, t, first);
}

/* At M A of VW tiles of one channel. */
ALWAYS_INLINE void output_tile(vf out[2][2], const float *m, int64_t step, vf bias)
{
    vf r[2][4];

    UNROLL for (int j = 0; j < 4; j++)
    {
        vf m0 = v_load(m + j * step), m1 = v_load(m + (4 + j) * step), m2 = v_load(m + (8 + j) * step);
        vf m3 = v_load(m + (12 + j) * step);
        r[0][j] = (m0 + m1) + m2, r[1][j] = (m1 - m2) - m3;
    }
    UNROLL for (int i = 0; i < 2; i++)
    {
        out[i][0] = ((r[i][0] + r[i][1]) + r[i][2]) + bias;
        out[i][1] = ((r[i][1] - r[i][2]) - r[i][3]) + bias;
    }
}

void win_output(float *y, const float *m, int64_t step, int64_t rows, const float *bias, const geom *g,
                const tiles *at)
{
    for (int64_t i = 0; i < at->n; i += VW) {
        place p = place_of(g, at->t, at->stride, at->first + i, at->first + at->n);
        const float *from = m + i / NR * NR * rows + i % NR;
        for (int64_t r = 0; r < rows; r++) {
            vf out[2][2];
            output_tile(out, from + r * NR, step, bias ? v_set(bias[r]) : v_zero());
            store_tiles(y + r * g->h * g->w, &p, out, at->t, at->first + i);
        }
    }
}
