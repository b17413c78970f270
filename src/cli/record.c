/* record.c -- the run's record: its first files, messages on the screen and in train.log, events of ranks and
 * checkpoints. follow.c records the steps. */
#include "cli/train_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"

static void put(training *s, bool quiet, const char *text, const char *shown)
{
    char date[32];

    if (s->console && !s->job && s->app.cfg->console != CO_CONSOLE_QUIET)
        co_console_line(s->console, "%s", shown);
    else if (!quiet || s->job)
        co_say("%s", shown);
    if (!s->log)
        return;
    co_date(date, sizeof date, "%Y-%m-%d %H:%M:%S", co_wall_s());
    fprintf(s->log, "[%s] %s\n", date, text);
    fflush(s->log);
}

/* With console=quiet, prints to train.log only. */
void tell_both(training *s, const char *logged, const char *shown)
{
    put(s, s->app.cfg->console == CO_CONSOLE_QUIET, logged, shown);
}

void tell(training *s, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tell_both(s, text, text);
}

void shout(training *s, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put(s, false, text, text);
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

/* Ratings: which row is which user or item. */
static co_err write_ids(training *s)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    co_str text = {0};

    if (!data->names)
        return CO_OK;
    co_err err = ids_text(data, &text);
    if (!err)
        err = co_folder_write(s->folder, "ids.csv", co_str_text(&text), text.len);
    co_str_fini(&text);
    return err;
}

/* A resumed run adds a segment to the existing header. */
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
    provenance_put(s, h);
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

static co_err open_log(training *s)
{
    int fd;

    CO_TRY(co_folder_append(s->folder, "train.log", &fd));
    s->log = fdopen(fd, "a");
    if (s->log)
        return CO_OK;
    close(fd);
    return co_fail(CO_ENOMEM, "train.log: no memory");
}

/* The line that every start begins with: what is run, and by whom. */
static void record_start(training *s)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    char host[256] = "localhost";

    gethostname(host, sizeof host - 1);
    json_t *config =
        co_conf_json(s->app.conf); /* the task's name as it has it: an expression may hide a secret */
    json_t *event = json_pack("{ss sI ss sO* ss so sb so}", "name", "run_start", "step",
                              (json_int_t)s->first_step, "run_id", co_folder_run_id(s->folder), "task",
                              json_object_get(config, "task_name"), "cohort", COHORT_VERSION, "host",
                              co_json_string(host), "resumed", s->app.resume != NULL, "config", config);
    json_object_set_new(event, "ranks", json_integer(f->ranks));
    json_object_set_new(event, "parameters", json_integer((json_int_t)f->params));
    json_object_set_new(event, "metric", json_string(f->metric));
    json_object_set_new(event, "steps_per_epoch", json_integer(f->steps_per_epoch));
    co_event_json(s->folder, event);
}

/* The event that every start ends with, unless it is killed. */
void record_end(training *s, const json_t *summary)
{
    static const char *const kept[] = {"status",  "wall_s", "samples_per_s", "weights_sha256",
                                       "metrics", "best",   "hosts"};
    json_t *event =
        json_pack("{ss sI}", "name", "run_end", "step", (json_int_t)s->summary.steps); /* NULL is fine below */

    for (size_t i = 0; i < CO_COUNT(kept); i++)
        json_object_set(event, kept[i], json_object_get(summary, kept[i]));
    co_event_json(s->folder, event);
}

co_err record_open(training *s)
{
    forget(s, "summary.json"); /* an earlier start's: until this one ends there must be none */
    forget(s, "blame.json");
    CO_TRY(open_log(s));
    CO_TRY(co_events_open(s->folder));
    CO_TRY(write_text(s, "config.yaml", co_conf_yaml));
    CO_TRY(write_text(s, "overrides.yaml", co_conf_overrides));
    CO_TRY(write_text(s, "config_tree.log", co_conf_tree));
    CO_TRY(write_header(s));
    CO_TRY(write_ids(s));
    CO_TRY(run_files_write(co_plan_facts_of(s->plan)->data, s->folder));
    s->first_step = co_plan_facts_of(s->plan)->start_step;
    memory_recall(s);
    record_start(s);
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
        tell(s, "fsdp      on one host the ranks already share one copy of the state: same as ddp");
    tell(s, "run       %s", co_folder_path(s->folder));
}

