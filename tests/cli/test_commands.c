/* `cohort test`, `predict`, `ckpt`, `ps` and `stop` on short runs. */
#include "cli/runs.h"

#include <signal.h>
#include <unistd.h>

/* --- test and predict ----------------------------------------------------------------------------------- */
/* One object on standard output. */
static json_t *object_of(const char *line)
{
    json_t *v = NULL;
    test_run r = test_sh("%s 2>err", line);

    CHECK(r.status == 0, "%s: exit status %d\n%s", line, r.status, r.out);
    CHECK_OK(co_json_parse(&v, r.out, strlen(r.out), line));
    free(r.out);
    return v;
}

static double value_in(const json_t *v, const char *key)
{
    double x = -1;

    CHECK(co_json_f64(v, key, &x), "no number \"%s\"", key);
    return x;
}

/* `cohort test` on the last checkpoint gives what training recorded, to the last bit. */
static void agrees_with_training(const char *words, const char *metric, const char *dir)
{
    char line[512], key[32];

    snprintf(line, sizeof line, "$COHORT train %s run.dir=%s", words, dir);
    succeeds(line);
    json_t *summary = json_of("%s/summary.json", dir), *metrics = json_object_get(summary, "metrics");
    for (int i = 0; i < 2; i++) {
        const char *split = i ? "val" : "test";
        snprintf(line, sizeof line, "$COHORT test --json ckpt_path=%s --split %s", dir, split);
        json_t *v = object_of(line);
        CHECK(strcmp(text_in(v, "split"), split) == 0, "%s", text_in(v, "split"));
        snprintf(key, sizeof key, "%s/loss", split);
        CHECK(value_in(v, "loss") == value_in(metrics, key), "%s: %.17g, training had %.17g", key,
              value_in(v, "loss"), value_in(metrics, key));
        snprintf(key, sizeof key, "%s/%s", split, metric);
        CHECK(value_in(v, metric) == value_in(metrics, key), "%s differs", key);
        CHECK(strcmp(text_in(v, "weights_sha256"), text_in(summary, "weights_sha256")) == 0, "other weights");
        CHECK(number_in(v, "step") == number_in(summary, "steps") && number_in(v, "count") > 0,
              "step or count");
        json_decref(v);
    }
    json_decref(summary);
}

TEST(test_gives_the_values_that_training_gave_for_every_task)
{
    agrees_with_training("data=digits model=cnn model.width=4 trainer.max_steps=30 trainer.devices=2", "acc",
                         "c");
    agrees_with_training("data=fake model=linear trainer.max_epochs=1", "mae", "f");
    agrees_with_training("data=text data.path=$REPO/tests/data/verse.txt model=lm trainer.max_epochs=2",
                         "acc", "t");
    agrees_with_training(SMALL " trainer.kernels=far trainer.max_steps=5 trainer.devices=1", "acc", "far");
}

TEST(test_takes_a_checkpoint_alone_with_the_words_that_describe_it)
{
    succeeds("$COHORT train " SMALL " trainer.max_steps=30 run.dir=r && cp -rL r/checkpoints/last alone");
    test_run a = test_sh("$COHORT test ckpt_path=r 2>err"),
             b = test_sh("$COHORT test ckpt_path=alone " SMALL " 2>err");
    CHECK(a.status == 0 && strncmp(a.out, "test loss ", 10) == 0 && test_contains(a.out, "(180 samples)") &&
              test_contains(a.out, "weights_sha256 "),
          "%s", a.out);
    CHECK(strcmp(a.out, b.out) == 0, "%s%s", a.out, b.out);
    free(a.out);
    free(b.out);
    a = test_sh("$COHORT test ckpt_path=alone"); /* hidden=128 by default */
    CHECK(a.status == 2 && test_contains(a.out, "tensor fc1.bias is [16] there, [128] here"), "%s", a.out);
    free(a.out);
}

