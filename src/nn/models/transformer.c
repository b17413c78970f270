/* transformer.c -- an encoder and a decoder that translate one sequence into another (Vaswani et al.,
 * 2017), with the norm before each layer.
 *
 *   source:  embedding * sqrt(d) + sinusoids -> N blocks of (self attention, feed forward) -> norm = memory
 * target:  embedding * sqrt(d) + sinusoids -> N blocks of (self attention, attention to memory, feed
 * forward) -> norm
 *            -> projection
 *   block:   x = x + dropout(layer(norm(x))) for each of its layers
 *
 * The norm divides by the unbiased standard deviation plus eps. Attention has no biases. Weights of two
 * dimensions begin as Xavier's uniform ones. Parameters have the names of the PyTorch module that many
 * users begin with (encoder.layers.0.self_attention_block.w_q.weight), so that its weights can be imported.
 *
 * Sources and targets are two ragged dimensions; no row is padding. Every graph declares all parameters in
 * one order, so graphs that compute only a part have the same layout.
 */
#include "nn/nn_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const float norm_eps = 1e-6f;

struct transformer_cfg {
    int64_t d_model, layers, heads, d_ff;
    double dropout;
    bool sparse_embedding;
};

static const co_option options[] = {
    {"d_model", CO_OPT_INT, offsetof(struct transformer_cfg, d_model), "512", "width of the model", .min = 1,
     .max = 65536},
    {"layers", CO_OPT_INT, offsetof(struct transformer_cfg, layers), "6",
     "blocks of the encoder, and as many of the decoder", .min = 1, .max = 60, .alias = "model.N"},
    {"heads", CO_OPT_INT, offsetof(struct transformer_cfg, heads), "8",
     "attention heads; they divide d_model", .min = 1, .max = 1024, .alias = "model.h"},
    {"d_ff", CO_OPT_INT, offsetof(struct transformer_cfg, d_ff), "2048",
     "width inside the feed-forward layers", .min = 1, .max = 1 << 20},
    {"dropout", CO_OPT_FLOAT, offsetof(struct transformer_cfg, dropout), "0.1",
     "share dropped of embeddings, attention, and the results of layers", .min = 0, .max = 0.99},
    {"sparse_embedding", CO_OPT_BOOL, offsetof(struct transformer_cfg, sparse_embedding), "false",
     "row-sparse gradients and lazy updates for the embeddings"},
    {0}};

static co_err check(const void *cfg, const co_io *io)
{
    const struct transformer_cfg *c = cfg;

    if (io->task != CO_TASK_PAIRS)
        return co_fail(CO_EINPUT, "model=transformer needs pairs of sentences to learn from%s",
                       io->task == CO_TASK_LM ? "; the data is plain text; try model=lm" : "");
    return check_heads(c->d_model, c->heads);
}

typedef struct transformer {
    co_graph *g;
    const co_io *io;
    const struct transformer_cfg *c;
} transformer;

typedef char name_buf[NAME_MAX_LEN];

static const char *format(name_buf buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *format(name_buf buf, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, NAME_MAX_LEN, fmt, ap);
    va_end(ap);
    return buf;
}

static const char *name(name_buf buf, const char *block, const char *what)
{
    return format(buf, "%s.%s", block, what);
}

static co_init xavier(int64_t a, int64_t b)
{
    return (co_init){CO_INIT_UNIFORM, (float)sqrt(6.0 / (double)(a + b))};
}

/* --- layers --------------------------------------------------------------------------------------------- */

/* x [T, in] -> [T, out]. x = NULL: only the parameters are declared. */
static co_node *linear(const transformer *t, co_node *x, int64_t in, int64_t out, bool bias, const char *module)
{
    name_buf buf;
    co_node *w = co_param(t->g, name(buf, module, "weight"), CO_SHAPE(out, in), xavier(in, out), 0);
    co_node *b = NULL;

    if (bias)
        b = co_param(t->g, name(buf, module, "bias"), CO_SHAPE(out),
                     (co_init){CO_INIT_UNIFORM, (float)(1 / sqrt((double)in))}, CO_PARAM_NO_DECAY);
    return x ? co_linear(t->g, x, w, b) : NULL;
}

static co_node *norm(const transformer *t, co_node *x, const char *module)
{
    name_buf buf;
    co_shape wide = CO_SHAPE(t->c->d_model);
    co_node *alpha =
        co_param(t->g, name(buf, module, "alpha"), wide, (co_init){CO_INIT_ONE, 0}, CO_PARAM_NO_DECAY);
    co_node *bias =
        co_param(t->g, name(buf, module, "bias"), wide, (co_init){CO_INIT_ZERO, 0}, CO_PARAM_NO_DECAY);

    return x ? co_std_norm(t->g, x, alpha, bias, norm_eps) : NULL;
}

