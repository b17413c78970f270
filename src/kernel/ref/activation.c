/* activation.c -- relu and gelu, element by element. Both pass a nan on, so that it shows in the loss. */
#include "kernel/ref/real.h"

static void relu(const co_call *c)
{
    const real *x = c->in[0].p;
    real *y = c->out[0].p;
    int64_t lo, hi;

    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        y[i] = 0 > x[i] ? 0 : x[i];
}

static void relu_grad(const co_call *c)
{
    const real *dy = c->in[0].p, *y = c->in[1].p;
    real *dx = c->out[0].p;
    int64_t lo, hi;

    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        dx[i] = y[i] <= 0 ? 0 : dy[i];
}

static const real sqrt_half = (real)0.70710678118654752440, /* 1 / sqrt(2) */
    density0 = (real)0.39894228040143267794;                /* 1 / sqrt(2 pi) */

/* The cumulative normal distribution at x. */
static real phi(real x)
{
    return (real)0.5 * (1 + R_ERF(x * sqrt_half));
}

static void gelu(const co_call *c)
{
    const real *x = c->in[0].p;
    real *y = c->out[0].p;
    int64_t lo, hi;

    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        y[i] = x[i] * phi(x[i]);
}

static void gelu_grad(const co_call *c)
{
    const real *dy = c->in[0].p, *x = c->in[1].p;
    real *dx = c->out[0].p;
    int64_t lo, hi;

    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        real density = density0 * R_EXP((real)-0.5 * x[i] * x[i]);
        dx[i] = dy[i] * (phi(x[i]) + x[i] * density);
    }
}

void REF(activation)(co_kernel_row *row)
{
    row[CO_OP_RELU].fn = relu;
    row[CO_OP_RELU_GRAD].fn = relu_grad;
    row[CO_OP_GELU].fn = gelu;
    row[CO_OP_GELU_GRAD].fn = gelu_grad;
}
