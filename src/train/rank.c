/* rank.c -- a rank's life: units one after another until the pc says otherwise.
 *
 * Every phase asks the shared marks what is still to do. So there is no special path for recovery: a rank that starts in
 * the middle of a unit walks through it like any other and finds its work done, torn or waiting.
 */
#include "train/train_int.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/maths.h"

enum { WARM_UNITS = 50, SPIN = 4000 };

void rank_phase(rank *k, co_phase phase, uint32_t item)
{
    co_record_phase(&k->me->record, phase, k->who.unit, item);
}

void wait_for(rank *k, bool (*done)(rank *k, int64_t arg), int64_t arg, co_phase phase)
{
    co_event *ev = &k->r->ctl->event;
    bool told = false;

    for (;;) {
        uint32_t seen = co_event_now(ev);
        if (done(k, arg))
            return;
        if (!told)
            rank_phase(k, phase, 0);
        told = true;
        co_event_wait(ev, seen, k->who.slot, k->spin);
    }
}

/* --- the end of a unit --------------------------------------------------------------------------------------------- */
static void publish(rank *k, const unit *u, const decision *d)
{
    result *r = &k->r->ctl->ring[k->who.unit % RING];

    /* Every rank writes the same numbers (but for the clock): whoever comes first, nobody is waited for. */
    atomic_store_explicit(&r->loss, bits_of(d->loss), memory_order_relaxed);
    atomic_store_explicit(&r->metric, bits_of(d->metric), memory_order_relaxed);
    atomic_store_explicit(&r->norm, bits_of(d->norm), memory_order_relaxed);
    atomic_store_explicit(&r->lr, bits_of(d->lr), memory_order_relaxed);
    atomic_store_explicit(&r->count, (uint64_t)d->count, memory_order_relaxed);
    atomic_store_explicit(&r->applied, (uint64_t)d->t, memory_order_relaxed);
    atomic_store_explicit(&r->skipped, u->kind == UNIT_TRAIN && !d->apply, memory_order_relaxed);
    atomic_store_explicit(&r->t_ns, co_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&r->sum_apply_ns, k->sum_apply_ns, memory_order_relaxed);
    atomic_store_explicit(&r->top5, bits_of(d->top5), memory_order_relaxed);
    atomic_store_explicit(&r->bad, d->bad < 0 ? UINT64_MAX : (uint64_t)d->bad, memory_order_relaxed);
    atomic_store_explicit(&r->slice, (uint64_t)(d->slice + 1), memory_order_relaxed);
    atomic_store_explicit(&r->unit, k->who.unit, memory_order_release);
}

static bool supervisor_keeps_up(rank *k, int64_t unused)
{
    (void)unused;
    /* Below zero in a rank so slow that the others, and the supervisor, are units ahead of it. */
    int64_t behind =
        (int64_t)k->who.unit - (int64_t)atomic_load_explicit(&k->r->ctl->consumed, memory_order_acquire);

    if (behind >= RING / 2 && k->bell >= 0 && write(k->bell, &(uint64_t){1}, 8) < 0)
        return behind < RING - 4;
    return behind < RING - 4;
}

static bool snapshot_is_free(rank *k, int64_t unused)
{
    (void)unused;
    return !(atomic_load_explicit(&k->r->ctl->snap, memory_order_acquire) & 1);
}

static bool free_or_moved_on(rank *k, int64_t unused)
{
    return atomic_load_explicit(&k->r->ctl->pc, memory_order_acquire) != k->pc ||
           snapshot_is_free(k, unused) || atomic_load_explicit(&k->r->ctl->stop_request, memory_order_relaxed);
}

/* Was the last save so long ago that another takes no more than a tenth of the time? */
static bool worth_it(const control *ctl)
{
    return co_now_ns() - atomic_load(&ctl->snap_at_ns) >= 10 * atomic_load(&ctl->save_ns);
}

/* Is the state after this step to be saved? Steps by count are exact and worth waiting for, a new best unless saving would
 * take most of the time; other epochs go by the clock. Asked at the last unit that looks at the state, so that the
 * checkpoint knows how good it is. */
