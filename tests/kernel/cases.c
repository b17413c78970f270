/* cases.c -- see cases.h. Sizes are small, odd, not multiples of a vector; some dimensions are 1. */
#include "kernel/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "kernel/kernel_int.h"
#include "kernel/wide.h"

#define X(...)                                                                                               \
    {                                                                                                        \
        CO_F32, DIMS(__VA_ARGS__), -2, 2                                                                     \
    }
#define POS(...)                                                                                             \
    {                                                                                                        \
        CO_F32, DIMS(__VA_ARGS__), 0.25f, 2                                                                  \
    }
#define UNIT(...)                                                                                            \
    {                                                                                                        \
        CO_F32, DIMS(__VA_ARGS__), 0, 1                                                                      \
    }
#define IDX(n, ...)                                                                                          \
    {                                                                                                        \
        CO_I32, DIMS(__VA_ARGS__), 0, n                                                                      \
    }
#define INT(lo, hi, ...)                                                                                     \
    {                                                                                                        \
        CO_I32, DIMS(__VA_ARGS__), lo, hi                                                                    \
    }
/* Offsets of n - 1 samples with `total` rows: 0, ..., total; the first samples are short or empty. */
#define OFFSETS_MARK -7777
#define AT(total, n)                                                                                         \
    {                                                                                                        \
        CO_I32, DIMS(n), OFFSETS_MARK, total                                                                 \
    }
#define IDS(...)                                                                                             \
    {                                                                                                        \
        CO_I64, DIMS(__VA_ARGS__), 0, 1000                                                                   \
    }
#define U(...)                                                                                               \
    {                                                                                                        \
        CO_U32, DIMS(__VA_ARGS__), 0, 0                                                                      \
    }
#define SCALAR                                                                                               \
    {                                                                                                        \
        CO_F64, {0, {0}}, 0, 0                                                                               \
    }
#define IN(...)  .n_in = (int)CO_COUNT(((const case_arg[]){__VA_ARGS__})), .in = {__VA_ARGS__}
#define OUT(...) .n_out = (int)CO_COUNT(((const case_arg[]){__VA_ARGS__})), .out = {__VA_ARGS__}
#define ROW(id, attr_, ...)                                                                                  \
    {                                                                                                        \
        .op = CO_OP_##id, .attr = BRACES attr_, __VA_ARGS__                                                  \
    }

