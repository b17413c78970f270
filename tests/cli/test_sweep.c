/* `cohort train -m`: every job in its own folder, with the same bits as when it runs alone; --cfg shows what
 * would run. */
#include "cli/runs.h"

#include <signal.h>

TEST(a_sweep_runs_every_job_in_its_folder_with_the_bits_of_a_run_alone)
{
    test_run r =
        test_sh("$COHORT train -m " SMALL " optim.lr=0.01,0.02 seed=1,2 trainer.max_steps=5 run.dir=all");
    CHECK(r.status == 0, "%d: %s", r.status, r.out);
    CHECK(test_contains(r.out, "optim.lr=0.02 seed=1  done"), "no table: %s", r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " optim.lr=0.02 seed=1 trainer.max_steps=5 run.dir=alone");
    CHECK(r.status == 0, "%d: %s", r.status, r.out);
    free(r.out);
    json_t *alone = json_of("%s/summary.json", "alone"), *job = json_of("%s/summary.json", "all/2");
    CHECK(!strcmp(text_in(alone, "weights_sha256"), text_in(job, "weights_sha256")), "other bits in a sweep");
    json_decref(alone);
    json_decref(job);
    json_t *rows = json_of("%s/multirun.json", "all");
    CHECK(json_array_size(rows) == 4, "%zu rows", json_array_size(rows));
    CHECK(!strcmp(text_in(json_array_get(rows, 3), "words"), "optim.lr=0.02 seed=2"), "order");
    json_decref(rows);
}

TEST(a_sweep_without_run_dir_stands_in_multiruns)
{
    test_run r = test_sh("$COHORT train -m " SMALL " seed=1,2 trainer.max_steps=2 2>/dev/null");
    const char *dir = strstr(r.out, "logs/train/multiruns/");
    CHECK(r.status == 0 && dir, "%d: %s", r.status, r.out);
    CHECK(co_fs_is_dir("logs/train/multiruns") && !co_fs_exists("logs/train/runs"), "where the runs are");
    free(r.out);
}

TEST(a_bad_job_is_refused_before_the_first_one_starts)
{
    test_run r = test_sh("$COHORT train -m seed=1,x trainer.max_steps=2");
    CHECK(r.status == 2 && test_contains(r.out, "cohort: seed: \"x\" is not a whole number"), "%s", r.out);
    CHECK(!co_fs_exists("logs"), "something was made");
    free(r.out);
    r = test_sh("$COHORT train seed=1,2");
    CHECK(r.status == 2 && test_contains(r.out, " train -m` runs them all"), "%s", r.out);
    free(r.out);
}

TEST(all_jobs_of_a_sweep_are_planned_before_the_first_one_starts)
{
    static const struct {
        const char *words, *says;
    } lines[] = {{"data=digits,mnist", "cohort: data=mnist needs data.dir=FOLDER"},
                 {"data=digits model=mlp,lm", "cohort: model=lm needs text"},
                 {"optim.lr=0.1,0.2 model=mlp,lm data=mnist,digits", "cohort: model=lm needs text"},
                 {"seed=1,2 data=digits trainer.devices=1,99999", "cohort: trainer.devices"},
                 {"seed=1,2 ckpt_path=nowhere", "cohort: ckpt_path: nowhere does not exist"}};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT train -m %s trainer.max_steps=2", lines[i].words);
        CHECK(r.status == 2 && test_contains(r.out, lines[i].says), "%s: %d: %s", lines[i].words, r.status,
              r.out);
        CHECK(!test_contains(r.out, "job 0 of"), "%s: a job was started: %s", lines[i].words, r.out);
        CHECK(!co_fs_exists("logs"), "%s: something was made", lines[i].words);
        free(r.out);
    }
}

static bool has_first_step(void *ctx)
{
    return co_fs_exists("all/0/events.jsonl");
}

TEST(a_sweep_asked_to_stop_stops_its_job_and_starts_no_other)
{
    pid_t pid =
        test_spawn("log", "exec $COHORT train -m " SMALL " seed=1,2 trainer.max_epochs=100000 run.dir=all");
    test_until(has_first_step, NULL, 20, "the first job");
    kill(pid, SIGTERM);
    int status = test_wait(pid, 30);
    CHECK(status == 75, "status %d", status);
    CHECK(!co_fs_exists("all/1"), "the second job was started");
    json_t *rows = json_of("%s/multirun.json", "all");
    CHECK(json_array_size(rows) == 1 && !strcmp(text_in(json_array_get(rows, 0), "status"), "stopped"),
          "row");
    json_decref(rows);
}

static bool log_has(void *text)
{
    test_run r = test_sh("cat log");
    bool there = test_contains(r.out, text);

    free(r.out);
    return there;
}

static void check_stopped(pid_t pid, const char *when)
{
    int status = test_wait(pid, 30);
    json_t *rows = json_of("%s/multirun.json", "all"), *row = json_array_get(rows, 0);

    CHECK(status == 75, "%s: status %d", when, status);
    CHECK(json_array_size(rows) == 1 && !strcmp(text_in(row, "status"), "stopped"), "%s: %s", when,
          text_in(row, "status"));
    CHECK(number_in(row, "exit_status") == 75, "%s: exit_status", when);
    CHECK(log_has("continue the sweep with: "), "%s: no line to continue with", when);
    json_decref(rows);
}

TEST(a_sweep_that_is_stopped_as_a_job_begins_is_stopped_and_not_failed)
{
    pid_t pid =
        test_spawn("log", "exec $COHORT train -m " SMALL " seed=1,2 trainer.max_epochs=100000 run.dir=all");
    test_until(log_has, "job 0 of 2", 20, "the first job");
    kill(pid, SIGINT);
    check_stopped(pid, "at once");
}

