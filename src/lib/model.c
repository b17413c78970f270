/* model.c -- the program's own models, and the operators and layers of cohort.h: each calls the function of
 * src/graph or src/nn.
 *
 * Graphs and nodes are the same objects on both sides; shapes are copied.
 */
#include "lib/lib_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

co_shape shape_in(cohort_shape s)
{
    co_shape to = {.nd = s.nd < 0 || s.nd > CO_MAX_DIMS ? -1 : s.nd};

    memcpy(to.d, s.d, sizeof to.d);
    return to;
}

cohort_shape shape_out(const co_shape *s)
{
    cohort_shape to = {.nd = s->nd};

    memcpy(to.d, s->d, sizeof to.d);
    return to;
}

co_node *model_build(const co_build *b, const void *cfg)
{
    const lib_model *m = (const lib_model *)b->def;
    cohort_build in = {.g = b->g,
                       .x = b->x,
                       .ids = b->ids,
                       .samples = {.offsets = b->x_spans.offsets, .ids = b->ids, .longest = b->io->max_len},
                       .task = (cohort_task)b->io->task,
                       .sample = shape_out(&b->io->x),
                       .n = b->shape.n,
                       .tokens = b->shape.tokens,
                       .outputs = b->io->task == CO_TASK_REGRESS ? b->io->y_width : b->io->classes};
    co_node *prediction = m->theirs->build(&in, cfg);

    return prediction ? prediction
                      : co_graph_fail(b->g, "build() gave no prediction"); /* if it is the first mistake */
}

cohort_node *cohort_graph_fail(cohort_graph *g, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return co_graph_fail(g, "%s", text);
}

bool cohort_graph_training(const cohort_graph *g)
{
    return co_graph_training(g);
}

cohort_shape cohort_node_shape(const cohort_node *n)
{
    return shape_out(co_node_shape(n));
}

/* --- layers --------------------------------------------------------------------------------------------- */
cohort_node *cohort_nn_linear(cohort_graph *g, cohort_node *x, int64_t out, bool bias, const char *name)
{
    return co_nn_linear(g, x, out, bias, name);
}

cohort_node *cohort_nn_conv(cohort_graph *g, cohort_node *x, int64_t out, int k, int stride, int pad,
                            bool bias, const char *name)
{
    return co_nn_conv(g, x, out, k, stride, pad, bias, name);
}

cohort_node *cohort_nn_batch_norm(cohort_graph *g, cohort_node *x, const char *name)
{
    return co_nn_batch_norm(g, x, name);
}

cohort_node *cohort_nn_layer_norm(cohort_graph *g, cohort_node *x, const char *name)
{
    return co_nn_layer_norm(g, x, name);
}

cohort_node *cohort_nn_embedding(cohort_graph *g, cohort_node *tokens, int64_t rows, int64_t width,
                                 bool sparse, const char *name)
{
    return co_nn_embedding(g, tokens, rows, width, sparse, name);
}

cohort_node *cohort_param(cohort_graph *g, const char *name, cohort_shape shape, cohort_init_kind init, float a)
{
    return co_param(g, name, shape_in(shape), (co_init){(co_init_kind)init, a}, 0);
}

/* --- operators ------------------------------------------------------------------------------------------ */
cohort_node *cohort_relu(cohort_graph *g, cohort_node *x)
{
    return co_relu(g, x);
}

cohort_node *cohort_gelu(cohort_graph *g, cohort_node *x)
{
    return co_gelu(g, x);
}

cohort_node *cohort_softmax(cohort_graph *g, cohort_node *x)
{
    return co_softmax(g, x);
}

cohort_node *cohort_dropout(cohort_graph *g, cohort_node *x, cohort_node *ids, float p, const char *name)
{
    return co_dropout(g, x, ids, p, name);
}

cohort_node *cohort_add(cohort_graph *g, cohort_node *a, cohort_node *b)
{
    return co_add(g, a, b);
}

cohort_node *cohort_mul(cohort_graph *g, cohort_node *a, cohort_node *b)
{
    return co_mul(g, a, b);
}

cohort_node *cohort_scale(cohort_graph *g, cohort_node *x, float value)
{
    return co_scale(g, x, value);
}

cohort_node *cohort_fill(cohort_graph *g, cohort_shape shape, float value)
{
    return co_fill(g, shape_in(shape), value);
}

cohort_node *cohort_matmul(cohort_graph *g, cohort_node *a, cohort_node *b, bool transpose_a, bool transpose_b)
{
    return co_matmul(g, a, b, transpose_a, transpose_b);
}

cohort_node *cohort_max_pool(cohort_graph *g, cohort_node *x, int k, int stride, int pad)
{
    return co_max_pool(g, x, k, stride, pad);
}

cohort_node *cohort_avg_pool(cohort_graph *g, cohort_node *x, int kh, int kw, int stride, int pad)
{
    return co_avg_pool(g, x, kh, kw, stride, pad);
}

cohort_node *cohort_reshape(cohort_graph *g, cohort_node *x, cohort_shape shape)
{
    return co_reshape(g, x, shape_in(shape));
}

cohort_node *cohort_transpose(cohort_graph *g, cohort_node *x, const int *perm)
{
    return co_transpose(g, x, perm);
}

cohort_node *cohort_concat(cohort_graph *g, cohort_node *const *x, int n, int axis)
{
    return co_concat(g, x, n, axis);
}

cohort_node *cohort_slice(cohort_graph *g, cohort_node *x, int axis, int64_t start, int64_t len)
{
    return co_slice(g, x, axis, start, len);
}

cohort_node *cohort_attention(cohort_graph *g, cohort_node *q, cohort_node *k, cohort_node *v,
                              cohort_node *lens, int heads, bool causal)
{
    return co_attention(g, q, k, v, lens, heads, causal);
}

static co_spans spans_in(const cohort_spans *s)
{
    return (co_spans){s->offsets, s->ids, s->longest};
}

cohort_node *cohort_ragged_attention(cohort_graph *g, cohort_node *q, cohort_node *k, cohort_node *v,
                                     const cohort_spans *q_spans, const cohort_spans *k_spans, int heads,
                                     bool causal, float p, const char *name)
{
    co_spans qs = spans_in(q_spans), ks = spans_in(k_spans);

    return co_ragged_attention(g, q, k, v, &qs, &ks, heads, causal, p, name);
}

cohort_node *cohort_ragged_dropout(cohort_graph *g, cohort_node *x, const cohort_spans *spans, float p,
                                   const char *name)
{
    co_spans s = spans_in(spans);

    return co_ragged_dropout(g, x, &s, p, name);
}

cohort_node *cohort_positions(cohort_graph *g, const cohort_spans *spans, cohort_node *x)
{
    co_spans s = spans_in(spans);

    return co_positions(g, &s, x);
}

cohort_node *cohort_sinusoids(cohort_graph *g, cohort_node *positions, int64_t width)
{
    return co_sinusoids(g, positions, width);
}

cohort_node *cohort_nn_std_norm(cohort_graph *g, cohort_node *x, float eps, const char *name)
{
    return co_nn_std_norm(g, x, eps, name);
}
