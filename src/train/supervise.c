/* supervise.c -- the supervisor: the process that the user started, from opening the arena to the summary.
 *
 * The supervisor trains nothing. It watches the ranks, reads the results that they publish, scores translations,
 * starts savers, answers signals, and saves the last state. A step waits for it only when it is thousands of
 * results behind, or when the step writes where earlier results are that it has not read (supervisor_has_read).
 */
#include "train/super_int.h"

#include <math.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/maths.h"
#include "train/hosts_int.h"
#include "train/remedy_int.h"

/* --- before --------------------------------------------------------------------------------------------- */
static co_err open_memory(struct supervisor *super)
{
    struct results *results = &super->results;
    co_plan *plan = super->run.plan;

    CO_TRY(open_state(plan));
    super->run.regions = plan->regions;
    results->seen = plan->monitors.start;
    recall_results(super);
    if (test_wants_best(plan))
        atomic_store(&super->run.regions->ctl->test_of, TEST_UNDECIDED);
    results->step_ms = co_array(STEPS_KEPT, sizeof *results->step_ms);
    results->sum_ms = co_array(STEPS_KEPT, sizeof *results->sum_ms);
    super->accidents.recovery_ms = co_array(KILLS_KEPT, sizeof *super->accidents.recovery_ms);
    super->bad.named = co_array((plan->data->count[CO_SPLIT_TRAIN] + 63) / 64, sizeof *super->bad.named);
    return results->step_ms && results->sum_ms && super->accidents.recovery_ms && super->bad.named ? CO_OK
                                                                                                   : CO_ENOMEM;
}

static void close_memory(struct supervisor *super)
{
    co_free(super->results.step_ms);
    co_free(super->results.sum_ms);
    co_free(super->accidents.recovery_ms);
    co_free(super->bad.named);
}

static const co_record *record_of(void *super, int slot)
{
    return &((struct supervisor *)super)->run.regions->slots[slot].record;
}

static int start_rank(void *super, int slot, uint32_t inc)
{
    return rank_main(&((struct supervisor *)super)->run, slot, inc);
}

static uint64_t turns(void *super, int slot)
{
    const co_record *record = record_of(super, slot);

    return atomic_load_explicit(&record->turns, memory_order_relaxed) * 4096 +
           atomic_load_explicit(&record->call, memory_order_relaxed);
}

static bool waiting(void *super, int slot)
{
    uint32_t phase = atomic_load_explicit(&record_of(super, slot)->phase, memory_order_relaxed);

    return phase == CO_PHASE_WAIT || phase == CO_PHASE_SNAPSHOT;
}

static void notice(void *super, int slot, const char *text)
{
    (void)slot;
    run_notice(&((struct supervisor *)super)->run, text);
}

static co_err start_crew(struct supervisor *super)
{
    const co_plan *plan = super->run.plan;
    co_crew_spec spec = {.size = plan->ranks,
                         .ctx = super,
                         .main = start_rank,
                         .turns = turns,
                         .waiting = waiting,
                         .died = rank_died,
                         .notice = notice,
                         .stall_s = plan->cfg.stall_s,
                         .log_dir = plan->spec.log_dir,
                         .pin = plan->cfg.pin && plan->ranks * plan->threads <= co_cpus_usable(),
                         .cpus_each = plan->threads,
                         .keep = plan->data->fds};

    co_fds_add(&spec.keep, super->run.bell);
    if (super->run.hosts)
        co_fds_add(&spec.keep, super->run.regions->ctl->event.fd);
    return co_crew_start(&super->crew, &spec);
}

/* --- during --------------------------------------------------------------------------------------------- */
static void check_max_time(const struct run *run)
{
    control *ctl = run->regions->ctl;
    uint64_t most = run->plan->max_time_ns;

    if (!most || atomic_load(&ctl->time_is_up) || co_now_ns() - run->began_ns < most)
        return;
    atomic_store(&ctl->time_is_up, 1);
    run_notice(run, "trainer.max_time is over: finishing this step, then closing the run");
}

/* All ranks that are left have done their work and only have to exit. */
static bool all_at_the_end(struct supervisor *super)
{
    for (int slot = 0; slot < super->run.plan->ranks; slot++)
        if (co_crew_pid(super->crew, slot) &&
            atomic_load_explicit(&record_of(super, slot)->phase, memory_order_relaxed) != CO_PHASE_END)
            return false;
    return true;
}