void record_warn(void *ctx, const char *text)
{
    shout(ctx, "warning   %s", text);
}

static void record_note(void *ctx, const char *text)
{
    tell(ctx, "%s", text);
}

static void stop_for_tracker(void *ctx, const char *tracker)
{
    training *s = ctx;

    tell(s, "%-9s somebody has asked there that the run stop: it saves and stops", tracker);
    s->stop_asked = true;
}

static bool wants_stop(void *ctx)
{
    return ((const training *)ctx)->stop_asked;
}

void record_track(training *s)
{
    co_tracker_pick chosen[CO_TRACKERS_MOST];
    int n = app_trackers(&s->app, chosen);
    char host[256] = "localhost", config[4096];

    gethostname(host, sizeof host - 1);
    snprintf(config, sizeof config, "%s/config.yaml", co_folder_path(s->folder));
    co_run_facts facts = {.dir = co_folder_path(s->folder),
                          .run_id = co_folder_run_id(s->folder),
                          .task = s->app.cfg->task_name,
                          .config = config,
                          .host = host,
                          .first_step = s->first_step,
                          .names = app_names(&s->app)};
    if (co_tracking_open(&s->tracking, s->folder, &facts, chosen, n) != CO_OK)
        record_warn(s, co_errmsg());
    co_tracking_on_notice(s->tracking, record_note, s);
    co_tracking_on_stop(s->tracking, stop_for_tracker, s);
}

static void on_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    training *s = ctx;

    if (failure) {
        shout(s, "checkpoint of step %lld NOT saved: %s%s", (long long)step, failure,
              s->summary.saved[0] || co_plan_facts_of(s->plan)->start_step ? "; earlier ones stay good" : "");
        co_event_json(s->folder, json_pack("{s:s, s:I, s:s}", "name", "checkpoint_failed", "step",
                                           (json_int_t)step, "why", failure));
        return;
    }
    co_event_json(s->folder,
                  json_pack("{s:s, s:I, s:s}", "name", "checkpoint", "step", (json_int_t)step, "path", path));
    histograms_begin(s, step, path);
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

    if (!s->tested && (s->last.step || s->evaluating))
        follow_progress(s, false);
    machine_look(s);
    if (now - s->flush_ns > 1000000000u) {
        s->flush_ns = now;
        histograms_turn(s);
        samples_turn(s);
        co_err err = co_events_flush(s->folder);
        if (err == CO_EFAIL) /* another run has taken the folder over */
            return err;
        if (err)
            co_errclear(); /* a full disk: the folder keeps the error and reports it */
        co_tracking_more(s->tracking);
        co_tracking_troubles(s->tracking, record_warn, s);
        book_turn(s);
    }
    return CO_OK;
}

/* Writes the events so far to events.jsonl. Publishing, which runs in the saver, syncs the file. */
static co_err on_record(void *ctx)
{
    training *s = ctx;

    CO_TRY(co_events_flush(s->folder));
    co_tracking_more(s->tracking);
    return CO_OK;
}

/* The folder is leased to one run, whatever its view. */
static co_err on_publish(void *ctx, int64_t view)
{
    (void)view;
    return co_folder_settle(((training *)ctx)->folder);
}

void record_end_progress(training *s)
{
    if (s->last.step && co_console_is_bar(s->console))
        follow_progress(s, true);
    co_console_close(s->console);
    s->console = NULL;
}

co_train_hooks record_hooks(training *s)
{
    return (co_train_hooks){.ctx = s,
                            .started = follow_start,
                            .step = follow_step,
                            .eval = follow_eval,
                            .gradients = histograms_gradient,
                            .evaluating = follow_evaluating,
                            .saved = on_saved,
                            .recovery = on_recovery,
                            .notice = on_notice,
                            .record = on_record,
                            .publish = on_publish,
                            .publish_fd = s->folder ? co_folder_settle_fd(s->folder) : -1,
                            .remember = memory_json,
                            .turn = on_turn,
                            .wants_stop = wants_stop,
                            .ranks = machine_ranks};
}
