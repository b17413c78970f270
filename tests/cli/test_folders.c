/* test_folders.c -- what happens to a run whose folder is not what it should be. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/fs.h"

#define QUICK "model.hidden=8 trainer.max_steps=4 trainer.devices=1 log_every=1 test=false "
#define LONG                                                                                                 \
    "model.hidden=8 trainer.max_steps=100000000 trainer.max_epochs=100000000 trainer.devices=1 "             \
    "console=quiet "

static bool exists(void *path)
{
    return co_fs_exists(path);
}

TEST(a_planted_link_or_fifo_in_the_run_folder_is_refused_before_anything_starts)
{
    static const struct {
        const char *plant, *says;
    } plants[] = {{"ln -s ../victim r/events.jsonl", "r/events.jsonl is a link"},
                  {"ln -s ../victim r/train.log", "r/train.log is a link"},
                  {"mkfifo r/train.log", "r/train.log is not a regular file"},
                  {"mkfifo r/events.jsonl", "r/events.jsonl is not a regular file"}};
    for (size_t i = 0; i < CO_COUNT(plants); i++) {
        test_run r =
            test_sh("rm -rf r victim; mkdir r && : >victim && %s && $COHORT train " QUICK "run.dir=r",
                    plants[i].plant);
        CHECK(r.status == 2 && test_contains(r.out, plants[i].says), "%s: %d %s", plants[i].plant, r.status,
              r.out);
        r = test_sh("test -s victim");
        CHECK(r.status != 0, "%s: written through it", plants[i].plant);
    }
}

TEST(a_run_whose_folder_is_removed_says_so_and_ends_with_1)
{
    pid_t pid = test_spawn("said", "exec $COHORT train " LONG "run.dir=r");
    test_until(exists, "r/csv/metrics.csv", 50, "the table");
    test_run r = test_sh("rm -rf r; rm -rf r");
    int status = test_wait(pid, 40);
    r = test_sh("cat said; ls -d r 2>/dev/null");
    CHECK(status == 1 && test_contains(r.out, "run folder r is gone: it was removed or moved"), "%d: %s",
          status, r.out);
    CHECK(!co_fs_exists("r"), "half a folder is left");
}

TEST(two_runs_with_one_folder_for_checkpoints_do_not_touch_each_other)
{
    pid_t pid =
        test_spawn("said", "exec $COHORT train " LONG "run.dir=a callbacks.model_checkpoint.dirpath=shared");
    test_until(exists, "shared/lease.json", 50, "the first run's lease");
    test_run r = test_sh("$COHORT train " QUICK "run.dir=b callbacks.model_checkpoint.dirpath=shared");
    CHECK(r.status == 2 && test_contains(r.out, "callbacks.model_checkpoint.dirpath") &&
              (test_contains(r.out, "in use by pid") ||
               test_contains(r.out, "holds checkpoints of another run")),
          "%d %s", r.status, r.out);
    CHECK(!co_fs_exists("b"), "b was left");
    kill(pid, SIGTERM);
    int status = test_wait(pid, 50);
    CHECK(status == 75, "%d", status);
    CHECK(!co_fs_exists("shared/lease.json"), "the lease stays");
}
