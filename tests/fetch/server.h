/* server.h -- an HTTP server on loopback with the faults of real ones: cuts, silence, wrong lengths,
 * redirects.
 *
 *     route routes[] = {{.path = "/a.zip", .body = bytes, .len = n, .cut_after = 1000, .cuts = 2}, {0}};
 *     server s = {.routes = routes};
 *     server_start(&s);
 *     ... url_on(&s, "/a.zip") ...
 *     server_stop(&s);
 */
#ifndef TESTS_FETCH_SERVER_H
#define TESTS_FETCH_SERVER_H

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "harness.h"
#include "net/net.h"

typedef struct route {
    const char *path;
    const void *body;
    size_t len;
    int status;           /* 0: 200, or 206 where a range is asked for */
    const char *location; /* redirects there */
    const char *etag;     /* with quotes; NULL: none */
    const char *extra;    /* further headers, each with its line end */
    bool no_ranges;
    long long claim;  /* Content-Length, if not that of the body */
    int cuts;         /* so many answers end early, */
    size_t cut_after; /* after so many bytes of the body, */
    bool hangs;       /* and are silent then, instead of closing */
    int busy;         /* so many answers are 503 */
    int trickle_ms;   /* pause after each 1,000 bytes */
    /* what the server saw */
    atomic_int asked;
    char range[64], if_range[160]; /* of the last request */
} route;

typedef struct server {
    route *routes; /* ends with a row without a path */
    int fd, port;
    pthread_t thread;
    atomic_bool end;
} server;

static inline bool send_all(int fd, const void *bytes, size_t len)
{
    for (const char *at = bytes; len > 0;) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static inline void header_of(char *out, size_t size, const char *request, const char *name)
{
    const char *at = strcasestr(request, name);

    out[0] = '\0';
    if (at)
        snprintf(out, size, "%.*s", (int)strcspn(at + strlen(name), "\r\n"), at + strlen(name));
}

/* Silent until the client leaves. */
static inline void hang(server *s, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};

    while (!atomic_load(&s->end) && poll(&p, 1, 20) == 0)
        ;
}

static inline void send_body(server *s, route *r, int fd, size_t from)
{
    bool cut = r->cuts > 0;
    size_t left = r->len - from;

    if (cut) {
        r->cuts--;
        left = left < r->cut_after ? left : r->cut_after;
    }
    for (size_t n; left > 0; left -= n, from += n) {
        n = r->trickle_ms && left > 1000 ? 1000 : left;
        if (!send_all(fd, (const char *)r->body + from, n))
            return;
        if (r->trickle_ms)
            poll(NULL, 0, r->trickle_ms);
    }
    if (cut && r->hangs)
        hang(s, fd);
}

static inline void answer_whole(server *s, route *r, int fd)
{
    char head[1024], shown[128] = "";
    unsigned long long from = 0;
    bool part = *r->range && !r->no_ranges && sscanf(r->range, "bytes=%llu-", &from) == 1;

    if (part && *r->if_range && (!r->etag || strcmp(r->if_range, r->etag) != 0))
        part = false, from = 0; /* another version: the whole of it */
    bool past = part && from >= r->len;
    if (past)
        snprintf(shown, sizeof shown, "Content-Range: bytes */%zu\r\n", r->len);
    else if (part)
        snprintf(shown, sizeof shown, "Content-Range: bytes %llu-%zu/%zu\r\n", from, r->len - 1, r->len);
    if (past)
        from = r->len;
    int status = past ? 416 : part ? 206 : 200;
    long long len = past ? 0 : r->claim ? r->claim - (long long)from : (long long)(r->len - from);
    snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %lld\r\nConnection: close\r\n%s%s%s%s%s\r\n",
             status, len, shown, r->etag ? "ETag: " : "", r->etag ? r->etag : "", r->etag ? "\r\n" : "",
             r->extra ? r->extra : "");
    if (send_all(fd, head, strlen(head)))
        send_body(s, r, fd, (size_t)from);
}

static inline void answer(server *s, route *r, int fd)
{
    char head[1024];

    if (!r || r->status || r->busy > 0) {
        int status = !r ? 404 : r->busy > 0 ? 503 : r->status;
        if (r && r->busy > 0)
            r->busy--;
        snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: 4\r\nConnection: close\r\n\r\nsad\n",
                 status);
        send_all(fd, head, strlen(head));
    } else if (r->location) {
        snprintf(head, sizeof head,
                 "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n%s\r\n",
                 r->location, r->extra ? r->extra : "");
        send_all(fd, head, strlen(head));
    } else {
        answer_whole(s, r, fd);
    }
}

static inline void serve(server *s, int fd)
{
    char got[8192] = "", path[512];
    size_t n = 0;

    while (n < sizeof got - 1 && !strstr(got, "\r\n\r\n") && !atomic_load(&s->end)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0)
            continue;
        ssize_t r = read(fd, got + n, sizeof got - 1 - n);
        if (r <= 0)
            return;
        n += (size_t)r;
        got[n] = '\0';
    }
    if (sscanf(got, "GET %500s", path) != 1)
        return;
    route *r = s->routes;
    while (r->path && strcmp(r->path, path) != 0)
        r++;
    r = r->path ? r : NULL;
    if (r) {
        header_of(r->range, sizeof r->range, got, "\r\nRange: ");
        header_of(r->if_range, sizeof r->if_range, got, "\r\nIf-Range: ");
        atomic_fetch_add(&r->asked, 1);
    }
    answer(s, r, fd);
}

static inline void *server_main(void *arg)
{
    server *s = arg;

    while (!atomic_load(&s->end)) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0)
            continue;
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            continue;
        serve(s, fd);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
    return NULL;
}

static inline void server_start(server *s)
{
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    CHECK_OK(co_net_listen(&s->fd, "127.0.0.1", 0));
    co_addr a = co_net_local(s->fd);
    s->port = co_addr_port(&a);
    CHECK(co_thread_start(&s->thread, server_main, s) == 0, "thread");
}

static inline void server_stop(server *s)
{
    atomic_store(&s->end, true);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

/* Four in rotation. */
static inline const char *url_on(const server *s, const char *path)
{
    static char url[4][300];
    static int turn;
    char *out = url[turn++ % 4];

    snprintf(out, sizeof url[0], "http://127.0.0.1:%d%s", s->port, path);
    return out;
}

#endif
