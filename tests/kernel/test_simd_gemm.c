/* Compares the matrix products and convolutions of every level of src/kernel/simd with their definition:
 * every element is one chain of fma over k in index order from +0, then the bias. The results must agree to
 * the bit, for shapes just below, at and above every block size. */
#include "kernel/simd_case.h"

static void same(const simd_case *t, const float *want, const char *what)
{
    const float *got = t->out[0].p;
    for (int64_t i = 0; i < co_shape_count(&t->out[0].shape); i++)
        CHECK(!memcmp(&got[i], &want[i], sizeof *got), "%s %s: element %lld is %a, the chain gives %a",
              co_op_name(t->op), what, (long long)i, got[i], want[i]);
}

static void matmul_case(const co_kernels *k, int64_t b, int64_t m, int64_t kk, int64_t n, int ta, int tb,
                        int shared, uint64_t *rng)
{
    simd_case t = {.op = CO_OP_MATMUL, .attr = {.ta = ta, .tb = tb}};
    co_shape sb = tb ? CO_SHAPE(b, n, kk) : CO_SHAPE(b, kk, n);
    if (shared)
        sb = tb ? CO_SHAPE(n, kk) : CO_SHAPE(kk, n);
    const float *x = simd_in(&t, ta ? CO_SHAPE(b, kk, m) : CO_SHAPE(b, m, kk), 1, rng);
    const float *y = simd_in(&t, sb, 1, rng);
    simd_out(&t, CO_SHAPE(b, m, n));
    float *want = co_array((size_t)(b * m * n), sizeof *want);
    for (int64_t i = 0; i < b; i++)
        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < n; c++) {
                const float *p = x + i * m * kk, *q = y + (shared ? 0 : i * kk * n);
                float s = 0;
                for (int64_t j = 0; j < kk; j++)
                    s = __builtin_fmaf(ta ? p[j * m + r] : p[r * kk + j], tb ? q[c * kk + j] : q[j * n + c], s);
                want[(i * m + r) * n + c] = s;
            }
    char what[96];
    snprintf(what, sizeof what, "b=%d m=%d k=%d n=%d ta=%d tb=%d shared=%d", (int)b, (int)m, (int)kk, (int)n,
             ta, tb, shared);
    simd_run_threads(k, &t);
    same(&t, want, what);
    co_free(want);
    simd_free(&t);
}

static void matmul_is_a_chain(const co_kernels *k)
{
    uint64_t rng = 1;
    for (int i = 0; i < 160; i++) {
        int64_t m = simd_between(&rng, 1, 40), n = simd_between(&rng, 1, 70), kk = simd_between(&rng, 1, 90);
        matmul_case(k, simd_between(&rng, 1, 4), m, kk, n, i & 1, i >> 1 & 1, i >> 2 & 1, &rng);
    }
    for (int i = 0; i < 4; i++) { /* several blocks of k, of rows, of columns */
        matmul_case(k, 1, 100, 520, 66, i & 1, i >> 1, 0, &rng);
        matmul_case(k, 1, 7, 257, 530, i & 1, i >> 1, 0, &rng);
        matmul_case(k, 2, 200, 3, 1, i & 1, i >> 1, 0, &rng);
        matmul_case(k, 1, 3, 0, 5, i & 1, i >> 1, 0, &rng);
        matmul_case(k, 1, 600, 5, 520, i & 1, i >> 1, 0, &rng);
    }
}

TEST(simd_matmul_is_one_chain_of_fma_per_element)
{
    simd_each_level(matmul_is_a_chain);
}

static void linear_is_a_chain_and_a_bias(const co_kernels *k)
{
    uint64_t rng = 2;
    for (int i = 0; i < 120; i++) {
        int64_t r = simd_between(&rng, 1, 40), in = simd_between(&rng, 1, i % 10 ? 80 : 600),
                out = simd_between(&rng, 1, 70);
        simd_case t = {.op = CO_OP_LINEAR};
        const float *x = simd_in(&t, CO_SHAPE(r, in), 1, &rng), *w = simd_in(&t, CO_SHAPE(out, in), 1, &rng);
        const float *b = i % 3 ? simd_in(&t, CO_SHAPE(out), 1, &rng) : NULL;
        simd_out(&t, CO_SHAPE(r, out));
        float *want = co_array((size_t)(r * out), sizeof *want);
        for (int64_t a = 0; a < r; a++)
            for (int64_t o = 0; o < out; o++) {
                float s = 0;
                for (int64_t j = 0; j < in; j++)
                    s = __builtin_fmaf(x[a * in + j], w[o * in + j], s);
                want[a * out + o] = b ? s + b[o] : s;
            }
        simd_run_threads(k, &t);
        same(&t, want, "random");
        co_free(want);
        simd_free(&t);
    }
}

