/* apply.c -- the time of summing and applying the gradients of a large model, per step, on two ranks. */
#include "bench/bench_int.h"

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
        err = trial_once(&t, root, words);
    if (!err)
        printf(
            "{\"task\":\"apply\",\"parameters\":%d,\"ranks\":2,\"optim\":\"adamw\",\"sum_apply_ms\":%.2f}\n",
            64 * 3120 + 3120 + 3120 * 3120 + 3120 + 3120 * 10 + 10, trial_number(&t, "sum_apply_ms"));
    trial_free(&t);
    return trial_ended(err, root);
}
