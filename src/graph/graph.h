/* graph.h -- a model as a static graph: built, differentiated, planned, then run as a flat list of kernel
 * calls.
 *
 * Building is sticky: an operator given NULL, or shapes that do not fit, returns NULL and the graph keeps the
 * first mistake ("linear 'fc2': x [8,3072], weight [768,768]: inner sizes differ"); co_exec_new reports it.
 * So model code needs no checks:
 *
 *     co_graph *g;
 *     CO_TRY(co_graph_new(&g, true));
 *     co_node *x = co_input(g, "x", CO_F32, CO_SHAPE(n, 64));                                  // [n,64]
 *     co_node *w = co_param(g, "fc.weight", CO_SHAPE(10, 64), (co_init){CO_INIT_UNIFORM, 0.125f}, 0);
 *     co_node *y = co_linear(g, x, w, NULL);                                                    // [n,10]
 *     co_node *l = co_cross_entropy(g, y, co_input(g, "y", CO_I32, CO_SHAPE(n)), 0, -100);      // [n]
 *     co_graph_loss(g, l);
 *     co_graph_stat(g, 0, co_sum_all(g, l));
 *     CO_TRY(co_exec_new(&exec, g, kernels));
 *
 * Do not create two nodes in the arguments of one call. The layout follows the order of creation and
 * gradients are added in order of use, but C does not fix the order in which arguments are evaluated, and gcc
 * and clang differ. With one statement per node, every compiler gives the same bits.
 *
 * An executor is position-independent: it is compiled once in the supervisor, and every rank runs it over its
 * own bases. There is one executor per slice shape; all share one workspace, as large as the largest needs.
 *
 * A graph owns its nodes, names and shapes. An executor owns copies of what it needs: the graph may be freed
 * first.
 */
#ifndef CO_GRAPH_GRAPH_H
#define CO_GRAPH_GRAPH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/bell.h"
#include "base/err.h"
#include "base/str.h"
#include "base/team.h"
#include "kernel/kernel.h"
#include "tensor/layout.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

typedef struct co_graph co_graph;
typedef struct co_node co_node;
typedef struct co_exec co_exec;

co_err co_graph_new(co_graph **out, bool training);
void co_graph_free(co_graph *g); /* NULL is fine */
bool co_graph_training(const co_graph *g);
co_err co_graph_error(const co_graph *g); /* CO_OK, or the first mistake (its text becomes the thread's) */
/* Reports a mistake that model code found; it is kept if it is the first. Returns NULL, so that model code
 * can return it as a node. */