TEST(a_path_with_blanks_and_quotes_is_a_path)
{
    succeeds("mkdir \"it's a\\\\b\" && $COHORT train " SMALL
             " trainer.max_steps=2 run.dir=r && mv r \"it's a\\\\b\"");
    succeeds("cd \"it's a\\\\b\" && $COHORT test ckpt_path=r");
    test_run r = test_sh(
        "$COHORT train " SMALL " trainer.max_epochs=9 \"run.dir=it is\" 2>log >out & pid=$!;"
        " until test -e 'it is/lease.json'; do :; done; kill -TERM $pid; wait $pid; echo $?; cat log");
    CHECK(strncmp(r.out, "75\n", 3) == 0 || strncmp(r.out, "0\n", 2) == 0, "%s", r.out);
    if (strncmp(r.out, "75\n", 3) == 0)
        CHECK(test_contains(r.out, " 'run.dir=it is' ckpt_path=auto"), "%s", r.out);
    free(r.out);
}

/* 180 samples in items of 32: a limit inside the second item cuts there. */
TEST(predict_gives_a_line_per_sample_in_order)
{
    succeeds("$COHORT train data=digits model=cnn model.width=4 trainer.max_steps=60 run.dir=r");
    test_run r = test_sh("$COHORT predict ckpt_path=r");
    int n = 0, id, choice;
    double p;
    for (char *line = r.out; *line; line = strchr(line, '\n') + 1, n++)
        CHECK(sscanf(line, "%d %d %lf", &id, &choice, &p) == 3 && id == n && choice >= 0 && choice < 10 &&
                  p >= 0.1 && p <= 1,
              "line %d: %.40s", n, line);
    CHECK(n == 180, "%d lines", n);
    test_run few = test_sh("$COHORT predict ckpt_path=r --limit 33");
    CHECK(strncmp(few.out, r.out, strlen(few.out)) == 0, "a limit changes the lines");
    n = 0;
    for (char *s = few.out; (s = strchr(s, '\n')); s++)
        n++;
    CHECK(n == 33, "%d lines", n);
    free(few.out);
    free(r.out);
    json_t *v = object_of("$COHORT predict --json --limit 1 --split val ckpt_path=r");
    CHECK(number_in(v, "id") == 0 && number_in(v, "class") < 10 && value_in(v, "probability") <= 1, "object");
    json_decref(v);
}

TEST(predict_gives_values_and_tokens_where_the_task_is_that)
{
    succeeds(
        "$COHORT train data=fake model=linear data.noise=0 optim.lr=0.1 trainer.max_epochs=20 run.dir=f");
    json_t *v = object_of("$COHORT predict --json --limit 1 ckpt_path=f");
    CHECK(json_array_size(json_object_get(v, "values")) == 1, "not one value");
    json_decref(v);
    succeeds("$COHORT train data=text data.path=$REPO/tests/data/verse.txt model=lm trainer.max_steps=2 "
             "run.dir=t");
    v = object_of("$COHORT predict --json --limit 1 ckpt_path=t");
    CHECK(strlen(text_in(v, "token")) <= 4 && value_in(v, "probability") > 0, "no token");
    json_decref(v);
    test_run r = test_sh("$COHORT predict --limit 3 ckpt_path=t");
    CHECK(strncmp(r.out, "0 \"", 3) == 0 && test_contains(r.out, "\n2 \""), "%s", r.out);
    free(r.out);
}

/* All lines are the same, so the sample of the split is the line that is given later. */
TEST(predict_of_a_run_on_text_needs_no_text_file)
{
    succeeds("i=0; while [ $i -lt 20 ]; do echo 'abcab'; i=$((i+1)); done > t.txt; $COHORT train data=text "
             "data.path=t.txt model=lm trainer.max_steps=4 data.batch_size=8 run.dir=t logger=none "
             "run.book=false");
    test_run split = test_sh("$COHORT predict --limit 1 ckpt_path=t");
    test_run lines = test_sh("printf 'abcab\\nabc\\n\\n' | $COHORT predict --lines ckpt_path=t");
    CHECK(split.status == 0 && lines.status == 0 && strncmp(lines.out, split.out, strlen(split.out)) == 0 &&
              test_contains(lines.out, "\n1 ") && test_contains(lines.out, "\n2 "),
          "the split: %s\nlines: %s", split.out, lines.out);
    succeeds("rm t.txt");
    test_run gone = test_sh("printf 'abcab\\nabc\\n\\n' | $COHORT predict ckpt_path=t 2>said");
    CHECK(gone.status == 0 && strcmp(gone.out, lines.out) == 0, "%s", gone.out);
    succeeds("grep 't.txt: No such file or directory; the lines of standard input are read instead' said");
    test_run bad = test_sh("printf 'abc\\nabd\\n' | $COHORT predict ckpt_path=t 2>&1");
    CHECK(bad.status == 2 && test_contains(bad.out, "line 2 has the character d (U+0064)"), "%d %s",
          bad.status, bad.out);
    test_run with_split = test_sh("$COHORT predict --split test ckpt_path=t 2>&1");
    CHECK(with_split.status == 2 && test_contains(with_split.out, "No such file"), "%s", with_split.out);
    free(split.out);
    free(lines.out);
    free(gone.out);
    free(bad.out);
    free(with_split.out);
}

