/* tree.h -- how a batch is cut into slices, and how their leaves are added: one fixed binary tree.
 *
 * There are S slices, a power of two. Node (level l, index i) covers leaves [i << l, (i + 1) << l). The value
 * of a node is left + right, element by element; an absent child (no samples below it) is the identity. Any
 * rank may compute a node, but the additions that make it are fixed.
 *
 * A slot owns the leaves [from, to). It folds them as they come: it computes a leaf into a free buffer, and
 * whenever the two newest nodes are siblings it adds them into a third buffer. At the end it holds the fewest
 * aligned subtrees that cover its leaves. The sequence is planned beforehand (co_fold), no operation
 * overwrites its sources, and one counter records the progress. A successor therefore continues where its
 * predecessor died.
 *
 *     leaves 0..3:   L0>a  L1>b  a+b>c  L2>a  L3>b  a+b>d  c+d>a
 *     7 operations, 4 buffers; holds node (2, 0)
 */
#ifndef CO_COMM_TREE_H
#define CO_COMM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CO_MAX_SLICES = 256, CO_MAX_LEVELS = 9 };

/* --- the cut --- */
typedef struct co_cut {
    uint32_t n; /* samples of the block */
    int slices; /* S of the run */
    int used;   /* slices with samples: a power of two up to S; slice j sits at leaf j * (S / used) */
} co_cut;

/* `full` is the number of samples in a whole batch. A shorter block of a model with batch statistics uses
 * fewer, larger slices of at least 8 samples. Otherwise all S slices are used, and some may be empty. */
co_cut co_cut_make(uint32_t n, uint32_t full, int slices, bool batch_stats);
/* The samples [*lo, *hi) of the block that belong to this leaf; lo == hi if there are none. */
void co_cut_range(const co_cut *c, int leaf, uint32_t *lo, uint32_t *hi);
/* The largest power of two up to 32 with at least 16 samples per slice (batch statistics) or 4 (none); at
 * least 1. */
int co_slices_for(uint32_t batch, bool batch_stats);

/* --- the fold --- */
typedef struct co_fold_op {
    int16_t leaf;      /* >= 0: compute this leaf into dst; -1: dst = a + b */
    int16_t dst, a, b; /* buffers */
} co_fold_op;

typedef struct co_held {
    int16_t level, index; /* node of the tree */
    int16_t buffer;       /* -1: absent, no samples below the node */
} co_held;

typedef struct co_fold {
    int n_ops, n_held, n_buffers;
    co_fold_op op[2 * CO_MAX_SLICES];
    co_held held[2 * CO_MAX_LEVELS];
} co_fold;

void co_fold_make(co_fold *f, const co_cut *cut, int from, int to);

/* --- the whole tree over all slots of this host, for one cut --- */
typedef struct co_tree {
    int slices, slots;
    co_cut cut;
    co_fold *fold; /* [slots] */
} co_tree;

/* Slot r owns leaves [r S / slots, (r + 1) S / slots). */
co_err co_tree_init(co_tree *t, const co_cut *cut, int slots);
void co_tree_fini(co_tree *t);
int co_tree_buffers(const co_tree *t); /* the largest number of buffers that a slot needs */

/* True if a single slot holds the root. The step's sum is then buffer *i of *slot, and no additions are
 * needed. */
bool co_tree_root(const co_tree *t, int *slot, int *i);

/* How two children make a node. Values are float sums. An absent row of a row-sparse entry holds -0.0, the
 * exact identity of IEEE addition (-0.0 + x is x, bit for bit), so absent rows need no branch. Marks record
 * which rows are present; they are combined with a bitwise or. */
typedef enum { CO_ADD_VALUES, CO_ADD_MARKS } co_add_kind;
void co_leaf_add(co_add_kind kind, float *dst, const float *a, const float *b, size_t n);

/* Writes elements [lo, hi) of the root into sum[lo..hi). `buffer(ctx, slot, i)` returns the slot's i-th leaf
 * buffer; `scratch` holds CO_MAX_LEVELS * (hi - lo) elements. The sources do not change, so the sum can be
 * repeated. */
typedef const float *(*co_buffer_of)(void *ctx, int slot, int i);
void co_tree_sum(const co_tree *t, co_add_kind kind, size_t lo, size_t hi, co_buffer_of buffer, void *ctx,
                 float *sum, float *scratch);

#endif
