/* scaling.c -- how much faster two ranks train than one. The two alternate, so that both meet the same machine;
 * the medians count. */
#include "bench/bench_int.h"

enum { TIMES = 7 };

int bench_scaling(int argc, char **argv)
{
    static const char *words[] = {"data=digits",
                                  "model=cnn",
                                  "data.batch_size=512",
                                  "",
                                  "trainer.threads=1",
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
            err = trial_once(&t, root, words);
            rate[arm][i] = err ? 0 : trial_number(&t, "samples_per_s");
            trial_free(&t);
        }
        ratio[i] = rate[1][i] / rate[0][i];
    }
    if (!err)
        printf("{\"task\":\"scaling\",\"model\":\"digits/cnn\",\"batch\":512,\"one_rank_samples_per_s\":%.0f,"
               "\"two_ranks_samples_per_s\":%.0f,\"ratio\":%.3f}\n",
               median(rate[0], TIMES), median(rate[1], TIMES), median(ratio, TIMES));
    return trial_ended(err, root);
}
