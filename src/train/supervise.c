/* supervise.c -- the run from the arena to the summary, seen from the process that the user started.
 *
 * The supervisor computes nothing. It watches the ranks, reads what they publish, starts savers, answers signals, and
 * puts the state away at the end. Nothing here is on the path of a step.
 */
#include "train/train_int.h"

#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/maths.h"

/* --- before ------------------------------------------------------------------------------------------------------- */
co_err first_state(const co_plan *p, float *state)
{
    co_layout_initialise(p->layout, state, (uint64_t)p->cfg.seed);
    return p->cfg.weights ? co_weights_load(p->cfg.weights, p->layout, p->cfg.weights_skip, state) : CO_OK;
}

co_err open_state(co_plan *p)
{
    CO_TRY(co_arena_open(&p->arena));
    p->at = co_zalloc(sizeof *p->at);
    if (!p->at)
        return CO_ENOMEM;
    regions_bind(p, p->at);
    regions *r = p->at;
    control *ctl = r->ctl;
    if (p->spec.resume)
        CO_TRY(co_ckpt_load(p->spec.resume, p->layout, r->state, p->moments, p->moment_name, r->moment,
                            NULL)); /* its meta was read for the plan */
    else
        CO_TRY(first_state(p, r->state));
    atomic_store(&ctl->applied[p->start.step & 1], p->start.applied);
    if (p->sched.block)
        watch_put(ctl->watch[evals_before(&p->sched, p->start.step) & 1], &p->watch);
    atomic_store(&ctl->consumed, p->sched.first_unit - 1);
    bool nothing_left = p->sched.first_unit > p->sched.last_unit;
    atomic_store(&ctl->pc, (uint64_t)p->sched.first_unit << 8 | (nothing_left ? PC_END : 0));
    return CO_OK;
}

static co_err open_memory(super *s)
{
    CO_TRY(open_state(s->p));
    s->r = s->p->at;
    s->saved_step = -1;
    s->step_ms = co_array(STEPS_KEPT, sizeof *s->step_ms);
    s->sum_ms = co_array(STEPS_KEPT, sizeof *s->sum_ms);
    s->recovery_ms = co_array(KILLS_KEPT, sizeof *s->recovery_ms);
    s->known_bad = co_array((s->p->data->count[CO_SPLIT_TRAIN] + 63) / 64, sizeof *s->known_bad);
    s->watch = s->p->watch;
    return s->step_ms && s->sum_ms && s->recovery_ms && s->known_bad ? CO_OK : CO_ENOMEM;
}

static uint64_t turns(void *ctx, int slot)
{
    const co_record *r = &((super *)ctx)->r->slots[slot].record;

    return atomic_load_explicit(&r->turns, memory_order_relaxed) * 4096 +
           atomic_load_explicit(&r->call, memory_order_relaxed);
}

static bool waiting(void *ctx, int slot)
{
    uint32_t phase = atomic_load_explicit(&((super *)ctx)->r->slots[slot].record.phase, memory_order_relaxed);

    return phase == CO_PHASE_WAIT || phase == CO_PHASE_SNAPSHOT || phase == CO_PHASE_END;
}

static void notice(void *ctx, int slot, const char *text)
{
    super *s = ctx;

    (void)slot;
    if (s->hooks->notice)
        s->hooks->notice(s->hooks->ctx, text);
}

static co_err start_crew(super *s)
{
    co_plan *p = s->p;

    s->team = (struct team){p, s->r, s->bell};
    return co_crew_start(&s->crew, &(co_crew_spec){.size = p->ranks,
                                                   .ctx = s,
                                                   .main = rank_main,
                                                   .turns = turns,
                                                   .waiting = waiting,
                                                   .died = rank_died,
                                                   .notice = notice,
                                                   .stall_s = p->cfg.stall_s,
                                                   .log_dir = p->spec.log_dir,
                                                   .pin = p->cfg.pin && p->ranks <= co_cpus_usable()});
}

