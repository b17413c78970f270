/* prometheus.c -- the last values of a run for Prometheus, as long as it runs: http://127.0.0.1:PORT/metrics.
 *
 * The address is in the file prometheus.url of the run folder, which is removed at the end. Every scalar of the record
 * is a gauge (prometheus_text.c); steps, checkpoints and recoveries are counted. Nothing else is written. A thread
 * answers (prometheus_http.c); the lock is held while the text is made or a value is set, and no step waits for it.
 */
#include "track/trackers/prometheus_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

struct prometheus_cfg {
    int64_t port;
    char *address;
};

static const co_option options[] = {
    {"port", CO_OPT_INT, offsetof(struct prometheus_cfg, port), "0",
     "port of the page /metrics; 0: a free one, prometheus.url in the run folder has it", .max = 65535},
    {"address", CO_OPT_STR, offsetof(struct prometheus_cfg, address), "127.0.0.1",
     "where to listen; anybody who reaches the address may read: 0.0.0.0 is all of this host's", .needed = true},
    {0}};

struct exporter {
    const co_run_facts *run;
    char *url_path;
    pthread_mutex_t lock; /* of `all` */
    struct metrics all;
    struct http_server http;
    bool wrote_url;
};

static void print(void *ctx, co_str *out)
{
    struct exporter *e = ctx;
    const char *slash = strrchr(e->run->dir, '/');

    pthread_mutex_lock(&e->lock);
    metrics_print(out, &e->all, slash ? slash + 1 : e->run->dir);
    pthread_mutex_unlock(&e->lock);
}

static void release(struct exporter *e)
{
    pthread_mutex_destroy(&e->lock);
    co_free(e->all.list);
    co_free(e->url_path);
    co_free(e);
}

static co_err prometheus_open(void **out, const co_run_facts *run, const void *settings)
{
    const struct prometheus_cfg *cfg = settings;
    struct exporter *e = co_zalloc(sizeof *e);

    if (!e)
        return CO_ENOMEM;
    e->run = run;
    e->url_path = co_sprintf("%s/prometheus.url", run->dir);
    pthread_mutex_init(&e->lock, NULL);
    e->http.print = print;
    e->http.ctx = e;
    co_err err = e->url_path ? prom_http_start(&e->http, cfg->address, (int)cfg->port) : CO_ENOMEM;
    if (err)
        release(e);
    else
        *out = e;
    return err;
}

/* Lines that are counted, not shown as values. */
static const struct {
    const char *line, *metric;
} counted[] = {{"checkpoint", "cohort_checkpoints_total"},
               {"recovery", "cohort_recoveries_total"},
               {"run_start", "cohort_starts_total"}};

static co_err count(struct exporter *e, const char *line)
{
    for (size_t i = 0; i < CO_COUNT(counted); i++) {
        struct metric m = {.counter = true, .value = 1};
        if (strcmp(counted[i].line, line) != 0)
            continue;
        snprintf(m.name, sizeof m.name, "%s", counted[i].metric);
        snprintf(m.from, sizeof m.from, "lines %s", line);
        for (size_t k = 0; k < e->all.n; k++)
            if (strcmp(e->all.list[k].name, m.name) == 0)
                m.value = e->all.list[k].value + 1;
        return metrics_set(&e->all, &m);
    }
    return CO_OK;
}

static co_err set(struct exporter *e, const co_record_line *line)
{
    const char *name = co_json_str(line->json, "name");
    long long step;
    double value, t;
    struct metric m;

    if (!name)
        return CO_OK;
    if (!co_json_i64(line->json, "step", &step) || !co_json_f64(line->json, "value", &value))
        return count(e, name);
    metric_of(&m, name, value, e->run->host);
    CO_TRY(metrics_set(&e->all, &m));
    m = (struct metric){
        .name = "cohort_train_steps_total", .from = "steps", .counter = true, .value = (double)step};
    CO_TRY(metrics_set(&e->all, &m));
    if (!co_json_f64(line->json, "t", &t))
        return CO_OK;
    m = (struct metric){.name = "cohort_last_value_timestamp_seconds", .from = "time", .value = t};
    return metrics_set(&e->all, &m);
}

static co_err prometheus_take(void *self, const co_record_line *line)
{
    struct exporter *e = self;

    pthread_mutex_lock(&e->lock);
    co_err err = set(e, line);
    pthread_mutex_unlock(&e->lock);
    return err;
}

static co_err prometheus_flush(void *self)
{
    struct exporter *e = self;
    char text[160];

    if (e->wrote_url)
        return CO_OK;
    int n = snprintf(text, sizeof text, "%s\n", e->http.url);
    CO_TRY(co_fs_write_lightly(e->url_path, text, (size_t)n));
    e->wrote_url = true;
    return CO_OK;
}

static void prometheus_close(void *self)
{
    struct exporter *e = self;

    prom_http_stop(&e->http);
    if (e->wrote_url)
        unlink(e->url_path);
    release(e);
}

const co_tracker_def prometheus_def = {
    .name = "prometheus",
    .help = "a page for Prometheus while the run goes on: the last value of each scalar",
    .open = prometheus_open,
    .take = prometheus_take,
    .flush = prometheus_flush,
    .close = prometheus_close,
    .options = options,
    .cfg_size = sizeof(struct prometheus_cfg),
    .memory = 512 << 10};
