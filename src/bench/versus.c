/* versus.c -- `cohort bench vs-torch`: trains the same model with the same batch and threads here and in PyTorch,
 * alternating within one run.
 *
 *     first        from PyTorch's first weights, both compute the loss of the same batch: it must agree
 *     round 0      measures the memory of each arm and fills the page cache; its speed does not count, but a setting of
 *                  PyTorch that is much slower than its best one is dropped
 *     rounds 1..N  A B C A B C ...      A cohort, B and C PyTorch with different settings
 *
 * Results are medians over the rounds; cohort is compared with PyTorch's best setting. PyTorch's side is
 * bench/torch/versus.py, and its data is in memory before the clock starts.
 */
#include "bench/versus_int.h"

#include "base/fs.h"

/* A setting that reaches less than this part of the best one's speed in round 0 is not run again. */
static const double drop_below = 0.5;

/* --- the command line ----------------------------------------------------------------------------------- */
static co_err check_line(versus *v, const char *size)
{
    if (size && !v->task->size_key)
        return co_fail(CO_EINPUT,
                       "bench vs-torch: --size is for tasks on pictures and for lm, not for --task %s",
                       v->task->name);
    if (v->data && !v->task->data)
        return co_fail(CO_EINPUT, "bench vs-torch: --task %s makes up its data; leave --data out",
                       v->task->name);
    if (v->task->data && !v->data)
        return co_fail(CO_EINPUT, "bench vs-torch: --task %s needs real data: give --data FOLDER with %s",
                       v->task->name, v->task->data);
    if (v->data && !co_fs_exists(v->data))
        return co_fail(CO_EINPUT, "bench vs-torch: --data %s: there is no such folder", v->data);
    return CO_OK;
}

static co_err read_line(versus *v, int argc, char **argv)
{
    const char *name = "resnet18", *rounds = NULL, *steps = NULL, *batch = NULL, *size = NULL, *ranks = NULL,
               *threads = NULL;
    bool json = false; /* it always is */

    *v = (versus){.rounds = 5, .ranks = 2, .threads = 1};
    CO_TRY(co_flags_parse("bench vs-torch", argc, argv,
                          (const co_flag[]){{"--task", "NAME", .value = &name},
                                            {"--data", "FOLDER", .value = &v->data},
                                            {"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--batch", "N", .value = &batch},
                                            {"--size", "N", .value = &size},
                                            {"--ranks", "N", .value = &ranks},
                                            {"--threads", "N", .value = &threads},
                                            {"--compile", .on = &v->compile},
                                            {"--python", "PROGRAM", .value = &v->torch.python},
                                            {"--script", "FILE", .value = &v->script_given},
                                            {"--json", .on = &json},
                                            {0}}));
    CO_TRY(versus_find_task(&v->task, name));
    v->steps = v->task->steps;
    v->batch = v->task->batch;
    v->size = v->task->size;
    v->warmup = v->task->kind == VERSUS_START ? 0 : 2; /* of a start, the first step is what counts */
    CO_TRY(bench_number("vs-torch", "--rounds", rounds, VERSUS_ROUNDS, &v->rounds));
    CO_TRY(bench_number("vs-torch", "--steps", steps, 1000000, &v->steps));
    CO_TRY(bench_number("vs-torch", "--batch", batch, 2048, &v->batch));
    CO_TRY(bench_number("vs-torch", "--size", size, 1024, &v->size));
    CO_TRY(bench_number("vs-torch", "--ranks", ranks, 64, &v->ranks));
    CO_TRY(bench_number("vs-torch", "--threads", threads, 64, &v->threads));
    v->torch_threads = v->ranks * v->threads;
    if (v->task->alone && !ranks)
        v->ranks = 1;
    return check_line(v, size);
}

co_err versus_check_torch(versus *v)
{
    const char *package = v->task->package;

    if (torch_run(&v->torch, (const char *const[]){"--check", "--task", v->task->name, NULL}, true,
                  &v->versions) != CO_OK)
        return torch_missing(&v->torch, "PyTorch");
    return package && !co_json_str(v->versions, package) ? torch_missing(&v->torch, package) : CO_OK;
}

/* --- in turn -------------------------------------------------------------------------------------------- */
static void drop_slow_settings(versus *v)
{
    double best = 0;

    for (int i = 1; i < v->arms; i++)
        best = v->arm[i].rate[0] > best ? v->arm[i].rate[0] : best;
    for (int i = 1; i < v->arms; i++)
        v->arm[i].dropped = v->arm[i].rate[0] < drop_below * best;
}

static co_err measure_memory(versus *v)
{
    memory_watch *w;

    for (versus_arm *arm = v->arm; arm < v->arm + v->arms; arm++) {
        CO_TRY(memory_watch_start(&w));
        co_err err = versus_run_arm(v, arm, 0);
        arm->peak = memory_watch_stop(w);
        CO_TRY(err);
        co_say("memory: %-20s %.0f MB at most, %.1f %s/s", versus_arm_name(arm), 1e-6 * (double)arm->peak,
               arm->rate[0], v->task->unit);
    }
    return CO_OK;
}

static co_err measure(versus *v)
{
    CO_TRY(versus_compare_losses(v));
    CO_TRY(measure_memory(v));
    drop_slow_settings(v);
    for (int round = 0; round < v->rounds; round++)
        for (versus_arm *arm = v->arm; arm < v->arm + v->arms; arm++) {
            if (arm->dropped)
                continue;
            CO_TRY(versus_run_arm(v, arm, round));
            co_say("round %d of %d: %-20s %.1f %s/s, %.3g ms of CPU time each, first step after %.2f s",
                   round + 1, v->rounds, versus_arm_name(arm), arm->rate[round], v->task->unit,
                   1e3 * arm->cpu_s[round], arm->start_s[round]);
        }
    return CO_OK;
}

int bench_versus(int argc, char **argv)
{
    versus *v = co_zalloc(sizeof *v);
    co_err err = v ? read_line(v, argc, argv) : CO_ENOMEM;

    if (!err)
        err = torch_find(&v->torch, "vs-torch", "versus.py", v->script_given);
    if (!err)
        err = versus_check_torch(v);
    if (err) {
        if (v)
            json_decref(v->versions);
        co_free(v);
        return co_say_error(CO_EINPUT);
    }
    versus_choose_arms(v, false);
    err = trial_folder(v->root);
    if (!err && v->task->text)
        err = versus_make_text(v);
    if (!err)
        err = measure(v);
    if (!err)
        versus_report(v);
    int status = trial_ended(err, v->root);
    json_decref(v->versions);
    co_free(v);
    return status;
}
