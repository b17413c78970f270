/* prometheus_int.h -- what the files of the prometheus tracker share. */
#ifndef CO_TRACK_PROMETHEUS_INT_H
#define CO_TRACK_PROMETHEUS_INT_H

#include <pthread.h>

#include "track/track_int.h"

/* --- prometheus_text.c: the last value of each metric ------------------------------------------------------ */
enum { METRIC_NAME = 160, METRIC_LABELS = 320, METRICS_MOST = 10000 };

struct metric {
    char name[METRIC_NAME], labels[METRIC_LABELS]; /* labels: host="a",rank="0", or "" */
    char from[CO_METRIC_NAME];                     /* its name in the record */
    bool counter;
    double value;
};
struct metrics {
    struct metric *list; /* in the order of names and labels: a family stands together */
    size_t n, room;
};

/* A scalar of the record as a metric. Names become those that Prometheus allows, units its base units, and the host,
 * rank or GPU in a name a label. `host` is the one whose figures have no host in their names. */
void metric_of(struct metric *out, const char *name, double value, const char *host);
/* Sets a metric; one whose name and labels another scalar has already, as val/acc and val_acc would, is left out.
 * CO_ENOMEM, or CO_EFORMAT: too many. */
co_err metrics_set(struct metrics *all, const struct metric *m);
/* The text format 0.0.4; `run` is a label of every sample. */
void metrics_print(co_str *out, const struct metrics *all, const char *run);

/* --- prometheus_http.c: a thread that answers GET /metrics --------------------------------------------------- */
/* What a request deserves: 200, 404, 405, 400; 0: it is not complete yet. *head: HEAD, so no body is wanted. */
int prom_http_judge(const char *bytes, size_t len, bool *head);

struct http_server {
    int listener;
    char url[128];
    pthread_t thread;
    void (*print)(void *ctx, co_str *out); /* the body; called by the thread */
    void *ctx;
};
/* `address` is a number, IPv4 or IPv6; port 0: a free one. */
co_err prom_http_start(struct http_server *s, const char *address, int port);
void prom_http_stop(struct http_server *s);

#endif
