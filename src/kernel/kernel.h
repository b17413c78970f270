/* kernel.h -- the kernel table: one row per operator, one column per provider.
 *
 * A kernel is a pure function of its inputs, its attributes and the run's counters. All nth threads of a team
 * call it at the same time, each with its own ith; each computes its own share of the outputs. A kernel
 * divides independent outputs among the threads, never a reduction, so nth does not change a bit. No thread
 * may read what another writes in the same call. A kernel allocates nothing, keeps nothing between calls, and
 * writes every element of every output (outputs hold garbage before the call).
 *
 * What all threads would otherwise have to make for themselves, a row's `prepare` makes once: if nth > 1, all
 * nth threads run it, each its own part, and meet before fn. It writes only the call's scratch, which fn then
 * reads, wherever in it and by whichever thread it was written. co_kernel_run is how a call is made.
 *
 * Providers (providers.c): `ref` is plain C for any CPU, and the oracle. `avx512`, `avx2` and `fma128` are levels
 * of simd/: the same sources compiled for different instructions. Each replaces rows of the level below it. `far`
 * is ref over memory that is PROT_NONE outside its own calls; it proves that no other code touches device memory.
 *
 * `numerics` names the order in which a provider's sums run, and `version` counts the changes of that order.
 * Providers that give the same bits have the same numerics, and a run may move between them. Numerics and
 * version ("avx2.2") are in the run's header. A new version means changed hashes, and needs a line in
 * CHANGELOG.
 *
 * What each operator computes. R is the product of all leading dimensions; x [R,C] means that the last
 * dimension of x is C. Tensors are F32 unless a row names another type. dY is the gradient of Y. `ids` I64
 * [n] holds the sample ids of the slice. Sums over rows, positions, channels run in index order unless an
 * algorithm of the level says otherwise.
 *
 *   MATMUL             a [..,M,K] (ta: [..,K,M]), b [..,K,N] (tb: [..,N,K])    -> c [..,M,N]; same leading
 *                      dims, or b of 2 dims shared by all leading indices of a
 *   MATMUL_TN_SUM      a [R,M], b [R,N] (leading dims flattened)               -> c [M,N] = sum of a^T b
 *   LINEAR             x [R,I], w [O,I], optional bias [O]                     -> y [R,O]
 *   SUM_ROWS           x [R,C] (C = product of out dims)                       -> y [C], sum over R
 *   SUM_CHANNELS       x [N,C,...]                                             -> y [C], sum over the rest
 *   CONV2D             x [N,C,H,W], w [O,C,KH,KW], optional bias [O]; stride, pad -> y [N,O,OH,OW]
 *   CONV2D_DX          dy, w; stride, pad                                      -> dx [N,C,H,W]
 *   CONV2D_DW          dy, x; stride, pad                                      -> dw [O,C,KH,KW]
 *   BATCH_NORM         x [N,C,...], gamma, beta [C]; eps                       -> y, mean [C], rstd [C],
 *                      wmean [C] = N * mean, wvar [C] = N * unbiased variance (biased if one value)
 *   BATCH_NORM_GRAD    dy, x, gamma, mean, rstd                                -> dx, dgamma, dbeta
 *   BATCH_NORM_EVAL    x, gamma, beta, running_mean, running_var; eps          -> y
 *   LAYER_NORM         x [R,C], gamma, beta [C]; eps                           -> y, mean [R], rstd [R]
 *                      rstd = 1 / sqrt(variance + eps); if unbiased, 1 / (sqrt(unbiased variance) + eps)
 *   LAYER_NORM_GRAD    dy, x, gamma, mean, rstd; eps                           -> dx, dgamma, dbeta
 *   MAX_POOL           x [N,C,H,W]; kh, kw, stride, pad (padding is -inf)      -> y, idx I32 = h * W + w
 *                      of the first maximum; a nan counts as the maximum
 *   MAX_POOL_GRAD      dy, idx                                                 -> dx [N,C,H,W]
 *   AVG_POOL           x; kh, kw, stride, pad (padding is 0, divisor kh*kw)    -> y
 *   AVG_POOL_GRAD      dy; kh, kw, stride, pad                                 -> dx
 *   RELU, RELU_GRAD    x -> y; (dy, y) -> dx
 *   GELU, GELU_GRAD    exact (erf) form; x -> y; (dy, x) -> dx
 *   SOFTMAX, _GRAD     over the last dimension; x -> y; (dy, y) -> dx
 *   DROPOUT            x [n,...], ids [n]; p, stream                           -> y = x / (1-p); dropped: 0
 *                      element q of sample i is kept when unit(draw(stream, step, ids[i], q/4)[q%4]) >= p;
 *                      its own gradient operator. With offsets I32 [n+1] as third input x is [T,...], and
 *                      sample i is rows [offsets[i], offsets[i+1])
 *   ADD, MUL           a, b with b's dims a suffix of a's                      -> like a
 *   SCALE              x; value                                                -> x * value
 *   FILL               (nothing); value                                        -> all elements = value
 *   COPY               x                                                       -> the same bytes
 *   TRANSPOSE          x; perm (out dim i = in dim perm[i])                    -> y
 *   CONCAT             x0..xk; axis                                            -> y
 *   SLICE              x; axis, start (length from out's shape)                -> y
 *   PAD                dy; axis, start                                         -> dx, zero outside
 *   EMBEDDING          table [V,D], idx I32 [..]                               -> y [..,D]
 *                      zeros where idx is out of range
 *   EMBEDDING_GRAD     dy [..,D], idx                                          -> dtable [V,D]
 *                      duplicates are added in position order; rows that do not occur are zero
 *   EMBEDDING_ROWS     dy [..,D], idx; rows = V                                -> value [cap,D], row U32 [cap],
 *                      count U32 [1]: the same gradient as a sorted list (tensor/rows.h) of the rows that
 *                      occur; cap = min(V, positions). The cost does not depend on V
 *   PAIR_SCORE         a [V,D], b [W,D], a_bias [V,1], b_bias [W,1], bias [1], ia, ib I32 [n]    -> y [n,1]
 *                      y = (a[ia] . b[ib] + (a_bias[ia] + b_bias[ib])) + bias; a row that does not exist is zeros
 *   PAIR_ROWS          dy [n,1], b [W,D], ia, ib; rows = V                     -> value [cap,D], row, count,
 *                      bias value [cap,1], row, count: the gradients of a and a_bias as EMBEDDING_ROWS gives them
 *   ATTENTION          q [B,Tq,C], k, v [B,Tk,C], optional lens I32 [B]; heads, causal
 *                                                               -> y [B,Tq,C], probs [B,heads,Tq,Tk]
 *                      scores are scaled by 1/sqrt(C/heads). Keys at or past lens[b] are masked, and if
 *                      causal also keys later than the query: their probability is exactly 0. A row
 *                      without keys gives zeros
 *   ATTENTION_GRAD     dy, q, k, v, probs; heads, causal                       -> dq, dk, dv
 *   RAGGED_ATTENTION   q [Tq,C], k, v [Tk,C], q_offsets, k_offsets I32 [n+1], optional ids [n]; heads, causal,
 *                      longest, p, stream                       -> y [Tq,C], lse [Tq,heads]
 *                      a query of sample i sees the keys of sample i, if causal those up to its own place.
 *                      Offsets do not fall and end at Tq and Tk; `longest` bounds a sample's keys. With ids and
 *                      p > 0 probabilities are dropped: that of (head, query, key) of a sample with nq and nk
 *                      rows is element (head * nq + query) * (nk rounded up to 4) + key of DROPOUT's rule
 *   RAGGED_ATTENTION_GRAD  dy, q, k, v, lse, q_offsets, k_offsets, optional ids    -> dq, dk, dv
 *   POSITIONS          offsets I32 [n+1], x [T]                                -> I32 [T], place in the sample
 *   SINUSOIDS          positions I32 [T]                                       -> y [T,D]: sin and cos in turn,
 *                      y[t,2i] = sin(p w), y[t,2i+1] = cos(p w), w = 10000^(-2i/D)
 *   PICK_ROWS          a [A,D], b [B,D], idx I32 [K]                           -> y [K,D]: row idx of a and b, as
 *                      if b lay behind a; zeros where idx is out of range
 *   CROSS_ENTROPY      logits [R,C], target I32 [R]; smooth, ignore            -> loss [R], lse [R]
 *                      loss = (1-s) * nll + s * mean over classes of -log p, as in PyTorch; 0 in ignored
 *                      rows; loss and gradient are nan where target is out of range and not `ignore`
 *   CROSS_ENTROPY_GRAD dloss [R], logits, target, lse                          -> dlogits
 *   VALID              target I32 [..]; ignore                                 -> like target: 1; ignored: 0
 *   MSE, MAE, BCE      pred [n,..], target (same shape)                        -> loss [n]
 *                      mean over the elements of a sample. BCE takes logits.
 *   MSE_GRAD, ...      dloss [n], pred, target                                 -> dpred
 *   SUM_ALL            x (any dims)                                            -> F64 scalar, in index order
 *   COUNT_VALID        target I32; ignore                                      -> F64 scalar
 *   CORRECT            logits [R,C], target I32 [R]; ignore, k                 -> F64 scalar
 *                      number of rows whose target is among the k largest (ties: lower index first)
 */
