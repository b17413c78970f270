/* test_board.c -- the board: who is answered, what is answered, and what a real browser makes of it. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/str.h"
#include "harness.h"
#include "web/web.h"
#include "web/web_int.h"

static const guard local = {.loopback = true, .port = 80};

TEST(the_board_answers_only_requests_of_its_own_page)
{
    static const struct {
        ask a;
        int status;
    } cases[] = {
        {{.method = "GET", .path = "/", .host = "127.0.0.1:80"}, 0},
        {{.method = "HEAD", .path = "/", .host = "localhost:80"}, 0},
        {{.method = "GET", .path = "/api/runs", .host = "[::1]:80", .origin = "http://[::1]:80"}, 0},
        {{.method = "GET", .path = "/", .host = "127.0.0.1:80", .site = "none"}, 0},
        {{.method = "GET", .path = "/", .host = "127.0.0.1:80", .site = "cross-site"}, 403},
        {{.method = "GET", .path = "/", .host = "127.0.0.1:80", .site = "same-site"}, 403},
        {{.method = "GET", .path = "/", .host = "127.0.0.1:81"}, 403},
        {{.method = "GET", .path = "/", .host = "evil.example:80"}, 403},
        {{.method = "GET", .path = "/", .host = "127.0.0.1:80.evil.example"}, 403},
        {{.method = "GET", .path = "/"}, 403},
        {{.method = "GET", .path = "/", .host = "127.0.0.1:80", .origin = "http://evil.example"}, 403},
        {{.method = "GET", .path = "/", .host = "127.0.0.1:80", .origin = "null"}, 403},
        {{.method = "GET", .path = "/", .host = "127.0.0.1:80", .origin = "https://127.0.0.1:80"}, 403},
        {{.method = "POST", .path = "/", .host = "127.0.0.1:80"}, 405},
        {{.method = "", .path = "/", .host = "127.0.0.1:80"}, 405},
    };
    const char *why;

    for (size_t i = 0; i < CO_COUNT(cases); i++) {
        int got = guard_check(&local, &cases[i].a, &why);
        CHECK(got == cases[i].status && *why, "case %zu: %d, wanted %d", i, got, cases[i].status);
    }
    const guard far = {.port = 80, .token = "0123456789abcdef"};
    ask a = {.method = "GET", .path = "/", .host = "node1:80"};
    CHECK(guard_check(&far, &a, &why) == 401 && test_contains(why, "token"), "no token");
    a.token = "0123456789abcdeX";
    CHECK(guard_check(&far, &a, &why) == 401, "a wrong one");
    a.token = "0123456789abcdef";
    CHECK(guard_check(&far, &a, &why) == 0, "the right one");
    a.token = NULL;
    a.cookie = far.token;
    CHECK(guard_check(&far, &a, &why) == 0, "as a cookie");
}

/* --- a server ----------------------------------------------------------------------------------------- */
static void make_runs(void)
{
    test_run r =
        test_sh("mkdir -p logs/a logs/b 'logs/<x> & y' out && cd logs && for d in a b '<x> & y'; do "
                "echo '{\"run_id\":\"'$d'\"}' > \"$d/header.json\"; "
                "printf "
                "'{\"step\":1,\"name\":\"val/acc\",\"value\":0.5,\"t\":1}\\n{\"step\":2,\"name\":\"val/"
                "acc\",\"value\":\"nan\",\"t\":2}\\n"
                "{\"step\":2,\"name\":\"system/load\",\"value\":3,\"t\":2}\\n' > \"$d/events.jsonl\"; "
                "echo 'seed: '$d > \"$d/config.yaml\"; echo hello > \"$d/train.log\"; done; "
                "echo secret > ../out/train.log; cp a/header.json a/events.jsonl ../out/; ln -s ../out link; "
                "ln -sf ../../out/train.log b/train.log; echo '<h1>book</h1>' > a/book.html");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

static co_board *serve(int *port)
{
    co_board *board = NULL;
    co_err err = co_board_start(&board, &(co_board_spec){.root = "logs/"});

    if (err && test_contains(co_errmsg(), "libmicrohttpd12"))
        test_skip("libmicrohttpd12 is not installed");
    CHECK_OK(err);
    *port = atoi(strrchr(co_board_url(board), ':') + 1);
    return board;
}

/* Sends these bytes as they are; returns what comes back. */
static char *exchange(int port, const char *request)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char bytes[4096];
    co_str all = {0};
    ssize_t n;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect: %m");
    CHECK(write(fd, request, strlen(request)) == (ssize_t)strlen(request), "write: %m");
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        co_str_addn(&all, bytes, (size_t)n);
    close(fd);
    return co_str_take(&all);
}