/* --- during ------------------------------------------------------------------------------------------------------- */
static void answer_signals(super *s)
{
    int sig;

    while ((sig = co_signals_next(s->signals)) != 0) {
        if (atomic_load(&s->r->ctl->stop_request) && s->saver) {
            s->saver_tries = SAVE_TRIES; /* asked twice: a saver that hangs is given up */
            kill(s->saver, SIGKILL);
        }
        atomic_store(&s->r->ctl->stop_request, 1);
        if (s->hooks->notice)
            s->hooks->notice(s->hooks->ctx, "asked to stop: finishing this step, then saving");
    }
}

static void look_at_the_clock(super *s)
{
    uint64_t most = s->p->max_time_ns;

    if (!most || atomic_load(&s->r->ctl->time_is_up) || co_now_ns() - s->began_ns < most)
        return;
    atomic_store(&s->r->ctl->time_is_up, 1);
    if (s->hooks->notice)
        s->hooks->notice(s->hooks->ctx,
                         "trainer.max_time is over: finishing this step, then closing the run");
}

static co_err watch_over(super *s)
{
    while (co_crew_alive(s->crew) > 0) {
        struct pollfd fds[3] = {{.fd = s->signals, .events = POLLIN},
                                {.fd = s->bell, .events = POLLIN},
                                {.fd = s->saver ? s->saver_fd : -1, .events = POLLIN}};
        uint64_t rings;
        int before = s->out->recoveries;
        CO_TRY(co_crew_turn(s->crew, accident_timeout_ms(s), fds, 3));
        if (s->out->recoveries != before)
            co_event_ring(&s->r->ctl->event); /* the dead may not have */
        if ((fds[1].revents & POLLIN) && read(s->bell, &rings, sizeof rings) < 0)
            return co_fail(CO_EFAIL, "read the bell: %m");
        answer_signals(s);
        look_at_the_clock(s);
        consume_results(s);
        snapshots(s);
        accidents(s);
        if (s->hooks->turn && (s->lost = s->hooks->turn(s->hooks->ctx)) != CO_OK)
            return s->lost;
    }
    return CO_OK;
}

/* --- after -------------------------------------------------------------------------------------------------------- */
static size_t private_memory(const super *s)
{
    size_t sum = co_memory_private() + s->p->data->shared_bytes;

    for (int i = 0; i < s->p->ranks; i++)
        sum += atomic_load(&s->r->slots[i].anon_bytes);
    return sum;
}

/* No chunk of the open step was touched: the state is wholly that of the step before. */
static bool state_is_whole(const super *s)
{
    uint32_t open = (uint32_t)(atomic_load(&s->r->ctl->pc) >> 8);

    for (size_t c = 0; c < s->p->chunks; c++)
        if ((uint32_t)(atomic_load(&s->r->apply_claim[c].word) >> 32) >= open)
            return false;
    return true;
}

static void close_books(super *s)
{
    struct rusage mine, kids;
    co_train_summary *o = s->out;

    consume_results(s);
    results_close(s);
    o->epochs = o->steps / s->p->sched.steps_per_epoch;
    o->wall_s = (double)(co_now_ns() - s->began_ns) * 1e-9;
    getrusage(RUSAGE_SELF, &mine);
    getrusage(RUSAGE_CHILDREN, &kids);
    o->cpu_user_s = (double)(mine.ru_utime.tv_sec + kids.ru_utime.tv_sec) +
                    1e-6 * (double)(mine.ru_utime.tv_usec + kids.ru_utime.tv_usec);
    o->cpu_sys_s = (double)(mine.ru_stime.tv_sec + kids.ru_stime.tv_sec) +
                   1e-6 * (double)(mine.ru_stime.tv_usec + kids.ru_stime.tv_usec);
    o->peak_memory_bytes = s->p->arena.bytes + private_memory(s);
    for (int i = 0; i < s->p->ranks; i++) {
        uint64_t allocs = atomic_load(&s->r->slots[i].allocs), faults = atomic_load(&s->r->slots[i].faults);
        o->steady_allocs = allocs > o->steady_allocs ? allocs : o->steady_allocs;
        o->steady_faults = faults > o->steady_faults ? faults : o->steady_faults;
    }
}

