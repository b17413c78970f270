/* order.c -- which sample stands where in an epoch: a function of (data, split, batch, seed, epoch) only.
 *
 *   one permutation of the split per epoch
 *   text     | 16 batches       | 16 batches       | rest  |     sorted by length inside each window
 *            then whole batches change places, a short one staying last
 *
 * So the samples of a batch, and of a slice, have similar lengths and little is padded, while their order
 * stays random. docs/formats/order.md describes it exactly, so that anyone can reproduce it.
 *
 * All memory is taken in co_order_new: two epochs, and for text one more and a window's keys. An epoch costs
 * O(n), for text O(n log(window)).
 */
#include "data/data.h"

#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

#define BATCH_STEP (1u << 31) /* set in the rng's step for the permutation of batches */

enum { WINDOW = 16 };

struct co_order {
    const co_dataset *d;
    co_split split;
    uint32_t n, batch, window;
    bool shuffle, by_length;
    co_rng_key key;
    struct epoch {
        bool made;
        uint32_t number;
        uint32_t *ids; /* [n] */
    } kept[2];
    int last;           /* which of kept[] was used last: the other one is overwritten next */
    uint32_t *shuffled; /* [n], text only, as are the next */
    uint32_t *batches;  /* [n / batch] */
    uint64_t *keys;     /* [2 * window] */
};

co_err co_order_new(co_order **out, const co_dataset *d, co_split s, uint32_t batch, uint64_t seed, bool shuffle)
{
    CO_ASSERT(batch > 0, "a batch has samples");
    co_order *o = co_zalloc(sizeof *o);

    if (!o)
        return CO_ENOMEM;
    o->d = d;
    o->split = s;
    o->n = d->count[s];
    o->batch = batch;
    o->window = (uint64_t)batch * WINDOW < o->n ? batch * WINDOW : o->n;
    o->shuffle = shuffle;
    o->by_length = shuffle && d->length;
    o->key = co_rng_key_make(seed, CO_RNG_SHUFFLE);
    for (int i = 0; i < (shuffle ? 2 : 1); i++)
        if (!(o->kept[i].ids = co_array(o->n, sizeof(uint32_t))))
            goto fail;
    if (o->by_length) {
        o->shuffled = co_array(o->n, sizeof *o->shuffled);
        o->batches = o->shuffled ? co_array(o->n / batch, sizeof *o->batches) : NULL;
        o->keys = o->batches ? co_array(2 * (size_t)o->window, sizeof *o->keys) : NULL;
        if (!o->keys)
            goto fail;
    }
    if (!shuffle)
        for (uint32_t i = 0; i < o->n; i++)
            o->kept[0].ids[i] = i;
    *out = o;
    return CO_OK;
fail:
    co_order_free(o);
    return CO_ENOMEM;
}

void co_order_free(co_order *o)
{
    if (!o)
        return;
    co_free(o->kept[0].ids);
    co_free(o->kept[1].ids);
    co_free(o->shuffled);
    co_free(o->batches);
    co_free(o->keys);
    co_free(o);
}

/* Merges the rising runs a[lo, mid) and a[mid, hi) into b[lo, hi). No two keys are equal. */
static void merge(uint64_t *b, const uint64_t *a, uint32_t lo, uint32_t mid, uint32_t hi)
{
    uint32_t i = lo, j = mid;

    for (uint32_t k = lo; k < hi; k++)
        b[k] = j >= hi || (i < mid && a[i] < a[j]) ? a[i++] : a[j++];
}

/* Sorts a[n], with b[n] to work in; returns the one that holds the result. Bottom-up merges. */
static const uint64_t *sort(uint64_t *a, uint64_t *b, uint32_t n)
{
    for (uint64_t run = 1; run < n; run *= 2) {
        for (uint64_t lo = 0; lo < n; lo += 2 * run) {
            uint64_t mid = lo + run < n ? lo + run : n, hi = mid + run < n ? mid + run : n;
            merge(b, a, (uint32_t)lo, (uint32_t)mid, (uint32_t)hi);
        }
        uint64_t *t = a;
        a = b;
        b = t;
    }
    return a;
}

/* ids[n] sorted by length; samples of one length stay in their order. A key is (length, place). The ids
 * themselves are put aside in `aside`, which has room for n. */
static void sort_window(const co_order *o, uint32_t *ids, uint32_t n, uint32_t *aside)
{
    for (uint32_t i = 0; i < n; i++)
        o->keys[i] = (uint64_t)o->d->length(o->d, o->split, ids[i]) << 32 | i;
    const uint64_t *sorted = sort(o->keys, o->keys + o->window, n);
    memcpy(aside, ids, n * sizeof *ids);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = aside[(uint32_t)sorted[i]];
}

static void make_epoch(co_order *o, uint32_t *ids, uint32_t epoch)
{
    uint32_t n = o->n, whole = n / o->batch;
    uint32_t *p = o->by_length ? o->shuffled : ids;

    CO_ASSERT(epoch < BATCH_STEP, "the upper half of the rng's steps is for batches");
    co_rng_permute(p, n, o->key, epoch);
    if (!o->by_length)
        return;
    for (uint64_t at = 0; at < n; at += o->window)
        sort_window(o, p + at, n - at < o->window ? (uint32_t)(n - at) : o->window, ids);
    co_rng_permute(o->batches, whole, o->key, epoch | BATCH_STEP);
    for (uint32_t i = 0; i < whole; i++)
        memcpy(ids + (size_t)i * o->batch, p + (size_t)o->batches[i] * o->batch, o->batch * sizeof *ids);
    size_t done = (size_t)whole * o->batch;
    memcpy(ids + done, p + done, (n - done) * sizeof *ids);
}

static void touch(void *p, size_t n, size_t size)
{
    volatile char *at = p;

    for (size_t i = 0; at && i < n * size; i += 4096)
        at[i] = at[i];
}

void co_order_touch(co_order *o)
{
    touch(o->kept[0].ids, o->n, sizeof(uint32_t));
    touch(o->kept[1].ids, o->n, sizeof(uint32_t));
    touch(o->shuffled, o->n, sizeof *o->shuffled);
    touch(o->batches, o->n / o->batch, sizeof *o->batches);
    touch(o->keys, 2 * (size_t)o->window, sizeof *o->keys);
}

const uint32_t *co_order_epoch(co_order *o, uint32_t epoch)
{
    if (!o->shuffle)
        return o->kept[0].ids;
    for (int i = 0; i < 2; i++)
        if (o->kept[i].made && o->kept[i].number == epoch) {
            o->last = i;
            return o->kept[i].ids;
        }
    o->last = !o->last;
    struct epoch *e = &o->kept[o->last];
    make_epoch(o, e->ids, epoch);
    e->made = true;
    e->number = epoch;
    return e->ids;
}
