/* Identities that tie operators to each other, on `ref` and on the best provider of this CPU. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "kernel/cases.h"

static const co_kernels *on; /* the provider under test */
static uint64_t state;

static float pool[40000];
static size_t used;

static co_arg empty(co_shape s)
{
    float *p = pool + used;

    used += (size_t)co_shape_count(&s);
    CHECK(used <= CO_COUNT(pool), "pool too small");
    memset(p, 0, (size_t)co_shape_count(&s) * sizeof *p);
    return (co_arg){p, CO_F32, s};
}

static co_arg drawn(co_shape s)
{
    co_arg a = empty(s);

    for (int64_t i = 0; i < co_shape_count(&s); i++)
        ((float *)a.p)[i] = test_unit(&state);
    return a;
}

/* The one output of an operator, of the given shape. */
static co_arg apply(co_op op, co_attr attr, co_shape shape, const co_arg *in, int n_in)
{
    co_arg out = empty(shape);

    op_call(on, op, &attr, &(co_run){0}, in, n_in, &out, 1, 1);
    return out;
}
#define APPLY(op, attr, shape, ...)                                                                          \
    apply(op, attr, shape, (co_arg[]){__VA_ARGS__}, (int)CO_COUNT(((co_arg[]){__VA_ARGS__})))

static const co_attr plain;

static void close_to(co_arg a, co_arg b, double tol, const char *what)
{
    for (int64_t i = 0; i < co_shape_count(&a.shape); i++) {
        double x = ((float *)a.p)[i], y = ((float *)b.p)[i];
        CHECK(fabs(x - y) <= tol, "%s: %s: element %lld: %.9g and %.9g", on->level, what, (long long)i, x, y);
    }
}

static double dot(co_arg a, co_arg b)
{
    double sum = 0;

    for (int64_t i = 0; i < co_shape_count(&a.shape); i++)
        sum += (double)((float *)a.p)[i] * ((float *)b.p)[i];
    return sum;
}

static void same(double a, double b, const char *what)
{
    CHECK(fabs(a - b) <= 1e-5 * (1 + fabs(a)), "%s: %s: %.9g and %.9g", on->level, what, a, b);
}

static void each_provider(void (*body)(void))
{
    const char *levels[] = {"ref", "auto"};

    for (size_t i = 0; i < CO_COUNT(levels); i++) {
        CHECK_OK(co_kernels_get(&on, levels[i]));
        used = 0;
        body();
    }
}

static void products(void)
{
    co_arg a = drawn(CO_SHAPE(13, 21)), b = drawn(CO_SHAPE(21, 18)), x = drawn(CO_SHAPE(18, 5));
    co_arg bx = APPLY(CO_OP_MATMUL, plain, CO_SHAPE(21, 5), b, x);
    co_arg ab = APPLY(CO_OP_MATMUL, plain, CO_SHAPE(13, 18), a, b);

    close_to(APPLY(CO_OP_MATMUL, plain, CO_SHAPE(13, 5), a, bx),
             APPLY(CO_OP_MATMUL, plain, CO_SHAPE(13, 5), ab, x), 1e-4, "A(Bx) = (AB)x");

    const co_attr swap = {.perm = {1, 0}};
    co_arg at = APPLY(CO_OP_TRANSPOSE, swap, CO_SHAPE(21, 13), a);
    co_arg bt = APPLY(CO_OP_TRANSPOSE, swap, CO_SHAPE(18, 21), b);
    close_to(ab, APPLY(CO_OP_MATMUL, (co_attr){.ta = 1}, CO_SHAPE(13, 18), at, b), 1e-5, "ta is a transpose");
    close_to(ab, APPLY(CO_OP_MATMUL, (co_attr){.tb = 1}, CO_SHAPE(13, 18), a, bt), 1e-5, "tb is a transpose");
    close_to(ab, APPLY(CO_OP_MATMUL, ((co_attr){.ta = 1, .tb = 1}), CO_SHAPE(13, 18), at, bt), 1e-5,
             "both are");
    close_to(ab, APPLY(CO_OP_LINEAR, plain, CO_SHAPE(13, 18), a, bt), 1e-5, "linear is a product");
    close_to(ab, APPLY(CO_OP_MATMUL_TN_SUM, plain, CO_SHAPE(13, 18), at, b), 1e-5, "so is tn_sum");
}

TEST(matrix_products_associate_and_transpose)
{
    each_provider(products);
}