/* The answer to GET of a path has this status and holds these words. */
static void gives(int port, const char *path, int status, const char *words)
{
    char *request =
        co_sprintf("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", path, port);
    char *got = exchange(port, request), line[32];

    snprintf(line, sizeof line, "HTTP/1.1 %d ", status);
    CHECK(got && strncmp(got, line, strlen(line)) == 0 && strstr(got, words),
          "%s: wanted %d \"%s\", got\n%.600s", path, status, words, got);
    co_free(request);
    co_free(got);
}

TEST(the_board_serves_its_page_and_the_runs_below_its_folder_and_nothing_else)
{
    int port;

    make_runs();
    co_board *board = serve(&port);
    gives(port, "/", 200, "Content-Security-Policy: default-src 'none'");
    gives(port, "/board.js", 200, "'use strict'");
    gives(port, "/dygraph.js", 200, "Dygraph");
    gives(port, "/api/runs", 200, "\"name\":\"<x> & y\"");
    gives(port, "/api/run?run=a", 200, "\"config\":{\"seed\":\"a\"}");
    gives(port, "/api/run?run=%3Cx%3E%20%26%20y", 200, "\"names\":[\"val/acc\",\"system/load\"]");
    gives(port, "/api/series?run=a", 200, "{\"val/acc\":[[1,0.000,0.5],[2,1.000,null]]}");
    gives(port, "/api/series?run=a&names=system/", 200, "{\"system/load\":[[2,1.000,3]]}");
    test_run r =
        test_sh("echo '{\"step\":3,\"name\":\"val/acc\",\"value\":0.75,\"t\":3}' >> logs/a/events.jsonl; "
                "printf 'x:\n  api_key: hush\n' > logs/a/config.yaml");
    gives(port, "/api/series?run=a", 200, ",[3,2.000,0.75]]}");
    gives(port, "/api/run?run=a", 200, "\"x.api_key\":\"(hidden)\"");
    free(r.out);
    gives(port, "/api/part?run=a&names=val/acc&by=step&from=2&to=3", 200,
          "{\"complete\":true,\"points\":[[2,1.000,null],[3,2.000,0.75]]}");
    gives(port, "/api/part?run=a&names=val/acc&by=time&from=1.5&to=1e9", 200, "\"points\":[[3,2.000,0.75]]}");
    gives(port, "/api/part?run=a&names=val/ac&by=step&from=0&to=9", 200, "\"points\":[]}");
    gives(port, "/api/part?run=a&names=val/acc&by=step&from=nan&to=9", 400, "give names, from and to");
    gives(port, "/api/part?run=a&names=val/acc&by=step&from=1", 400, "give names, from and to");
    gives(port, "/api/log?run=a", 200, "hello");
    gives(port, "/book?run=a", 200, "sandbox");
    gives(port, "/book?run=a", 200, "<h1>book</h1>");
    static const char *const no[] = {"/api/run",
                                     "/api/run?run=",
                                     "/api/run?run=link",
                                     "/api/run?run=../out",
                                     "/api/part?run=../out&names=val/acc&from=0&to=9",
                                     "/api/log?run=..%2fout",
                                     "/api/log?run=a/../../out",
                                     "/api/log?run=b",
                                     "/book?run=b",
                                     "/../../etc/passwd",
                                     "/%2e%2e/%2e%2e/etc/passwd",
                                     "/logs/a/train.log",
                                     "/api/log?run=/etc"};
    for (size_t i = 0; i < CO_COUNT(no); i++)
        gives(port, no[i], 404, "\r\n\r\n");
    char *got = exchange(port, "GET /api/runs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    CHECK(strstr(got, " 403 ") && !strstr(got, "run_id"), "%s", got);
    co_free(got);
    co_board_stop(board);
}

/* A record that takes long holds the lock of its run only: other runs, the list and its own log are answered. */
TEST(while_one_run_is_being_read_the_board_answers_for_the_others)
{
    static runs all;
    answer out = {0};

    make_runs();
    CHECK_OK(runs_open(&all, "logs/"));
    open_run *slow = runs_take(&all, "a");
    CHECK(slow && slow->run, "a is there");
    answer_make(&out, &all, &(ask){.path = "/api/series", .run = "b"});
    CHECK(out.status == 200 && test_contains(out.body.p, "val/acc"), "%d", out.status);
    co_str_clear(&out.body);
    answer_make(&out, &all, &(ask){.path = "/api/runs"});
    CHECK(out.status == 200 && test_contains(out.body.p, "\"name\":\"a\""), "%d", out.status);
    co_str_clear(&out.body);
    answer_make(&out, &all, &(ask){.path = "/api/log", .run = "a"});
    CHECK(out.status == 200 && test_contains(out.body.p, "hello"), "%d", out.status);
    runs_put(&all, slow);
    co_str_fini(&out.body);
    runs_close(&all);
}

TEST(the_board_keeps_a_few_of_the_runs_open_that_were_looked_at)
{
    static runs all;
    int open = 0;
    test_run r = test_sh("for i in $(seq 30); do mkdir -p logs/$i && echo '{}' > logs/$i/header.json && "
                         ": > logs/$i/events.jsonl; done");

    free(r.out);
    CHECK_OK(runs_open(&all, "logs"));
    for (int i = 1; i <= 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        open_run *o = runs_take(&all, name);
        CHECK(o, "%s", name);
        runs_put(&all, o);
    }
    for (int i = 0; i < OPEN_MOST; i++)
        open += all.open[i].run != NULL;
    CHECK(open == 12, "%d", open);
    runs_close(&all);
}

static runs shared;

/* One connection's thread: every kind of answer, for every run. */
static void *ask_all(void *ctx)
{
    static const char *const paths[] = {"/api/series", "/api/run", "/api/log", "/api/runs"}, *const names[] = {
                                                                                                 "a", "b"};

    (void)ctx;
    for (int i = 0; i < 40; i++) {
        answer out = {0};
        answer_make(&out, &shared, &(ask){.path = paths[i % 4], .run = names[i / 4 % 2]});
        CHECK(out.status == 200 || strcmp(paths[i % 4], "/api/log") == 0, "%s: %d", paths[i % 4], out.status);
        co_str_fini(&out.body);
    }
    return NULL;
}

TEST(the_board_answers_many_connections_at_once_while_a_run_grows_tsan)
{
    pthread_t thread[6];

    make_runs();
    CHECK_OK(runs_open(&shared, "logs"));
    for (int i = 0; i < 6; i++)
        CHECK(pthread_create(&thread[i], NULL, ask_all, NULL) == 0, "thread");
    for (int i = 3; i < 200; i++) {
        FILE *f = fopen("logs/a/events.jsonl", "a");
        CHECK(f && fprintf(f, "{\"step\":%d,\"name\":\"val/acc\",\"value\":0.5,\"t\":%d}\n", i, i) > 0 &&
                  fclose(f) == 0,
              "append");
    }
    for (int i = 0; i < 6; i++)
        pthread_join(thread[i], NULL);
    open_run *a = runs_take(&shared, "a");
    CHECK(a && co_run_series(a->run, "val/acc")->lines == 199, "all lines were read");
    runs_put(&shared, a);
    runs_close(&shared);
}

TEST(the_board_survives_bytes_that_are_no_requests)
{
    uint64_t state = 5;
    int port;

    make_runs();
    co_board *board = serve(&port);
    for (int i = 0; i < 60; i++) {
        char bytes[300];
        size_t n = test_u32(&state) % 200;
        snprintf(bytes, sizeof bytes,
                 "GET /api/run?run=a&x=%%%c HTTP/1.%d\r\nHost: 127.0.0.1:%d\r\nConnection: close",
                 (char)(33 + i % 90), i % 3, port);
        for (size_t k = 0; k < 1 + n / 40; k++)
            bytes[test_u32(&state) % strlen(bytes)] = (char)(1 + test_u32(&state) % 255);
        strcat(bytes, "\r\n\r\n");
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect: %m");
        CHECK(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL) > 0, "send");
        close(fd); /* whatever it answers */
    }
    gives(port, "/api/runs", 200, "\"name\":\"a\"");
    co_board_stop(board);
}

