/* record.c -- the run's record while it grows: files at the start, an event per scalar, lines or a bar on the screen. */
#include "cli/train_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"

void tell(training *s, const char *fmt, ...)
{
    char text[4096], date[32];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (s->console)
        co_console_line(s->console, "%s", text);
    else
        say("%s", text);
    if (!s->log)
        return;
    co_date(date, sizeof date, "%Y-%m-%d %H:%M:%S", co_wall_s());
    fprintf(s->log, "[%s] %s\n", date, text);
    fflush(s->log);
}

static co_err write_text(training *s, const char *name, void (*print)(const co_conf *, co_str *))
{
    co_str text = {0};

    print(s->app.conf, &text);
    co_err err = co_str_err(&text);
    if (!err)
        err = co_folder_write(s->folder, name, co_str_text(&text), strlen(co_str_text(&text)));
    co_str_fini(&text);
    return err;
}

/* A resumed run adds a segment to the header that is there. */
static co_err write_header(training *s)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    char path[4096];
    json_t *h = NULL, *segments;

    snprintf(path, sizeof path, "%s/header.json", co_folder_path(s->folder));
    if (!co_fs_exists(path) || co_json_read(&h, path, 1 << 20) != CO_OK)
        h = json_object();
    segments = json_object_get(h, "segments");
    if (!json_is_array(segments)) {
        segments = json_array();
        json_object_set_new(h, "segments", segments);
    }
    json_object_set_new(h, "format", json_integer(1));
    json_object_set_new(h, "run_id", json_string(co_folder_run_id(s->folder)));
    json_object_set_new(h, "cohort", json_string(COHORT_VERSION));
    json_object_set_new(h, "kernels", json_string(f->kernels));
    json_object_set_new(h, "seed", json_integer(s->app.cfg->seed));
    json_object_set_new(h, "slices", json_integer(f->slices));
    json_object_set_new(h, "global_batch", json_integer(f->batch));
    json_object_set_new(h, "config_sha256", json_string(s->app.spec.config_sha256));
    json_array_append_new(segments,
                          json_pack("{s:I, s:s, s:s, s:s, s:i}", "from_step", (json_int_t)f->start_step,
                                    "config_sha256", s->app.spec.config_sha256, "data_sha256",
                                    f->data->fingerprint, "kernels", f->kernels, "ranks", f->ranks));
    co_err err = co_folder_write_json(s->folder, "header.json", h);
    json_decref(h);
    return err;
}

static void forget(training *s, const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", co_folder_path(s->folder), name);
    unlink(path);
}

co_err record_open(training *s)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/train.log", co_folder_path(s->folder));
    forget(s, "summary.json"); /* of an earlier start: until this one ends there is none */
    forget(s, "blame.json");
    s->log = fopen(path, "ae");
    if (!s->log)
        return co_fail(CO_EIO, "open %s: %m", path);
    CO_TRY(write_text(s, "config.yaml", co_conf_yaml));
    CO_TRY(write_text(s, "overrides.yaml", co_conf_overrides));
    CO_TRY(write_text(s, "config_tree.log", co_conf_tree));
    CO_TRY(write_header(s));
    s->first_step = co_plan_facts_of(s->plan)->start_step;
    if (s->app.resume)
        co_event_json(s->folder, json_pack("{s:s, s:I, s:s}", "name", "resumed_at", "step",
                                           (json_int_t)s->first_step, "checkpoint", s->app.resume));
    return co_events_flush(s->folder);
}

void record_first_screen(training *s)
{
    const char *at = co_plan_facts_of(s->plan)->lines;

    while (*at) {
        int n = (int)strcspn(at, "\n");
        tell(s, "%.*s", n, at);
        at += n + (at[n] == '\n');
    }
    if (s->app.cfg->strategy == 1)
        co_console_line(s->console,
                        "fsdp     on one host the ranks already share one copy of the state: same as ddp");
    tell(s, "run      %s", co_folder_path(s->folder));
}

static void progress(training *s, bool now)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    double left = (double)(f->steps - s->last.step) * (double)f->batch;

    co_console_progress(s->console,
                        &(co_progress){.step = s->last.step,
                                       .steps = f->steps,
                                       .epoch = s->last.epoch + 1,
                                       .epochs = f->epochs,
                                       .loss = s->last.loss,
                                       .metric = s->last.metric,
                                       .metric_name = f->metric,
                                       .samples_per_s = s->rate,
                                       .eta_s = s->rate > 0 ? left / s->rate : NAN,
                                       .ranks = f->ranks},
                        now);
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

