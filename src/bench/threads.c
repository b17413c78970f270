/* threads.c -- how much faster one rank trains resnet18 with several threads than with one.
 *
 * Pictures of 64 x 64 in batches of 64, as in vs-torch. The two alternate (duel.c), and both must end with the same
 * weights.
 */
#include "bench/bench_int.h"

typedef struct asked {
    const char *root;
    int steps, threads;
} asked;

static co_err once(void *ctx, int arm, int round, trial *t)
{
    const asked *q = ctx;
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

    (void)round;
    snprintf(threads, sizeof threads, "trainer.threads=%d", arm ? q->threads : 1);
    snprintf(steps, sizeof steps, "trainer.max_steps=%d", q->steps + 1); /* the first is not timed */
    return trial_once(t, q->root, words);
}

int bench_threads(int argc, char **argv)
{
    char root[64];
    static duel d = {.rounds = 5, .name = {"1 thread", "several"}};
    asked q = {.root = root, .steps = 8, .threads = 2};
    const bench_flag flags[] = {{"--rounds", 1, DUEL_ROUNDS, &d.rounds},
                                {"--steps", 1, 1000000, &q.steps},
                                {"--threads", 2, 256, &q.threads},
                                {0}};

    if (bench_flags("threads", argc, argv, flags, NULL) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = trial_folder(root);
    if (!err)
        err = duel_run(&d, once, &q);
    if (!err)
        printf("{\"task\":\"threads\",\"model\":\"resnet18\",\"size\":64,\"batch\":64,\"ranks\":1,"
               "\"threads\":%d,"
               "\"rounds\":%d,\"steps\":%d,\"one_thread_samples_per_s\":%.2f,\"threads_samples_per_s\":%.2f,"
               "\"ratio\":%.3f,\"aim\":1.75,\"weights_sha256\":\"%s\"}\n",
               q.threads, d.rounds, q.steps, duel_rate(&d, 0), duel_rate(&d, 1), duel_ratio(&d), d.sha);
    return trial_ended(err, root);
}
