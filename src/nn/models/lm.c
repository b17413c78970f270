/* lm.c -- a small causal transformer over characters, with the norm before each layer (Radford et al., 2019).
 *
 *   tok + pos  ->  blocks  ->  norm  ->  head
 *   block:  x = x + proj(attention(qkv(norm1(x))));   x = x + fc2(gelu(fc1(norm2(x))))
 *
 * Position embeddings are learned, with one row per position of the longest sample. The head has its own
 * weight, so that the gradient of the embedding stays row-sparse.
 */
#include "nn/nn_int.h"

#include <stdio.h>

struct lm_cfg {
    int64_t d_model, heads, layers;
    double dropout;
    bool sparse_embedding;
};

static const co_option options[] = {
    {"d_model", CO_OPT_INT, offsetof(struct lm_cfg, d_model), "64", "width of the model", .min = 1,
     .max = 65536},
    {"heads", CO_OPT_INT, offsetof(struct lm_cfg, heads), "4", "attention heads; they divide d_model",
     .min = 1, .max = 1024},
    {"layers", CO_OPT_INT, offsetof(struct lm_cfg, layers), "2", "blocks", .min = 1, .max = 1000},
    {"dropout", CO_OPT_FLOAT, offsetof(struct lm_cfg, dropout), "0.1",
     "share dropped after the embedding and in each block", .min = 0, .max = 0.99},
    {"sparse_embedding", CO_OPT_BOOL, offsetof(struct lm_cfg, sparse_embedding), "true",
     "row-sparse gradient and lazy updates for the embedding"},
    {0}};

static co_err check(const void *cfg, const co_io *io)
{
    const struct lm_cfg *c = cfg;
    char text[96];

    CO_TRY(check_is_not_ratings("lm", io));
    if (io->task != CO_TASK_LM)
        return co_fail(
            CO_EINPUT,
            "model=lm needs text (data=text data.path=FILE); the data has numbers %s; try model=linear or "
            "model=mlp%s",
            co_shape_text(text, sizeof text, &io->x), io->x.nd == 3 ? " or model=cnn" : "");
    return check_heads(c->d_model, c->heads);
}

/* "blocks.1.attn.qkv" */
static const char *in_block(char buf[NAME_MAX_LEN], int block, const char *what)
{
    snprintf(buf, NAME_MAX_LEN, "blocks.%d.%s", block, what);
    return buf;
}

/* x [tokens, d] -> [tokens, d]; the caller adds the residual */
static co_node *attend(const co_build *b, const struct lm_cfg *c, co_node *x, int block)
{
    co_graph *g = b->g;
    int64_t d = c->d_model;
    char name[NAME_MAX_LEN];

    co_node *h = co_nn_layer_norm(g, x, in_block(name, block, "norm1"));
    co_node *qkv = co_nn_linear(g, h, 3 * d, true, in_block(name, block, "attn.qkv")); /* [tokens, 3d] */
    co_node *q = co_slice(g, qkv, 1, 0, d), *k = co_slice(g, qkv, 1, d, d);
    co_node *v = co_slice(g, qkv, 1, 2 * d, d);
    h = co_ragged_attention(g, q, k, v, &b->x_spans, &b->x_spans, (int)c->heads, true, 0,
                            in_block(name, block, "attn")); /* [tokens, d] */
    h = co_nn_linear(g, h, d, true, in_block(name, block, "attn.proj"));
    return co_ragged_dropout(g, h, &b->x_spans, (float)c->dropout, in_block(name, block, "attn.drop"));
}

/* x [tokens, d] -> [tokens, d]; the caller adds the residual */
static co_node *mlp_block(const co_build *b, const struct lm_cfg *c, co_node *x, int block)
{
    co_graph *g = b->g;
    char name[NAME_MAX_LEN];

    co_node *h = co_nn_layer_norm(g, x, in_block(name, block, "norm2"));
    /* [tokens, 4d] */
    h = co_gelu(g, co_nn_linear(g, h, 4 * c->d_model, true, in_block(name, block, "mlp.fc1")));
    h = co_nn_linear(g, h, c->d_model, true, in_block(name, block, "mlp.fc2"));
    return co_ragged_dropout(g, h, &b->x_spans, (float)c->dropout, in_block(name, block, "mlp.drop"));
}

static co_node *build(const co_build *b, const void *cfg)
{
    const struct lm_cfg *c = cfg;
    co_graph *g = b->g;

    co_node *tok = co_nn_embedding(g, b->x, b->io->classes, c->d_model, c->sparse_embedding, "tok");
    co_node *pos =
        co_param(g, "pos.weight", CO_SHAPE(b->io->max_len, c->d_model), (co_init){CO_INIT_NORMAL, 1}, 0);
    co_node *place = co_positions(g, &b->x_spans, b->x);      /* [tokens] */
    co_node *x = co_add(g, tok, co_embedding(g, pos, place)); /* [tokens, d] */

    x = co_ragged_dropout(g, x, &b->x_spans, (float)c->dropout, "drop");
    for (int i = 0; i < (int)c->layers; i++) {
        x = co_add(g, x, attend(b, c, x, i));
        x = co_add(g, x, mlp_block(b, c, x, i));
    }
    x = co_nn_layer_norm(g, x, "norm");
    return co_nn_linear(g, x, b->io->classes, false, "head"); /* [tokens, classes] */
}

const co_model_def lm_def = {
    .name = "lm",
    .help = "small causal transformer over characters",
    .options = options,
    .cfg_size = sizeof(struct lm_cfg),
    .check = check,
    .build = build,
};
