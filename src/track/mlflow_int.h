/* mlflow_int.h -- the REST API of an MLflow tracking server, as far as a run needs it. */
#ifndef CO_TRACK_MLFLOW_INT_H
#define CO_TRACK_MLFLOW_INT_H

#include <jansson.h>

#include "net/http.h"

typedef struct mlflow_cfg {
    char *tracking_uri, *experiment_name, *run_name;
} mlflow_cfg;

typedef struct mlflow_server {
    co_http *http; /* NULL: not opened yet */
    char *base;    /* "http://127.0.0.1:5000" */
    char *auth;    /* a header with the password or token; NULL: none */
    char *ca;      /* NULL: the system's */
    bool insecure;
} mlflow_server;
/* From the key, or MLFLOW_TRACKING_URI, _USERNAME, _PASSWORD, _TOKEN, _INSECURE_TLS, _SERVER_CERT_PATH. */
co_err mlflow_server_init(mlflow_server *s, const mlflow_cfg *cfg);
void mlflow_server_fini(mlflow_server *s);
co_err mlflow_check_uri(const char *what, const char *uri);

/* CO_EINPUT: the server refuses; its words are in the message. CO_EPEER, CO_EIO, CO_ETIMEOUT: later,
 * perhaps. */
co_err mlflow_experiment(mlflow_server *s, const char *name, char id[64]);
/* A new run. `artifacts` is where its files go. */
co_err mlflow_create(mlflow_server *s, const char *experiment, const char *run_name, double start,
                     char id[64], char artifacts[1024]);
/* Metrics, params and tags: arrays that the server takes as they are; each may be NULL. */
co_err mlflow_log(mlflow_server *s, const char *id, json_t *metrics, json_t *params, json_t *tags);
co_err mlflow_update(mlflow_server *s, const char *id, const char *status, double end); /* end 0: goes on */
/* A file, through the server. CO_EFAIL: it cannot be read. */
co_err mlflow_send_file(mlflow_server *s, const char *artifacts, const char *path, const char *name);
bool mlflow_takes_files(const char *artifacts); /* mlflow-artifacts:/... */

#endif