static void pointwise(void)
{
    co_arg x = drawn(CO_SHAPE(3, 20, 5, 4)), w = drawn(CO_SHAPE(9, 20, 1, 1)), m = x, wm = w;
    co_arg y = APPLY(CO_OP_CONV2D, (co_attr){.stride = 1}, CO_SHAPE(3, 9, 5, 4), x, w);

    m.shape = CO_SHAPE(3, 20, 20);
    wm.shape = CO_SHAPE(9, 20);
    for (int n = 0; n < 3; n++) {
        co_arg image = {(float *)m.p + n * 400, CO_F32, CO_SHAPE(20, 20)};
        co_arg part = {(float *)y.p + n * 180, CO_F32, CO_SHAPE(9, 20)};
        close_to(APPLY(CO_OP_MATMUL, plain, CO_SHAPE(9, 20), wm, image), part, 1e-5, "1x1 is a product");
    }
}

TEST(a_convolution_of_one_pixel_is_a_matrix_product)
{
    each_provider(pointwise);
}

static void adjoint(void)
{
    static const int shapes[][7] = {{3, 1, 1, 6, 7, 5, 4},  {3, 2, 1, 8, 8, 16, 16}, {7, 2, 3, 11, 9, 3, 8},
                                    {1, 2, 0, 6, 5, 9, 17}, {3, 1, 0, 8, 6, 16, 8},  {2, 3, 1, 7, 7, 1, 1}};

    for (size_t i = 0; i < CO_COUNT(shapes); i++) {
        const int *s = shapes[i];
        int64_t k = s[0], H = s[3], W = s[4], C = s[5], O = s[6];
        co_attr attr = {.stride = s[1], .pad = s[2]};
        int64_t oh = (H + 2 * s[2] - k) / s[1] + 1, ow = (W + 2 * s[2] - k) / s[1] + 1;
        co_arg x = drawn(CO_SHAPE(2, C, H, W)), w = drawn(CO_SHAPE(O, C, k, k)),
               dy = drawn(CO_SHAPE(2, O, oh, ow));
        double y_dy = dot(APPLY(CO_OP_CONV2D, attr, dy.shape, x, w), dy);
        same(y_dy, dot(x, APPLY(CO_OP_CONV2D_DX, attr, x.shape, dy, w)), "<conv x, dy> = <x, dx>");
        same(y_dy, dot(w, APPLY(CO_OP_CONV2D_DW, attr, w.shape, dy, x)), "<conv x, dy> = <w, dw>");
    }
}

TEST(convolution_and_its_gradients_are_adjoint)
{
    each_provider(adjoint);
}

static void pools(void)
{
    const co_attr attr = {.kh = 3, .kw = 3, .stride = 2, .pad = 1};
    co_arg x = drawn(CO_SHAPE(2, 3, 9, 8)), dy = drawn(CO_SHAPE(2, 3, 5, 4));

    same(dot(APPLY(CO_OP_AVG_POOL, attr, dy.shape, x), dy),
         dot(x, APPLY(CO_OP_AVG_POOL_GRAD, attr, x.shape, dy)), "<pool x, dy> = <x, dx>");
}

TEST(average_pooling_and_its_gradient_are_adjoint)
{
    each_provider(pools);
}

static void softmaxes(void)
{
    co_arg x = drawn(CO_SHAPE(6, 37)), moved = drawn(x.shape), y = APPLY(CO_OP_SOFTMAX, plain, x.shape, x);

    for (int r = 0; r < 6; r++) {
        double sum = 0;
        for (int j = 0; j < 37; j++) {
            sum += ((float *)y.p)[r * 37 + j];
            ((float *)moved.p)[r * 37 + j] = ((float *)x.p)[r * 37 + j] + 8 * (float)r;
        }
        same(sum, 1, "a row sums to one");
    }
    close_to(y, APPLY(CO_OP_SOFTMAX, plain, x.shape, moved), 1e-6, "adding to a row changes nothing");
}

TEST(softmax_rows_sum_to_one_wherever_they_are)
{
    each_provider(softmaxes);
}

static void one_head(void)
{
    co_arg q = drawn(CO_SHAPE(2, 5, 12)), k = drawn(CO_SHAPE(2, 7, 12)), v = drawn(CO_SHAPE(2, 7, 12));
    co_arg out[] = {empty(q.shape), empty(CO_SHAPE(2, 1, 5, 7))};
    co_arg s = APPLY(CO_OP_MATMUL, (co_attr){.tb = 1}, CO_SHAPE(2, 5, 7), q, k);
    co_arg p = APPLY(CO_OP_SOFTMAX, plain, s.shape,
                     APPLY(CO_OP_SCALE, (co_attr){.value = 1 / sqrtf(12)}, s.shape, s));

    op_call(on, CO_OP_ATTENTION, &(co_attr){.heads = 1}, &(co_run){0}, (co_arg[]){q, k, v}, 3, out, 2, 1);
    close_to(out[1], p, 1e-6, "probs = softmax(q k^T / sqrt(d))");
    close_to(out[0], APPLY(CO_OP_MATMUL, plain, q.shape, p, v), 1e-5, "y = probs v");
}

