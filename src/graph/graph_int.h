/* graph_int.h -- private to src/graph: values, operators, the operator table, the steps of compiling.
 *
 *     builder (graph.c, emit.c, ops/)  ->  autodiff.c  ->  compile.c + plan.c  ->  run.c
 *
 * A co_node is a value: one tensor. A leaf (input, parameter, running statistic) is a value that no operator
 * makes. An operator (struct op) reads up to CO_MAX_IN values and makes up to CO_MAX_OUT; builders hand out
 * out[0], the others (a norm's mean, attention's probabilities) are for its gradient. Only out[0] is ever
 * differentiated. A reshape is an operator OP_ALIAS without kernel and row: its value is another view of the
 * memory of root_of(value). Values are written once and never changed, so they can be shared freely.
 *
 * A value that must end up outside the workspace has a home: the leaf (gradients, slice statistics), a
 * list of rows (gradients of row-sparse tables), or a stat slot. A value has at most one home.
 */
#ifndef CO_GRAPH_GRAPH_INT_H
#define CO_GRAPH_GRAPH_INT_H

#include "base/alloc.h"
#include "graph/graph.h"

enum { OP_ALIAS = CO_OP_COUNT, MAX_STAT_SLOTS = 64, ALIGN = 64 };

typedef enum { NODE_VALUE, NODE_INPUT, NODE_PARAM, NODE_STAT } node_kind;
typedef enum { HOME_NONE, HOME_LEAF, HOME_ROWS, HOME_STAT } home_kind;

struct op;
struct walk;

struct co_node {
    int id; /* index in the graph's list */
    node_kind kind;
    struct op *op; /* the operator that makes it; NULL for a leaf */
    co_shape shape;
    co_dtype dtype;
    int ragged;       /* number of the ragged dimension that dimension 0 is; 0: none */
    bool grad;        /* depends on a parameter in a way that can be differentiated */
    const char *name; /* leaves only */
    int entry;        /* PARAM, STAT: index in the graph's entries */
    bool sparse;      /* PARAM: row-sparse gradient */
    struct op *only;  /* sparse PARAM: the operator that reads it; STAT: the norm that writes it */
    home_kind home;
    int home_at;      /* entry, or stat slot */
    size_t home_part; /* ROWS: offset of the pointer in a co_rows */
};

struct op {
    int number; /* for messages; a gradient operator has the number of its forward operator */
    int id;     /* co_op, or OP_ALIAS */
    int n_in, n_out;
    co_node *in[CO_MAX_IN], *out[CO_MAX_OUT];
    co_attr attr;
    const char *label; /* "fc2", or NULL */
};

struct entry {
    co_entry e;
    co_node *node; /* NULL: a counter */
};

struct co_graph {
    co_pool pool; /* nodes, operators, names */
    bool training;
    co_err err; /* the first mistake */
    char msg[768];
    struct op **op; /* in order of building, which is the order of running */
    int n_op, room_op;
    co_node **node;
    int n_node, room_node;
    struct entry *entry;
    int n_entry, room_entry;
    co_node *loss, *output;
    bool slot_used[MAX_STAT_SLOTS];
    const struct op *from; /* new operators take their label and number from this one; NULL: their own */
    struct walk *walk;     /* autodiff.c, while it is at work */
};

/* --- the operator table: ops/table.c ----------------------------------------------------------------- */
enum {
    ROW_INNER = 1,  /* only gradient rules and the compiler make it; it has no builder */
    ROW_NO_GRAD = 2 /* its result is a statistic: gradients do not pass through it */
};

struct op_row {
    co_op id;
    const char *role[CO_MAX_IN]; /* of the inputs, for messages */
    const char *in, *out; /* dtypes: f F32, i I32, l I64, u U32, d F64, * any (out: as the first input) */
    int min_in;           /* the rest of `in` is optional */
    /* Checks inputs and attributes and sets the shapes of the outputs; out[0] already has the shape that the
     * caller of emit wanted, if it gave one. Returns false after op_fail. */
    bool (*shape)(co_graph *g, struct op *op);
    /* Emits the operators that give the gradient of each input and hands them over with grad_add. */
    void (*grad)(co_graph *g, const struct op *op, co_node *dy);
    /* Floating-point operations as the definition counts them, products with padding or masked keys among them; of
     * ragged samples the call may lack the addresses, then as many as fit. NULL: not a matrix product. */
    double (*flops)(const co_call *c);
    int flags;
    double (*useful)(const co_call *c); /* without those products; NULL: there are none */
};

extern const struct op_row rows_matmul[], rows_conv[], rows_norm[], rows_pool[], rows_pointwise[],
    rows_move[], rows_embedding[], rows_attention[], rows_loss[], rows_measure[],
    rows_ragged[];                      /* each ends with in = NULL */
const struct op_row *op_row_of(int id); /* NULL: there is none */
/* The input whose numbers choose the rows that are read of input i; -1: input i is read whole. */
int op_rows_by(int id, int i);

/* --- building: graph.c, emit.c ----------------------------------------------------------------------- */
/* Adds an operator; returns its out[0], or NULL with the graph's mistake set. attr and want may be NULL. */
co_node *emit(co_graph *g, co_op id, const co_attr *attr, const co_shape *want, int n_in, co_node *const *in);
#define EMIT(g, id, attr, want, ...)                                                                         \
    emit(g, id, attr, want, (int)CO_COUNT(((co_node *[]){__VA_ARGS__})), (co_node *[]){__VA_ARGS__})
