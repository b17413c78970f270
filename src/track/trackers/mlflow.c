/* mlflow.c -- MLflow: parameters, metrics and files of the run through a tracking server's REST API.
 *
 * Scalars that the server has not taken wait in memory, 24 bytes each. RUN/mlflow.json remembers the
 * server's run and how many scalars it has, so a continued run goes on in the same one. A batch that was
 * sent just before a kill may be sent twice; MLflow keeps equal values once. A server that does not answer
 * is tried again at the next flush.
 */
#include "track/track_int.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/seen.h"
#include "track/mlflow_int.h"
#include "track/name_list_int.h"

#define FLUSH_MOST_S 10 /* how long one flush may send */
#define END_S        20 /* how long the end of a run tries to reach the server */

enum { BATCH = 1000, PARAMS = 100, VALUE_MOST = 500 };

struct metric {
    uint32_t name;
    int64_t step;
    double value, t;
};

struct tracker {
    char *dir, *state, *experiment, *run_name;
    mlflow_server server;
    char run[64], artifacts[1024]; /* run "": the server does not have it yet */
    bool params_sent, resumed;     /* resumed: the run of an earlier start goes on */
    json_t *config;
    double start;
    co_seen seen;
    name_list names;
    struct metric *queue;
    size_t head, n, room; /* queue[head ... n) wait */
    int64_t known;        /* scalars that the server had when this start began: passed over */
    int64_t sent;         /* scalars that the server has, known ones among them */
    char notice[500];
    bool in_trouble, told_files;
};

/* --- what waits --- */
static co_err add_metric(struct tracker *t, int64_t step, const char *name, double value, double at)
{
    bool is_new;

    CO_TRY(co_seen_add_at(&t->seen, &is_new, step, name));
    if (!is_new && strncmp(name, "system/", 7) != 0)
        return CO_OK; /* steps that a kill made the run do again */
    if (t->known > 0) {
        t->known--;
        return CO_OK;
    }
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 1024;
        struct metric *more = co_realloc(t->queue, room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        t->queue = more;
        t->room = room;
    }
    struct metric *m = &t->queue[t->n];
    *m = (struct metric){.step = step, .value = value, .t = at};
    CO_TRY(name_list_index(&t->names, name, &m->name));
    t->n++;
    return CO_OK;
}

/* --- the run on the server --- */
static co_err save(struct tracker *t)
{
    json_t *v = json_pack("{ss ss sI sb}", "run_id", t->run, "artifact_uri", t->artifacts, "sent",
                          (json_int_t)t->sent, "params", t->params_sent);
    co_err err = v ? co_json_write(v, t->state) : CO_ENOMEM;

    json_decref(v);
    return err;
}

static co_err recall(struct tracker *t)
{
    json_t *v = NULL;
    long long n;

    if (!co_fs_exists(t->state))
        return CO_OK;
    co_err err = co_json_read(&v, t->state, 1 << 16);
    const char *run = co_json_str(v, "run_id"), *artifacts = co_json_str(v, "artifact_uri");
    if (!err && run && artifacts && co_json_i64(v, "sent", &n) && n >= 0) {
        snprintf(t->run, sizeof t->run, "%s", run);
        snprintf(t->artifacts, sizeof t->artifacts, "%s", artifacts);
        t->known = t->sent = n;
        t->params_sent = json_is_true(json_object_get(v, "params"));
        t->resumed = true;
    }
    json_decref(v);
    return err == CO_EFORMAT ? CO_OK : err; /* damaged: a new run */
}

static co_err send_file(struct tracker *t, const char *name)
{
    char *path = co_sprintf("%s/%s", t->dir, name);
    co_err err = CO_OK;

    if (!path)
        return CO_ENOMEM;
    if (mlflow_takes_files(t->artifacts))
        err = mlflow_send_file(&t->server, t->artifacts, path, name);
    else if (!t->told_files)
        snprintf(t->notice, sizeof t->notice,
                 "files are not uploaded: the server keeps them at %.200s, and passes none on", t->artifacts);
    t->told_files = true;
    co_free(path);
    return err == CO_EFAIL ? CO_OK : err; /* the file is not there */
}

