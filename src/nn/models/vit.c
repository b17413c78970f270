/* vit.c -- vision transformers with timm's names, shapes and initialisation (Dosovitskiy et al., 2021).
 *
 *   patches   convolution whose kernel and stride are the patch: [n, d, H/p, W/p], read by rows as N tokens
 *   tokens    cls_token before them, pos_embed added to all N + 1
 *   blocks    x = x + proj(attention(qkv(norm1(x))));   x = x + fc2(gelu(fc1(norm2(x))))
 *   head      linear layer over the norm of token 0
 *
 * The name gives patch, width, depth and heads. The data gives the size of the pictures: pos_embed has one
 * row per patch of them, whatever the 224 of a name says. weights= resamples pos_embed from a file for
 * another size.
 *
 * Linear weights and pos_embed start normal with deviation 0.02 (timm truncates at 100 deviations, which
 * never happens), cls_token with 1e-6, biases at 0; the convolution starts as PyTorch's. timm names cls_token
 * and pos_embed as parameters without weight decay, so they are marked like biases and norms.
 *
 * Only the last norm differs from timm in the order of work: timm normalises all tokens and then takes the
 * first. A norm looks at one token, so taking it before gives the same bits.
 */
#include "nn/nn_int.h"

#include <stdio.h>

enum { FEW_PATCHES = 16 };

struct vit_cfg {
    int64_t embed_dim, depth, num_heads; /* 0: that of the name */
    double drop_rate, pos_drop_rate, proj_drop_rate, drop_path_rate;
};

static const co_option options[] = {
    {"embed_dim", CO_OPT_INT, offsetof(struct vit_cfg, embed_dim), "0", "width; 0: that of the name",
     .min = 0, .max = 65536},
    {"depth", CO_OPT_INT, offsetof(struct vit_cfg, depth), "0", "blocks; 0: those of the name", .min = 0,
     .max = 1000},
    {"num_heads", CO_OPT_INT, offsetof(struct vit_cfg, num_heads), "0",
     "attention heads, which divide the width; 0: those of the name", .min = 0, .max = 1024},
    {"drop_rate", CO_OPT_FLOAT, offsetof(struct vit_cfg, drop_rate), "0", "dropout before the head", .min = 0,
     .max = 0.99},
    {"pos_drop_rate", CO_OPT_FLOAT, offsetof(struct vit_cfg, pos_drop_rate), "0",
     "dropout after the position embedding", .min = 0, .max = 0.99},
    {"proj_drop_rate", CO_OPT_FLOAT, offsetof(struct vit_cfg, proj_drop_rate), "0",
     "dropout after each attention and inside each MLP", .min = 0, .max = 0.99},
    {"drop_path_rate", CO_OPT_FLOAT, offsetof(struct vit_cfg, drop_path_rate), "0",
     "share of samples that skip a half of the last block; rises from 0 at the first block", .min = 0,
     .max = 0.99},
    {0}};

static const float eps = 1e-6f;
static const co_init zero = {CO_INIT_ZERO, 0}, one = {CO_INIT_ONE, 0}, narrow = {CO_INIT_NORMAL, 0.02f};

/* In the order of vit_defs. */
static const struct net {
    int patch, width, depth, heads;
} nets[] = {{16, 192, 12, 3}, {16, 384, 12, 6},  {16, 768, 12, 12},  {16, 1024, 24, 16},
            {32, 384, 12, 6}, {32, 768, 12, 12}, {32, 1024, 24, 16}, {4, 192, 12, 3}};

/* A model being built: the numbers of its name, or those of the options. */
struct vit {
    const co_build *b;
    co_graph *g;
    const struct vit_cfg *cfg;
    int patch, heads, depth;
    int64_t d;    /* width */
    int64_t h, w; /* patches of a picture */
};

static struct vit vit_of(const co_build *b, const struct vit_cfg *c)
{
    const struct net *net = &nets[b->def - vit_defs];

    return (struct vit){.b = b,
                        .g = b->g,
                        .cfg = c,
                        .patch = net->patch,
                        .heads = c->num_heads ? (int)c->num_heads : net->heads,
                        .depth = c->depth ? (int)c->depth : net->depth,
                        .d = c->embed_dim ? c->embed_dim : net->width,
                        .h = b->io->x.d[1] / net->patch,
                        .w = b->io->x.d[2] / net->patch};
}

static co_err check(const void *cfg, const co_io *io)
{
    char text[96];

    CO_TRY(check_is_numbers("vit_*", io));
    if (io->x.nd != 3)
        return co_fail(CO_EINPUT,
                       "model=vit_* needs images [C,H,W]; the data has %s; try model=linear or model=mlp",
                       co_shape_text(text, sizeof text, &io->x));
    return CO_OK;
}

