/* follow.c -- a run's results as they come: an event per scalar, the progress, a line per epoch. */
#include "cli/train_int.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"

#define SHARE_NS 500000000u /* how often the progress is written for `cohort attach` and `cohort ps` */
#define RATE_NS  500000000u /* the period over which samples/s are counted */

/* --- console=imagenet --------------------------------------------------------------------------------- */
/* Which accuracies are shown: 2 top-1 and top-5, 1 top-1, 0 none. With five classes or fewer, top-5 is always
 * 100 %. */
int tops_of(const training *s)
{
    const co_io *io = &co_plan_facts_of(s->plan)->data->io;

    return io->task == CO_TASK_CLASSIFY ? (io->classes > 5 ? 2 : 1) : io->task == CO_TASK_LM ? 1 : 0;
}

static void tell_text(training *s, co_str *text)
{
    tell(s, "%s", co_str_text(text));
    co_str_fini(text);
}

static bool is_imagenet(const training *s)
{
    return s->app.cfg->console == CO_CONSOLE_IMAGENET;
}

/* main.py of pytorch/examples prints batches 0, print_freq, 2 print_freq ... and numbers them from 1. */
static void meter_step(training *s, const co_step_result *r)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    int64_t i = (r->step - 1) % f->steps_per_epoch;
    double secs = s->last_ns && r->t_ns > s->last_ns ? (double)(r->t_ns - s->last_ns) * 1e-9 : 0;
    co_str text = {0};

    if (!is_imagenet(s))
        return;
    if (i == 0)
        s->meters = (co_meters){0};
    co_meters_see(&s->meters, secs, secs * r->data_wait, r->loss, r->metric, r->top5, r->samples);
    if (i % s->app.cfg->log_every != 0)
        return;
    co_meters_train(&s->meters, r->epoch, i + 1, f->steps_per_epoch, tops_of(s), &text);
    tell_text(s, &text);
}

/* Free ranks compute the items of an evaluation in any order, so there is one line when all are done. */
static void meter_eval(training *s, const co_eval_result *r, double secs)
{
    const co_train_cfg *cfg = s->app.cfg;
    int64_t size = cfg->eval_batch_size ? cfg->eval_batch_size : cfg->eval_slice;
    int64_t items = (r->count + size - 1) / size;
    co_meters m = {0};
    co_str text = {0};

    co_meters_see(&m, items ? secs / (double)items : secs, 0, r->loss, r->metric, r->top5, r->count);
    co_meters_test(&m, items, items, tops_of(s), &text);
    tell_text(s, &text);
}

/* --- progress ----------------------------------------------------------------------------------------- */
/* Estimates the time left: training at the present rate, each validation as long as the last one. */
static double time_left(const training *s)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    int64_t steps = f->steps - s->last.step;
    double evals = (double)steps * f->evals_per_step;

    return s->rate > 0 && !f->endless ? (double)steps * (double)f->batch / s->rate + evals * s->eval_s : NAN;
}

static co_progress progress_of(const training *s)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    bool none = s->last.step == 0; /* a run that continues with an evaluation */

    return (co_progress){.step = none ? f->start_step : s->last.step,
                         .steps = f->endless ? 0 : f->steps,
                         .epoch = none ? f->start_step / f->steps_per_epoch : s->last.epoch + 1,
                         .epochs = f->endless ? 0 : f->epochs,
                         .loss = none ? NAN : s->last.loss,
                         .metric = none ? NAN : s->last.metric,
                         .evaluating = s->evaluating,
                         .evaluated = s->evaluated,
                         .metric_name = f->metric,
                         .samples_per_s = s->rate,
                         .eta_s = time_left(s),
                         .data_wait = s->data_wait,
                         .ranks = f->ranks};
}

static void share_progress(training *s, const co_progress *p, bool now)
{
    uint64_t t = co_now_ns();

    if (!now && t - s->shared_ns <= SHARE_NS)
        return;
    s->shared_ns = t;
    co_live_progress(p);
}

void follow_progress(training *s, bool now)
{
    co_progress p = progress_of(s);

    co_console_progress(s->console, &p, now);
    share_progress(s, &p, now);
}

void follow_quietly(training *s)
{
    co_progress p = progress_of(s);

    share_progress(s, &p, false);
}

