/* What users and their scripts see of a run: its folder, its summary, how it continues after a stop. */
#include "cli/runs.h"

#include <math.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the run folder ------------------------------------------------------------------------------------- */
static void every_line_is_json(const char *path)
{
    char *text, *next;
    size_t len;
    int n = 0;

    CHECK_OK(co_fs_read(&text, &len, path, 1 << 24));
    for (char *line = text; *line; line = next + 1, n++) {
        json_t *e = NULL;
        CHECK((next = strchr(line, '\n')), "a line is cut: %s", line);
        CHECK_OK(co_json_parse(&e, line, (size_t)(next - line), path));
        CHECK(co_json_str(e, "name") && json_is_number(json_object_get(e, "t")), "%.*s", (int)(next - line),
              line);
        json_decref(e);
    }
    CHECK(n > 5, "%d events", n);
    co_free(text);
}

static void is_of_type(const json_t *v, const char *key, const char *type)
{
    const json_t *x = json_object_get(v, key);
    bool right = (strcmp(type, "text") == 0 && json_is_string(x)) ||
                 (strcmp(type, "whole") == 0 && json_is_integer(x)) ||
                 (strcmp(type, "number") == 0 && json_is_number(x)) ||
                 (strcmp(type, "object") == 0 && json_is_object(x)) ||
                 (strcmp(type, "list") == 0 && json_is_array(x));

    CHECK(x, "the summary has no \"%s\"", key);
    CHECK(right, "\"%s\" is no %s", key, type);
}

static void summary_is_as_promised(const char *dir)
{
    static const char *const fields[][2] = {{"status", "text"},        {"steps", "whole"},
                                            {"epochs", "whole"},       {"samples", "whole"},
                                            {"wall_s", "number"},      {"weights_sha256", "text"},
                                            {"metrics", "object"},     {"best", "object"},
                                            {"ranks", "whole"},        {"slices", "whole"},
                                            {"global_batch", "whole"}, {"samples_per_s", "number"},
                                            {"timed", "object"},       {"peak_memory_bytes", "whole"},
                                            {"recoveries", "whole"},   {"kernels", "text"},
                                            {"hosts", "list"}};
    static const char *const host[][2] = {{"name", "text"},
                                          {"ranks", "whole"},
                                          {"cpu_user_s", "number"},
                                          {"cpu_sys_s", "number"},
                                          {"wall_s", "number"},
                                          {"utilisation", "number"},
                                          {"peak_memory_bytes", "whole"}};
    static const char *const timed[][2] = {{"steps", "whole"},
                                           {"samples", "whole"},
                                           {"counted", "whole"},
                                           {"wall_s", "number"},
                                           {"cpu_s", "number"}};
    static const char *const metrics[] = {"train/loss", "train/acc", "val/loss",
                                          "val/acc",    "test/loss", "test/acc"};
    json_t *v = json_of("%s/summary.json", dir);

    for (size_t i = 0; i < CO_COUNT(fields); i++)
        is_of_type(v, fields[i][0], fields[i][1]);
    for (size_t i = 0; i < CO_COUNT(timed); i++)
        is_of_type(json_object_get(v, "timed"), timed[i][0], timed[i][1]);
    json_t *hosts = json_object_get(v, "hosts");
    CHECK(json_array_size(hosts) == 1, "%zu hosts", json_array_size(hosts));
    for (size_t i = 0; i < CO_COUNT(host); i++)
        is_of_type(json_array_get(hosts, 0), host[i][0], host[i][1]);
    for (size_t i = 0; i < CO_COUNT(metrics); i++)
        is_of_type(json_object_get(v, "metrics"), metrics[i], "number");
    CHECK(strcmp(text_in(v, "status"), "done") == 0, "%s", text_in(v, "status"));
    CHECK(number_in(v, "steps") == 46 && number_in(v, "epochs") == 2, "%lld steps, %lld epochs",
          number_in(v, "steps"), number_in(v, "epochs"));
    CHECK(number_in(v, "samples") == 2 * 1437, "%lld samples: not each once per epoch",
          number_in(v, "samples"));
    const json_t *after_first = json_object_get(v, "timed");
    CHECK(number_in(after_first, "steps") == 45 && number_in(after_first, "samples") == 2 * 1437 - 64 &&
              number_in(after_first, "counted") == 2 * 1437 - 64,
          "timed: %lld steps, %lld samples, %lld counted", number_in(after_first, "steps"),
          number_in(after_first, "samples"), number_in(after_first, "counted"));
    double cpu_s = json_number_value(json_object_get(after_first, "cpu_s"));
    const json_t *all = json_array_get(hosts, 0);
    CHECK(cpu_s > 0 && cpu_s < json_number_value(json_object_get(all, "cpu_user_s")) +
                                   json_number_value(json_object_get(all, "cpu_sys_s")),
          "%g CPU seconds after the first step", cpu_s);
    CHECK(strlen(text_in(v, "weights_sha256")) == 64, "%s", text_in(v, "weights_sha256"));
    json_decref(v);
}

