/* The HTTP client against a tiny server that answers correctly, slowly, endlessly, with garbage, or not at
 * all. */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "net/http.h"

typedef struct fake {
    int fd, port;
    pthread_t thread;
    const char *head; /* sent at once */
    const char *more; /* sent repeatedly, or NULL */
    int every_ms;     /* pause between two of `more` */
    bool mute;        /* sends nothing and keeps the connection open */
    atomic_bool end;
    atomic_int accepted;
    char got[8192];
} fake;

static void take_request(fake *f, int fd)
{
    size_t n = 0;

    while (n < sizeof f->got - 1 && !atomic_load(&f->end)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 50) <= 0)
            continue;
        ssize_t r = read(fd, f->got + n, sizeof f->got - 1 - n);
        if (r <= 0)
            return;
        n += (size_t)r;
        f->got[n] = '\0';
        char *body = strstr(f->got, "\r\n\r\n"), *len = strcasestr(f->got, "content-length: ");
        if (body && (!len || strlen(body + 4) >= strtoul(len + 16, NULL, 10)))
            return;
    }
}

static void serve(fake *f, int fd)
{
    take_request(f, fd);
    if (!f->mute && send(fd, f->head, strlen(f->head), MSG_NOSIGNAL) < 0)
        return;
    while ((f->more || f->mute) && !atomic_load(&f->end)) {
        if (f->more && send(fd, f->more, strlen(f->more), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
            return;
        if (f->mute || f->every_ms)
            poll(NULL, 0, f->every_ms ? f->every_ms : 20);
    }
}

static void *fake_main(void *arg)
{
    fake *f = arg;

    while (!atomic_load(&f->end)) {
        struct pollfd p = {.fd = f->fd, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0)
            continue;
        int fd = accept(f->fd, NULL, NULL);
        if (fd < 0)
            continue;
        atomic_fetch_add(&f->accepted, 1);
        serve(f, fd);
        close(fd);
    }
    return NULL;
}

static void fake_open(fake *f)
{
    CHECK_OK(co_net_listen(&f->fd, "127.0.0.1", 0));
    co_addr a = co_net_local(f->fd);
    f->port = co_addr_port(&a);
    CHECK(co_thread_start(&f->thread, fake_main, f) == 0, "thread");
}

static void fake_close(fake *f)
{
    atomic_store(&f->end, true);
    pthread_join(f->thread, NULL);
    close(f->fd);
}

static co_http *client(void)
{
    co_http *h;
    co_err err = co_http_open(&h);

    if (err)
        test_skip("%s", co_errmsg());
    return h;
}

static char *url_of(const fake *f, const char *path)
{
    static char url[200];

    snprintf(url, sizeof url, "http://user:secret@127.0.0.1:%d%s", f->port, path);
    return url;
}

static co_err get(co_http *h, co_http_answer *a, const fake *f, double seconds)
{
    co_patience p = co_patience_s(seconds);

    return co_http_do(
        h, a, &(co_http_request){.url = url_of(f, "/x?signature=secret"), .most = 1000, .direct = true}, &p);
}

TEST(an_http_request_brings_method_headers_and_body_and_takes_the_answer)
{
    fake f = {.head = "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello"};
    static const char *const headers[] = {"X-One: 1", "Content-Type: text/plain", NULL};
    co_patience p = co_patience_s(10);
    co_http_answer a;
    co_http *h = client();

    fake_open(&f);
    CHECK_OK(co_http_do(h, &a,
                        &(co_http_request){.method = "PUT",
                                           .url = url_of(&f, "/a/b?c=d"),
                                           .headers = headers,
                                           .body = "some body",
                                           .len = 9,
                                           .most = 1000,
                                           .direct = true},
                        &p));
    CHECK(a.status == 201 && a.len == 5 && strcmp(a.body, "hello") == 0, "%d: %s", a.status, a.body);
    CHECK(strncmp(f.got, "PUT /a/b?c=d HTTP/1.1\r\n", 23) == 0, "%s", f.got);
    CHECK(strstr(f.got, "X-One: 1\r\n") && strstr(f.got, "Content-Type: text/plain\r\n") &&
              strstr(f.got, "Content-Length: 9\r\n") && strstr(f.got, "\r\n\r\nsome body"),
          "%s", f.got);
    CHECK_OK(co_http_expect(&a, url_of(&f, "/")));
    co_free(a.body);
    fake_close(&f);
    co_http_close(h);
}

TEST(an_http_status_that_is_no_success_is_an_answer_with_a_sentence)
{
    fake f = {.head = "HTTP/1.1 503 Unavailable\r\nContent-Length: 14\r\n\r\nno leader\033[2J!"};
    co_http_answer a;
    co_http *h = client();

    fake_open(&f);
    CHECK_OK(get(h, &a, &f, 10));
    CHECK_FAILS(co_http_expect(&a, url_of(&f, "/x?signature=secret")), CO_EIO,
                "/x answers with status 503: no leader [2J!");
    CHECK(!strstr(co_errmsg(), "secret"), "%s", co_errmsg());
    test_note("%s", co_errmsg());
    co_free(a.body);
    fake_close(&f);
    co_http_close(h);
}

static void fails(fake f, double seconds, co_err code, const char *words)
{
    co_http_answer a = {0};
    co_http *h = client();
    double before = co_now_s();

    fake_open(&f);
    CHECK_FAILS(get(h, &a, &f, seconds), code, words);
    test_note("%s", co_errmsg());
    CHECK(!strstr(co_errmsg(), "secret"), "%s", co_errmsg());
    CHECK(!a.body, "an answer in spite of it");
    CHECK(co_now_s() - before < seconds + 1, "took %g s", co_now_s() - before);
    fake_close(&f);
    co_http_close(h);
}

TEST(http_answers_that_are_slow_or_endless_end_at_the_deadline)
{
    fails((fake){.mute = true}, 0.3, CO_ETIMEOUT, "took the request but did not answer in time");
    fails((fake){.head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", .more = "a", .every_ms = 50}, 0.3,
          CO_ETIMEOUT, "did not answer in time");
    fails((fake){.head = "HTTP/1.1 200 OK\r\nX: y", .more = "", .every_ms = 50}, 0.3, CO_ETIMEOUT,
          "did not answer in time");
}

TEST(http_answers_that_are_too_large_are_not_taken_in)
{
    fails((fake){.head = "HTTP/1.1 200 OK\r\n\r\n", .more = "0123456789abcdef0123456789abcdef"}, 10,
          CO_EFORMAT, "larger than the 1000 bytes allowed");
    fails((fake){.head = "HTTP/1.1 200 OK\r\n", .more = "Header-Without-End: 0123456789abcdef\r\n"}, 10,
          CO_EFORMAT, "larger than the 65536 bytes allowed");
}

TEST(http_from_what_does_not_speak_it_is_told_as_such)
{
    fails((fake){.head = "220 mail.example.org ESMTP\r\n"}, 10, CO_EFORMAT, "does not speak HTTP");
    fails((fake){.head = "COHF\001\002\003"}, 10, CO_EFORMAT, "does not speak HTTP");
    fails((fake){.head = ""}, 10, CO_EPEER, "Empty reply");
    fails((fake){.head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"}, 10, CO_EPEER, "");
}

TEST(http_to_a_closed_port_or_a_wrong_name_says_so)
{
    co_patience p = co_patience_s(5);
    co_http_answer a;
    co_http *h = client();
    char url[64];
    int port;

    CHECK_OK(co_net_free_port(&port));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    CHECK_FAILS(co_http_do(h, &a, &(co_http_request){.url = url, .direct = true}, &p), CO_EPEER,
                "Failed to connect");
    CHECK_FAILS(co_http_do(h, &a, &(co_http_request){.url = "http://no.such.host.invalid/", .direct = true}, &p),
                CO_EIO, "no.such.host.invalid");
    CHECK_FAILS(co_http_do(h, &a, &(co_http_request){.url = "file:///etc/passwd", .most = 100000}, &p),
                CO_EINPUT, "");
    test_note("%s", co_errmsg());
    co_http_close(h);
}

TEST(an_http_request_is_given_up_when_another_thread_says_so)
{
    fake f = {.mute = true};
    atomic_bool stop = true;
    co_patience p = co_patience_s(30);
    co_http_answer a;
    co_http *h = client();
    double before = co_now_s();

    p.give_up = &stop;
    fake_open(&f);
    CHECK_FAILS(co_http_do(h, &a, &(co_http_request){.url = url_of(&f, "/"), .direct = true}, &p), CO_ESTOP,
                "");
    CHECK(co_now_s() - before < 2, "took %g s", co_now_s() - before);
    fake_close(&f);
    co_http_close(h);
}

/* Enters a new network whose name server receives queries and never answers. False without root. */
static bool deaf_name_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(INADDR_LOOPBACK)}};

    test_may_leak(); /* the thread that waits for the name server outlives the test */
    CHECK_OK(co_fs_write_atomic("resolv.conf", "nameserver 127.0.0.1\n", 21));
    CHECK_OK(co_fs_write_atomic("nsswitch.conf", "hosts: files dns\n", 17));
    return unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("resolv.conf", "/etc/resolv.conf", NULL, MS_BIND, NULL) == 0 &&
           mount("nsswitch.conf", "/etc/nsswitch.conf", NULL, MS_BIND, NULL) == 0 &&
           test_sh("ip link set lo up").status == 0 &&
           bind(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)&at, sizeof at) == 0;
}

TEST(http_to_a_name_ends_in_time_though_no_name_server_answers)
{
    co_http_request rq = {.url = "http://etcd1.example.org:2379/", .direct = true};
    co_patience soon = co_patience_s(0.3), later = co_patience_s(30);
    fake f = {.head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
    atomic_bool stop = true;
    co_http_answer a;
    co_http *h = client();

    if (!deaf_name_server())
        test_skip("needs root, mount(2) and network namespaces: %s", strerror(errno));
    double before = co_now_s();
    CHECK_FAILS(co_http_do(h, &a, &rq, &soon), CO_ETIMEOUT, "the name was not resolved in time");
    test_note("%s", co_errmsg());
    later.give_up = &stop;
    CHECK_FAILS(co_http_do(h, &a, &rq, &later), CO_ESTOP, "");
    fake_open(&f);
    CHECK_OK(get(h, &a, &f, 10)); /* the client still works */
    CHECK(strcmp(a.body, "ok") == 0, "%s", a.body);
    co_free(a.body);
    co_http_close(h);
    double took = co_now_s() - before;
    CHECK(took < 2, "took %.1f s", took);
    fake_close(&f);
}
