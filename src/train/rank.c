/* rank.c -- a rank's life: units one after another until the pc says otherwise.
 *
 * Every phase reads from the shared marks what is still to do. So recovery needs no code of its own: a rank
 * that starts in the middle of a unit goes through all its phases like any other, and finds each piece of
 * work done, torn or open.
 */
#include "train/rank_int.h"
#include "train/evaluate_int.h"
#include "train/run_int.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/maths.h"
#include "proc/crew.h"

enum { WARM_UNITS = 50, SPIN = 4000 };

/* --- the beginning of a unit ---------------------------------------------------------------------------- */
/* pc has the flag PC_SNAP: announces the checkpoint of the state before this unit, before any rank can change
 * it. */
static void announce_snapshot(struct rank *rank, const unit *open)
{
    control *ctl = rank->regions->ctl;
    uint64_t old = atomic_load_explicit(&ctl->snap, memory_order_acquire);
    int64_t step = open->kind == UNIT_TRAIN ? open->step - 1 : open->step;

    if (old >> 1 >= rank->who.unit)
        return; /* another rank did, or it is already saved */
    atomic_store(&ctl->snap_applied, atomic_load(&ctl->applied[step & 1]));
    if (rank->plan->units.cycle) {
        int64_t evals = evals_before(&rank->plan->units, step);
        for (int after = 0; after < 2; after++) {
            watch w = watch_get(ctl->watch[(evals + after) & 1]);
            watch_put(ctl->snap_watch[after], &w);
        }
    }
    atomic_store(&ctl->snap_at_ns, co_now_ns());
    fault_point(rank, CO_FAULT_NONE);
    if (atomic_compare_exchange_strong(&ctl->snap, &old, (uint64_t)rank->who.unit << 1 | 1))
        ring_bell(rank);
}

static void count_steady(struct rank *rank)
{
    struct rusage u;

    if (rank->units_done++ % 8 != 0 || rank->units_done < WARM_UNITS)
        return;
    getrusage(RUSAGE_SELF, &u);
    uint64_t allocs = co_alloc_count(), faults = (uint64_t)(u.ru_minflt + u.ru_majflt);
    if (rank->base_allocs == 0) {
        rank->base_allocs = allocs;
        rank->base_faults = faults;
    }
    atomic_store_explicit(&rank->me->allocs, allocs - rank->base_allocs, memory_order_relaxed);
    atomic_store_explicit(&rank->me->faults, faults - rank->base_faults, memory_order_relaxed);
}

/* Publishes how much time went into what. */
static void count_data(struct rank *rank)
{
    atomic_store_explicit(&rank->me->compute_ns, rank->spent.compute_ns, memory_order_relaxed);
    atomic_store_explicit(&rank->me->update_ns, rank->spent.update_ns, memory_order_relaxed);
    atomic_store_explicit(&rank->me->exchange_ns, rank->spent.exchange_ns, memory_order_relaxed);
    atomic_store_explicit(&rank->me->idle_ns, rank->spent.idle_ns, memory_order_relaxed);
    atomic_store_explicit(&rank->me->leaves, rank->spent.leaves, memory_order_relaxed);
    if (!rank->loader)
        return; /* a new deal, and no step of it yet */
    co_fill_times t = co_loader_times(rank->loader);

    atomic_store_explicit(&rank->me->wait_ns, rank->waited_ns + co_loader_wait_ns(rank->loader),
                          memory_order_relaxed);
    atomic_store_explicit(&rank->me->read_ns, t.read_ns, memory_order_relaxed);
    atomic_store_explicit(&rank->me->decode_ns, t.decode_ns, memory_order_relaxed);
    atomic_store_explicit(&rank->me->augment_ns, t.augment_ns, memory_order_relaxed);
}

static uint64_t waited_for_others(const struct rank *rank)
{
    return rank->spent.exchange_ns + rank->spent.idle_ns;
}

/* Up to the gate. READY already: a predecessor was past it, or another host gave the sum. False: the turn is
 * over. */
static bool up_to_the_gate(struct rank *rank, const unit *open, uint64_t *t0, uint64_t *waited)
{
    bool ready = rank->pc & PC_READY;

    if (!ready && !leaves(rank, open->step))
        return false;
    *t0 = co_now_ns();
    *waited = waited_for_others(rank);
    if (!(ready && rank->plan->hosts == 1) &&
        !sum_chunks(rank, open->step)) /* a given sum is still to be measured */
        return false;
    rank->phase_ns = co_now_ns() - *t0;
    return ready || pass_gate(rank);
}

