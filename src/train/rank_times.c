/* rank_times.c -- where the time of this host's ranks goes, for the hooks: read from the words that each rank
 * publishes at the end of its units. */
#include "train/super_int.h"

#include "base/clock.h"
#include "train/timeouts_int.h"

static uint64_t word(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static co_rank_times times_of(const rank_slot *slot, int pid)
{
    uint32_t phase = atomic_load_explicit(&slot->record.phase, memory_order_relaxed);

    return (co_rank_times){.pid = pid,
                           .input_ns = word(&slot->wait_ns),
                           .compute_ns = word(&slot->compute_ns) + word(&slot->update_ns),
                           .exchange_ns = word(&slot->exchange_ns),
                           .wait_ns = word(&slot->idle_ns),
                           .beat = word(&slot->record.turns) * 4096 +
                                   atomic_load_explicit(&slot->record.call, memory_order_relaxed),
                           .waits =
                               phase == CO_PHASE_WAIT || phase == CO_PHASE_SNAPSHOT || phase == CO_PHASE_END,
                           .doing = co_phase_name(phase < CO_PHASE_COUNT ? phase : CO_PHASE_START)};
}

void tell_rank_times(struct supervisor *super)
{
    const struct run *run = &super->run;
    co_rank_times all[CO_MAX_SLOTS];
    uint64_t now = co_now_ns();

    if (!run->hooks->ranks || now - super->ranks_told_ns < TELL_RANKS_MS * UINT64_C(1000000))
        return;
    super->ranks_told_ns = now;
    for (int slot = 0; slot < run->plan->ranks; slot++)
        all[slot] = times_of(&run->regions->slots[slot], (int)co_crew_pid(super->crew, slot));
    run->hooks->ranks(run->hooks->ctx, all, run->plan->ranks);
}
