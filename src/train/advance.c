/* advance.c -- the end of a unit: its result is published, and pc moves on to the next unit.
 *
 * Every rank works out by itself, from the same shared words, how the run goes on. The first one to move pc
 * decides; the others find it moved and follow.
 */
#include "train/rank_int.h"

#include <unistd.h>

#include "base/clock.h"

static void publish(struct rank *rank, const unit *done, const decision *decided)
{
    result *slot = &rank->regions->ctl->ring[rank->who.unit % RING];

    /* Every rank writes the same numbers (except the time), so nobody has to wait for anybody. */
    atomic_store_explicit(&slot->loss, bits_of(decided->loss), memory_order_relaxed);
    atomic_store_explicit(&slot->metric, bits_of(decided->metric), memory_order_relaxed);
    atomic_store_explicit(&slot->norm, bits_of(decided->norm), memory_order_relaxed);
    atomic_store_explicit(&slot->lr, bits_of(decided->lr), memory_order_relaxed);
    atomic_store_explicit(&slot->count, (uint64_t)decided->count, memory_order_relaxed);
    atomic_store_explicit(&slot->applied, (uint64_t)decided->t, memory_order_relaxed);
    atomic_store_explicit(&slot->skipped, done->kind == UNIT_TRAIN && !decided->apply, memory_order_relaxed);
    atomic_store_explicit(&slot->t_ns, co_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&slot->sum_apply_ns, rank->sum_apply_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->top5, bits_of(decided->top5), memory_order_relaxed);
    atomic_store_explicit(&slot->bad, decided->bad < 0 ? UINT64_MAX : (uint64_t)decided->bad,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->slice, (uint64_t)(decided->slice + 1), memory_order_relaxed);
    atomic_store_explicit(&slot->unit, rank->who.unit, memory_order_release);
}

static bool supervisor_keeps_up(struct rank *rank, int64_t unused)
{
    (void)unused;
    /* Negative if this rank is so slow that the others and the supervisor are units ahead of it. */
    int64_t behind = (int64_t)rank->who.unit -
                     (int64_t)atomic_load_explicit(&rank->regions->ctl->consumed, memory_order_acquire);

    if (behind >= RING / 2)
        ring_bell(rank);
    return behind < RING - 4;
}

static bool snapshot_is_free(struct rank *rank, int64_t unused)
{
    (void)unused;
    return !(atomic_load_explicit(&rank->regions->ctl->snap, memory_order_acquire) & 1);
}

/* One host's own request is everybody's: it need not wait for the next turn. */
static bool stops_alone(const struct rank *rank)
{
    return rank->plan->hosts == 1 &&
           atomic_load_explicit(&rank->regions->ctl->stop_request, memory_order_relaxed);
}

static bool free_or_moved_on(struct rank *rank, int64_t unused)
{
    return turn_is_over(rank) || snapshot_is_free(rank, unused) || stops_alone(rank);
}

typedef enum { SAVE_NOT, SAVE_NOW, SAVE_AND_STOP } save_decision;

/* Waits for the saver. Not free after that: pc moved on, and what we say does not count; or a stop, which
 * saves this state as the last one. */
static save_decision save_when_free(struct rank *rank)
{
    wait_for(rank, free_or_moved_on, 0, CO_PHASE_SNAPSHOT);
    return snapshot_is_free(rank, 0) ? SAVE_NOW : SAVE_AND_STOP;
}

/* One host of a view writes. */
static bool writes_checkpoints(const struct rank *rank)
{
    return rank->plan->spec.ckpt_root && rank->deal.me == rank->deal.writer;
}

/* Is the state after this step to be saved? Steps by count are exact, and the best state so far is always
 * kept: for both the ranks wait until the saver is free. Other epochs go by the clock and are left out while
 * it works. Decided at the last unit that looks at the state, so that the checkpoint knows how good it is. */
static save_decision save_due(struct rank *rank, const unit *done, const watch *now)
{
    const co_plan *plan = rank->plan;
    control *ctl = rank->regions->ctl;
    int64_t step = done->step, every = plan->cfg.ckpt_every_epochs * plan->units.steps_per_epoch;
    bool evaluated_next = evaluates_after(&plan->units, step) && done->kind == UNIT_TRAIN;
    bool by_steps = plan->cfg.ckpt_every_steps && step % plan->cfg.ckpt_every_steps == 0;
    bool by_epochs = !plan->cfg.ckpt_every_steps && every && step % every == 0;
    bool best = done->kind == UNIT_VAL && now->best_step == step && plan->cfg.ckpt_top != 0 &&
                (plan->cfg.ckpt_every_steps || plan->cfg.ckpt_every_epochs);

    if (!writes_checkpoints(rank) || step == plan->units.steps || evaluated_next)
        return SAVE_NOT;
    if (by_steps || best)
        return save_when_free(rank);
    if (!by_epochs || !snapshot_is_free(rank, 0))
        return SAVE_NOT;
    double since = (double)(co_now_ns() - atomic_load(&ctl->snap_at_ns)) * 1e-9;
    return since >= plan->cfg.ckpt_min_interval_s ? SAVE_NOW : SAVE_NOT;
}