static void on_step(void *ctx, const co_step_result *r)
{
    training *s = ctx;
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    bool epoch_ends = r->step % f->steps_per_epoch == 0;

    s->last = *r;
    s->epoch_loss += r->loss * (double)r->samples;
    s->epoch_metric += r->metric * (double)r->samples;
    s->epoch_samples += r->samples;
    s->rate_samples += r->samples;
    if (r->t_ns - s->rate_ns > 500000000u) {
        if (s->rate_ns)
            s->rate = (double)s->rate_samples / ((double)(r->t_ns - s->rate_ns) * 1e-9);
        s->rate_ns = r->t_ns;
        s->rate_samples = 0;
    }
    if (r->step % s->app.cfg->log_every == 0 || r->step == 1) {
        char name[32];
        co_event_scalar(s->folder, r->step, "train/loss_step", r->loss);
        snprintf(name, sizeof name, "train/%s_step", f->metric);
        co_event_scalar(s->folder, r->step, name, r->metric);
        co_event_scalar(s->folder, r->step, "lr", r->lr);
        co_event_scalar(s->folder, r->step, "grad_norm", r->norm);
    }
    if (r->skipped)
        co_event_json(s->folder, json_pack("{s:s, s:I}", "name", "skipped", "step", (json_int_t)r->step));
    if (epoch_ends)
        close_epoch(s, r->step);
}

static void on_eval(void *ctx, const co_eval_result *r)
{
    training *s = ctx;
    const char *split = r->split == CO_SPLIT_VAL ? "val" : "test",
               *metric = co_plan_facts_of(s->plan)->metric;
    char name[32];

    snprintf(name, sizeof name, "%s/loss", split);
    co_event_scalar(s->folder, r->step, name, r->loss);
    snprintf(name, sizeof name, "%s/%s", split, metric);
    co_event_scalar(s->folder, r->step, name, r->metric);
    if (r->split == CO_SPLIT_VAL && s->epochs_closed)
        tell(s, "epoch %lld/%lld  step %lld  train loss %.4f %s %.4f  val loss %.4f %s %.4f",
             (long long)r->epoch + 1, (long long)co_plan_facts_of(s->plan)->epochs, (long long)r->step,
             s->mean_loss, metric, s->mean_metric, r->loss, metric, r->metric);
    else if (r->split == CO_SPLIT_VAL) /* continued here: the epoch was trained by an earlier start */
        tell(s, "epoch %lld/%lld  step %lld  val loss %.4f %s %.4f", (long long)r->epoch + 1,
             (long long)co_plan_facts_of(s->plan)->epochs, (long long)r->step, r->loss, metric, r->metric);
    else
        tell(s, "test loss %.4f  %s %.4f  (%lld)", r->loss, metric, r->metric, (long long)r->count);
}

static void on_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    training *s = ctx;

    if (failure) {
        co_console_line(s->console, "checkpoint of step %lld NOT saved: %s; earlier ones stay good",
                        (long long)step, failure);
        co_event_json(s->folder, json_pack("{s:s, s:I, s:s}", "name", "checkpoint_failed", "step",
                                           (json_int_t)step, "why", failure));
        return;
    }
    co_event_json(s->folder,
                  json_pack("{s:s, s:I, s:s}", "name", "checkpoint", "step", (json_int_t)step, "path", path));
}

static void on_recovery(void *ctx, const co_recovery *r)
{
    training *s = ctx;

    if (s->app.cfg->fault_phase == CO_FAULT_NONE)
        tell(s, "rank %d (pid %d) %s at step %lld, %s: replaced, nothing lost", r->slot, r->pid, r->how,
             (long long)r->step, r->doing);
    co_event_json(s->folder,
                  json_pack("{s:s, s:I, s:i, s:i, s:s, s:s}", "name", "recovery", "step", (json_int_t)r->step,
                            "rank", r->slot, "pid", r->pid, "how", r->how, "doing", r->doing));
}

static void on_notice(void *ctx, const char *text)
{
    tell(ctx, "%s", text);
}

static co_err on_turn(void *ctx)
{
    training *s = ctx;
    uint64_t now = co_now_ns();

    if (s->last.step)
        progress(s, false);
    if (now - s->flush_ns > 1000000000u) {
        s->flush_ns = now;
        co_err err = co_events_flush(s->folder);
        if (err == CO_EFAIL) /* another run has taken the folder over */
            return err;
        if (err)
            co_errclear(); /* a full disk: kept and told by the folder itself */
    }
    return CO_OK;
}

void record_end_progress(training *s)
{
    if (s->last.step && co_console_is_bar(s->console))
        progress(s, true);
    co_console_close(s->console);
    s->console = NULL;
}

co_train_hooks record_hooks(training *s)
{
    return (co_train_hooks){.ctx = s,
                            .step = on_step,
                            .eval = on_eval,
                            .saved = on_saved,
                            .recovery = on_recovery,
                            .notice = on_notice,
                            .turn = on_turn};
}