TEST(a_run_folder_has_all_that_scripts_rely_on)
{
    static const char *const files[] = {
        "config.yaml",  "overrides.yaml", "config_tree.log", "header.json", "events.jsonl",
        "summary.json", "exec_time.log",  "csv/metrics.csv", "ranks",       "checkpoints/last"};
    char path[64];

    succeeds("$COHORT train " SMALL " trainer.max_epochs=2 trainer.devices=2 log_every=1 run.dir=r");
    for (size_t i = 0; i < CO_COUNT(files); i++) {
        snprintf(path, sizeof path, "r/%s", files[i]);
        CHECK(co_fs_exists(path), "%s is not there", path);
    }
    CHECK(!co_fs_exists("r/lease.json") && !co_fs_exists("r/blame.json"),
          "a file of a live or failed run is left");
    summary_is_as_promised("r");
    every_line_is_json("r/events.jsonl");
    test_run r = test_sh("head -1 r/csv/metrics.csv; wc -l < r/csv/metrics.csv");
    CHECK(test_contains(r.out, "step") && test_contains(r.out, "train/loss_step"), "%s", r.out);
    CHECK(test_contains(r.out, "\n47\n"), "not a row per step: %s", r.out);
    free(r.out);
}

TEST(a_run_s_config_file_read_back_is_the_same_configuration)
{
    succeeds("$COHORT train " SMALL " optim.lr=0.0123 trainer.clip_norm=1.5 trainer.max_steps=3 run.dir=r");
    succeeds("$COHORT train experiment=r/config.yaml run.dir=again");
    json_t *a = json_of("%s/header.json", "r"), *b = json_of("%s/header.json", "again");
    char sha_a[65], sha_b[65];
    sha_of_run(sha_a, "r");
    sha_of_run(sha_b, "again");
    CHECK(strcmp(text_in(a, "config_sha256"), text_in(b, "config_sha256")) == 0, "the hashes differ");
    CHECK(strcmp(sha_a, sha_b) == 0, "the same configuration gave other weights");
    json_decref(a);
    json_decref(b);
}

TEST(kernels_with_their_version_are_the_same_configuration)
{
    succeeds("$COHORT train " SMALL
             " trainer.kernels=ref trainer.max_steps=2 >dir; rm $(cat dir)/summary.json");
    test_run r = test_sh("$COHORT train " SMALL
                         " trainer.kernels=ref.1 trainer.max_steps=3 ckpt_path=auto >again; cmp dir again");
    CHECK(r.status == 0 && !test_contains(r.out, "changed"), "%d: %s", r.status, r.out);
    free(r.out);
}