TEST(the_board_refuses_what_it_cannot_serve)
{
    co_board *board;

    CHECK_FAILS(co_board_start(&board, &(co_board_spec){.root = "nowhere"}), CO_EINPUT, "nowhere is no folder");
    mkdir("logs", 0777);
    CHECK_FAILS(co_board_start(&board, &(co_board_spec){.root = "logs", .address = "x"}), CO_EINPUT,
                "no IPv4 address");
    CHECK_FAILS(co_board_start(&board, &(co_board_spec){.root = "logs", .token = "short"}), CO_EINPUT, "16 to");
    CHECK_FAILS(co_board_start(&board, &(co_board_spec){.root = "logs", .token = "0123456789abcde\r\n"}),
                CO_EINPUT, "letters, digits");
    CHECK_OK(co_board_start(&board, &(co_board_spec){.root = "logs", .address = "0.0.0.0"}));
    CHECK(strstr(co_board_url(board), "?token="), "other machines need a token: %s", co_board_url(board));
    co_board_stop(board);
    test_run r = test_sh("$COHORT board a b; $COHORT board logs --port x; $COHORT board --help | head -1");
    CHECK(test_contains(r.out, "one folder") && test_contains(r.out, "--port x is no port") &&
              test_contains(r.out, "cohort board [FOLDER]"),
          "%s", r.out);
    free(r.out);
}