/* clang-format off */
static const op_case table[] = {
    ROW(MATMUL, (0),               IN(X(3, 5, 7), X(3, 7, 6)), OUT(X(3, 5, 6))),
    ROW(MATMUL, (.ta = 1),         IN(X(7, 5), X(7, 6)), OUT(X(5, 6))),
    ROW(MATMUL, (.tb = 1),         IN(X(2, 2, 5, 9), X(2, 2, 11, 9)), OUT(X(2, 2, 5, 11))),
    ROW(MATMUL, (.ta = 1, .tb = 1), IN(X(2, 9, 5), X(2, 6, 9)), OUT(X(2, 5, 6))),
    ROW(MATMUL, (0),               IN(X(3, 2, 5, 7), X(7, 6)), OUT(X(3, 2, 5, 6))),
    ROW(MATMUL, (.tb = 1),         IN(X(3, 17, 33), X(19, 33)), OUT(X(3, 17, 19))),
    ROW(MATMUL, (0),               IN(X(1, 1), X(1, 1)), OUT(X(1, 1))),
    ROW(MATMUL_TN_SUM, (0),        IN(X(13, 5), X(13, 9)), OUT(X(5, 9))),
    ROW(MATMUL_TN_SUM, (0),        IN(X(3, 11, 17), X(3, 11, 33)), OUT(X(17, 33))),
    ROW(LINEAR, (0),               IN(X(5, 7), X(9, 7), X(9)), OUT(X(5, 9))),
    ROW(LINEAR, (0),               IN(X(2, 3, 33), X(17, 33)), OUT(X(2, 3, 17))),
    ROW(SUM_ROWS, (0),             IN(X(5, 3, 7)), OUT(X(7))),
    ROW(SUM_ROWS, (0),             IN(X(6, 3, 67)), OUT(X(3, 67))),
    ROW(SUM_CHANNELS, (0),         IN(X(3, 5, 4, 3)), OUT(X(5))),
    ROW(SUM_CHANNELS, (0),         IN(X(3, 5)), OUT(X(5))),
    ROW(CONV2D, (.stride = 1, .pad = 1), IN(X(2, 3, 7, 6), X(5, 3, 3, 3), X(5)), OUT(X(2, 5, 7, 6))),
    ROW(CONV2D, (.stride = 2, .pad = 3), IN(X(2, 3, 11, 9), X(8, 3, 7, 7)), OUT(X(2, 8, 6, 5))),
    ROW(CONV2D, (.stride = 2),     IN(X(2, 9, 5, 5), X(17, 9, 1, 1)), OUT(X(2, 17, 3, 3))),
    ROW(CONV2D, (.stride = 1, .pad = 2), IN(X(1, 1, 1, 1), X(1, 1, 5, 5)), OUT(X(1, 1, 1, 1))),
    ROW(CONV2D, (.stride = 1, .pad = 1), IN(X(3, 16, 8, 8), X(16, 16, 3, 3)), OUT(X(3, 16, 8, 8))),
    ROW(CONV2D_DX, (.stride = 1, .pad = 1), IN(X(2, 5, 7, 6), X(5, 3, 3, 3)), OUT(X(2, 3, 7, 6))),
    ROW(CONV2D_DX, (.stride = 2, .pad = 3), IN(X(2, 8, 6, 5), X(8, 3, 7, 7)), OUT(X(2, 3, 11, 9))),
    ROW(CONV2D_DX, (.stride = 2),  IN(X(2, 17, 3, 3), X(17, 9, 1, 1)), OUT(X(2, 9, 5, 5))),
    ROW(CONV2D_DX, (.stride = 1, .pad = 1), IN(X(3, 16, 8, 8), X(16, 16, 3, 3)), OUT(X(3, 16, 8, 8))),
    ROW(CONV2D_DW, (.stride = 1, .pad = 1), IN(X(2, 5, 7, 6), X(2, 3, 7, 6)), OUT(X(5, 3, 3, 3))),
    ROW(CONV2D_DW, (.stride = 2, .pad = 3), IN(X(2, 8, 6, 5), X(2, 3, 11, 9)), OUT(X(8, 3, 7, 7))),
    ROW(CONV2D_DW, (.stride = 2),  IN(X(2, 17, 3, 3), X(2, 9, 5, 5)), OUT(X(17, 9, 1, 1))),
    ROW(CONV2D_DW, (.stride = 1, .pad = 1), IN(X(3, 16, 8, 8), X(3, 16, 8, 8)), OUT(X(16, 16, 3, 3))),
    ROW(BATCH_NORM, (.eps = 1e-5f), IN(X(4, 5, 3, 3), X(5), X(5)),
        OUT(X(4, 5, 3, 3), X(5), X(5), X(5), X(5))),
    ROW(BATCH_NORM, (.eps = 1e-5f), IN(X(9, 3), X(3), X(3)), OUT(X(9, 3), X(3), X(3), X(3), X(3))),
    ROW(BATCH_NORM, (.eps = 1e-2f), IN(X(1, 3), X(3), X(3)), OUT(X(1, 3), X(3), X(3), X(3), X(3))),
    ROW(BATCH_NORM_GRAD, (0),      IN(X(4, 5, 3, 3), X(4, 5, 3, 3), X(5), X(5), POS(5)),
        OUT(X(4, 5, 3, 3), X(5), X(5))),
    ROW(BATCH_NORM_EVAL, (.eps = 1e-5f), IN(X(4, 5, 3, 3), X(5), X(5), X(5), POS(5)), OUT(X(4, 5, 3, 3))),
    ROW(LAYER_NORM, (.eps = 1e-5f), IN(X(2, 3, 67), X(67), X(67)), OUT(X(2, 3, 67), X(2, 3), X(2, 3))),
    ROW(LAYER_NORM, (.eps = 1e-2f), IN(X(3, 1), X(1), X(1)), OUT(X(3, 1), X(3), X(3))),
    ROW(LAYER_NORM, (.eps = 1e-6f, .unbiased = 1), IN(X(2, 3, 67), X(67), X(67)),
        OUT(X(2, 3, 67), X(2, 3), X(2, 3))),
    ROW(LAYER_NORM_GRAD, (.eps = 1e-2f, .unbiased = 1), IN(X(6, 67), X(6, 67), X(67), X(6), POS(6)),
        OUT(X(6, 67), X(67), X(67))),
    ROW(LAYER_NORM_GRAD, (0),      IN(X(2, 3, 67), X(2, 3, 67), X(67), X(2, 3), POS(2, 3)),
        OUT(X(2, 3, 67), X(67), X(67))),
    ROW(MAX_POOL, (.kh = 3, .kw = 3, .stride = 2, .pad = 1), IN(X(2, 3, 7, 8)),
        OUT(X(2, 3, 4, 4), IDX(0, 2, 3, 4, 4))),
    ROW(MAX_POOL, (.kh = 2, .kw = 3, .stride = 1), IN(X(2, 3, 4, 5)), OUT(X(2, 3, 3, 3), IDX(0, 2, 3, 3, 3))),
    ROW(MAX_POOL_GRAD, (.kh = 3, .kw = 3, .stride = 2, .pad = 1), IN(X(2, 3, 4, 4), IDX(56, 2, 3, 4, 4)),
        OUT(X(2, 3, 7, 8))),
    ROW(AVG_POOL, (.kh = 3, .kw = 3, .stride = 2, .pad = 1), IN(X(2, 3, 7, 8)), OUT(X(2, 3, 4, 4))),
    ROW(AVG_POOL, (.kh = 4, .kw = 5, .stride = 1), IN(X(2, 3, 4, 5)), OUT(X(2, 3, 1, 1))),
    ROW(AVG_POOL_GRAD, (.kh = 3, .kw = 3, .stride = 2, .pad = 1), IN(X(2, 3, 4, 4)), OUT(X(2, 3, 7, 8))),
    ROW(RELU, (0),                 IN(X(3, 35)), OUT(X(3, 35))),
    ROW(RELU_GRAD, (0),            IN(X(3, 35), X(3, 35)), OUT(X(3, 35))),
    ROW(GELU, (0),                 IN(X(3, 35)), OUT(X(3, 35))),
    ROW(GELU_GRAD, (0),            IN(X(3, 35), X(3, 35)), OUT(X(3, 35))),
    ROW(SOFTMAX, (0),              IN(X(4, 3, 19)), OUT(X(4, 3, 19))),
    ROW(SOFTMAX, (0),              IN(X(5, 1)), OUT(X(5, 1))),
    ROW(SOFTMAX_GRAD, (0),         IN(X(4, 3, 19), UNIT(4, 3, 19)), OUT(X(4, 3, 19))),
    ROW(DROPOUT, (.p = 0.25f, .stream = 77), IN(X(5, 3, 7), IDS(5)), OUT(X(5, 3, 7))),
    ROW(DROPOUT, (.p = 0.5f, .stream = 3), IN(X(5), IDS(5)), OUT(X(5))),
    ROW(DROPOUT, (.p = 0.5f, .stream = 3), IN(X(11, 3), IDS(4), AT(11, 5)), OUT(X(11, 3))),
    ROW(ADD, (0),                  IN(X(4, 3, 7), X(3, 7)), OUT(X(4, 3, 7))),
    ROW(ADD, (0),                  IN(X(33), X(33)), OUT(X(33))),
    ROW(MUL, (0),                  IN(X(4, 3, 7), X(7)), OUT(X(4, 3, 7))),
    ROW(MUL, (0),                  IN(X(4, 3), X(1)), OUT(X(4, 3))),
    ROW(SCALE, (.value = -1.5f),   IN(X(4, 9)), OUT(X(4, 9))),
    ROW(FILL, (.value = 0.3f),     .n_in = 0, OUT(X(4, 9))),
    ROW(COPY, (0),                 IN(X(4, 9)), OUT(X(4, 9))),
    ROW(COPY, (0),                 IN(IDS(4, 9)), OUT(IDS(4, 9))),
    ROW(TRANSPOSE, (.perm = {1, 0}), IN(X(5, 7)), OUT(X(7, 5))),
    ROW(TRANSPOSE, (.perm = {2, 0, 3, 1}), IN(X(2, 3, 4, 5)), OUT(X(4, 2, 5, 3))),
    ROW(TRANSPOSE, (.perm = {1, 0, 2}), IN(INT(-9, 9, 3, 4, 5)), OUT(INT(0, 0, 4, 3, 5))),
    ROW(CONCAT, (.axis = 1),       IN(X(3, 2, 5), X(3, 4, 5), X(3, 1, 5)), OUT(X(3, 7, 5))),
    ROW(CONCAT, (.axis = 0),       IN(IDX(9, 3), IDX(9, 4)), OUT(IDX(0, 7))),
    ROW(SLICE, (.axis = 1, .start = 2), IN(X(3, 7, 5)), OUT(X(3, 4, 5))),
    ROW(SLICE, (.axis = 2, .start = 4), IN(X(3, 7, 5)), OUT(X(3, 7, 1))),
    ROW(PAD, (.axis = 1, .start = 2), IN(X(3, 4, 5)), OUT(X(3, 7, 5))),
    ROW(PAD, (.axis = 0, .start = 0), IN(X(3, 4)), OUT(X(5, 4))),
    ROW(EMBEDDING, (0),            IN(X(11, 6), INT(-1, 12, 4, 5)), OUT(X(4, 5, 6))),
    ROW(EMBEDDING_GRAD, (0),       IN(X(4, 5, 6), INT(-1, 12, 4, 5)), OUT(X(11, 6))),
    ROW(EMBEDDING_GRAD, (0),       IN(X(64, 1), IDX(2, 64)), OUT(X(2, 1))),
    ROW(EMBEDDING_ROWS, (.rows = 11), IN(X(4, 5, 6), INT(-1, 12, 4, 5)), OUT(X(11, 6), U(11), U(1))),
    ROW(EMBEDDING_ROWS, (.rows = 2), IN(X(64, 1), IDX(2, 64)), OUT(X(2, 1), U(2), U(1))),
    ROW(EMBEDDING_ROWS, (.rows = 5000), IN(X(70, 3), IDX(5000, 70)), OUT(X(70, 3), U(70), U(1))),
    ROW(PAIR_SCORE, (0),           IN(X(11, 35), X(7, 35), X(11, 1), X(7, 1), X(1), INT(-1, 12, 21), INT(-1, 8, 21)),
        OUT(X(21, 1))),
    ROW(PAIR_SCORE, (0),           IN(X(5, 1), X(3, 1), X(5, 1), X(3, 1), X(1), IDX(5, 1), IDX(3, 1)), OUT(X(1, 1))),
    ROW(PAIR_SCORE, (0),           IN(X(90, 64), X(50, 64), X(90, 1), X(50, 1), X(1), IDX(90, 16), IDX(50, 16)),
        OUT(X(16, 1))),
    ROW(PAIR_ROWS, (.rows = 11),   IN(X(21, 1), X(7, 35), INT(-1, 12, 21), INT(-1, 8, 21)),
        OUT(X(11, 35), U(11), U(1), X(11, 1), U(11), U(1))),
    ROW(PAIR_ROWS, (.rows = 2),    IN(X(64, 1), X(3, 8), IDX(2, 64), IDX(3, 64)),
        OUT(X(2, 8), U(2), U(1), X(2, 1), U(2), U(1))),
    ROW(PAIR_ROWS, (.rows = 5000), IN(X(16, 1), X(90, 32), IDX(5000, 16), IDX(90, 16)),
        OUT(X(16, 32), U(16), U(1), X(16, 1), U(16), U(1))),
    ROW(ATTENTION, (.heads = 2),   IN(X(3, 5, 12), X(3, 7, 12), X(3, 7, 12), INT(0, 9, 3)),
        OUT(X(3, 5, 12), X(3, 2, 5, 7))),
    ROW(ATTENTION, (.heads = 4, .causal = 1), IN(X(2, 9, 16), X(2, 9, 16), X(2, 9, 16)),
        OUT(X(2, 9, 16), X(2, 4, 9, 9))),
    ROW(ATTENTION, (.heads = 1, .causal = 1), IN(X(2, 9, 8), X(2, 9, 8), X(2, 9, 8), INT(1, 9, 2)),
        OUT(X(2, 9, 8), X(2, 1, 9, 9))),
    ROW(ATTENTION_GRAD, (.heads = 2), IN(X(3, 5, 12), X(3, 5, 12), X(3, 7, 12), X(3, 7, 12), UNIT(3, 2, 5, 7)),
        OUT(X(3, 5, 12), X(3, 7, 12), X(3, 7, 12))),
    ROW(RAGGED_ATTENTION, (.heads = 2, .longest = 13), IN(X(9, 12), X(13, 12), X(13, 12), AT(9, 5), AT(13, 5)),
        OUT(X(9, 12), X(9, 2))),
    ROW(RAGGED_ATTENTION, (.heads = 4, .causal = 1, .longest = 37, .p = 0.3f, .stream = 5),
        IN(X(37, 36), X(37, 36), X(37, 36), AT(37, 4), AT(37, 4), IDS(3)), OUT(X(37, 36), X(37, 4))),
    ROW(RAGGED_ATTENTION_GRAD, (.heads = 2, .longest = 13),
        IN(X(9, 12), X(9, 12), X(13, 12), X(13, 12), POS(9, 2), AT(9, 5), AT(13, 5)),
        OUT(X(9, 12), X(13, 12), X(13, 12))),
    ROW(RAGGED_ATTENTION_GRAD, (.heads = 4, .causal = 1, .longest = 37, .p = 0.3f, .stream = 5),
        IN(X(37, 36), X(37, 36), X(37, 36), X(37, 36), POS(37, 4), AT(37, 4), AT(37, 4), IDS(3)),
        OUT(X(37, 36), X(37, 36), X(37, 36))),
    ROW(POSITIONS, (0),            IN(AT(19, 6), IDX(9, 19)), OUT(IDX(0, 19))),
    ROW(SINUSOIDS, (0),            IN(IDX(300, 7)), OUT(X(7, 13))),
    ROW(PICK_ROWS, (0),            IN(X(5, 6), X(4, 6), INT(-1, 10, 11)), OUT(X(11, 6))),
    ROW(CROSS_ENTROPY, (.smooth = 0.1f, .ignore = 2), IN(X(9, 7), IDX(7, 9)), OUT(X(9), X(9))),
    ROW(CROSS_ENTROPY, (.ignore = -100), IN(X(3, 3, 19), IDX(19, 3, 3)), OUT(X(3, 3), X(3, 3))),
    ROW(CROSS_ENTROPY_GRAD, (.smooth = 0.1f, .ignore = 2), IN(X(9), X(9, 7), IDX(7, 9), POS(9)),
        OUT(X(9, 7))),
    ROW(MSE, (0),                  IN(X(5, 3, 7), X(5, 3, 7)), OUT(X(5))),
    ROW(MSE_GRAD, (0),             IN(X(5), X(5, 3, 7), X(5, 3, 7)), OUT(X(5, 3, 7))),
    ROW(MAE, (0),                  IN(X(5, 9), X(5, 9)), OUT(X(5))),
    ROW(MAE_GRAD, (0),             IN(X(5), X(5, 9), X(5, 9)), OUT(X(5, 9))),
    ROW(BCE, (0),                  IN(X(5, 9), UNIT(5, 9)), OUT(X(5))),
    ROW(BCE_GRAD, (0),             IN(X(5), X(5, 9), UNIT(5, 9)), OUT(X(5, 9))),
    ROW(SUM_ALL, (0),              IN(X(5, 9, 3)), OUT(SCALAR)),
    ROW(COUNT_VALID, (.ignore = 2), IN(IDX(5, 33)), OUT(SCALAR)),
    ROW(CORRECT, (.ignore = 2, .k = 2), IN(X(33, 5), IDX(5, 33)), OUT(SCALAR)),
    ROW(VALID, (.ignore = 2),      IN(IDX(5, 3, 11)), OUT(X(3, 11))),
};
/* clang-format on */

