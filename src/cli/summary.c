/* summary.c -- the end of the record: summary.json (its fields are a promise to scripts), blame.json,
 * exec_time.log, and the trackers' last lines. */
#include "cli/over_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "proc/blame.h"

static void put_num(json_t *obj, const char *prefix, const char *name, double x)
{
    char key[64];

    snprintf(key, sizeof key, "%s%s", prefix, name);
    if (!isnan(x))
        json_object_set_new(obj, key, co_json_num(x));
}

static json_t *metrics_of(const training *s)
{
    const co_train_summary *o = &s->summary;
    const char *metric = co_plan_facts_of(s->plan)->metric;
    json_t *m = json_object();

    put_num(m, "train/", "loss", o->loss);
    put_num(m, "train/", metric, o->train_metric);
    put_num(m, "val/", "loss", o->val_loss);
    put_num(m, "val/", metric, o->val_metric);
    if (tops_of(s) == 2)
        put_num(m, "val/", "acc5", o->val_top5);
    put_num(m, "test/", "loss", o->test_loss);
    put_num(m, "test/", metric, o->test_metric);
    if (tops_of(s) == 2)
        put_num(m, "test/", "acc5", o->test_top5);
    if (co_has_rmse(&co_plan_facts_of(s->plan)->data->io)) {
        put_num(m, "val/", "rmse", co_rmse(o->val_loss));
        put_num(m, "test/", "rmse", co_rmse(o->test_loss));
        put_num(m, "val/", HIT_RATE_NAME, s->hits.cases ? s->hits.hit_rate : NAN);
        put_num(m, "val/", NDCG_NAME, s->hits.cases ? s->hits.ndcg : NAN);
    }
    translations_put(s, m);
    return m;
}

/* Accuracy of the test by class; NULL where there is none. */
static json_t *classes_of(const training *s)
{
    co_class_result *c = NULL;
    int n = 0;

    if (co_plan_classes(s->plan, &c, &n) != CO_OK || n == 0) {
        co_errclear();
        return NULL;
    }
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *row = json_pack("{s:I, s:I, s:I}", "class", (json_int_t)c[i].label, "samples",
                                (json_int_t)c[i].count, "right", (json_int_t)c[i].right);
        if (c[i].name)
            json_object_set_new(row, "name", json_string(c[i].name));
        if (c[i].count)
            json_object_set_new(row, "acc", json_real((double)c[i].right / (double)c[i].count));
        json_array_append_new(list, row);
    }
    co_free(c);
    return list;
}

/* Where the loaders' time went, and how much of the ranks' time was lost waiting for them. */
static json_t *data_of(const training *s)
{
    const co_fill_times *t = &s->last.fill;

    return json_pack("{s:f, s:f, s:f, s:f}", "wait", s->data_wait, "read_s", 1e-9 * (double)t->read_ns,
                     "decode_s", 1e-9 * (double)t->decode_ns, "augment_s", 1e-9 * (double)t->augment_ns);
}

json_t *figures_of_host(const training *s)
{
    const co_train_summary *o = &s->summary;
    char name[256] = "localhost";
    double cpu = o->cpu_user_s + o->cpu_sys_s;
    const co_plan_facts *f = co_plan_facts_of(s->plan);

    gethostname(name, sizeof name - 1);
    return json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:f, s:I, s:I}", "name",
                     name, "ranks", f->ranks, "threads", f->threads, "cpu_user_s", o->cpu_user_s, "cpu_sys_s",
                     o->cpu_sys_s, "supervisor_cpu_s", o->supervisor_cpu_s, "wall_s", o->wall_s, "utilisation",
                     o->wall_s > 0 ? cpu / (o->wall_s * f->ranks * f->threads) : 0.0, "peak_memory_bytes",
                     (json_int_t)o->peak_memory_bytes, "input_s", o->split.input_s, "compute_s",
                     o->split.compute_s, "exchange_s", o->split.exchange_s, "wait_s", o->split.wait_s,
                     "sent_bytes", (json_int_t)o->wire_sent, "received_bytes", (json_int_t)o->wire_got);
}

/* This one first. */
static json_t *hosts_of(const training *s)
{
    json_t *all = json_array();

    json_array_append_new(all, figures_of_host(s));
    over_add_figures(s, all);
    return all;
}

