/* start.c -- the time from the command line to the first step of a small run; the median of several. */
#include "bench/bench_int.h"

enum { TIMES = 7 };

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
        err = trial_once(&t, root, words);
        double at = err ? 0 : trial_number(&t, "first_step_clock_ns");
        ms[i] = (at - (double)t.began_ns) * 1e-6;
        whole[i] = t.secs * 1e3;
        trial_free(&t);
    }
    if (!err)
        printf("{\"task\":\"start\",\"model\":\"digits/"
               "mlp\",\"ranks\":2,\"first_step_ms\":%.1f,\"whole_command_ms\":%.1f,"
               "\"aim_ms\":100,\"ratio\":%.2f}\n",
               median(ms, TIMES), median(whole, TIMES), 100 / median(ms, TIMES));
    return trial_ended(err, root);
}
