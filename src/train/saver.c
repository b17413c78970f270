/* saver.c -- the supervisor's side of saving: one child process at a time; its failure is a message, not the run's end. */
#include "train/train_int.h"

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

static void path_of(const super *s, int64_t step, char path[1024])
{
    char name[SAVE_NAME];

    save_name(s->p, step, &s->saver_watch[1], name);
    snprintf(path, 1024, "%s/%s", s->p->spec.ckpt_root, name);
}

/* In the child: save, and on failure tell why through the pipe. */
static int saver_main(void *ctx)
{
    super *s = ctx;

    if (save_state(s->p, s->r, s->saver_unit, s->saver_step, s->saver_applied, s->saver_watch) == CO_OK)
        return 0;
    const char *why = co_errmsg();
    return write(s->saver_pipe, why, strlen(why)) < 0 ? 2 : 1;
}

static void release(super *s)
{
    atomic_store(&s->r->ctl->save_ns, co_now_ns() - s->saver_began_ns);
    atomic_store_explicit(&s->r->ctl->snap, (uint64_t)s->saver_unit << 1, memory_order_release);
    co_event_ring(&s->r->ctl->event);
}

static void told(super *s, const char *failure)
{
    char path[1024];

    path_of(s, s->saver_step, path);
    if (!failure) {
        s->saved_step = s->saver_step;
        snprintf(s->out->saved, sizeof s->out->saved, "%s", path);
    }
    if (s->hooks->saved)
        s->hooks->saved(s->hooks->ctx, s->saver_step, path, failure);
}

static void start(super *s)
{
    int ends[2] = {-1, -1};

    if (pipe2(ends, O_CLOEXEC) != 0) {
        told(s, "no descriptors left for the saver");
        release(s);
        return;
    }
    s->saver_pipe = ends[1];
    co_err err = co_child_start(&s->saver, &s->saver_fd, saver_main, s);
    close(ends[1]);
    s->saver_pipe = ends[0];
    if (err) {
        close(ends[0]);
        s->saver = 0;
        told(s, co_errmsg());
        release(s);
    }
}

/* The child is gone: saved, failed with a reason, or killed (then it is tried again, three times). */
static void finish(super *s, int status)
{
    char why[1024] = "";
    ssize_t n = read(s->saver_pipe, why, sizeof why - 1);

    why[n > 0 ? n : 0] = '\0';
    close(s->saver_pipe);
    close(s->saver_fd);
    s->saver = 0;
    if (WIFSIGNALED(status) && s->saver_tries++ < SAVE_TRIES) {
        start(s);
        return;
    }
    if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "the saver was killed by %s", strsignal(WTERMSIG(status)));
    told(s, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : why);
    release(s);
}

void snapshots(super *s)
{
    int status;

    if (s->saver && waitpid(s->saver, &status, WNOHANG) == s->saver)
        finish(s, status);
    if (s->saver && !s->saver_told && co_now_ns() - s->saver_began_ns > SLOW_SAVE_NS) {
        s->saver_told = true;
        if (s->hooks->notice)
            s->hooks->notice(s->hooks->ctx,
                             "saving a checkpoint takes more than 30 s: is the disk slow or hung?");
    }
    uint64_t snap = atomic_load_explicit(&s->r->ctl->snap, memory_order_acquire);
    if (s->saver || !(snap & 1))
        return;
    s->saver_unit = (uint32_t)(snap >> 1);
    unit u = unit_now(s->p, s->r->ctl, s->saver_unit);
    s->saver_step = u.kind == UNIT_TRAIN ? u.step - 1 : u.step;
    s->saver_applied = atomic_load(&s->r->ctl->snap_applied);
    for (int i = 0; i < 2; i++)
        s->saver_watch[i] = watch_get(s->r->ctl->snap_watch[i]);
    s->saver_tries = 0;
    s->saver_began_ns = co_now_ns();
    s->saver_told = false;
    start(s);
}

void saver_finish(super *s)
{
    int status;

    while (s->saver) {
        struct pollfd p = {.fd = s->saver_fd, .events = POLLIN};
        if (poll(&p, 1, s->lost ? 0 : SAVE_DEADLINE_MS) == 0) {
            s->saver_tries = SAVE_TRIES; /* it hangs, or may not write any more */
            kill(s->saver, SIGKILL);
        }
        while (waitpid(s->saver, &status, 0) < 0 && errno == EINTR)
            ;
        finish(s, status);
    }
}

int64_t steps_done(const super *s)
{
    uint64_t pc = atomic_load(&s->r->ctl->pc);

    if (pc >> 8 <= s->p->sched.first_unit)
        return s->p->sched.first_step;
    unit u = unit_now(s->p, s->r->ctl, (uint32_t)(pc >> 8) - 1);    /* the last unit that was finished */
    return u.step - (pc & PC_FAIL && u.kind == UNIT_TRAIN ? 1 : 0); /* its gradient was not applied */
}

co_err save_last(super *s)
{
    int64_t step = s->out->steps;

    if (!s->p->spec.ckpt_root || step == s->saved_step)
        return CO_OK;
    s->saver_step = step;
    for (int i = 0; i < 2 && s->p->sched.block; i++)
        s->saver_watch[i] = watch_get(s->r->ctl->watch[(evals_before(&s->p->sched, step) + i) & 1]);
    co_err err = save_state(s->p, s->r, 0, step, atomic_load(&s->r->ctl->applied[step & 1]), s->saver_watch);
    told(s, err ? co_errmsg() : NULL);
    return err;
}