/* The epoch's means: recorded, and kept for the line that closes it. */
static void close_epoch(training *s, int64_t step)
{
    const char *metric = co_plan_facts_of(s->plan)->metric;
    char name[32];

    s->mean_loss = s->epoch_loss / (double)s->epoch_samples;
    s->mean_metric = s->epoch_metric / (double)s->epoch_samples;
    co_event_scalar(s->folder, step, "train/loss_epoch", s->mean_loss);
    snprintf(name, sizeof name, "train/%s_epoch", metric);
    co_event_scalar(s->folder, step, name, s->mean_metric);
    s->epoch_loss = s->epoch_metric = 0;
    s->epoch_samples = 0;
    s->epochs_closed++;
}

/* Samples per second of training time, without evaluations; an epoch may be shorter than RATE_NS. */
static void see_rate(training *s, const co_step_result *r)
{
    if (s->rate_mark_ns && r->t_ns > s->rate_mark_ns) {
        s->rate_spent_ns += r->t_ns - s->rate_mark_ns;
        s->rate_samples += r->samples;
    }
    s->rate_mark_ns = r->t_ns;
    if (s->rate_spent_ns < RATE_NS)
        return;
    double now = (double)s->rate_samples / ((double)s->rate_spent_ns * 1e-9);
    s->rate = s->rate > 0 ? 0.7 * s->rate + 0.3 * now : now;
    s->rate_spent_ns = 0;
    s->rate_samples = 0;
}

void follow_start(void *ctx, double ms)
{
    training *s = ctx;

    s->last_ns = co_now_ns();
    detach_ready(s);
}

void follow_step(void *ctx, const co_step_result *r)
{
    training *s = ctx;
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    bool epoch_ends = r->step % f->steps_per_epoch == 0;

    meter_step(s, r);
    s->evaluating = NULL;
    s->last = *r;
    s->last_ns = r->t_ns;
    if (!r->skipped) {
        s->epoch_loss += r->loss * (double)r->counted;
        s->epoch_metric += r->metric * (double)r->counted;
        s->epoch_samples += r->counted;
    }
    see_rate(s, r);
    if (r->step % s->app.cfg->log_every == 0 || r->step == 1) {
        char name[32];
        co_event_scalar(s->folder, r->step, "train/loss_step", r->loss);
        snprintf(name, sizeof name, "train/%s_step", f->metric);
        co_event_scalar(s->folder, r->step, name, r->metric);
        co_event_scalar(s->folder, r->step, "lr", r->lr);
        co_event_scalar(s->folder, r->step, "grad_norm", r->norm);
        if (tops_of(s) == 2)
            co_event_scalar(s->folder, r->step, "train/acc5_step", r->top5);
        if (s->data_wait > 0)
            co_event_scalar(s->folder, r->step, "train/data_wait", s->data_wait);
    }
    if (r->skipped)
        co_event_json(s->folder, json_pack("{s:s, s:I}", "name",
                                           s->app.cfg->on_nan == CO_ON_NAN_SKIP ? "skipped" : "not_finite",
                                           "step", (json_int_t)r->step));
    notice_step(s, r);
    if (epoch_ends)
        close_epoch(s, r->step);
}

/* What an epoch's line leaves out when the terminal is narrow, one thing more with each. The line below it has
 * both accuracies of the validation. */
enum brevity { ALL, NO_TOP5, NO_STEP, NO_TRAIN_METRIC, NO_TRAIN, BREVITIES };

static void add_train(co_str *text, const training *s, enum brevity brevity)
{
    bool within = s->epoch_samples > 0; /* within an epoch: the means of its steps so far */
    double n = (double)s->epoch_samples;

    if (brevity >= NO_TRAIN || (!within && !s->epochs_closed))
        return; /* an earlier start may have trained the epoch */
    co_str_addf(text, "  train loss %.4f", within ? s->epoch_loss / n : s->mean_loss);
    if (brevity < NO_TRAIN_METRIC)
        co_str_addf(text, " %s %.4f", co_plan_facts_of(s->plan)->metric,
                    within ? s->epoch_metric / n : s->mean_metric);
}

