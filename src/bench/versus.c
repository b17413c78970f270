/* versus.c -- `cohort bench vs-torch`: trains the same model with the same batch and threads here and in
 * PyTorch, alternating within one run.
 *
 *     round 0      measures the memory of each arm and fills the page cache; its speed does not count
 *     rounds 1..N  A B C A B C ...      A cohort, B PyTorch, C PyTorch with channels_last (pictures only)
 *
 * Results are medians over the rounds; cohort is compared with PyTorch's better layout. Each run is a
 * separate process, so that start-up time is what a user sees: from the command to the end of the first step.
 * Both sides use made-up data; PyTorch's is in memory before the clock starts. PyTorch's side is
 * bench/torch/versus.py.
 */
#include "bench/bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"

enum { MAX_ROUNDS = 50 };
enum { COHORT, TORCH, TORCH_LAST, ARMS };
static const char *const arm_names[] = {"cohort", "torch", "torch, channels_last"};

typedef struct task {
    const char *name;
    bool pictures; /* channels_last applies, and the model comes from torchvision */
    int steps;
    const char *words[8];
} task;

static const task tasks[] = {
    {"resnet18", true, 10, {"data=fake_images", "model=resnet18"}},
    {"resnet50", true, 6, {"data=fake_images", "model=resnet50"}},
    {"digits-mlp", false, 2000, {"data=digits", "model=mlp"}},
    {"digits-cnn", true, 200, {"data=digits", "model=cnn"}},
};

typedef struct versus {
    const task *task;
    int rounds, steps, batch, size, ranks;
    torch_side torch;
    const char *script_given;
    char root[64];
    json_t *versions; /* of PyTorch */
    double rate[ARMS][MAX_ROUNDS], start_s[ARMS][MAX_ROUNDS];
    size_t peak[ARMS], rest; /* rest: PyTorch loaded, before its first step */
    long long parameters[ARMS];
    char kernels[32];
} versus;

/* --- the command line ----------------------------------------------------------------------------------- */
static co_err find_task(versus *v, const char *name)
{
    const char *names[CO_COUNT(tasks)];

    for (size_t i = 0; i < CO_COUNT(tasks); i++) {
        names[i] = tasks[i].name;
        if (strcmp(tasks[i].name, name) == 0) {
            v->task = &tasks[i];
            v->steps = tasks[i].steps;
            return CO_OK;
        }
    }
    const char *near = co_str_nearest(name, names, CO_COUNT(tasks));
    return co_fail(CO_EINPUT,
                   "bench vs-torch: no task \"%s\"%s%s; there are resnet18, resnet50, digits-mlp, digits-cnn",
                   name, near ? "; did you mean " : "", near ? near : "");
}

static co_err read_line(versus *v, int argc, char **argv)
{
    const char *name = "resnet18", *rounds = NULL, *steps = NULL, *batch = NULL, *size = NULL, *ranks = NULL;
    bool json = false; /* it always is */

    *v = (versus){.rounds = 5, .batch = 64, .size = 64, .ranks = 2};
    CO_TRY(co_flags_parse("bench vs-torch", argc, argv,
                          (const co_flag[]){{"--task", "NAME", .value = &name},
                                            {"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--batch", "N", .value = &batch},
                                            {"--size", "N", .value = &size},
                                            {"--ranks", "N", .value = &ranks},
                                            {"--python", "PROGRAM", .value = &v->torch.python},
                                            {"--script", "FILE", .value = &v->script_given},
                                            {"--json", .on = &json},
                                            {0}}));
    CO_TRY(find_task(v, name));
    CO_TRY(bench_number("vs-torch", "--rounds", rounds, MAX_ROUNDS, &v->rounds));
    CO_TRY(bench_number("vs-torch", "--steps", steps, 1000000, &v->steps));
    CO_TRY(bench_number("vs-torch", "--batch", batch, 65536, &v->batch));
    CO_TRY(bench_number("vs-torch", "--size", size, 1024, &v->size));
    return bench_number("vs-torch", "--ranks", ranks, 64, &v->ranks);
}

/* --- PyTorch's arm -------------------------------------------------------------------------------------- */
static co_err check_torch(versus *v)
{
    if (torch_run(&v->torch, (const char *const[]){"--check", "--task", v->task->name, NULL}, true,
                  &v->versions) != CO_OK)
        return torch_missing(&v->torch, "PyTorch");
    if (strncmp(v->task->name, "resnet", 6) == 0 && !co_json_str(v->versions, "torchvision"))
        return torch_missing(&v->torch, "torchvision");
    return CO_OK;
}

