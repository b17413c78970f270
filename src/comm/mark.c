/* mark.c -- see mark.h for the states. All accesses are acquire/release. There is no lock that a dying rank
 * could leave held. */
#include "comm/mark.h"

enum { CLAIMED = 1, DONE = 2 };

static uint64_t pack(co_who w, uint64_t state)
{
    return (uint64_t)w.unit << 32 | (uint64_t)(w.slot & 0xff) << 24 | (uint64_t)(w.inc & 0x3fffff) << 2 | state;
}

co_claimed co_claim_take(co_claim *claim, co_who who)
{
    uint64_t old = atomic_load_explicit(&claim->word, memory_order_acquire);

    for (;;) {
        uint32_t unit = (uint32_t)(old >> 32);
        bool redo = false;
        if (unit > who.unit)
            return CO_CLAIM_DONE;
        if (unit == who.unit) {
            if ((old & 3) == DONE)
                return CO_CLAIM_DONE;
            if ((old >> 24 & 0xff) != who.slot || (old >> 2 & 0x3fffff) == (who.inc & 0x3fffff))
                return CO_CLAIM_BUSY;
            redo = true;
        }
        if (atomic_compare_exchange_weak_explicit(&claim->word, &old, pack(who, CLAIMED),
                                                  memory_order_acq_rel, memory_order_acquire))
            return redo ? CO_CLAIM_REDO : CO_CLAIM_FRESH;
    }
}

void co_claim_finish(co_claim *c, co_who who)
{
    atomic_store_explicit(&c->word, pack(who, DONE), memory_order_release);
}

void co_claim_give_back(co_claim *c, co_who who)
{
    who.unit--;
    atomic_store_explicit(&c->word, pack(who, DONE), memory_order_release);
}

bool co_claim_is_done(const co_claim *c, uint32_t unit)
{
    uint64_t w = atomic_load_explicit(&c->word, memory_order_acquire);
    uint32_t of = (uint32_t)(w >> 32);

    return of > unit || (of == unit && (w & 3) == DONE);
}

bool co_claim_is_free(const co_claim *c, uint32_t unit)
{
    return atomic_load_explicit(&c->word, memory_order_acquire) >> 32 < unit;
}

void co_mark_set(co_mark *m, uint32_t unit, uint32_t count)
{
    atomic_store_explicit(&m->word, (uint64_t)unit << 32 | count, memory_order_release);
}

uint32_t co_mark_get(const co_mark *m, uint32_t unit)
{
    uint64_t w = atomic_load_explicit(&m->word, memory_order_acquire);
    uint32_t of = (uint32_t)(w >> 32);

    return of == unit ? (uint32_t)w : of > unit ? UINT32_MAX : 0;
}
