/* Compares every gradient operator with central differences of its forward operator, in double (provider
 * `wide`). With L = sum of y * dy, the operator must give dL/dx. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "kernel/cases.h"
#include "kernel/wide.h"

static uint64_t state;
static double pool[20000];
static size_t used;

static double *room(co_shape s)
{
    double *p = pool + used;

    used += (size_t)co_shape_count(&s);
    CHECK(used <= CO_COUNT(pool), "pool too small");
    return p;
}

/* A tensor with values in [lo, hi). */
static co_arg drawn(co_shape s, double lo, double hi)
{
    double *p = room(s);

    for (int64_t i = 0; i < co_shape_count(&s); i++)
        p[i] = lo + (hi - lo) * (0.5 + 0.5 * test_unit(&state));
    return (co_arg){p, CO_F32, s};
}

static co_arg empty(co_shape s)
{
    return (co_arg){room(s), CO_F32, s};
}

static void call(co_op op, co_attr attr, const co_arg *in, int n_in, const co_arg *out, int n_out)
{
    op_call(test_kernels_wide(), op, &attr, &(co_run){.seed = 1, .step = 1}, in, n_in, out, n_out, 1);
}

static double loss(co_op op, co_attr attr, const co_arg *in, int n_in, const co_arg *out, int n_out,
                   const co_arg *dy)
{
    double sum = 0;

    call(op, attr, in, n_in, out, n_out);
    for (int64_t i = 0; i < co_shape_count(&out->shape); i++)
        sum += ((double *)out->p)[i] * ((double *)dy->p)[i];
    return sum;
}

/* dx must be the gradient by in[which]. */
static void agrees(co_op op, co_attr attr, const co_arg *in, int n_in, const co_arg *out, int n_out,
                   const co_arg *dy, int which, const co_arg *dx)
{
    double *x = in[which].p;
    const double h = 1e-5;

    CHECK(co_shape_eq(&in[which].shape, &dx->shape), "test is wrong: shapes differ");
    for (int64_t i = 0; i < co_shape_count(&dx->shape); i++) {
        double was = x[i];
        x[i] = was + h;
        double up = loss(op, attr, in, n_in, out, n_out, dy);
        x[i] = was - h;
        double down = loss(op, attr, in, n_in, out, n_out, dy);
        x[i] = was;
        double want = (up - down) / (2 * h), got = ((double *)dx->p)[i];
        CHECK(fabs(got - want) < 1e-8 * (1 + fabs(want)),
              "%s, input %d, element %lld: %.12g, differences say %.12g", co_op_name(op), which, (long long)i,
              got, want);
    }
}

TEST(gradients_of_convolution)
{
    const co_attr attrs[] = {
        {.stride = 1, .pad = 1}, {.stride = 2, .pad = 1}, {.stride = 2}, {.stride = 3, .pad = 2}};

    for (size_t a = 0; a < CO_COUNT(attrs); a++) {
        used = 0;
        int64_t oh = (6 + 2 * attrs[a].pad - 3) / attrs[a].stride + 1;
        int64_t ow = (5 + 2 * attrs[a].pad - 2) / attrs[a].stride + 1;
        co_arg in[] = {drawn(CO_SHAPE(2, 3, 6, 5), -1, 1), drawn(CO_SHAPE(2, 3, 3, 2), -1, 1),
                       drawn(CO_SHAPE(2), -1, 1)};
        co_arg y = empty(CO_SHAPE(2, 2, oh, ow)), dy = drawn(y.shape, -1, 1);
        co_arg dx = empty(in[0].shape), dw = empty(in[1].shape), db = empty(in[2].shape);
        call(CO_OP_CONV2D_DX, attrs[a], (co_arg[]){dy, in[1]}, 2, &dx, 1);
        call(CO_OP_CONV2D_DW, attrs[a], (co_arg[]){dy, in[0]}, 2, &dw, 1);
        call(CO_OP_SUM_CHANNELS, attrs[a], &dy, 1, &db, 1);
        agrees(CO_OP_CONV2D, attrs[a], in, 3, &y, 1, &dy, 0, &dx);
        agrees(CO_OP_CONV2D, attrs[a], in, 3, &y, 1, &dy, 1, &dw);
        agrees(CO_OP_CONV2D, attrs[a], in, 3, &y, 1, &dy, 2, &db);
    }
}

TEST(gradients_of_linear)
{
    co_arg in[] = {drawn(CO_SHAPE(3, 2, 5), -1, 1), drawn(CO_SHAPE(7, 5), -1, 1), drawn(CO_SHAPE(7), -1, 1)};
    co_arg y = empty(CO_SHAPE(3, 2, 7)), dy = drawn(y.shape, -1, 1);
    co_arg dx = empty(in[0].shape), dw = empty(in[1].shape), db = empty(in[2].shape);

    call(CO_OP_MATMUL, (co_attr){0}, (co_arg[]){dy, in[1]}, 2, &dx, 1);
    call(CO_OP_MATMUL_TN_SUM, (co_attr){0}, (co_arg[]){dy, in[0]}, 2, &dw, 1);
    call(CO_OP_SUM_ROWS, (co_attr){0}, &dy, 1, &db, 1);
    agrees(CO_OP_LINEAR, (co_attr){0}, in, 3, &y, 1, &dy, 0, &dx);
    agrees(CO_OP_LINEAR, (co_attr){0}, in, 3, &y, 1, &dy, 1, &dw);
    agrees(CO_OP_LINEAR, (co_attr){0}, in, 3, &y, 1, &dy, 2, &db);
}

