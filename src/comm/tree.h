/* tree.h -- how a batch is cut into slices, and how their leaves are added: one fixed binary tree.
 *
 * S slices, a power of two. Node (level l, index i) covers leaves [i << l, (i + 1) << l). The value of a node is
 * left + right, element by element; an absent child (no samples below it) is the identity. Who computes a node is free;
 * what it is made of is not.
 *
 * A slot owns the leaves [from, to). It folds them as they come: a leaf is computed into a free buffer, and whenever the
 * two newest nodes are siblings they are added into a third. What is left at the end is the fewest aligned subtrees that
 * cover its leaves. The sequence is fixed beforehand (co_fold), no operation overwrites its sources, and one count says
 * how far it has come: so a successor goes on where its predecessor died.
 *
 *     leaves 0..3:   L0>a  L1>b  a+b>c  L2>a  L3>b  a+b>d  c+d>a      7 operations, 4 buffers, holds node (2, 0)
 */
#ifndef CO_COMM_TREE_H
#define CO_COMM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CO_MAX_SLICES = 256, CO_MAX_LEVELS = 9 };

/* --- the cut ------------------------------------------------------------------------------------------------ */
typedef struct co_cut {
    uint32_t n; /* samples of the block */
    int slices; /* S of the run */
    int used;   /* slices with samples: a power of two up to S; slice j sits at leaf j * (S / used) */
} co_cut;

/* `full`: samples of a whole batch. A shorter block of a model with batch statistics uses fewer, larger slices, 8
 * samples at least; otherwise all S are used and some may be empty. */
co_cut co_cut_make(uint32_t n, uint32_t full, int slices, bool batch_stats);
/* Samples [*lo, *hi) of the block that belong to this leaf; lo == hi if it has none. */
void co_cut_range(const co_cut *c, int leaf, uint32_t *lo, uint32_t *hi);
/* The largest power of two up to 32 that leaves a slice 16 samples (batch statistics) or 4; 1 at least. */
int co_slices_for(uint32_t batch, bool batch_stats);

/* --- the fold ----------------------------------------------------------------------------------------------- */
typedef struct co_fold_op {
    int16_t leaf;      /* >= 0: compute this leaf into dst; -1: dst = a + b */
    int16_t dst, a, b; /* buffers */
} co_fold_op;

typedef struct co_held {
    int16_t level, index; /* node of the tree */
    int16_t buffer;       /* -1: absent, no samples below */
} co_held;

typedef struct co_fold {
    int n_ops, n_held, n_buffers;
    co_fold_op op[2 * CO_MAX_SLICES];
    co_held held[2 * CO_MAX_LEVELS];
} co_fold;

void co_fold_make(co_fold *f, const co_cut *cut, int from, int to);

/* --- the whole tree over all slots of this host, for one cut ------------------------------------------------- */
typedef struct co_tree {
    int slices, slots;
    co_cut cut;
    co_fold *fold; /* [slots] */
} co_tree;

/* Slot r owns leaves [r S / slots, (r + 1) S / slots). */
co_err co_tree_init(co_tree *t, const co_cut *cut, int slots);
void co_tree_fini(co_tree *t);
int co_tree_buffers(const co_tree *t); /* most buffers any slot needs */

/* True if a single slot holds the root: the step's sum is then its leaf buffer *i, and nothing need be added. */
bool co_tree_root(const co_tree *t, int *slot, int *i);

/* How two children make a node. Values: float sums. An absent row of a row-sparse entry holds -0.0, the exact identity of
 * IEEE addition (-0.0 + x is x, bit for bit), so presence needs no branch; presence itself is in the marks: or. */
typedef enum { CO_ADD_VALUES, CO_ADD_MARKS } co_add_kind;
void co_leaf_add(co_add_kind kind, float *dst, const float *a, const float *b, size_t n);

/* Elements [lo, hi) of the root into sum[lo..hi). `buffer(ctx, slot, i)` is slot's i-th leaf buffer; `scratch` holds
 * CO_MAX_LEVELS * (hi - lo) elements. Sources stay untouched, so it can be done again. */
typedef const float *(*co_buffer_of)(void *ctx, int slot, int i);
void co_tree_sum(const co_tree *t, co_add_kind kind, size_t lo, size_t hi, co_buffer_of buffer, void *ctx,
                 float *sum, float *scratch);

#endif
