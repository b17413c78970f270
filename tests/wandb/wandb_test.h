/* wandb_test.h -- a service of ours for the uploader: it keeps what it is sent, and can be ill. */
#ifndef TESTS_WANDB_TEST_H
#define TESTS_WANDB_TEST_H

#include "wandb/wandb_int.h"

enum { SERVICE_LINES = 4096 };

enum { SERVICE_RUNS = 8 };

typedef struct service {
    int fd, port;
    /* It keeps the first run that it hears of itself, each other one in a struct of its own. */
    char id[64];
    struct service *other[SERVICE_RUNS];
    pthread_t thread;
    atomic_bool end;
    /* illness: each request takes one from the first that is not 0 */
    atomic_int cut, answer_429, answer_500, slow_ms, refuse_key;
    /* what it knows; read it when the uploader has stopped */
    atomic_int requests, heartbeats;
    int upserts, files, completes, exitcode;
    json_t *first_upsert, *last_upsert; /* variables */
    char *line[N_CHANNELS][SERVICE_LINES];
    int times[N_CHANNELS][SERVICE_LINES]; /* how often each line came */
    int lines[N_CHANNELS];
    char *summary, uploaded[4096], key[256];
    double gap_s; /* between the 429 with its Retry-After and the next request */
    double at_429;
} service;
void service_open(service *s, int port); /* port 0: any */
void service_close(service *s);          /* connections are refused from now on; what it knows stays */
void service_forget(service *s);
service *service_run(service *s, const char *id); /* NULL: it knows no such run */
void service_use(const service *s);               /* sets WANDB_BASE_URL, a key and short times */

#endif
