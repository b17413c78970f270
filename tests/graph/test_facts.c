/* test_facts.c -- what a call is said to cost: FLOPs by the definition and useful ones, counted by hand and pair by
 * pair; bytes; the algorithm. */
#include <string.h>

#include "graph/rig.h"
#include "harness.h"

static const co_init one = {CO_INIT_UNIFORM, 1};

/* The facts of the only call of this operator. */
static co_call_facts facts_of(const rig *r, co_op op)
{
    co_call_facts f, found = {.n_in = -1};

    for (int i = 0; i < co_exec_info_of(r->e)->calls; i++) {
        co_exec_call_facts(r->e, i, r->k, &r->b, &f);
        if (f.op != op)
            continue;
        CHECK(found.n_in < 0, "two calls of %s", co_op_name(op));
        found = f;
    }
    CHECK(found.n_in >= 0, "no call of %s", co_op_name(op));
    return found;
}

static void expect(const rig *r, co_op op, double flops, double useful)
{
    co_call_facts f = facts_of(r, op);

    CHECK(f.counted && f.flops == flops && f.useful == useful, "%s: %g FLOPs, %g useful; wanted %g and %g",
          co_op_name(op), f.flops, f.useful, flops, useful);
}

static void expect_bytes(const rig *r, co_op op, size_t bytes)
{
    co_call_facts f = facts_of(r, op);

    CHECK(f.bytes == bytes, "%s: %zu bytes, wanted %zu", co_op_name(op), f.bytes, bytes);
}

static void close_all(co_graph *g, rig *r)
{
    rig_close(r);
    co_graph_free(g);
}

/* An embedding, then x [2,3] W [4,3]^T + b, then relu. */
static co_graph *products(void)
{
    co_graph *g;

    CHECK_OK(co_graph_new(&g, true));
    co_node *table = co_param(g, "table", CO_SHAPE(100, 3), one, 0);
    co_node *x = co_embedding(g, table, co_input(g, "below 100", CO_I32, CO_SHAPE(2)));
    co_node *w = co_param(g, "fc.weight", CO_SHAPE(4, 3), one, 0);
    co_node *b = co_param(g, "fc.bias", CO_SHAPE(4), one, 0);
    co_node *y = co_relu(g, co_linear(g, x, w, b));
    co_graph_loss(g, co_mse(g, y, co_input(g, "y", CO_F32, CO_SHAPE(2, 4))));
    return g;
}

TEST(a_product_has_two_flops_for_each_pair_and_others_have_bytes_alone)
{
    co_graph *g = products();
    rig r;

    rig_open(&r, g, rig_kernels("ref"));
    expect(&r, CO_OP_LINEAR, 2 * 2 * 3 * 4, 2 * 2 * 3 * 4);
    expect(&r, CO_OP_MATMUL_TN_SUM, 2 * 2 * 3 * 4, 2 * 2 * 3 * 4);
    expect(&r, CO_OP_MATMUL, 2 * 2 * 3 * 4, 2 * 2 * 3 * 4);
    expect_bytes(&r, CO_OP_LINEAR, 4 * (2 * 3 + 4 * 3 + 4 + 2 * 4));
    expect_bytes(&r, CO_OP_RELU_GRAD, 4 * (8 + 8 + 8));
    expect_bytes(&r, CO_OP_EMBEDDING, 4 * (6 + 2 + 6)); /* two rows of the table, not all 100 */
    co_call_facts f = facts_of(&r, CO_OP_RELU_GRAD);
    CHECK(!f.counted && f.backward && strcmp(f.algorithm, "ref") == 0, "relu_grad by %s", f.algorithm);
    CHECK(!facts_of(&r, CO_OP_RELU).backward, "relu is forward");
    close_all(g, &r);
}

typedef struct geometry {
    int64_t n, c, o, h, w, kh, kw;
    int stride, pad;
    double flops, useful; /* by hand; 0: not counted by hand */
} geometry;

/* Every pair of an output position and a tap, one by one. */
static double pairs_met(const geometry *z, int64_t oh, int64_t ow)
{
    double n = 0;

    for (int64_t y = 0; y < oh; y++)
        for (int64_t x = 0; x < ow; x++)
            for (int64_t i = 0; i < z->kh; i++)
                for (int64_t j = 0; j < z->kw; j++) {
                    int64_t py = y * z->stride - z->pad + i, px = x * z->stride - z->pad + j;
                    n += py >= 0 && py < z->h && px >= 0 && px < z->w;
                }
    return n;
}

static void convolve(const geometry *z)
{
    int64_t oh = (z->h + 2 * z->pad - z->kh) / z->stride + 1, ow = (z->w + 2 * z->pad - z->kw) / z->stride + 1;
    double channels = 2.0 * (double)(z->n * z->c * z->o);
    double flops = channels * (double)(oh * ow * z->kh * z->kw), useful = channels * pairs_met(z, oh, ow);
    co_graph *g;
    rig r;

    CHECK(z->flops == 0 || (z->flops == flops && z->useful == useful), "by hand %g, %g", z->flops, z->useful);
    CHECK_OK(co_graph_new(&g, true));
    co_node *x = co_param(g, "x", CO_SHAPE(z->n, z->c, z->h, z->w), one, 0);
    co_node *w = co_param(g, "conv.weight", CO_SHAPE(z->o, z->c, z->kh, z->kw), one, 0);
    co_node *y = co_conv2d(g, x, w, NULL, z->stride, z->pad);
    co_graph_loss(g, co_mse(g, y, co_input(g, "y", CO_F32, CO_SHAPE(z->n, z->o, oh, ow))));
    rig_open(&r, g, rig_kernels("ref"));
    expect(&r, CO_OP_CONV2D, flops, useful);
    expect(&r, CO_OP_CONV2D_DX, flops, useful);
    expect(&r, CO_OP_CONV2D_DW, flops, useful);
    close_all(g, &r);
}

