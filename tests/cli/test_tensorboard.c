/* test_tensorboard.c -- cohort train logger=tensorboard, and TensorBoard itself as the judge. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../track/tf_read.h"
#include "base/err.h"
#include "base/fs.h"

#define QUICK "model.hidden=8 trainer.max_steps=4 trainer.devices=1 log_every=1 test=false"

static int count_in(const char *text, const char *words)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, words)); at++)
        n++;
    return n;
}

TEST(logger_tensorboard_shows_what_the_record_has_and_its_dir_has_a_folder_per_run)
{
    test_run r =
        test_sh("$COHORT train " QUICK " run.dir=one 'logger=[csv,tensorboard]'"
                " && $COHORT train " QUICK " run.dir=two logger=tensorboard logger.tensorboard.dir=all/runs"
                " && $COHORT train " QUICK " run.dir=three logger=tensorboard logger.tensorboard.dir=all/runs"
                " logger.tensorboard.name=x logger.names=slash && ls all/runs");
    CHECK(r.status == 0 && test_contains(r.out, "two\nx\n"), "%d %s", r.status, r.out);
    CHECK(co_fs_exists("one/csv/metrics.csv") && !co_fs_exists("two/tensorboard"), "files");
    char *shown = tf_shows_run("one");
    CHECK(count_in(shown, "train/loss_step") == 4 && count_in(shown, "val/loss") == 1 &&
              test_contains(shown, "0 config text\n") &&
              test_contains(shown, "0 _hparams_/session_start_info hparams") &&
              test_contains(shown, "4 _hparams_/session_end_info hparams"),
          "%s", shown);
    free(shown);
    shown = tf_shows("all/runs/x", NULL);
    CHECK(count_in(shown, " Loss/train ") == 4 && count_in(shown, " acc1/val ") == 1, "%s", shown);
    free(shown);
}

TEST(tensorboard_without_a_place_to_write_is_one_warning_and_the_run_is_done)
{
    test_run r =
        test_sh("mkdir r && touch r/tensorboard && $COHORT train " QUICK " run.dir=r logger=tensorboard");
    CHECK(r.status == 0 && count_in(r.out, "logger=tensorboard was dropped: ") == 1, "%d %s", r.status, r.out);
    r = test_sh("$COHORT train " QUICK " run.dir=s logger=tensorboard logger.tensorboard.dir=/proc/nowhere");
    CHECK(r.status == 0 && count_in(r.out, "logger=tensorboard was dropped: ") == 1, "%d %s", r.status, r.out);
}

/* --- by TensorBoard -------------------------------------------------------------------------------------- */
static const char *python_with_tensorboard(void)
{
    const char *python = getenv("COHORT_PYTHON");
    if (!python)
        test_skip("COHORT_PYTHON is not set: a Python with the package tensorboard");
    if (test_sh("'%s' -c 'import tensorboard'", python).status != 0)
        test_skip("%s has no package tensorboard", python);
    return python;
}

static bool has_checkpoint(void *step)
{
    return test_sh("grep -q '\"checkpoint\",\"step\":%s' r/events.jsonl", (const char *)step).status == 0;
}

static void run_until(const char *step, int signal, int want)
{
    pid_t pid = test_spawn(
        "said", "exec $COHORT train experiment=demo trainer.max_epochs=12 run.dir=r ckpt_path=auto "
                "logger=tensorboard log_every=1 callbacks.model_checkpoint.every_n_steps=10 "
                "callbacks.model_checkpoint.min_interval_s=0 trainer.devices=1");
    if (step) {
        test_until(has_checkpoint, (void *)(uintptr_t)step, 100, "a checkpoint");
        kill(pid, signal);
    }
    int status = test_wait(pid, 200);
    CHECK(status == want || status == 0, "%d: %s", status, test_sh("tail -5 said").out);
}

TEST_LONG(tensorboard_reads_every_value_of_the_record_after_a_kill_a_stop_and_a_resume)
{
    const char *python = python_with_tensorboard(), *script = test_repo("tests/golden/check_tensorboard.py");
    run_until("5[0-9]", SIGKILL, 128 + SIGKILL);
    run_until("1[3-9][0-9]", SIGTERM, 75);
    run_until(NULL, 0, 0);
    test_run r =
        test_sh("ls r/tensorboard | wc -l; '%s' '%s' values r/tensorboard r/events.jsonl", python, script);
    CHECK(r.status == 0, "%s", r.out);
    test_note("%s", r.out);
    r = test_sh("'%s' '%s' cuts r/tensorboard", python, script);
    CHECK(r.status == 0, "%s", r.out);
    test_note("%s", r.out);
}

TEST_LONG(a_tensorboard_server_lists_the_runs_and_serves_scalars_text_and_hparams)
{
    const char *python = python_with_tensorboard(), *script = test_repo("tests/golden/check_tensorboard.py");
    test_run r =
        test_sh("for i in 1 2; do $COHORT train experiment=demo trainer.max_epochs=3 run.dir=r$i seed=$i "
                "logger=tensorboard logger.tensorboard.dir=all || exit 1; done");
    CHECK(r.status == 0, "%s", r.out);
    r = test_sh("'%s' '%s' server all r1 r2", python, script);
    CHECK(r.status == 0 && test_contains(r.out, "STATUS_SUCCESS"), "%s", r.out);
    test_note("%s", r.out);
}
