/* layout.h -- the model's state as one flat space of 4-byte elements.
 *
 *     offset 0      (16 elements = one cache line of alignment)                    dense                    count
 *     | fc1.weight | fc1.bias | bn1.weight | bn1.running_mean | num_batches_tracked | user.weight | tok.weight |
 *     |<------------------------ dense entries ----------------------------------->|<- row-sparse entries --->|
 *
 * Weights and moments use these offsets. Leaves and sums have the first `dense` elements only: element i is the
 * gradient of element i of the state (for running statistics: the slice's statistic times its samples). The
 * gradient of a row-sparse entry is a sorted list of rows (tensor/rows.h). Padding between entries is zero
 * everywhere, always.
 *
 * The chunk grid (the pieces that are summed, normed, applied, journalled and sent) is a formula of `dense`
 * alone.
 */
#ifndef CO_TENSOR_LAYOUT_H
#define CO_TENSOR_LAYOUT_H

#include "base/alloc.h"
#include "base/err.h"
#include "base/hash.h"
#include "tensor/tensor.h"

typedef enum {
    CO_KIND_PARAM,  /* F32, updated by the optimiser */
    CO_KIND_STAT,   /* F32 running statistic: new = (1 - momentum) * old + momentum * (sum / samples) */
    CO_KIND_COUNTER /* I64 scalar, rises by one per applied step (num_batches_tracked) */
} co_kind;

typedef enum {
    CO_INIT_ZERO,
    CO_INIT_ONE,
    CO_INIT_UNIFORM,
    CO_INIT_NORMAL,
    CO_INIT_VALUE,
    /* [out,in,k,k]: the first `in` filters pass their own channel on, the others are UNIFORM */
    CO_INIT_DIRAC,
    /* [2m,in,k,k], m = in * k * k: filters that whiten the data's patches (co_whiten of nn.h); here 0 */
    CO_INIT_WHITEN
} co_init_kind;
typedef struct co_init {
    co_init_kind kind;
    float a; /* UNIFORM, DIRAC: [-a, a); NORMAL: standard deviation; VALUE: a itself */
} co_init;

typedef struct co_entry {
    const char *name; /* the public name, "layer1.0.bn1.running_mean" */
    co_kind kind;
    co_dtype dtype;
    co_shape shape;
    size_t offset, count; /* in 4-byte elements; an I64 scalar takes 2 */
    co_init init;
    bool sparse;    /* row-sparse gradient */
    int list;       /* sparse only: which of the layout's lists its gradient is */
    float momentum; /* STAT only */
    bool no_decay;  /* bias and norm: exempt from weight decay where the recipe says so */
    /* A position embedding [1, 1 + h * w, d] for pictures of h x w patches: {h, w}. Loaded weights for another size
     * are resampled. Else 0. */
    int64_t grid[2];
} co_entry;

typedef struct co_layout {
    co_pool pool;
    co_entry *entry; /* in the order in which they were added */
    int n, room;
    size_t count; /* state elements, multiple of 16 */
    size_t dense; /* elements of the dense entries, which come first; multiple of 16 */
    int lists;    /* row-sparse entries */
    bool closed;
} co_layout;

void co_layout_init(co_layout *l);
void co_layout_fini(co_layout *l);
/* Adds an entry; copies the name. Refuses a name that exists already. */
co_err co_layout_add(co_layout *l, const co_entry *e);
void co_layout_close(co_layout *l); /* gives all entries their offsets; no entry may be added after it */
/* Elements of one row of a sparse entry. */
size_t co_entry_width(const co_entry *e);
const co_entry *co_layout_find(const co_layout *l, const char *name);
/* Compares names, kinds, shapes and offsets. CO_EINPUT names the first entry that differs. */
co_err co_layout_same(const co_layout *a, const co_layout *b);

/* Chunk grid over the dense entries: the elements per chunk are a power of two in [1024, 65536], about
 * dense / 64. There may be no chunk. */
size_t co_layout_chunk(const co_layout *l);
size_t co_layout_chunks(const co_layout *l);

/* The indices of all entries, sorted bytewise by name: idx[n]. The caller frees it with co_free. */
int *co_layout_by_name(const co_layout *l);

/* Fills in the initial state, a function of (seed, entry name) only; what needs the data (WHITEN) is 0. */
void co_layout_initialise(const co_layout *l, float *state, uint64_t seed);

/* Computes weights_sha256 as docs/formats/weights-sha256.md defines it. */
co_err co_layout_sha256(const co_layout *l, const float *state, char hex[65]);
/* Adds only the part of that hash which precedes a tensor's bytes, for callers that have the bytes
 * elsewhere. */
void co_layout_sha256_head(co_sha256 *h, const char *name, const char *dtype_name, const co_shape *shape);

#endif