TEST(attention_of_one_head_is_two_products_and_a_softmax)
{
    each_provider(one_head);
}

static void many_heads(void)
{
    enum { HEADS = 3, D = 4, T = 6 };
    co_arg in[3], part[3], out[] = {empty(CO_SHAPE(2, T, HEADS * D)), empty(CO_SHAPE(2, HEADS, T, T))};

    for (int i = 0; i < 3; i++)
        in[i] = drawn(CO_SHAPE(2, T, HEADS * D));
    op_call(on, CO_OP_ATTENTION, &(co_attr){.heads = HEADS, .causal = 1}, &(co_run){0}, in, 3, out, 2, 1);
    for (int h = 0; h < HEADS; h++) {
        const co_attr cut = {.axis = 2, .start = h * D};
        co_arg alone[] = {empty(CO_SHAPE(2, T, D)), empty(CO_SHAPE(2, 1, T, T))};
        for (int i = 0; i < 3; i++)
            part[i] = APPLY(CO_OP_SLICE, cut, CO_SHAPE(2, T, D), in[i]);
        op_call(on, CO_OP_ATTENTION, &(co_attr){.heads = 1, .causal = 1}, &(co_run){0}, part, 3, alone, 2, 1);
        close_to(alone[0], APPLY(CO_OP_SLICE, cut, CO_SHAPE(2, T, D), out[0]), 1e-6, "a head works alone");
    }
}

TEST(heads_of_attention_do_not_see_each_other)
{
    each_provider(many_heads);
}

static void normalised(void)
{
    co_arg x = drawn(CO_SHAPE(6, 4, 5, 3)), gamma = empty(CO_SHAPE(4)), beta = empty(CO_SHAPE(4));
    co_arg out[5] = {empty(x.shape)};

    for (int i = 0; i < 4; i++)
        ((float *)gamma.p)[i] = 1;
    for (int i = 1; i < 5; i++)
        out[i] = empty(CO_SHAPE(4));
    op_call(on, CO_OP_BATCH_NORM, &(co_attr){0}, &(co_run){0}, (co_arg[]){x, gamma, beta}, 3, out, 5, 1);
    co_arg sum = APPLY(CO_OP_SUM_CHANNELS, plain, CO_SHAPE(4), out[0]);
    co_arg squares =
        APPLY(CO_OP_SUM_CHANNELS, plain, CO_SHAPE(4), APPLY(CO_OP_MUL, plain, x.shape, out[0], out[0]));
    for (int i = 0; i < 4; i++) {
        same(((float *)sum.p)[i], 0, "mean of a normalised channel");
        same(((float *)squares.p)[i], 90, "variance of a normalised channel, times its 90 values");
    }
    co_arg again = empty(x.shape), first = out[0];
    out[0] = again;
    op_call(on, CO_OP_BATCH_NORM, &(co_attr){0}, &(co_run){0}, (co_arg[]){first, gamma, beta}, 3, out, 5, 1);
    close_to(again, first, 1e-5, "normalising twice is normalising once");
}

TEST(batch_norm_gives_mean_zero_and_variance_one)
{
    each_provider(normalised);
}

static void shapes(void)
{
    co_arg x = drawn(CO_SHAPE(2, 3, 4, 5)),
           y = APPLY(CO_OP_TRANSPOSE, ((co_attr){.perm = {2, 0, 3, 1}}), CO_SHAPE(4, 2, 5, 3), x);
    co_arg back = APPLY(CO_OP_TRANSPOSE, ((co_attr){.perm = {1, 3, 0, 2}}), x.shape, y);

    close_to(x, back, 0, "a permutation and its inverse");
    co_arg left = APPLY(CO_OP_SLICE, (co_attr){.axis = 2}, CO_SHAPE(2, 3, 1, 5), x);
    co_arg right = APPLY(CO_OP_SLICE, ((co_attr){.axis = 2, .start = 1}), CO_SHAPE(2, 3, 3, 5), x);
    close_to(x, APPLY(CO_OP_CONCAT, (co_attr){.axis = 2}, x.shape, left, right), 0, "cut and joined");
    co_arg a = APPLY(CO_OP_PAD, (co_attr){.axis = 2}, x.shape, left);
    co_arg b = APPLY(CO_OP_PAD, ((co_attr){.axis = 2, .start = 1}), x.shape, right);
    close_to(x, APPLY(CO_OP_ADD, plain, x.shape, a, b), 0, "cut, padded and added");
}

TEST(moving_there_and_back_loses_nothing)
{
    each_provider(shapes);
}