/* "epoch 3/15  step 66  train loss 0.1 acc 0.97  val loss 0.2 acc 0.95 acc5 0.99" */
static void add_epoch(co_str *text, const training *s, const co_eval_result *r, enum brevity brevity)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);

    co_str_addf(text, "epoch %lld", (long long)r->epoch + 1);
    if (!f->endless)
        co_str_addf(text, "/%lld", (long long)f->epochs);
    if (brevity < NO_STEP)
        co_str_addf(text, "  step %lld", (long long)r->step);
    add_train(text, s, brevity);
    co_str_addf(text, "  val loss %.4f %s %.4f", r->loss, f->metric, r->metric);
    if (tops_of(s) == 2 && brevity < NO_TOP5)
        co_str_addf(text, " acc5 %.4f", r->top5);
    if (co_has_rmse(&f->data->io) && brevity < NO_TOP5)
        co_str_addf(text, " rmse %.4f", co_rmse(r->loss));
}

/* train.log has all figures, the terminal as many as fit a line. */
static void tell_epoch(training *s, const co_eval_result *r)
{
    int width = s->console ? co_console_width(s->console) : INT_MAX;
    co_str all = {0}, fits = {0};

    add_epoch(&all, s, r, ALL);
    for (enum brevity brevity = ALL; brevity < BREVITIES; brevity++) {
        co_str_clear(&fits);
        add_epoch(&fits, s, r, brevity);
        if (fits.len <= (size_t)width)
            break;
    }
    tell_both(s, co_str_text(&all), co_str_text(&fits));
    co_str_fini(&all);
    co_str_fini(&fits);
}

static void record_eval(training *s, const co_eval_result *r, const char *split)
{
    char name[32];

    snprintf(name, sizeof name, "%s/loss", split);
    co_event_scalar(s->folder, r->step, name, r->loss);
    snprintf(name, sizeof name, "%s/%s", split, co_plan_facts_of(s->plan)->metric);
    co_event_scalar(s->folder, r->step, name, r->metric);
    if (co_has_rmse(&co_plan_facts_of(s->plan)->data->io)) {
        snprintf(name, sizeof name, "%s/rmse", split);
        co_event_scalar(s->folder, r->step, name, co_rmse(r->loss));
    }
    if (tops_of(s) == 2) {
        snprintf(name, sizeof name, "%s/acc5", split);
        co_event_scalar(s->folder, r->step, name, r->top5);
    }
    for (int i = 0; i < CO_BESTS && r->best[i].name; i++) {
        snprintf(name, sizeof name, "%s_best", r->best[i].name);
        co_event_scalar(s->folder, r->step, name, r->best[i].value);
    }
}

void follow_evaluating(void *ctx, co_split split, int64_t done, int64_t of)
{
    training *s = ctx;

    s->evaluating = split == CO_SPLIT_VAL ? "validating" : "testing";
    s->evaluated = of > 0 ? (double)done / (double)of : 0;
}

void follow_eval(void *ctx, const co_eval_result *r)
{
    training *s = ctx;
    bool val = r->split == CO_SPLIT_VAL;
    double secs = s->last_ns && r->t_ns > s->last_ns ? (double)(r->t_ns - s->last_ns) * 1e-9 : 0;
    co_str text = {0};

    s->evaluating = NULL;
    s->tested = !val;
    if (r->count == 0)
        return; /* no sample could be read: there are no figures, and the end says why */
    record_eval(s, r, val ? "val" : "test");
    s->last_ns = s->rate_mark_ns = r->t_ns; /* the training rate excludes evaluations */
    if (val)
        s->eval_s = secs;
    if (val && is_imagenet(s))
        meter_eval(s, r, secs);
    else if (val)
        tell_epoch(s, r);
    else
        tell(s, "test loss %.4f  %s %.4f  (%lld)  of the %s weights, step %lld", r->loss,
             co_plan_facts_of(s->plan)->metric, r->metric, (long long)r->count,
             s->summary.tested_best ? "best" : "last", (long long)r->state_step);
    translations_record(s, r);
    if (!val || co_plan_facts_of(s->plan)->data->io.task != CO_TASK_CLASSIFY)
        return;
    co_meters_summary(r->metric, r->top5, tops_of(s), &text);
    tell_text(s, &text);
}