static bool long_enough(const co_plan *plan, int64_t step)
{
    return step >= plan->cfg.min_steps && step >= plan->cfg.min_epochs * plan->units.steps_per_epoch;
}

/* Is this state the last to be trained? */
static bool cut_here(const struct rank *rank, const unit *done, const watch *now)
{
    bool wanted = done->kind == UNIT_VAL     ? now->why != GO_ON
                  : done->kind == UNIT_TRAIN ? (settled(rank) & WISH_TIME_IS_UP) != 0
                                             : false;

    return wanted && long_enough(rank->plan, done->step);
}

/* The flags of the next unit: how the run goes on after this one. */
static uint64_t go_on(struct rank *rank, const unit *done, const decision *decided, const watch *now)
{
    control *ctl = rank->regions->ctl;
    uint64_t cut = rank->pc & PC_CUT;
    unit_order order = unit_order_now(rank->plan, ctl);
    uint32_t next = rank->who.unit + 1;

    bool unreadable = done->kind == UNIT_TRAIN ? must_stop(rank->plan, decided->bad)
                                               : must_stop_eval(rank->plan, decided->bad, decided->count);
    if (unreadable)
        return cut | PC_FAIL;
    if (done->kind == UNIT_TRAIN && !decided->finite && rank->plan->cfg.on_nan == CO_ON_NAN_STOP)
        return cut | PC_FAIL;
    if (!cut && cut_here(rank, done, now)) {
        cut = PC_CUT;
        order = unit_order_cut(&rank->plan->units, next);
    }
    if (next > order.last_unit)
        return cut | PC_END;
    if ((settled(rank) & WISH_STOP) || stops_alone(rank))
        return cut | PC_STOP;
    save_decision save = SAVE_NOT;
    if (turn_is_over(rank))
        return cut; /* it moved on: what we say does not count */
    if (unit_of(&order, next).kind == UNIT_TEST)
        save = writes_checkpoints(rank) ? save_when_free(rank) : SAVE_NOT; /* the training is done: keep it */
    else if (!cut && done->kind != UNIT_TEST)
        save = save_due(rank, done, now);
    return cut | (save == SAVE_NOW ? PC_SNAP : save == SAVE_AND_STOP ? PC_STOP : 0);
}

/* Moves pc from this unit, whose gate is READY, to the next. A gate that was frozen meanwhile stays so: the
 * next unit waits for the new view. */
static void move_on(struct rank *rank, uint64_t flags)
{
    control *ctl = rank->regions->ctl;
    uint64_t seen = atomic_load_explicit(&ctl->pc, memory_order_acquire);

    while (!((seen ^ rank->pc) >> 8)) {
        uint64_t next = pc_of(rank->who.unit + 1, pc_redeals(seen), flags | (seen & PC_FROZEN));
        if (atomic_compare_exchange_strong_explicit(&ctl->pc, &seen, next, memory_order_acq_rel,
                                                    memory_order_acquire)) {
            co_event_ring(&ctl->event);
            return;
        }
    }
}

void advance(struct rank *rank, const unit *done, const decision *decided, const watch *now)
{
    control *ctl = rank->regions->ctl;

    fault_point(rank, CO_FAULT_NONE);
    if (done->kind == UNIT_TRAIN)
        atomic_store_explicit(&ctl->applied[done->step & 1], decided->t, memory_order_relaxed);
    publish(rank, done, decided);
    wait_for(rank, supervisor_keeps_up, 0, CO_PHASE_WAIT);
    uint64_t flags = go_on(rank, done, decided, now);
    fault_point(rank, CO_FAULT_NONE);
    move_on(rank, flags);
}

bool evaluation_left(const struct rank *rank)
{
    uint64_t pc = atomic_load_explicit(&rank->regions->ctl->pc, memory_order_acquire);

    return !((pc ^ rank->pc) >> 8) && (pc & PC_STOP);
}

/* Several hosts leave together: the wish travels, and once all wishes are here everybody knows. */
static bool leave_together(struct rank *rank)
{
    if (atomic_load_explicit(&rank->regions->ctl->stop_request, memory_order_relaxed))
        latch_wish(rank, WISH_LEAVE);
    return (wishes(rank) & WISH_LEAVE) != 0;
}

bool stop_evaluation(struct rank *rank)
{
    control *ctl = rank->regions->ctl;
    uint64_t seen = rank->pc, stopped = pc_of(rank->who.unit, pc_redeals(seen), (seen & PC_CUT) | PC_STOP);

    fault_point(rank, CO_FAULT_NONE);
    /* If this fails, another rank either left the evaluation or found it complete. pc says which. */
    if (atomic_compare_exchange_strong_explicit(&ctl->pc, &seen, stopped, memory_order_acq_rel,
                                                memory_order_acquire))
        co_event_ring(&ctl->event);
    return evaluation_left(rank);
}

bool leave_evaluation(struct rank *rank)
{
    if (rank->plan->hosts > 1)
        return leave_together(rank);
    return atomic_load_explicit(&rank->regions->ctl->stop_request, memory_order_relaxed)
               ? stop_evaluation(rank)
               : evaluation_left(rank);
}