static co_err run_torch(versus *v, int arm, int round)
{
    char batch[16], size[16], threads[16], steps[16];
    double rate = 0, first_ns = 0, parameters = 0, rest = 0;
    json_t *j = NULL;

    snprintf(batch, sizeof batch, "%d", v->batch);
    snprintf(size, sizeof size, "%d", v->size);
    snprintf(threads, sizeof threads, "%d", v->ranks);
    snprintf(steps, sizeof steps, "%d", v->steps);
    double began = (double)co_now_ns();
    CO_TRY(torch_run(&v->torch,
                     (const char *const[]){"--task", v->task->name, "--batch", batch, "--size", size,
                                           "--threads", threads, "--steps", steps,
                                           arm == TORCH_LAST ? "--channels-last" : NULL, NULL},
                     false, &j));
    bool there = co_json_f64(j, "samples_per_s", &rate) && co_json_f64(j, "first_step_clock_ns", &first_ns) &&
                 co_json_f64(j, "parameters", &parameters) &&
                 co_json_f64(j, "pss_before_first_step_bytes", &rest);
    json_decref(j);
    if (!there)
        return co_fail(CO_EFAIL, "%s: a figure is missing from its output", v->torch.script);
    v->rate[arm][round] = rate;
    v->start_s[arm][round] = (first_ns - began) * 1e-9;
    v->parameters[arm] = (long long)parameters;
    v->rest = (size_t)rest;
    return CO_OK;
}

/* --- our arm -------------------------------------------------------------------------------------------- */
static co_err run_cohort(versus *v, int round)
{
    char dir[80], batch[40], ranks[40], steps[48], size[40];
    const char *words[24];
    int n = 0;
    trial t;

    for (int i = 0; v->task->words[i]; i++)
        words[n++] = v->task->words[i];
    snprintf(batch, sizeof batch, "data.batch_size=%d", v->batch);
    snprintf(ranks, sizeof ranks, "trainer.devices=%d", v->ranks);
    snprintf(steps, sizeof steps, "trainer.max_steps=%d", v->steps + 1); /* the first is not timed */
    snprintf(size, sizeof size, "data.size=%d", v->size);
    words[n++] = batch;
    words[n++] = ranks;
    words[n++] = steps;
    if (strcmp(words[0], "data=fake_images") == 0)
        words[n++] = size;
    words[n++] = "trainer.threads=1"; /* as many threads in all as PyTorch has */
    words[n++] = "optim=sgd";
    words[n++] = "optim.lr=0.01";
    words[n++] = "optim.momentum=0.9";
    words[n++] = "trainer.max_epochs=100000";
    words[n++] = "trainer.eval_every=0";
    words[n++] = "test=false";
    words[n++] = "console=quiet";
    words[n++] = "callbacks.model_checkpoint.enabled=false";
    words[n] = NULL;
    snprintf(dir, sizeof dir, "%s/r", v->root);
    CO_TRY(co_fs_remove_tree(dir));
    CO_TRY(co_fs_mkdirs(dir));
    co_err err = trial_run(&t, self(), dir, words);
    double first_ns = 0, parameters = 0;
    if (!err && t.status != 0)
        err = co_fail(CO_EFAIL, "a run ended with exit status %d", t.status);
    if (!err && !(co_json_f64(t.summary, "samples_per_s", &v->rate[COHORT][round]) &&
                  co_json_f64(t.summary, "first_step_clock_ns", &first_ns) &&
                  co_json_f64(t.summary, "parameters", &parameters)))
        err = co_fail(CO_EFAIL, "summary.json lacks samples_per_s, first_step_clock_ns or parameters");
    v->start_s[COHORT][round] = (first_ns - (double)t.began_ns) * 1e-9;
    v->parameters[COHORT] = (long long)parameters;
    if (!err && co_json_str(t.summary, "kernels"))
        snprintf(v->kernels, sizeof v->kernels, "%s", co_json_str(t.summary, "kernels"));
    trial_free(&t);
    return err;
}

/* --- in turn -------------------------------------------------------------------------------------------- */
static int arms_of(const versus *v)
{
    return v->task->pictures ? ARMS : TORCH_LAST;
}

static co_err run_arm(versus *v, int arm, int round)
{
    CO_TRY(arm == COHORT ? run_cohort(v, round) : run_torch(v, arm, round));
    if (v->parameters[arm] != v->parameters[COHORT])
        return co_fail(CO_EFAIL, "%s has %lld parameters here, %lld in PyTorch: not the same model",
                       v->task->name, v->parameters[COHORT], v->parameters[arm]);
    return CO_OK;
}

