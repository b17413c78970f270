/* Nothing that hangs holds up a run without bound: a saver that is stopped or hangs, a loader that hangs at
 * the end, a child that does not exit. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "train/stage.h"
#include "train/super_int.h"

static const char *const words[] = {"model=mlp",           "data=fake",
                                    "optim=sgd",           "data.n=64",
                                    "data.batch_size=8",   "trainer.slices=4",
                                    "trainer.devices=2",   "trainer.max_epochs=2", /* 16 steps */
                                    "trainer.stall_s=0.3", NULL};

static char notices[4096];
static co_train_summary summary;

static void on_notice(void *ctx, const char *text)
{
    (void)ctx;
    size_t at = strlen(notices);
    snprintf(notices + at, sizeof notices - at, "%s\n", text);
}

/* --- savers --------------------------------------------------------------------------------------------- */
enum { WELL, STOPPED, HANGS };
static int next_fork, this_fork; /* how the next child fares, once */
static int at_step;              /* from when on */
static int saved_ok, saved_not;
static char failure_text[512];

static void before_fork(void)
{
    this_fork = next_fork;
    next_fork = WELL;
}

static void in_child(void)
{
    if (this_fork == STOPPED)
        raise(SIGSTOP);
    while (this_fork == HANGS)
        poll(NULL, 0, 1000);
}

static int fate;
static void on_started(void *ctx, double ms) /* from here on, forks are savers */
{
    (void)ctx;
    (void)ms;
    if (at_step == 0)
        next_fork = fate;
}

static void on_step(void *ctx, const co_step_result *r)
{
    (void)ctx;
    if (r->step == at_step)
        next_fork = fate;
}

static void on_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    (void)ctx;
    (void)path;
    CHECK(step >= 0, "step %lld", (long long)step);
    saved_ok += !failure;
    saved_not += failure != NULL;
    if (failure)
        snprintf(failure_text, sizeof failure_text, "%s", failure);
}

static co_err run_with_savers(int how, int step, const char *every)
{
    stage g;
    co_plan *plan;

    pthread_atfork(before_fork, NULL, in_child);
    fate = how;
    at_step = step;
    stage_open(&g, words);
    stage_set(&g, every);
    stage_set(&g, step ? "test=false" : "test=true"); /* the state before a test is saved twice if need be */
    /* Long enough for a saver that is only short of CPU. */
    stage_set(&g, how == HANGS ? "callbacks.model_checkpoint.stall_s=2"
                               : "callbacks.model_checkpoint.stall_s=20");
    g.spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
    CHECK_OK(co_plan_new(&plan, &g.spec));
    co_err err = co_train_run(
        plan, &(co_train_hooks){.started = on_started, .step = on_step, .saved = on_saved, .notice = on_notice},
        &summary);
    co_plan_free(plan);
    stage_close(&g);
    return err;
}

TEST_WITHIN(a_stopped_saver_is_replaced_and_the_checkpoint_is_saved, 30)
{
    CHECK_OK(run_with_savers(STOPPED, 0, "callbacks.model_checkpoint.every_n_steps=4"));
    CHECK(summary.status == CO_STATUS_DONE && saved_ok == 4 && saved_not == 0, "%d saved, %d not: %s",
          saved_ok, saved_not, failure_text);
    CHECK(test_contains(notices, "is stopped (SIGSTOP)"), "%s", notices);
}

TEST_WITHIN(a_saver_that_hangs_is_given_up_and_training_goes_on, 30)
{
    CHECK_OK(run_with_savers(HANGS, 0, "callbacks.model_checkpoint.every_n_steps=4"));
    CHECK(summary.status == CO_STATUS_DONE && saved_ok == 3 && saved_not == 1, "%d saved, %d not", saved_ok,
          saved_not);
    CHECK(test_contains(failure_text, "made no progress for 2 s"), "%s", failure_text);
}