/* If a killed rank does not exit, the run ends. If its work was done, the run only leaves it behind:
 * CO_ESTOP. */
static co_err crew_turn(struct supervisor *super, struct pollfd *fds, int n)
{
    co_err err = co_crew_turn(super->crew, accidents_timeout_ms(&super->accidents), fds, n);
    if (err != CO_EFAIL)
        return err;
    trouble held = {.hosts = super->run.regions->deal->hosts, .held = true, .done = all_at_the_end(super)};
    if (remedy_for(&held) != REMEDY_LET_GO)
        return err;
    run_notice(&super->run, co_errmsg());
    co_errclear();
    return CO_ESTOP;
}

static co_err watch_over(struct supervisor *super)
{
    const struct run *run = &super->run;

    while (co_crew_alive(super->crew) > 0 && !super->stop.at_once) {
        struct pollfd fds[4 + HOSTS_FDS] = {
            {.fd = super->stop.signals, .events = POLLIN},
            {.fd = run->bell, .events = POLLIN},
            {.fd = super->saver.child.pid ? super->saver.child.pidfd : -1, .events = POLLIN},
            {.fd = super->reader.child.pid ? super->reader.child.pidfd : -1, .events = POLLIN}};
        uint64_t rings;
        int before = run->out->recoveries;
        hosts_fds(&super->hosts, fds + 4);
        co_err err = crew_turn(super, fds, run->hosts ? 4 + HOSTS_FDS : 4);
        if (!err)
            err = hosts_turn(super);
        if (err)
            return err == CO_ESTOP ? CO_OK : err;
        if (run->out->recoveries != before)
            co_event_ring(&run->regions->ctl->event); /* the dead rank may not have */
        if ((fds[1].revents & POLLIN) && read(run->bell, &rings, sizeof rings) < 0)
            return co_fail(CO_EFAIL, "read the bell: %m");
        stop_turn(run, &super->stop);
        check_max_time(run);
        saver_turn(&super->saver);
        consume_results(super);
        choose_test(super);
        report_evaluation(run, &super->evaluation);
        accidents_turn(&super->accidents, super->crew, super->saver.child.pid);
        tell_rank_times(super);
        if (run->hooks->turn && (super->lost = run->hooks->turn(run->hooks->ctx)) != CO_OK)
            return super->lost;
    }
    return CO_OK;
}

/* --- after ---------------------------------------------------------------------------------------------- */
static size_t private_memory(const struct run *run)
{
    size_t sum = co_memory_private() + run->plan->data->shared_bytes;

    for (int i = 0; i < run->plan->ranks; i++)
        sum += atomic_load(&run->regions->slots[i].anon_bytes);
    return sum;
}

/* No chunk of the open step was touched: the state is wholly that of the step before. */
static bool state_is_whole(const struct run *run)
{
    uint32_t open = pc_unit(atomic_load(&run->regions->ctl->pc));

    if (run->hosts && !atomic_load(&run->regions->ctl->host.whole))
        return false; /* a newcomer that was not given all of it */
    for (size_t c = 0; c < run->plan->chunks + run->plan->rows.pieces; c++)
        if ((uint32_t)(atomic_load(&run->regions->apply_claim[c].word) >> 32) >= open)
            return false;
    return true;
}

static double seconds(struct timeval a, struct timeval b)
{
    return (double)(a.tv_sec + b.tv_sec) + 1e-6 * (double)(a.tv_usec + b.tv_usec);
}