#ifndef CO_KERNEL_KERNEL_H
#define CO_KERNEL_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/team.h"
#include "tensor/tensor.h"

/* clang-format off */
#define CO_OPS(X)                                                                                              \
    X(MATMUL, "matmul") X(MATMUL_TN_SUM, "matmul_tn_sum") X(LINEAR, "linear") X(SUM_ROWS, "sum_rows")          \
    X(SUM_CHANNELS, "sum_channels") X(CONV2D, "conv2d") X(CONV2D_DX, "conv2d_dx") X(CONV2D_DW, "conv2d_dw")    \
    X(BATCH_NORM, "batch_norm") X(BATCH_NORM_GRAD, "batch_norm_grad") X(BATCH_NORM_EVAL, "batch_norm_eval")    \
    X(LAYER_NORM, "layer_norm") X(LAYER_NORM_GRAD, "layer_norm_grad") X(MAX_POOL, "max_pool")                  \
    X(MAX_POOL_GRAD, "max_pool_grad") X(AVG_POOL, "avg_pool") X(AVG_POOL_GRAD, "avg_pool_grad")                \
    X(RELU, "relu") X(RELU_GRAD, "relu_grad") X(GELU, "gelu") X(GELU_GRAD, "gelu_grad")                        \
    X(SOFTMAX, "softmax") X(SOFTMAX_GRAD, "softmax_grad") X(DROPOUT, "dropout") X(ADD, "add") X(MUL, "mul")    \
    X(SCALE, "scale") X(FILL, "fill") X(COPY, "copy") X(TRANSPOSE, "transpose") X(CONCAT, "concat")            \
    X(SLICE, "slice") X(PAD, "pad") X(EMBEDDING, "embedding") X(EMBEDDING_GRAD, "embedding_grad")              \
    X(ATTENTION, "attention") X(ATTENTION_GRAD, "attention_grad") X(CROSS_ENTROPY, "cross_entropy")            \
    X(CROSS_ENTROPY_GRAD, "cross_entropy_grad") X(MSE, "mse") X(MSE_GRAD, "mse_grad") X(MAE, "mae")            \
    X(MAE_GRAD, "mae_grad") X(BCE, "bce") X(BCE_GRAD, "bce_grad") X(SUM_ALL, "sum_all")                        \
    X(COUNT_VALID, "count_valid") X(CORRECT, "correct") X(VALID, "valid")                                      \
    X(EMBEDDING_ROWS, "embedding_rows") X(RAGGED_ATTENTION, "ragged_attention")                                \
    X(RAGGED_ATTENTION_GRAD, "ragged_attention_grad") X(POSITIONS, "positions") X(SINUSOIDS, "sinusoids")      \
    X(PICK_ROWS, "pick_rows") X(PAIR_SCORE, "pair_score") X(PAIR_ROWS, "pair_rows")