bool supervisor_has_read(struct rank *rank, int64_t number)
{
    uint64_t consumed = atomic_load_explicit(&rank->regions->ctl->consumed, memory_order_acquire);

    if ((int64_t)consumed + 1 >= number)
        return true;
    ring_bell(rank);
    return false;
}

static void train_unit(struct rank *rank, const unit *open)
{
    decision d;
    uint64_t t0, waited;

    /* what this step counts goes where an earlier step's counts are */
    if (gradients_due(rank->plan, open->step) &&
        !wait_for(rank, supervisor_has_read, rank->who.unit, CO_PHASE_WAIT))
        return;
    if (!up_to_the_gate(rank, open, &t0, &waited))
        return;
    decide(rank, open->step, &d);
    if (d.apply)
        apply_chunks(rank, &d);
    rank->sum_apply_ns = co_now_ns() - t0;
    rank->spent.update_ns += rank->sum_apply_ns - (waited_for_others(rank) - waited);
    count_data(rank);
    group_grow(rank);
    advance(rank, open, &d, NULL);
}

static void eval_unit(struct rank *rank, const unit *open)
{
    co_split split = open->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST;
    control *ctl = rank->regions->ctl;
    double total[LEAF_STATS];
    watch w = {0};

    /* the classes that a validation keeps go where those of the one before are */
    if (open->kind == UNIT_VAL && val_kept(rank->plan) &&
        !wait_for(rank, supervisor_has_read, rank->who.unit, CO_PHASE_WAIT))
        return;
    if (!evaluate_items(rank, split))
        return; /* pc says stop */
    fault_point(rank, CO_FAULT_NONE);
    eval_total(rank->plan, rank->regions->eval_stat[split], split, total);
    if (open->kind == UNIT_VAL) {
        int64_t evals = evals_before(&rank->plan->units, open->step);
        w = watch_get(ctl->watch[evals & 1]);
        watch_see(rank->plan, total, open->step, &w);
        watch_put(ctl->watch[(evals + 1) & 1], &w);
    }
    advance(rank, open,
            &(decision){.loss = total[CO_STAT_LOSS] / total[CO_STAT_COUNT],
                        .metric = total[CO_STAT_METRIC] / total[CO_STAT_COUNT],
                        .top5 = total[CO_STAT_TOP5] / total[CO_STAT_COUNT],
                        .count = total[CO_STAT_COUNT],
                        .bad = total[STAT_BAD],
                        .finite = true,
                        .slice = -1,
                        .t = atomic_load(&ctl->applied[open->step & 1])},
            &w);
}

void rank_loop(struct rank *rank)
{
    for (;;) {
        rank->pc = atomic_load_explicit(&rank->regions->ctl->pc, memory_order_acquire);
        if (rank->pc & (PC_STOP | PC_END | PC_FAIL))
            break;
        rank->who.unit = pc_unit(rank->pc);
        rank->turn = pc_turn(rank->pc);
        if (pc_is_frozen(rank->pc)) {
            wait_at_gate(rank);
            continue;
        }
        if (!follow_deal(rank))
            continue;
        if (rank->pc & PC_CUT) /* remembered before anybody can go on to the next unit */
            atomic_compare_exchange_strong(&rank->regions->ctl->cut, &(uint64_t){0}, rank->who.unit);
        unit open = unit_now(rank->plan, rank->regions->ctl, rank->who.unit);
        if (rank->pc & PC_SNAP)
            announce_snapshot(rank, &open);
        count_steady(rank);
        if (open.kind == UNIT_TRAIN)
            train_unit(rank, &open);
        else
            eval_unit(rank, &open);
    }
    rank_phase(rank, CO_PHASE_END, 0);
}

