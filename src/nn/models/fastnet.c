/* fastnet.c -- a small network that learns CIFAR-10 in minutes: Keller Jordan's airbench94 (2024).
 *
 *   whiten     conv 2x2 without padding, gelu                                            [24, 31, 31]
 *   block1..3  conv 3x3, max pool 2, norm, gelu; conv 3x3, norm, gelu [+ its input]      [W1, 15, 15] ...
 *   head       max pool over all pixels, linear layer without bias, times 1/9
 *
 * The filters of `whiten` are computed from the data (whiten.c). Convolutions 3x3 have no bias and start by
 * passing channels on (CO_INIT_DIRAC), so that the network begins close to the identity. model.residual adds
 * the input of a block's second half to its output. Sizes are those for pictures of 32x32 pixels.
 */
#include "nn/nn_int.h"

#include <math.h>
#include <stdio.h>

enum { BLOCKS = 3, LEAST_SIDE = 16 };

struct fastnet_cfg {
    int64_t width[BLOCKS];
    bool residual;
};

#define WIDTH(I) offsetof(struct fastnet_cfg, width) + (I) * sizeof(int64_t)
static const co_option options[] = {
    {"width1", CO_OPT_INT, WIDTH(0), "64", "channels of the first block", .min = 1, .max = 4096},
    {"width2", CO_OPT_INT, WIDTH(1), "256", "channels of the second block", .min = 1, .max = 4096},
    {"width3", CO_OPT_INT, WIDTH(2), "256", "channels of the third block", .min = 1, .max = 4096},
    {"residual", CO_OPT_BOOL, offsetof(struct fastnet_cfg, residual), "false",
     "add the input of a block's second convolution to its output"},
    {0}};
#undef WIDTH

static co_err check(const void *cfg, const co_io *io)
{
    char text[96];

    (void)cfg;
    CO_TRY(check_is_numbers("fastnet", io));
    if (io->x.nd != 3 || io->x.d[0] > 3 || io->x.d[1] != io->x.d[2] || io->x.d[1] < LEAST_SIDE)
        return co_fail(
            CO_EINPUT,
            "model=fastnet needs square pictures of %dx%d pixels at least, grey or in colour; the data has "
            "%s; try data.crop=32, model=cnn or model=resnet18",
            LEAST_SIDE, LEAST_SIDE, co_shape_text(text, sizeof text, &io->x));
    return CO_OK;
}

/* x [n,in,s,s] -> [n,out,s,s] */
static co_node *conv(co_graph *g, co_node *x, int64_t out, const char *block, const char *name)
{
    char weight[NAME_MAX_LEN];

    if (!x)
        return NULL;
    int64_t in = co_node_shape(x)->d[1];
    co_init init = {CO_INIT_DIRAC, (float)(1 / sqrt((double)(in * 9)))};
    snprintf(weight, sizeof weight, "%s.%s.weight", block, name);
    co_node *w = co_param(g, weight, CO_SHAPE(out, in, 3, 3), init, 0);
    return co_conv2d(g, x, w, NULL, 1, 1);
}

static co_node *norm_gelu(co_graph *g, co_node *x, const char *block, const char *name)
{
    char norm[NAME_MAX_LEN];

    snprintf(norm, sizeof norm, "%s.%s", block, name);
    return co_gelu(g, co_nn_batch_norm(g, x, norm));
}

/* x [n,in,s,s] -> [n,width,s/2,s/2] */
static co_node *add_block(co_graph *g, co_node *x, int64_t width, const char *block, bool residual)
{
    co_node *h = conv(g, x, width, block, "conv1");

    h = co_max_pool(g, h, 2, 2, 0);
    h = norm_gelu(g, h, block, "norm1");
    x = h;
    h = conv(g, h, width, block, "conv2");
    h = norm_gelu(g, h, block, "norm2");
    return residual ? co_add(g, h, x) : h;
}

/* x [n,c,s,s] -> [n,8c,s-1,s-1] */
static co_node *whiten(co_graph *g, co_node *x, int64_t channels)
{
    int64_t filters = 2 * channels * 4;
    co_node *w =
        co_param(g, "whiten.weight", CO_SHAPE(filters, channels, 2, 2), (co_init){CO_INIT_WHITEN, 0}, 0);
    co_node *b = co_param(g, "whiten.bias", CO_SHAPE(filters), (co_init){CO_INIT_ZERO, 0}, CO_PARAM_NO_DECAY);

    return co_gelu(g, co_conv2d(g, x, w, b, 1, 0));
}

static co_node *build(const co_build *b, const void *cfg)
{
    const struct fastnet_cfg *c = cfg;
    co_graph *g = b->g;
    co_node *h = whiten(g, b->x, b->io->x.d[0]);

    for (int i = 0; i < BLOCKS; i++) {
        char name[24];
        snprintf(name, sizeof name, "block%d", i + 1);
        h = add_block(g, h, c->width[i], name, c->residual);
    }
    if (!h)
        return NULL;
    h = co_max_pool(g, h, (int)co_node_shape(h)->d[2], 1, 0); /* [n,W3,1,1] */
    h = co_reshape(g, h, CO_SHAPE(b->shape.n, c->width[BLOCKS - 1]));
    h = co_nn_linear(g, h, predictions(b->io), false, "head");
    return co_scale(g, h, 1.0f / 9);
}

const co_model_def fastnet_def = {
    .name = "fastnet",
    .help = "small network for CIFAR-10 in minutes: whitened first layer, three blocks, GELU",
    .options = options,
    .cfg_size = sizeof(struct fastnet_cfg),
    .batch_stats = true,
    .check = check,
    .build = build,
};
