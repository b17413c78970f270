/* tree.c -- cuts, folds and sums. A fold of k leaves does k - 1 additions. The sum adds the nodes that the
 * slots hold, once per element. */
#include "comm/tree.h"

#include <string.h>

#include "base/alloc.h"
#include "base/lanes.h"

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
    int used = __builtin_ctz((unsigned)c->used),
        stride = __builtin_ctz((unsigned)c->slices) - used; /* as powers of two */
    uint64_t j = (uint64_t)leaf >> stride;

    *lo = *hi = 0;
    if ((int)(j << stride) != leaf)
        return;
    *lo = (uint32_t)(j * c->n >> used);
    *hi = (uint32_t)((j + 1) * c->n >> used);
}

bool co_cut_is_empty(const co_cut *cut, int from, int to)
{
    for (int leaf = from; leaf < to; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo < hi)
            return false;
    }
    return true;
}

int co_slices_for(const co_slicing *of)
{
    enum { MOST = 32, LEAST_OF_LARGE = 8, LARGE = 1 << 18 /* elements: 1 MiB */, USES = 128 };
    uint32_t least = of->batch_stats ? 16 : 4;
    int s = MOST;

    while (s > 1 && of->batch / (uint32_t)s < least)
        s /= 2;
    while (s > LEAST_OF_LARGE && of->params > LARGE &&
           of->macs * (double)(of->batch / (uint32_t)s) < USES * of->params)
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

/* While the two newest nodes are siblings, adds the right one to the left one. */
static void merge(co_fold *fold, struct buffers *free_)
{
    while (fold->n_held >= 2) {
        co_held *left = &fold->held[fold->n_held - 2], *right = &fold->held[fold->n_held - 1];
        if (left->level != right->level || (left->index & 1) || right->index != left->index + 1)
            return;
        co_held node = {(int16_t)(left->level + 1), (int16_t)(left->index / 2), left->buffer};
        if (left->buffer < 0) {
            node.buffer = right->buffer;
        } else if (right->buffer >= 0) {
            fold->op[fold->n_ops++] = (co_fold_op){-1, left->buffer, right->buffer, false};
            give(free_, right->buffer);
        }
        fold->n_held--;
        fold->held[fold->n_held - 1] = node;
    }
}

/* The newest node, if `node` (which has samples) is its right sibling and it has samples too. `node` first
 * grows by absent siblings on its right, up to `to`, as far as that leads to such a sibling. */
static co_held *left_sibling(co_fold *fold, const co_cut *cut, co_held *node, int to)
{
    co_held *newest = fold->n_held ? &fold->held[fold->n_held - 1] : NULL;
    co_held at = *node;

    while (newest && newest->buffer >= 0 && at.level <= newest->level) {
        if (at.level == newest->level) {
            *node = at;
            return (at.index & 1) && newest->index == at.index - 1 ? newest : NULL;
        }
        int right = (at.index + 1) << at.level, end = (at.index + 2) << at.level;
        if ((at.index & 1) || end > to || !co_cut_is_empty(cut, right, end))
            return NULL;
        at = (co_held){(int16_t)(at.level + 1), (int16_t)(at.index / 2), -1};
    }
    return NULL;
}

void co_fold_make(co_fold *fold, const co_cut *cut, int from, int to)
{
    struct buffers b = {0};

    memset(fold, 0, sizeof *fold);
    for (int leaf = from; leaf < to;) {
        co_held node = {0, (int16_t)leaf, -1}, *left = NULL;
        if (!co_cut_is_empty(cut, leaf, leaf + 1)) {
            left = left_sibling(fold, cut, &node, to);
            int dst = left ? left->buffer : take(&b);
            fold->op[fold->n_ops++] = (co_fold_op){(int16_t)leaf, (int16_t)dst, -1, left != NULL};
            node.buffer = (int16_t)dst;
        }
        if (!left) {
            node.level = 0;
            node.index = (int16_t)leaf;
        }
        leaf = (node.index + 1) << node.level;
        if (left)
            *left = (co_held){(int16_t)(node.level + 1), (int16_t)(node.index / 2), node.buffer};
        else
            fold->held[fold->n_held++] = node;
        merge(fold, &b);
    }
    fold->n_buffers = b.most;
}

co_err co_tree_init(co_tree *t, int slots)
{
    *t = (co_tree){.slots = slots, .fold = co_array((size_t)slots, sizeof *t->fold)};
    return t->fold ? CO_OK : CO_ENOMEM;
}

void co_tree_deal(co_tree *t, const co_cut *cut, int from, int to)
{
    int n = to - from;

    CO_ASSERT(cut->slices <= CO_MAX_SLICES && from >= 0 && to <= cut->slices, "leaves of this tree");
    t->slices = cut->slices;
    t->cut = *cut;
    for (int r = 0; r < t->slots; r++)
        co_fold_make(&t->fold[r], cut, from + r * n / t->slots, from + (r + 1) * n / t->slots);
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
    return co_cut_is_empty(&t->cut, index << level, (index + 1) << level);
}

/* If only one child has samples, the node equals that child. So we walk down until a slot holds the node. */
bool co_tree_holds(const co_tree *tree, int level, int index, int *slot, int *i)
{
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

bool co_tree_root(const co_tree *tree, int *slot, int *i)
{
    return co_tree_holds(tree, __builtin_ctz((unsigned)tree->slices), 0, slot, i);
}

static inline CO_INLINE void add(float *dst, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i];
}

static void add_any(float *dst, const float *a, const float *b, size_t n)
{
    add(dst, a, b, n);
}

static CO_AVX2 void add_avx2(float *dst, const float *a, const float *b, size_t n)
{
    add(dst, a, b, n);
}

void co_leaf_add(float *dst, const float *a, const float *b, size_t n)
{
    (co_has_avx2() ? add_avx2 : add_any)(dst, a, b, n);
}

struct summing {
    const co_tree *t;
    size_t lo, n;
    const co_sources *from;
    float *scratch;
};

/* The elements of a node: a pointer into a source, or to `dst` if they had to be added up. NULL if absent. */
static const float *node_of(const struct summing *sum, int level, int index, float *dst)
{
    const co_sources *from = sum->from;
    int slot;
    const co_held *held = holder(sum->t, level, index, &slot);

    if (held)
        return held->buffer < 0 ? NULL : from->buffer(from->ctx, slot, held->buffer) + sum->lo;
    if (absent(sum->t, level, index))
        return NULL;
    const float *given = from->other ? from->other(from->ctx, level, index, sum->lo) : NULL;
    if (given)
        return given;
    CO_ASSERT(level > 0, "nobody holds this leaf");
    if (absent(sum->t, level - 1, 2 * index + 1))
        return node_of(sum, level - 1, 2 * index, dst);
    if (absent(sum->t, level - 1, 2 * index))
        return node_of(sum, level - 1, 2 * index + 1, dst);
    /* The left child stays in its level's part of scratch while the right child is computed in dst. */
    const float *left = node_of(sum, level - 1, 2 * index, sum->scratch + (size_t)level * sum->n);
    const float *right = node_of(sum, level - 1, 2 * index + 1, dst);
    co_leaf_add(dst, left, right, sum->n);
    return dst;
}

const float *co_tree_node(const co_tree *t, int level, int index, size_t lo, size_t hi,
                          const co_sources *from, float *scratch)
{
    struct summing s = {t, lo, hi - lo, from, scratch};

    return node_of(&s, level, index, scratch);
}
