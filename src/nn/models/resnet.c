/* resnet.c -- residual networks with torchvision's names, shapes and initialisation: 18, 34, 50, 101, 152
 * layers.
 *
 *   stem        imagenet: conv 7x7/2, bn, relu, max pool 3x3/2       cifar: conv 3x3, bn, relu
 *   layer1..4   blocks of width 64, 128, 256, 512; the first block of layers 2, 3, 4 halves the image
 *   fc          linear layer over the mean of all pixels
 *
 *   basic       3x3/s  3x3            + x          (18, 34)
 *   bottleneck  1x1    3x3/s  1x1     + x          (50 and more layers; the last has 4 times the width)
 *
 * Every convolution has a batch norm and no bias. The first block of a layer sends x through a convolution
 * 1x1/s ("downsample") where the shape of x differs from the shape of the sum. Convolutions start from a
 * normal distribution scaled by fan-out; fc starts like any linear layer.
 */
#include "nn/nn_int.h"

#include <stdio.h>

enum { IMAGENET, CIFAR }; /* the choices of `stem` */

struct resnet_cfg {
    int stem;
    bool zero_init_residual;
};

static const co_option options[] = {
    {"stem", CO_OPT_ENUM, offsetof(struct resnet_cfg, stem), "imagenet",
     "first layers: 7x7 with stride 2 and a pool, or 3x3 for small images", .choices = "imagenet|cifar"},
    {"zero_init_residual", CO_OPT_BOOL, offsetof(struct resnet_cfg, zero_init_residual), "false",
     "start every block as the identity: its last norm has weight 0"},
    {0}};

/* In the order of resnet_defs. */
static const struct net {
    bool bottleneck;
    int blocks[4]; /* of layer1..4 */
} nets[] = {{false, {2, 2, 2, 2}},
            {false, {3, 4, 6, 3}},
            {true, {3, 4, 6, 3}},
            {true, {3, 4, 23, 3}},
            {true, {3, 8, 36, 3}}};

/* The stem and the layers divide height and width by 32 (cifar: 8): a smaller image is mostly padding. */
static co_err check(const void *cfg, const co_io *io)
{
    const struct resnet_cfg *c = cfg;
    int least = c->stem == CIFAR ? 8 : 32;
    char text[96];

    CO_TRY(check_is_numbers("resnet*", io));
    if (io->x.nd != 3)
        return co_fail(CO_EINPUT,
                       "model=resnet* needs images [C,H,W]; the data has %s; try model=linear or model=mlp",
                       co_shape_text(text, sizeof text, &io->x));
    if (io->x.d[1] < least || io->x.d[2] < least)
        return co_fail(CO_EINPUT,
                       "model=resnet* with model.stem=%s needs images of %dx%d pixels at least; the data has "
                       "%s; try %s",
                       c->stem == CIFAR ? "cifar" : "imagenet", least, least,
                       co_shape_text(text, sizeof text, &io->x),
                       c->stem == CIFAR ? "model=cnn" : "model.stem=cifar or model=cnn");
    return CO_OK;
}

/* A block being built. Its name ("layer1.0") is the prefix of the names of its parts. */
struct block {
    co_graph *g;
    char name[32];
    bool zero; /* its last norm starts at 0 */
};

static co_node *conv_bn(const struct block *b, co_node *x, int64_t out, int k, int stride, const char *conv,
                        const char *norm, bool zero)
{
    char name[NAME_MAX_LEN];

    snprintf(name, sizeof name, "%s.%s", b->name, conv);
    x = co_nn_conv_he(b->g, x, out, k, stride, k / 2, name);
    snprintf(name, sizeof name, "%s.%s", b->name, norm);
    return (zero ? co_nn_batch_norm_zero : co_nn_batch_norm)(b->g, x, name);
}

/* x [n, in, h, w] -> [n, width (bottleneck: 4 * width), h / stride, w / stride] */
static co_node *add_block(const struct block *b, bool bottleneck, co_node *x, int64_t width, int stride)
{
    int64_t out = bottleneck ? 4 * width : width;
    co_node *h = x;

    if (bottleneck) {
        h = co_relu(b->g, conv_bn(b, h, width, 1, 1, "conv1", "bn1", false));
        h = co_relu(b->g, conv_bn(b, h, width, 3, stride, "conv2", "bn2", false));
        h = conv_bn(b, h, out, 1, 1, "conv3", "bn3", b->zero);
    } else {
        h = co_relu(b->g, conv_bn(b, h, width, 3, stride, "conv1", "bn1", false));
        h = conv_bn(b, h, out, 3, 1, "conv2", "bn2", b->zero);
    }
    if (x && (stride != 1 || co_node_shape(x)->d[1] != out))
        x = conv_bn(b, x, out, 1, stride, "downsample.0", "downsample.1", false);
    return co_relu(b->g, co_add(b->g, h, x));
}

static co_node *add_stem(co_graph *g, co_node *x, int stem)
{
    co_node *h = stem == CIFAR ? co_nn_conv_he(g, x, 64, 3, 1, 1, "conv1")  /* [n, 64, H, W] */
                               : co_nn_conv_he(g, x, 64, 7, 2, 3, "conv1"); /* [n, 64, H/2, W/2] */

    h = co_relu(g, co_nn_batch_norm(g, h, "bn1"));
    return stem == CIFAR ? h : co_max_pool(g, h, 3, 2, 1); /* [n, 64, H/4, W/4] */
}

static co_node *build(const co_build *b, const void *cfg)
{
    const struct resnet_cfg *c = cfg;
    const struct net *net = &nets[b->def - resnet_defs];
    struct block block = {.g = b->g, .zero = c->zero_init_residual};
    co_node *h = add_stem(b->g, b->x, c->stem);

    for (int l = 0; l < 4; l++)
        for (int i = 0; i < net->blocks[l]; i++) {
            snprintf(block.name, sizeof block.name, "layer%d.%d", l + 1, i);
            h = add_block(&block, net->bottleneck, h, 64 << l, l > 0 && i == 0 ? 2 : 1);
        }
    if (!h)
        return NULL;
    co_shape s = *co_node_shape(h); /* [n, 512 (2048), H/32, W/32] */
    h = co_avg_pool(b->g, h, (int)s.d[2], (int)s.d[3], 1, 0);
    h = co_reshape(b->g, h, CO_SHAPE(s.d[0], s.d[1]));
    return co_nn_linear(b->g, h, predictions(b->io), true, "fc");
}

const co_model_def resnet_defs[] = {
    {"resnet18", "residual network of 18 layers, for images; torchvision's names", options,
     sizeof(struct resnet_cfg), true, check, build},
    {"resnet34", "residual network of 34 layers", options, sizeof(struct resnet_cfg), true, check, build},
    {"resnet50", "residual network of 50 layers, in bottlenecks", options, sizeof(struct resnet_cfg), true,
     check, build},
    {"resnet101", "residual network of 101 layers, in bottlenecks", options, sizeof(struct resnet_cfg), true,
     check, build},
    {"resnet152", "residual network of 152 layers, in bottlenecks", options, sizeof(struct resnet_cfg), true,
     check, build},
};