static void close_books(struct supervisor *super)
{
    const struct run *run = &super->run;
    co_train_summary *out = run->out;
    struct rusage mine, kids;

    consume_results(super);
    results_close(super);
    out->epochs = out->steps / run->plan->units.steps_per_epoch;
    out->wall_s = (double)(co_now_ns() - run->began_ns) * 1e-9;
    getrusage(RUSAGE_SELF, &mine);
    getrusage(RUSAGE_CHILDREN, &kids);
    out->cpu_user_s = seconds(mine.ru_utime, kids.ru_utime);
    out->cpu_sys_s = seconds(mine.ru_stime, kids.ru_stime);
    out->supervisor_cpu_s = seconds(mine.ru_utime, mine.ru_stime);
    out->peak_memory_bytes = co_arena_used(&run->plan->arena) + private_memory(run);
    for (int i = 0; i < run->plan->ranks; i++) {
        uint64_t allocs = atomic_load(&run->regions->slots[i].allocs);
        uint64_t faults = atomic_load(&run->regions->slots[i].faults);
        out->steady_allocs = allocs > out->steady_allocs ? allocs : out->steady_allocs;
        out->steady_faults = faults > out->steady_faults ? faults : out->steady_faults;
    }
    hosts_close_books(super);
}

/* A unit ended the run: which, and why. */
static void blame_unit(struct supervisor *super, uint64_t pc)
{
    const struct run *run = &super->run;
    uint32_t n = pc_unit(pc) - 1;
    unit failed = unit_now(run->plan, run->regions->ctl, n);
    const result *published = &run->regions->ctl->ring[n % RING];
    uint64_t bad = atomic_load(&published->bad);

    if (bad == UINT64_MAX || (bad && (failed.kind != UNIT_TRAIN || run->plan->data->stop_on_bad)))
        blame_bad_samples(run, &super->bad, &failed, bad);
    else
        blame_not_finite(run, failed.step, (int)atomic_load(&published->slice) - 1);
}

/* A run that was done and applied nothing has failed. */
static void check_applied(const struct run *run)
{
    co_train_summary *out = run->out;

    if (out->status != CO_STATUS_DONE || out->steps <= run->plan->start.step ||
        atomic_load(&run->regions->ctl->applied[out->steps & 1]) != 0)
        return;
    out->status = CO_STATUS_FAILED;
    snprintf(out->blame, sizeof out->blame,
             "no step could be applied: none of them had a sample that counts and a gradient that is "
             "finite; the weights are those of the beginning");
}

/* Asked twice to stop: the state is given up, and the run stands where its last checkpoint stands. */
static co_err leave_at_once(struct supervisor *super)
{
    const co_plan *plan = super->run.plan;
    co_train_summary *out = super->run.out;
    bool saved = super->saver.saved_step >= 0;

    out->steps = saved               ? super->saver.saved_step
                 : plan->spec.resume ? plan->start.step
                                     : steps_done(&super->run);
    out->samples = samples_until(plan, out->steps);
    if (!saved && plan->spec.resume && plan->spec.ckpt_root)
        snprintf(out->saved, sizeof out->saved, "%s", plan->spec.resume);
    close_books(super);
    if (out->saved[0]) {
        char text[1200];
        snprintf(text, sizeof text, "left at once: the checkpoint of step %lld stands, %s",
                 (long long)out->steps, out->saved);
        run_notice(&super->run, text);
        out->status = CO_STATUS_STOPPED;
        return CO_OK;
    }
    out->status = CO_STATUS_FAILED;
    snprintf(out->blame, sizeof out->blame,
             "left at once, before the first checkpoint: there is nothing to continue");
    return co_fail(CO_EFAIL, "%s", out->blame);
}

