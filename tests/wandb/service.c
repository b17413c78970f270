/* service.c -- the loopback service of wandb_test.h: GraphQL, file_stream and uploads, one request at a
 * time, of up to SERVICE_RUNS connections. */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "wandb_test.h"

static const char *const names[N_CHANNELS] = {"wandb-history.jsonl", "wandb-events.jsonl", "output.log"};

/* A whole request; NULL: the connection ended. The body begins at *body. */
static char *take_request(service *s, int fd, char **body)
{
    co_str in = {0};
    char bytes[65536];

    while (!atomic_load(&s->end)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0)
            continue;
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n <= 0)
            break;
        co_str_addn(&in, bytes, (size_t)n);
        char *end = strstr(in.p, "\r\n\r\n"), *len = strcasestr(in.p, "content-length: ");
        if (end && (!len || in.len - (size_t)(end + 4 - in.p) >= strtoul(len + 16, NULL, 10))) {
            *body = end + 4;
            return co_str_take(&in);
        }
    }
    co_str_fini(&in);
    return NULL;
}

static void answer(int fd, int status, const char *head, const char *body)
{
    char *text =
        co_sprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
                   status, head, strlen(body), body);
    size_t len = strlen(text);

    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, text + at, len - at, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    co_free(text);
}

service *service_run(service *s, const char *id)
{
    service *of = strcmp(s->id, id) == 0 ? s : NULL;

    for (int i = 0; i < SERVICE_RUNS && !of && s->other[i]; i++)
        of = strcmp(s->other[i]->id, id) == 0 ? s->other[i] : NULL;
    return of;
}

/* The same; a run that is new is added. */
static service *run_of(service *s, const char *id)
{
    service *of = service_run(s, id);
    int n = 0;

    while (n < SERVICE_RUNS && s->other[n])
        n++;
    if (!of && s->id[0] && n < SERVICE_RUNS)
        of = s->other[n] = co_zalloc(sizeof *of);
    of = of ? of : s;
    if (!of->id[0])
        snprintf(of->id, sizeof of->id, "%s", id);
    return of;
}

static void take_lines(service *s, const json_t *files)
{
    for (int c = 0; c < N_CHANNELS; c++) {
        const json_t *part = json_object_get(files, names[c]), *content = json_object_get(part, "content");
        size_t offset = (size_t)json_integer_value(json_object_get(part, "offset"));
        for (size_t i = 0; i < json_array_size(content) && offset + i < SERVICE_LINES; i++) {
            size_t at = offset + i;
            co_free(s->line[c][at]);
            s->line[c][at] = co_strdup(json_string_value(json_array_get(content, i)));
            s->times[c][at]++;
            s->lines[c] = (int)at + 1 > s->lines[c] ? (int)at + 1 : s->lines[c];
        }
    }
    const json_t *summary = json_object_get(json_object_get(files, "wandb-summary.json"), "content");
    if (json_array_size(summary)) {
        co_free(s->summary);
        s->summary = co_strdup(json_string_value(json_array_get(summary, 0)));
    }
}

static void take_stream(service *s, int fd, const char *body)
{
    json_t *v = NULL;
    const char *name;
    size_t i;

    CHECK_OK(co_json_parse(&v, body, strlen(body), "file_stream"));
    take_lines(s, json_object_get(v, "files"));
    if (json_object_size(v) == 0)
        atomic_fetch_add(&s->heartbeats, 1);
    json_t *uploaded = json_object_get(v, "uploaded"), *file;
    json_array_foreach(uploaded, i, file)
    {
        name = json_string_value(file);
        snprintf(s->uploaded + strlen(s->uploaded), sizeof s->uploaded - strlen(s->uploaded), "%s ", name);
    }
    if (json_is_true(json_object_get(v, "complete"))) {
        s->completes++;
        s->exitcode = (int)json_integer_value(json_object_get(v, "exitcode"));
    }
    json_decref(v);
    answer(fd, 200, "", "{\"exitcode\":null,\"limits\":{}}");
}

static char *status_of(const service *s)
{
    co_str tail = {0}, quoted = {0};
    int n = s->lines[CH_HISTORY];

    if (s->upserts == 0)
        return co_strdup("{\"data\":{\"model\":{\"bucket\":null}}}");
    co_str_add(&tail, "[");
    if (n)
        json_quote(&tail, s->line[CH_HISTORY][n - 1], strlen(s->line[CH_HISTORY][n - 1]));
    co_str_add(&tail, "]");
    json_quote(&quoted, tail.p, tail.len);
    char *text =
        co_sprintf("{\"data\":{\"model\":{\"bucket\":{\"historyLineCount\":%d,\"eventsLineCount\":%d,"
                   "\"logLineCount\":%d,\"historyTail\":%s}}}}",
                   n, s->lines[CH_EVENTS], s->lines[CH_OUTPUT], quoted.p);
    co_str_fini(&tail);
    co_str_fini(&quoted);
    return text;
}

