/* layers.c -- layers with PyTorch's parameter names, shapes and default initialisation.
 *
 *   linear, conv   weight and bias uniform in +-1/sqrt(fan_in)
 *   conv_he        weight normal (0, sqrt(2 / fan_out)), no bias
 *   batch norm     weight 1 (_zero: 0), bias 0, running mean 0 and variance 1, momentum 0.1, eps 1e-5
 *   layer norm     weight 1, bias 0, eps 1e-5
 *   embedding      normal (0, 1)
 *
 * Biases and norms are marked CO_PARAM_NO_DECAY: the recipe decides whether weight decay applies to them. A
 * layer given NULL returns NULL: the graph already has its first mistake.
 */
#include "nn/nn_int.h"

#include <math.h>
#include <stdio.h>

static const float eps = 1e-5f;
static const float running_momentum = 0.1f;
static const co_init zero = {CO_INIT_ZERO, 0}, one = {CO_INIT_ONE, 0};

/* "fc1" and "weight" give "fc1.weight" in buf. A name that does not fit is reported as a mistake of the
 * graph. */
static const char *part(char buf[NAME_MAX_LEN], co_graph *g, const char *name, const char *what)
{
    int len = snprintf(buf, NAME_MAX_LEN, "%s.%s", name, what);
    if (len >= NAME_MAX_LEN)
        co_graph_fail(g, "layer name '%s' is longer than %d characters", name, NAME_MAX_LEN);
    return buf;
}

static co_init by_fan_in(int64_t fan_in)
{
    return (co_init){CO_INIT_UNIFORM, (float)(1 / sqrt((double)fan_in))};
}

co_node *co_nn_linear(co_graph *g, co_node *x, int64_t out, bool bias, const char *name)
{
    const co_shape *s = co_node_shape(x);
    char buf[NAME_MAX_LEN];
    co_node *b = NULL;

    if (!x)
        return NULL;
    if (s->nd < 2)
        return co_graph_fail(g, "linear '%s': x needs at least 2 dimensions; it has %d", name, s->nd);
    int64_t in = s->d[s->nd - 1];
    co_node *w = co_param(g, part(buf, g, name, "weight"), CO_SHAPE(out, in), by_fan_in(in), 0);
    if (bias)
        b = co_param(g, part(buf, g, name, "bias"), CO_SHAPE(out), by_fan_in(in), CO_PARAM_NO_DECAY);
    return co_linear(g, x, w, b);
}

static bool is_images(co_graph *g, const co_shape *s, const char *name)
{
    if (s->nd != 4)
        co_graph_fail(g, "conv '%s': x must be [N,C,H,W]; it has %d dimensions", name, s->nd);
    return s->nd == 4;
}

co_node *co_nn_conv(co_graph *g, co_node *x, int64_t out, int k, int stride, int pad, bool bias,
                    const char *name)
{
    const co_shape *s = co_node_shape(x);
    char buf[NAME_MAX_LEN];
    co_node *b = NULL;

    if (!x || !is_images(g, s, name))
        return NULL;
    co_init init = by_fan_in(s->d[1] * k * k);
    co_node *w = co_param(g, part(buf, g, name, "weight"), CO_SHAPE(out, s->d[1], k, k), init, 0);
    if (bias)
        b = co_param(g, part(buf, g, name, "bias"), CO_SHAPE(out), init, CO_PARAM_NO_DECAY);
    return co_conv2d(g, x, w, b, stride, pad);
}

co_node *co_nn_conv_he(co_graph *g, co_node *x, int64_t out, int k, int stride, int pad, const char *name)
{
    const co_shape *s = co_node_shape(x);
    char buf[NAME_MAX_LEN];

    if (!x || !is_images(g, s, name))
        return NULL;
    co_init init = {CO_INIT_NORMAL, (float)sqrt(2 / (double)(out * k * k))};
    co_node *w = co_param(g, part(buf, g, name, "weight"), CO_SHAPE(out, s->d[1], k, k), init, 0);
    return co_conv2d(g, x, w, NULL, stride, pad);
}

static co_node *batch_norm(co_graph *g, co_node *x, co_init weight, const char *name)
{
    const co_shape *s = co_node_shape(x);
    char buf[NAME_MAX_LEN];

    if (!x)
        return NULL;
    if (s->nd < 2)
        return co_graph_fail(g, "batch norm '%s': x must be [N,C,...]; it has %d dimensions", name, s->nd);
    co_shape c = CO_SHAPE(s->d[1]);
    co_node *w = co_param(g, part(buf, g, name, "weight"), c, weight, CO_PARAM_NO_DECAY);
    co_node *b = co_param(g, part(buf, g, name, "bias"), c, zero, CO_PARAM_NO_DECAY);
    co_node *mean = co_stat(g, part(buf, g, name, "running_mean"), c, zero, running_momentum);
    co_node *var = co_stat(g, part(buf, g, name, "running_var"), c, one, running_momentum);
    co_counter(g, part(buf, g, name, "num_batches_tracked"));
    return co_batch_norm(g, x, w, b, mean, var, eps);
}

co_node *co_nn_batch_norm(co_graph *g, co_node *x, const char *name)
{
    return batch_norm(g, x, one, name);
}

co_node *co_nn_batch_norm_zero(co_graph *g, co_node *x, const char *name)
{
    return batch_norm(g, x, zero, name);
}

typedef co_node *norm_op(co_graph *g, co_node *x, co_node *weight, co_node *bias, float epsilon);

/* A norm over the last dimension, with parameters `weight` (which begins at 1) and bias. */
static co_node *row_norm(co_graph *g, co_node *x, norm_op *op, float epsilon, const char *weight,
                         const char *name)
{
    const co_shape *s = co_node_shape(x);
    char buf[NAME_MAX_LEN];

    if (!x)
        return NULL;
    if (s->nd < 1)
        return co_graph_fail(g, "norm '%s': x is a scalar", name);
    co_shape c = CO_SHAPE(s->d[s->nd - 1]);
    co_node *w = co_param(g, part(buf, g, name, weight), c, one, CO_PARAM_NO_DECAY);
    co_node *b = co_param(g, part(buf, g, name, "bias"), c, zero, CO_PARAM_NO_DECAY);
    return op(g, x, w, b, epsilon);
}

co_node *co_nn_layer_norm(co_graph *g, co_node *x, const char *name)
{
    return row_norm(g, x, co_layer_norm, eps, "weight", name);
}

co_node *co_nn_std_norm(co_graph *g, co_node *x, float epsilon, const char *name)
{
    return row_norm(g, x, co_std_norm, epsilon, "alpha", name);
}

co_node *co_nn_embedding(co_graph *g, co_node *idx, int64_t rows, int64_t width, bool sparse, const char *name)
{
    char buf[NAME_MAX_LEN];

    if (!idx)
        return NULL;
    co_node *table = co_param(g, part(buf, g, name, "weight"), CO_SHAPE(rows, width),
                              (co_init){CO_INIT_NORMAL, 1}, sparse ? CO_PARAM_SPARSE : 0);
    return co_embedding(g, table, idx);
}
