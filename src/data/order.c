/* order.c -- which sample stands where in an epoch: a function of (data, split, seed, epoch) only.
 *
 * An epoch is one permutation of the split. docs/formats/order.md describes it exactly, so that anyone can
 * reproduce it. Samples of text are shuffled like all others: slices are not padded, so nothing is gained
 * by similar lengths.
 *
 * All memory is taken in co_order_new: two epochs. An epoch costs O(n).
 */
#include "data/data.h"

#include "base/alloc.h"
#include "base/rng.h"

struct co_order {
    uint32_t n;
    bool shuffle;
    co_rng_key key;
    struct epoch {
        bool made;
        uint32_t number;
        uint32_t *ids; /* [n] */
    } kept[2];
    int last; /* which of kept[] was used last: the other one is overwritten next */
};

co_err co_order_new(co_order **out, const co_dataset *d, co_split s, uint64_t seed, bool shuffle)
{
    co_order *o = co_zalloc(sizeof *o);

    if (!o)
        return CO_ENOMEM;
    o->n = d->count[s];
    o->shuffle = shuffle;
    o->key = co_rng_key_make(seed, CO_RNG_SHUFFLE);
    for (int i = 0; i < (shuffle ? 2 : 1); i++)
        if (!(o->kept[i].ids = co_array(o->n, sizeof(uint32_t)))) {
            co_order_free(o);
            return CO_ENOMEM;
        }
    if (!shuffle)
        for (uint32_t i = 0; i < o->n; i++)
            o->kept[0].ids[i] = i;
    *out = o;
    return CO_OK;
}

void co_order_free(co_order *o)
{
    if (!o)
        return;
    co_free(o->kept[0].ids);
    co_free(o->kept[1].ids);
    co_free(o);
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
    co_rng_permute(e->ids, o->n, o->key, epoch);
    e->made = true;
    e->number = epoch;
    return e->ids;
}