static bool save_due(rank *k, const unit *u, const watch *w)
{
    const co_plan *p = k->p;
    control *ctl = k->r->ctl;
    int64_t step = u->step, every = p->cfg.ckpt_every_epochs * p->sched.steps_per_epoch;
    bool evaluated_next = p->sched.block && step % p->sched.block == 0 && u->kind == UNIT_TRAIN;
    bool by_steps = p->cfg.ckpt_every_steps && step % p->cfg.ckpt_every_steps == 0;
    bool by_epochs = !p->cfg.ckpt_every_steps && every && step % every == 0;
    bool best = u->kind == UNIT_VAL && w->best_step == step && p->cfg.ckpt_top != 0;

    if (!p->spec.ckpt_root || step == p->sched.steps || evaluated_next)
        return false;
    if (by_steps || (by_epochs && best && worth_it(ctl))) {
        wait_for(k, free_or_moved_on, 0, CO_PHASE_SNAPSHOT);
        return snapshot_is_free(k, 0); /* if not: moved on, or asked to stop */
    }
    if (!by_epochs || !snapshot_is_free(k, 0))
        return false;
    double since = (double)(co_now_ns() - atomic_load(&ctl->snap_at_ns)) * 1e-9;
    return since >= p->cfg.ckpt_min_interval_s;
}

static bool long_enough(const co_plan *p, int64_t step)
{
    return step >= p->cfg.min_steps && step >= p->cfg.min_epochs * p->sched.steps_per_epoch;
}

/* Is this state the last to be trained? */
static bool cut_here(const rank *k, const unit *u, const watch *w)
{
    const control *ctl = k->r->ctl;
    bool wanted = u->kind == UNIT_VAL     ? w->why != GO_ON
                  : u->kind == UNIT_TRAIN ? atomic_load_explicit(&ctl->time_is_up, memory_order_relaxed)
                                          : false;

    return wanted && long_enough(k->p, u->step);
}

/* The flags of the next unit: how the run goes on after this one. */
static uint64_t go_on(rank *k, const unit *u, const decision *d, const watch *w)
{
    control *ctl = k->r->ctl;
    uint64_t cut = k->pc & PC_CUT;
    schedule s = schedule_now(k->p, ctl);
    uint32_t next = k->who.unit + 1;

    bool unreadable = u->kind == UNIT_TRAIN ? must_stop(k->p, d->bad) : must_stop_eval(k->p, d->bad, d->count);
    if (unreadable)
        return cut | PC_FAIL;
    if (u->kind == UNIT_TRAIN && !d->finite && k->p->cfg.on_nan == CO_ON_NAN_STOP)
        return cut | PC_FAIL;
    if (!cut && cut_here(k, u, w)) {
        cut = PC_CUT;
        s = schedule_cut(&k->p->sched, next);
    }
    if (next > s.last_unit)
        return cut | PC_END;
    if (atomic_load_explicit(&ctl->stop_request, memory_order_relaxed))
        return cut | PC_STOP;
    if (!cut && u->kind != UNIT_TEST && atomic_load(&ctl->pc) == k->pc && save_due(k, u, w))
        return PC_SNAP;
    return cut;
}

static void advance(rank *k, const unit *u, const decision *d, const watch *w)
{
    control *ctl = k->r->ctl;
    uint64_t seen = k->pc;

    fault_point(k, CO_FAULT_NONE);
    if (u->kind == UNIT_TRAIN)
        atomic_store_explicit(&ctl->applied[u->step & 1], d->t, memory_order_relaxed);
    publish(k, u, d);
    wait_for(k, supervisor_keeps_up, 0, CO_PHASE_WAIT);
    uint64_t next = ((uint64_t)k->who.unit + 1) << 8 | go_on(k, u, d, w);
    fault_point(k, CO_FAULT_NONE);
    if (atomic_compare_exchange_strong_explicit(&ctl->pc, &seen, next, memory_order_acq_rel,
                                                memory_order_acquire))
        co_event_ring(&ctl->event);
}

