/* grad_cases.c -- the table of graphs for gradient checks. Shapes are awkward on purpose: ones, primes,
 * strides, padding, broadcasts, masks. An operator without a case here fails a test that walks the operator
 * table. */
#include "graph/grad_cases.h"

#include <stdio.h>

static co_node *P(co_graph *g, const char *name, co_shape s)
{
    return co_param(g, name, s, (co_init){CO_INIT_UNIFORM, 1}, 0);
}
static co_node *X(co_graph *g, const char *name, co_shape s)
{
    return co_input(g, name, CO_F32, s);
}
static co_node *I(co_graph *g, const char *name, co_shape s)
{
    return co_input(g, name, CO_I32, s);
}

/* --- products ---------------------------------------------------------------------------------------- */

static co_node *mm(co_graph *g, co_shape a, co_shape b, bool ta, bool tb)
{
    return co_matmul(g, P(g, "a", a), P(g, "b", b), ta, tb);
}
static co_node *mm_nn(co_graph *g)
{
    return mm(g, CO_SHAPE(3, 5), CO_SHAPE(5, 2), 0, 0);
}
static co_node *mm_nt(co_graph *g)
{
    return mm(g, CO_SHAPE(3, 5), CO_SHAPE(7, 5), 0, 1);
}
static co_node *mm_tn(co_graph *g)
{
    return mm(g, CO_SHAPE(5, 3), CO_SHAPE(5, 2), 1, 0);
}
static co_node *mm_tt(co_graph *g)
{
    return mm(g, CO_SHAPE(5, 3), CO_SHAPE(2, 5), 1, 1);
}
static co_node *mm_one(co_graph *g)
{
    return mm(g, CO_SHAPE(1, 1), CO_SHAPE(1, 1), 0, 0);
}
static co_node *mm_batch_nn(co_graph *g)
{
    return mm(g, CO_SHAPE(2, 3, 4, 5), CO_SHAPE(2, 3, 5, 2), 0, 0);
}
static co_node *mm_batch_nt(co_graph *g)
{
    return mm(g, CO_SHAPE(2, 3, 5), CO_SHAPE(2, 1, 5), 0, 1);
}
static co_node *mm_batch_tn(co_graph *g)
{
    return mm(g, CO_SHAPE(2, 5, 3), CO_SHAPE(2, 5, 4), 1, 0);
}
static co_node *mm_batch_tt(co_graph *g)
{
    return mm(g, CO_SHAPE(3, 5, 2), CO_SHAPE(3, 4, 5), 1, 1);
}
static co_node *mm_shared_nn(co_graph *g)
{
    return mm(g, CO_SHAPE(2, 3, 5), CO_SHAPE(5, 4), 0, 0);
}
static co_node *mm_shared_nt(co_graph *g)
{
    return mm(g, CO_SHAPE(2, 2, 3, 5), CO_SHAPE(4, 5), 0, 1);
}
static co_node *mm_shared_tn(co_graph *g)
{
    return mm(g, CO_SHAPE(2, 5, 3), CO_SHAPE(5, 4), 1, 0);
}
static co_node *mm_shared_tt(co_graph *g)
{
    return mm(g, CO_SHAPE(2, 5, 3), CO_SHAPE(4, 5), 1, 1);
}
static co_node *mm_itself(co_graph *g)
{
    co_node *a = P(g, "a", CO_SHAPE(4, 4));
    return co_matmul(g, a, a, false, false);
}
static co_node *linear(co_graph *g)
{
    return co_linear(g, P(g, "x", CO_SHAPE(2, 3, 5)), P(g, "w", CO_SHAPE(7, 5)), P(g, "b", CO_SHAPE(7)));
}
static co_node *linear_plain(co_graph *g)
{
    return co_linear(g, P(g, "x", CO_SHAPE(1, 3)), P(g, "w", CO_SHAPE(1, 3)), NULL);
}
static co_node *linear_of_vector(co_graph *g)
{
    return co_linear(g, P(g, "x", CO_SHAPE(3)), P(g, "w", CO_SHAPE(2, 3)), P(g, "b", CO_SHAPE(2)));
}
static co_node *linear_of_input(co_graph *g)
{
    return co_linear(g, X(g, "x", CO_SHAPE(4, 3)), P(g, "w", CO_SHAPE(2, 3)), P(g, "b", CO_SHAPE(2)));
}

