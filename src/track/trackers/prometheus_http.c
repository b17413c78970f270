/* prometheus_http.c -- a small server for one page: GET /metrics.
 *
 * One thread takes one connection after the other. A client has 5 seconds for its request and its answer; a request
 * has 8 KiB at most, and nothing in it but its first line is looked at. Each connection is closed after its answer.
 * The thread runs in the tracker's own process.
 */
#include "track/trackers/prometheus_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"

enum { REQUEST_MOST = 8 << 10, CLIENT_S = 5, STACK = 256 << 10 };

static const struct {
    int status;
    const char *reason, *body;
} answers[] = {{200, "OK", NULL},
               {400, "Bad Request", "this is no HTTP request\n"},
               {404, "Not Found", "the metrics are at /metrics\n"},
               {405, "Method Not Allowed", "only GET and HEAD\n"}};

static bool is(const char *at, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(at, text, len) == 0;
}

int prom_http_judge(const char *bytes, size_t len, bool *head)
{
    const char *end = memmem(bytes, len, "\r\n", 2);

    if (!memmem(bytes, len, "\r\n\r\n", 4))
        return len < REQUEST_MOST ? 0 : 400;
    const char *method_end = memchr(bytes, ' ', (size_t)(end - bytes));
    if (!method_end)
        return 400;
    const char *path = method_end + 1, *path_end = memchr(path, ' ', (size_t)(end - path));
    if (!path_end || end - path_end < 6 || memcmp(path_end, " HTTP/", 6) != 0)
        return 400;
    *head = is(bytes, (size_t)(method_end - bytes), "HEAD");
    if (!*head && !is(bytes, (size_t)(method_end - bytes), "GET"))
        return 405;
    const char *query = memchr(path, '?', (size_t)(path_end - path));
    return is(path, (size_t)((query ? query : path_end) - path), "/metrics") ? 200 : 404;
}

/* The status that the request deserves; 0: the client went away or was too slow. */
static int read_request(int fd, bool *head)
{
    char bytes[REQUEST_MOST];
    size_t have = 0;
    double until_s = co_now_s() + CLIENT_S;
    int status = 0;

    while (!status) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        double left_s = until_s - co_now_s();
        if (left_s <= 0 || poll(&p, 1, (int)(left_s * 1000) + 1) <= 0)
            return 0;
        ssize_t n = recv(fd, bytes + have, sizeof bytes - have, MSG_DONTWAIT);
        if (n <= 0)
            return 0;
        have += (size_t)n;
        status = prom_http_judge(bytes, have, head);
    }
    return status;
}

static void send_all(int fd, const char *bytes, size_t len)
{
    double until_s = co_now_s() + CLIENT_S;

    while (len > 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        double left_s = until_s - co_now_s();
        if (left_s <= 0 || poll(&p, 1, (int)(left_s * 1000) + 1) <= 0)
            return;
        ssize_t n = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

static void answer(struct http_server *s, int fd)
{
    bool head = false;
    int status = read_request(fd, &head);
    co_str body = {0}, all = {0};

    for (size_t i = 0; i < CO_COUNT(answers); i++)
        if (answers[i].status == status) {
            if (answers[i].body)
                co_str_add(&body, answers[i].body);
            else
                s->print(s->ctx, &body);
            co_str_addf(&all,
                        "HTTP/1.1 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                        "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                        status, answers[i].reason, body.len, head ? "" : co_str_text(&body));
        }
    if (!body.failed && !all.failed)
        send_all(fd, co_str_text(&all), all.len);
    co_str_fini(&body);
    co_str_fini(&all);
}

static void *serve(void *ctx)
{
    struct http_server *s = ctx;

    for (;;) {
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            poll(NULL, 0, 100);
            continue;
        }
        if (fd < 0)
            return NULL; /* the listener was shut down */
        answer(s, fd);
        close(fd);
    }
}

/* An address that is a number, as bind wants it. */
static socklen_t address_of(struct sockaddr_storage *out, const char *address, int port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

    if (inet_pton(AF_INET, address, &four.sin_addr) == 1) {
        memcpy(out, &four, sizeof four);
        return sizeof four;
    }
    if (inet_pton(AF_INET6, address, &six.sin6_addr) == 1) {
        memcpy(out, &six, sizeof six);
        return sizeof six;
    }
    return 0;
}

static co_err listen_at(struct http_server *s, const char *address, int port)
{
    struct sockaddr_storage at = {0};
    socklen_t len = address_of(&at, address, port), got = sizeof at;

    if (!len)
        return co_fail(CO_EINPUT, "logger.prometheus.address=%s is no IPv4 or IPv6 address", address);
    s->listener = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0)
        return co_fail(CO_EIO, "socket: %m");
    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(s->listener, (struct sockaddr *)&at, len) != 0 || listen(s->listener, 16) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&at, &got) != 0) {
        co_fail(CO_EINPUT, "logger.prometheus.port=%d at %s: %m", port, address);
        close(s->listener);
        return CO_EINPUT;
    }
    bool six = at.ss_family == AF_INET6;
    uint16_t bound =
        six ? ((struct sockaddr_in6 *)(void *)&at)->sin6_port : ((struct sockaddr_in *)(void *)&at)->sin_port;
    snprintf(s->url, sizeof s->url, "http://%s%s%s:%d/metrics", six ? "[" : "", address, six ? "]" : "",
             ntohs(bound));
    return CO_OK;
}

co_err prom_http_start(struct http_server *s, const char *address, int port)
{
    pthread_attr_t attr;

    CO_TRY(listen_at(s, address, port));
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    int failed = pthread_create(&s->thread, &attr, serve, s);
    pthread_attr_destroy(&attr);
    if (!failed)
        return CO_OK;
    close(s->listener);
    errno = failed;
    return co_fail(CO_EIO, "pthread_create: %m");
}

void prom_http_stop(struct http_server *s)
{
    shutdown(s->listener, SHUT_RDWR); /* accept returns */
    pthread_join(s->thread, NULL);
    close(s->listener);
}