/* --- the beginning of a unit ----------------------------------------------------------------------------------------- */
/* The pc asks for a checkpoint of the state before this unit: say so before anybody can change it. */
static void announce_snapshot(rank *k, const unit *u)
{
    control *ctl = k->r->ctl;
    uint64_t old = atomic_load_explicit(&ctl->snap, memory_order_acquire);
    int64_t step = u->kind == UNIT_TRAIN ? u->step - 1 : u->step;

    if (old >> 1 >= k->who.unit)
        return; /* another rank did, or it is already saved */
    atomic_store(&ctl->snap_applied, atomic_load(&ctl->applied[step & 1]));
    if (k->p->sched.block) {
        int64_t evals = evals_before(&k->p->sched, step);
        for (int after = 0; after < 2; after++) {
            watch w = watch_get(ctl->watch[(evals + after) & 1]);
            watch_put(ctl->snap_watch[after], &w);
        }
    }
    atomic_store(&ctl->snap_at_ns, co_now_ns());
    fault_point(k, CO_FAULT_NONE);
    if (atomic_compare_exchange_strong(&ctl->snap, &old, (uint64_t)k->who.unit << 1 | 1) && k->bell >= 0 &&
        write(k->bell, &(uint64_t){1}, 8) < 0)
        return; /* the supervisor looks by itself, a little later */
}

static void count_steady(rank *k)
{
    struct rusage u;

    if (k->units_done++ % 8 != 0 || k->units_done < WARM_UNITS)
        return;
    getrusage(RUSAGE_SELF, &u);
    uint64_t allocs = co_alloc_count(), faults = (uint64_t)(u.ru_minflt + u.ru_majflt);
    if (k->base_allocs == 0) {
        k->base_allocs = allocs;
        k->base_faults = faults;
    }
    atomic_store_explicit(&k->me->allocs, allocs - k->base_allocs, memory_order_relaxed);
    atomic_store_explicit(&k->me->faults, faults - k->base_faults, memory_order_relaxed);
}

/* Time that went into data, for the supervisor to tell. */
static void count_data(rank *k)
{
    co_fill_times t = co_loader_times(k->loader);

    atomic_store_explicit(&k->me->wait_ns, k->waited_ns + co_loader_wait_ns(k->loader), memory_order_relaxed);
    atomic_store_explicit(&k->me->read_ns, t.read_ns, memory_order_relaxed);
    atomic_store_explicit(&k->me->decode_ns, t.decode_ns, memory_order_relaxed);
    atomic_store_explicit(&k->me->augment_ns, t.augment_ns, memory_order_relaxed);
}

static void train_unit(rank *k, const unit *u)
{
    decision d;

    leaves(k, u->step);
    uint64_t t0 = co_now_ns();
    sum_chunks(k, u->step);
    k->phase_ns = co_now_ns() - t0;
    decide(k, u->step, &d);
    if (d.apply)
        apply_chunks(k, u->step, &d);
    k->sum_apply_ns = co_now_ns() - t0;
    count_data(k);
    advance(k, u, &d, NULL);
}

static void eval_unit(rank *k, const unit *u)
{
    co_split split = u->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST;
    control *ctl = k->r->ctl;
    double total[LEAF_STATS];
    watch w = {0};

    evaluate_items(k, split);
    fault_point(k, CO_FAULT_NONE);
    eval_total(k->p, k->r->eval_stat[split], split, total);
    if (u->kind == UNIT_VAL) {
        int64_t evals = evals_before(&k->p->sched, u->step);
        w = watch_get(ctl->watch[evals & 1]);
        watch_see(k->p, total, u->step, &w);
        watch_put(ctl->watch[(evals + 1) & 1], &w);
    }
    advance(k, u,
            &(decision){.loss = total[CO_STAT_LOSS] / total[CO_STAT_COUNT],
                        .metric = total[CO_STAT_METRIC] / total[CO_STAT_COUNT],
                        .top5 = total[CO_STAT_TOP5] / total[CO_STAT_COUNT],
                        .count = total[CO_STAT_COUNT],
                        .bad = total[STAT_BAD],
                        .finite = true,
                        .slice = -1,
                        .t = atomic_load(&ctl->applied[u->step & 1])},
            &w);
}