/* --- images ------------------------------------------------------------------------------------------ */

static co_node *conv(co_graph *g, co_shape x, co_shape w, bool bias, int stride, int pad)
{
    return co_conv2d(g, P(g, "x", x), P(g, "w", w), bias ? P(g, "b", CO_SHAPE(w.d[0])) : NULL, stride, pad);
}
static co_node *conv_3x3(co_graph *g)
{
    return conv(g, CO_SHAPE(2, 3, 5, 4), CO_SHAPE(2, 3, 3, 3), true, 1, 1);
}
static co_node *conv_stride(co_graph *g)
{
    return conv(g, CO_SHAPE(1, 2, 7, 6), CO_SHAPE(3, 2, 3, 2), false, 2, 0);
}
static co_node *conv_stride_3(co_graph *g)
{
    return conv(g, CO_SHAPE(2, 1, 8, 7), CO_SHAPE(2, 1, 2, 2), true, 3, 1);
}
static co_node *conv_1x1(co_graph *g)
{
    return conv(g, CO_SHAPE(3, 5, 1, 1), CO_SHAPE(2, 5, 1, 1), true, 1, 0);
}
static co_node *conv_down(co_graph *g)
{
    return conv(g, CO_SHAPE(2, 3, 5, 5), CO_SHAPE(4, 3, 1, 1), false, 2, 0);
}
static co_node *conv_wide_pad(co_graph *g)
{
    return conv(g, CO_SHAPE(1, 1, 2, 3), CO_SHAPE(1, 1, 5, 5), true, 2, 3);
}
static co_node *conv_of_input(co_graph *g)
{
    return co_conv2d(g, X(g, "x", CO_SHAPE(2, 2, 4, 4)), P(g, "w", CO_SHAPE(3, 2, 3, 3)), NULL, 1, 1);
}
static co_node *max_pool(co_graph *g)
{
    return co_max_pool(g, P(g, "x", CO_SHAPE(2, 3, 5, 7)), 3, 2, 1);
}
static co_node *max_pool_overlap(co_graph *g)
{
    return co_max_pool(g, P(g, "x", CO_SHAPE(1, 2, 4, 4)), 3, 1, 1);
}
static co_node *max_pool_all(co_graph *g)
{
    return co_max_pool(g, P(g, "x", CO_SHAPE(2, 1, 3, 3)), 3, 3, 0);
}
static co_node *avg_pool(co_graph *g)
{
    return co_avg_pool(g, P(g, "x", CO_SHAPE(2, 3, 5, 7)), 3, 2, 2, 1);
}
static co_node *avg_pool_overlap(co_graph *g)
{
    return co_avg_pool(g, P(g, "x", CO_SHAPE(1, 2, 4, 5)), 2, 3, 1, 1);
}
static co_node *avg_pool_all(co_graph *g)
{
    return co_avg_pool(g, P(g, "x", CO_SHAPE(2, 3, 4, 2)), 4, 2, 1, 0);
}

/* --- norms ------------------------------------------------------------------------------------------- */

static co_node *bn(co_graph *g, co_shape x)
{
    co_init zero = {CO_INIT_ZERO, 0};
    co_shape c = CO_SHAPE(x.d[1]);
    return co_batch_norm(g, P(g, "x", x), P(g, "gamma", c), P(g, "beta", c), co_stat(g, "rm", c, zero, 0.1f),
                         co_stat(g, "rv", c, zero, 0.1f), 0.01f);
}
static co_node *bn_image(co_graph *g)
{
    return bn(g, CO_SHAPE(3, 2, 3, 2));
}
static co_node *bn_rows(co_graph *g)
{
    return bn(g, CO_SHAPE(7, 3));
}
static co_node *bn_one_value(co_graph *g)
{
    return bn(g, CO_SHAPE(1, 3, 1, 1));
}
static co_node *bn_one_sample(co_graph *g)
{
    return bn(g, CO_SHAPE(1, 1, 2, 3));
}
static co_node *ln(co_graph *g, co_shape x)
{
    co_shape c = CO_SHAPE(x.d[x.nd - 1]);
    return co_layer_norm(g, P(g, "x", x), P(g, "gamma", c), P(g, "beta", c), 0.01f);
}
static co_node *ln_tokens(co_graph *g)
{
    return ln(g, CO_SHAPE(2, 3, 5));
}
static co_node *ln_one_wide(co_graph *g)
{
    return ln(g, CO_SHAPE(3, 1));
}
static co_node *ln_vector(co_graph *g)
{
    return ln(g, CO_SHAPE(7));
}