TEST(simd_linear_adds_the_bias_after_the_chain)
{
    simd_each_level(linear_is_a_chain_and_a_bias);
}

static void tn_sum_is_a_chain(const co_kernels *k)
{
    uint64_t rng = 3;
    for (int i = 0; i < 60; i++) {
        int64_t r1 = simd_between(&rng, 1, 5), r2 = simd_between(&rng, 1, 80), m = simd_between(&rng, 1, 40),
                n = simd_between(&rng, 1, 40);
        simd_case t = {.op = CO_OP_MATMUL_TN_SUM};
        const float *a = simd_in(&t, CO_SHAPE(r1, r2, m), 1, &rng),
                    *b = simd_in(&t, CO_SHAPE(r1, r2, n), 1, &rng);
        simd_out(&t, CO_SHAPE(m, n));
        float *want = co_array((size_t)(m * n), sizeof *want);
        for (int64_t x = 0; x < m; x++)
            for (int64_t y = 0; y < n; y++)
                for (int64_t r = 0; r < r1 * r2; r++)
                    want[x * n + y] = __builtin_fmaf(a[r * m + x], b[r * n + y], want[x * n + y]);
        simd_run_threads(k, &t);
        same(&t, want, "random");
        co_free(want);
        simd_free(&t);
    }
}

TEST(simd_matmul_tn_sum_runs_over_the_rows_in_order)
{
    simd_each_level(tn_sum_is_a_chain);
}

/* ---- convolutions ---- */

typedef struct conv {
    int64_t n, c, h, w, o, kh, kw, s, p, oh, ow;
} conv;

static float pixel(const float *x, const conv *g, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return h < 0 || h >= g->h || w < 0 || w >= g->w ? 0 : x[((n * g->c + c) * g->h + h) * g->w + w];
}

static float *chain_y(const conv *g, const float *x, const float *w, const float *bias)
{
    float *y = co_array((size_t)(g->n * g->o * g->oh * g->ow), sizeof *y), *at = y;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t o = 0; o < g->o; o++)
            for (int64_t i = 0; i < g->oh; i++)
                for (int64_t j = 0; j < g->ow; j++, at++) {
                    const float *tap = w + o * g->c * g->kh * g->kw;
                    for (int64_t c = 0; c < g->c; c++)
                        for (int64_t a = 0; a < g->kh; a++)
                            for (int64_t b = 0; b < g->kw; b++)
                                *at = __builtin_fmaf(
                                    *tap++, pixel(x, g, n, c, i * g->s + a - g->p, j * g->s + b - g->p), *at);
                    if (bias)
                        *at += bias[o];
                }
    return y;
}

/* The chain of a pixel leaves out taps that the stride never aligns with it; positions outside dy are
 * zeros. */
static float *chain_dx(const conv *g, const float *dy, const float *w)
{
    float *dx = co_array((size_t)(g->n * g->c * g->h * g->w), sizeof *dx), *at = dx;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t c = 0; c < g->c; c++)
            for (int64_t i = 0; i < g->h; i++)
                for (int64_t j = 0; j < g->w; j++, at++)
                    for (int64_t o = 0; o < g->o; o++)
                        for (int64_t a = 0; a < g->kh; a++)
                            for (int64_t b = 0; b < g->kw; b++) {
                                int64_t y = i + g->p - a, x = j + g->p - b;
                                if (y % g->s || x % g->s)
                                    continue;
                                y /= g->s, x /= g->s;
                                bool in = y >= 0 && y < g->oh && x >= 0 && x < g->ow;
                                *at = __builtin_fmaf(w[((o * g->c + c) * g->kh + a) * g->kw + b],
                                                     in ? dy[((n * g->o + o) * g->oh + y) * g->ow + x] : 0,
                                                     *at);
                            }
    return dx;
}

static float *chain_dw(const conv *g, const float *dy, const float *x)
{
    float *dw = co_array((size_t)(g->o * g->c * g->kh * g->kw), sizeof *dw), *at = dw;
    for (int64_t o = 0; o < g->o; o++)
        for (int64_t c = 0; c < g->c; c++)
            for (int64_t a = 0; a < g->kh; a++)
                for (int64_t b = 0; b < g->kw; b++, at++)
                    for (int64_t n = 0; n < g->n; n++)
                        for (int64_t i = 0; i < g->oh; i++)
                            for (int64_t j = 0; j < g->ow; j++)
                                *at = __builtin_fmaf(
                                    dy[((n * g->o + o) * g->oh + i) * g->ow + j],
                                    pixel(x, g, n, c, i * g->s + a - g->p, j * g->s + b - g->p), *at);
    return dw;
}