static co_err measure(versus *v)
{
    memory_watch *w;

    for (int arm = 0; arm < arms_of(v); arm++) {
        CO_TRY(memory_watch_start(&w));
        co_err err = run_arm(v, arm, 0);
        v->peak[arm] = memory_watch_stop(w);
        CO_TRY(err);
    }
    for (int round = 0; round < v->rounds; round++)
        for (int arm = 0; arm < arms_of(v); arm++) {
            CO_TRY(run_arm(v, arm, round));
            co_say("round %d of %d: %-20s %.1f samples/s, first step after %.2f s", round + 1, v->rounds,
                   arm_names[arm], v->rate[arm][round], v->start_s[arm][round]);
        }
    return CO_OK;
}

/* The median of n numbers, which are not reordered. */
static double middle(const double *x, int n)
{
    double copy[MAX_ROUNDS];

    memcpy(copy, x, (size_t)n * sizeof *copy);
    return median(copy, n);
}

/* The median of a / b over the rounds. a and b of a round are measured one after the other, so a machine that
 * slows down affects both. */
static double middle_ratio(const double *a, const double *b, int n)
{
    double r[MAX_ROUNDS];

    for (int i = 0; i < n; i++)
        r[i] = a[i] / b[i];
    return median(r, n);
}

static json_t *arm_json(const versus *v, int arm)
{
    json_t *runs = json_array();

    for (int i = 0; i < v->rounds; i++)
        json_array_append_new(runs, co_json_num(v->rate[arm][i]));
    return json_pack("{s:f, s:I, s:f, s:o}", "samples_per_s", middle(v->rate[arm], v->rounds),
                     "peak_pss_bytes", (json_int_t)v->peak[arm], "first_step_s",
                     middle(v->start_s[arm], v->rounds), "runs", runs);
}

static void report(const versus *v)
{
    char cpu[128];
    json_t *j =
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I}", "task", "vs-torch", "model", v->task->name,
                  "batch", v->batch, "size", v->task->words[0][5] == 'f' ? v->size : 8, "ranks", v->ranks,
                  "rounds", v->rounds, "steps", v->steps, "parameters", (json_int_t)v->parameters[COHORT]);
    double theirs = 0;
    int best = TORCH;

    for (int arm = TORCH; arm < arms_of(v); arm++)
        if (middle(v->rate[arm], v->rounds) > theirs) {
            theirs = middle(v->rate[arm], v->rounds);
            best = arm;
        }
    for (int arm = 0; arm < arms_of(v); arm++)
        json_object_set_new(j, arm_names[arm], arm_json(v, arm));
    cpu_fact("model name", cpu, sizeof cpu);
    json_object_set_new(j, "compared_with", json_string(arm_names[best]));
    json_object_set_new(j, "ratio", json_real(middle_ratio(v->rate[COHORT], v->rate[best], v->rounds)));
    json_object_set_new(j, "memory_ratio", json_real((double)v->peak[COHORT] / (double)v->peak[best]));
    json_object_set_new(j, "torch_pss_before_first_step_bytes", json_integer((json_int_t)v->rest));
    if (v->peak[best] > v->rest) /* what training itself takes there, without interpreter and libraries */
        json_object_set_new(j, "memory_ratio_without_libraries",
                            json_real((double)v->peak[COHORT] / (double)(v->peak[best] - v->rest)));
    json_object_set_new(j, "start_ratio",
                        json_real(middle_ratio(v->start_s[COHORT], v->start_s[best], v->rounds)));
    json_object_set_new(j, "kernels", json_string(v->kernels));
    json_object_set_new(j, "versions", json_incref(v->versions));
    json_object_set_new(j, "cpu", json_string(cpu));
    json_object_set_new(j, "cpu_flags", cpu_vector_flags());
    co_json_print(j);
}

int bench_versus(int argc, char **argv)
{
    versus *v = co_zalloc(sizeof *v);
    co_err err = v ? read_line(v, argc, argv) : CO_ENOMEM;

    if (!err)
        err = torch_find(&v->torch, "vs-torch", "versus.py", v->script_given);
    if (!err)
        err = check_torch(v);
    if (err) {
        co_free(v);
        return co_say_error(CO_EINPUT);
    }
    err = trial_folder(v->root);
    if (!err)
        err = measure(v);
    if (err)
        co_notice("%s (logs in %s)", co_errmsg(), v->root);
    else {
        report(v);
        co_fs_remove_tree(v->root);
    }
    json_decref(v->versions);
    co_free(v);
    return err ? CO_EXIT_FAILED : CO_EXIT_DONE;
}