/* --- one element or row at a time -------------------------------------------------------------------- */

static co_node *relu(co_graph *g)
{
    return co_relu(g, P(g, "x", CO_SHAPE(3, 7)));
}
static co_node *gelu(co_graph *g)
{
    return co_gelu(g, co_scale(g, P(g, "x", CO_SHAPE(3, 7)), 3));
}
static co_node *softmax(co_graph *g)
{
    return co_softmax(g, P(g, "x", CO_SHAPE(2, 3, 5)));
}
static co_node *softmax_one(co_graph *g)
{
    return co_softmax(g, P(g, "x", CO_SHAPE(4, 1)));
}
static co_node *dropout(co_graph *g)
{
    return co_dropout(g, P(g, "x", CO_SHAPE(3, 2, 5)), co_input(g, "ids", CO_I64, CO_SHAPE(3)), 0.4f, "drop");
}
static co_node *two(co_graph *g, co_node *(*f)(co_graph *, co_node *, co_node *), co_shape a, co_shape b)
{
    return f(g, P(g, "a", a), P(g, "b", b));
}
static co_node *add(co_graph *g)
{
    return two(g, co_add, CO_SHAPE(3, 5), CO_SHAPE(3, 5));
}
static co_node *add_row(co_graph *g)
{
    return two(g, co_add, CO_SHAPE(2, 3, 5), CO_SHAPE(5));
}
static co_node *add_matrix(co_graph *g)
{
    return two(g, co_add, CO_SHAPE(4, 3, 5), CO_SHAPE(3, 5));
}
static co_node *add_scalar(co_graph *g)
{
    return two(g, co_add, CO_SHAPE(3, 2), CO_SCALAR);
}
static co_node *add_itself(co_graph *g)
{
    co_node *x = P(g, "x", CO_SHAPE(3, 2));
    return co_add(g, co_add(g, x, x), co_relu(g, x));
}
static co_node *mul(co_graph *g)
{
    return two(g, co_mul, CO_SHAPE(3, 5), CO_SHAPE(3, 5));
}
static co_node *mul_row(co_graph *g)
{
    return two(g, co_mul, CO_SHAPE(2, 3, 5), CO_SHAPE(5));
}
static co_node *mul_matrix(co_graph *g)
{
    return two(g, co_mul, CO_SHAPE(4, 3, 1), CO_SHAPE(3, 1));
}
static co_node *mul_scalar(co_graph *g)
{
    return two(g, co_mul, CO_SHAPE(3, 2), CO_SCALAR);
}
static co_node *square(co_graph *g)
{
    co_node *x = P(g, "x", CO_SHAPE(3, 2));
    return co_mul(g, x, x);
}
static co_node *mul_by_constant(co_graph *g)
{
    return co_mul(g, P(g, "x", CO_SHAPE(2, 3)), co_fill(g, CO_SHAPE(3), 0.5f));
}
static co_node *scale(co_graph *g)
{
    return co_scale(g, P(g, "x", CO_SHAPE(3, 5)), -2.5f);
}

/* --- moving ------------------------------------------------------------------------------------------ */