/* clang-format on */

typedef enum {
#define X(id, name) CO_OP_##id,
    CO_OPS(X)
#undef X
        CO_OP_COUNT
} co_op;

const char *co_op_name(co_op op);

enum { CO_MAX_IN = 8, CO_MAX_OUT = 6 };

/* The attributes of all operators; each operator reads its own fields. */
typedef struct co_attr {
    int ta, tb;              /* matmul */
    int stride, pad, kh, kw; /* conv2d, pooling */
    int axis, start;         /* concat, slice, pad */
    int perm[CO_MAX_DIMS];   /* transpose */
    int heads, causal;       /* attention */
    int longest;             /* ragged_attention: no sample has more keys */
    int unbiased;            /* layer_norm: see above */
    int ignore;              /* cross_entropy and its metrics: rows with this target are not counted */
    int k;                   /* correct */
    int64_t rows;            /* embedding_rows, pair_rows: V of the table */
    float eps, p, smooth, value;
    uint32_t stream; /* dropout: co_rng_stream(operator name) */
} co_attr;

/* The counters that differ between two runs of one executor. */
typedef struct co_run {
    uint64_t seed;
    uint32_t step;
} co_run;

typedef struct co_arg {
    void *p;
    co_dtype dtype;
    co_shape shape;
} co_arg;

