/* cnn.c -- a small convolutional network with batch norm, for small images.
 *
 *   conv1 bn1 relu   conv2 bn2 relu   max pool 2   conv3 bn3 relu   mean over the pixels   fc
 *   [W,h,w]          [2W,h,w]                      [2W,h/2,w/2]     [2W]
 *
 * Convolutions are 3x3 with padding 1 and no bias, because each is followed by a batch norm, which has one.
 */
#include "nn/nn_int.h"

struct cnn_cfg {
    int64_t width;
    double dropout;
};

static const co_option options[] = {{"width", CO_OPT_INT, offsetof(struct cnn_cfg, width), "32",
                                     "channels of the first layer", .min = 1, .max = 4096},
                                    {"dropout", CO_OPT_FLOAT, offsetof(struct cnn_cfg, dropout), "0.0",
                                     "share of values dropped before the last layer", .min = 0, .max = 0.99},
                                    {0}};

static co_err check(const void *cfg, const co_io *io)
{
    char text[96];

    CO_TRY(check_is_numbers("cnn", io));
    if (io->x.nd != 3)
        return co_fail(CO_EINPUT,
                       "model=cnn needs images [C,H,W]; the data has %s; try model=linear or model=mlp",
                       co_shape_text(text, sizeof text, &io->x));
    if (io->x.d[1] < 2 || io->x.d[2] < 2)
        return co_fail(CO_EINPUT,
                       "model=cnn needs images of 2x2 pixels at least; the data has %s; try model=linear or "
                       "model=mlp",
                       co_shape_text(text, sizeof text, &io->x));
    return CO_OK;
}

static co_node *conv_bn_relu(co_graph *g, co_node *x, int64_t out, const char *conv, const char *norm)
{
    return co_relu(g, co_nn_batch_norm(g, co_nn_conv(g, x, out, 3, 1, 1, false, conv), norm));
}

static co_node *build(const co_build *b, const void *cfg)
{
    const struct cnn_cfg *c = cfg;
    co_graph *g = b->g;
    int64_t wide = 2 * c->width, h2 = b->io->x.d[1] / 2, w2 = b->io->x.d[2] / 2;
    co_node *h;

    h = conv_bn_relu(g, b->x, c->width, "conv1", "bn1"); /* [n, W, h, w] */
    h = conv_bn_relu(g, h, wide, "conv2", "bn2");        /* [n, 2W, h, w] */
    h = co_max_pool(g, h, 2, 2, 0);                      /* [n, 2W, h/2, w/2] */
    h = conv_bn_relu(g, h, wide, "conv3", "bn3");
    h = co_avg_pool(g, h, (int)h2, (int)w2, 1, 0); /* [n, 2W, 1, 1] */
    h = co_reshape(g, h, CO_SHAPE(b->shape.n, wide));
    h = co_dropout(g, h, b->ids, (float)c->dropout, "drop");
    return co_nn_linear(g, h, predictions(b->io), true, "fc");
}

const co_model_def cnn_def = {
    .name = "cnn",
    .help = "small convolutional network with batch norm, for images",
    .options = options,
    .cfg_size = sizeof(struct cnn_cfg),
    .batch_stats = true,
    .check = check,
    .build = build,
};
