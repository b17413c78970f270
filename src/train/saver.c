/* saver.c -- the supervisor's side of saving: one child process at a time; its failure is a message, not the
 * run's end. */
#include "train/save_int.h"
#include "train/super_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define SLOW_SAVE_NS 30000000000u
enum { SAVE_DEADLINE_MS = 60000 }; /* the deadline counts when the run is over */

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
    atomic_store_explicit(&ctl->snap, (uint64_t)saver->what.unit << 1, memory_order_release);
    co_event_ring(&ctl->event);
}

/* failure NULL: it is saved. */
static void report(struct saver *saver, const char *failure)
{
    const struct run *run = saver->run;
    char path[1024];

    path_of(saver, saver->what.step, path);
    if (!failure) {
        saver->saved_step = saver->what.step;
        snprintf(run->out->saved, sizeof run->out->saved, "%s", path);
    }
    if (run->hooks->saved)
        run->hooks->saved(run->hooks->ctx, saver->what.step, path, failure);
}

static void start(struct saver *saver)
{
    int ends[2] = {-1, -1};

    if (pipe2(ends, O_CLOEXEC) != 0) {
        report(saver, "no descriptors left for the saver");
        release(saver);
        return;
    }
    saver->pipe = ends[1];
    co_err err = co_child_start(&saver->pid, &saver->pidfd, saver_main, saver);
    close(ends[1]);
    saver->pipe = ends[0];
    if (err) {
        close(ends[0]);
        saver->pid = 0;
        report(saver, co_errmsg());
        release(saver);
    }
}

/* The child is gone: saved, failed with a reason, or killed (then it is tried again, three times). */
static void finish(struct saver *saver, int status)
{
    char why[1024] = "";
    ssize_t n = read(saver->pipe, why, sizeof why - 1);

    why[n > 0 ? n : 0] = '\0';
    close(saver->pipe);
    close(saver->pidfd);
    saver->pid = 0;
    if (WIFSIGNALED(status) && saver->tries++ < SAVE_TRIES) {
        start(saver);
        return;
    }
    if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "the saver was killed by %s", strsignal(WTERMSIG(status)));
    report(saver, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : why);
    release(saver);
}

static void report_slow(struct saver *saver)
{
    if (saver->slow_reported || co_now_ns() - saver->began_ns <= SLOW_SAVE_NS)
        return;
    saver->slow_reported = true;
    run_notice(saver->run, "saving a checkpoint takes more than 30 s: is the disk slow or hung?");
}

static co_err write_record(const struct run *run)
{
    return run->hooks->record ? run->hooks->record(run->hooks->ctx) : CO_OK;
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

    return (snap & 1) && !saver->pid ? (uint32_t)(snap >> 1) : 0;
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
    saver->tries = 0;
    saver->began_ns = co_now_ns();
    saver->slow_reported = false;
    if (write_record(saver->run) == CO_OK) {
        start(saver);
        return;
    }
    report(saver, co_errmsg()); /* a disk that does not take the record: the checkpoint would be ahead of it */
    release(saver);
}

void saver_turn(struct saver *saver)
{
    int status;

    if (saver->pid && waitpid(saver->pid, &status, WNOHANG) == saver->pid)
        finish(saver, status);
    if (saver->pid)
        report_slow(saver);
}

void saver_give_up(struct saver *saver)
{
    saver->tries = SAVE_TRIES;
    if (saver->pid)
        kill(saver->pid, SIGKILL);
}

void saver_finish(struct saver *saver, bool lost)
{
    int status;

    while (saver->pid) {
        struct pollfd p = {.fd = saver->pidfd, .events = POLLIN};
        if (poll(&p, 1, lost ? 0 : SAVE_DEADLINE_MS) == 0)
            saver_give_up(saver); /* it hangs, or may not write any more */
        while (waitpid(saver->pid, &status, 0) < 0 && errno == EINTR)
            ;
        finish(saver, status);
    }
}

co_err save_last(struct saver *saver, int64_t step)
{
    const co_plan *plan = saver->run->plan;
    const control *ctl = saver->run->regions->ctl;

    if (!plan->spec.ckpt_root || step == saver->saved_step)
        return CO_OK;
    saver->what = (saved_state){
        .step = step, .applied = atomic_load(&ctl->applied[step & 1]), .results = results_json(saver->run)};
    for (int i = 0; i < 2 && plan->units.block; i++)
        saver->what.seen[i] = watch_get(ctl->watch[(evals_before(&plan->units, step) + i) & 1]);
    co_err err = write_record(saver->run);
    if (!err)
        err = save_state(saver->run, &saver->what);
    report(saver, err ? co_errmsg() : NULL);
    json_decref(saver->what.results);
    saver->what.results = NULL;
    return err;
}