json_t *summary_of(const training *s)
{
    static const char *const status[] = {"done", "stopped", "failed"};
    const co_train_summary *o = &s->summary;
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    json_t *j = json_object();

    json_object_set_new(j, "status", json_string(status[o->status]));
    json_object_set_new(j, "steps", json_integer(o->steps));
    json_object_set_new(j, "epochs", json_integer(o->epochs));
    json_object_set_new(j, "samples", json_integer(o->samples));
    json_object_set_new(j, "wall_s", json_real(o->wall_s));
    json_object_set_new(j, "weights_sha256", json_string(o->weights_sha256));
    json_object_set_new(j, "metrics", metrics_of(s));
    json_t *best = json_object();
    if (!isnan(o->best)) {
        put_num(best, "", o->monitor, o->best);
        json_object_set_new(best, "step", json_integer(o->best_step));
    }
    json_object_set_new(j, "best", best);
    if (!isnan(o->test_loss))
        json_object_set_new(j, "tested",
                            json_pack("{s:s, s:I}", "weights", o->tested_best ? "best" : "last", "step",
                                      (json_int_t)o->tested_step));
    json_object_set_new(j, "ranks", json_integer(f->ranks));
    json_object_set_new(j, "threads", json_integer(f->threads));
    json_object_set_new(j, "slices", json_integer(f->slices));
    json_object_set_new(j, "global_batch", json_integer(f->batch));
    json_object_set_new(j, "parameters", json_integer((json_int_t)f->params));
    json_object_set_new(j, "samples_per_s", json_real(o->samples_per_s));
    json_object_set_new(j, "timed",
                        json_pack("{s:I, s:I, s:I, s:f, s:f}", "steps", (json_int_t)o->timed.steps, "samples",
                                  (json_int_t)o->timed.samples, "counted", (json_int_t)o->timed.counted,
                                  "wall_s", o->timed.wall_s, "cpu_s", o->timed.cpu_s));
    json_object_set_new(j, "peak_memory_bytes", json_integer((json_int_t)o->peak_memory_bytes));
    json_object_set_new(j, "planned_memory_bytes",
                        json_integer((json_int_t)(f->arena_bytes + f->private_bytes)));
    json_object_set_new(j, "recoveries", json_integer(o->recoveries));
    put_num(j, "recovery_", "median_ms", o->recovery_median_ms);
    put_num(j, "recovery_", "p99_ms", o->recovery_p99_ms);
    put_num(j, "", "sum_apply_ms", o->sum_apply_ms);
    json_object_set_new(j, "first_step_s",
                        json_real(o->first_step_ns ? (double)(o->first_step_ns - s->began_ns) * 1e-9 : 0.0));
    json_object_set_new(j, "first_step_clock_ns",
                        json_integer((json_int_t)o->first_step_ns)); /* CLOCK_MONOTONIC */
    json_object_set_new(j, "steady_allocations", json_integer((json_int_t)o->steady_allocs));
    json_object_set_new(j, "steady_page_faults", json_integer((json_int_t)o->steady_faults));
    json_object_set_new(j, "kernels", json_string(f->kernels));
    json_object_set_new(j, "hosts", hosts_of(s));
    if (f->wire_bytes > 0)
        json_object_set_new(j, "planned_wire_bytes", json_real(f->wire_bytes)); /* a step, each host */
    json_object_set_new(j, "system", machine_json(s));
    json_object_set_new(j, "data", data_of(s));
    json_t *by_class = isnan(o->test_loss) ? NULL : classes_of(s);
    if (by_class)
        json_object_set_new(j, "test_classes", by_class);
    if (!s->changed && s->reproduce)
        json_object_set_new(j, "reproduce", json_string(s->reproduce));
    return j;
}

static co_err write_blame(training *s)
{
    return co_blame_write_take(
        co_folder_path(s->folder), co_folder_run_id(s->folder),
        json_pack("{s:s, s:I}", "what", s->summary.blame, "step", (json_int_t)s->summary.steps + 1));
}

/* summary.json comes last: whoever waits for it finds everything else whole. */
co_err record_close(training *s)
{
    char text[128];
    int n = snprintf(text, sizeof text, "'%s' execution time: %.3f (s)\n", s->app.cfg->task_name,
                     s->summary.wall_s);
    json_t *so_far = summary_of(s);

    machine_gpus(s, true);
    histograms_end(s);
    samples_end(s);
    samples_record(s);
    record_end(s, so_far);
    json_decref(so_far);
    co_err err = co_events_flush(s->folder);
    s->summary.peak_memory_bytes += co_tracking_close(s->tracking, CO_TRACKING_END_S, record_warn, s);
    s->tracking = NULL;
    if (!err && s->summary.status == CO_STATUS_FAILED)
        err = write_blame(s);
    if (!err)
        err = co_folder_write(s->folder, "exec_time.log", text, (size_t)n);
    json_t *j = summary_of(s);
    co_err wrote = co_folder_write_json(s->folder, "summary.json", j);
    json_decref(j);
    if (!wrote)
        wrote = co_folder_sync(s->folder);
    return err ? err : wrote;
}
