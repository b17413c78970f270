/* gate.c -- turns, wishes, and the gate that a step passes before any parameter is touched.
 * See control_int.h. */
#include "train/rank_int.h"

static uint64_t pc_now(const struct rank *rank)
{
    return atomic_load_explicit(&rank->regions->ctl->pc, memory_order_acquire);
}

co_who turn_of(const struct rank *rank)
{
    return (co_who){.unit = rank->turn, .slot = rank->who.slot, .inc = rank->who.inc};
}

bool turn_is_over(const struct rank *rank)
{
    return (pc_now(rank) ^ rank->pc) >> 8 != 0;
}

bool turn_is_open(const struct rank *rank)
{
    uint64_t pc = atomic_load(&rank->regions->ctl->pc); /* one read decides both */

    return !((pc ^ rank->pc) >> 8) && !pc_is_frozen(pc);
}

bool begin_write(struct rank *rank)
{
    if (rank->plan->hosts == 1)
        return true;
    atomic_store(&rank->me->writes, 1);
    if (turn_is_open(rank))
        return true;
    atomic_store(&rank->me->writes, 0);
    return false;
}

void end_write(struct rank *rank)
{
    if (rank->plan->hosts > 1)
        atomic_store(&rank->me->writes, 0);
}

bool follow_deal(struct rank *rank)
{
    const co_plan *plan = rank->plan;
    uint32_t number = 1 + pc_redeals(rank->pc);

    if (rank->dealt == number)
        return true;
    rank->deal = *rank->regions->deal;
    atomic_thread_fence(memory_order_seq_cst);
    if (!turn_is_open(rank))
        return false; /* it may have changed while it was read */
    rank->dealt = number;
    for (int cut = 0; cut < CUTS; cut++)
        co_tree_deal(&rank->tree[cut], &plan->cut[cut], rank->deal.from[rank->deal.me],
                     rank->deal.from[rank->deal.me + 1]);
    if (rank->jobs)
        jobs_dealt(rank);
    return true;
}

/* --- wishes --------------------------------------------------------------------------------------------- */
void latch_wish(struct rank *rank, uint64_t more)
{
    control *ctl = rank->regions->ctl;
    _Atomic uint64_t *mine = &ctl->wish[rank->deal.me];
    uint64_t old = atomic_load_explicit(mine, memory_order_acquire), bits = more;

    if (atomic_load_explicit(&ctl->stop_request, memory_order_relaxed))
        bits |= WISH_STOP;
    if (atomic_load_explicit(&ctl->time_is_up, memory_order_relaxed))
        bits |= WISH_TIME_IS_UP;
    while (old >> 8 < rank->turn) /* else another rank fixed it */
        if (atomic_compare_exchange_weak(mine, &old, (uint64_t)rank->turn << 8 | bits))
            return;
}

bool all_wished(const struct rank *rank)
{
    for (int h = 0; h < rank->deal.hosts; h++)
        if (atomic_load_explicit(&rank->regions->ctl->wish[h], memory_order_acquire) >> 8 < rank->turn)
            return false;
    return rank->plan->hosts == 1 || co_mark_get(&rank->regions->ctl->sent, rank->turn) != 0;
}

uint64_t wishes(const struct rank *rank)
{
    uint64_t all = 0;

    for (int h = 0; h < rank->deal.hosts; h++) {
        uint64_t word = atomic_load_explicit(&rank->regions->ctl->wish[h], memory_order_acquire);
        all |= word >> 8 == rank->turn ? word & 0xff : 0;
    }
    return all;
}

uint64_t settled(const struct rank *rank)
{
    uint64_t word =
        atomic_load_explicit(&rank->regions->ctl->settled[rank->who.unit & 1], memory_order_acquire);

    return word >> 8 == rank->who.unit ? word & 0xff : 0;
}

/* --- the gate ------------------------------------------------------------------------------------------- */
static bool gate_moves(struct rank *rank, int64_t unused)
{
    (void)unused;
    return !pc_is_frozen(pc_now(rank));
}

void wait_at_gate(struct rank *rank)
{
    wait_for(rank, gate_moves, 0, CO_PHASE_WAIT);
}

bool pass_gate(struct rank *rank)
{
    control *ctl = rank->regions->ctl;

    for (;;) {
        uint64_t pc = pc_now(rank);
        if ((pc ^ rank->pc) >> 8)
            return false;
        if (pc & PC_READY)
            return true;
        if (pc_is_frozen(pc)) {
            wait_at_gate(rank);
            continue;
        }
        /* Every rank stores the same word: all wishes of this turn are here. */
        atomic_store_explicit(&ctl->settled[rank->who.unit & 1], (uint64_t)rank->who.unit << 8 | wishes(rank),
                              memory_order_relaxed);
        fault_point(rank, CO_FAULT_NONE);
        if (atomic_compare_exchange_strong_explicit(&ctl->pc, &pc, pc | PC_READY, memory_order_acq_rel,
                                                    memory_order_acquire))
            co_event_ring(&ctl->event);
    }
}
