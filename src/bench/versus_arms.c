/* versus_arms.c -- one run of an arm of `cohort bench vs-torch`: `cohort train`, or bench/torch/versus.py. Each run is
 * a process of its own, so that its start-up time is what a user sees. */
#include "bench/versus_int.h"

#include <math.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "config/config.h"

static const double same_loss = 1e-4; /* the most by which the first losses may differ, relative */

/* CPU seconds of all children that have ended, and of theirs. */
static double children_cpu_s(void)
{
    struct rusage use;

    getrusage(RUSAGE_CHILDREN, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* --- PyTorch's arm -------------------------------------------------------------------------------------- */
/* `more` ends with NULL. */
static co_err run_script(const versus *v, const char *const *more, json_t **out)
{
    char batch[16], size[16], threads[16], steps[16], warmup[16];
    const char *line[VERSUS_WORDS] = {"--task",    v->task->name, "--batch", batch, "--size",   size,
                                      "--threads", threads,       "--steps", steps, "--warmup", warmup};
    int n = 12;

    snprintf(batch, sizeof batch, "%d", v->batch);
    snprintf(size, sizeof size, "%d", v->size);
    snprintf(threads, sizeof threads, "%d", v->torch_threads);
    snprintf(steps, sizeof steps, "%d", v->steps);
    snprintf(warmup, sizeof warmup, "%d", v->warmup);
    if (v->data) {
        line[n++] = "--data";
        line[n++] = v->data;
    }
    for (int i = 0; more[i]; i++)
        line[n++] = more[i];
    return torch_run(&v->torch, line, false, out);
}

static co_err run_torch(const versus *v, versus_arm *arm, int round)
{
    const char *more[5] = {NULL};
    double first_ns = 0, parameters = 0, rest = 0, began_ns = 0;
    json_t *j = NULL;

    for (int n = 0; n < 4 && arm->setting->args[n]; n++)
        more[n] = arm->setting->args[n];
    double began = (double)co_now_ns(), cpu = children_cpu_s();
    CO_TRY(run_script(v, more, &j));
    bool there = co_json_f64(j, "per_s", &arm->rate[round]) && co_json_f64(j, "cpu_s", &arm->cpu_s[round]) &&
                 co_json_f64(j, "first_step_clock_ns", &first_ns) &&
                 co_json_f64(j, "parameters", &parameters) && co_json_f64(j, "pss_libraries_bytes", &rest);
    if (co_json_f64(j, "began_clock_ns", &began_ns) && began_ns > began)
        began = began_ns;
    json_decref(j);
    if (!there)
        return co_fail(CO_EFAIL, "%s: a figure is missing from its output", v->torch.script);
    arm->start_s[round] = (first_ns - began) * 1e-9;
    arm->libraries = (size_t)rest;
    if (v->task->kind == VERSUS_START) {
        arm->rate[round] = 1 / arm->start_s[round];
        arm->cpu_s[round] = children_cpu_s() - cpu;
    }
    if ((long long)parameters != v->parameters)
        return co_fail(CO_EFAIL, "%s has %lld parameters here, %.0f in PyTorch: not the same model",
                       v->task->name, v->parameters, parameters);
    return CO_OK;
}

/* --- our arm -------------------------------------------------------------------------------------------- */
/* `more` as in versus_words_init. */
static co_err run_train(const versus *v, trial *t, int steps, const char *const *more)
{
    versus_words w;

    *t = (trial){0};
    CO_TRY(versus_words_init(&w, v, steps, more));
    co_err err = trial_once(t, v->root, w.word);
    versus_words_fini(&w);
    return err;
}

/* Speed and CPU time of the steps after the first. */
static co_err read_timed(const trial *t, versus_arm *arm, int round)
{
    const json_t *timed = json_object_get(t->summary, "timed");
    double counted = 0, wall_s = 0, cpu_s = 0;

    if (!co_json_f64(timed, "counted", &counted) || !co_json_f64(timed, "wall_s", &wall_s) ||
        !co_json_f64(timed, "cpu_s", &cpu_s) || !(counted > 0) || !(wall_s > 0))
        return co_fail(CO_EFAIL, "summary.json does not say how fast the run was; give more --steps");
    arm->rate[round] = counted / wall_s;
    arm->cpu_s[round] = cpu_s / counted;
    return CO_OK;
}

static co_err run_cohort(versus *v, versus_arm *arm, int round)
{
    versus_kind kind = v->task->kind;
    double cpu = children_cpu_s();
    trial t;
    co_err err = run_train(v, &t, kind == VERSUS_START ? 1 : v->steps + 1, NULL); /* the first is not timed */

    if (!err && kind == VERSUS_TRAIN)
        err = read_timed(&t, arm, round);
    double first_ns = err ? 0 : trial_number(&t, "first_step_clock_ns");
    arm->start_s[round] = (first_ns - (double)t.began_ns) * 1e-9;
    if (kind == VERSUS_START) {
        arm->rate[round] = 1 / arm->start_s[round];
        arm->cpu_s[round] = children_cpu_s() - cpu;
    }
    if (!err && kind == VERSUS_EXCHANGE) /* its CPU time is not known apart from that of the other work */
        arm->rate[round] = 1e3 / trial_number(&t, "sum_apply_ms");
    if (!err && (first_ns <= 0 || !isfinite(arm->rate[round])))
        err = co_fail(CO_EFAIL, "summary.json lacks first_step_clock_ns or sum_apply_ms");
    v->parameters = err ? 0 : (long long)trial_number(&t, "parameters");
    if (!err && co_json_str(t.summary, "kernels"))
        snprintf(v->kernels, sizeof v->kernels, "%s", co_json_str(t.summary, "kernels"));
    trial_free(&t);
    return err;
}

co_err versus_run_arm(versus *v, versus_arm *arm, int round)
{
    return arm->setting ? run_torch(v, arm, round) : run_cohort(v, arm, round);
}

/* --- the same computation? ------------------------------------------------------------------------------ */
/* PyTorch writes its first weights to `path`. */
static co_err first_loss_there(versus *v, const char *path, double *loss)
{
    json_t *j = NULL;

    CO_TRY(run_script(v, (const char *const[]){"--first-loss", path, NULL}, &j));
    bool there = co_json_f64(j, "loss", loss);
    json_decref(j);
    return there ? CO_OK : co_fail(CO_EFAIL, "%s: the loss is missing from its output", v->torch.script);
}

/* One slice, so that batch statistics are those of the whole batch, as in PyTorch. */
static co_err first_loss_here(versus *v, const char *path, double *loss)
{
    char *weights = co_conf_word("weights", path);
    const char *more[] = {weights, "trainer.slices=1", "trainer.devices=1", v->task->still, NULL};
    trial t = {0};
    co_err err = weights ? run_train(v, &t, 1, more) : CO_ENOMEM;

    if (!err && !co_json_f64(json_object_get(t.summary, "metrics"), "train/loss", loss))
        err = co_fail(CO_EFAIL, "summary.json lacks train/loss");
    trial_free(&t);
    co_free(weights);
    return err;
}

co_err versus_compare_losses(versus *v)
{
    char path[96];

    if (v->task->kind != VERSUS_TRAIN)
        return CO_OK;
    snprintf(path, sizeof path, "%s/first.pt", v->root);
    CO_TRY(first_loss_there(v, path, &v->first_loss[1]));
    CO_TRY(first_loss_here(v, path, &v->first_loss[0]));
    double ours = v->first_loss[0], theirs = v->first_loss[1];
    if (!(fabs(ours - theirs) <= same_loss * fabs(theirs)))
        return co_fail(
            CO_EFAIL,
            "%s: from the same weights and batch, the first loss is %.9g here and %.9g in PyTorch: "
            "not the same computation",
            v->task->name, ours, theirs);
    co_say("first loss from the same weights: %.9g here, %.9g in PyTorch", ours, theirs);
    return CO_OK;
}
