/* 3x3 convolutions by Winograd's algorithm: to the bit what src/kernel/simd/winograd.c says, written here
 * once more in plain loops; and close to the exact result. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "kernel/simd_case.h"

typedef struct picture {
    int64_t n, c, h, w, o;
} picture;

/* The four sums of each transform, as rows of 4 (or 3, or 2). */
static void along(float out[4], const float *d, int step) /* Bt */
{
    out[0] = d[0] - d[2 * step], out[1] = d[step] + d[2 * step];
    out[2] = d[2 * step] - d[step], out[3] = d[step] - d[3 * step];
}

static void input_tile(float u[16], const float *x, const picture *g, int64_t n, int64_t c, int64_t ty,
                       int64_t tx)
{
    float d[16], r[16], line[4];

    for (int i = 0; i < 16; i++) {
        int64_t y = 2 * ty - 1 + i / 4, z = 2 * tx - 1 + i % 4;
        bool in = y >= 0 && y < g->h && z >= 0 && z < g->w;
        d[i] = in ? x[((n * g->c + c) * g->h + y) * g->w + z] : 0;
    }
    for (int j = 0; j < 4; j++) {
        along(line, d + j, 4);
        for (int i = 0; i < 4; i++)
            r[4 * i + j] = line[i];
    }
    for (int i = 0; i < 4; i++)
        along(u + 4 * i, r + 4 * i, 1);
}

static void weights_line(float out[4], float a, float b, float c)
{
    out[0] = a, out[1] = ((a + c) + b) * 0.5f, out[2] = ((a + c) - b) * 0.5f, out[3] = c;
}

static void weights_tile(float v[16], const float k[9])
{
    float r[4][3], line[4];

    for (int j = 0; j < 3; j++) {
        weights_line(line, k[j], k[3 + j], k[6 + j]);
        for (int i = 0; i < 4; i++)
            r[i][j] = line[i];
    }
    for (int i = 0; i < 4; i++)
        weights_line(v + 4 * i, r[i][0], r[i][1], r[i][2]);
}

static void output_tile(float y[4], const float m[16])
{
    float r[2][4];

    for (int j = 0; j < 4; j++) {
        r[0][j] = (m[j] + m[4 + j]) + m[8 + j];
        r[1][j] = (m[4 + j] - m[8 + j]) - m[12 + j];
    }
    for (int i = 0; i < 2; i++) {
        y[2 * i] = (r[i][0] + r[i][1]) + r[i][2];
        y[2 * i + 1] = (r[i][1] - r[i][2]) - r[i][3];
    }
}

/* The kernel of pair (o, c); back: of the gradient of the input, where w is [C,O,3,3]. */
static void kernel_of(float k[9], const float *w, const picture *g, int64_t o, int64_t c, bool back)
{
    const float *p = w + (back ? c * g->o + o : o * g->c + c) * 9;

    for (int i = 0; i < 9; i++)
        k[i] = p[back ? 8 - i : i];
}

static float *want_run(const picture *g, const float *x, const float *w, const float *bias, bool back)
{
    float *y = co_array((size_t)(g->n * g->o * g->h * g->w), sizeof *y), k[9], v[16], u[16], out[4];

    for (int64_t n = 0; n < g->n; n++)
        for (int64_t ty = 0; ty < (g->h + 1) / 2; ty++)
            for (int64_t tx = 0; tx < (g->w + 1) / 2; tx++)
                for (int64_t o = 0; o < g->o; o++) {
                    float m[16] = {0};
                    for (int64_t c = 0; c < g->c; c++) {
                        kernel_of(k, w, g, o, c, back);
                        weights_tile(v, k);
                        input_tile(u, x, g, n, c, ty, tx);
                        for (int xi = 0; xi < 16; xi++)
                            m[xi] = __builtin_fmaf(v[xi], u[xi], m[xi]);
                    }
                    output_tile(out, m);
                    for (int i = 0; i < 4; i++)
                        if (2 * ty + i / 2 < g->h && 2 * tx + i % 2 < g->w)
                            y[((n * g->o + o) * g->h + 2 * ty + i / 2) * g->w + 2 * tx + i % 2] =
                                out[i] + (bias ? bias[o] : 0.0f);
                }
    return y;
}

