/* test_tensorboard.c -- cohort train logger=tensorboard, and TensorBoard itself as the judge. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../track/tf_read.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"

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

/* --- by TensorBoard ------------------------------------------------------------------------------------- */
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

TEST_LONG(a_tensorboard_server_lists_the_runs_and_serves_scalars_images_histograms_text_and_hparams)
{
    const char *python = python_with_tensorboard(), *script = test_repo("tests/golden/check_tensorboard.py");
    test_run r = test_sh(
        "for i in 1 2; do $COHORT train experiment=demo trainer.max_epochs=3 run.dir=r$i seed=$i "
        "logger=tensorboard logger.tensorboard.dir=all logger.samples=8 logger.histograms=1 || exit 1; done");
    CHECK(r.status == 0, "%s", r.out);
    r = test_sh("'%s' '%s' server all r1 r2", python, script);
    CHECK(r.status == 0 && test_contains(r.out, "STATUS_SUCCESS") && test_contains(r.out, "\"picture\"") &&
              test_contains(r.out, "\"buckets\": 64"),
          "%s", r.out);
    test_note("%s", r.out);
}

/* --- pictures, tables, histograms ----------------------------------------------------------------------- */
TEST(samples_become_pictures_with_prediction_and_truth_and_a_table)
{
    test_run r = test_sh(
        "$COHORT train model.hidden=8 trainer.max_steps=4 trainer.devices=1 run.dir=r "
        "logger=tensorboard logger.samples=3 logger.histograms=1 && grep -c '\"image\":{' r/events.jsonl "
        "&& cd r && sha256sum media/*");
    CHECK(r.status == 0 && test_contains(r.out, "\n3\n"), "%s", r.out);
    char *shown = tf_shows_run("r");
    CHECK(count_in(shown, "4 sample_images/") == 3 && count_in(shown, " image\n") == 3 &&
              test_contains(shown, "4 table text\n") && count_in(shown, " histogram\n") >= 4,
          "%s", shown);
    free(shown);
    json_t *table;
    CHECK_OK(co_json_read(&table, "r/media/table-000004.json", 1 << 20));
    CHECK(json_array_size(json_object_get(table, "data")) == 3, "rows");
    json_decref(table);
    char **names, *events;
    size_t n;
    CHECK_OK(co_fs_list(&names, &n, "r/media"));
    CHECK_OK(co_fs_read(&events, NULL, "r/events.jsonl", 1 << 22));
    CHECK(n == 4, "%zu files", n);
    for (size_t i = 0; i < n; i++) { /* the record has the sum of each file */
        char path[256], hex[65];
        snprintf(path, sizeof path, "r/media/%s", names[i]);
        CHECK_OK(co_sha256_of_file(path, hex, NULL));
        CHECK(test_contains(events, hex), "%s %s", path, hex);
    }
    co_free(events);
    co_fs_list_free(names, n);
}

TEST(a_histogram_s_counts_add_up_and_its_edges_rise)
{
    test_run r =
        test_sh("$COHORT train model.hidden=8 trainer.max_steps=4 trainer.devices=1 test=false run.dir=r "
                "logger=none logger.histograms=1 && grep '\"histogram\":{' r/events.jsonl > h");
    CHECK(r.status == 0, "%s", r.out);
    char *text;
    CHECK_OK(co_fs_read(&text, NULL, "h", 1 << 22));
    int seen = 0;
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1, seen++) {
        json_t *line;
        long long num, sum = 0;
        CHECK_OK(co_json_parse(&line, at, (size_t)(end - at), "h"));
        const json_t *h = json_object_get(line, "histogram"), *edges = json_object_get(h, "edges");
        CHECK(co_json_i64(h, "num", &num) && json_array_size(edges) == 65, "edges");
        for (size_t i = 0; i < 64; i++) {
            sum += json_integer_value(json_array_get(json_object_get(h, "counts"), i));
            CHECK(json_number_value(json_array_get(edges, i)) < json_number_value(json_array_get(edges, i + 1)),
                  "%s", co_json_str(line, "name"));
        }
        CHECK(sum == num && num > 0, "%s: %lld of %lld", co_json_str(line, "name"), sum, num);
        json_decref(line);
    }
    CHECK(seen >= 4, "%d histograms", seen);
    co_free(text);
}
