/* mlflow_api.c -- requests to an MLflow tracking server: /api/2.0/mlflow/... in JSON, files by PUT. */
#include "track/mlflow_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"

#define REQUEST_S 10

enum { ANSWER_MOST = 1 << 20, FILE_MOST = 256 << 20 };

co_err mlflow_check_uri(const char *what, const char *uri)
{
    if (strncmp(uri, "http://", 7) == 0 || strncmp(uri, "https://", 8) == 0)
        return CO_OK;
    return co_fail(
        CO_EINPUT,
        "%s=%s is not the address of a server: start one (`mlflow server`) and give http://HOST:5000", what,
        uri);
}

static co_err read_auth(mlflow_server *s)
{
    const char *user = getenv("MLFLOW_TRACKING_USERNAME"), *password = getenv("MLFLOW_TRACKING_PASSWORD");
    const char *token = getenv("MLFLOW_TRACKING_TOKEN");

    if (user && *user && password)
        s->auth = co_http_basic(user, password);
    else if (token && *token)
        s->auth = co_sprintf("Authorization: Bearer %s", token);
    else
        return CO_OK;
    return s->auth ? CO_OK : CO_ENOMEM;
}

co_err mlflow_server_init(mlflow_server *s, const mlflow_cfg *cfg)
{
    const char *named = getenv("MLFLOW_TRACKING_URI"), *ca = getenv("MLFLOW_TRACKING_SERVER_CERT_PATH");
    const char *insecure = getenv("MLFLOW_TRACKING_INSECURE_TLS");
    const char *uri = cfg->tracking_uri ? cfg->tracking_uri
                      : named && *named ? named
                                        : "http://127.0.0.1:5000";
    mlflow_server new = {.insecure = insecure && strcmp(insecure, "true") == 0};
    co_err err =
        mlflow_check_uri(cfg->tracking_uri ? "logger.mlflow.tracking_uri" : "MLFLOW_TRACKING_URI", uri);

    if (!err)
        err = (new.base = co_strdup(uri)) ? read_auth(&new) : CO_ENOMEM;
    if (!err && ca && *ca && !(new.ca = co_strdup(ca)))
        err = CO_ENOMEM;
    if (err) {
        mlflow_server_fini(&new);
        return err;
    }
    while (new.base[0] && new.base[strlen(new.base) - 1] == '/')
        new.base[strlen(new.base) - 1] = '\0';
    *s = new;
    return CO_OK;
}

void mlflow_server_fini(mlflow_server *s)
{
    co_http_close(s->http);
    co_http_wipe(s->auth);
    co_free(s->base);
    co_free(s->ca);
    *s = (mlflow_server){0};
}

static void add_encoded(co_str *url, const char *text, const char *kept)
{
    for (; *text; text++)
        co_str_addf(url, isalnum((unsigned char)*text) || strchr(kept, *text) ? "%c" : "%%%02X",
                    (unsigned char)*text);
}

/* The server's own words, if it has any: {"error_code": ..., "message": ...}. */
static co_err refused(const co_http_answer *a, const char *url)
{
    json_t *v = NULL;
    char clean[300] = "";

    if (co_json_parse(&v, a->body, a->len, "answer") == CO_OK && co_json_str(v, "message"))
        co_utf8_clean(clean, sizeof clean, co_json_str(v, "message"));
    json_decref(v);
    if (*clean && a->status < 500)
        return co_fail(CO_EINPUT, "%s refuses (status %d): %s", url, a->status, clean);
    co_http_expect(a, url);
    return a->status >= 500 || a->status == 429 || a->status == 408 ? CO_EPEER : CO_EINPUT;
}

/* *out, unless NULL, is the caller's json_decref. *status is there for refusals, too. */
static co_err request(mlflow_server *s, json_t **out, int *status, const char *method, const char *url,
                      const void *body, size_t len)
{
    const char *const headers[] = {body ? "Content-Type: application/json" : "Accept: application/json",
                                   s->auth, NULL};
    co_http_request rq = {.method = method,
                          .url = url,
                          .headers = headers,
                          .body = body,
                          .len = len,
                          .most = ANSWER_MOST,
                          .insecure = s->insecure,
                          .ca = s->ca};
    co_patience patience = co_patience_s(REQUEST_S);
    co_http_answer a = {0};

    if (!s->http)
        CO_TRY(co_http_open(&s->http));
    CO_TRY(co_http_do(s->http, &a, &rq, &patience));
    *status = a.status;
    co_err err = a.status >= 200 && a.status < 300 ? CO_OK : refused(&a, url);
    if (!err && out)
        err = co_json_parse(out, a.body, a.len, "the answer of MLflow");
    co_free(a.body);
    return err;
}

static co_err call(mlflow_server *s, json_t **out, const char *name, json_t *take)
{
    char *body = take ? co_json_text(take) : NULL, *url = co_sprintf("%s/api/2.0/mlflow/%s", s->base, name);
    int status;
    co_err err = body && url ? request(s, out, &status, NULL, url, body, strlen(body)) : CO_ENOMEM;

    json_decref(take);
    co_free(body);
    co_free(url);
    return err;
}