static void norm_agrees(co_op op, co_op grad, co_shape shape, int64_t width, co_shape stats, int n_out)
{
    const co_attr attr = {.eps = 1e-3f};
    co_arg in[] = {drawn(shape, -1, 1), drawn(CO_SHAPE(width), 0.5, 2), drawn(CO_SHAPE(width), -1, 1)};
    co_arg out[] = {empty(shape), empty(stats), empty(stats), empty(stats), empty(stats)};
    co_arg dy = drawn(shape, -1, 1), d[] = {empty(shape), empty(CO_SHAPE(width)), empty(CO_SHAPE(width))};

    call(op, attr, in, 3, out, n_out);
    co_arg mean = empty(stats), rstd = empty(stats); /* agrees() overwrites out */
    memcpy(mean.p, out[1].p, (size_t)co_shape_count(&stats) * sizeof(double));
    memcpy(rstd.p, out[2].p, (size_t)co_shape_count(&stats) * sizeof(double));
    call(grad, attr, (co_arg[]){dy, in[0], in[1], mean, rstd}, 5, d, 3);
    for (int i = 0; i < 3; i++)
        agrees(op, attr, in, 3, out, n_out, &dy, i, &d[i]);
}

TEST(gradients_of_norms)
{
    norm_agrees(CO_OP_BATCH_NORM, CO_OP_BATCH_NORM_GRAD, CO_SHAPE(3, 4, 2, 3), 4, CO_SHAPE(4), 5);
    norm_agrees(CO_OP_BATCH_NORM, CO_OP_BATCH_NORM_GRAD, CO_SHAPE(5, 3), 3, CO_SHAPE(3), 5);
    norm_agrees(CO_OP_LAYER_NORM, CO_OP_LAYER_NORM_GRAD, CO_SHAPE(3, 2, 5), 5, CO_SHAPE(3, 2), 3);
}

TEST(gradients_of_pooling)
{
    const co_attr attr = {.kh = 3, .kw = 2, .stride = 2, .pad = 1};
    co_arg x = drawn(CO_SHAPE(2, 3, 5, 6), -1, 1), y = empty(CO_SHAPE(2, 3, 3, 4)), dy = drawn(y.shape, -1, 1);
    co_arg dx = empty(x.shape);
    int32_t idx[2 * 3 * 3 * 4];
    co_arg out[] = {y, {idx, CO_I32, y.shape}};

    call(CO_OP_AVG_POOL_GRAD, attr, &dy, 1, &dx, 1);
    agrees(CO_OP_AVG_POOL, attr, &x, 1, &y, 1, &dy, 0, &dx);
    call(CO_OP_MAX_POOL, attr, &x, 1, out, 2);
    call(CO_OP_MAX_POOL_GRAD, attr, (co_arg[]){dy, out[1]}, 2, &dx, 1);
    agrees(CO_OP_MAX_POOL, attr, &x, 1, out, 2, &dy, 0, &dx);
}

TEST(gradients_of_activations_and_softmax)
{
    const co_shape s = CO_SHAPE(4, 7);
    co_arg x = drawn(s, -3, 3), y = empty(s), dy = drawn(s, -1, 1), dx = empty(s), kept = empty(s);

    call(CO_OP_GELU_GRAD, (co_attr){0}, (co_arg[]){dy, x}, 2, &dx, 1);
    agrees(CO_OP_GELU, (co_attr){0}, &x, 1, &y, 1, &dy, 0, &dx);
    call(CO_OP_RELU, (co_attr){0}, &x, 1, &kept, 1);
    call(CO_OP_RELU_GRAD, (co_attr){0}, (co_arg[]){dy, kept}, 2, &dx, 1);
    agrees(CO_OP_RELU, (co_attr){0}, &x, 1, &y, 1, &dy, 0, &dx);
    call(CO_OP_SOFTMAX, (co_attr){0}, &x, 1, &kept, 1);
    call(CO_OP_SOFTMAX_GRAD, (co_attr){0}, (co_arg[]){dy, kept}, 2, &dx, 1);
    agrees(CO_OP_SOFTMAX, (co_attr){0}, &x, 1, &y, 1, &dy, 0, &dx);
}

TEST(dropout_is_its_own_gradient)
{
    const co_attr attr = {.p = 0.4f, .stream = 5};
    int64_t ids[] = {4, 2, 9};
    co_arg in[] = {drawn(CO_SHAPE(3, 9), -1, 1), {ids, CO_I64, CO_SHAPE(3)}};
    co_arg y = empty(in[0].shape), dy = drawn(y.shape, -1, 1), dx = empty(y.shape);

    call(CO_OP_DROPOUT, attr, (co_arg[]){dy, in[1]}, 2, &dx, 1);
    agrees(CO_OP_DROPOUT, attr, in, 2, &y, 1, &dy, 0, &dx);
}