void rank_loop(rank *k)
{
    for (;;) {
        k->pc = atomic_load_explicit(&k->r->ctl->pc, memory_order_acquire);
        if (k->pc & (PC_STOP | PC_END | PC_FAIL))
            break;
        k->who.unit = (uint32_t)(k->pc >> 8);
        if (k->pc & PC_CUT) /* remembered before anybody can go on to the next unit */
            atomic_compare_exchange_strong(&k->r->ctl->cut, &(uint64_t){0}, k->who.unit);
        unit u = unit_now(k->p, k->r->ctl, k->who.unit);
        if (k->pc & PC_SNAP)
            announce_snapshot(k, &u);
        count_steady(k);
        if (u.kind == UNIT_TRAIN)
            train_unit(k, &u);
        else
            eval_unit(k, &u);
    }
    rank_phase(k, CO_PHASE_END, 0);
}

/* --- opening and closing ---------------------------------------------------------------------------------------------- */
co_err rank_open(rank *k, co_plan *p, regions *r, int slot, uint32_t inc, int bell)
{
    size_t train = p->train.work_bytes, eval = p->eval.work_bytes;

    *k = (rank){
        .p = p, .r = r, .me = &r->slots[slot], .who = {.slot = (uint32_t)slot, .inc = inc}, .bell = bell};
    k->spin = p->ranks <= co_cpus_usable() ? SPIN : 0;
    k->who.unit = (uint32_t)(atomic_load(&r->ctl->pc) >> 8);
    k->work_bytes = train > eval ? train : eval;
    k->work = r->work[slot];
    k->waited_ns = atomic_load(&k->me->wait_ns);
    co_record_begin(&k->me->record);
    if (p->kernels->space) {
        void *mem;
        CO_TRY(p->kernels->space->open(&mem, k->work_bytes));
        k->work = mem;
    }
    return jobs_start(k);
}

void rank_close(rank *k)
{
    co_loader_stop(k->loader);
    co_free(k->jobs);
    if (k->p->kernels->space)
        k->p->kernels->space->close(k->work, k->work_bytes);
}

/* Pages that the step path touches, so that it takes no fault later. A successor leaves that to its first step. */
static void populate(const rank *k)
{
    const co_plan *p = k->p;
    int slot = (int)k->who.slot;

    co_touch_stack(32 << 10); /* as deep as any path goes */
    co_populate_code();
    co_populate(p->arena.base, (size_t)((char *)k->r->leaf_buffer[0] - p->arena.base));
    for (int s = 0; s < p->ranks; s++) /* the others' are read in `sum`; which, is a matter of timing */
        co_populate(k->r->leaf_buffer[s], (size_t)k->r->n_buffers * p->layout->leaf_count * sizeof(float));
    for (int i = 0; i < p->arena.n; i++) {
        char *at = co_arena_at(&p->arena, p->arena.region[i].offset);
        if (at == (char *)k->work || at == k->r->input[slot] || at == (char *)k->r->journal[slot] ||
            at == (char *)k->r->scratch[slot] || at == k->r->eval_input[slot])
            co_populate(at, p->arena.region[i].bytes);
    }
}

int rank_main(void *run, int slot, uint32_t inc)
{
    const struct team *t = run;
    rank k;

    co_fpu_init();
    co_record_crashes(&t->r->slots[slot].record);
    if (inc == 0)
        co_order_touch(t->p->order); /* before the loader's threads use it */
    if (rank_open(&k, t->p, t->r, slot, inc, t->bell) != CO_OK) {
        fprintf(stderr, "rank %d: %s\n", slot, co_errmsg());
        return 1;
    }
    if (inc == 0)
        populate(&k);
    rank_loop(&k);
    atomic_store(&k.me->anon_bytes, co_memory_private());
    rank_close(&k);
    return 0;
}
