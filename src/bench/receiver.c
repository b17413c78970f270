/* receiver.c -- a server on this machine that wandb's uploader can talk to: it answers what the service answers,
 * counts the lines of the history that arrive, and keeps nothing.
 *
 * One thread, one request at a time, of up to RECEIVER_CONNECTIONS connections. For `bench trackers` only.
 */
#include "bench/bench_int.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVER_CONNECTIONS = 16, TICK_MS = 100, REQUEST_MOST = 64 << 20 };

static bool is_whole(const co_str *in, const char **body)
{
    const char *end = strstr(in->p, "\r\n\r\n"), *len = end ? strcasestr(in->p, "\r\ncontent-length:") : NULL;
    size_t wanted = len && len < end ? strtoul(len + 17, NULL, 10) : 0;

    *body = end ? end + 4 : NULL;
    return end && in->len - (size_t)(*body - in->p) >= wanted;
}

/* A whole request into `in`; false: the connection is over. */
static bool take_request(const receiver *r, int fd, co_str *in, const char **body)
{
    char bytes[65536];

    while (!atomic_load(&r->end) && in->len < REQUEST_MOST) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, TICK_MS) <= 0)
            continue;
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n <= 0)
            return false;
        co_str_addn(in, bytes, (size_t)n);
        if (in->failed)
            return false;
        if (is_whole(in, body))
            return true;
    }
    return false;
}

static void answer(int fd, const char *body)
{
    char *text =
        co_sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                   strlen(body), body);

    if (text)
        (void)!send(fd, text, strlen(text), MSG_NOSIGNAL); /* a few hundred bytes */
    co_free(text);
}

static void count_lines(receiver *r, const char *body)
{
    json_t *v = NULL;

    if (co_json_parse(&v, body, strlen(body), "file_stream") != CO_OK)
        co_errclear();
    const json_t *history = json_object_get(json_object_get(v, "files"), "wandb-history.jsonl");
    atomic_fetch_add(&r->lines, (int)json_array_size(json_object_get(history, "content")));
    if (json_is_true(json_object_get(v, "complete")))
        atomic_fetch_add(&r->runs, 1);
    json_decref(v);
}

static void answer_graphql(const receiver *r, int fd, const char *body)
{
    char files[300];

    snprintf(files, sizeof files,
             "{\"data\":{\"createRunFiles\":{\"runID\":\"x\",\"uploadHeaders\":[],\"files\":[{\"name\":\"f\","
             "\"uploadUrl\":\"http://127.0.0.1:%d/storage/f\"}]}}}",
             r->port);
    if (strstr(body, "RunResumeStatus"))
        answer(fd, "{\"data\":{\"model\":{\"bucket\":null}}}");
    else if (strstr(body, "upsertBucket"))
        answer(fd, "{\"data\":{\"upsertBucket\":{\"bucket\":{\"id\":\"x\",\"project\":{\"name\":\"bench\","
                   "\"entity\":{\"name\":\"bench\"}}},\"inserted\":true}}}");
    else
        answer(fd, files);
}

/* False: the connection is over. */
static bool serve(receiver *r, int fd)
{
    co_str in = {0};
    const char *body;
    bool open = take_request(r, fd, &in, &body);

    if (open && strncmp(in.p, "POST /graphql", 13) == 0)
        answer_graphql(r, fd, body);
    else if (open) {
        if (strncmp(in.p, "POST /files/", 12) == 0)
            count_lines(r, body);
        answer(fd, "{\"exitcode\":null,\"limits\":{}}");
    }
    co_str_fini(&in);
    return open;
}

static void *run(void *ctx)
{
    receiver *r = ctx;
    struct pollfd p[1 + RECEIVER_CONNECTIONS] = {{.fd = r->fd, .events = POLLIN}};
    int n = 1;

    while (!atomic_load(&r->end)) {
        if (poll(p, (nfds_t)n, TICK_MS) <= 0)
            continue;
        for (int i = n - 1; i > 0; i--)
            if (p[i].revents && !serve(r, p[i].fd)) {
                close(p[i].fd);
                p[i] = p[--n];
            }
        int fd = p[0].revents && n <= RECEIVER_CONNECTIONS ? accept(r->fd, NULL, NULL) : -1;
        if (fd >= 0)
            p[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    while (n > 1)
        close(p[--n].fd);
    return NULL;
}

co_err receiver_start(receiver *r)
{
    char url[64];

    *r = (receiver){.fd = -1};
    CO_TRY(co_net_listen(&r->fd, "127.0.0.1", 0));
    co_addr at = co_net_local(r->fd);
    r->port = co_addr_port(&at);
    if (co_thread_start(&r->thread, run, r) != 0) {
        close(r->fd);
        return co_fail(CO_EIO, "no thread for the server");
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d", r->port);
    setenv("WANDB_BASE_URL", url, 1);
    setenv("WANDB_API_KEY", "local-0123456789012345678901234567890123456789", 1);
    setenv("no_proxy", "127.0.0.1", 1);
    unsetenv("WANDB_MODE");
    return CO_OK;
}

void receiver_stop(receiver *r)
{
    atomic_store(&r->end, true);
    pthread_join(r->thread, NULL);
    close(r->fd);
}