static int64_t up_to_multiple(int64_t n, int64_t of)
{
    return (n + of - 1) / of * of;
}

/* What depends on the row: whether patches fill the pictures, and heads the width. */
static bool fits(const struct vit *v)
{
    const co_shape *x = &v->b->io->x;
    char text[96];

    if (x->d[1] % v->patch != 0 || x->d[2] % v->patch != 0)
        return co_graph_fail(v->g,
                             "it cuts images into patches of %dx%d pixels; the data has %s; try "
                             "data.resize=%lldx%lld",
                             v->patch, v->patch, co_shape_text(text, sizeof text, x),
                             (long long)up_to_multiple(x->d[1], v->patch),
                             (long long)up_to_multiple(x->d[2], v->patch));
    if (v->d % v->heads != 0)
        return co_graph_fail(v->g,
                             "a width of %lld cannot be cut into %d equal heads; try model.embed_dim=%lld",
                             (long long)v->d, v->heads, (long long)up_to_multiple(v->d, v->heads));
    return true;
}

/* "blocks.1.attn.qkv" */
static const char *in_block(char buf[NAME_MAX_LEN], int block, const char *what)
{
    snprintf(buf, NAME_MAX_LEN, "blocks.%d.%s", block, what);
    return buf;
}

/* x [..., in] -> [..., out] */
static co_node *linear(const struct vit *v, co_node *x, int64_t out, const char *name)
{
    char part[NAME_MAX_LEN + 8];

    if (!x)
        return NULL;
    const co_shape *s = co_node_shape(x);
    snprintf(part, sizeof part, "%s.weight", name);
    co_node *weight = co_param(v->g, part, CO_SHAPE(out, s->d[s->nd - 1]), narrow, 0);
    snprintf(part, sizeof part, "%s.bias", name);
    co_node *bias = co_param(v->g, part, CO_SHAPE(out), zero, CO_PARAM_NO_DECAY);
    return co_linear(v->g, x, weight, bias);
}

static co_node *norm(const struct vit *v, co_node *x, const char *name)
{
    char part[NAME_MAX_LEN + 8];

    snprintf(part, sizeof part, "%s.weight", name);
    co_node *weight = co_param(v->g, part, CO_SHAPE(v->d), one, CO_PARAM_NO_DECAY);
    snprintf(part, sizeof part, "%s.bias", name);
    co_node *bias = co_param(v->g, part, CO_SHAPE(v->d), zero, CO_PARAM_NO_DECAY);
    return co_layer_norm(v->g, x, weight, bias, eps);
}

static co_node *drop(const struct vit *v, co_node *x, double p, const char *name)
{
    return co_dropout(v->g, x, v->b->ids, (float)p, name);
}

/* Zeroes the whole change h [n, T, d] of some samples and scales that of the others, as timm's DropPath. The
 * factors are a dropout of ones [n, 1, 1]; a product of matrices applies each to its sample. */
static co_node *drop_path(const struct vit *v, co_node *h, int block, const char *name)
{
    char full[NAME_MAX_LEN];
    double p = v->depth > 1 ? v->cfg->drop_path_rate * block / (v->depth - 1) : 0;

    if (!h || p == 0 || !co_graph_training(v->g))
        return h;
    co_shape s = *co_node_shape(h);
    co_node *ones = co_fill(v->g, CO_SHAPE(s.d[0], 1, 1), 1);
    co_node *factor = drop(v, ones, p, in_block(full, block, name)); /* [n, 1, 1] */
    co_node *flat = co_reshape(v->g, h, CO_SHAPE(s.d[0], 1, s.d[1] * s.d[2]));
    return co_reshape(v->g, co_matmul(v->g, factor, flat, false, false), s);
}

/* x [n, T, d] -> its change [n, T, d] */
static co_node *attend(const struct vit *v, co_node *x, int block)
{
    char name[NAME_MAX_LEN];
    int64_t d = v->d;

    co_node *h = norm(v, x, in_block(name, block, "norm1"));
    co_node *qkv = linear(v, h, 3 * d, in_block(name, block, "attn.qkv")); /* [n, T, 3d] */
    co_node *q = co_slice(v->g, qkv, 2, 0, d);
    co_node *k = co_slice(v->g, qkv, 2, d, d);
    co_node *val = co_slice(v->g, qkv, 2, 2 * d, d);
    h = co_attention(v->g, q, k, val, NULL, v->heads, false);
    h = linear(v, h, d, in_block(name, block, "attn.proj"));
    h = drop(v, h, v->cfg->proj_drop_rate, in_block(name, block, "attn.proj_drop"));
    return drop_path(v, h, block, "drop_path1");
}

