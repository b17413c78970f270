/* gather_folder.c -- what the record in a run folder says about a run: its losses and accidents; of a run
 * that has ended also how far it came and the last figures of its hosts. */
#include "top/top_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

/* Means of as many stretches as there is room for. A thinned series has the least and the greatest value
 * of each stretch side by side: single points of it would look like noise. */
static void read_losses(top_run *run, co_run *from)
{
    const co_series *loss = co_run_series(from, "train/loss_step");
    size_t n = loss ? loss->n : 0, out = n < TOP_LOSSES ? n : TOP_LOSSES;

    for (size_t k = 0; k < out; k++) {
        size_t first = k * n / out, end = (k + 1) * n / out;
        double sum = 0;
        for (size_t i = first; i < end; i++)
            sum += loss->point[i].value;
        run->loss[run->losses++] = sum / (double)(end - first);
    }
}

static void read_events(top_run *run, co_run *from)
{
    for (size_t i = 0; i < co_run_event_count(from); i++) {
        const json_t *event = co_run_event(from, i);
        const char *name = co_json_str(event, "name"), *task = co_json_str(event, "task");
        run->recoveries += name && strcmp(name, "recovery") == 0;
        if (task && !run->live.task[0])
            co_utf8_clean(run->live.task, sizeof run->live.task, task);
    }
}

/* The place of a host among the run's, which has room for `most`; NULL: there is none. */
static co_use *host_of(top_run *run, const char *host, size_t most)
{
    for (int h = 0; h < run->hosts; h++)
        if (strcmp(run->host[h].host, host) == 0)
            return &run->host[h];
    if (!run->host || (size_t)run->hosts >= most)
        return NULL;
    co_use *use = &run->host[run->hosts++];
    co_use_clear(use);
    snprintf(use->host, sizeof use->host, "%s", host);
    return use;
}

/* The last value of each figure. */
static void read_last_use(top_run *run, co_run *from)
{
    enum { HOSTS_MOST = 64 };
    char host[CO_USE_HOST];
    const char *name;

    run->host = co_array(HOSTS_MOST, sizeof *run->host);
    for (size_t i = 0; i < co_run_series_count(from); i++) {
        const co_series *s = co_run_series_at(from, i);
        if (!co_use_split(s->name, host, &name))
            continue;
        co_use *use = host_of(run, host, HOSTS_MOST);
        if (!use || !co_use_put(use, name, s->point[s->n - 1].value))
            continue;
        double t = s->point[s->n - 1].t;
        use->t = t > use->t ? t : use->t;
    }
    for (int h = 0; h < run->hosts; h++)
        for (int r = 0; r < run->host[h].ranks; r++)
            snprintf(run->host[h].rank[r].doing, sizeof run->host[h].rank[r].doing, "%s",
                     run->state == CO_RUN_RUNNING ? "" : "ended");
}

static double last_of(co_run *from, const char *name)
{
    const co_series *s = co_run_series(from, name);

    return s ? s->point[s->n - 1].value : NAN;
}

/* The metric of the last step, whatever it is called: train/acc_step, train/mae_step. */
static void read_metric(top_run *run, co_run *from)
{
    for (size_t i = 0; i < co_run_series_count(from); i++) {
        const co_series *s = co_run_series_at(from, i);
        size_t n = strlen(s->name);
        if (strncmp(s->name, "train/", 6) != 0 || n < 12 || strcmp(s->name + n - 5, "_step") != 0 ||
            strcmp(s->name, "train/loss_step") == 0)
            continue;
        snprintf(run->metric, sizeof run->metric, "%.*s", (int)(n - 11), s->name + 6);
        run->progress.metric = s->point[s->n - 1].value;
        return;
    }
}

static void read_progress(top_run *run, co_run *from)
{
    const json_t *summary = co_run_summary(from);
    const co_series *loss = co_run_series(from, "train/loss_step");
    long long steps = 0, epochs = 0;

    run->progress = (co_progress){.loss = last_of(from, "train/loss_step"), .metric = NAN, .eta_s = NAN};
    run->progress.step = loss ? loss->point[loss->n - 1].step : 0;
    if (co_json_i64(summary, "steps", &steps) && co_json_i64(summary, "epochs", &epochs)) {
        run->progress.step = steps;
        run->progress.epoch = epochs;
    }
    if (!co_json_f64(summary, "samples_per_s", &run->progress.samples_per_s))
        run->progress.samples_per_s = NAN;
    read_metric(run, from);
    run->has_progress = run->progress.step > 0;
}

void top_read_folder(top_run *run, co_run *from)
{
    run->state = run->is_live ? CO_RUN_RUNNING : co_run_state_of(from);
    read_losses(run, from);
    read_events(run, from);
    if (run->is_live)
        return;
    run->live.started = co_run_first_t(from);
    if (co_run_host_count(from))
        co_utf8_clean(run->live.record_host, sizeof run->live.record_host, co_run_host(from, 0));
    if (!run->live.task[0])
        snprintf(run->live.task, sizeof run->live.task, "run");
    read_last_use(run, from);
    read_progress(run, from);
}