TEST(a_sweep_that_is_stopped_in_a_search_for_a_learning_rate_is_stopped)
{
    pid_t pid = test_spawn("log", "exec $COHORT train -m " SMALL
                                  " seed=1,2 tune.lr=true tune.steps=90000 run.dir=all");
    test_until(log_has, "looking for a learning rate", 20, "the search");
    kill(pid, SIGINT);
    check_stopped(pid, "in the search");
    CHECK(log_has("there is nothing to continue from"), "no reason");
}

TEST(a_sweep_that_is_stopped_twice_before_a_checkpoint_is_stopped)
{
    pid_t pid = test_spawn("log", "exec $COHORT train -m " SMALL
                                  " seed=1,2 trainer.max_epochs=100000 console=plain run.dir=all");
    test_until(log_has, "run       all/0", 20, "the first job");
    kill(pid, SIGINT);
    test_until(log_has, "asked to stop", 20, "the answer");
    kill(pid, SIGINT);
    check_stopped(pid, "twice");
}

TEST(a_search_for_a_learning_rate_answers_a_signal_from_its_first_message_on)
{
    pid_t pid = test_spawn("log", "exec $COHORT train " SMALL " tune.lr=true tune.steps=90000");
    test_until(log_has, "looking for a learning rate", 20, "the search");
    kill(pid, SIGINT);
    int status = test_wait(pid, 30);
    CHECK(status == 75, "status %d", status);
    CHECK(log_has("stopped while looking for a learning rate"), "not said");
    CHECK(!co_fs_exists("logs"), "something was made");
}

static bool second_job_runs(void *ctx)
{
    return co_fs_exists("all/1/events.jsonl");
}

TEST(multirun_json_has_a_job_as_soon_as_it_has_ended)
{
    pid_t pid = test_spawn("log", "exec $COHORT train -m " SMALL " trainer.max_epochs=1,100000 run.dir=all");
    test_until(second_job_runs, NULL, 20, "the second job");
    json_t *rows = json_of("%s/multirun.json", "all");
    CHECK(json_array_size(rows) == 1 && !strcmp(text_in(json_array_get(rows, 0), "status"), "done"),
          "%zu rows", json_array_size(rows));
    json_decref(rows);
    kill(pid, SIGTERM);
    CHECK(test_wait(pid, 30) == 75, "not stopped");
}

TEST(a_stopped_sweep_says_what_is_left_and_the_line_that_goes_on_with_it)
{
    pid_t pid =
        test_spawn("log", "exec $COHORT train -m " SMALL " seed=1,2,3 trainer.max_epochs=100000 run.dir=all");
    test_until(has_first_step, NULL, 20, "the first job");
    kill(pid, SIGTERM);
    CHECK(test_wait(pid, 30) == 75, "not stopped");
    test_run log = test_sh("cat log");
    CHECK(test_contains(log.out, "stopped in job 0; jobs 1 to 2 were not started\n"), "%s", log.out);
    CHECK(test_contains(log.out, "\ncontinue this job alone with: ") &&
              !test_contains(log.out, "\ncontinue with: "),
          "%s", log.out);
    const char *line = strstr(log.out, "\ncontinue the sweep with: ");
    CHECK(line && strstr(line, " train -m " SMALL " seed=1,2,3 "), "%s", log.out);
    line += strlen("\ncontinue the sweep with: ");
    test_run r = test_sh("%.*s trainer.max_epochs=1", (int)strcspn(line, "\n"), line);
    CHECK(co_fs_exists("all/2/summary.json"), "%d: %s", r.status, r.out);
    free(r.out);
    free(log.out);
}

TEST(the_table_of_a_sweep_fits_the_terminal)
{
    for (int columns = 60; columns <= 140; columns += 40) {
        test_run r =
            test_sh("rm -rf all; COLUMNS=%d $COHORT train -m " SMALL
                    " seed=1,2 optim.weight_decay=0.0125,0.025 trainer.max_steps=2 run.dir=all 2>/dev/null",
                    columns);
        CHECK(r.status == 0, "%s", r.out);
        for (char *row = strtok(r.out, "\n"); row; row = strtok(NULL, "\n"))
            CHECK((int)strlen(row) <= columns, "%d columns are %zu: %s", columns, strlen(row), row);
        free(r.out);
    }
}

TEST(cfg_job_shows_the_configuration_and_runs_nothing)
{
    test_run r = test_sh("X=hunter2 $COHORT train --cfg job 'task_name=${oc.env:X}' seed=7");
    CHECK(r.status == 0 && test_contains(r.out, "seed: 7\n") && !test_contains(r.out, "hunter2"), "%s", r.out);
    free(r.out);
    r = test_sh("X=hunter2 $COHORT train -c job --resolve 'task_name=${oc.env:X}'");
    CHECK(r.status == 0 && test_contains(r.out, "task_name: hunter2\n"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train --cfg hydra");
    CHECK(r.status == 2 && test_contains(r.out, "only --cfg job exists"), "%s", r.out);
    free(r.out);
    CHECK(!co_fs_exists("logs"), "something was made");
}

TEST(plan_says_in_one_sentence_that_it_plans_no_sweeps)
{
    static const char *const lines[] = {"-m optim.lr=1,2", "optim.lr=1,2 --multirun", "-m seed=1"};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT plan %s", lines[i]);
        CHECK(r.status == 2 && test_contains(r.out, "cohort: plan takes one run, not a sweep (-m): "),
              "%s: %d: %s", lines[i], r.status, r.out);
        CHECK(strchr(r.out, '\n') == r.out + strlen(r.out) - 1, "%s: more than a line: %s", lines[i], r.out);
        free(r.out);
    }
}
