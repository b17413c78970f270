/* unreadable.c -- several hosts: a sample that this host cannot read is offered to the others, before it
 * counts as unreadable (docs/decisions/0010).
 *
 *     rank         does not finish its leaf: it stores the turn in ctl->host.unreadable, and waits
 *     supervisor   tells the roster which unit it is, and the user which file
 *     roster       freezes all hosts; in the next view the hosts that could not read have no slices. If all
 *                  hosts have tried, the view's `counts` is the unit
 *     rank         a new turn of the unit: if it has the leaf again, the sample counts as unreadable
 *
 * The leaf that waits is missing from the step, so no host can pass the gate of this unit before the new
 * view. A sample that all have given up is remembered by each host (bad_samples.c), and not offered again: a
 * view change costs a step.
 */
#include <stdio.h>

#include "train/hosts_int.h"
#include "train/rank_int.h"

/* --- ranks ---------------------------------------------------------------------------------------------- */
/* Whether a view without this host's slices is possible.
 * The best weights are tested by the host that writes alone. */
static bool can_be_passed_on(const struct rank *rank, const unit *u)
{
    if (rank->plan->hosts == 1 || __builtin_popcountll(rank->deal.whole) < 2)
        return false;
    return u->kind != UNIT_TEST || !test_wants_best(rank->plan);
}

/* All hosts have left this evaluation: no view has to answer. */
static bool has_ended(struct rank *rank, int64_t unused)
{
    (void)unused;
    return atomic_load(&rank->regions->ctl->pc) & (PC_STOP | PC_END | PC_FAIL);
}

static bool is_unreadable(const struct rank *rank, const struct unread *what, int i)
{
    const co_dataset *data = rank->plan->data;
    bool bad = data->check && data->check(data, what->split, what->ids[i]) != CO_OK;

    co_errclear();
    return bad;
}

/* How many of these samples were left out before, and cannot be read now either. */
static int given_up_before(const struct rank *rank, const struct unread *what)
{
    const _Atomic uint64_t *bits = rank->regions->given_up[what->split];
    int n = 0;

    for (int i = 0; i < what->n; i++)
        n += (atomic_load(&bits[what->ids[i] / 64]) >> what->ids[i] % 64 & 1) && is_unreadable(rank, what, i);
    return n;
}

bool nobody_reads(struct rank *rank, const struct unread *what)
{
    control *ctl = rank->regions->ctl;
    unit u = unit_now(rank->plan, ctl, rank->who.unit);

    if (!can_be_passed_on(rank, &u) || atomic_load(&ctl->host.counts) == rank->who.unit ||
        given_up_before(rank, what) == what->bad)
        return true;
    atomic_store(&ctl->host.unreadable, (uint64_t)rank->turn << 16 | (what->item & 0xffff));
    ring_bell(rank);
    wait_for(rank, has_ended, 0, CO_PHASE_WAIT);
    return false;
}

/* --- the supervisor ------------------------------------------------------------------------------------- */
/* Names the first sample of a leaf of this step that cannot be read. */
static void name_sample(const struct run *run, int64_t step, int leaf)
{
    const co_plan *plan = run->plan;
    const uint32_t *ids = ids_of_step(plan, plan->order, step);
    uint32_t lo, hi;
    char text[1200];

    slice_range(plan, ids, step, leaf, &lo, &hi);
    for (uint32_t i = lo; i < hi && plan->data->check; i++) {
        if (plan->data->check(plan->data, CO_SPLIT_TRAIN, ids[i]) == CO_OK)
            continue;
        snprintf(text, sizeof text, "step %lld: this host cannot read a sample, another one tries: %s",
                 (long long)step, co_errmsg());
        run_notice(run, text);
        co_errclear();
        return;
    }
}

void offer_unreadable(struct supervisor *super)
{
    struct hosts *hosts = &super->hosts;
    const struct run *run = &super->run;
    uint64_t word = atomic_load(&run->regions->ctl->host.unreadable), pc = atomic_load(&run->regions->ctl->pc);

    /* Of an earlier turn, or of a view that ends anyway: if this host has the leaf again, its rank asks
     * again. While neither is frozen, the carrier is in the view that the supervisor knows. */
    if (word == hosts->offered || hosts->frozen || hosts->members < 2 || (pc & PC_FROZEN) ||
        word >> 16 != pc_turn(pc))
        return;
    hosts->offered = word;
    co_roster_unreadable(run->hosts->roster, hosts->number, pc_unit(pc));
    unit u = unit_now(run->plan, run->regions->ctl, pc_unit(pc));
    if (u.kind == UNIT_TRAIN)
        name_sample(run, u.step, (int)(word & 0xffff));
}
