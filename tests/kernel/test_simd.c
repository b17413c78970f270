/* Tests every row that a level of src/kernel/simd overwrites: it stays within a stated bound of the
 * reference, gives the same bytes for 1, 2 and 3 threads, and has the same hash with every compiler. Shapes
 * are random and awkward.
 *
 * Bounds, by kind of row:
 *   SAME     the reference's bits
 *   CHAIN    |diff| <= K * 2^-23 * sum |a||b|, K = the length of the sum, which is the reference of |inputs|
 *   NEAR     |diff| <= tol * the largest |value| of that output
 */
#include <math.h>

#include "base/hash.h"
#include "kernel/simd_case.h"

typedef enum { SAME, CHAIN, NEAR } kind;

static int64_t some(uint64_t *rng, int64_t most)
{
    return simd_between(rng, 1, most);
}

/* Sizes up to those given, drawn one after the other. */
#define DRAW(rng, ...)                                                                                       \
    draw(rng, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
static co_shape draw(uint64_t *rng, int nd, const int64_t *most)
{
    co_shape s = {.nd = nd};
    for (int i = 0; i < nd; i++)
        s.d[i] = some(rng, most[i]);
    return s;
}

static void copy_out(simd_case *t, int in)
{
    simd_out(t, t->in[in].shape);
}

/* Any number of dimensions. */
static co_shape any_shape(uint64_t *rng)
{
    return test_u32(rng) % 2 ? DRAW(rng, 90) : DRAW(rng, 5, 7, 9);
}

static void one_in(simd_case *t, uint64_t *rng)
{
    simd_in(t, any_shape(rng), 4, rng);
    copy_out(t, 0);
    t->attr.value = test_unit(rng);
}

static void two_in(simd_case *t, uint64_t *rng)
{
    co_shape s = any_shape(rng);
    simd_in(t, s, 1, rng);
    simd_in(t, s, 4, rng);
    copy_out(t, 0);
}

static void two_in_suffix(simd_case *t, uint64_t *rng)
{
    co_shape s = DRAW(rng, 5, 7, 40);
    simd_in(t, s, 1, rng);
    simd_in(t, test_u32(rng) % 2 ? CO_SHAPE(s.d[2]) : CO_SHAPE(s.d[1], s.d[2]), 1, rng);
    copy_out(t, 0);
}

static void dropout(simd_case *t, uint64_t *rng)
{
    co_shape s = DRAW(rng, 6, 9, 20);
    int64_t n = s.d[0];
    simd_in(t, s, 1, rng);
    int64_t *ids = simd_in_ints(t, CO_SHAPE(n), CO_I64);
    for (int64_t i = 0; i < n; i++)
        ids[i] = test_u32(rng);
    copy_out(t, 0);
    t->attr.p = 0.3f;
    t->attr.stream = test_u32(rng);
    t->run.seed = test_u32(rng);
    t->run.step = test_u32(rng);
}

static void matmul(simd_case *t, uint64_t *rng)
{
    int64_t b = some(rng, 3), m = some(rng, 30), k = some(rng, 300), n = some(rng, 50);
    int ta = t->attr.ta = (int)(test_u32(rng) % 2), tb = t->attr.tb = (int)(test_u32(rng) % 2);
    simd_in(t, ta ? CO_SHAPE(b, k, m) : CO_SHAPE(b, m, k), 1, rng);
    simd_in(t, tb ? CO_SHAPE(b, n, k) : CO_SHAPE(b, k, n), 1, rng);
    simd_out(t, CO_SHAPE(b, m, n));
}

static void tn_sum(simd_case *t, uint64_t *rng)
{
    int64_t r = some(rng, 200), m = some(rng, 40), n = some(rng, 40);
    simd_in(t, CO_SHAPE(r, m), 1, rng);
    simd_in(t, CO_SHAPE(r, n), 1, rng);
    simd_out(t, CO_SHAPE(m, n));
}

static void linear(simd_case *t, uint64_t *rng)
{
    int64_t r = some(rng, 33), i = some(rng, 200), o = some(rng, 70);
    simd_in(t, CO_SHAPE(r, i), 1, rng);
    simd_in(t, CO_SHAPE(o, i), 1, rng);
    if (test_u32(rng) % 2)
        simd_in(t, CO_SHAPE(o), 1, rng);
    simd_out(t, CO_SHAPE(r, o));
}

static void conv_shapes(simd_case *t, co_shape *x, co_shape *w, co_shape *y, uint64_t *rng)
{
    int64_t s = t->attr.stride = (int)some(rng, 2), p = t->attr.pad = (int)simd_between(rng, 0, 2);
    int64_t kh = some(rng, 3), kw = some(rng, 3), h = kh + some(rng, 10), v = kw + some(rng, 10);
    int64_t n = some(rng, 4), c = some(rng, 7), o = some(rng, 18);
    if (test_u32(rng) % 4 == 0) { /* rows of the output that fill vectors, taps that overlap */
        s = t->attr.stride = (int)simd_between(rng, 2, 4);
        p = t->attr.pad = (int)simd_between(rng, 0, 3);
        kw = s + some(rng, 4);
        v = kw + s * simd_between(rng, 7, 20) + some(rng, 3);
    }
    *x = CO_SHAPE(n, c, h, v);
    *w = CO_SHAPE(o, c, kh, kw);
    *y = CO_SHAPE(x->d[0], w->d[0], (h + 2 * p - kh) / s + 1, (v + 2 * p - kw) / s + 1);
}

static void conv(simd_case *t, uint64_t *rng)
{
    co_shape x, w, y;
    conv_shapes(t, &x, &w, &y, rng);
    bool dx = t->op == CO_OP_CONV2D_DX, dw = t->op == CO_OP_CONV2D_DW;
    simd_in(t, dx || dw ? y : x, 1, rng);
    simd_in(t, dw ? x : w, 1, rng);
    if (!dx && !dw)
        simd_in(t, CO_SHAPE(w.d[0]), 1, rng);
    simd_out(t, dx ? x : dw ? w : y);
}

static void sum_rows(simd_case *t, uint64_t *rng)
{
    co_shape s = DRAW(rng, 9, 9, 40);
    simd_in(t, s, 1, rng);
    simd_out(t, CO_SHAPE(s.d[2]));
}

static co_shape images(uint64_t *rng)
{
    return test_u32(rng) % 3 ? DRAW(rng, 5, 9, 9, 9) : DRAW(rng, 10, 20);
}

static void sum_channels(simd_case *t, uint64_t *rng)
{
    co_shape s = images(rng);
    simd_in(t, s, 1, rng);
    simd_out(t, CO_SHAPE(s.d[1]));
}

/* Numbers in [0.5, 1.5). */
static void positive(simd_case *t, co_shape s, uint64_t *rng)
{
    float *p = simd_in(t, s, 0.5f, rng);
    for (int64_t i = 0; i < co_shape_count(&s); i++)
        p[i] += 1;
}

static void batch_norm(simd_case *t, uint64_t *rng)
{
    co_shape s = images(rng), ch = CO_SHAPE(s.d[1]);
    simd_in(t, s, 1, rng);
    simd_in(t, ch, 1, rng);
    simd_in(t, ch, 1, rng);
    t->attr.eps = 1e-5f;
    copy_out(t, 0);
    if (t->op == CO_OP_BATCH_NORM_EVAL) {
        simd_in(t, ch, 1, rng);
        positive(t, ch, rng);
        return;
    }
    for (int i = 0; i < 4; i++)
        simd_out(t, ch);
}

static void norm_grad(simd_case *t, co_shape s, co_shape gamma, co_shape stat, uint64_t *rng)
{
    simd_in(t, s, 1, rng);
    simd_in(t, s, 1, rng);
    simd_in(t, gamma, 1, rng);
    simd_in(t, stat, 1, rng);
    positive(t, stat, rng);
    simd_out(t, s);
    simd_out(t, gamma);
    simd_out(t, gamma);
}

static void batch_norm_grad(simd_case *t, uint64_t *rng)
{
    co_shape s = images(rng);
    norm_grad(t, s, CO_SHAPE(s.d[1]), CO_SHAPE(s.d[1]), rng);
}

static void layer_norm(simd_case *t, uint64_t *rng)
{
    int64_t r = some(rng, 9), c = 1 + some(rng, 70);
    simd_in(t, CO_SHAPE(r, c), 1, rng);
    simd_in(t, CO_SHAPE(c), 1, rng);
    simd_in(t, CO_SHAPE(c), 1, rng);
    t->attr.eps = 1e-5f;
    simd_out(t, CO_SHAPE(r, c));
    simd_out(t, CO_SHAPE(r));
    simd_out(t, CO_SHAPE(r));
}

static void layer_norm_grad(simd_case *t, uint64_t *rng)
{
    int64_t r = some(rng, 9), c = some(rng, 70);
    norm_grad(t, CO_SHAPE(r, c), CO_SHAPE(c), CO_SHAPE(r), rng);
}

/* With ties, nans and -inf. */
static void max_pool(simd_case *t, uint64_t *rng)
{
    int64_t k = some(rng, 4), s = some(rng, 3), p = simd_between(rng, 0, k / 2);
    int64_t n = some(rng, 2), c = some(rng, 3), h = k + some(rng, 9), w = k + some(rng, 40);
    float *x = simd_in(t, CO_SHAPE(n, c, h, w), 4, rng);
    for (int64_t i = 0; i < n * c * h * w; i++) {
        uint32_t odd = test_u32(rng) % 32;
        x[i] = odd == 0 ? NAN : odd < 4 ? -INFINITY : floorf(x[i]);
    }
    t->attr.kh = t->attr.kw = (int)k;
    t->attr.stride = (int)s;
    t->attr.pad = (int)p;
    co_shape y = CO_SHAPE(n, c, (h + 2 * p - k) / s + 1, (w + 2 * p - k) / s + 1);
    simd_out(t, y);
    simd_out(t, y); /* indices: as wide as floats */
}

static void targets(simd_case *t, int64_t r, int64_t classes, uint64_t *rng)
{
    int32_t *p = simd_in_ints(t, CO_SHAPE(r), CO_I32);
    for (int64_t i = 0; i < r; i++)
        p[i] = (int32_t)simd_between(rng, i % 4 ? 0 : -1, classes - 1);
    t->attr.ignore = -1;
    t->attr.smooth = test_u32(rng) % 2 ? 0.1f : 0;
}

static void cross_entropy(simd_case *t, uint64_t *rng)
{
    int64_t r = some(rng, 20), classes = some(rng, 60);
    simd_in(t, CO_SHAPE(r, classes), 5, rng);
    targets(t, r, classes, rng);
    simd_out(t, CO_SHAPE(r));
    simd_out(t, CO_SHAPE(r));
}

/* Whole numbers, so that many are equal. The output is a double: two words. */
static void correct(simd_case *t, uint64_t *rng)
{
    int64_t r = some(rng, 20), classes = some(rng, 60);

    t->attr.k = (int)some(rng, 3);
    simd_in(t, CO_SHAPE(r, classes), 3, rng);
    for (int64_t i = 0; i < r * classes; i++)
        ((float *)t->in[0].p)[i] = rintf(((float *)t->in[0].p)[i]);
    targets(t, r, classes, rng);
    simd_out(t, CO_SHAPE(2));
}

static void cross_entropy_grad(simd_case *t, uint64_t *rng)
{
    int64_t r = some(rng, 20), classes = some(rng, 60);
    simd_in(t, CO_SHAPE(r), 1, rng);
    simd_in(t, CO_SHAPE(r, classes), 5, rng);
    targets(t, r, classes, rng);
    positive(t, CO_SHAPE(r), rng);
    simd_out(t, CO_SHAPE(r, classes));
}

static void attention(simd_case *t, uint64_t *rng)
{
    int64_t b = some(rng, 3), heads = t->attr.heads = (int)some(rng, 3), c = heads * some(rng, 20),
            q = some(rng, 30), k = some(rng, 40);
    t->attr.causal = (int)(test_u32(rng) % 2);
    bool grad = t->op == CO_OP_ATTENTION_GRAD;
    if (grad)
        simd_in(t, CO_SHAPE(b, q, c), 1, rng);
    simd_in(t, CO_SHAPE(b, q, c), 1, rng);
    simd_in(t, CO_SHAPE(b, k, c), 1, rng);
    simd_in(t, CO_SHAPE(b, k, c), 1, rng);
    if (grad) {
        float *p = simd_in(t, CO_SHAPE(b, heads, q, k), 1, rng);
        for (int64_t i = 0; i < b * heads * q * k; i++)
            p[i] = t->attr.causal && i % k > i / k % q ? 0 : p[i] * p[i];
        simd_out(t, CO_SHAPE(b, q, c));
        simd_out(t, CO_SHAPE(b, k, c));
        simd_out(t, CO_SHAPE(b, k, c));
        return;
    }
    if (test_u32(rng) % 2) {
        int32_t *lens = simd_in_ints(t, CO_SHAPE(b), CO_I32);
        for (int64_t i = 0; i < b; i++)
            lens[i] = (int32_t)simd_between(rng, 0, k);
    }
    simd_out(t, CO_SHAPE(b, q, c));
    simd_out(t, CO_SHAPE(b, heads, q, k));
}

/* Offsets of n samples of up to `most` rows; returns the rows of all. */
static int64_t spans(int32_t *at, int64_t n, int64_t most, uint64_t *rng)
{
    for (int64_t i = 0; i < n; i++)
        at[i + 1] = at[i] + (int32_t)simd_between(rng, i == 0 ? 1 : 0, most);
    return at[n];
}

static void ragged_attention(simd_case *t, uint64_t *rng)
{
    int64_t n = some(rng, 4), heads = t->attr.heads = (int)some(rng, 3), c = heads * some(rng, 40);
    int32_t q_at[8] = {0}, k_at[8] = {0};
    bool grad = t->op == CO_OP_RAGGED_ATTENTION_GRAD, own = test_u32(rng) % 2;
    int64_t q = spans(q_at, n, 30, rng), k = spans(k_at, n, 90, rng);

    if (own) {
        memcpy(k_at, q_at, sizeof k_at);
        k = q;
    }
    t->attr.causal = own && test_u32(rng) % 2;
    t->attr.longest = 90;
    t->attr.p = test_u32(rng) % 2 ? 0.3f : 0;
    t->attr.stream = 9;
    for (int i = 0; i < (grad ? 2 : 1); i++)
        simd_in(t, CO_SHAPE(q, c), 1, rng);
    simd_in(t, CO_SHAPE(k, c), 1, rng);
    simd_in(t, CO_SHAPE(k, c), 1, rng);
    if (grad) {
        float *lse = simd_in(t, CO_SHAPE(q, heads), 1, rng);
        for (int64_t i = 0; i < q * heads; i++)
            lse[i] += 3;
    }
    memcpy(simd_in_ints(t, CO_SHAPE(n + 1), CO_I32), q_at, (size_t)(n + 1) * sizeof *q_at);
    memcpy(simd_in_ints(t, CO_SHAPE(n + 1), CO_I32), k_at, (size_t)(n + 1) * sizeof *k_at);
    if (t->attr.p > 0)
        simd_in_ints(t, CO_SHAPE(n), CO_I64);
    simd_out(t, CO_SHAPE(q, c));
    simd_out(t, grad ? CO_SHAPE(k, c) : CO_SHAPE(q, heads));
    if (grad)
        simd_out(t, CO_SHAPE(k, c));
}

/* n row numbers below `rows`; some rows do not exist, many repeat. */
static void row_numbers(simd_case *t, int64_t n, int64_t rows, uint64_t *rng)
{
    int32_t *at = simd_in_ints(t, CO_SHAPE(n), CO_I32);

    for (int64_t i = 0; i < n; i++)
        at[i] = (int32_t)simd_between(rng, -1, rows);
}

static void pair_score(simd_case *t, uint64_t *rng)
{
    int64_t n = some(rng, 60), d = some(rng, 80), a = some(rng, 40), b = some(rng, 40);

    simd_in(t, CO_SHAPE(a, d), 1, rng);
    simd_in(t, CO_SHAPE(b, d), 1, rng);
    simd_in(t, CO_SHAPE(a, 1), 1, rng);
    simd_in(t, CO_SHAPE(b, 1), 1, rng);
    simd_in(t, CO_SHAPE(1), 1, rng);
    row_numbers(t, n, a, rng);
    row_numbers(t, n, b, rng);
    simd_out(t, CO_SHAPE(n, 1));
}

static void pair_rows(simd_case *t, uint64_t *rng)
{
    int64_t n = some(rng, 60), d = some(rng, 80), a = t->attr.rows = some(rng, 90), b = some(rng, 40),
            cap = n < a ? n : a;

    simd_in(t, CO_SHAPE(n, 1), 1, rng);
    simd_in(t, CO_SHAPE(b, d), 1, rng);
    row_numbers(t, n, a, rng);
    row_numbers(t, n, b, rng);
    for (int list = 0; list < 2; list++) { /* gradients of the rows, then of their biases */
        simd_out(t, CO_SHAPE(cap, list == 0 ? d : 1));
        simd_out(t, CO_SHAPE(cap));
        simd_out(t, CO_SHAPE(1));
    }
}

static const struct row {
    co_op op;
    void (*make)(simd_case *t, uint64_t *rng);
    kind kind;
    double tol;
    uint64_t hash; /* of the outputs of HASHED cases, the same from gcc and clang */
} rows[] = {
    {CO_OP_MATMUL, matmul, CHAIN, 0, 0xcf3fbba9e9a24e84},
    {CO_OP_MATMUL_TN_SUM, tn_sum, CHAIN, 0, 0x4c703003aa365a84},
    {CO_OP_LINEAR, linear, CHAIN, 0, 0x97c589c6f650ee89},
    {CO_OP_CONV2D, conv, CHAIN, 0, 0x4ecf2bcd711076d3},
    {CO_OP_CONV2D_DX, conv, CHAIN, 0, 0x60d477adac9522f9},
    {CO_OP_CONV2D_DW, conv, CHAIN, 0, 0xce17a23b58702480},
    {CO_OP_SUM_ROWS, sum_rows, SAME, 0, 0x152e7e26d2c7aa3b},
    {CO_OP_SUM_CHANNELS, sum_channels, NEAR, 0x1p-23, 0xedb93243fc072a0b},
    {CO_OP_BATCH_NORM, batch_norm, NEAR, 0x1p-21, 0x013d3ccb5286579f},
    {CO_OP_BATCH_NORM_GRAD, batch_norm_grad, NEAR, 0x1p-21, 0xe07afbbe851968b7},
    {CO_OP_BATCH_NORM_EVAL, batch_norm, SAME, 0, 0xb90ae15babf68a33},
    {CO_OP_LAYER_NORM, layer_norm, NEAR, 0x1p-21, 0x8b5218177fbe0452},
    {CO_OP_LAYER_NORM_GRAD, layer_norm_grad, NEAR, 0x1p-21, 0x5044ce7cbec5d606},
    {CO_OP_MAX_POOL, max_pool, SAME, 0, 0xbd66399d6859bc44},
    {CO_OP_RELU, one_in, SAME, 0, 0x5076ee820ebd2094},
    {CO_OP_RELU_GRAD, two_in, SAME, 0, 0x1af5635f3caa1a49},
    {CO_OP_GELU, one_in, NEAR, 0x1p-22, 0x70423a71d4f87643},
    {CO_OP_GELU_GRAD, two_in, NEAR, 0x1p-22, 0x6067e779b3074074},
    {CO_OP_SOFTMAX, one_in, NEAR, 0x1p-21, 0xa8eb4ca2d9160a0e},
    {CO_OP_SOFTMAX_GRAD, two_in, NEAR, 0x1p-21, 0x07e79d00801927a9},
    {CO_OP_DROPOUT, dropout, SAME, 0, 0x71452dfeec7fddaa},
    {CO_OP_ADD, two_in_suffix, SAME, 0, 0xca19d3a53fdac1f9},
    {CO_OP_MUL, two_in_suffix, SAME, 0, 0xa0156ca1fa103120},
    {CO_OP_SCALE, one_in, SAME, 0, 0x91998626a29697c4},
    {CO_OP_ATTENTION, attention, NEAR, 0x1p-19, 0x05541eae3d478ed7},
    {CO_OP_ATTENTION_GRAD, attention, NEAR, 0x1p-19, 0xa2761891010e14ec},
    {CO_OP_RAGGED_ATTENTION, ragged_attention, NEAR, 0x1p-19, 0x5d979bbdf5ebfc7d},
    {CO_OP_RAGGED_ATTENTION_GRAD, ragged_attention, NEAR, 0x1p-19, 0x04e17aa7af4f8e68},
    {CO_OP_CROSS_ENTROPY, cross_entropy, NEAR, 0x1p-22, 0xdab4d2292d790385},
    {CO_OP_CROSS_ENTROPY_GRAD, cross_entropy_grad, NEAR, 0x1p-22, 0xa04913475fd54309},
    {CO_OP_PAIR_SCORE, pair_score, SAME, 0, 0x944de24736ba526e},
    {CO_OP_PAIR_ROWS, pair_rows, SAME, 0, 0x985cb49aa2fd3268},
    {CO_OP_CORRECT, correct, SAME, 0, 0xe8f8bad3c54599ae},
};

static void rows_are_known(const co_kernels *k)
{
    const co_kernels *ref = simd_provider("ref");
    for (int op = 0; op < CO_OP_COUNT; op++) {
        bool known = false;
        for (size_t i = 0; i < CO_COUNT(rows); i++)
            known |= rows[i].op == (co_op)op;
        CHECK(known == (k->row[op].fn != ref->row[op].fn), "%s", co_op_name((co_op)op));
    }
}

TEST(simd_tests_know_every_row_that_the_level_overwrites)
{
    simd_each_level(rows_are_known);
}

/* The length of the sum that gives each element of output 0. */
static double chain_length(const simd_case *t)
{
    const co_shape *a = &t->in[0].shape, *b = &t->in[1].shape;
    switch (t->op) {
    case CO_OP_MATMUL:
        return (double)a->d[t->attr.ta ? 1 : 2];
    case CO_OP_MATMUL_TN_SUM:
        return (double)a->d[0];
    case CO_OP_LINEAR:
        return (double)a->d[1];
    case CO_OP_CONV2D:
        return (double)(b->d[1] * b->d[2] * b->d[3]);
    case CO_OP_CONV2D_DX:
        return (double)(b->d[0] * b->d[2] * b->d[3]);
    default:
        return (double)(a->d[0] * a->d[2] * a->d[3]); /* CONV2D_DW */
    }
}

/* The reference of |inputs|, which is sum |a||b| (and |bias|). */
static float *magnitudes(const co_kernels *ref, const simd_case *t)
{
    simd_case m = *t;
    for (int i = 0; i < t->n_in; i++) {
        int64_t n = co_shape_count(&t->in[i].shape);
        float *p = m.in[i].p = co_alloc(simd_bytes(&t->in[i]));
        for (int64_t j = 0; j < n; j++)
            p[j] = fabsf(((const float *)t->in[i].p)[j]);
    }
    simd_run(ref, &m, 1); /* into t's output, which the caller has kept */
    for (int i = 0; i < t->n_in; i++)
        co_free(m.in[i].p);
    return simd_keep(t, 0);
}

static double largest(const float *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
    return most;
}

static void compare(const struct row *r, const simd_case *t, int out, const float *got, const float *want,
                    const float *sums)
{
    int64_t n = co_shape_count(&t->out[out].shape);
    double most = largest(want, n);
    for (int64_t i = 0; i < n; i++) {
        double bound = r->kind == NEAR    ? r->tol * most
                       : r->kind == CHAIN ? chain_length(t) * 0x1p-23 * sums[i]
                                          : 0;
        if (r->kind == SAME)
            CHECK(!memcmp(&got[i], &want[i], sizeof *got), "%s output %d[%lld]: %a, reference %a",
                  co_op_name(r->op), out, (long long)i, got[i], want[i]);
        else
            CHECK(fabs((double)got[i] - want[i]) <= bound,
                  "%s output %d[%lld]: %.9g, reference %.9g, bound %.3g", co_op_name(r->op), out,
                  (long long)i, got[i], want[i], bound);
    }
}

static void rows_are_near_the_reference(const co_kernels *k)
{
    const co_kernels *ref = simd_provider("ref");
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        for (uint64_t round = 0; round < 60; round++) {
            uint64_t rng = 1000 * (i + 1) + round;
            void *got[CO_MAX_OUT];
            simd_case t = {.op = rows[i].op};
            rows[i].make(&t, &rng);
            simd_run_threads(k, &t);
            for (int o = 0; o < t.n_out; o++)
                got[o] = simd_keep(&t, o);
            float *sums = rows[i].kind == CHAIN ? magnitudes(ref, &t) : NULL;
            simd_run(ref, &t, 1);
            for (int o = 0; o < t.n_out; o++) {
                compare(&rows[i], &t, o, got[o], t.out[o].p, sums);
                co_free(got[o]);
            }
            co_free(sums);
            simd_free(&t);
        }
}

TEST(simd_rows_agree_with_the_reference_within_their_bounds)
{
    simd_each_level(rows_are_near_the_reference);
}

/* Change a hash here only together with the version of the table: a changed hash means changed weights. */
static void rows_have_their_hashes(const co_kernels *k)
{
    bool all = true;
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        uint64_t sum[20], rng = 77;
        for (size_t n = 0; n < CO_COUNT(sum); n++) {
            simd_case t = {.op = rows[i].op};
            rows[i].make(&t, &rng);
            simd_run(k, &t, 1);
            sum[n] = 0;
            for (int o = 0; o < t.n_out; o++)
                sum[n] = sum[n] * 31 + co_fnv1a64(t.out[o].p, simd_bytes(&t.out[o]));
            simd_free(&t);
        }
        uint64_t hash = co_fnv1a64(sum, sizeof sum);
        if (hash != rows[i].hash) {
            test_note("%s %s: 0x%016llx", k->level, co_op_name(rows[i].op), (unsigned long long)hash);
            all = false;
        }
    }
    CHECK(all, "hashes of the rows above have changed");
}