static co_err begin_run(struct tracker *t)
{
    char experiment[64];

    if (t->run[0] && !t->resumed)
        return CO_OK;
    if (t->resumed) {
        CO_TRY(mlflow_update(&t->server, t->run, "RUNNING", 0));
        t->resumed = false;
        return CO_OK;
    }
    CO_TRY(mlflow_experiment(&t->server, t->experiment, experiment));
    CO_TRY(mlflow_create(&t->server, experiment, t->run_name, t->start, t->run, t->artifacts));
    CO_TRY(save(t));
    snprintf(t->notice, sizeof t->notice, "%.200s/#/experiments/%s/runs/%s", t->server.base, experiment,
             t->run);
    return CO_OK;
}

static json_t *param(const char *key, const json_t *value)
{
    char *text = json_is_string(value) ? co_strdup(json_string_value(value)) : co_json_text(value),
         clean[VALUE_MOST];
    json_t *p = NULL;

    if (text) {
        co_utf8_clean(clean, sizeof clean, text);
        p = json_pack("{ss ss}", "key", key, "value", clean);
    }
    co_free(text);
    return p;
}

/* Once a run: MLflow refuses another value for a parameter. */
static co_err send_params(struct tracker *t)
{
    json_t *list = json_array(), *value;
    const char *key;
    size_t n = 0, all = json_object_size(t->config);
    co_err err = list ? CO_OK : CO_ENOMEM;

    json_object_foreach(t->config, key, value)
    {
        if (!err && json_array_append_new(list, param(key, value)) != 0)
            err = CO_ENOMEM;
        n++;
        if (!err && (n % PARAMS == 0 || n == all)) {
            err = mlflow_log(&t->server, t->run, NULL, list, NULL);
            json_array_clear(list);
        }
    }
    json_decref(list);
    if (!err)
        err = send_file(t, "config.yaml");
    t->params_sent = !err;
    return err ? err : save(t);
}

