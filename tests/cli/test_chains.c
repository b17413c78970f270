/* test_chains.c -- a run that is stopped, killed and continued any number of times leaves the same record,
 * table and summary as a run that never stopped; and its best checkpoint is really the best. */
#include "harness.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

#define RUN                                                                                                  \
    "train data=digits model.hidden=96 optim.lr=0.01 trainer.max_epochs=9 trainer.devices=2 log_every=1 "    \
    "seed=3 "                                                                                                \
    "console=quiet callbacks.model_checkpoint.every_n_steps=7 callbacks.model_checkpoint.keep=3 "

/* --- reading records ------------------------------------------------------------------------------------ */
/* Values that depend on the clock and differ from run to run. */
static bool by_the_clock(const char *name)
{
    return strncmp(name, "system/", 7) == 0 || strcmp(name, "train/data_wait") == 0;
}

/* "STEP NAME" -> value, the last one wins; spikes and skipped steps count as well. */
static json_t *scalars_of(const char *dir)
{
    char path[256], key[256], *text;
    json_t *all = json_object();
    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    CHECK_OK(co_fs_read(&text, NULL, path, 1 << 26));
    for (char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        json_t *v = NULL;
        long long step;
        if (co_json_parse(&v, line, len, path) == CO_OK && co_json_i64(v, "step", &step)) {
            const char *name = co_json_str(v, "name");
            json_t *value = json_object_get(v, "value");
            if (!value && name && strcmp(name, "loss_spike") == 0)
                value = json_object_get(v, "loss");
            snprintf(key, sizeof key, "%lld %s", step, name ? name : "");
            if (value && !by_the_clock(name))
                json_object_set(all, key, value);
        }
        json_decref(v);
        line += len + (line[len] == '\n');
    }
    co_free(text);
    return all;
}

static void compare(const char *what, json_t *got, json_t *want)
{
    const char *key;
    json_t *v;
    json_object_foreach(want, key, v)
    {
        json_t *g = json_object_get(got, key);
        char *a = g ? json_dumps(g, JSON_ENCODE_ANY) : NULL, *b = json_dumps(v, JSON_ENCODE_ANY);
        CHECK(g && json_equal(g, v), "%s: %s is %s, and %s in the run that was never stopped", what, key,
              a ? a : "missing", b);
        free(a);
        free(b);
    }
    json_object_foreach(got, key, v)
        CHECK(json_object_get(want, key), "%s: %s is only in the chain", what, key);
}

static json_t *summary_of(const char *dir)
{
    static const char *const same[] = {"status",         "steps",   "epochs", "samples",
                                       "weights_sha256", "metrics", "best",   "parameters",
                                       "test_classes",   "tested",  "slices"};
    char path[256];
    json_t *all, *some = json_object();
    snprintf(path, sizeof path, "%s/summary.json", dir);
    CHECK_OK(co_json_read(&all, path, 1 << 20));
    for (size_t i = 0; i < CO_COUNT(same); i++)
        if (json_object_get(all, same[i]))
            json_object_set(some, same[i], json_object_get(all, same[i]));
    json_decref(all);
    return some;
}

/* The table without the columns of the clock: "step name value" lines, sorted. */
static char *table_of(const char *dir)
{
    test_run r = test_sh("awk -F, 'NR == 1 { for (i = 2; i <= NF; i++) n[i] = $i; next } "
                         "{ for (i = 2; i <= NF; i++) if ($i != \"\" && n[i] !~ /^system|data_wait/) "
                         "print $1, n[i], $i }' %s/csv/metrics.csv | sort",
                         dir);
    CHECK(r.status == 0, "%s", r.out);
    return r.out;
}

static void same_record(const char *chain, const char *whole)
{
    json_t *a = scalars_of(chain), *b = scalars_of(whole);
    CHECK(json_object_size(b) > 900, "only %zu scalars", json_object_size(b));
    compare(chain, a, b);
    json_decref(a);
    json_decref(b);
    compare(chain, a = summary_of(chain), b = summary_of(whole));
    json_decref(a);
    json_decref(b);
    char *x = table_of(chain), *y = table_of(whole);
    CHECK(strcmp(x, y) == 0, "csv/metrics.csv of %s differs", chain);
    free(x);
    free(y);
}

/* --- chains --------------------------------------------------------------------------------------------- */
struct reached {
    const char *dir;
    int step;
    pid_t pid;
};

/* Is there a checkpoint of this step or a later one? */
static bool is_reached(void *ctx)
{
    const struct reached *r = ctx;
    char link[256], target[64] = "";
    int step = 0, epoch = 0;
    snprintf(link, sizeof link, "%s/checkpoints/last", r->dir);
    if (readlink(link, target, sizeof target - 1) < 0)
        return false;
    if (sscanf(target, "epoch_%d", &epoch) == 1)
        step = (epoch + 1) * 23;
    else
        sscanf(target, "step_%d", &step);
    return step >= r->step;
}