static co_err copy_text(char *out, size_t size, const json_t *v, const char *key)
{
    const char *text = co_json_str(v, key);

    if (!text || strlen(text) >= size)
        return co_fail(CO_EFORMAT, "the answer of MLflow has no %s", key);
    snprintf(out, size, "%s", text);
    return CO_OK;
}

static co_err find_experiment(mlflow_server *s, const char *name, char id[64], int *status)
{
    co_str url = {0};
    json_t *v = NULL;

    co_str_addf(&url, "%s/api/2.0/mlflow/experiments/get-by-name?experiment_name=", s->base);
    add_encoded(&url, name, "-._~");
    co_err err = co_str_err(&url);
    *status = 0;
    if (!err)
        err = request(s, &v, status, NULL, url.p, NULL, 0);
    const json_t *experiment = json_object_get(v, "experiment");
    const char *stage = co_json_str(experiment, "lifecycle_stage");
    if (!err && stage && strcmp(stage, "deleted") == 0)
        err = co_fail(CO_EINPUT, "the experiment %s was deleted; restore it, or name another", name);
    if (!err)
        err = copy_text(id, 64, experiment, "experiment_id");
    json_decref(v);
    co_str_fini(&url);
    return err;
}

co_err mlflow_experiment(mlflow_server *s, const char *name, char id[64])
{
    json_t *v = NULL;
    int status;
    co_err err = find_experiment(s, name, id, &status);

    if (!err || status != 404)
        return err;
    err = call(s, &v, "experiments/create", json_pack("{ss}", "name", name));
    if (!err)
        err = copy_text(id, 64, v, "experiment_id");
    else if (err == CO_EINPUT) /* another run may have made it just now */
        err = find_experiment(s, name, id, &status);
    json_decref(v);
    return err;
}

co_err mlflow_create(mlflow_server *s, const char *experiment, const char *run_name, double start,
                     char id[64], char artifacts[1024])
{
    const char *user = getenv("USER");
    json_t *v = NULL;
    json_t *tags =
        json_pack("[{ssss}{ssss}{ssss}{ssss}]", "key", "mlflow.runName", "value", run_name, "key",
                  "mlflow.user", "value", user && co_utf8_valid(user) ? user : "unknown", "key",
                  "mlflow.source.name", "value", "cohort", "key", "mlflow.source.type", "value", "LOCAL");
    co_err err = tags ? call(s, &v, "runs/create",
                             json_pack("{ss sI ss so}", "experiment_id", experiment, "start_time",
                                       (json_int_t)(start * 1000), "run_name", run_name, "tags", tags))
                      : CO_ENOMEM;
    const json_t *info = json_object_get(json_object_get(v, "run"), "info");

    if (!err)
        err = copy_text(id, 64, info, "run_id");
    if (!err)
        err = copy_text(artifacts, 1024, info, "artifact_uri");
    json_decref(v);
    return err;
}

co_err mlflow_log(mlflow_server *s, const char *id, json_t *metrics, json_t *params, json_t *tags)
{
    json_t *v = json_pack("{ss}", "run_id", id);
    bool ok = v && (!metrics || json_object_set(v, "metrics", metrics) == 0) &&
              (!params || json_object_set(v, "params", params) == 0) &&
              (!tags || json_object_set(v, "tags", tags) == 0);

    if (!ok) {
        json_decref(v);
        return CO_ENOMEM;
    }
    return call(s, NULL, "runs/log-batch", v);
}

co_err mlflow_update(mlflow_server *s, const char *id, const char *status, double end)
{
    json_t *v = json_pack("{ss ss}", "run_id", id, "status", status);

    if (v && end > 0 && json_object_set_new(v, "end_time", json_integer((json_int_t)(end * 1000))) != 0) {
        json_decref(v);
        v = NULL;
    }
    return call(s, NULL, "runs/update", v);
}

bool mlflow_takes_files(const char *artifacts)
{
    return strncmp(artifacts, "mlflow-artifacts:", 17) == 0;
}

/* mlflow-artifacts:/1/RUN/artifacts, or mlflow-artifacts://HOST/1/...: the server passes the file on */
co_err mlflow_send_file(mlflow_server *s, const char *artifacts, const char *path, const char *name)
{
    const char *place = artifacts + 17;
    char *bytes = NULL;
    size_t len;
    co_str url = {0};
    int status;
    co_err err = co_fs_read(&bytes, &len, path, FILE_MOST);

    if (err)
        return err == CO_ENOMEM ? err : CO_EFAIL;
    if (strncmp(place, "//", 2) == 0)
        place += 2 + strcspn(place + 2, "/");
    co_str_addf(&url, "%s/api/2.0/mlflow-artifacts/artifacts", s->base);
    add_encoded(&url, place, "-._~/");
    co_str_add(&url, "/");
    add_encoded(&url, name, "-._~");
    err = co_str_err(&url);
    if (!err)
        err = request(s, NULL, &status, "PUT", url.p, bytes, len);
    co_free(bytes);
    co_str_fini(&url);
    return err;
}