static void dy_tile(float z[16], const float *dy, const picture *g, int64_t n, int64_t o, int64_t ty, int64_t tx)
{
    float d[4], r[4][2];

    for (int i = 0; i < 4; i++) {
        int64_t y = 2 * ty + i / 2, x = 2 * tx + i % 2;
        d[i] = y < g->h && x < g->w ? dy[((n * g->o + o) * g->h + y) * g->w + x] : 0;
    }
    for (int j = 0; j < 2; j++)
        r[0][j] = d[j], r[1][j] = d[j] + d[2 + j], r[2][j] = d[j] - d[2 + j], r[3][j] = 0.0f - d[2 + j];
    for (int i = 0; i < 4; i++) {
        z[4 * i] = r[i][0], z[4 * i + 1] = r[i][0] + r[i][1];
        z[4 * i + 2] = r[i][0] - r[i][1], z[4 * i + 3] = 0.0f - r[i][1];
    }
}

static void dw_line(float out[3], float a, float b, float c, float d)
{
    float mid = (b + c) * 0.5f;
    out[0] = a + mid, out[1] = (b - c) * 0.5f, out[2] = mid + d;
}

static float *want_dw(const picture *g, const float *dy, const float *x)
{
    float *dw = co_array((size_t)(g->o * g->c * 9), sizeof *dw), u[16], z[16], r[3][4], line[3];

    for (int64_t o = 0; o < g->o; o++)
        for (int64_t c = 0; c < g->c; c++) {
            float s[16] = {0}, *out = dw + (o * g->c + c) * 9;
            for (int64_t n = 0; n < g->n; n++)
                for (int64_t ty = 0; ty < (g->h + 1) / 2; ty++)
                    for (int64_t tx = 0; tx < (g->w + 1) / 2; tx++) {
                        input_tile(u, x, g, n, c, ty, tx);
                        dy_tile(z, dy, g, n, o, ty, tx);
                        for (int xi = 0; xi < 16; xi++)
                            s[xi] = __builtin_fmaf(z[xi], u[xi], s[xi]);
                    }
            for (int j = 0; j < 4; j++) {
                dw_line(line, s[j], s[4 + j], s[8 + j], s[12 + j]);
                for (int i = 0; i < 3; i++)
                    r[i][j] = line[i];
            }
            for (int i = 0; i < 3; i++)
                dw_line(out + 3 * i, r[i][0], r[i][1], r[i][2], r[i][3]);
        }
    return dw;
}

/* The kernel's output is `want`, whatever the number of threads. */
static void is(const co_kernels *k, simd_case *f, float *want, const picture *g)
{
    simd_run_threads(k, f);
    const float *got = f->out[0].p;
    for (int64_t i = 0; i < co_shape_count(&f->out[0].shape); i++)
        CHECK(!memcmp(got + i, want + i, sizeof *got), "%s n=%d %dx%dx%d -> %d: element %lld is %a, not %a",
              co_op_name(f->op), (int)g->n, (int)g->c, (int)g->h, (int)g->w, (int)g->o, (long long)i,
              (double)got[i], (double)want[i]);
    co_free(want);
}

static void one_picture(const co_kernels *k, picture g, bool biased, uint64_t *rng)
{
    co_attr attr = {.stride = 1, .pad = 1};
    simd_case f = {.op = CO_OP_CONV2D, .attr = attr}, d = {.op = CO_OP_CONV2D_DX, .attr = attr},
              e = {.op = CO_OP_CONV2D_DW, .attr = attr};
    co_shape sx = CO_SHAPE(g.n, g.c, g.h, g.w), sw = CO_SHAPE(g.o, g.c, 3, 3),
             sy = CO_SHAPE(g.n, g.o, g.h, g.w);
    picture back = {g.n, g.o, g.h, g.w, g.c};

    const float *x = simd_in(&f, sx, 1, rng), *w = simd_in(&f, sw, 1, rng);
    const float *b = biased ? simd_in(&f, CO_SHAPE(g.o), 1, rng) : NULL;
    simd_out(&f, sy);
    is(k, &f, want_run(&g, x, w, b, false), &g);

    const float *dy = simd_in(&d, sy, 1, rng);
    memcpy(simd_in(&d, sw, 1, rng), w, simd_bytes(&f.in[1]));
    simd_out(&d, sx);
    is(k, &d, want_run(&back, dy, w, NULL, true), &g);

    memcpy(simd_in(&e, sy, 1, rng), dy, simd_bytes(&d.in[0]));
    memcpy(simd_in(&e, sx, 1, rng), x, simd_bytes(&f.in[0]));
    simd_out(&e, sw);
    is(k, &e, want_dw(&g, dy, x), &g);
    simd_free(&f), simd_free(&d), simd_free(&e);
}