TEST(simd_rows_give_the_same_bits_from_every_compiler)
{
    simd_each_level(rows_have_their_hashes);
}

/* The order of sums.h, element by element. */
static float sum_in_order(const float *x, int64_t n)
{
    double p[16] = {0};
    for (int64_t i = 0; i < n; i++)
        p[i % 16] += (double)x[i];
    for (int step = 8; step >= 2; step /= 2)
        for (int l = 0; l < step; l++)
            p[l] += p[l + step];
    return (float)(p[0] + p[1]);
}

/* Every large number also occurs negated, so the result consists of rounding errors, which show the order of
 * the sum. */
static void rows_are_summed_in_order(const co_kernels *k)
{
    uint64_t rng = 5;
    for (int64_t n = 2; n < 400; n++) {
        simd_case t = {.op = CO_OP_SUM_CHANNELS};
        float *x = simd_in(&t, CO_SHAPE(1, 1, n), 1, &rng);
        for (int64_t i = 0; i + 1 < n; i += 2) {
            x[i] = ldexpf(x[i], (int)(test_u32(&rng) % 60));
            x[i + 1] = -x[i];
        }
        for (int64_t i = n - 1; i > 0; i--) {
            int64_t j = simd_between(&rng, 0, i);
            float swapped = x[i];
            x[i] = x[j], x[j] = swapped;
        }
        simd_out(&t, CO_SHAPE(1));
        simd_run(k, &t, 1);
        float got = *(float *)t.out[0].p, want = sum_in_order(x, n);
        CHECK(got == want, "%s: a row of %d: %a, in the order of sums.h %a", k->level, (int)n, got, want);
        simd_free(&t);
    }
}

TEST(simd_rows_are_summed_in_the_order_of_sums_h)
{
    simd_each_level(rows_are_summed_in_order);
}