/* Letters, digits and _-. /: are allowed in a name. */
static void their_name(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s", name);
    for (char *at = out; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-. /:", *at))
            *at = '_';
}

static json_t *metric_json(const struct tracker *t, const struct metric *m)
{
    char name[251];

    their_name(name, sizeof name, t->names.name[m->name]);
    json_t *value = isnan(m->value)   ? json_string("NaN")
                    : isinf(m->value) ? json_string(m->value > 0 ? "Infinity" : "-Infinity")
                                      : json_real(m->value);
    return json_pack("{ss so sI sI}", "key", name, "value", value, "timestamp", (json_int_t)(m->t * 1000),
                     "step", (json_int_t)m->step);
}

static co_err send_metrics(struct tracker *t)
{
    size_t waiting = t->n - t->head, n = waiting < BATCH ? waiting : BATCH;
    json_t *list = json_array();
    co_err err = list ? CO_OK : CO_ENOMEM;

    for (size_t i = 0; i < n && !err; i++)
        err = json_array_append_new(list, metric_json(t, &t->queue[t->head + i])) == 0 ? CO_OK : CO_ENOMEM;
    if (!err)
        err = mlflow_log(&t->server, t->run, list, NULL, NULL);
    json_decref(list);
    if (err)
        return err;
    t->head += n;
    if (t->head == t->n)
        t->head = t->n = 0;
    t->sent += (int64_t)n;
    return save(t);
}

static co_err send_all(struct tracker *t)
{
    double until_s = co_now_s() + FLUSH_MOST_S;

    if (!t->config && !t->n)
        return CO_OK;
    CO_TRY(begin_run(t));
    if (!t->params_sent && t->config)
        CO_TRY(send_params(t));
    while (t->n && co_now_s() < until_s)
        CO_TRY(send_metrics(t));
    return CO_OK;
}

/* Only what cannot get better is an error; the rest is said once and tried again. */
static co_err mlflow_flush(void *self)
{
    struct tracker *t = self;
    co_err err = send_all(t);

    if (err && !t->in_trouble)
        snprintf(t->notice, sizeof t->notice, "%.400s; it tries again", co_errmsg());
    else if (!err && t->in_trouble)
        snprintf(t->notice, sizeof t->notice, "the server answers again");
    t->in_trouble = err;
    return err == CO_ENOMEM ? err : CO_OK;
}

static co_err take_end(struct tracker *t, const json_t *line, double at)
{
    const char *status = co_json_str(line, "status");
    const char *theirs = !status || strcmp(status, "done") == 0 ? "FINISHED"
                         : strcmp(status, "stopped") == 0       ? "KILLED"
                                                                : "FAILED";
    double until_s = co_now_s() + (t->run[0] ? END_S : 0); /* a server that never answered is not waited for */
    co_err err;

    for (;;) {
        err = send_all(t);
        if (!err && !t->n)
            err = send_file(t, "train.log");
        if (!err && !t->n)
            err = mlflow_update(&t->server, t->run, theirs, at);
        if ((!err && !t->n) || err == CO_ENOMEM || err == CO_EINPUT || co_now_s() >= until_s)
            break;
        if (err)
            usleep(500000);
    }
    return err || t->n ? co_fail(CO_EIO, "%zu values did not reach the server: %s", t->n, co_errmsg()) : CO_OK;
}

static co_err mlflow_take(void *self, const co_record_line *line)
{
    struct tracker *t = self;
    const char *name = co_json_str(line->json, "name");
    long long step;
    double value, at = 0;

    if (!name)
        return CO_OK;
    co_json_f64(line->json, "t", &at);
    if (t->start == 0)
        t->start = at;
    if (co_json_i64(line->json, "step", &step) && co_json_f64(line->json, "value", &value))
        return add_metric(t, step, name, value, at);
    json_t *config = json_object_get(line->json, "config");
    if (strcmp(name, "run_start") == 0 && json_is_object(config)) {
        json_decref(t->config);
        t->config = json_incref(config);
    }
    return strcmp(name, "run_end") == 0 && !line->replayed ? take_end(t, line->json, at) : CO_OK;
}

static bool mlflow_notice(void *self, char *out, size_t size)
{
    struct tracker *t = self;
    bool any = t->notice[0] != '\0';

    if (any)
        snprintf(out, size, "%s", t->notice);
    t->notice[0] = '\0';
    return any;
}

static void mlflow_close(void *self)
{
    struct tracker *t = self;

    mlflow_server_fini(&t->server);
    name_list_fini(&t->names);
    co_free(t->queue);
    co_seen_fini(&t->seen);
    json_decref(t->config);
    co_free(t->dir);
    co_free(t->state);
    co_free(t->experiment);
    co_free(t->run_name);
    co_free(t);
}

static co_err mlflow_open(void **out, const co_run_facts *run, const void *settings)
{
    const mlflow_cfg *cfg = settings;
    struct tracker *t = co_zalloc(sizeof *t);
    const char *named = getenv("MLFLOW_EXPERIMENT_NAME"), *slash = strrchr(run->dir, '/');

    if (!t)
        return CO_ENOMEM;
    t->dir = co_strdup(run->dir);
    t->state = co_sprintf("%s/mlflow.json", run->dir);
    t->experiment = co_strdup(cfg->experiment_name ? cfg->experiment_name
                              : named && *named    ? named
                                                   : run->task);
    t->run_name = co_strdup(cfg->run_name ? cfg->run_name : slash && slash[1] ? slash + 1 : run->dir);
    co_err err =
        t->dir && t->state && t->experiment && t->run_name ? mlflow_server_init(&t->server, cfg) : CO_ENOMEM;
    if (!err)
        err = recall(t);
    if (!err && (!co_utf8_valid(t->run_name) || !co_utf8_valid(t->experiment)))
        err = co_fail(CO_EINPUT, "logger=mlflow: the names of run and experiment must be UTF-8");
    if (err)
        mlflow_close(t);
    else
        *out = t;
    return err;
}

static co_err mlflow_check(const void *settings)
{
    const mlflow_cfg *cfg = settings;

    return cfg->tracking_uri ? mlflow_check_uri("logger.mlflow.tracking_uri", cfg->tracking_uri) : CO_OK;
}

static const co_option options[] = {
    {"tracking_uri", CO_OPT_STR, offsetof(mlflow_cfg, tracking_uri), "null",
     "the server's address; null: $MLFLOW_TRACKING_URI, or http://127.0.0.1:5000"},
    {"experiment_name", CO_OPT_STR, offsetof(mlflow_cfg, experiment_name), "null",
     "null: $MLFLOW_EXPERIMENT_NAME, or the task's name"},
    {"run_name", CO_OPT_STR, offsetof(mlflow_cfg, run_name), "null", "null: the name of the run folder"},
    {0}};

const co_tracker_def mlflow_def = {
    "mlflow",
    "MLflow: parameters, metrics and files through a tracking server",
    mlflow_open,
    mlflow_take,
    mlflow_flush,
    mlflow_close,
    .options = options,
    .cfg_size = sizeof(mlflow_cfg),
    .check = mlflow_check,
    .memory = 2 << 20, /* libcurl's */
    .notice = mlflow_notice,
};