static bool is_reached_or_over(void *ctx)
{
    struct reached *r = ctx;
    if (is_reached(ctx))
        return true;
    return kill(r->pid, 0) != 0;
}

/* Starts the run in `dir` again and again; each time it has reached the next step of the list it gets the
 * signal: a negative step is a SIGKILL, a positive one a SIGTERM. The last start goes to the end. */
static void run_chain(const char *dir, const int *steps, int n)
{
    for (int i = 0; i <= n; i++) {
        pid_t pid = test_spawn("said", "exec $COHORT " RUN "run.dir=%s ckpt_path=auto", dir);
        if (i < n) {
            struct reached r = {dir, abs(steps[i]), pid};
            test_until(is_reached_or_over, &r, 50, "the step");
            kill(pid, steps[i] < 0 ? SIGKILL : SIGTERM);
        }
        int status = test_wait(pid, 50), want = i == n ? 0 : steps[i] < 0 ? 128 + SIGKILL : 75;
        CHECK(status == want || status == 0 || status == 128 + SIGTERM,
              "start %d of %s ended with %d, not %d: %s", i, dir, status, want, test_sh("tail -5 said").out);
    }
}

TEST_WITHIN(after_any_chain_of_stops_and_kills_the_record_is_that_of_an_undisturbed_run, 180)
{
    static const int chains[][5] = {
        {7, 60, 100, 150, 190}, {-14, -15, -50, -120, -180}, {1, -30, 90, -91, 160}, {-23, 46, 47, -138, 200}};
    pid_t pid = test_spawn("said", "exec $COHORT " RUN "run.dir=whole");
    CHECK(test_wait(pid, 50) == 0, "%s", test_sh("cat said").out);
    for (size_t i = 0; i < CO_COUNT(chains); i++) {
        char dir[16];
        snprintf(dir, sizeof dir, "chain%zu", i);
        run_chain(dir, chains[i], 5);
        same_record(dir, "whole");
    }
}

/* Every step up to the one of the newest checkpoint has its line, although the record is flushed once a
 * second. */
TEST(a_kill_right_after_a_checkpoint_finds_the_record_of_every_step_before_it)
{
    for (int round = 0; round < 6; round++) {
        char dir[16];
        snprintf(dir, sizeof dir, "r%d", round);
        pid_t pid = test_spawn("said", "exec $COHORT " RUN "trainer.max_epochs=500 run.dir=%s", dir);
        struct reached r = {dir, 1 + 13 * round, pid};
        test_until(is_reached, &r, 40, "a checkpoint");
        kill(pid, SIGKILL);
        CHECK(test_wait(pid, 20) == 128 + SIGKILL, "it ended by itself");
        test_run newest =
            test_sh("for m in %s/checkpoints/*/manifest.json; do grep -m1 '\"step\"' $m; done | "
                    "tr -dc '0-9\\n' | sort -n | tail -1",
                    dir);
        int last = atoi(newest.out);
        free(newest.out);
        CHECK(last >= 7, "no checkpoint");
        json_t *all = scalars_of(dir);
        for (int step = 1; step <= last; step++) {
            char key[64];
            snprintf(key, sizeof key, "%d train/loss_step", step);
            CHECK(json_object_get(all, key), "the checkpoint is of step %d; the record has no step %d", last,
                  step);
            snprintf(key, sizeof key, "%d val/loss", step);
            CHECK(step % 23 || step == last || json_object_get(all, key), "no evaluation of step %d", step);
        }
        json_decref(all);
    }
}

/* --- the best ------------------------------------------------------------------------------------------- */
TEST_WITHIN(the_best_checkpoint_is_the_best_however_fast_bests_follow_each_other, 120)
{
    for (int devices = 1; devices <= 2; devices++) {
        test_run r =
            test_sh("$COHORT train data=digits model.hidden=400 trainer.limit_train_batches=1 "
                    "trainer.max_epochs=40 optim.lr=0.01 console=quiet trainer.devices=%d run.dir=d%d",
                    devices, devices);
        CHECK(r.status == 0, "%s", r.out);
        free(r.out);
        json_t *s, *m;
        char path[64];
        long long best, saved;
        snprintf(path, sizeof path, "d%d/summary.json", devices);
        CHECK_OK(co_json_read(&s, path, 1 << 20));
        CHECK(co_json_i64(json_object_get(s, "best"), "step", &best), "no best");
        snprintf(path, sizeof path, "d%d/checkpoints/best/manifest.json", devices);
        CHECK_OK(co_json_read(&m, path, 1 << 20));
        CHECK(co_json_i64(m, "step", &saved) && saved == best, "best was step %lld, the link is at %lld",
              best, saved);
        json_decref(s);
        json_decref(m);
    }
}

TEST(a_checkpoint_is_saved_although_old_ones_cannot_be_pruned)
{
    test_run r = test_sh("mkdir -p r/checkpoints/best/full && $COHORT " RUN "trainer.max_epochs=2 run.dir=r");
    CHECK(r.status == 0 && !test_contains(r.out, "NOT saved"), "%d: %s", r.status, r.out);
    r = test_sh("$COHORT ckpt verify r/checkpoints/last");
    CHECK(r.status == 0, "%s", r.out);
}