static void conv_case(const co_kernels *k, conv g, bool biased, uint64_t *rng)
{
    g.oh = (g.h + 2 * g.p - g.kh) / g.s + 1, g.ow = (g.w + 2 * g.p - g.kw) / g.s + 1;
    co_attr attr = {.stride = (int)g.s, .pad = (int)g.p};
    simd_case f = {.op = CO_OP_CONV2D, .attr = attr}, d = {.op = CO_OP_CONV2D_DX, .attr = attr},
              e = {.op = CO_OP_CONV2D_DW, .attr = attr};
    co_shape sx = CO_SHAPE(g.n, g.c, g.h, g.w), sw = CO_SHAPE(g.o, g.c, g.kh, g.kw),
             sy = CO_SHAPE(g.n, g.o, g.oh, g.ow);
    char what[128];
    snprintf(what, sizeof what, "n=%d %dx%dx%d -> %d by %dx%d stride %d pad %d", (int)g.n, (int)g.c, (int)g.h,
             (int)g.w, (int)g.o, (int)g.kh, (int)g.kw, (int)g.s, (int)g.p);

    const float *x = simd_in(&f, sx, 1, rng), *w = simd_in(&f, sw, 1, rng);
    const float *b = biased ? simd_in(&f, CO_SHAPE(g.o), 1, rng) : NULL;
    simd_out(&f, sy);
    simd_run_threads(k, &f);
    float *want = chain_y(&g, x, w, b);
    same(&f, want, what);
    co_free(want);

    const float *dy = simd_in(&d, sy, 1, rng);
    memcpy(simd_in(&d, sw, 1, rng), w, simd_bytes(&f.in[1]));
    simd_out(&d, sx);
    simd_run_threads(k, &d);
    want = chain_dx(&g, dy, w);
    same(&d, want, what);
    co_free(want);

    memcpy(simd_in(&e, sy, 1, rng), dy, simd_bytes(&d.in[0]));
    memcpy(simd_in(&e, sx, 1, rng), x, simd_bytes(&f.in[0]));
    simd_out(&e, sw);
    simd_run_threads(k, &e);
    want = chain_dw(&g, dy, x);
    same(&e, want, what);
    co_free(want);
    simd_free(&f), simd_free(&d), simd_free(&e);
}

static void convolutions_are_chains(const co_kernels *k)
{
    uint64_t rng = 4;
    for (int i = 0; i < 250; i++) {
        conv g = {.n = simd_between(&rng, 1, 5), .c = simd_between(&rng, 1, 9), .o = simd_between(&rng, 1, 20)};
        g.kh = simd_between(&rng, 1, 4), g.kw = simd_between(&rng, 1, 4);
        g.s = simd_between(&rng, 1, 3), g.p = simd_between(&rng, 0, 3);
        g.h = g.kh + simd_between(&rng, 0, 9), g.w = g.kw + simd_between(&rng, 0, 9);
        conv_case(k, g, i & 1, &rng);
    }
    static const conv usual[] = {
        {16, 1, 8, 8, 16, 3, 3, 1, 1}, {4, 16, 8, 8, 32, 3, 3, 1, 1},  {2, 8, 16, 16, 8, 3, 3, 2, 1},
        {3, 40, 4, 4, 24, 3, 3, 1, 1}, {2, 3, 32, 32, 10, 7, 7, 2, 3}, {3, 16, 8, 8, 20, 1, 1, 2, 0},
        {2, 16, 8, 8, 20, 1, 1, 1, 0}, {1, 1, 28, 28, 6, 5, 5, 1, 0},  {9, 33, 2, 2, 17, 3, 3, 1, 1},
        {2, 20, 5, 6, 19, 5, 5, 2, 2}, {1, 16, 1, 1, 16, 3, 3, 1, 1},  {3, 18, 4, 3, 21, 4, 3, 2, 1},
        {5, 40, 8, 8, 35, 5, 5, 1, 2}, {2, 24, 9, 34, 18, 3, 3, 2, 1}, {2, 17, 6, 50, 9, 1, 1, 2, 0},
    };
    for (size_t i = 0; i < CO_COUNT(usual); i++)
        conv_case(k, usual[i], i & 1, &rng);
}

TEST(simd_convolutions_and_their_gradients_are_chains_in_index_order)
{
    simd_each_level(convolutions_are_chains);
}
