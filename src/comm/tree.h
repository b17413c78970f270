/* tree.h -- how a batch is cut into slices, and how their leaves are added: one fixed binary tree.
 *
 * There are S slices, a power of two. Node (level l, index i) covers leaves [i << l, (i + 1) << l). The value
 * of a node is left + right, element by element; an absent child (no samples below it) is the identity. Any
 * rank may compute a node, but the additions that make it are fixed.
 *
 * A slot owns the leaves [from, to). It folds them as they come, in place: a leaf is computed into a free
 * buffer or, if it is the right sibling of the newest node, added to that node's buffer while it is computed;
 * whenever the two newest nodes are siblings, the right one is added to the left one. At the end the slot
 * holds the fewest aligned subtrees that cover its leaves, in at most max(1, log2 k) buffers for k aligned
 * leaves. The sequence is planned beforehand (co_fold). A fold that was interrupted begins again.
 *
 *     leaves 0..3:   L0>a  a+=L1  L2>b  b+=L3  a+=b
 *     5 operations, 2 buffers; holds node (2, 0) in a
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
/* True if no sample lies in leaves [from, to). */
bool co_cut_is_empty(const co_cut *c, int from, int to);
/* How many slices a batch is cut into: the largest power of two up to 32 that leaves a slice 16 samples where
 * the model has batch statistics, 4 elsewhere. Then it is halved, down to 8 at the lowest, as long as the
 * parameters exceed 1 MiB and a slice uses a parameter fewer than 128 times: below that, moving gradients
 * costs more than computing them. */
typedef struct co_slicing {
    uint32_t batch;
    bool batch_stats;
    double params; /* elements */
    double macs;   /* multiply-adds of a sample's forward pass */
} co_slicing;
int co_slices_for(const co_slicing *of);

/* --- the fold --- */
typedef struct co_fold_op {
    int16_t leaf; /* >= 0: compute this leaf into dst; -1: dst += a */
    int16_t dst, a;
    bool adds; /* the leaf is added to what dst holds, its left sibling */
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

/* --- the tree over all slots of one host, for one cut --- */
typedef struct co_tree {
    int slices, slots;
    co_cut cut;
    co_fold *fold; /* [slots] */
} co_tree;

/* Slot r owns leaves [from + r n / slots, from + (r + 1) n / slots) of the n = to - from leaves of the
 * host. */
co_err co_tree_init(co_tree *t, int slots);
void co_tree_deal(co_tree *t, const co_cut *cut, int from, int to);
void co_tree_fini(co_tree *t);
int co_tree_buffers(const co_tree *t); /* the largest number of buffers that a slot needs */

/* True if a single slot holds this node, or the only part of it that has samples: it is then buffer *i of
 * *slot, and no additions are needed. */
bool co_tree_holds(const co_tree *t, int level, int index, int *slot, int *i);
bool co_tree_root(const co_tree *t, int *slot, int *i); /* of the whole tree */

/* How two children make a node: dst = a + b, element by element. `dst` may be `a`. */
void co_leaf_add(float *dst, const float *a, const float *b, size_t n);

/* Elements [lo, hi) of a node, from what this host's slots hold and, for nodes that lie elsewhere, from
 * `other`: a pointer to element lo, into a source or into scratch. NULL: absent. `scratch` holds
 * (log2 S + 1) * (hi - lo) elements. The sources do not change, so this can be repeated. */
typedef struct co_sources {
    const float *(*buffer)(void *ctx, int slot, int i); /* a slot's i-th leaf buffer */
    /* Element lo of a node that another host holds; NULL function, or NULL: nobody gave it */
    const float *(*other)(void *ctx, int level, int index, size_t lo);
    void *ctx;
} co_sources;
const float *co_tree_node(const co_tree *t, int level, int index, size_t lo, size_t hi,
                          const co_sources *from, float *scratch);

#endif