int op_case_count(void)
{
    return (int)CO_COUNT(table);
}

const op_case *op_case_at(int i)
{
    return &table[i];
}

size_t op_arg_size(const co_kernels *k, co_dtype dtype, const co_shape *shape)
{
    return (size_t)co_shape_count(shape) * (dtype == CO_F32 ? (size_t)k->real_size : co_dtype_size(dtype));
}

/* With a team its threads make the call; without one, nth shares are computed one after the other. */
static void call_by(co_team *team, const co_kernels *k, co_op op, const co_attr *attr, const co_run *run,
                    const co_arg *in, int n_in, const co_arg *out, int n_out, int nth, bool add)
{
    co_call c = {
        .attr = attr, .in = in, .out = out, .n_in = n_in, .n_out = n_out, .run = run, .nth = nth, .add = add};
    size_t need = k->row[op].scratch ? k->row[op].scratch(&c) : 0;

    c.scratch = need ? aligned_alloc(64, (need + 63) & ~(size_t)63) : NULL;
    if (need)
        memset(c.scratch, 0xff, need);
    co_kernel_run(&k->row[op], &c, team, nth);
    free(c.scratch);
}

void op_call(const co_kernels *k, co_op op, const co_attr *attr, const co_run *run, const co_arg *in,
             int n_in, const co_arg *out, int n_out, int nth)
{
    call_by(NULL, k, op, attr, run, in, n_in, out, n_out, nth, false);
}

