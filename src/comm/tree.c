/* tree.c -- cuts, folds and sums. A fold of k leaves does at most k - 1 additions and keeps at most 2 log2 k
 * + 2 buffers. The sum adds the nodes that the slots hold, once per element. */
#include "comm/tree.h"

#include <string.h>

#include "base/alloc.h"

co_cut co_cut_make(uint32_t n, uint32_t full, int slices, bool batch_stats)
{
    co_cut c = {n, slices, slices};

    if (batch_stats && n < full)
        while (c.used > 1 && n / (uint32_t)c.used < 8)
            c.used /= 2;
    return c;
}

void co_cut_range(const co_cut *c, int leaf, uint32_t *lo, uint32_t *hi)
{
    int stride = c->slices / c->used;
    uint64_t j = (uint64_t)(leaf / stride);

    *lo = *hi = 0;
    if (leaf % stride)
        return;
    *lo = (uint32_t)(j * c->n / (uint64_t)c->used);
    *hi = (uint32_t)((j + 1) * c->n / (uint64_t)c->used);
}

int co_slices_for(uint32_t batch, bool batch_stats)
{
    uint32_t least = batch_stats ? 16 : 4;
    int s = 32;

    while (s > 1 && batch / (uint32_t)s < least)
        s /= 2;
    return s;
}

/* Which buffers are in use while the fold is planned. */
struct buffers {
    uint64_t busy;
    int most;
};

static int take(struct buffers *b)
{
    int i = __builtin_ctzll(~b->busy);

    b->busy |= (uint64_t)1 << i;
    if (i + 1 > b->most)
        b->most = i + 1;
    return i;
}

static void give(struct buffers *b, int i)
{
    b->busy &= ~((uint64_t)1 << i);
}

/* While the two newest nodes are siblings, merges them. */
static void merge(co_fold *fold, struct buffers *free_)
{
    while (fold->n_held >= 2) {
        co_held *left = &fold->held[fold->n_held - 2], *right = &fold->held[fold->n_held - 1];
        if (left->level != right->level || (left->index & 1) || right->index != left->index + 1)
            return;
        co_held node = {(int16_t)(left->level + 1), (int16_t)(left->index / 2), -1};
        if (left->buffer < 0 || right->buffer < 0) {
            node.buffer = left->buffer < 0 ? right->buffer : left->buffer;
        } else {
            node.buffer = (int16_t)take(free_);
            fold->op[fold->n_ops++] = (co_fold_op){-1, node.buffer, left->buffer, right->buffer};
            give(free_, left->buffer);
            give(free_, right->buffer);
        }
        fold->n_held--;
        fold->held[fold->n_held - 1] = node;
    }
}

void co_fold_make(co_fold *fold, const co_cut *cut, int from, int to)
{
    struct buffers b = {0};

    memset(fold, 0, sizeof *fold);
    for (int leaf = from; leaf < to; leaf++) {
        uint32_t lo, hi;
        co_held node = {0, (int16_t)leaf, -1};
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi) {
            node.buffer = (int16_t)take(&b);
            fold->op[fold->n_ops++] = (co_fold_op){(int16_t)leaf, node.buffer, -1, -1};
        }
        fold->held[fold->n_held++] = node;
        merge(fold, &b);
    }
    fold->n_buffers = b.most;
}

co_err co_tree_init(co_tree *t, const co_cut *cut, int slots)
{
    CO_ASSERT(cut->slices <= CO_MAX_SLICES && slots >= 1 && slots <= cut->slices, "more slots than slices");
    t->fold = co_array((size_t)slots, sizeof *t->fold);
    if (!t->fold)
        return CO_ENOMEM;
    t->slices = cut->slices;
    t->slots = slots;
    t->cut = *cut;
    for (int r = 0; r < slots; r++)
        co_fold_make(&t->fold[r], cut, r * t->slices / slots, (r + 1) * t->slices / slots);
    return CO_OK;
}

void co_tree_fini(co_tree *t)
{
    co_free(t->fold);
    t->fold = NULL;
}

