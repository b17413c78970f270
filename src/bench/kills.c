/* kills.c -- kills ranks with SIGKILL, at random and in each phase. Checks that the weights equal those of an
 * undisturbed run and that no step is lost, and measures the time until the next step is applied. */
#include "bench/bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

static const char *const phases[] = {"random", "loading", "forward",    "backward",
                                     "sum",    "apply",   "evaluation", "checkpoint"};

/* One run with kills in `phase` (NULL: undisturbed). It has enough epochs for all kills to happen. */
static co_err run(const char *root, const char *phase, int kills, int epochs, int seed, trial *t)
{
    char dir[80], a[64], b[64], c[64], d[64];
    const char *words[] = {"data=digits",
                           "model=mlp",
                           "optim=adamw",
                           "trainer.devices=3",
                           "console=quiet",
                           c,
                           "callbacks.model_checkpoint.every_n_steps=5",
                           "fault.mean_ms=4",
                           d,
                           a,
                           b,
                           NULL};

    snprintf(a, sizeof a, "fault.phase=%s", phase ? phase : "none");
    snprintf(b, sizeof b, "fault.kills=%d", kills);
    snprintf(d, sizeof d, "fault.seed=%d", seed);
    snprintf(c, sizeof c, "trainer.max_epochs=%d", epochs);
    snprintf(dir, sizeof dir, "%s/r", root);
    CO_TRY(co_fs_remove_tree(dir));
    CO_TRY(co_fs_mkdirs(dir));
    CO_TRY(trial_run(t, self(), dir, words));
    return t->status == 0 ? CO_OK
                          : co_fail(CO_EFAIL, "phase %s: exit status %d", phase ? phase : "none", t->status);
}

/* Repeats the run until enough kills have happened: a run may end before its last kill. */
static co_err campaign(const char *root, const char *phase, int wanted, int epochs, const char *want, int *wrong)
{
    int struck = 0, runs = 0;
    double worst_median = 0, worst_p99 = 0, steps = 0;
    bool same = true;

    while (struck < wanted && runs < 200) {
        trial t;
        double x = 0;
        CO_TRY(run(root, phase, wanted - struck, epochs, runs + 1, &t));
        const char *sha = co_json_str(t.summary, "weights_sha256");
        same = same && sha && strcmp(sha, want) == 0;
        co_json_f64(t.summary, "recoveries", &x);
        struck += (int)x;
        if (co_json_f64(t.summary, "recovery_median_ms", &x) && x > worst_median)
            worst_median = x;
        if (co_json_f64(t.summary, "recovery_p99_ms", &x) && x > worst_p99)
            worst_p99 = x;
        co_json_f64(t.summary, "steps", &steps);
        trial_free(&t);
        runs++;
    }
    *wrong += !same || struck < wanted;
    printf("{\"task\":\"kills\",\"phase\":\"%s\",\"kills\":%d,\"runs\":%d,\"steps\":%.0f,\"same_weights\":%s,"
           "\"recovery_median_ms\":%.1f,\"recovery_p99_ms\":%.1f,\"ratio\":%d}\n",
           phase, struck, runs, steps, same ? "true" : "false", worst_median, worst_p99, same ? 1 : 0);
    fflush(stdout);
    return CO_OK;
}

int bench_kills(int argc, char **argv)
{
    int kills = 20, wrong = 0, epochs = 8;
    char root[64], want[65] = "";
    trial t = {0};

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--kills") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0)
            kills = atoi(argv[++i]);
        else if (strcmp(argv[i], "--json") != 0)
            return co_fail(CO_EINPUT, "bench kills takes --kills N and --json, not \"%s\"", argv[i]),
                   co_say_error(CO_EINPUT);
    co_err err = trial_folder(root);
    if (!err)
        err = run(root, NULL, 0, epochs, 1, &t);
    if (!err && co_json_str(t.summary, "weights_sha256"))
        snprintf(want, sizeof want, "%s", co_json_str(t.summary, "weights_sha256"));
    trial_free(&t);
    for (size_t i = 0; i < CO_COUNT(phases) && !err; i++)
        err = campaign(root, phases[i], i == 0 ? kills * 10 : kills, epochs, want, &wrong);
    if (err) {
        co_notice("%s (logs in %s)", co_errmsg(), root);
        return CO_EXIT_FAILED;
    }
    co_fs_remove_tree(root);
    return wrong ? CO_EXIT_FAILED : CO_EXIT_DONE;
}