/* --- ckpt ----------------------------------------------------------------------------------------------- */
TEST(ckpt_lists_hashes_and_verifies)
{
    char sha[65];
    succeeds("$COHORT train " SMALL
             " trainer.max_steps=10 callbacks.model_checkpoint.every_n_steps=5 run.dir=r");
    sha_of_run(sha, "r");
    test_run r = test_sh("$COHORT ckpt hash r/checkpoints/last");
    CHECK(r.status == 0 && strncmp(r.out, sha, 64) == 0 && r.out[64] == '\n' && !r.out[65], "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT ckpt verify r/checkpoints/step_00000005 r/checkpoints/last");
    CHECK(r.status == 0 && strcmp(r.out, "r/checkpoints/step_00000005: ok\nr/checkpoints/last: ok\n") == 0,
          "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT ckpt ls r");
    CHECK(r.status == 0 && test_contains(r.out, "step_00000005") && test_contains(r.out, "good  <- last"),
          "%s", r.out);
    sha[12] = '\0';
    CHECK(test_contains(r.out, sha), "%s", r.out);
    free(r.out);

    succeeds("printf x | dd of=r/checkpoints/step_00000005/model.safetensors bs=1 seek=300 conv=notrunc");
    r = test_sh("$COHORT ckpt verify r/checkpoints/last r");
    CHECK(r.status == 1 && test_contains(r.out, "step_00000005: ") &&
              test_contains(r.out, "SHA-256 differs") && test_contains(r.out, "last: ok"),
          "exit status %d: %s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT ckpt ls r/checkpoints");
    CHECK(r.status == 0 && test_contains(r.out, "bad: ") && test_contains(r.out, "good  <- last"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT ckpt hash r/checkpoints/step_00000005");
    CHECK(r.status == 1 && test_contains(r.out, "SHA-256 differs"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT ckpt ls r --json 2>err | grep -c '\"good\":'");
    CHECK(strcmp(r.out, "2\n") == 0, "%s", r.out);
    free(r.out);
}

/* --- ps and stop ---------------------------------------------------------------------------------------- */
#define LONG_RUN                                                                                             \
    SMALL " trainer.max_epochs=1000000 trainer.max_time=2m callbacks.model_checkpoint.every_n_steps=50"

/* A registry of this test's own: --all must reach no other test's runs. */
static void own_registry(void)
{
    char dir[4096];

    CHECK(getcwd(dir, sizeof dir), "no working directory");
    setenv("XDG_RUNTIME_DIR", dir, 1);
}

static pid_t start_run(const char *dir)
{
    char last[64], log[64];

    snprintf(last, sizeof last, "%s/checkpoints/last", dir);
    snprintf(log, sizeof log, "log-%s", dir);
    pid_t pid = test_spawn(log, "exec $COHORT train " LONG_RUN " run.dir=%s", dir);
    test_until(is_there, last, 20, "a first checkpoint");
    return pid;
}

TEST(ps_shows_the_runs_and_stop_ends_the_one_that_is_named)
{
    char text[64];

    own_registry();
    pid_t a = start_run("a"), b = start_run("b");
    test_run r = test_sh("$COHORT ps");
    snprintf(text, sizeof text, "%d  ", (int)a);
    CHECK(r.status == 0 && test_contains(r.out, text) && test_contains(r.out, "/a\n"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT ps --json | head -1");
    json_t *v = NULL;
    CHECK_OK(co_json_parse(&v, r.out, strlen(r.out), "ps"));
    CHECK(number_in(v, "pid") == a && strcmp(text_in(v, "task"), "train") == 0, "%s", r.out);
    json_decref(v);
    free(r.out);

    r = test_sh("$COHORT stop ./nowhere");
    snprintf(text, sizeof text, "%d  ", (int)b);
    CHECK(r.status == 2 && test_contains(r.out, "nowhere") && test_contains(r.out, text), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT stop ./a/ --wait");
    CHECK(r.status == 0 && test_contains(r.out, "asked to save and stop") && test_contains(r.out, ": stopped\n"),
          "%s", r.out);
    free(r.out);
    CHECK(test_wait(a, 20) == 75, "a did not stop with 75");
    CHECK(test_wait(b, 0) == -1, "b was stopped too");
    r = test_sh("$COHORT stop %d", (int)b);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    CHECK(test_wait(b, 20) == 75, "b did not stop with 75");
    r = test_sh("$COHORT ps");
    CHECK(r.status == 0 && test_contains(r.out, "no runs"), "%s", r.out);
    free(r.out);
}

static bool has_time_left(void *unused)
{
    (void)unused;
    test_run r = test_sh("$COHORT ps --json");
    json_t *v = NULL;
    bool yes = r.out[0] == '{' && co_json_parse(&v, r.out, strlen(r.out), "ps") == CO_OK &&
               json_is_real(json_object_get(v, "left_s"));

    json_decref(v);
    free(r.out);
    return yes;
}

TEST(ps_shows_epoch_step_their_totals_and_the_time_left)
{
    own_registry();
    pid_t pid = test_spawn("log", "exec $COHORT train " SMALL " trainer.max_epochs=90000 run.dir=a");
    test_until(has_time_left, NULL, 30, "the time left");
    test_run r = test_sh("$COHORT ps --json");
    json_t *v = NULL;
    CHECK_OK(co_json_parse(&v, r.out, strlen(r.out), "ps"));
    CHECK(number_in(v, "steps") == 23 * 90000 && number_in(v, "epochs") == 90000 &&
              number_in(v, "epoch") >= 1 && number_in(v, "step") >= 1,
          "%s", r.out);
    json_decref(v);
    free(r.out);
    r = test_sh("$COHORT ps");
    CHECK(test_contains(r.out, "time left") && test_contains(r.out, "/90000 ") &&
              test_contains(r.out, "/2070000 ") &&
              (test_contains(r.out, " min ") || test_contains(r.out, " s ") || test_contains(r.out, " h ")),
          "%s", r.out);
    free(r.out);
    kill(pid, SIGTERM);
    CHECK(test_wait(pid, 20) == 75, "it does not stop");
}

TEST(stop_all_asks_every_run_of_the_registry)
{
    own_registry();
    pid_t a = start_run("a"), b = start_run("b");
    test_run r = test_sh("$COHORT stop --all --json");
    CHECK(r.status == 0 && test_contains(r.out, "/a\"") && test_contains(r.out, "/b\""), "%s", r.out);
    free(r.out);
    CHECK(test_wait(a, 20) == 75 && test_wait(b, 20) == 75, "one did not stop");
    r = test_sh("$COHORT stop --all");
    CHECK(r.status == 0 && test_contains(r.out, "no runs"), "%s", r.out);
    free(r.out);
}

/* --- children ------------------------------------------------------------------------------------------- */
TEST(commands_hear_of_their_children_where_sigchld_is_ignored)
{
    static const char *const lines[][8] = {
        {"cohort", "launch", "--no-python", "sh", "-c", "exit 3", NULL},
        {"cohort", "launch", "--hosts=localhost", "--no-python", "sh", "-c", "exit 3", NULL},
        {"cohort", "train", "-m", "data=digits", "model=mlp", "trainer.max_steps=2", "seed=1,2", NULL}};
    static const int want[] = {3, 3, 0};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGCHLD, SIG_IGN);
            setenv("TMPDIR", ".", 1);
            execv(test_cohort(), (char **)lines[i]);
            _exit(127);
        }
        int status = test_wait(pid, 15);
        CHECK(status == want[i], "line %zu: status %d, not %d", i, status, want[i]);
    }
}
