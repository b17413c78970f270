/* Lines that continue or repeat a run: what they take from it, and what they say when they differ from it. */
#include "cli/runs.h"

static test_run runs(int status, const char *line)
{
    test_run r = test_sh("%s 2>&1", line);

    CHECK(r.status == status, "%s: exit status %d\n%s", line, r.status, r.out);
    return r;
}

static void says(int status, const char *line, const char *what)
{
    test_run r = runs(status, line);

    CHECK(test_contains(r.out, what), "`%s` does not say %s:\n%s", line, what, r.out);
    free(r.out);
}

#define RUN "$COHORT train " SMALL " optim.lr=0.001 trainer.max_epochs=1 "

TEST(a_line_that_differs_from_the_run_it_continues_names_the_keys_and_both_values)
{
    succeeds(RUN "run.dir=c");
    says(0, "$COHORT train run.dir=c ckpt_path=auto optim.lr=0.5 optim.weight_decay=0.25 trainer.max_epochs=1",
         "optim.lr=0.5 (the run has 0.001), optim.weight_decay=0.25 (the run has 0.01)\n");
    says(0, "$COHORT train run.dir=c ckpt_path=auto optim.lr=0.5 trainer.max_epochs=2",
         "a new segment begins: optim.lr=0.5 (the run has 0.001)\n");
    test_run r = runs(0, "$COHORT train run.dir=c ckpt_path=auto trainer.max_epochs=2 trainer.devices=1");
    CHECK(!strstr(r.out, "differs") && !strstr(r.out, "(the run has"), "%s", r.out);
    free(r.out);
}

TEST(the_line_that_repeats_a_run_that_max_time_ended_gives_its_steps)
{
    char first[65], again[65];

    succeeds("$COHORT train " SMALL " trainer.max_epochs=-1 trainer.max_time=1s run.dir=a 2>err");
    json_t *v = json_of("%s/summary.json", "a");
    const char *line = text_in(v, "reproduce");
    char steps[64];
    snprintf(steps, sizeof steps, " trainer.max_steps=%lld ", number_in(v, "steps"));
    CHECK(test_contains(line, steps) && !strstr(line, "max_time"), "%s", line);
    test_run r = test_sh("grep -F 'reproduce: ' err && %.*s run.dir=b", (int)strcspn(line, "#"), line);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    sha_of_run(first, "a");
    sha_of_run(again, "b");
    CHECK(strcmp(first, again) == 0, "%s: %s is not %s", line, again, first);
    json_decref(v);
}

TEST(a_run_that_max_time_ended_under_a_schedule_of_its_length_is_said_not_to_be_repeatable)
{
    says(0, "$COHORT train " SMALL " schedule=cosine trainer.max_epochs=100000 trainer.max_time=1s run.dir=a",
         "reproduce: not possible with one line: trainer.max_time ended the run at step ");
}

TEST(a_run_s_config_file_as_an_experiment_begins_a_new_run_elsewhere)
{
    char first[65], again[65];

    succeeds(RUN "run.dir=mine");
    sha_of_run(first, "mine");
    succeeds("cp -r mine copy && $COHORT train experiment=mine/config.yaml >dir && grep -q ^logs/ dir");
    succeeds("ln -s $(cat dir) second && diff -r mine copy");
    sha_of_run(again, "second");
    CHECK(strcmp(first, again) == 0, "%s is not %s", again, first);
    succeeds("$COHORT train run.dir=mine ckpt_path=auto trainer.max_epochs=2");
    succeeds("rm -r copy && cp -r mine copy && $COHORT train experiment=mine/config.yaml >dir && "
             "grep -q ^logs/ dir && diff -r mine copy");
    succeeds(
        "cd mine && $COHORT train experiment=config.yaml run.dir=../third && test -f ../third/header.json");
}

TEST(auto_without_a_run_to_continue_and_with_nothing_but_limits_is_refused)
{
    static const char *const lines[] = {"ckpt_path=auto trainer.max_epochs=12",
                                        "ckpt_path=auto trainer.devices=1 trainer.max_time=1s"};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT train %s 2>&1", lines[i]);
        CHECK(r.status == 2 && test_contains(r.out, "no unfinished run in logs/") &&
                  test_contains(r.out, "say what to train"),
              "`%s` exits with %d: %s", lines[i], r.status, r.out);
        free(r.out);
    }
    CHECK(!co_fs_exists("logs"), "a run began");
}