int co_tree_buffers(const co_tree *t)
{
    int most = 1;

    for (int r = 0; r < t->slots; r++)
        if (t->fold[r].n_buffers > most)
            most = t->fold[r].n_buffers;
    return most;
}

/* The slot's entry that holds this node; NULL if no slot holds it and it must be added up from smaller
 * nodes. */
static const co_held *holder(const co_tree *tree, int level, int index, int *slot)
{
    for (int r = 0; r < tree->slots; r++)
        for (int i = 0; i < tree->fold[r].n_held; i++) {
            const co_held *held = &tree->fold[r].held[i];
            if (held->level == level && held->index == index) {
                *slot = r;
                return held;
            }
        }
    return NULL;
}

/* True if no sample lies below this node. */
static bool absent(const co_tree *t, int level, int index)
{
    for (int leaf = index << level; leaf < (index + 1) << level; leaf++) {
        uint32_t lo, hi;
        co_cut_range(&t->cut, leaf, &lo, &hi);
        if (lo < hi)
            return false;
    }
    return true;
}

/* If only one child has samples, the node equals that child. So we walk down until a slot holds the node. */
bool co_tree_root(const co_tree *tree, int *slot, int *i)
{
    int level = __builtin_ctz((unsigned)tree->slices), index = 0;

    for (;; level--) {
        const co_held *held = holder(tree, level, index, slot);
        if (held && held->buffer >= 0) {
            *i = held->buffer;
            return true;
        }
        if (held || level == 0)
            return false;
        bool left = !absent(tree, level - 1, 2 * index), right = !absent(tree, level - 1, 2 * index + 1);
        if (left == right)
            return false;
        index = 2 * index + (right ? 1 : 0);
    }
}

void co_leaf_add(co_add_kind kind, float *dst, const float *a, const float *b, size_t n)
{
    if (kind == CO_ADD_VALUES) {
        for (size_t i = 0; i < n; i++)
            dst[i] = a[i] + b[i];
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t x, y;
        memcpy(&x, &a[i], 4);
        memcpy(&y, &b[i], 4);
        x |= y;
        memcpy(&dst[i], &x, 4);
    }
}

struct summing {
    const co_tree *t;
    co_add_kind kind;
    size_t lo, n;
    co_buffer_of buffer;
    void *ctx;
    float *scratch;
};

/* The elements of a node: a pointer into a slot's buffer, or to `dst` if they had to be added up. NULL if
 * absent. */
static const float *node_of(const struct summing *sum, int level, int index, float *dst)
{
    int slot;
    const co_held *held = holder(sum->t, level, index, &slot);

    if (held)
        return held->buffer < 0 ? NULL : sum->buffer(sum->ctx, slot, held->buffer) + sum->lo;
    CO_ASSERT(level > 0, "no slot holds this leaf");
    if (absent(sum->t, level - 1, 2 * index + 1))
        return node_of(sum, level - 1, 2 * index, dst);
    if (absent(sum->t, level - 1, 2 * index))
        return node_of(sum, level - 1, 2 * index + 1, dst);
    /* The left child stays in its level's part of scratch while the right child is computed in dst. */
    const float *left = node_of(sum, level - 1, 2 * index, sum->scratch + (size_t)(level - 1) * sum->n);
    const float *right = node_of(sum, level - 1, 2 * index + 1, dst);
    co_leaf_add(sum->kind, dst, left, right, sum->n);
    return dst;
}

void co_tree_sum(const co_tree *t, co_add_kind kind, size_t lo, size_t hi, co_buffer_of buffer, void *ctx,
                 float *sum, float *scratch)
{
    struct summing s = {t, kind, lo, hi - lo, buffer, ctx, scratch};
    const float *root = node_of(&s, __builtin_ctz((unsigned)t->slices), 0, sum + lo);

    CO_ASSERT(root, "a step without samples");
    if (root != sum + lo)
        memcpy(sum + lo, root, (hi - lo) * sizeof *sum);
}