/* x [n, T, d] -> its change [n, T, d] */
static co_node *mlp_block(const struct vit *v, co_node *x, int block)
{
    char name[NAME_MAX_LEN];

    co_node *h = norm(v, x, in_block(name, block, "norm2"));
    h = linear(v, h, 4 * v->d, in_block(name, block, "mlp.fc1"));
    h = co_gelu(v->g, h); /* [n, T, 4d] */
    h = drop(v, h, v->cfg->proj_drop_rate, in_block(name, block, "mlp.drop1"));
    h = linear(v, h, v->d, in_block(name, block, "mlp.fc2"));
    h = drop(v, h, v->cfg->proj_drop_rate, in_block(name, block, "mlp.drop2"));
    return drop_path(v, h, block, "drop_path2");
}

/* The pictures [n, C, H, W] as tokens [n, 1 + N, d], the class token first. */
static co_node *embed(const struct vit *v)
{
    co_graph *g = v->g;
    int64_t n = v->b->shape.n, d = v->d, patches = v->h * v->w;

    co_node *cls =
        co_param(g, "cls_token", CO_SHAPE(1, 1, d), (co_init){CO_INIT_NORMAL, 1e-6f}, CO_PARAM_NO_DECAY);
    co_node *pos = co_param(g, "pos_embed", CO_SHAPE(1, 1 + patches, d), narrow, CO_PARAM_NO_DECAY);
    co_param_grid(g, pos, v->h, v->w);
    /* [n, d, h, w] */
    co_node *x = co_nn_conv(g, v->b->x, d, v->patch, v->patch, 0, true, "patch_embed.proj");
    x = co_reshape(g, x, CO_SHAPE(n, d, patches));
    x = co_transpose(g, x, (const int[]){0, 2, 1}); /* [n, N, d] */
    co_node *none = co_fill(g, CO_SHAPE(n, 1, d), 0);
    cls = co_reshape(g, cls, CO_SHAPE(1, d));
    cls = co_add(g, none, cls); /* [n, 1, d] */
    x = co_concat(g, (co_node *[]){cls, x}, 2, 1);
    pos = co_reshape(g, pos, CO_SHAPE(1 + patches, d));
    x = co_add(g, x, pos);
    return drop(v, x, v->cfg->pos_drop_rate, "pos_drop");
}

static co_node *build(const co_build *b, const void *cfg)
{
    struct vit v = vit_of(b, cfg);

    if (!fits(&v))
        return NULL;
    co_node *x = embed(&v);
    for (int i = 0; i < v.depth; i++) {
        co_node *h = attend(&v, x, i);
        x = co_add(b->g, x, h);
        h = mlp_block(&v, x, i);
        x = co_add(b->g, x, h);
    }
    x = co_slice(b->g, x, 1, 0, 1); /* [n, 1, d]: the class token */
    x = co_reshape(b->g, x, CO_SHAPE(b->shape.n, v.d));
    x = norm(&v, x, "norm");
    x = drop(&v, x, v.cfg->drop_rate, "head_drop");
    return linear(&v, x, predictions(b->io), "head");
}

/* A name promises 224 pixels. Where small pictures leave few patches, attention has nothing to look at. */
static void note(char *text, size_t size, const co_model_def *def, const void *cfg, const co_io *io)
{
    const struct net *net = &nets[def - vit_defs];
    int64_t h = io->x.d[1] / net->patch, w = io->x.d[2] / net->patch;

    int n = snprintf(text, size, "%lldx%lld patches of %dx%d pixels in a picture", (long long)h, (long long)w,
                     net->patch, net->patch);
    if (h * w < FEW_PATCHES && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ": few to learn from; data.resize=224x224 gives %dx%d",
                 224 / net->patch, 224 / net->patch);
}

#define ROW(name, help)                                                                                      \
    {                                                                                                        \
        name, help, options, sizeof(struct vit_cfg), false, check, build, note                               \
    }
const co_model_def vit_defs[] = {
    ROW("vit_tiny_patch16_224", "vision transformer of width 192, for images; timm's names"),
    ROW("vit_small_patch16_224", "vision transformer of width 384, patches of 16x16 pixels"),
    ROW("vit_base_patch16_224", "vision transformer of width 768, patches of 16x16 pixels"),
    ROW("vit_large_patch16_224", "vision transformer of width 1024 and 24 blocks, patches of 16x16 pixels"),
    ROW("vit_small_patch32_224", "vision transformer of width 384, patches of 32x32 pixels"),
    ROW("vit_base_patch32_224", "vision transformer of width 768, patches of 32x32 pixels"),
    ROW("vit_large_patch32_224", "vision transformer of width 1024 and 24 blocks, patches of 32x32 pixels"),
    ROW("vit_tiny_patch4_32", "vision transformer of width 192 for small images, patches of 4x4 pixels"),
};