/* --- a browser ---------------------------------------------------------------------------------------- */
static char *page_of(const char *url, const char *hash)
{
    test_run r =
        test_sh("export HOME=$PWD; timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-quic "
                "--no-first-run --disable-background-networking --disable-component-update --disable-sync "
                "--user-data-dir=$PWD/ud --virtual-time-budget=5000 --dump-dom '%s%s' 2> browser.err",
                url, hash);

    return r.out;
}

/* Loads, draws, shows a run that grows, and has no script errors. */
TEST_LONG(the_board_works_in_a_real_browser)
{
    co_board *board = NULL;
    test_run r = test_sh("command -v chromium");

    if (r.status != 0)
        test_skip("chromium is not installed");
    free(r.out);
    make_runs();
    int port;
    board = serve(&port);
    static const struct {
        const char *hash, *wanted;
    } pages[] = {{"", "<canvas"},
                 {"#Curves?run=a&run=b", "val/acc"},
                 {"#Machine?run=a", "system/load"},
                 {"#Hosts%20and%20ranks?run=a", "this host"},
                 {"#Log?run=a", "hello"},
                 {"#Config?run=a&run=b", "class=\"differs\""},
                 {"#Book?run=a", "iframe title=\"log book\""},
                 {"#Curves?run=%3Cx%3E+%26+y", "&lt;x&gt; &amp; y"}};
    for (size_t i = 0; i < CO_COUNT(pages); i++) {
        char *page = page_of(co_board_url(board), pages[i].hash);
        CHECK(strstr(page, pages[i].wanted) && strstr(page, "data-ready=") && !strstr(page, "data-error"),
              "%s:\n%s", pages[i].hash, page);
        CHECK(strstr(page, "id=\"trouble\" hidden"), "%s: no trouble", pages[i].hash);
        free(page);
    }
    co_board_stop(board);
}
