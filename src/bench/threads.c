/* threads.c -- how much faster one rank trains resnet18 with several threads than with one.
 *
 * Pictures of 64 x 64 in batches of 64, as in vs-torch. The two alternate, so that both meet the same machine,
 * and the medians count: `ratio` is the median of the rounds' ratios. Both must end with the same weights.
 */
#include "bench/bench_int.h"

#include <string.h>

enum { MAX_ROUNDS = 50 };

typedef struct arms {
    int rounds, steps, threads;
    double rate[2][MAX_ROUNDS], ratio[MAX_ROUNDS];
    char sha[65];
} arms;

static co_err read_line(arms *a, int argc, char **argv)
{
    const char *rounds = NULL, *steps = NULL, *threads = NULL;
    bool json = false; /* it always is */
    const struct {
        const char *flag, **text;
        long long least, most;
        int *out;
    } numbers[] = {{"--rounds", &rounds, 1, MAX_ROUNDS, &a->rounds},
                   {"--steps", &steps, 1, 1000000, &a->steps},
                   {"--threads", &threads, 2, 256, &a->threads}};

    *a = (arms){.rounds = 5, .steps = 8, .threads = 2};
    CO_TRY(co_flags_parse("bench threads", argc, argv,
                          (const co_flag[]){{"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--threads", "N", .value = &threads},
                                            {"--json", .on = &json},
                                            {0}}));
    for (size_t i = 0; i < CO_COUNT(numbers); i++) {
        long long n;
        if (!*numbers[i].text)
            continue;
        if (!co_str_to_i64(*numbers[i].text, &n) || n < numbers[i].least || n > numbers[i].most)
            return co_fail(CO_EINPUT, "bench threads: %s %s is not a number from %lld to %lld",
                           numbers[i].flag, *numbers[i].text, numbers[i].least, numbers[i].most);
        *numbers[i].out = (int)n;
    }
    return CO_OK;
}

static co_err run_arm(arms *a, const char *root, int arm, int round)
{
    char threads[40], steps[48];
    const char *words[] = {"data=fake_images",
                           "data.size=64",
                           "model=resnet18",
                           "data.batch_size=64",
                           "trainer.devices=1",
                           threads,
                           steps,
                           "optim=sgd",
                           "optim.lr=0.01",
                           "optim.momentum=0.9",
                           "trainer.max_epochs=100000",
                           "trainer.eval_every=0",
                           "test=false",
                           "console=quiet",
                           "callbacks.model_checkpoint.enabled=false",
                           NULL};
    trial t;

    snprintf(threads, sizeof threads, "trainer.threads=%d", arm ? a->threads : 1);
    snprintf(steps, sizeof steps, "trainer.max_steps=%d", a->steps + 1); /* the first is not timed */
    co_err err = trial_once(&t, root, words);
    const char *sha = err ? NULL : co_json_str(t.summary, "weights_sha256");
    if (!err && !sha)
        err = co_fail(CO_EFAIL, "summary.json lacks weights_sha256");
    if (!err && a->sha[0] && strcmp(a->sha, sha) != 0)
        err = co_fail(CO_EFAIL, "%d threads gave other weights: %s, not %s", arm ? a->threads : 1, sha, a->sha);
    if (!err)
        snprintf(a->sha, sizeof a->sha, "%s", sha);
    a->rate[arm][round] = err ? 0 : trial_number(&t, "samples_per_s");
    trial_free(&t);
    return err;
}

int bench_threads(int argc, char **argv)
{
    arms a;
    char root[64];

    if (read_line(&a, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = trial_folder(root);
    for (int i = 0; i < a.rounds && !err; i++) {
        for (int arm = 0; arm < 2 && !err; arm++)
            err = run_arm(&a, root, arm, i);
        a.ratio[i] = a.rate[1][i] / a.rate[0][i];
        if (!err)
            co_say("round %d of %d: 1 thread %.1f samples/s, %d threads %.1f: %.2fx", i + 1, a.rounds,
                   a.rate[0][i], a.threads, a.rate[1][i], a.ratio[i]);
    }
    if (!err)
        printf("{\"task\":\"threads\",\"model\":\"resnet18\",\"size\":64,\"batch\":64,\"ranks\":1,"
               "\"threads\":%d,"
               "\"rounds\":%d,\"steps\":%d,\"one_thread_samples_per_s\":%.2f,\"threads_samples_per_s\":%.2f,"
               "\"ratio\":%.3f,\"aim\":1.75,\"weights_sha256\":\"%s\"}\n",
               a.threads, a.rounds, a.steps, median(a.rate[0], a.rounds), median(a.rate[1], a.rounds),
               median(a.ratio, a.rounds), a.sha);
    return trial_ended(err, root);
}