static void take_graphql(service *s, int fd, const char *body)
{
    json_t *v = NULL;

    CHECK_OK(co_json_parse(&v, body, strlen(body), "graphql"));
    const char *query = co_json_str(v, "query");
    json_t *variables = json_object_get(v, "variables");
    if (strstr(query, "RunResumeStatus")) {
        char *text = status_of(run_of(s, co_json_str(variables, "name")));
        answer(fd, 200, "", text);
        co_free(text);
    } else if (strstr(query, "upsertBucket")) {
        s = run_of(s, co_json_str(variables, "name"));
        json_decref(s->last_upsert);
        s->last_upsert = json_incref(variables);
        if (!s->upserts++)
            s->first_upsert = json_incref(variables);
        answer(fd, 200, "",
               "{\"data\":{\"upsertBucket\":{\"bucket\":{\"id\":\"x\",\"project\":{\"name\":\"my project\","
               "\"entity\":{\"name\":\"tester\"}}},\"inserted\":true}}}");
    } else {
        char *text =
            co_sprintf("{\"data\":{\"createRunFiles\":{\"runID\":\"x\",\"uploadHeaders\":[\"X-A:b\"],"
                       "\"files\":[{\"name\":\"f\",\"uploadUrl\":\"http://127.0.0.1:%d/storage/f\"}]}}}",
                       s->port);
        answer(fd, 200, "", text);
        co_free(text);
    }
    json_decref(v);
}

static bool take(atomic_int *count)
{
    return atomic_load(count) > 0 && atomic_fetch_sub(count, 1) > 0;
}

/* False: the connection is closed without an answer. */
static bool serve(service *s, int fd, char *request, const char *body)
{
    atomic_fetch_add(&s->requests, 1);
    if (s->at_429 > 0) {
        s->gap_s = co_now_s() - s->at_429;
        s->at_429 = 0;
    }
    char *auth = strcasestr(request, "\r\nauthorization: ");
    if (auth)
        snprintf(s->key, sizeof s->key, "%.*s", (int)strcspn(auth + 17, "\r"), auth + 17);
    if (atomic_load(&s->slow_ms))
        poll(NULL, 0, atomic_load(&s->slow_ms));
    if (take(&s->cut))
        return false;
    if (take(&s->answer_429)) {
        s->at_429 = co_now_s();
        answer(fd, 429, "Retry-After: 1\r\n", "{}");
    } else if (take(&s->answer_500)) {
        answer(fd, 500, "", "{}");
    } else if (atomic_load(&s->refuse_key)) {
        answer(fd, 401, "", "{\"error\":\"bad key\"}");
    } else if (strncmp(request, "POST /graphql ", 14) == 0) {
        take_graphql(s, fd, body);
    } else if (strncmp(request, "PUT /storage/", 13) == 0) {
        CHECK(strstr(request, "X-A:b") && !auth, "headers of an upload: %.300s", request);
        s->files++;
        answer(fd, 200, "", "{}");
    } else {
        CHECK(strncmp(request, "POST /files/tester/my%20project/", 32) == 0, "%.100s", request);
        char id[64];
        snprintf(id, sizeof id, "%.*s", (int)strcspn(request + 32, "/ "), request + 32);
        take_stream(run_of(s, id), fd, body);
    }
    return true;
}

/* False: the connection is over. */
static bool serve_next(service *s, int fd)
{
    char *body, *request = take_request(s, fd, &body);
    bool open = request && serve(s, fd, request, body);

    co_free(request);
    return open;
}

static void *service_main(void *arg)
{
    service *s = arg;

    struct pollfd p[1 + SERVICE_RUNS] = {{.fd = s->fd, .events = POLLIN}};
    int n = 1;

    while (!atomic_load(&s->end)) {
        if (poll(p, (nfds_t)n, 20) <= 0)
            continue;
        for (int i = n - 1; i > 0; i--)
            if (p[i].revents && !serve_next(s, p[i].fd)) {
                close(p[i].fd);
                p[i] = p[--n];
            }
        if (p[0].revents && n <= SERVICE_RUNS)
            p[n++] = (struct pollfd){.fd = accept(s->fd, NULL, NULL), .events = POLLIN};
    }
    while (n > 1)
        close(p[--n].fd);
    return NULL;
}

void service_open(service *s, int port)
{
    atomic_store(&s->end, false);
    CHECK_OK(co_net_listen(&s->fd, "127.0.0.1", port));
    co_addr a = co_net_local(s->fd);
    s->port = co_addr_port(&a);
    CHECK(co_thread_start(&s->thread, service_main, s) == 0, "thread");
}

void service_close(service *s)
{
    atomic_store(&s->end, true);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

void service_forget(service *s)
{
    for (int i = 0; i < SERVICE_RUNS && s->other[i]; i++) {
        service_forget(s->other[i]);
        co_free(s->other[i]);
    }
    for (int c = 0; c < N_CHANNELS; c++)
        for (int i = 0; i < s->lines[c]; i++)
            co_free(s->line[c][i]);
    co_free(s->summary);
    json_decref(s->first_upsert);
    json_decref(s->last_upsert);
    *s = (service){0};
}

void service_use(const service *s)
{
    char url[64];

    snprintf(url, sizeof url, "http://127.0.0.1:%d", s->port);
    setenv("WANDB_BASE_URL", url, 1);
    setenv("WANDB_API_KEY", "local-0123456789012345678901234567890123456789", 1);
    setenv("WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL", "0.05", 1);
    setenv("WANDB_X_FILE_STREAM_RETRY_WAIT_MIN_SECONDS", "0.05", 1);
    setenv("WANDB_X_FILE_STREAM_RETRY_WAIT_MAX_SECONDS", "0.2", 1);
    setenv("no_proxy", "127.0.0.1", 1);
    unsetenv("WANDB_MODE");
}
