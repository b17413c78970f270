/* saver.c -- starts and watches savers: child processes that write a checkpoint each, one at a time. A
 * checkpoint that cannot be saved is reported; the run goes on. */
#include "train/save_int.h"
#include "train/super_int.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signal.h"
#include "train/aside_int.h"
#include "train/timeouts_int.h"

static void path_of(const struct saver *saver, int64_t step, char path[1024])
{
    char name[SAVE_NAME];

    save_name(saver->run->plan, step, &saver->what.seen[1], name);
    snprintf(path, 1024, "%s/%s", saver->run->plan->spec.ckpt_root, name);
}

/* In the child: save, and on failure tell why through the pipe. */
static int saver_main(void *ctx)
{
    const struct saver *saver = ctx;

    if (save_state(saver->run, &saver->what) == CO_OK)
        return 0;
    const char *why = co_errmsg();
    return write(saver->pipe, why, strlen(why)) < 0 ? 2 : 1;
}

static void release(struct saver *saver)
{
    control *ctl = saver->run->regions->ctl;

    json_decref(saver->what.results);
    saver->what.results = NULL;
    if (!saver->what.unit)
        return; /* the last state: no rank waits for it */
    atomic_store_explicit(&ctl->snap, (uint64_t)saver->what.unit << 1, memory_order_release);
    co_event_ring(&ctl->event);
}

/* failure NULL: it is saved. */
static void report(struct saver *saver, const char *failure)
{
    const struct run *run = saver->run;
    char path[1024];

    path_of(saver, saver->what.step, path);
    snprintf(saver->failure, sizeof saver->failure, "%s", failure ? failure : "");
    if (!failure) {
        saver->saved_step = saver->what.step;
        snprintf(run->out->saved, sizeof run->out->saved, "%s", path);
    }
    if (run->hooks->saved)
        run->hooks->saved(run->hooks->ctx, saver->what.step, path, failure);
}

static void start(struct saver *saver)
{
    co_child_spec spec = {.main = saver_main, .ctx = saver};
    int ends[2] = {-1, -1};

    if (pipe2(ends, O_CLOEXEC) != 0) {
        report(saver, "no descriptors left for the saver");
        release(saver);
        return;
    }
    saver->pipe = ends[1];
    co_fds_add(&spec.keep, saver->pipe);
    co_fds_add(&spec.keep, saver->run->hooks->publish_fd);
    co_err err = child_start(&saver->child, &spec);
    close(ends[1]);
    saver->pipe = ends[0];
    if (err) {
        close(ends[0]);
        report(saver, co_errmsg());
        release(saver);
    }
}

/* The state is not in memory any more: the saver had read all of it, so ranks changed it without copies. */
static bool state_is_gone(const struct saver *saver)
{
    return saver->what.unit && aside_is_done(saver->run->regions, saver->what.unit);
}

static void say_killed(const struct saver *saver, int sig, char *why, size_t size)
{
    if (saver->child.fenced == FENCED_STALLED)
        snprintf(why, size,
                 "the saver made no progress for %g s and was killed: is the disk hung? "
                 "(callbacks.model_checkpoint.stall_s sets the deadline)",
                 saver->run->plan->cfg.ckpt_stall_s);
    else
        snprintf(why, size, "the saver was killed by %s%s", co_signal_name(sig),
                 state_is_gone(saver)
                     ? " when training had already gone on with the memory of this state: it "
                       "cannot be saved again; the next checkpoint is saved as usual"
                     : "");
}

static bool try_again(struct saver *saver, int status)
{
    return WIFSIGNALED(status) && saver->child.fenced != FENCED_STALLED && !state_is_gone(saver) &&
           saver->tries++ < SAVE_TRIES;
}

/* The child is gone: saved, failed with a reason, or killed. One that was killed by somebody else, or
 * stopped, is tried again, three times, as long as the state can still be read. One that hung would hang
 * again. */
static void finish(struct saver *saver, int status)
{
    char why[1024] = "";
    ssize_t n = read(saver->pipe, why, sizeof why - 1);

    why[n > 0 ? n : 0] = '\0';
    close(saver->pipe);
    if (try_again(saver, status)) {
        start(saver);
        return;
    }
    if (WIFSIGNALED(status))
        say_killed(saver, WTERMSIG(status), why, sizeof why);
    else if (why[0] == '\0')
        snprintf(why, sizeof why, "the saver exited with status %d and gave no reason", WEXITSTATUS(status));
    report(saver, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : why);
    release(saver);
}

static void report_held(struct saver *saver)
{
    char why[256];

    snprintf(
        why, sizeof why,
        "an earlier saver (pid %d) was killed and does not exit: the kernel holds it, look at the disk or "
        "network mount of the checkpoints",
        (int)saver->held.pid);
    report(saver, why);
    release(saver);
}

/* It was killed and does not exit. Nothing of ours runs in it any more: the run goes on without it. */
static void leave_behind(struct saver *saver)
{
    close(saver->pipe);
    saver->held = saver->child;
    saver->child.pid = 0;
    report_held(saver);
}

static bool still_held(struct saver *saver)
{
    if (saver->held.pid && waitpid(saver->held.pid, NULL, WNOHANG) == saver->held.pid) {
        close(saver->held.pidfd);
        saver->held.pid = 0;
    }
    return saver->held.pid != 0;
}

static void report_slow(struct saver *saver)
{
    if (saver->slow_reported || co_now_ns() - saver->began_ns <= SLOW_SAVE_MS * UINT64_C(1000000))
        return;
    saver->slow_reported = true;
    run_notice(saver->run, "saving a checkpoint takes more than 30 s: is the disk slow or hung?");
}

