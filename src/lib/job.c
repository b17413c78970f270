/* job.c -- the functions of cohort.h that run something: the command line with a program's own parts, and
 * training, evaluation and prediction from inside a program. */
#include "lib/lib_int.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/maths.h"
#include "base/rng.h"

const char *cohort_version(void)
{
    return COHORT_VERSION;
}

const char *cohort_errmsg(void)
{
    return co_errmsg();
}

cohort_err cohort_fail(cohort_err code, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return (cohort_err)co_fail((co_err)code, "%s", text);
}

int cohort_main(int argc, char **argv, const cohort_parts *parts)
{
    cohort_parts named = parts ? *parts : (cohort_parts){0};
    lib_parts p;

    if (parts && !named.program && argc > 0)
        named.program = argv[0];
    if (parts_init(&p, &named) != CO_OK) {
        fprintf(stderr, "%s: %s\n", argc > 0 ? argv[0] : "cohort", co_errmsg());
        return 2;
    }
    int status = co_cli_main(argc, argv);
    parts_fini(&p);
    return status;
}

/* --- jobs ----------------------------------------------------------------------------------------------- */
static bool on_step(void *ctx, const co_step_result *r)
{
    const cohort_job *job = ctx;
    cohort_step s = {.step = r->step,
                     .epoch = r->epoch,
                     .loss = r->loss,
                     .metric = r->metric,
                     .grad_norm = r->norm,
                     .lr = r->lr,
                     .samples = r->samples,
                     .skipped = r->skipped};

    return job->on_step && job->on_step(job->ctx, &s) != 0;
}

static cohort_eval eval_out(const co_eval_result *r)
{
    return (cohort_eval){.step = r->step,
                         .epoch = r->epoch,
                         .split = (cohort_split)r->split,
                         .loss = r->loss,
                         .metric = r->metric,
                         .count = r->count};
}

static bool on_eval(void *ctx, const co_eval_result *r)
{
    const cohort_job *job = ctx;
    cohort_eval e = eval_out(r);

    return job->on_eval && job->on_eval(job->ctx, &e) != 0;
}

static void on_text(void *ctx, const char *line)
{
    const cohort_job *job = ctx;

    if (job->on_text)
        job->on_text(job->ctx, line);
}

static void on_prediction(void *ctx, const co_prediction *r)
{
    const cohort_job *job = ctx;
    cohort_prediction p = {.id = r->id,
                           .task = (cohort_task)r->task,
                           .choice = r->choice,
                           .probability = r->probability,
                           .values = r->values,
                           .n = r->n};

    if (job->on_prediction)
        job->on_prediction(job->ctx, &p);
}

static co_cli_job job_in(const cohort_job *job)
{
    return (co_cli_job){.words = job->words,
                        .n = job->n_words,
                        .ctx = (void *)(uintptr_t)job,
                        .step = on_step,
                        .eval = on_eval,
                        .text = on_text};
}

static void summary_out(cohort_summary *to, const co_cli_done *from)
{
    const co_train_summary *s = &from->summary;

    *to = (cohort_summary){.status = (cohort_status)s->status,
                           .steps = s->steps,
                           .epochs = s->epochs,
                           .samples = s->samples,
                           .wall_s = s->wall_s,
                           .samples_per_s = s->samples_per_s,
                           .loss = s->loss,
                           .train_metric = s->train_metric,
                           .val_loss = s->val_loss,
                           .val_metric = s->val_metric,
                           .test_loss = s->test_loss,
                           .test_metric = s->test_metric,
                           .recoveries = s->recoveries};
    snprintf(to->weights_sha256, sizeof to->weights_sha256, "%s", s->weights_sha256);
    snprintf(to->run_dir, sizeof to->run_dir, "%s", from->run_dir);
    snprintf(to->saved, sizeof to->saved, "%s", s->saved);
    snprintf(to->blame, sizeof to->blame, "%s", s->blame);
}

cohort_err cohort_train(const cohort_job *job, cohort_summary *out)
{
    lib_parts p;
    co_cli_job in = job_in(job);
    co_cli_done done = {0};
    co_err err = parts_init(&p, job->parts);

    if (err)
        return (cohort_err)err;
    err = co_cli_train(&in, &done);
    if (out && done.run_dir[0]) /* a run was started, whether it succeeded or not */
        summary_out(out, &done);
    parts_fini(&p);
    return (cohort_err)err;
}

cohort_err cohort_evaluate(const cohort_job *job, cohort_split split, cohort_eval *out)
{
    lib_parts p;
    co_cli_job in = job_in(job);
    co_eval_result r;
    char sha[65];
    co_err err = parts_init(&p, job->parts);

    if (err)
        return (cohort_err)err;
    err = co_cli_evaluate(&in, (co_split)split, &r, sha);
    if (!err) {
        *out = eval_out(&r);
        snprintf(out->weights_sha256, sizeof out->weights_sha256, "%s", sha);
    }
    parts_fini(&p);
    return (cohort_err)err;
}

cohort_err cohort_predict(const cohort_job *job, cohort_split split, int64_t limit)
{
    lib_parts p;
    co_cli_job in = job_in(job);
    co_err err = parts_init(&p, job->parts);

    if (err)
        return (cohort_err)err;
    err = co_cli_predict(&in, (co_split)split, limit, on_prediction);
    parts_fini(&p);
    return (cohort_err)err;
}

/* --- numbers for samples -------------------------------------------------------------------------------- */
void cohort_uniform(float *x, size_t n, float lo, float hi, uint64_t seed, const char *stream, uint32_t step,
                    uint32_t sample)
{
    co_rng_uniform(x, n, lo, hi, co_rng_key_make(seed, CO_RNG_DATA), co_rng_stream(stream), step, sample);
}

void cohort_normal(float *x, size_t n, float mean, float deviation, uint64_t seed, const char *stream,
                   uint32_t step, uint32_t sample)
{
    co_rng_normal(x, n, mean, deviation, co_rng_key_make(seed, CO_RNG_DATA), co_rng_stream(stream), step,
                  sample);
}

double cohort_exp(double x)
{
    return co_exp(x);
}

double cohort_log(double x)
{
    return co_log(x);
}

double cohort_cos(double x)
{
    return co_cos(x);
}

double cohort_sin(double x)
{
    return co_sin(x);
}

double cohort_pow(double x, double y)
{
    return co_pow(x, y);
}