typedef struct co_call {
    const co_attr *attr;
    const co_arg *in, *out;
    int n_in, n_out; /* optional inputs come last; absent ones are not counted */
    void *scratch;   /* row's scratch() bytes for all nth threads, 64-byte aligned */
    const co_run *run;
    int ith, nth;
    bool add; /* add the finished out[0] to what lies there; only if the row's `adds` says that fn can */
} co_call;

typedef void (*co_kernel_fn)(const co_call *c);
typedef size_t (*co_scratch_fn)(const co_call *c); /* shapes, attr, nth are set, pointers not */

typedef struct co_kernel_row {
    co_kernel_fn fn;
    co_scratch_fn scratch; /* NULL: none */
    /* Can fn add its output (co_call.add) in a call of these shapes? NULL: never. A gradient that is added right away
     * is not written, read and added in a second pass over memory. */
    bool (*adds)(const co_call *c);
    co_kernel_fn prepare;                       /* see above; runs before fn if nth > 1. NULL: none */
    const char *(*algorithm)(const co_call *c); /* how fn computes a call of these shapes; NULL: always the same way */
} co_kernel_row;

/* Makes the call c in nth shares: by threads of the team, or one after the other, the last first, if the team
 * has fewer. c->ith and c->nth are set here. */
void co_kernel_run(const co_kernel_row *row, const co_call *c, co_team *team, int nth);

/* A memory space other than the host's: `far` today, devices later. */
typedef struct co_space_ops {
    co_err (*open)(void **mem, size_t size); /* memory that only this provider's calls may touch */
    void (*close)(void *mem, size_t size);
    void (*put)(void *mem, size_t size, void *dst, const void *src, size_t len); /* host -> space */
    void (*get)(void *mem, size_t size, void *dst, const void *src, size_t len); /* space -> host */
    void (*enter)(void *mem, size_t size);                                       /* before a kernel call */
    void (*leave)(void *mem, size_t size);                                       /* after it */
} co_space_ops;

typedef struct co_kernels {
    const char *level;    /* the provider's name: "ref", "avx2", ... */
    const char *numerics; /* providers of one numerics and version give the same bits */
    int version;
    const co_space_ops *space; /* NULL: host memory */
    int real_size; /* bytes of an F32 element: 4; the tests' provider `wide` computes in double: 8 */
    co_kernel_row row[CO_OP_COUNT];
} co_kernels;

/* Is there such a level? Accepts "auto", a provider's name, or NAME.VERSION of a provider. Whether this CPU
 * can run it is not checked. */
co_err co_kernels_check(const char *level);

/* NAME of a NAME.VERSION that this program has, so that "avx2.2" and "avx2" are one text; any other text as
 * it is. */
const char *co_kernels_plain(const char *level);

/* `level` is a provider's name, or "auto" for the best that this CPU has, or NAME.VERSION. An unknown name
 * gives CO_EINPUT with a list of the names; a level that this CPU cannot run gives CO_EINPUT with what the
 * CPU lacks. *out is static. */
co_err co_kernels_get(const co_kernels **out, const char *level);
/* "avx2.2": numerics and version, as written in header.json and checkpoints. */
const char *co_kernels_name(const co_kernels *k);
/* How a call is computed, in a word: what the row says ("winograd"), "ref" if the row is the reference's, else the
 * level's name. */
const char *co_kernels_algorithm(const co_kernels *k, co_op op, const co_call *c);

/* The share [*lo, *hi) of n independent items for thread ith of nth. */
static inline void co_share(int64_t n, int ith, int nth, int64_t *lo, int64_t *hi)
{
    *lo = nth == 1 ? 0 : n * ith / nth; /* divisions are slow beside the work of a small call */
    *hi = nth == 1 ? n : n * (ith + 1) / nth;
}

#endif