TEST_WITHIN(a_last_save_that_hangs_is_given_up_and_said, 30)
{
    CHECK_FAILS(run_with_savers(HANGS, 16, "callbacks.model_checkpoint.every_n_epochs=0"), CO_EFAIL,
                "the saver made no progress");
    CHECK(test_contains(summary.blame, "the last state could not be saved"), "%s", summary.blame);
    CHECK(summary.status == CO_STATUS_FAILED && summary.steps == 16 && saved_not == 1, "%lld steps",
          (long long)summary.steps);
}

/* --- a loader that hangs when the run is over ----------------------------------------------------------- */
static co_dataset *real;

static int hanging_fill(const co_dataset *data, co_split split, const uint32_t *ids, co_slice_shape shape,
                        const co_draw *draw, const co_slice_dst *dst)
{
    (void)data;
    while (split == CO_SPLIT_TRAIN && draw->epoch >= 1)
        poll(NULL, 0, 1000);
    return real->fill(real, split, ids, shape, draw, dst);
}

static void close_both(co_dataset *data)
{
    co_dataset_close(real);
    free(data);
}

static co_err open_hanging(co_dataset **out, const void *cfg)
{
    CO_TRY(co_dataset_open(&real, co_dataset_find("fake"), cfg));
    *out = malloc(sizeof **out);
    **out = *real;
    (*out)->fill = hanging_fill;
    (*out)->close = close_both;
    return CO_OK;
}

/* Early stopping ends it with the first epoch, while the loaders are in the second. */
TEST_WITHIN(a_loader_that_hangs_when_the_run_ends_does_not_keep_the_state_from_being_saved, 30)
{
    stage g;
    co_plan *plan;

    stage_open(&g, words);
    stage_set(&g, "data.workers=1");
    stage_set(&g, "callbacks.early_stopping.patience=1");
    stage_set(&g, "callbacks.early_stopping.stopping_threshold=1e9");
    co_dataset_def def = *g.spec.data;
    def.open = open_hanging;
    g.spec.data = &def;
    g.spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
    CHECK_OK(co_plan_new(&plan, &g.spec));
    CHECK_OK(co_train_run(plan, &(co_train_hooks){.notice = on_notice}, &summary));
    CHECK(summary.status == CO_STATUS_DONE && summary.steps == 8 && summary.saved[0], "%lld steps, \"%s\"",
          (long long)summary.steps, summary.saved);
    co_plan_free(plan);
    stage_close(&g);
}

/* --- a child that does not exit ------------------------------------------------------------------------- */
/* A grandchild stands for one that the kernel holds: its exit cannot be seen from here. */
static pid_t start_grandchild(void)
{
    int ends[2];
    pid_t pid = 0;

    CHECK(pipe(ends) == 0, "pipe");
    pid_t parent = fork();
    if (parent == 0) {
        pid = fork();
        if (pid == 0)
            for (;;)
                poll(NULL, 0, 1000);
        _exit(write(ends[1], &pid, sizeof pid) != sizeof pid);
    }
    CHECK(read(ends[0], &pid, sizeof pid) == sizeof pid && waitpid(parent, NULL, 0) == parent,
          "the grandchild");
    return pid;
}

TEST(a_child_that_does_not_exit_when_killed_is_left_behind_after_a_while)
{
    struct child child = {.pid = start_grandchild(), .pidfd = -1};
    child_state state = CHILD_RUNS;
    int status, turns = 0;

    while (state == CHILD_RUNS && turns++ < 1000) {
        child.last_ns = 0; /* a turn that took long counts as CO_LATE_TURN_MS */
        state = child_turn(&child, 7, 1, 1, &status);
    }
    CHECK(state == CHILD_HELD && child.fenced == FENCED_STALLED, "state %d", (int)state);
    double waited = turns * CO_LATE_TURN_MS * 1e-3, least = 1 + CO_FENCE_MS * 1e-3;
    CHECK(waited >= least && waited < least + 2, "after %g s", waited);
}
