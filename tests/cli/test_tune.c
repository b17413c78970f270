/* tune.lr: what the curve suggests; a run with the found rate equals a run with that rate typed. */
#include "cli/tune_int.h"

#include <math.h>
#include <signal.h>

#include "runs.h"

static lr_curve falling_at(size_t n, size_t where)
{
    lr_curve c;

    CHECK_OK(lr_curve_init(&c, n));
    for (size_t i = 0; i < n; i++) /* flat, then down a slope, then flat */
        lr_curve_add(&c, pow(10, -6 + 6.0 * (double)i / (double)n),
                     i < where        ? 3
                     : i < where + 20 ? 3 - 0.1 * (double)(i - where)
                                      : 1);
    return c;
}

TEST(the_first_smoothed_loss_is_the_loss_and_a_flat_curve_stays_flat)
{
    lr_curve c;

    CHECK_OK(lr_curve_init(&c, 50));
    for (int i = 0; i < 50; i++)
        lr_curve_add(&c, 1e-6 * (i + 1), 2.5);
    for (int i = 0; i < 50; i++)
        CHECK(fabs(c.smooth[i] - 2.5) < 1e-12, "point %d: %.17g", i, c.smooth[i]);
    CHECK_FAILS(lr_curve_suggest(&c), CO_EINPUT, "falls nowhere between 1e-06 and 5e-05");
    lr_curve_fini(&c);
}

TEST(the_suggestion_lies_where_the_loss_falls)
{
    for (size_t where = 20; where <= 60; where += 20) {
        lr_curve c = falling_at(100, where);
        CHECK_OK(lr_curve_suggest(&c));
        CHECK(c.at > where && c.at <= where + 21, "falls from %zu to %zu, suggested %zu", where, where + 20,
              c.at);
        lr_curve_fini(&c);
    }
}

TEST(a_loss_that_runs_away_ends_the_curve_and_is_not_suggested)
{
    lr_curve c = falling_at(100, 20);

    c.n = 60;
    for (int i = 0; i < 60 && !c.over; i++)
        lr_curve_add(&c, 0.1 * (i + 1), 30.0 * (i + 1));
    CHECK(c.over && c.n < 80, "%zu points", c.n);
    size_t n = c.n;
    lr_curve_add(&c, 1, 1);
    CHECK(c.n == n, "taken after the end");
    CHECK_OK(lr_curve_suggest(&c));
    CHECK(c.at < 45, "suggested %zu", c.at);
    lr_curve_fini(&c);
}

TEST(a_loss_that_is_not_finite_at_once_is_too_little_to_judge_by)
{
    lr_curve c;

    CHECK_OK(lr_curve_init(&c, 50));
    for (int i = 0; i < 50; i++)
        lr_curve_add(&c, 1e-3, i < 5 ? 2 : NAN);
    CHECK(c.over && c.n == 5, "%zu points", c.n);
    CHECK_FAILS(lr_curve_suggest(&c), CO_EINPUT, "ran away after 5 steps");
    lr_curve_fini(&c);
}

#define QUICK SMALL " trainer.max_epochs=1 tune.steps=60 console=plain"

/* What follows `key` in the config.yaml of a run. */
static double rate_in(const char *dir)
{
    test_run r = test_sh("sed -n '/^optim:/,/^[a-z]/s/^ *lr: //p' %s/config.yaml", dir);
    double lr = atof(r.out);

    CHECK(lr > 0, "%s: %s", dir, r.out);
    free(r.out);
    return lr;
}

