/* test_best.c -- which weights the final test looks at: the best ones, if they are not the last.
 *
 * The ranks of a TEST unit wait until the supervisor has chosen. The only saver that may be at work then
 * saves the state before the test, which no step changes, so the memory for copies aside and for leaves is
 * free: the best weights are read into it (regions->best), and the ranks evaluate them there. The state
 * itself is not touched.
 * Every rank reads one word, so all evaluate the same weights, whoever dies on the way.
 *
 * A child process reads the checkpoint, so a hung disk does not keep the supervisor from answering signals.
 * If it makes no progress for its deadline, it is killed and the last weights are tested.
 */
#include "train/super_int.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/signal.h"
#include "proc/look.h"
#include "train/hosts_int.h"
#include "train/timeouts_int.h"

/* Reads the weights of that step's checkpoint, or their average if the run keeps one. */
static co_err load_best(const struct run *run, int64_t step)
{
    const co_plan *plan = run->plan;
    float *best = run->regions->best, *moment[CO_MAX_MOMENTS] = {0};
    co_ckpt_meta meta = {0};
    char *path;

    CO_TRY(co_ckpt_of_step(&path, plan->spec.ckpt_root, step));
    co_err err = co_ckpt_read_meta(&meta, path);
    bool average = plan->ema >= 0 && meta.applied > 0;
    if (average)
        moment[plan->ema] = best;
    if (!err)
        err = co_ckpt_load(path, plan->layout, best, average ? plan->moments : 0, plan->moment_name, moment,
                           NULL);
    co_ckpt_meta_fini(&meta);
    co_free(path);
    return err;
}

/* --- the process that reads it -------------------------------------------------------------------------- */
/* In the child: on failure sends the reason through the pipe. */
static int reader_main(void *ctx)
{
    const struct best_reader *reader = ctx;

    if (load_best(reader->run, reader->step) == CO_OK)
        return 0;
    const char *why = co_errmsg();
    return write(reader->pipe, why, strlen(why)) < 0 ? 2 : 1;
}

static void decide_test(const struct run *run, uint32_t test_of)
{
    control *ctl = run->regions->ctl;

    atomic_store_explicit(&ctl->test_of, test_of, memory_order_release);
    co_event_ring(&ctl->event);
}

static void test_last(const struct best_reader *reader, const char *why)
{
    char text[1400];

    snprintf(text, sizeof text,
             "the best weights, of step %lld, cannot be tested: %s; the last ones are tested instead",
             (long long)reader->step, why);
    run_notice(reader->run, text);
    decide_test(reader->run, TEST_STATE);
}

static void start(struct best_reader *reader)
{
    co_child_spec spec = {.main = reader_main, .ctx = reader};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        test_last(reader, "no descriptors are left");
        return;
    }
    reader->pipe = ends[1];
    co_fds_add(&spec.keep, reader->pipe);
    co_err err = child_start(&reader->child, &spec);
    close(ends[1]);
    reader->pipe = ends[0];
    if (err) {
        close(ends[0]);
        test_last(reader, co_errmsg());
    }
}

static void say_ended(const struct best_reader *reader, int status, char *why, size_t size)
{
    if (reader->child.fenced == FENCED_STALLED)
        snprintf(why, size,
                 "reading the checkpoint made no progress for %g s: is the disk hung? "
                 "(callbacks.model_checkpoint.stall_s sets the deadline)",
                 reader->run->plan->cfg.ckpt_stall_s);
    else if (WIFSIGNALED(status))
        snprintf(why, size, "the process that read the checkpoint was killed by %s",
                 co_signal_name(WTERMSIG(status)));
    else if (why[0] == '\0')
        snprintf(why, size, "the process that read the checkpoint exited with status %d and gave no reason",
                 WEXITSTATUS(status));
}

/* The child is gone. One that was killed by somebody else, or stopped, is tried again, three times; one that
 * hung would hang again. */
static void finish(struct best_reader *reader, int status)
{
    const struct run *run = reader->run;
    char why[1024] = "";
    ssize_t n = read(reader->pipe, why, sizeof why - 1);

    close(reader->pipe);
    why[n > 0 ? n : 0] = '\0';
    if (WIFSIGNALED(status) && reader->child.fenced != FENCED_STALLED && reader->tries++ < SAVE_TRIES) {
        start(reader);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        run->out->tested_best = true;
        run->out->tested_step = reader->step;
        decide_test(run, TEST_BEST);
    } else {
        say_ended(reader, status, why, sizeof why);
        test_last(reader, why);
    }
}

static void report_slow(struct best_reader *reader)
{
    if (reader->slow_reported || co_now_ns() - reader->began_ns <= SLOW_SAVE_MS * UINT64_C(1000000))
        return;
    reader->slow_reported = true;
    run_notice(reader->run, "reading the best checkpoint takes more than 30 s: is the disk slow or hung?");
}

static void attend(struct best_reader *reader)
{
    const co_train_cfg *cfg = &reader->run->plan->cfg;
    int status;
    uint64_t beat = co_proc_bytes_read(reader->child.pid);
    child_state state = child_turn(&reader->child, beat, cfg->stall_s, cfg->ckpt_stall_s, &status);

    if (state == CHILD_GONE) {
        finish(reader, status);
    } else if (state == CHILD_HELD) {
        /* Nothing of ours runs in it any more, and what it would have filled is not used: leave it behind. */
        close(reader->pipe);
        reader->child.pid = 0;
        test_last(reader,
                  "the process that read the checkpoint was killed and does not exit: look at the disk "
                  "or network mount of the checkpoints");
    } else {
        report_slow(reader);
    }
}

void end_reader(struct best_reader *reader)
{
    int status;

    if (!reader->child.pid)
        return;
    child_kill(&reader->child);
    while (child_turn(&reader->child, 0, 1, 1, &status) == CHILD_RUNS)
        poll(&(struct pollfd){.fd = reader->child.pidfd, .events = POLLIN}, 1, CO_TURN_MS);
    reader->child.pid = 0;
    close(reader->pipe);
}

/* --- when ----------------------------------------------------------------------------------------------- */
/* Only the saver of the state before unit `test` may be at work: no step follows, so it reads nothing
 * aside. */
static bool aside_is_free(const control *ctl, uint64_t test)
{
    uint64_t snap = atomic_load_explicit(&ctl->snap, memory_order_acquire);

    return !(snap & 1) || snap >> 1 == test;
}

void choose_test(struct supervisor *super)
{
    const struct run *run = &super->run;
    struct best_reader *reader = &super->reader;
    control *ctl = run->regions->ctl;
    uint64_t pc = atomic_load_explicit(&ctl->pc, memory_order_acquire);
    unit now = unit_now(run->plan, ctl, pc_unit(pc));
    int64_t best = super->results.seen.best_step;

    if (reader->child.pid) {
        attend(reader);
        return;
    }
    if (!hosts_writes(super) || atomic_load(&ctl->test_of) != TEST_UNDECIDED ||
        pc & (PC_STOP | PC_END | PC_FAIL) || now.kind != UNIT_TEST || !aside_is_free(ctl, pc_unit(pc)) ||
        atomic_load(&ctl->consumed) + 1 < pc_unit(pc))
        return;
    run->out->tested_step = now.step;
    run->out->tested_best = best == now.step;
    *reader = (struct best_reader){.run = run, .step = best, .began_ns = co_now_ns()};
    if (best == 0 || best == now.step)
        decide_test(run, TEST_STATE);
    else
        start(reader);
}