static co_err conclude(super *s, co_err err)
{
    co_train_summary *o = s->out;

    if (err && !o->blame[0])
        snprintf(o->blame, sizeof o->blame, "%s", co_errmsg());
    co_crew_free(s->crew);
    s->crew = NULL;
    uint64_t pc = atomic_load(&s->r->ctl->pc); /* nobody moves it any more */
    consume_results(s);
    if (!s->lost)
        snapshots(s); /* one asked for at the last moment: what it needs lies aside */
    saver_finish(s);
    o->status = err || (pc & PC_FAIL) ? CO_STATUS_FAILED : pc & PC_END ? CO_STATUS_DONE : CO_STATUS_STOPPED;
    if (pc & PC_FAIL)
        describe_failure(s);
    o->steps = steps_done(s);
    o->early = pc & PC_CUT;
    if (!err && o->status == CO_STATUS_DONE && o->steps > s->p->start.step &&
        atomic_load(&s->r->ctl->applied[o->steps & 1]) == 0) {
        o->status = CO_STATUS_FAILED;
        snprintf(o->blame, sizeof o->blame,
                 "no step could be applied: none of them had a sample that counts and a gradient that is "
                 "finite; the "
                 "weights are those of the beginning");
    }
    bool whole = state_is_whole(s) && !s->lost;
    co_err kept = whole ? save_last(s) : CO_OK;
    o->samples = samples_until(s->p, o->steps);
    if (whole)
        CO_TRY(co_layout_sha256(s->p->layout, s->r->state, o->weights_sha256));
    close_books(s);
    if (o->status == CO_STATUS_FAILED)
        return co_fail(CO_EFAIL, "%s", o->blame);
    if (kept) {
        o->status = CO_STATUS_FAILED;
        snprintf(o->blame, sizeof o->blame, "the last state could not be saved: %s", co_errmsg());
        return CO_EFAIL;
    }
    return CO_OK;
}

co_err co_train_run(co_plan *p, const co_train_hooks *hooks, co_train_summary *out)
{
    super *s = co_zalloc(sizeof *s);
    co_err err = CO_ENOMEM;

    *out = (co_train_summary){.val_loss = NAN,
                              .val_metric = NAN,
                              .test_loss = NAN,
                              .test_metric = NAN,
                              .best = NAN,
                              .val_top5 = NAN,
                              .test_top5 = NAN,
                              .monitor = monitor_name(p, p->best_of),
                              .loss = NAN,
                              .train_metric = NAN,
                              .status = CO_STATUS_FAILED};
    if (!s)
        return err;
    *s = (super){.p = p,
                 .hooks = hooks,
                 .out = out,
                 .signals = -1,
                 .bell = -1,
                 .began_ns = co_now_ns(),
                 .kills_left = p->cfg.fault_kills,
                 .kill_rng = (uint64_t)p->cfg.fault_seed};
    co_fpu_init();
    err = open_memory(s);
    if (!err)
        err = co_signals_open(&s->signals);
    if (!err && (s->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        err = co_fail(CO_EIO, "eventfd: %m");
    if (!err)
        err = start_crew(s);
    if (!err) {
        if (hooks->started)
            hooks->started(hooks->ctx, (double)(co_now_ns() - s->began_ns) * 1e-6);
        err = conclude(s, watch_over(s));
    }
    if (s->signals >= 0)
        close(s->signals);
    if (s->bell >= 0)
        close(s->bell);
    co_free(s->step_ms);
    co_free(s->sum_ms);
    co_free(s->recovery_ms);
    co_free(s->known_bad);
    co_free(s);
    return err;
}