co_node *root_of(co_node *n); /* the value whose memory n is a view of */
void graph_nomem(co_graph *g);
bool graph_add_node(co_graph *g, co_node *n);
/* Room for one more element in *array (a pointer to a pointer) of n elements. */
bool graph_grow(co_graph *g, void *array, int n, int *room, size_t size);
/* Whether every dimension is at least 1 and the whole tensor is below 1 TiB. */
bool shape_sane(const co_shape *s, co_dtype t);

/* Says which outputs of a checked operator are ragged. False after op_fail: it cannot take ragged inputs. */
bool ragged_flow(co_graph *g, struct op *op); /* ops/ragged.c */
/* The random stream of a name; false, with the mistake set, if another dropout has it. */
bool dropout_stream(co_graph *g, const char *name, uint32_t *stream); /* ops/pointwise.c */

/* --- messages: label.c ------------------------------------------------------------------------------- */
/* Writes "linear 'fc2': x [8,3072], weight [768,768]: " and the given text; keeps it if it is the first
 * mistake. */
bool op_fail(co_graph *g, const struct op *op, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void op_text(char *buf, size_t size, const struct op *op); /* "linear 'fc2'", "relu#7" */
char *label_of(co_graph *g, const char *param_name);       /* "fc2" of "fc2.weight" */

/* --- shape rules used by several files --------------------------------------------------------------- */
bool shape_given(co_graph *g, struct op *op);  /* as the emitter wanted */
bool shape_like_0(co_graph *g, struct op *op); /* out[0] as in[0] */
bool shape_like_1(co_graph *g, struct op *op);
bool shape_is(const co_node *n, int nd, int64_t last); /* nd dimensions, the last one this long */

/* --- gradients: autodiff.c --------------------------------------------------------------------------- */
/* Adds one contribution to the gradient of op->in[i]; does nothing if that input needs no gradient or d is
 * NULL. */
void grad_add(co_graph *g, const struct op *op, int i, co_node *d);
/* Gradients of attention, ragged or not: dy, q, k, v ... -> dq, dk, dv. grad_add_qkv hands all three over. */
bool attention_grad_shape(co_graph *g, struct op *op);
void grad_add_qkv(co_graph *g, const struct op *op, co_node *dq);
bool grad_wants(const struct op *op, int i);
/* Appends the backward pass; after that, every parameter and statistic has exactly one value whose home is
 * its leaf. */
co_err graph_differentiate(co_graph *g);

/* --- memory plan: plan.c ----------------------------------------------------------------------------- */
struct buffer {
    size_t offset, bytes;
    int first, last; /* calls that touch it, inclusive */
    const char *name;
};
/* Gives offsets so that no two buffers alive at the same call overlap. */
co_err plan_buffers(struct buffer *b, int n, size_t *work_bytes, size_t *naive_bytes);

/* --- the executor: compile.c makes it, run.c runs it ------------------------------------------------- */
typedef enum {
    BASE_STATE,
    BASE_LEAF,
    BASE_INPUT,
    BASE_WORK,
    BASE_STAT,
    BASE_OUTPUT,
    BASE_ROWS,
    BASE_COUNT
} base_kind;

struct place {
    base_kind base;
    size_t offset; /* bytes; BASE_ROWS: where in the array of co_rows the pointer lies */
};

struct arg {
    struct place at, twin; /* twin: in the workspace, instead of a place in a leaf that is added to */
    int ragged;            /* dimension 0 is as long as the run says */
    co_arg plain;          /* dtype and shape, as a kernel gets them; a run adds the address */
};

struct call {
    co_kernel_row row;
    co_attr attr;
    int n_in, n_out;
    struct arg *in, *out;
    size_t scratch; /* offset in the workspace */
    int threads;    /* the most that compute it: scratch is planned for them */
    int settled;  /* the last call that uses what this one writes to the leaf; -1: it writes nothing there */
    bool may_add; /* a run that adds to the leaf may let the kernel add: nothing reads the twin */
    co_op op;
    const char *name;
};

/* Rows of a table of the state, by indices of the input. */
struct lookup {
    size_t table; /* bytes from the start of the state */
    size_t idx;   /* bytes from the start of the input: I32 [n] */
    int64_t n, rows;
    size_t row_bytes;
};

struct move {
    struct place from, to;
    size_t len;
    int ragged;      /* only the run's rows are copied, */
    size_t row_size; /* of so many bytes */
};

struct input {
    const char *name;
    size_t offset;
    co_dtype dtype;
    co_shape shape;
};

struct co_exec {
    co_pool pool;
    const co_space_ops *space;
    int real_size;
    co_exec_info info;
    co_layout layout;
    size_t *rows; /* [layout.lists] the most rows of each */
    struct call *call;
    struct lookup *lookup;
    int n_lookup;
    struct move *put, *get; /* before the first call, after the last */
    int n_put, n_get;
    struct input *input;
    int n_input;
    struct buffer *buffer;
    int n_buffer;
    co_shape output_shape;
};

#endif