/* --- the test of the best ------------------------------------------------------------------------------- */
static double metric_of(const char *dir, const char *name)
{
    char path[256];
    json_t *s;
    double x = NAN;
    snprintf(path, sizeof path, "%s/summary.json", dir);
    CHECK_OK(co_json_read(&s, path, 1 << 20));
    CHECK(co_json_f64(json_object_get(s, "metrics"), name, &x), "%s has no %s", dir, name);
    json_decref(s);
    return x;
}

/* What `cohort test` measures with a checkpoint. */
static double tested_alone(const char *checkpoint)
{
    test_run r = test_sh("$COHORT test ckpt_path=%s --json 2>/dev/null", checkpoint);
    json_t *v;
    double x = NAN;
    CHECK_OK(co_json_parse(&v, r.out, strlen(r.out), "cohort test"));
    CHECK(co_json_f64(v, "loss", &x) || co_json_f64(json_object_get(v, "metrics"), "test/loss", &x), "%s",
          r.out);
    json_decref(v);
    free(r.out);
    return x;
}

static json_t *tested_of(const char *dir)
{
    json_t *s = summary_of(dir), *t = json_incref(json_object_get(s, "tested"));
    json_decref(s);
    CHECK(t, "%s: summary.json does not say what was tested", dir);
    return t;
}

TEST_WITHIN(the_final_test_is_of_the_best_weights_at_any_number_of_ranks_and_says_so, 180)
{
    /* With the opposite mode, the best checkpoint is certainly an early one. */
    static const char *const more[] = {"callbacks.model_checkpoint.mode=min ",
                                       "optim.ema=0.9 callbacks.model_checkpoint.mode=min "};
    for (int m = 0; m < 2; m++) {
        char dir[32], first[32];
        for (int devices = 1; devices <= 3; devices++) {
            snprintf(dir, sizeof dir, "r%d_%d", m, devices);
            test_run r =
                test_sh("$COHORT train data=digits model.hidden=64 trainer.max_epochs=12 optim.lr=0.3 "
                        "optim=sgd trainer.limit_train_batches=3 trainer.devices=%d run.dir=%s %s",
                        devices, dir, more[m]);
            CHECK(r.status == 0 && test_contains(r.out, "of the best weights, step "), "%d %s", r.status,
                  r.out);
            free(r.out);
            if (devices == 1)
                snprintf(first, sizeof first, "%s", dir);
            CHECK(metric_of(dir, "test/loss") == metric_of(first, "test/loss"), "%s differs from %s", dir,
                  first);
        }
        json_t *tested = tested_of(dir), *s = summary_of(dir);
        long long step, best;
        CHECK(co_json_i64(tested, "step", &step) && co_json_i64(json_object_get(s, "best"), "step", &best) &&
                  step == best && strcmp(co_json_str(tested, "weights"), "best") == 0,
              "tested another than the best");
        CHECK(best < 36, "the last state is the best: the test shows nothing");
        json_decref(tested);
        json_decref(s);
        char path[64];
        snprintf(path, sizeof path, "%s/checkpoints/best", dir);
        CHECK(tested_alone(path) == metric_of(dir, "test/loss"),
              "cohort test of the best gives another loss");
        test_run r = test_sh("$COHORT train experiment=%s/config.yaml run.dir=last%d test_ckpt=last", dir, m);
        CHECK(r.status == 0 && test_contains(r.out, "of the last weights, step 36"), "%s", r.out);
        free(r.out);
        snprintf(path, sizeof path, "last%d/checkpoints/last", m);
        snprintf(first, sizeof first, "last%d", m);
        CHECK(tested_alone(path) == metric_of(first, "test/loss"),
              "cohort test of the last gives another loss");
        CHECK(metric_of(dir, "test/loss") != metric_of(first, "test/loss"), "both are the same");
        json_t *a = summary_of(dir), *b = summary_of(first);
        CHECK(json_equal(json_object_get(a, "weights_sha256"), json_object_get(b, "weights_sha256")),
              "weights differ");
        json_decref(a);
        json_decref(b);
    }
}

TEST(without_a_checkpoint_of_the_best_the_last_weights_are_tested_and_named)
{
    static const char *const off[] = {"callbacks=none", "callbacks.model_checkpoint.save_top_k=0",
                                      "trainer.eval_every=0"};
    for (size_t i = 0; i < CO_COUNT(off); i++) {
        test_run r = test_sh("$COHORT train data=digits model.hidden=8 trainer.max_epochs=2 run.dir=r%zu %s",
                             i, off[i]);
        CHECK(r.status == 0 && test_contains(r.out, "of the last weights, step 46"), "%s: %d %s", off[i],
              r.status, r.out);
        free(r.out);
    }
}