TEST(products_of_a_convolution_with_its_padding_are_not_useful)
{
    static const geometry cases[] = {
        {1, 1, 1, 3, 3, 3, 3, 1, 1, 2 * 9 * 9, 2 * 7 * 7},   /* 2 + 3 + 2 taps along each axis */
        {2, 3, 5, 2, 2, 3, 3, 1, 1, 60 * 4 * 9, 60 * 4 * 4}, /* 44 % */
        {1, 1, 1, 4, 4, 3, 3, 2, 1, 2 * 4 * 9, 2 * 5 * 5},   /* 2 + 3 */
        {1, 1, 1, 1, 1, 1, 1, 1, 2, 2 * 25, 2},              /* whole windows are padding */
        {1, 2, 2, 5, 4, 1, 1, 1, 0, 8 * 20, 8 * 20},         /* no padding */
        {2, 3, 4, 7, 6, 3, 2, 2, 1},
        {1, 1, 2, 9, 5, 7, 5, 2, 3},
        {1, 2, 1, 6, 8, 2, 3, 3, 2},
    };

    for (size_t i = 0; i < CO_COUNT(cases); i++)
        convolve(&cases[i]);
}

TEST(masked_keys_of_an_attention_are_not_useful)
{
    for (int causal = 0; causal < 2; causal++) {
        co_graph *g;
        rig r;
        CHECK_OK(co_graph_new(&g, true));
        co_node *q = co_param(g, "q", CO_SHAPE(1, 3, 2), one, 0);
        co_node *y = co_attention(g, q, q, q, NULL, 1, causal);
        co_graph_loss(g, co_mse(g, y, co_input(g, "y", CO_F32, CO_SHAPE(1, 3, 2))));
        rig_open(&r, g, rig_kernels("ref"));
        /* 9 pairs, 6 of them below the diagonal; 2 channels; two products forward, four backward */
        expect(&r, CO_OP_ATTENTION, 2 * 2 * 2 * 9, 2 * 2 * 2 * (causal ? 6 : 9));
        expect(&r, CO_OP_ATTENTION_GRAD, 2 * 4 * 2 * 9, 2 * 4 * 2 * (causal ? 6 : 9));
        close_all(g, &r);
    }
}

/* Samples of 2, 0 and 4 queries have 3, 1 and 3 keys: 2 * 3 + 0 + 4 * 3 = 18 pairs; causal 2 * 3 / 2 = 3 and
 * 1 + 2 + 3 + 3 = 9. */
TEST(ragged_samples_are_counted_as_long_as_they_are)
{
    for (int causal = 0; causal < 2; causal++) {
        co_graph *g;
        rig r;
        CHECK_OK(co_graph_new(&g, true));
        co_node *q = co_param(g, "q", CO_SHAPE(6, 2), one, 0), *k = co_param(g, "k", CO_SHAPE(7, 2), one, 0);
        co_spans of_q = {.offsets = co_input(g, "at 0 2 2 6", CO_I32, CO_SHAPE(4)), .longest = 4};
        co_spans of_k = {.offsets = co_input(g, "at 0 3 4 7", CO_I32, CO_SHAPE(4)), .longest = 3};
        co_node *y = co_ragged_attention(g, q, k, k, &of_q, &of_k, 1, causal, 0, "attn");
        co_graph_loss(g, co_mse(g, y, co_input(g, "y", CO_F32, CO_SHAPE(6, 2))));
        rig_open(&r, g, rig_kernels("ref"));
        rig_fill(&r, 1);
        expect(&r, CO_OP_RAGGED_ATTENTION, 2 * 2 * 2 * 18, 2 * 2 * 2 * (causal ? 12 : 18));
        expect(&r, CO_OP_RAGGED_ATTENTION_GRAD, 2 * 5 * 2 * 18, 2 * 5 * 2 * (causal ? 12 : 18));
        close_all(g, &r);
    }
}

static const char *algorithm_for(int64_t n, int64_t channels, int64_t size, int64_t taps)
{
    const co_kernels *k;
    co_attr attr = {.stride = 1, .pad = (int)taps / 2};
    co_arg in[2] = {{NULL, CO_F32, CO_SHAPE(n, channels, size, size)},
                    {NULL, CO_F32, CO_SHAPE(channels, channels, taps, taps)}};
    co_call c = {.attr = &attr, .in = in, .out = in, .n_in = 2, .n_out = 1, .nth = 1};

    if (co_kernels_get(&k, "avx2") != CO_OK)
        test_skip("%s", co_errmsg());
    return co_kernels_algorithm(k, CO_OP_CONV2D, &c);
}

TEST(a_level_says_by_which_algorithm_it_computes)
{
    static const struct {
        int64_t n, channels, size, taps;
        const char *by;
    } cases[] = {{16, 64, 16, 3, "winograd"}, {16, 512, 2, 3, "small"}, {16, 64, 16, 1, "product"}};

    for (size_t i = 0; i < CO_COUNT(cases); i++) {
        const char *by = algorithm_for(cases[i].n, cases[i].channels, cases[i].size, cases[i].taps);
        CHECK(strcmp(by, cases[i].by) == 0, "case %zu: %s, not %s", i, by, cases[i].by);
    }
}