/* idx [T], place [T] -> [T, d] */
static co_node *embed(const transformer *t, co_node *idx, co_node *place, int64_t rows, const char *module)
{
    name_buf buf;
    int64_t d = t->c->d_model;
    co_node *table = co_param(t->g, name(buf, module, "embedding.weight"), CO_SHAPE(rows, d), xavier(rows, d),
                              t->c->sparse_embedding ? CO_PARAM_SPARSE : 0);

    if (!idx)
        return NULL;
    co_node *x = co_scale(t->g, co_embedding(t->g, table, idx), (float)sqrt((double)d));
    return co_add(t->g, x, co_sinusoids(t->g, place, d));
}

static co_node *drop(const transformer *t, co_node *x, const co_spans *spans, const char *what)
{
    return co_ragged_dropout(t->g, x, spans, (float)t->c->dropout, what);
}

/* The norm before layer k of a block: x -> norm(x). */
static co_node *norm_before(const transformer *t, co_node *x, const char *block, int k)
{
    name_buf module;

    return norm(t, x, format(module, "%s.residual_connections.%d.norm", block, k));
}

/* x + dropout(h), where h is layer k of norm_before(x). */
static co_node *residual(const transformer *t, co_node *x, co_node *h, const co_spans *spans,
                         const char *block, int k)
{
    name_buf what;

    format(what, "%s.residual_connections.%d.dropout", block, k);
    return co_add(t->g, x, drop(t, h, spans, what));
}

static co_node *feed_forward(const transformer *t, co_node *h, const co_spans *spans, const char *block)
{
    name_buf buf;

    h = linear(t, h, t->c->d_model, t->c->d_ff, true, name(buf, block, "feed_forward_block.linear_1"));
    h = h ? drop(t, co_relu(t->g, h), spans, name(buf, block, "feed_forward_block.dropout")) : NULL;
    return linear(t, h, t->c->d_ff, t->c->d_model, true, name(buf, block, "feed_forward_block.linear_2"));
}

/* One of w_q, w_k, w_v, w_o of an attention block. */
static co_node *weigh(const transformer *t, co_node *x, const char *attention, const char *which)
{
    name_buf buf;

    return linear(t, x, t->c->d_model, t->c->d_model, false, name(buf, attention, which));
}

/* Queries from h [Tq, d] over keys and values k, v [Tk, d] -> [Tq, d] */
static co_node *attend(const transformer *t, co_node *q, co_node *k, co_node *v, const co_spans *q_spans,
                       const co_spans *k_spans, bool causal, const char *attention)
{
    name_buf buf;
    co_node *y = co_ragged_attention(t->g, q, k, v, q_spans, k_spans, (int)t->c->heads, causal,
                                     (float)t->c->dropout, name(buf, attention, "dropout"));

    return weigh(t, y, attention, "w_o");
}

static co_node *self_attention(const transformer *t, co_node *h, const co_spans *spans, bool causal,
                               const char *attention)
{
    co_node *q = weigh(t, h, attention, "w_q");
    co_node *k = weigh(t, h, attention, "w_k");
    co_node *v = weigh(t, h, attention, "w_v");

    return attend(t, q, k, v, spans, spans, causal, attention);
}

/* --- parameters, in the order of the layout ------------------------------------------------------------- */

static void declare_attention(const transformer *t, const char *attention)
{
    weigh(t, NULL, attention, "w_q");
    weigh(t, NULL, attention, "w_k");
    weigh(t, NULL, attention, "w_v");
    weigh(t, NULL, attention, "w_o");
}

static const char *block_name(name_buf buf, const char *side, int i)
{
    return format(buf, "%s.layers.%d", side, i);
}

static void declare_side(const transformer *t, const char *side, bool decoder)
{
    name_buf block, buf;

    for (int i = 0; i < (int)t->c->layers; i++) {
        block_name(block, side, i);
        declare_attention(t, name(buf, block, "self_attention_block"));
        if (decoder)
            declare_attention(t, name(buf, block, "cross_attention_block"));
        feed_forward(t, NULL, NULL, block);
        for (int k = 0; k < (decoder ? 3 : 2); k++)
            norm_before(t, NULL, block, k);
    }
    norm(t, NULL, name(buf, side, "norm"));
}

