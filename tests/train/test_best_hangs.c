/* The final test reads the best checkpoint from a disk that hangs: the run tests the last weights after a
 * deadline, and answers Ctrl-C while it waits.
 *
 * A write lease (fcntl F_SETLEASE) makes the disk hang: who opens the file waits until the lease is given up,
 * or 45 s. The kernel tells the holder with SIGIO that somebody waits. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "train/stage.h"

/* The loss falls, so the first of two epochs has the greatest, which is "best" here. */
static const char *const words[] = {"model=mlp",
                                    "data=fake",
                                    "optim=sgd",
                                    "data.n=512",
                                    "data.batch_size=64",
                                    "trainer.slices=4",
                                    "trainer.devices=2",
                                    "trainer.max_epochs=2",
                                    "callbacks.model_checkpoint.monitor=val/loss",
                                    "callbacks.model_checkpoint.mode=max",
                                    NULL};

static char notices[4096];
static int64_t best_step;
static int lease = -1;
static volatile sig_atomic_t somebody_waits, stops;

static void on_notice(void *ctx, const char *text)
{
    (void)ctx;
    size_t at = strlen(notices);
    snprintf(notices + at, sizeof notices - at, "%s\n", text);
}

static void on_lease_wanted(int sig)
{
    (void)sig;
    somebody_waits = 1;
    if (stops)
        kill(getpid(), SIGINT);
}

/* The first checkpoint is the best one. */
static void on_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    char file[1100];

    (void)ctx;
    CHECK(!failure, "step %lld: %s", (long long)step, failure);
    if (lease >= 0)
        return;
    best_step = step;
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    lease = open(file, O_RDWR | O_CLOEXEC);
    CHECK(lease >= 0, "%s: %m", file);
    if (fcntl(lease, F_SETLEASE, F_WRLCK) != 0)
        test_skip("this file system has no leases");
}

static co_err run_with_lease(const char *stall, co_train_summary *out)
{
    stage g;
    co_plan *plan;

    sigaction(SIGIO, &(struct sigaction){.sa_handler = on_lease_wanted, .sa_flags = SA_RESTART}, NULL);
    stage_open(&g, words);
    stage_set(&g, stall);
    g.spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
    CHECK_OK(co_plan_new(&plan, &g.spec));
    co_err err = co_train_run(plan, &(co_train_hooks){.notice = on_notice, .saved = on_saved}, out);
    co_plan_free(plan);
    stage_close(&g);
    CHECK(somebody_waits, "nobody opened the best checkpoint");
    return err;
}

TEST_WITHIN(a_best_checkpoint_that_hangs_is_given_up_and_the_last_weights_are_tested, 30)
{
    co_train_summary out;

    CHECK_OK(run_with_lease("callbacks.model_checkpoint.stall_s=1", &out));
    CHECK(out.status == CO_STATUS_DONE && out.steps == 16 && out.tested_step == 16 && !out.tested_best,
          "status %d, %lld steps, tested step %lld", (int)out.status, (long long)out.steps,
          (long long)out.tested_step);
    CHECK(best_step == 8 &&
              test_contains(notices, "the best weights, of step 8, cannot be tested: reading the "
                                     "checkpoint made no progress for 1 s: is the disk hung?"),
          "best step %lld\n%s", (long long)best_step, notices);
}

TEST_WITHIN(a_stop_is_answered_while_the_best_checkpoint_hangs, 30)
{
    co_train_summary out;

    stops = 1;
    CHECK_OK(run_with_lease("callbacks.model_checkpoint.stall_s=600", &out));
    CHECK(out.status == CO_STATUS_STOPPED && out.steps == 16, "status %d, %lld steps\n%s", (int)out.status,
          (long long)out.steps, notices);
    CHECK(test_contains(out.saved, "epoch_001") && test_contains(notices, "leaving the test"), "%s\n%s",
          out.saved, notices);
}