static void report_stopped(const struct saver *saver, bool before)
{
    char text[160];

    if (before || !saver->child.stopped)
        return;
    snprintf(text, sizeof text,
             "the saver (pid %d) is stopped (SIGSTOP); it is replaced in %.1f s unless it goes on",
             (int)saver->child.pid, saver->run->plan->cfg.stall_s);
    run_notice(saver->run, text);
}

/* The one that is under way. */
static void attend(struct saver *saver)
{
    const co_train_cfg *cfg = &saver->run->plan->cfg;
    bool stopped = saver->child.stopped;
    int status;

    if (!saver->child.pid)
        return;
    uint64_t beat = atomic_load_explicit(&saver->run->regions->ctl->save_beat, memory_order_relaxed);
    child_state state = child_turn(&saver->child, beat, cfg->stall_s, cfg->ckpt_stall_s, &status);
    if (state == CHILD_GONE) {
        finish(saver, status);
    } else if (state == CHILD_HELD) {
        leave_behind(saver);
    } else {
        report_stopped(saver, stopped);
        report_slow(saver);
    }
}

static co_err write_record(const struct run *run)
{
    return run->hooks->record ? run->hooks->record(run->hooks->ctx) : CO_OK;
}

/* A host that did not write before has no place for it yet. */
static co_err find_place(const struct run *run)
{
    if (run->plan->spec.ckpt_root[0])
        return CO_OK;
    if (!run->hooks->adopt)
        return co_fail(CO_EIO, "there is no folder for checkpoints");
    return run->hooks->adopt(run->hooks->ctx);
}

static void begin(struct saver *saver)
{
    saver->tries = 0;
    saver->began_ns = co_now_ns();
    saver->slow_reported = false;
    if (still_held(saver)) {
        report_held(saver);
    } else if (find_place(saver->run) == CO_OK && write_record(saver->run) == CO_OK) {
        start(saver);
    } else {
        /* a disk that does not take the record: the checkpoint would be ahead of it */
        report(saver, co_errmsg());
        release(saver);
    }
}

/* The last results that were handed to the hooks, and what these remember: for the manifest. */
static json_t *results_json(const struct run *run)
{
    const co_train_summary *out = run->out;
    json_t *all = json_object(), *last = json_object();
    const struct {
        const char *key;
        double value;
    } reals[] = {{"train_loss", out->loss},
                 {"train_metric", out->train_metric},
                 {"val_loss", out->val_loss},
                 {"val_metric", out->val_metric},
                 {"val_top5", out->val_top5}};

    for (size_t i = 0; i < CO_COUNT(reals); i++)
        json_object_set_new(last, reals[i].key, co_json_num(reals[i].value));
    json_object_set_new(all, "last", last);
    if (run->hooks->remember)
        json_object_set_new(all, "record", run->hooks->remember(run->hooks->ctx));
    return all;
}

uint32_t saver_wanted(const struct saver *saver)
{
    uint64_t snap = atomic_load_explicit(&saver->run->regions->ctl->snap, memory_order_acquire);

    return (snap & 1) && !saver->child.pid ? (uint32_t)(snap >> 1) : 0;
}

void saver_start(struct saver *saver, uint32_t unit_after)
{
    const control *ctl = saver->run->regions->ctl;
    unit next = unit_now(saver->run->plan, ctl, unit_after);

    saver->what = (saved_state){.unit = unit_after,
                                .step = next.kind == UNIT_TRAIN ? next.step - 1 : next.step,
                                .applied = atomic_load(&ctl->snap_applied),
                                .results = results_json(saver->run)};
    for (int i = 0; i < 2; i++)
        saver->what.seen[i] = watch_get(ctl->snap_watch[i]);
    begin(saver);
}

void saver_turn(struct saver *saver)
{
    attend(saver);
}

void saver_finish(struct saver *saver, struct stop *stop, bool lost)
{
    uint64_t asked_ns = 0; /* when we saw that the run is to be left at once */

    while (saver->child.pid) {
        struct pollfd fds[2] = {{.fd = saver->child.pidfd, .events = POLLIN},
                                {.fd = stop->signals, .events = POLLIN}};
        if (stop->at_once && !asked_ns)
            asked_ns = co_now_ns();
        if (lost || (asked_ns && co_now_ns() - asked_ns > LEAVE_SAVE_MS * UINT64_C(1000000))) {
            saver->tries = SAVE_TRIES; /* not again */
            child_kill(&saver->child);
        }
        poll(fds, 2, CO_TURN_MS);
        stop_turn(saver->run, stop);
        attend(saver);
    }
}

co_err save_last(struct saver *saver, struct stop *stop, int64_t step)
{
    const co_plan *plan = saver->run->plan;
    const control *ctl = saver->run->regions->ctl;

    if (!plan->spec.ckpt_root || step == saver->saved_step)
        return CO_OK;
    saver->what = (saved_state){
        .step = step, .applied = atomic_load(&ctl->applied[step & 1]), .results = results_json(saver->run)};
    for (int i = 0; i < 2 && plan->units.cycle; i++)
        saver->what.seen[i] = watch_get(ctl->watch[(evals_before(&plan->units, step) + i) & 1]);
    begin(saver);
    saver_finish(saver, stop, false);
    return saver->saved_step == step ? CO_OK : co_fail(CO_EIO, "%s", saver->failure);
}