/* Writes n values in [lo, hi) as elements of `dtype`, the same values for every provider. */
static void draw(void *p, const co_kernels *k, const case_arg *a, uint64_t *state)
{
    int64_t n = co_shape_count(&a->shape);

    for (int64_t i = 0; a->lo == OFFSETS_MARK && i < n; i++)
        ((int32_t *)p)[i] = (int32_t)((int64_t)a->hi * i * i / ((n - 1) * (n - 1)));
    for (int64_t i = 0; a->lo != OFFSETS_MARK && i < n; i++) {
        float v = a->lo + (a->hi - a->lo) * (0.5f + 0.5f * test_unit(state));
        if (a->dtype == CO_I32)
            ((int32_t *)p)[i] = (int32_t)floorf(v);
        else if (a->dtype == CO_I64)
            ((int64_t *)p)[i] = (int64_t)v;
        else if (k->real_size == 8)
            ((double *)p)[i] = v;
        else
            ((float *)p)[i] = v;
    }
}

static size_t aligned(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

/* Lays the arguments out in one region at 64-byte steps; returns its size. base may be NULL. */
static size_t lay_out(const co_kernels *k, const case_arg *a, int n, co_arg *arg, char *base, size_t at)
{
    for (int i = 0; i < n; i++) {
        arg[i] = (co_arg){base ? base + at : NULL, a[i].dtype, a[i].shape};
        at += aligned(op_arg_size(k, a[i].dtype, &a[i].shape));
    }
    return at;
}

static void *run_case(co_team *team, const co_kernels *k, const op_case *c, int nth, int garbage, bool add,
                      size_t *len)
{
    const co_run run = {.seed = 99, .step = 7};
    co_arg in[CO_MAX_IN] = {0}, out[CO_MAX_OUT] = {0};
    uint64_t state = (uint64_t)c->op;
    size_t outs_at = lay_out(k, c->in, c->n_in, in, NULL, 0);
    size_t size = lay_out(k, c->out, c->n_out, out, NULL, outs_at);
    char *host = aligned_alloc(64, size), *mem = host;

    lay_out(k, c->in, c->n_in, in, host, 0);
    for (int i = 0; i < c->n_in; i++)
        draw(in[i].p, k, &c->in[i], &state);
    memset(host + outs_at, garbage, size - outs_at);
    if (k->space) {
        void *p;
        CHECK_OK(k->space->open(&p, size));
        mem = p;
        k->space->put(mem, size, mem, host, size);
        k->space->enter(mem, size);
    }
    lay_out(k, c->in, c->n_in, in, mem, 0);
    lay_out(k, c->out, c->n_out, out, mem, outs_at);
    call_by(team, k, c->op, &c->attr, &run, in, c->n_in, out, c->n_out, nth, add);
    if (k->space) {
        k->space->leave(mem, size);
        k->space->get(mem, size, host, mem, size);
        k->space->close(mem, size);
    }

    lay_out(k, c->out, c->n_out, out, host, outs_at);
    char *result = malloc(size - outs_at);
    *len = 0;
    for (int i = 0; i < c->n_out; i++) {
        size_t n = op_arg_size(k, out[i].dtype, &out[i].shape);
        memcpy(result + *len, out[i].p, n);
        *len += n;
    }
    free(host);
    return result;
}

void *op_case_run(const co_kernels *k, const op_case *c, int nth, int garbage, size_t *len)
{
    return run_case(NULL, k, c, nth, garbage, false, len);
}

void *op_case_run_team(const co_kernels *k, const op_case *c, co_team *team, size_t *len)
{
    return run_case(team, k, c, co_team_size(team), 0xff, false, len);
}

void *op_case_run_add(const co_kernels *k, const op_case *c, int nth, int held, size_t *len)
{
    co_arg in[CO_MAX_IN] = {0}, out[CO_MAX_OUT] = {0};
    co_call call = {.attr = &c->attr, .in = in, .out = out, .n_in = c->n_in, .n_out = c->n_out, .nth = nth};

    lay_out(k, c->in, c->n_in, in, NULL, 0);
    lay_out(k, c->out, c->n_out, out, NULL, 0);
    bool adds = !k->space && k->row[c->op].adds && k->row[c->op].adds(&call);
    return adds ? run_case(NULL, k, c, nth, held, true, len) : NULL;
}

/* --- expect */

static void *widened(const co_kernels *k, const tensor *t)
{
    size_t size = op_arg_size(k, t->dtype, &t->shape);
    void *p = malloc(size);

    if (t->dtype != CO_F32 || k->real_size == 4)
        return memcpy(p, t->p, size);
    for (int64_t i = 0; i < co_shape_count(&t->shape); i++)
        ((double *)p)[i] = ((const float *)t->p)[i];
    return p;
}

static double element(co_dtype dtype, int real_size, const void *p, int64_t i)
{
    switch (dtype) {
    case CO_F32:
        return real_size == 8 ? ((const double *)p)[i] : (double)((const float *)p)[i];
    case CO_F64:
        return ((const double *)p)[i];
    case CO_I32:
        return ((const int32_t *)p)[i];
    case CO_I64:
        return (double)((const int64_t *)p)[i];
    default:
        return ((const uint32_t *)p)[i];
    }
}

static void compare(const co_kernels *k, co_op op, int o, const void *got, const tensor *want, double tol,
                    int line)
{
    for (int64_t i = 0; i < co_shape_count(&want->shape); i++) {
        double g = element(want->dtype, k->real_size, got, i), w = element(want->dtype, 4, want->p, i);
        bool same = g == w || (isnan(g) && isnan(w)) ||
                    (fabs(g - w) <= tol && (want->dtype == CO_F32 || want->dtype == CO_F64));
        CHECK(same, "line %d, %s on %s, output %d, element %lld: %.9g, wanted %.9g", line, co_op_name(op),
              k->level, o, (long long)i, g, w);
    }
}

static void expect_on(const co_kernels *k, co_op op, const co_attr *attr, double tol, const tensor *in,
                      int n_in, const tensor *want, int n_out, int line)
{
    const co_run run = {.seed = 99, .step = 7};
    co_arg a[CO_MAX_IN] = {0}, out[CO_MAX_OUT] = {0};

    for (int i = 0; i < n_in; i++)
        a[i] = (co_arg){widened(k, &in[i]), in[i].dtype, in[i].shape};
    for (int i = 0; i < n_out; i++) {
        out[i] = (co_arg){widened(k, &want[i]), want[i].dtype, want[i].shape};
        memset(out[i].p, 0xfe, op_arg_size(k, out[i].dtype, &out[i].shape));
    }
    op_call(k, op, attr, &run, a, n_in, out, n_out, 1);
    for (int i = 0; i < n_in; i++)
        free(a[i].p);
    for (int i = 0; i < n_out; i++) {
        compare(k, op, i, out[i].p, &want[i], tol, line);
        free(out[i].p);
    }
}

void op_expect(co_op op, const co_attr *attr, double tol, const tensor *in, int n_in, const tensor *want,
               int n_out, int line)
{
    for (int i = 0; i < provider_count; i++) {
        const co_kernels *k;
        if (!providers[i].has())
            continue;
        CHECK_OK(co_kernels_get(&k, providers[i].name));
        expect_on(k, op, attr, tol, in, n_in, want, n_out, line);
    }
    expect_on(test_kernels_wide(), op, attr, tol > 0 ? tol : 1e-6, in, n_in, want, n_out, line);
}
