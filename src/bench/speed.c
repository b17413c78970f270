/* speed.c -- the benches start, scaling and apply, which time whole runs. The variants alternate within one
 * invocation; results are medians. */
#include "bench/bench_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"

enum { TIMES = 7 };

static co_err one(const char *root, const char *const *words, trial *t)
{
    char dir[80];

    snprintf(dir, sizeof dir, "%s/r", root);
    CO_TRY(co_fs_remove_tree(dir));
    CO_TRY(co_fs_mkdirs(dir));
    CO_TRY(trial_run(t, self(), dir, words));
    return t->status == 0 ? CO_OK : co_fail(CO_EFAIL, "a run ended with exit status %d", t->status);
}

static double number(const trial *t, const char *key)
{
    double x = 0;

    co_json_f64(t->summary, key, &x);
    return x;
}

/* Removes the root folder only after success: after a failure it holds the logs. */
static int ended(co_err err, const char *root)
{
    if (err) {
        co_notice("%s (logs in %s)", co_errmsg(), root);
        return CO_EXIT_FAILED;
    }
    co_fs_remove_tree(root);
    return CO_EXIT_DONE;
}

int bench_start(int argc, char **argv)
{
    static const char *const words[] = {
        "data=digits",   "model=mlp",  "trainer.devices=2",    "trainer.max_steps=20",
        "console=quiet", "test=false", "trainer.eval_every=0", NULL};
    double ms[TIMES], whole[TIMES];
    char root[64];
    trial t;

    (void)argc, (void)argv;
    co_err err = trial_folder(root);
    for (int i = 0; i < TIMES && !err; i++) {
        err = one(root, words, &t);
        double at = err ? 0 : number(&t, "first_step_clock_ns");
        ms[i] = (at - (double)t.began_ns) * 1e-6;
        whole[i] = t.secs * 1e3;
        trial_free(&t);
    }
    if (!err)
        printf("{\"task\":\"start\",\"model\":\"digits/"
               "mlp\",\"ranks\":2,\"first_step_ms\":%.1f,\"whole_command_ms\":%.1f,"
               "\"aim_ms\":100,\"ratio\":%.2f}\n",
               median(ms, TIMES), median(whole, TIMES), 100 / median(ms, TIMES));
    return ended(err, root);
}

int bench_scaling(int argc, char **argv)
{
    static const char *words[] = {"data=digits",
                                  "model=cnn",
                                  "data.batch_size=512",
                                  "",
                                  "trainer.max_steps=24",
                                  "trainer.max_epochs=1000",
                                  "console=quiet",
                                  "test=false",
                                  "trainer.eval_every=0",
                                  "callbacks.model_checkpoint.enabled=false",
                                  NULL};
    double rate[2][TIMES], ratio[TIMES];
    char root[64];
    trial t;

    (void)argc, (void)argv;
    co_err err = trial_folder(root);
    for (int i = 0; i < TIMES && !err; i++) {
        for (int arm = 0; arm < 2 && !err; arm++) {
            words[3] = arm ? "trainer.devices=2" : "trainer.devices=1";
            err = one(root, words, &t);
            rate[arm][i] = err ? 0 : number(&t, "samples_per_s");
            trial_free(&t);
        }
        ratio[i] = rate[1][i] / rate[0][i];
    }
    if (!err)
        printf("{\"task\":\"scaling\",\"model\":\"digits/cnn\",\"batch\":512,\"one_rank_samples_per_s\":%.0f,"
               "\"two_ranks_samples_per_s\":%.0f,\"ratio\":%.3f}\n",
               median(rate[0], TIMES), median(rate[1], TIMES), median(ratio, TIMES));
    return ended(err, root);
}

int bench_apply(int argc, char **argv)
{
    static const char *const words[] = {"data=digits",
                                        "model=mlp",
                                        "model.hidden=3120",
                                        "model.layers=2",
                                        "optim=adamw",
                                        "data.batch_size=64",
                                        "trainer.devices=2",
                                        "trainer.max_steps=12",
                                        "console=quiet",
                                        "trainer.slices=2",
                                        "test=false",
                                        "trainer.eval_every=0",
                                        "callbacks.model_checkpoint.enabled=false",
                                        NULL};
    char root[64];
    trial t = {0};

    (void)argc, (void)argv;
    co_err err = trial_folder(root);
    if (!err)
        err = one(root, words, &t);
    if (!err)
        printf(
            "{\"task\":\"apply\",\"parameters\":%d,\"ranks\":2,\"optim\":\"adamw\",\"sum_apply_ms\":%.2f}\n",
            64 * 3120 + 3120 + 3120 * 3120 + 3120 + 3120 * 10 + 10, number(&t, "sum_apply_ms"));
    trial_free(&t);
    return ended(err, root);
}