co_node *co_graph_fail(co_graph *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const co_shape *co_node_shape(const co_node *n); /* of NULL: a shape of nd = -1 */

/* --- leaves of the graph ----------------------------------------------------------------------------- */
enum { CO_PARAM_SPARSE = 1, CO_PARAM_NO_DECAY = 2 };
co_node *co_input(co_graph *g, const char *name, co_dtype dtype, co_shape shape);
/* A second call with the same name and shape returns the same node (a tied weight). */
co_node *co_param(co_graph *g, const char *name, co_shape shape, co_init init, int flags);
/* Says that the parameter [1, 1 + h * w, d] is a position embedding: loaded weights for pictures of another
 * size are resampled to h x w. NULL is fine. */
void co_param_grid(co_graph *g, co_node *param, int64_t h, int64_t w);
co_node *co_stat(co_graph *g, const char *name, co_shape shape, co_init init, float momentum);
void co_counter(co_graph *g, const char *name); /* num_batches_tracked */

/* --- operators: see kernel.h for what each computes -------------------------------------------------- */
co_node *co_matmul(co_graph *g, co_node *a, co_node *b, bool ta, bool tb);
co_node *co_linear(co_graph *g, co_node *x, co_node *w,
                   co_node *bias); /* bias may be NULL: write co_linear(g,x,w,NULL) */
co_node *co_conv2d(co_graph *g, co_node *x, co_node *w, co_node *bias, int stride, int pad);
/* Training graph: normalises by the slice's statistics and sends them to the leaf of rmean, rvar.
 * Evaluation graph: normalises by rmean, rvar. */
co_node *co_batch_norm(co_graph *g, co_node *x, co_node *gamma, co_node *beta, co_node *rmean, co_node *rvar,
                       float eps);
co_node *co_layer_norm(co_graph *g, co_node *x, co_node *gamma, co_node *beta, float eps);
/* alpha * (x - mean) / (std + eps) + bias over the last dimension, with the unbiased standard deviation. */
co_node *co_std_norm(co_graph *g, co_node *x, co_node *alpha, co_node *bias, float eps);
co_node *co_max_pool(co_graph *g, co_node *x, int k, int stride, int pad);
co_node *co_avg_pool(co_graph *g, co_node *x, int kh, int kw, int stride, int pad);
co_node *co_relu(co_graph *g, co_node *x);
co_node *co_gelu(co_graph *g, co_node *x);
co_node *co_softmax(co_graph *g, co_node *x);
co_node *co_dropout(co_graph *g, co_node *x, co_node *ids, float p,
                    const char *name); /* x itself if !training or p = 0 */
co_node *co_add(co_graph *g, co_node *a, co_node *b);
co_node *co_mul(co_graph *g, co_node *a, co_node *b);
co_node *co_scale(co_graph *g, co_node *x, float value);
co_node *co_fill(co_graph *g, co_shape shape, float value); /* a constant; no gradient */
/* Shares x's memory, without a copy; one dimension may be -1. */
co_node *co_reshape(co_graph *g, co_node *x, co_shape shape);
co_node *co_transpose(co_graph *g, co_node *x, const int *perm);
co_node *co_concat(co_graph *g, co_node *const *x, int n, int axis);
co_node *co_slice(co_graph *g, co_node *x, int axis, int64_t start, int64_t len);
co_node *co_embedding(co_graph *g, co_node *table, co_node *idx);
/* Factorisation: the score of pairs, [n,1]:
 *     table[0][idx[0]] . table[1][idx[1]] + biases[0][idx[0]] + biases[1][idx[1]] + bias
 * The tables [rows,width] and biases [rows,1] are row-sparse parameters that nothing else reads, idx is I32 [n], and
 * bias is one number. */
typedef struct co_pair {
    co_node *table[2], *biases[2], *bias, *idx[2];
} co_pair;
co_node *co_pair_score(co_graph *g, const co_pair *of);
co_node *co_attention(co_graph *g, co_node *q, co_node *k, co_node *v, co_node *lens, int heads, bool causal);
co_node *co_cross_entropy(co_graph *g, co_node *logits, co_node *target, float smooth, int ignore);
co_node *co_valid(co_graph *g, co_node *target, int ignore); /* 1 where the target counts, else 0 */
co_node *co_mse(co_graph *g, co_node *pred, co_node *target);
co_node *co_mae(co_graph *g, co_node *pred, co_node *target);
co_node *co_bce(co_graph *g, co_node *pred, co_node *target);
co_node *co_sum_all(co_graph *g, co_node *x);
co_node *co_count_valid(co_graph *g, co_node *target, int ignore);
co_node *co_correct(co_graph *g, co_node *logits, co_node *target, int ignore, int k);

/* --- ragged values ------------------------------------------------------------------------------------
 * Samples of different lengths lie end to end, without padding: row t of a value [T,...] belongs to sample i
 * when offsets[i] <= t < offsets[i + 1]. A graph is built for a capacity T; a run says how many rows there
 * are (co_bases.ragged), and every call computes exactly those. A graph has up to CO_RAGGED_DIMS - 1 such
 * dimensions, by number. Operators that would mix rows, or move them to another dimension, refuse ragged
 * values. */
enum { CO_RAGGED_X = 1, CO_RAGGED_Y, CO_RAGGED_KEYS, CO_RAGGED_DIMS };
co_node *co_input_ragged(co_graph *g, const char *name, co_dtype dtype, co_shape shape, int dim);

/* Where samples begin. Offsets past the slice's samples equal the last one: samples without rows. */
typedef struct co_spans {
    co_node *offsets; /* I32 [n + 1] */
    co_node *ids;     /* I64 [n], for dropout; may be NULL where nothing is dropped */
    int64_t longest;  /* no sample has more rows */
} co_spans;
/* y [Tq,C]: the queries of a sample attend to its keys. p: probabilities are dropped while training. */
co_node *co_ragged_attention(co_graph *g, co_node *q, co_node *k, co_node *v, const co_spans *q_spans,
                             const co_spans *k_spans, int heads, bool causal, float p, const char *name);
co_node *co_ragged_dropout(co_graph *g, co_node *x, const co_spans *spans, float p, const char *name);
/* I32 [T] like x: place in the sample */
co_node *co_positions(co_graph *g, const co_spans *spans, co_node *x);
co_node *co_sinusoids(co_graph *g, co_node *positions, int64_t width);    /* [T,width]; no gradient */
co_node *co_pick_rows(co_graph *g, co_node *a, co_node *b, co_node *idx); /* no gradient */

/* --- what the graph is for --------------------------------------------------------------------------- */
void co_graph_loss(co_graph *g, co_node *rows); /* differentiated with dloss = 1 for every row (training) */
void co_graph_stat(co_graph *g, int slot, co_node *f64_scalar); /* written to stat[slot] */
void co_graph_output(co_graph *g, co_node *n); /* predictions, at offset 0 of the output base; one only */

/* --- compiled ---------------------------------------------------------------------------------------- */
typedef struct co_bases {
    void *state; /* layout.count elements of real_size (4) bytes; read only here */
    void *leaf;  /* layout.dense elements of real_size bytes; NULL in evaluation */
    /* [layout.lists] where the gradients of the row-sparse parameters go, each with room for as many rows as
     * co_exec_rows says; NULL in evaluation. They are stored even if `add` is set. */
    const co_rows *rows;
    void *input;       /* input_bytes */
    void *work;        /* work_bytes, 64-byte aligned; the provider's space if it has one */
    double *stat;      /* one per stat slot */
    void *output;      /* output_bytes; NULL if the caller does not want it */
    size_t work_bytes; /* of `work`, for the provider's space ops */
    co_team *team;     /* the threads that compute; NULL: the caller alone */
    /* [d]: rows of ragged dimension d; 1 to its capacity if the graph has it */
    int64_t ragged[CO_RAGGED_DIMS];
    /* Arrays with the state's layout, whose rows the caller needs soon after those of the state: moments. The first
     * two are asked for ahead; none is read. */
    float *const *beside;
    int n_beside;
    bool add; /* add each finished dense gradient to what the leaf holds (its sibling), do not store it */
    /* Another thread may run the left sibling at the same time. `done` of a run says how many of its calls are finished
     * (one more than there are: the whole run). With `before`, the sibling's `done`, this run touches an element of the
     * leaf only after the sibling has used it for the last time. Calls with the same number must write the same
     * elements in both. Either may be NULL. `spin`: as for a team. */
    struct {
        co_bell *done, *before;
        int spin;
    } pace;
} co_bases;

typedef struct co_exec_info {
    size_t work_bytes, input_bytes, output_bytes;
    int calls, forward_calls; /* calls [0, forward_calls) are the forward pass */
    double flops;             /* of the matrix products and convolutions in one run */
    size_t naive_bytes;       /* workspace without reuse, for comparison */
    int split_calls;          /* calls that more than one thread computes */
} co_exec_info;

/* Floating-point operations of the matrix products and convolutions of the forward pass. */
double co_graph_flops(const co_graph *g);
size_t co_graph_params(const co_graph *g); /* elements of all parameters */
/* Differentiates (if training), plans memory by liveness, binds kernels. CO_EINPUT if building the graph
 * failed. */
co_err co_exec_new(co_exec **out, co_graph *g, const co_kernels *kernels);
/* The same for a team of `threads`. A call is divided among as many threads as its work is worth: one for
 * each `grain` elements of its arguments (0: a sensible number), and never more than there are. That is a
 * formula of the shapes, and does not change a bit of the results. */
co_err co_exec_new_team(co_exec **out, co_graph *g, const co_kernels *kernels, int threads, int64_t grain);
void co_exec_free(co_exec *e); /* NULL is fine */
const co_exec_info *co_exec_info_of(const co_exec *e);
const co_layout *co_exec_layout(const co_exec *e); /* state space; the executor's */
/* The most rows that a run puts into list i of the layout; 0 in evaluation. */
size_t co_exec_rows(const co_exec *e, int i);
/* Offset and shape of an input inside the input base (64-byte aligned). CO_EINPUT if no input has that
 * name. */
co_err co_exec_input(const co_exec *e, const char *name, size_t *offset, co_dtype *dtype, co_shape *shape);
co_shape co_exec_output_shape(const co_exec *e); /* ragged: with the capacity; a run stores its rows only */
/* "conv2d 'layer1.conv'" of call i, for blame reports and the flight recorder. */
const char *co_exec_call_name(const co_exec *e, int i);

/* Runs all calls in order; the threads of bases->team meet after each call that they share. Stores i + 1 to
 * *beat before call i; beat may be NULL. Cannot fail. */
void co_exec_run(const co_exec *e, const co_bases *bases, const co_run *run, _Atomic uint32_t *beat);

/* Runs calls [from, to) only. Whoever runs all calls in order, in parts, with the same bases, has run them
 * all; runs with other bases may come in between. Not for kernels with a memory space of their own. */
void co_exec_run_part(const co_exec *e, const co_bases *bases, const co_run *run, int from, int to,
                      _Atomic uint32_t *beat);
/* What calls [from, to) write to the leaf, in order: `count` elements from `offset` on. Each element is
 * written by one call. */
typedef void co_leaf_fn(void *ctx, int call, size_t offset, size_t count);
void co_exec_leaf_parts(const co_exec *e, int from, int to, co_leaf_fn *each, void *ctx);
bool co_exec_reads_leaf(const co_exec *e); /* does a call read a gradient there that an earlier one wrote? */

/* Runs all calls and invokes `after` after each one with its number and outputs, to find the cause of a value
 * or to measure time. */
typedef struct co_watcher {
    void *ctx;
    void (*after)(void *ctx, int call, const co_arg *out, int n_out);
} co_watcher;
void co_exec_run_watched(const co_exec *e, const co_bases *bases, const co_run *run, const co_watcher *w);

/* What call i is and costs in a run with these bases: of the bases only `ragged`, and the input if the graph is ragged,
 * are read. */
typedef struct co_call_facts {
    co_op op;
    const char *name; /* "conv2d 'layer1.conv'" */
    bool backward;
    int n_in, n_out;
    co_shape in[CO_MAX_IN], out[CO_MAX_OUT];
    bool counted;         /* the operator is a product: flops and useful are known */
    double flops, useful; /* as its definition counts them; without products with padding and with masked keys */
    size_t bytes;         /* of inputs and outputs; of a table only the rows that are read */
    const char *algorithm; /* co_kernels_algorithm */
} co_call_facts;
void co_exec_call_facts(const co_exec *e, int i, const co_kernels *kernels, const co_bases *bases,
                        co_call_facts *out);

/* The memory plan as text, a line per buffer: offset, bytes, first and last call, name. */
void co_exec_print(const co_exec *e, co_str *out);

#endif
