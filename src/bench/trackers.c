/* trackers.c -- what trackers cost: training with all of them on, relative to none.
 *
 * digits with a small network and a line of the record every 10 steps. The two alternate, so that both meet
 * the same machine; `ratio` is the median of the rounds' ratios of samples/s. wandb writes its offline folder.
 * Both must end with the same weights.
 */
#include "bench/bench_int.h"

#include <string.h>

enum { MAX_ROUNDS = 50 };

typedef struct arms {
    int rounds, steps;
    double rate[2][MAX_ROUNDS], ratio[MAX_ROUNDS];
    char sha[65];
} arms;

static co_err read_line(arms *a, int argc, char **argv)
{
    const char *rounds = NULL, *steps = NULL;
    bool json = false; /* it always is */
    const struct {
        const char *flag, **text;
        long long least, most;
        int *out;
    } numbers[] = {{"--rounds", &rounds, 1, MAX_ROUNDS, &a->rounds},
                   {"--steps", &steps, 10, 10000000, &a->steps}};

    *a = (arms){.rounds = 5, .steps = 2000};
    CO_TRY(co_flags_parse("bench trackers", argc, argv,
                          (const co_flag[]){{"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--json", .on = &json},
                                            {0}}));
    for (size_t i = 0; i < CO_COUNT(numbers); i++) {
        long long n;
        if (!*numbers[i].text)
            continue;
        if (!co_str_to_i64(*numbers[i].text, &n) || n < numbers[i].least || n > numbers[i].most)
            return co_fail(CO_EINPUT, "bench trackers: %s %s is not a number from %lld to %lld",
                           numbers[i].flag, *numbers[i].text, numbers[i].least, numbers[i].most);
        *numbers[i].out = (int)n;
    }
    return CO_OK;
}

static co_err run_arm(arms *a, const char *root, int arm, int round)
{
    char steps[48];
    const char *words[] = {"data=digits",
                           "model=cnn",
                           "data.batch_size=64",
                           steps,
                           arm ? "logger=[csv,tensorboard,prometheus,wandb]" : "logger=none",
                           "logger.wandb.mode=offline",
                           "log_every=10",
                           "trainer.max_epochs=10000000",
                           "test=false",
                           "console=quiet",
                           NULL};
    trial t;

    snprintf(steps, sizeof steps, "trainer.max_steps=%d", a->steps);
    co_err err = trial_once(&t, root, words);
    const char *sha = err ? NULL : co_json_str(t.summary, "weights_sha256");
    if (!err && !sha)
        err = co_fail(CO_EFAIL, "summary.json lacks weights_sha256");
    if (!err && a->sha[0] && strcmp(a->sha, sha) != 0)
        err = co_fail(CO_EFAIL, "trackers changed the weights: %s, not %s", sha, a->sha);
    if (!err)
        snprintf(a->sha, sizeof a->sha, "%s", sha);
    a->rate[arm][round] = err ? 0 : trial_number(&t, "samples_per_s");
    trial_free(&t);
    return err;
}

int bench_trackers(int argc, char **argv)
{
    arms a;
    char root[64];

    if (read_line(&a, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = trial_folder(root);
    for (int i = 0; i < a.rounds && !err; i++) {
        for (int arm = 0; arm < 2 && !err; arm++)
            err = run_arm(&a, root, i % 2 ? 1 - arm : arm, i);
        a.ratio[i] = a.rate[1][i] / a.rate[0][i];
        if (!err)
            co_say("round %d of %d: none %.0f samples/s, all %.0f: %.3f", i + 1, a.rounds, a.rate[0][i],
                   a.rate[1][i], a.ratio[i]);
    }
    if (!err)
        printf("{\"task\":\"trackers\",\"model\":\"cnn\",\"data\":\"digits\",\"rounds\":%d,\"steps\":%d,"
               "\"none_samples_per_s\":%.2f,\"all_samples_per_s\":%.2f,\"ratio\":%.4f,\"aim\":0.99,"
               "\"weights_sha256\":\"%s\"}\n",
               a.rounds, a.steps, median(a.rate[0], a.rounds), median(a.rate[1], a.rounds),
               median(a.ratio, a.rounds), a.sha);
    return trial_ended(err, root);
}