static co_node *transpose(co_graph *g)
{
    return co_transpose(g, P(g, "x", CO_SHAPE(2, 3, 4, 5)), (int[]){2, 0, 3, 1});
}
static co_node *transpose_two(co_graph *g)
{
    return co_transpose(g, P(g, "x", CO_SHAPE(3, 1)), (int[]){1, 0});
}
static co_node *concat(co_graph *g)
{
    co_node *x = P(g, "x", CO_SHAPE(2, 3, 2));
    return co_concat(g, (co_node *[]){x, P(g, "y", CO_SHAPE(2, 1, 2)), X(g, "z", CO_SHAPE(2, 2, 2)), x}, 4, 1);
}
static co_node *concat_19(co_graph *g)
{
    co_node *x[19];
    char name[16];
    for (int i = 0; i < 19; i++) {
        snprintf(name, sizeof name, "p%d", i);
        x[i] = P(g, name, CO_SHAPE(1 + i % 3, 2));
    }
    return co_concat(g, x, 19, 0);
}
static co_node *slice(co_graph *g)
{
    return co_slice(g, P(g, "x", CO_SHAPE(3, 5, 2)), 1, 1, 3);
}
static co_node *slice_last(co_graph *g)
{
    return co_slice(g, P(g, "x", CO_SHAPE(3, 5)), 1, 4, 1);
}
static co_node *slices_overlap(co_graph *g)
{
    co_node *x = P(g, "x", CO_SHAPE(5, 3));
    return co_add(g, co_slice(g, x, 0, 0, 4), co_slice(g, x, 0, 1, 4));
}
static co_node *reshape(co_graph *g)
{
    co_node *x = P(g, "x", CO_SHAPE(4, 3));
    return co_matmul(g, co_reshape(g, x, CO_SHAPE(2, 6)), co_reshape(g, x, CO_SHAPE(6, -1)), false, false);
}
static co_node *embedding(co_graph *g)
{
    return co_embedding(g, P(g, "t", CO_SHAPE(5, 3)), I(g, "below 5", CO_SHAPE(3, 4)));
}
static co_node *embedding_sparse(co_graph *g)
{
    co_node *t = co_param(g, "t", CO_SHAPE(9, 2), (co_init){CO_INIT_UNIFORM, 1}, CO_PARAM_SPARSE);
    return co_embedding(g, t, I(g, "below 7", CO_SHAPE(5)));
}
static co_node *sparse(co_graph *g, const char *name, int64_t rows, int64_t width)
{
    return co_param(g, name, CO_SHAPE(rows, width), (co_init){CO_INIT_UNIFORM, 1}, CO_PARAM_SPARSE);
}
static co_node *pair_score(co_graph *g)
{
    return co_pair_score(g, &(co_pair){.table = {sparse(g, "a", 9, 3), sparse(g, "b", 5, 3)},
                                       .biases = {sparse(g, "a_bias", 9, 1), sparse(g, "b_bias", 5, 1)},
                                       .bias = P(g, "bias", CO_SHAPE(1)),
                                       .idx = {I(g, "below 7", CO_SHAPE(6)), I(g, "below 5", CO_SHAPE(6))}});
}
static co_node *embedding_tied(co_graph *g)
{
    co_node *t = P(g, "t", CO_SHAPE(5, 3));
    return co_matmul(g, co_embedding(g, t, I(g, "below 5", CO_SHAPE(2, 3))), t, false, true);
}

/* --- attention --------------------------------------------------------------------------------------- */

static co_node *attend(co_graph *g, int64_t b, int64_t tq, int64_t tk, int64_t c, int heads, bool causal,
                       co_node *lens)
{
    return co_attention(g, P(g, "q", CO_SHAPE(b, tq, c)), P(g, "k", CO_SHAPE(b, tk, c)),
                        P(g, "v", CO_SHAPE(b, tk, c)), lens, heads, causal);
}
static co_node *attention(co_graph *g)
{
    return attend(g, 2, 3, 5, 6, 2, false, NULL);
}
static co_node *attention_causal(co_graph *g)
{
    return attend(g, 2, 4, 4, 6, 3, true, NULL);
}
static co_node *attention_lens(co_graph *g)
{
    return attend(g, 5, 2, 3, 4, 1, false, I(g, "upto 3", CO_SHAPE(5)));
}
static co_node *attention_causal_lens(co_graph *g)
{
    return attend(g, 4, 5, 5, 2, 2, true, I(g, "upto 5", CO_SHAPE(4)));
}
static co_node *attention_one(co_graph *g)
{
    return attend(g, 1, 1, 1, 1, 1, true, NULL);
}
static co_node *attention_self(co_graph *g)
{
    co_node *x = P(g, "x", CO_SHAPE(2, 3, 4));
    return co_attention(g, x, x, x, NULL, 2, true);
}

/* --- ragged ------------------------------------------------------------------------------------------ */