static void each_picture(const co_kernels *k)
{
    /* Runs of tiles, halves, gathers; odd sizes, of one pixel too; slivers that are not full; several groups of
     * tiles. */
    static const picture all[] = {
        {2, 32, 16, 16, 33}, {5, 40, 8, 8, 32},   {16, 33, 4, 4, 35}, {4, 32, 7, 9, 39},  {64, 32, 2, 2, 37},
        {1, 32, 28, 30, 32}, {3, 47, 11, 14, 34}, {70, 32, 1, 1, 33}, {9, 40, 1, 17, 36}, {33, 34, 3, 2, 32}};
    uint64_t rng = 11;

    for (size_t i = 0; i < CO_COUNT(all); i++)
        one_picture(k, all[i], i & 1, &rng);
}

TEST(simd_winograd_convolutions_are_to_the_bit_what_their_page_says)
{
    simd_each_level(each_picture);
}

/* The error is at most this share of the sum of |w||x|, which no rounding of inputs can be told from. */
#define WINOGRAD_BOUND 3e-7

static void exactly(const co_kernels *k)
{
    picture g = {2, 128, 16, 16, 32};
    uint64_t rng = 5;
    double worst = 0;
    simd_case f = {.op = CO_OP_CONV2D, .attr = {.stride = 1, .pad = 1}};
    const float *x = simd_in(&f, CO_SHAPE(g.n, g.c, g.h, g.w), 1, &rng);
    const float *w = simd_in(&f, CO_SHAPE(g.o, g.c, 3, 3), 1, &rng);

    simd_out(&f, CO_SHAPE(g.n, g.o, g.h, g.w));
    simd_run_threads(k, &f);
    for (int64_t i = 0; i < co_shape_count(&f.out[0].shape); i++) {
        int64_t n = i / (g.o * g.h * g.w), o = i / (g.h * g.w) % g.o, y = i / g.w % g.h, z = i % g.w;
        double sum = 0, size = 0;
        for (int64_t t = 0; t < g.c * 9; t++) {
            int64_t a = y + t / 3 % 3 - 1, b = z + t % 3 - 1;
            if (a < 0 || a >= g.h || b < 0 || b >= g.w)
                continue;
            double product = (double)w[o * g.c * 9 + t] * x[((n * g.c + t / 9) * g.h + a) * g.w + b];
            sum += product, size += fabs(product);
        }
        double error = fabs(((float *)f.out[0].p)[i] - sum) / size;
        worst = error > worst ? error : worst;
    }
    test_note("level %s: at worst %.2g of the sum of absolute products", k->level, worst);
    CHECK(worst <= WINOGRAD_BOUND, "%g", worst);
    simd_free(&f);
}

TEST(simd_winograd_convolutions_are_close_to_exact_ones)
{
    simd_each_level(exactly);
}

/* Tables of offsets have 32 bits: so many small pictures are not one group. */
static void in_groups(const co_kernels *k)
{
    co_attr attr = {.stride = 2, .pad = 1};
    co_arg in[] = {{.dtype = CO_F32, .shape = CO_SHAPE(1 << 20, 256, 4, 4)},
                   {.dtype = CO_F32, .shape = CO_SHAPE(256, 256, 3, 3)}};
    co_arg out[] = {{.dtype = CO_F32, .shape = CO_SHAPE(1 << 20, 256, 2, 2)}};
    co_call call = {.attr = &attr, .in = in, .out = out, .n_in = 2, .n_out = 1, .nth = 1};

    size_t bytes = k->row[CO_OP_CONV2D].scratch(&call);
    CHECK(bytes < 64 << 20, "%zu bytes of scratch: the pictures are one group", bytes);
}

TEST(simd_convolutions_of_a_million_small_pictures_are_done_in_groups)
{
    simd_each_level(in_groups);
}
