/* aside.c -- the pool of old bytes that a checkpoint in progress still needs.
 *
 * While the state before unit u is being saved, whoever changes a part of it for the first time copies the
 * old bytes into the pool and then sets the part's mark to (u, 1 + place). The saver reads parts without a
 * mark in place and the others from the pool.
 *
 *     small state   the pool has room for all of it, and each part has a fixed place
 *     large state   the pool has 16 MiB, and places are handed out by a counter stamped with u. When the pool
 *                   is full, ranks wait until the saver has read everything (aside_done). After that the
 *                   state before u is not needed in memory any more, and parts change without a copy.
 *
 * Every part that has changed since u has a copy, or the saver was done before the change. A rank that dies
 * between taking a place and setting the mark wastes the place; its successor takes another one.
 */
#include "train/aside_int.h"
#include "train/rank_int.h"

#include <string.h>

enum { POOL_BYTES = 16 << 20, ALIGN = 16 /* elements */ };

static size_t arrays(const co_plan *plan)
{
    return 1 + (size_t)plan->moments;
}

void choose_aside(co_plan *plan)
{
    size_t all = plan->layout->count * arrays(plan);
    size_t most = (plan->spec.aside_bytes ? plan->spec.aside_bytes : POOL_BYTES) / sizeof(float);

    plan->aside_room = !plan->spec.ckpt_root ? 0 : all < most ? all : most;
}

bool aside_holds_all(const co_plan *plan)
{
    return plan->aside_room == plan->layout->count * arrays(plan);
}

size_t part_span(const co_plan *plan, size_t part, size_t *lo)
{
    return part < plan->chunks ? chunk_span(plan, part, lo) : range_span(plan, part - plan->chunks, lo);
}

uint32_t aside_needed(const struct regions *regions)
{
    uint64_t word = atomic_load_explicit(&regions->ctl->snap, memory_order_acquire);
    uint32_t snap = (uint32_t)(word >> 1);

    return (word & 1) && !aside_is_done(regions, snap) ? snap : 0;
}

/* Takes a place for a part, n elements from lo on in each array. False: the pool is full. */
static bool take_place(const struct rank *rank, uint32_t snap, size_t lo, size_t n, size_t *at)
{
    const co_plan *plan = rank->plan;
    _Atomic uint64_t *used = &rank->regions->ctl->aside_used;
    uint64_t seen = atomic_load_explicit(used, memory_order_relaxed), stamp = (uint64_t)snap << 32, end;

    *at = lo * arrays(plan);
    if (aside_holds_all(plan))
        return true;
    do {
        *at = seen >> 32 == snap ? (uint32_t)seen : 0;
        end = *at + (n * arrays(plan) + ALIGN - 1) / ALIGN * ALIGN;
        if (end > plan->aside_room)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(used, &seen, stamp | end, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static bool not_needed(struct rank *rank, int64_t unused)
{
    (void)unused;
    return aside_needed(rank->regions) == 0;
}

static void wait_for_saver(struct rank *rank)
{
    uint32_t item = atomic_load_explicit(&rank->me->record.slice, memory_order_relaxed);

    wait_for(rank, not_needed, 0, CO_PHASE_SNAPSHOT);
    rank_phase(rank, CO_PHASE_APPLY, item);
}

void copy_aside(struct rank *rank, size_t part)
{
    co_mark *mark = &rank->regions->aside_mark[part];
    uint32_t snap = aside_needed(rank->regions);
    size_t at, lo, n = part_span(rank->plan, part, &lo);

    if (!snap || co_mark_get(mark, snap) != 0)
        return;
    if (!take_place(rank, snap, lo, n, &at)) {
        wait_for_saver(rank);
        return;
    }
    fault_point(rank, CO_FAULT_NONE);
    for (size_t i = 0; i < arrays(rank->plan); i++)
        memcpy(rank->regions->aside + at + i * n, part_of(rank, (int)i) + lo, n * sizeof(float));
    fault_point(rank, CO_FAULT_NONE);
    co_mark_set(mark, snap, 1 + (uint32_t)at);
    atomic_thread_fence(memory_order_seq_cst); /* the mark is there before the state changes */
}

const float *aside_find(const co_plan *plan, const struct regions *regions, uint32_t snap, size_t part,
                        int array)
{
    uint32_t place = co_mark_get(&regions->aside_mark[part], snap);
    size_t lo, n = part_span(plan, part, &lo);

    if (place == 0 || place == UINT32_MAX) /* of a later unit: this saver has been given up */
        return NULL;
    return regions->aside + (place - 1) + (size_t)array * n;
}

void aside_done(const struct regions *regions, uint32_t snap)
{
    co_mark_set(&regions->ctl->snap_read, snap, 1);
    co_event_ring(&regions->ctl->event);
}

bool aside_is_done(const struct regions *regions, uint32_t snap)
{
    return co_mark_get(&regions->ctl->snap_read, snap) == 1;
}