static co_node *ragged(co_graph *g, const char *q_at, const char *k_at, int64_t tq, int64_t tk, int64_t n,
                       int heads, bool causal, float p)
{
    co_node *q = P(g, "q", CO_SHAPE(tq, 6)), *k = P(g, "k", CO_SHAPE(tk, 6)), *v = P(g, "v", CO_SHAPE(tk, 6));
    co_node *ids = co_input(g, "ids", CO_I64, CO_SHAPE(n));
    co_spans qs = {I(g, q_at, CO_SHAPE(n + 1)), ids, tq}, ks = {I(g, k_at, CO_SHAPE(n + 1)), ids, tk};

    return co_ragged_attention(g, q, k, v, &qs, &ks, heads, causal, p, "attn");
}
static co_node *ragged_cross(co_graph *g)
{
    return ragged(g, "at 0 2 2 6", "at 0 3 4 9", 6, 9, 3, 2, false, 0);
}
static co_node *ragged_causal(co_graph *g)
{
    return ragged(g, "at 0 3 4 9", "at 0 3 4 9", 9, 9, 3, 3, true, 0);
}
static co_node *ragged_dropped(co_graph *g)
{
    return ragged(g, "at 0 5 6", "at 0 4 9", 6, 9, 2, 2, false, 0.4f);
}
static co_node *ragged_dropout(co_graph *g)
{
    co_spans s = {I(g, "at 0 2 2 5", CO_SHAPE(4)), co_input(g, "ids", CO_I64, CO_SHAPE(3)), 3};
    return co_ragged_dropout(g, P(g, "x", CO_SHAPE(5, 3)), &s, 0.4f, "drop");
}
static co_node *std_norm(co_graph *g)
{
    co_node *x = P(g, "x", CO_SHAPE(4, 5)), *alpha = P(g, "alpha", CO_SHAPE(5)),
            *bias = P(g, "bias", CO_SHAPE(5));
    return co_std_norm(g, x, alpha, bias, 0.1f);
}

/* --- losses ------------------------------------------------------------------------------------------ */

static co_node *ce(co_graph *g)
{
    return co_cross_entropy(g, P(g, "x", CO_SHAPE(5, 7)), I(g, "below 7", CO_SHAPE(5)), 0, -100);
}
static co_node *ce_ignored(co_graph *g)
{
    return co_cross_entropy(g, P(g, "x", CO_SHAPE(3, 4, 2)), I(g, "maybe 2", CO_SHAPE(3, 4)), 0, -100);
}
static co_node *ce_smooth(co_graph *g)
{
    return co_cross_entropy(g, P(g, "x", CO_SHAPE(6, 3)), I(g, "maybe 3", CO_SHAPE(6)), 0.2f, -100);
}
static co_node *ce_one_class(co_graph *g)
{
    return co_cross_entropy(g, P(g, "x", CO_SHAPE(2, 1)), I(g, "below 1", CO_SHAPE(2)), 0.1f, -100);
}
static co_node *mse(co_graph *g)
{
    return co_mse(g, P(g, "x", CO_SHAPE(3, 5)), X(g, "t", CO_SHAPE(3, 5)));
}
static co_node *mse_both(co_graph *g)
{
    return two(g, co_mse, CO_SHAPE(3, 2, 2), CO_SHAPE(3, 2, 2));
}
static co_node *mae(co_graph *g)
{
    return co_mae(g, P(g, "x", CO_SHAPE(3, 5)), X(g, "t", CO_SHAPE(3, 5)));
}
static co_node *mae_both(co_graph *g)
{
    return two(g, co_mae, CO_SHAPE(1, 3), CO_SHAPE(1, 3));
}
static co_node *bce(co_graph *g)
{
    return co_bce(g, co_scale(g, P(g, "x", CO_SHAPE(3, 5)), 5), X(g, "t", CO_SHAPE(3, 5)));
}
static co_node *bce_one(co_graph *g)
{
    return co_bce(g, P(g, "x", CO_SHAPE(1)), X(g, "t", CO_SHAPE(1)));
}

#define CASE(op, name)                                                                                       \
    {                                                                                                        \
        CO_OP_##op, #name, name, false                                                                       \
    }
#define FLAT(op, name)                                                                                       \
    {                                                                                                        \
        CO_OP_##op, #name, name, true                                                                        \
    }