static void attention_agrees(co_attr attr, const int32_t *lens, int64_t Tq, int64_t Tk)
{
    used = 0;
    co_arg in[] = {drawn(CO_SHAPE(2, Tq, 6), -2, 2),
                   drawn(CO_SHAPE(2, Tk, 6), -2, 2),
                   drawn(CO_SHAPE(2, Tk, 6), -1, 1),
                   {(void *)lens, CO_I32, CO_SHAPE(2)}};
    int n_in = lens ? 4 : 3;
    co_arg out[] = {empty(in[0].shape), empty(CO_SHAPE(2, attr.heads, Tq, Tk))}, dy = drawn(in[0].shape, -1, 1);
    co_arg kept[] = {empty(in[0].shape), empty(out[1].shape)};
    co_arg d[] = {empty(in[0].shape), empty(in[1].shape), empty(in[2].shape)};

    call(CO_OP_ATTENTION, attr, in, n_in, kept, 2);
    call(CO_OP_ATTENTION_GRAD, attr, (co_arg[]){dy, in[0], in[1], in[2], kept[1]}, 5, d, 3);
    for (int i = 0; i < 3; i++)
        agrees(CO_OP_ATTENTION, attr, in, n_in, out, 2, &dy, i, &d[i]);
}

TEST(gradients_of_attention)
{
    const int32_t lens[] = {3, 0};

    attention_agrees((co_attr){.heads = 1}, NULL, 3, 5);
    attention_agrees((co_attr){.heads = 3}, lens, 4, 5);
    attention_agrees((co_attr){.heads = 2, .causal = 1}, NULL, 5, 5);
    attention_agrees((co_attr){.heads = 2, .causal = 1}, lens, 5, 5);
}

TEST(gradients_of_cross_entropy)
{
    const co_attr attrs[] = {{.ignore = -100}, {.ignore = 2, .smooth = 0.2f}};
    int32_t target[] = {1, 2, 0, 3, 2};

    for (size_t a = 0; a < CO_COUNT(attrs); a++) {
        co_arg in[] = {drawn(CO_SHAPE(5, 4), -3, 3), {target, CO_I32, CO_SHAPE(5)}};
        co_arg out[] = {empty(CO_SHAPE(5)), empty(CO_SHAPE(5))}, dy = drawn(CO_SHAPE(5), -1, 1);
        co_arg kept[] = {empty(CO_SHAPE(5)), empty(CO_SHAPE(5))}, dx = empty(in[0].shape);
        call(CO_OP_CROSS_ENTROPY, attrs[a], in, 2, kept, 2);
        call(CO_OP_CROSS_ENTROPY_GRAD, attrs[a], (co_arg[]){dy, in[0], in[1], kept[1]}, 4, &dx, 1);
        agrees(CO_OP_CROSS_ENTROPY, attrs[a], in, 2, out, 2, &dy, 0, &dx);
    }
}

TEST(gradients_of_sample_losses)
{
    const co_op op[][2] = {
        {CO_OP_MSE, CO_OP_MSE_GRAD}, {CO_OP_MAE, CO_OP_MAE_GRAD}, {CO_OP_BCE, CO_OP_BCE_GRAD}};

    for (size_t i = 0; i < CO_COUNT(op); i++) {
        co_arg in[] = {drawn(CO_SHAPE(3, 2, 5), -2, 2), drawn(CO_SHAPE(3, 2, 5), 0, 1)};
        co_arg y = empty(CO_SHAPE(3)), dy = drawn(CO_SHAPE(3), -1, 1), dx = empty(in[0].shape);
        call(op[i][1], (co_attr){0}, (co_arg[]){dy, in[0], in[1]}, 3, &dx, 1);
        agrees(op[i][0], (co_attr){0}, in, 2, &y, 1, &dy, 0, &dx);
    }
}

TEST(gradients_of_moving_and_embedding)
{
    int32_t idx[] = {1, 3, 1, -1, 0, 1};
    co_arg in[] = {drawn(CO_SHAPE(5, 3), -1, 1), {idx, CO_I32, CO_SHAPE(2, 3)}};
    co_arg y = empty(CO_SHAPE(2, 3, 3)), dy = drawn(y.shape, -1, 1), dx = empty(in[0].shape);
    call(CO_OP_EMBEDDING_GRAD, (co_attr){0}, (co_arg[]){dy, in[1]}, 2, &dx, 1);
    agrees(CO_OP_EMBEDDING, (co_attr){0}, in, 2, &y, 1, &dy, 0, &dx);

    const co_attr at = {.axis = 1, .start = 2};
    co_arg x = drawn(CO_SHAPE(3, 5, 2), -1, 1), cut = empty(CO_SHAPE(3, 2, 2));
    co_arg dcut = drawn(cut.shape, -1, 1), back = empty(x.shape);
    call(CO_OP_PAD, at, &dcut, 1, &back, 1);
    agrees(CO_OP_SLICE, at, &x, 1, &cut, 1, &dcut, 0, &back);
}