TEST(a_run_with_the_rate_found_is_the_run_with_the_rate_typed)
{
    char one[65], two[65], line[512];

    succeeds("$COHORT train " QUICK " tune.lr=true trainer.devices=1 run.dir=a optim.lr=0.5 2>a.err");
    succeeds("$COHORT train " QUICK " tune.lr=true trainer.devices=2 run.dir=b optim.lr=0.5 2>b.err");
    succeeds("cmp a/lr_find.csv b/lr_find.csv && cmp a/lr_find.svg b/lr_find.svg");
    double lr = rate_in("a");
    snprintf(line, sizeof line, "$COHORT train " QUICK " trainer.devices=2 run.dir=c optim.lr=%.3g 2>c.err",
             lr);
    succeeds(line);
    sha_of_run(one, "a");
    sha_of_run(two, "c");
    CHECK(strcmp(one, two) == 0, "the weights differ");
    json_t *a = json_of("%s/header.json", "a"), *c = json_of("%s/header.json", "c");
    CHECK(strcmp(text_in(a, "config_sha256"), text_in(c, "config_sha256")) == 0, "the configurations differ");
    json_decref(a);
    json_decref(c);
    test_run r = test_sh("cat a/overrides.yaml a.err; head -1 a/lr_find.csv; wc -l <a/lr_find.csv");
    CHECK(!strstr(r.out, "tune.lr=") && !strstr(r.out, "optim.lr=0.5") && test_contains(r.out, "(was 0.5)") &&
              test_contains(r.out, "step,lr,loss,smoothed"),
          "%s", r.out);
    free(r.out);
    r = test_sh("command -v python3 >/dev/null || exit 0; python3 -c 'import xml.etree.ElementTree as t; "
                "t.parse(\"a/lr_find.svg\")'");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

TEST(a_search_asked_for_by_a_file_is_not_asked_for_again)
{
    succeeds("printf 'tune: {lr: true, steps: 40}\\noptim: {lr: 0.25}\\n' >e.yaml");
    succeeds("$COHORT train experiment=e.yaml " SMALL " trainer.max_epochs=2 run.dir=a 2>a.err");
    CHECK(rate_in("a") != 0.25, "the file's rate");
    test_run r = test_sh("$COHORT train run.dir=a ckpt_path=auto trainer.max_epochs=3");
    CHECK(r.status == 0 && test_contains(r.out, "3/3"), "%d: %s", r.status, r.out);
    CHECK(!strstr(r.out, "looking for a learning rate"), "%s", r.out);
    free(r.out);
}

static void refused(const char *words, const char *why)
{
    test_run r = test_sh("$COHORT train " SMALL " tune.lr=true run.dir=x %s", words);

    CHECK(r.status == 2 && test_contains(r.out, why), "%s: %d: %s", words, r.status, r.out);
    CHECK(!co_fs_exists("x"), "%s left a folder", words);
    free(r.out);
}

TEST(a_search_that_cannot_be_is_refused_with_a_sentence)
{
    refused("ckpt_path=auto", "the search comes before the first step, and ckpt_path=auto continues a run");
    refused("tune.lr_min=1 tune.lr_max=0.1", "tune.lr_min=1 is not below tune.lr_max=0.1");
    refused("tune.steps=12", "take 20 or more");
    refused("tune.steps=40 tune.lr_min=1e-12 tune.lr_max=1e-11 seed=3",
            "the loss falls nowhere between 1e-12 and 1e-11");
}

TEST(a_folder_that_holds_a_run_is_refused_before_the_search)
{
    succeeds("$COHORT train " SMALL " trainer.max_steps=2 run.dir=a 2>a.err");
    test_run r = test_sh("$COHORT train " SMALL " tune.lr=true run.dir=a");
    CHECK(r.status == 2 && test_contains(r.out, "holds a run already") && !strstr(r.out, "looking"), "%s",
          r.out);
    free(r.out);
}

/* With little data the search goes on over several epochs. */
TEST(a_search_longer_than_an_epoch_goes_on_into_the_next)
{
    succeeds("$COHORT train " SMALL
             " tune.lr=true tune.steps=60 trainer.limit_train_batches=5 trainer.max_steps=3 "
             "run.dir=a 2>a.err");
    test_run r = test_sh("tail -n +2 a/lr_find.csv | wc -l");
    CHECK(atoi(r.out) > 20, "%s points", r.out);
    free(r.out);
}

static bool is_searching(void *path)
{
    char *text = NULL;
    size_t len;
    bool yes = co_fs_read(&text, &len, path, 1 << 20) == CO_OK && strstr(text, "step ");

    co_free(text);
    return yes;
}

TEST(asked_to_stop_while_searching_it_leaves_nothing)
{
    pid_t pid = test_spawn("out", "exec $COHORT train " SMALL " tune.lr=true tune.steps=100000 run.dir=a");

    test_until(is_searching, "out", 20, "the first steps");
    CHECK(kill(pid, SIGINT) == 0, "%m");
    int status = test_wait(pid, 20);
    CHECK(status == 75, "status %d", status);
    CHECK(!co_fs_exists("a"), "a folder is there");
}