const grad_case grad_cases[] = {
    CASE(MATMUL, mm_nn),
    CASE(MATMUL, mm_nt),
    CASE(MATMUL, mm_tn),
    CASE(MATMUL, mm_tt),
    CASE(MATMUL, mm_one),
    CASE(MATMUL, mm_batch_nn),
    CASE(MATMUL, mm_batch_nt),
    CASE(MATMUL, mm_batch_tn),
    CASE(MATMUL, mm_batch_tt),
    CASE(MATMUL, mm_shared_nn),
    CASE(MATMUL, mm_shared_nt),
    CASE(MATMUL, mm_shared_tn),
    CASE(MATMUL, mm_shared_tt),
    CASE(MATMUL, mm_itself),
    CASE(LINEAR, linear),
    CASE(LINEAR, linear_plain),
    CASE(LINEAR, linear_of_vector),
    CASE(LINEAR, linear_of_input),
    CASE(CONV2D, conv_3x3),
    CASE(CONV2D, conv_stride),
    CASE(CONV2D, conv_stride_3),
    CASE(CONV2D, conv_1x1),
    CASE(CONV2D, conv_down),
    CASE(CONV2D, conv_wide_pad),
    CASE(CONV2D, conv_of_input),
    CASE(MAX_POOL, max_pool),
    CASE(MAX_POOL, max_pool_overlap),
    CASE(MAX_POOL, max_pool_all),
    CASE(AVG_POOL, avg_pool),
    CASE(AVG_POOL, avg_pool_overlap),
    CASE(AVG_POOL, avg_pool_all),
    CASE(BATCH_NORM, bn_image),
    CASE(BATCH_NORM, bn_rows),
    CASE(BATCH_NORM, bn_one_value),
    CASE(BATCH_NORM, bn_one_sample),
    CASE(LAYER_NORM, ln_tokens),
    CASE(LAYER_NORM, ln_one_wide),
    CASE(LAYER_NORM, ln_vector),
    CASE(RELU, relu),
    CASE(GELU, gelu),
    CASE(SOFTMAX, softmax),
    FLAT(SOFTMAX, softmax_one),
    CASE(DROPOUT, dropout),
    CASE(ADD, add),
    CASE(ADD, add_row),
    CASE(ADD, add_matrix),
    CASE(ADD, add_scalar),
    CASE(ADD, add_itself),
    CASE(MUL, mul),
    CASE(MUL, mul_row),
    CASE(MUL, mul_matrix),
    CASE(MUL, mul_scalar),
    CASE(MUL, square),
    CASE(MUL, mul_by_constant),
    CASE(SCALE, scale),
    CASE(TRANSPOSE, transpose),
    CASE(TRANSPOSE, transpose_two),
    CASE(CONCAT, concat),
    CASE(CONCAT, concat_19),
    CASE(SLICE, slice),
    CASE(SLICE, slice_last),
    CASE(SLICE, slices_overlap),
    CASE(MATMUL, reshape),
    CASE(EMBEDDING, embedding),
    CASE(EMBEDDING, embedding_sparse),
    CASE(EMBEDDING, embedding_tied),
    CASE(PAIR_SCORE, pair_score),
    CASE(ATTENTION, attention),
    CASE(ATTENTION, attention_causal),
    CASE(ATTENTION, attention_lens),
    CASE(ATTENTION, attention_causal_lens),
    CASE(ATTENTION, attention_one),
    CASE(ATTENTION, attention_self),
    CASE(RAGGED_ATTENTION, ragged_cross),
    CASE(RAGGED_ATTENTION, ragged_causal),
    CASE(RAGGED_ATTENTION, ragged_dropped),
    CASE(DROPOUT, ragged_dropout),
    CASE(LAYER_NORM, std_norm),
    CASE(CROSS_ENTROPY, ce),
    CASE(CROSS_ENTROPY, ce_ignored),
    CASE(CROSS_ENTROPY, ce_smooth),
    FLAT(CROSS_ENTROPY, ce_one_class),
    CASE(MSE, mse),
    CASE(MSE, mse_both),
    CASE(MAE, mae),
    CASE(MAE, mae_both),
    CASE(BCE, bce),
    CASE(BCE, bce_one),
};

const int grad_case_count = (int)CO_COUNT(grad_cases);