static transformer open(co_graph *g, const co_io *io, const void *cfg)
{
    transformer t = {g, io, cfg};

    embed(&t, NULL, NULL, io->sources, "src_embed");
    embed(&t, NULL, NULL, io->classes, "tgt_embed");
    declare_side(&t, "encoder", false);
    declare_side(&t, "decoder", true);
    linear(&t, NULL, t.c->d_model, io->classes, true, "projection_layer.proj");
    return t;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* x [tokens] -> memory [tokens, d] */
static co_node *encoder(const transformer *t, const co_build *b)
{
    const co_spans *spans = &b->x_spans;
    co_node *place = co_positions(t->g, spans, b->x);
    co_node *x = embed(t, b->x, place, b->io->sources, "src_embed");
    name_buf block, buf;

    x = drop(t, x, spans, "src_pos.dropout");
    for (int i = 0; i < (int)t->c->layers; i++) {
        block_name(block, "encoder", i);
        co_node *h = norm_before(t, x, block, 0);
        h = self_attention(t, h, spans, false, name(buf, block, "self_attention_block"));
        x = residual(t, x, h, spans, block, 0);
        h = feed_forward(t, norm_before(t, x, block, 1), spans, block);
        x = residual(t, x, h, spans, block, 1);
    }
    return norm(t, x, "encoder.norm");
}

/* -> [targets, classes] */
static co_node *project(const transformer *t, co_node *x)
{
    x = norm(t, x, "decoder.norm");
    return linear(t, x, t->c->d_model, t->io->classes, true, "projection_layer.proj");
}

static co_node *build(const co_build *b, const void *cfg)
{
    transformer t = open(b->g, b->io, cfg);
    const co_spans *spans = &b->y_spans;
    co_node *memory = encoder(&t, b); /* [tokens, d] */
    co_node *place = co_positions(t.g, spans, b->given);
    co_node *x = embed(&t, b->given, place, b->io->classes, "tgt_embed"); /* [targets, d] */
    name_buf block, buf;

    x = drop(&t, x, spans, "tgt_pos.dropout");
    for (int i = 0; i < (int)t.c->layers; i++) {
        block_name(block, "decoder", i);
        co_node *h = norm_before(&t, x, block, 0);
        h = self_attention(&t, h, spans, true, name(buf, block, "self_attention_block"));
        x = residual(&t, x, h, spans, block, 0);
        const char *cross = name(buf, block, "cross_attention_block");
        co_node *q = weigh(&t, norm_before(&t, x, block, 1), cross, "w_q");
        co_node *k = weigh(&t, memory, cross, "w_k");
        co_node *v = weigh(&t, memory, cross, "w_v");
        h = attend(&t, q, k, v, spans, &b->x_spans, false, cross);
        x = residual(&t, x, h, spans, block, 1);
        h = feed_forward(&t, norm_before(&t, x, block, 2), spans, block);
        x = residual(&t, x, h, spans, block, 2);
    }
    return project(&t, x);
}

/* --- one token at a time -------------------------------------------------------------------------------- */

/* Keys and values of each block: of a source's tokens for attention to memory, of a target's for self
 * attention. */
static int caches(const void *cfg, int64_t *width)
{
    const struct transformer_cfg *c = cfg;

    *width = c->d_model;
    return 2 * (int)c->layers;
}

static co_node *encode(const co_build *b, const void *cfg)
{
    transformer t = open(b->g, b->io, cfg);
    co_node *memory = encoder(&t, b), *parts[CO_MAX_CACHES]; /* [tokens, d] */
    name_buf block, buf;
    int n = 0;

    for (int i = 0; i < (int)t.c->layers && n < CO_MAX_CACHES; i++) {
        const char *cross = name(buf, block_name(block, "decoder", i), "cross_attention_block");
        parts[n++] = weigh(&t, memory, cross, "w_k");
        parts[n++] = weigh(&t, memory, cross, "w_v");
    }
    return co_concat(b->g, parts, n, 1);
}

static co_node *step(const co_step *s, const void *cfg)
{
    transformer t = open(s->g, s->io, cfg);
    co_node *x = embed(&t, s->last, s->place, s->io->classes, "tgt_embed"),
            *parts[1 + CO_MAX_CACHES]; /* [rows, d] */
    name_buf block, buf;
    int n = 1;

    for (int i = 0; i < (int)t.c->layers && n + 1 < CO_MAX_CACHES; i++) {
        block_name(block, "decoder", i);
        const char *own = name(buf, block, "self_attention_block");
        co_node *h = norm_before(&t, x, block, 0);
        co_node *q = weigh(&t, h, own, "w_q");
        co_node *k = parts[n++] = weigh(&t, h, own, "w_k");
        co_node *v = parts[n++] = weigh(&t, h, own, "w_v");
        k = co_pick_rows(t.g, s->kept[2 * i], k, s->pick); /* [keys, d] */
        v = co_pick_rows(t.g, s->kept[2 * i + 1], v, s->pick);
        x = residual(&t, x, attend(&t, q, k, v, &s->rows, &s->keys, false, own), &s->rows, block, 0);
        const char *cross = name(buf, block, "cross_attention_block");
        q = weigh(&t, norm_before(&t, x, block, 1), cross, "w_q");
        h = attend(&t, q, s->memory[2 * i], s->memory[2 * i + 1], &s->beams, &s->sources, false, cross);
        x = residual(&t, x, h, &s->rows, block, 1);
        x = residual(&t, x, feed_forward(&t, norm_before(&t, x, block, 2), &s->rows, block), &s->rows, block,
                     2);
    }
    parts[0] = project(&t, x);
    return co_concat(t.g, parts, n, 1);
}

static const co_decoder decoder = {caches, encode, step};

const co_model_def transformer_def = {
    .name = "transformer",
    .help = "encoder and decoder that translate sentences, with attention",
    .options = options,
    .cfg_size = sizeof(struct transformer_cfg),
    .check = check,
    .build = build,
    .decoder = &decoder,
};