/* --- opening and closing -------------------------------------------------------------------------------- */
co_err rank_open(struct rank *rank, co_plan *plan, struct regions *regions, int slot, uint32_t inc, int bell)
{
    *rank = (struct rank){.plan = plan,
                          .regions = regions,
                          .me = &regions->slots[slot],
                          .who = {.slot = (uint32_t)slot, .inc = inc},
                          .bell = bell};
    bool room = plan->ranks * plan->threads <= co_cpus_usable();
    rank->spin = room ? SPIN : 0;
    rank->pc = atomic_load(&regions->ctl->pc);
    rank->who.unit = pc_unit(rank->pc);
    rank->turn = pc_turn(rank->pc);
    for (int cut = 0; cut < CUTS; cut++)
        CO_TRY(co_tree_init(&rank->tree[cut], plan->ranks));
    for (int cut = 0; cut < CUTS; cut++) /* nobody's until the first turn deals */
        co_tree_deal(&rank->tree[cut], &plan->cut[cut], 0, 0);
    follow_deal(rank);
    atomic_store(&rank->me->writes, 0);
    rank->group = plan->group.first;
    rank->group_ns = co_now_ns();
    rank->work_bytes = work_bytes(plan);
    rank->work = regions->work[slot];
    rank->waited_ns = atomic_load(&rank->me->wait_ns);
    rank->spent.compute_ns = atomic_load(&rank->me->compute_ns);
    rank->spent.update_ns = atomic_load(&rank->me->update_ns);
    rank->spent.exchange_ns = atomic_load(&rank->me->exchange_ns);
    rank->spent.idle_ns = atomic_load(&rank->me->idle_ns);
    rank->spent.leaves = atomic_load(&rank->me->leaves);
    rank->group_exchange_ns = rank->spent.exchange_ns;
    co_record_begin(&rank->me->record);
    if (plan->kernels->space) {
        void *mem;
        CO_TRY(plan->kernels->space->open(&mem, rank->work_bytes));
        rank->work = mem;
    }
    CO_TRY(open_search(rank));
    CO_TRY(jobs_start(rank)); /* before the team binds this thread to a CPU: the loader's may use all of ours */
    return co_team_start(&rank->team, plan->threads, room ? CO_TEAM_SPIN : 0, room && plan->cfg.pin);
}

/* Waits for the loader's threads. A rank in a process of its own does not call this: a loader may hang with
 * its disk, and the exit ends its threads. */
void rank_close(struct rank *rank)
{
    co_team_stop(rank->team);
    co_loader_stop(rank->loader);
    co_free(rank->jobs);
    close_search(rank);
    for (int cut = 0; cut < CUTS; cut++)
        co_tree_fini(&rank->tree[cut]);
    if (rank->plan->kernels->space)
        rank->plan->kernels->space->close(rank->work, rank->work_bytes);
}

/* What all ranks use: it lies before the memory of the slots. */
static void populate_shared(const co_plan *plan, const char *end)
{
    for (int i = 0; i < plan->arena.n; i++) {
        const co_region *region = &plan->arena.region[i];
        char *at = co_arena_at(&plan->arena, region->offset);
        if (at < end && !region->late)
            co_populate(at, region->bytes);
    }
}

/* Touches all pages that steps will use, so that steps take no page faults. A successor skips this, to be
 * back sooner. */
static void populate(const struct rank *rank)
{
    const co_plan *plan = rank->plan;
    int slot = (int)rank->who.slot;

    co_touch_stack(32 << 10); /* as deep as any path goes */
    co_populate_code();
    populate_shared(plan, (char *)rank->regions->leaf_buffer[0]);
    for (int s = 0; s < plan->ranks; s++) /* `sum` reads any other rank's buffers */
        co_populate(rank->regions->leaf_buffer[s],
                    (size_t)rank->regions->n_buffers * plan->layout->dense * sizeof(float));
    for (int i = 0; i < plan->arena.n; i++) {
        char *at = co_arena_at(&plan->arena, plan->arena.region[i].offset);
        if (at == (char *)rank->work || at == rank->regions->input[slot] ||
            at == (char *)rank->regions->journal[slot] || at == (char *)rank->regions->scratch[slot] ||
            at == (char *)rank->regions->row_scratch[slot] || at == rank->regions->at_once[slot] ||
            at == rank->regions->eval_input[slot])
            co_populate(at, plan->arena.region[i].bytes);
    }
}

int rank_main(const struct run *run, int slot, uint32_t inc)
{
    struct rank rank;

    co_fpu_init();
    co_record_crashes(&run->regions->slots[slot].record);
    if (inc == 0)
        co_order_touch(run->plan->order); /* before the loader's threads use it */
    if (rank_open(&rank, run->plan, run->regions, slot, inc, run->bell) != CO_OK) {
        fprintf(stderr, "rank %d: %s\n", slot, co_errmsg());
        return 1;
    }
    if (run->hosts)
        rank.spoil_from = run->hosts->spoil_from;
    if (inc == 0)
        populate(&rank);
    rank_loop(&rank);
    atomic_store(&rank.me->anon_bytes, co_memory_private());
    return 0;
}