static co_err conclude(struct supervisor *super, co_err err)
{
    const struct run *run = &super->run;
    co_train_summary *out = run->out;

    if (err && !out->blame[0])
        snprintf(out->blame, sizeof out->blame, "%s", co_errmsg());
    co_crew_free(super->crew);
    super->crew = NULL;
    super->results.end_cpu_s = run_cpu_s(super);
    uint64_t pc = atomic_load(&run->regions->ctl->pc); /* the ranks are gone: it does not change any more */
    end_reader(&super->reader);
    saver_turn(&super->saver);
    consume_results(super); /* starts the saver that was requested just before the end */
    saver_finish(&super->saver, &super->stop, super->lost != CO_OK || super->hosts.wrong);
    if (super->stop.at_once && !err && !(pc & PC_FAIL))
        return leave_at_once(super);
    out->status = err || (pc & PC_FAIL) ? CO_STATUS_FAILED : pc & PC_END ? CO_STATUS_DONE : CO_STATUS_STOPPED;
    if (pc & PC_FAIL)
        blame_unit(super, pc);
    out->steps = steps_done(run);
    out->early = pc & PC_CUT;
    check_applied(run);
    bool whole = state_is_whole(run) && !super->lost && !super->hosts.wrong;
    bool keeps = whole && (hosts_writes(super) || hosts_were_left(super));
    co_err kept = keeps ? save_last(&super->saver, &super->stop, out->steps) : CO_OK;
    hosts_stay(super, kept == CO_OK && keeps);
    if (kept && super->stop.at_once && out->status != CO_STATUS_FAILED)
        return leave_at_once(super);
    out->samples = samples_until(run->plan, out->steps);
    if (whole)
        CO_TRY(co_layout_sha256(run->plan->layout, run->regions->state, out->weights_sha256));
    close_books(super);
    if (out->status == CO_STATUS_FAILED) /* CO_EINPUT: the other hosts refused this one */
        return co_fail(err == CO_EINPUT ? err : CO_EFAIL, "%s", out->blame);
    if (kept) {
        out->status = CO_STATUS_FAILED;
        snprintf(out->blame, sizeof out->blame, "the last state could not be saved: %s", co_errmsg());
        return CO_EFAIL;
    }
    return CO_OK;
}

/* --- together ------------------------------------------------------------------------------------------- */
static co_train_summary nothing_yet(const co_plan *plan)
{
    return (co_train_summary){.val_loss = NAN,
                              .val_metric = NAN,
                              .test_loss = NAN,
                              .test_metric = NAN,
                              .best = NAN,
                              .val_top5 = NAN,
                              .test_top5 = NAN,
                              .monitor = monitor_name(plan, plan->monitors.best),
                              .loss = NAN,
                              .train_metric = NAN,
                              .status = CO_STATUS_FAILED};
}

/* Files of the data that change during the run, or between two parts of it, are noticed. */
static co_err remember_data(const co_plan *plan)
{
    char path[4200];

    if (!plan->data->remember || !plan->spec.log_dir)
        return CO_OK;
    snprintf(path, sizeof path, "%.4096s/data-seen.bin", plan->spec.log_dir);
    if (!plan->spec.resume)
        unlink(path); /* of another run in this folder */
    return plan->data->remember(plan->data, path);
}

static co_err open_run(struct supervisor *super)
{
    co_fpu_init();
    CO_TRY(remember_data(super->run.plan));
    CO_TRY(open_memory(super));
    CO_TRY(co_signals_open(&super->stop.signals));
    super->run.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return super->run.bell < 0 ? co_fail(CO_EIO, "eventfd: %m") : hosts_open(super);
}

static void close_run(struct supervisor *super)
{
    hosts_close(super);
    if (super->stop.signals >= 0)
        close(super->stop.signals);
    if (super->run.bell >= 0)
        close(super->run.bell);
    close_memory(super);
}

co_err co_train_run(co_plan *plan, const co_train_hooks *hooks, co_train_summary *out)
{
    return co_train_run_over(plan, NULL, hooks, out);
}

co_err co_train_run_over(co_plan *plan, const co_train_hosts *hosts, const co_train_hooks *hooks,
                         co_train_summary *out)
{
    struct supervisor *super = co_zalloc(sizeof *super);

    CO_ASSERT(!hosts || plan->hosts > 1, "a run over hosts has a plan for several");
    *out = nothing_yet(plan);
    if (!super)
        return CO_ENOMEM;
    *super = (struct supervisor){
        .run = {.plan = plan, .hosts = hosts, .hooks = hooks, .out = out, .bell = -1, .began_ns = co_now_ns()},
        .hosts = {.socket = -1, .roster_fd = -1},
        .stop = {.signals = -1},
        .saver = {.run = &super->run, .saved_step = -1},
        .accidents = {
            .run = &super->run, .kills_left = plan->cfg.fault_kills, .rng = (uint64_t)plan->cfg.fault_seed}};
    co_death_traces_take(&super->deaths.traces, "");
    co_err err = open_run(super);
    if (!err)
        err = start_crew(super);
    if (!err) {
        if (hooks->started)
            hooks->started(hooks->ctx, (double)(co_now_ns() - super->run.began_ns) * 1e-6);
        err = conclude(super, watch_over(super));
    }
    close_run(super);
    co_free(super);
    return err;
}