TEST(standard_output_is_exactly_the_run_folder_s_name)
{
    test_run r = test_sh("$COHORT train " SMALL " trainer.max_steps=2 run.dir=some/run 2>err");
    CHECK(r.status == 0 && strcmp(r.out, "some/run\n") == 0, "\"%s\"", r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=2 task_name=mine 2>err");
    CHECK(strncmp(r.out, "logs/mine/runs/", 15) == 0 && r.out[strlen(r.out) - 1] == '\n', "\"%s\"", r.out);
    r.out[strlen(r.out) - 1] = '\0';
    CHECK(co_fs_is_dir(r.out), "there is no folder \"%s\"", r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=2 run.dir=j --json 2>err");
    json_t *v = NULL;
    CHECK_OK(co_json_parse(&v, r.out, strlen(r.out), "--json"));
    CHECK(strcmp(text_in(v, "dir"), "j") == 0 && number_in(v, "steps") == 2, "%s", r.out);
    json_decref(v);
    free(r.out);
}

/* --- going on ------------------------------------------------------------------------------------------- */
static void same_weights(const char *a, const char *b)
{
    char sha_a[65], sha_b[65];

    sha_of_run(sha_a, a);
    sha_of_run(sha_b, b);
    CHECK(strcmp(sha_a, sha_b) == 0, "%s has %s, %s has %s", a, sha_a, b, sha_b);
}

TEST(a_run_stopped_inside_an_epoch_goes_on_at_other_ranks_to_the_same_weights)
{
    succeeds("$COHORT train " SMALL
             " model.dropout=0.2 trainer.max_epochs=2 trainer.devices=1 run.dir=whole");
    succeeds("$COHORT train " SMALL " model.dropout=0.2 trainer.max_epochs=2 trainer.devices=3 run.dir=r "
             "trainer.max_steps=7");
    succeeds("$COHORT train " SMALL " model.dropout=0.2 trainer.max_epochs=2 trainer.devices=2 run.dir=r "
             "trainer.max_steps=30 ckpt_path=auto");
    succeeds("$COHORT train " SMALL " model.dropout=0.2 trainer.max_epochs=2 trainer.devices=1 run.dir=r "
             "ckpt_path=auto");
    same_weights("whole", "r");
    json_t *h = json_of("%s/header.json", "r");
    CHECK(json_array_size(json_object_get(h, "segments")) == 3, "%zu segments",
          json_array_size(json_object_get(h, "segments")));
    json_decref(h);
    test_run r = test_sh("grep -c resumed_at r/events.jsonl");
    CHECK(strcmp(r.out, "2\n") == 0, "%s resumptions are recorded", r.out);
    free(r.out);
}

TEST(auto_continues_the_folder_given_or_the_newest_unfinished_run_or_begins)
{
    test_run r = test_sh("$COHORT train " SMALL " trainer.max_steps=9 run.dir=a ckpt_path=auto");
    CHECK(r.status == 0 && test_contains(r.out, "nothing to continue from"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=12 run.dir=a ckpt_path=auto");
    CHECK(r.status == 0 && test_contains(r.out, "continuing after step 9"), "%s", r.out);
    free(r.out);

    /* without run.dir: one that was cut off (no summary) is found by its configuration */
    succeeds("$COHORT train " SMALL " trainer.max_steps=9 >dir && rm $(cat dir)/summary.json");
    succeeds("$COHORT train " SMALL
             " optim.lr=0.5 trainer.max_steps=9 >other && rm $(cat other)/summary.json");
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=12 ckpt_path=auto >again; cmp dir again");
    CHECK(r.status == 0 && test_contains(r.out, "continuing after step 9"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=12 ckpt_path=auto >third; cmp dir third");
    CHECK(r.status == 1 && test_contains(r.out, "starting anew"), "a finished run is continued: %s", r.out);
    free(r.out);
}

TEST(auto_alone_continues_the_newest_unfinished_run_with_its_own_configuration)
{
    test_run r = test_sh("$COHORT train ckpt_path=auto");
    CHECK(r.status == 2 && test_contains(r.out, "no unfinished run in logs/"), "%s", r.out);
    CHECK(!co_fs_exists("logs"), "something was trained");
    free(r.out);
    succeeds(
        "$COHORT train data=fake model=linear optim=sgd trainer.max_steps=9 task_name=other 2>err >dir && "
        "rm $(cat dir)/summary.json");
    r = test_sh("$COHORT >here && grep -F \"$(cat dir) ($COHORT train ckpt_path=auto continues it)\" here");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train ckpt_path=auto trainer.max_steps=12 2>err >again; cat err; cmp dir again");
    CHECK(r.status == 0 && test_contains(r.out, "the newest unfinished run, with its configuration"), "%s",
          r.out);
    CHECK(test_contains(r.out, "data      fake") && test_contains(r.out, "continuing after step 9"), "%s",
          r.out);
    free(r.out);
    r = test_sh("$COHORT train ckpt_path=auto 2>&1");
    CHECK(r.status == 2, "a finished run is continued: %s", r.out);
    free(r.out);
    succeeds("rm $(cat dir)/summary.json");
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=3 ckpt_path=auto 2>&1");
    CHECK(r.status == 0 && test_contains(r.out, "no unfinished run has this configuration, starting anew"),
          "%s", r.out);
    CHECK(test_contains(r.out, " is unfinished too; it has another configuration"), "%s", r.out);
    free(r.out);
}

TEST(auto_with_a_folder_that_holds_no_run_and_no_word_of_what_to_train_is_refused)
{
    static const char *const lines[] = {"run.dir=x ckpt_path=auto", "trainer.default_root_dir=x ckpt_path=auto",
                                        "run.dir=x ckpt_path=auto trainer.max_epochs=20 trainer.devices=1"};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT train %s", lines[i]);
        CHECK(r.status == 2 && test_contains(r.out, "there is no run in x"), "%s: %s", lines[i], r.out);
        CHECK(!co_fs_exists("x") && !co_fs_exists("logs"), "%s left something", lines[i]);
        free(r.out);
    }
    succeeds("$COHORT train " SMALL " run.dir=x ckpt_path=auto trainer.max_steps=2");
}

/* --- where a run ends ----------------------------------------------------------------------------------- */
TEST(steps_alone_lift_the_limit_of_epochs_and_the_hint_names_the_limit_that_ended_the_run)
{
    /* 10 epochs are 230 */
    test_run r = test_sh("$COHORT train " SMALL " trainer.max_steps=240 run.dir=a 2>&1");
    CHECK(r.status == 0 && test_contains(r.out, "240 in all"), "%s", r.out);
    CHECK(test_contains(r.out, "ckpt_path=auto trainer.max_steps=480\n"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train run.dir=a ckpt_path=auto trainer.max_steps=480 2>&1");
    CHECK(r.status == 0 && test_contains(r.out, "480 in all; continuing after step 240"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=240 trainer.max_epochs=2 run.dir=b 2>&1");
    CHECK(r.status == 0 && test_contains(r.out, "46 in all"), "both limits hold: %s", r.out);
    CHECK(test_contains(r.out, "ckpt_path=auto trainer.max_epochs=4\n"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train run.dir=b ckpt_path=auto 2>&1");
    CHECK(r.status == 0 && test_contains(r.out, "raise trainer.max_epochs to go on"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train experiment=demo trainer.max_steps=400 --cfg job"); /* 15 epochs are 345 */
    CHECK(r.status == 0 && test_contains(r.out, "  max_epochs: -1\n  max_steps: 400\n"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT plan experiment=demo trainer.max_steps=400");
    CHECK(r.status == 0 && test_contains(r.out, "400 in all"), "a file's epochs hold: %s", r.out);
    free(r.out);
}

TEST(no_limit_of_epochs_is_minus_one_or_null)
{
    static const char *const none[] = {"-1", "null"};

    for (size_t i = 0; i < CO_COUNT(none); i++) {
        test_run r = test_sh("$COHORT plan " SMALL " trainer.max_epochs=%s trainer.max_steps=300", none[i]);
        CHECK(r.status == 0 && test_contains(r.out, "300 in all"), "%s: %s", none[i], r.out);
        free(r.out);
        r = test_sh("$COHORT plan " SMALL " trainer.max_epochs=%s", none[i]);
        CHECK(r.status == 0 && test_contains(r.out, "23 per epoch, no limit"), "%s: %s", none[i], r.out);
        free(r.out);
    }
    test_run r = test_sh("$COHORT train " SMALL " trainer.max_epochs=-1 trainer.max_time=1s run.dir=t 2>&1");
    CHECK(r.status == 0 && test_contains(r.out, "no limit"), "%d: %s", r.status, r.out);
    CHECK(!test_contains(r.out, " left: "), "no end, no time left: %s", r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " trainer.max_epochs=0");
    CHECK(r.status == 2 && test_contains(r.out, "trainer.max_epochs: 0 is out of range"), "%s", r.out);
    free(r.out);
}

TEST(a_schedule_that_spans_the_run_is_refused_in_a_run_without_an_end)
{
    static const char *const spans[] = {"one_cycle", "cosine", "polynomial", "range"};
    static const char *const others[] = {"constant", "step", "multistep", "exponential", "plateau"};
    char wanted[120];

    for (size_t i = 0; i < CO_COUNT(spans); i++) {
        test_run r = test_sh("$COHORT plan " SMALL " schedule=%s trainer.max_epochs=%s 2>&1", spans[i],
                             i % 2 ? "null" : "-1");
        snprintf(wanted, sizeof wanted,
                 "schedule=%s needs an end: give trainer.max_epochs or trainer.max_steps", spans[i]);
        CHECK(r.status == 2 && test_contains(r.out, wanted), "%d: %s", r.status, r.out);
        free(r.out);
        r = test_sh("$COHORT plan " SMALL " schedule=%s trainer.max_epochs=-1 trainer.max_steps=30 2>&1",
                    spans[i]);
        CHECK(r.status == 0, "%d: %s", r.status, r.out);
        free(r.out);
    }
    for (size_t i = 0; i < CO_COUNT(others); i++) {
        test_run r = test_sh("$COHORT plan " SMALL " schedule=%s trainer.max_epochs=-1 2>&1", others[i]);
        CHECK(r.status == 0, "%s: %d: %s", others[i], r.status, r.out);
        free(r.out);
    }
}

TEST(a_line_that_only_names_the_run_continues_it_with_its_own_configuration)
{
    succeeds("$COHORT train " SMALL " optim.lr=0.01 seed=4 trainer.max_steps=20 run.dir=whole");
    succeeds("$COHORT train " SMALL " optim.lr=0.01 seed=4 trainer.max_steps=7 run.dir=r");
    succeeds("$COHORT train run.dir=r ckpt_path=auto trainer.max_steps=20");
    same_weights("whole", "r");
}

TEST(a_finished_run_is_left_as_it_is)
{
    succeeds("$COHORT train " SMALL " trainer.max_steps=7 run.dir=r && cp -r r copy");
    test_run r =
        test_sh("$COHORT train " SMALL " trainer.max_steps=7 run.dir=r ckpt_path=auto; diff -r copy r");
    CHECK(r.status == 0 && test_contains(r.out, "all its 7 steps") && test_contains(r.out, "\nr\n"), "%s",
          r.out);
    free(r.out);
}

TEST(a_torn_newest_checkpoint_is_named_and_the_one_before_it_is_used)
{
    succeeds("$COHORT train " SMALL " trainer.max_steps=20 run.dir=whole");
    succeeds("$COHORT train " SMALL
             " trainer.max_steps=10 callbacks.model_checkpoint.every_n_steps=5 run.dir=r");
    test_run r = test_sh("$COHORT predict r --split val --limit 1");
    CHECK(r.status == 0 && !test_contains(r.out, "is used instead"), "%s", r.out);
    free(r.out);
    succeeds("truncate -s -1 r/checkpoints/step_00000010/model.safetensors");
    static const char *const uses[] = {"test r --split val", "predict r --split val --limit 1"};
    for (size_t i = 0; i < CO_COUNT(uses); i++) {
        r = test_sh("$COHORT %s", uses[i]);
        CHECK(r.status == 0 &&
                  test_contains(r.out, "r/checkpoints/step_00000010 is not usable: model.safetensors") &&
                  test_contains(r.out, "checkpoint r/checkpoints/step_00000005 is used instead"),
              "%s: %s", uses[i], r.out);
        free(r.out);
    }
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=20 run.dir=r ckpt_path=auto");
    CHECK(r.status == 0, "%s", r.out);
    CHECK(test_contains(r.out, "r/checkpoints/step_00000010 is not usable: model.safetensors"), "%s", r.out);
    CHECK(test_contains(r.out, "continuing after step 5"), "%s", r.out);
    free(r.out);
    same_weights("whole", "r");
}

/* --- the program ---------------------------------------------------------------------------------------- */
TEST(the_program_alone_says_what_it_is_and_what_to_type)
{
    test_run r = test_sh("$COHORT 2>err; test ! -s err");
    CHECK(r.status == 0 && test_contains(r.out, "cohort train experiment=demo"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT --version");
    CHECK(r.status == 0 && strncmp(r.out, "cohort ", 7) == 0 && r.out[7] >= '0' && r.out[7] <= '9', "%s",
          r.out);
    free(r.out);
    r = test_sh("$COHORT --help");
    CHECK(r.status == 0 && test_contains(r.out, "Commands:") && test_contains(r.out, "\n  stop "), "%s", r.out);
    free(r.out);
}

TEST(help_on_help_is_help)
{
    static const char *const lines[] = {"help", "help --help", "help -h"};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT %s", lines[i]);
        CHECK(r.status == 0 && test_contains(r.out, "\nCommands:\n"), "`%s` exits with %d: %s", lines[i],
              r.status, r.out);
        free(r.out);
    }
}

TEST(no_progress_is_printed_after_the_line_of_the_test)
{
    test_run r = test_sh("$COHORT train " SMALL " trainer.max_epochs=60 console=plain run.dir=p 2>&1");
    const char *at = strstr(r.out, "test loss ");

    CHECK(r.status == 0 && at && !strstr(at, "  eta ") && !strstr(at, "step 1380/1380"), "%s", r.out);
    free(r.out);
}

TEST(every_command_has_help_with_examples_and_refuses_what_it_does_not_know)
{
    static const char *const names[] = {"train", "test", "predict", "ckpt", "bench", "ps", "stop"};

    for (size_t i = 0; i < CO_COUNT(names); i++) {
        test_run r = test_sh("$COHORT %s --help 2>err; test ! -s err", names[i]);
        CHECK(r.status == 0 && test_contains(r.out, names[i]), "%s: %s", names[i], r.out);
        free(r.out);
        r = test_sh("$COHORT %s --nonsense", names[i]);
        CHECK(r.status == 2 && test_contains(r.out, "--nonsense"), "%s: exit status %d, %s", names[i],
              r.status, r.out);
        free(r.out);
    }
    test_run r = test_sh("$COHORT train --help model");
    CHECK(r.status == 0 && test_contains(r.out, "model.hidden"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train --help mdoel");
    CHECK(r.status == 2, "%s", r.out);
    free(r.out);
}

/* Standard error of a run on a terminal of its own. */
static char *on_a_terminal(void)
{
    static char text[1 << 18];
    size_t len = 0;
    ssize_t n;
    int master, st;
    pid_t pid = forkpty(&master, NULL, NULL, &(struct winsize){.ws_row = 24, .ws_col = 100});

    CHECK(pid >= 0, "forkpty failed");
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        execl("/bin/sh", "sh", "-c", "exec $COHORT train " SMALL " trainer.max_epochs=3 run.dir=tty",
              (char *)NULL);
        _exit(127);
    }
    while (len < sizeof text - 1 && (n = read(master, text + len, sizeof text - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    waitpid(pid, &st, 0);
    CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 0, "status %d: %s", st, text);
    return text;
}

TEST(a_terminal_gets_a_bar_and_a_pipe_gets_lines)
{
    char *tty = on_a_terminal();
    CHECK(test_contains(tty, "\r\033[K") && test_contains(tty, "step 69/69"), "no bar: %s", tty);
    test_run r = test_sh("$COHORT train " SMALL " trainer.max_epochs=3 run.dir=pipe 2>&1 | cat");
    CHECK(!strchr(r.out, '\r') && !strchr(r.out, '\033'), "a bar in a pipe: %s", r.out);
    CHECK(test_contains(r.out, "epoch 3/3  step 69  train loss"), "%s", r.out);
    free(r.out);
    same_weights("tty", "pipe");
}

TEST(a_run_on_a_file_named_from_here_goes_on_from_anywhere)
{
    succeeds("mkdir d; i=0; while [ $i -lt 60 ]; do echo \"line $i of a text\"; i=$((i+1)); "
             "done >d/t.txt");
    succeeds("$COHORT train data=text data.path=./d/t.txt model=lm trainer.max_steps=2 run.dir=a 2>a.err");
    succeeds("cd d && $COHORT train run.dir=../a ckpt_path=auto trainer.max_steps=4 >../b.out 2>../b.err && "
             "! grep 'is not that of the checkpoint' ../b.err");
}

TEST(null_switches_a_callback_off_and_no_batches_are_no_validation)
{
    test_run r = test_sh("$COHORT train callbacks.model_checkpoint=null callbacks.early_stopping=null "
                         "callbacks.early_stopping.monitor=val/acc --cfg job 2>&1");
    CHECK(r.status == 0 && test_contains(r.out, "    enabled: false\n") &&
              test_contains(r.out, "    patience: 0\n"),
          "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " trainer.limit_val_batches=0 trainer.kernels=ref.1 2>&1");
    CHECK(r.status == 0 && !strstr(r.out, "val/loss"), "%s", r.out);
    free(r.out);
}
