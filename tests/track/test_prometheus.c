/* test_prometheus.c -- the page for Prometheus: names and units, the text, the server, promtool. */
#include "track_test.h"
#include "track/track_int.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "track/trackers/prometheus_int.h"

TEST(scalars_become_metrics_with_base_units_and_labels)
{
    static const struct {
        const char *name, *metric, *labels;
        double value; /* of 50 */
    } rows[] = {{"train/loss_step", "cohort_train_loss_step", "", 50},
                {"val,acc", "cohort_val_acc", "", 50},
                {"system/cpu_percent", "cohort_system_cpu_ratio", "host=\"here\"", 0.5},
                {"system/memory_mb", "cohort_system_memory_bytes", "host=\"here\"", 5e7},
                {"system/b-1/disk_read_mb_s", "cohort_system_disk_read_bytes_per_second", "host=\"b-1\"", 5e7},
                {"system/b/rank.12.memory_mb", "cohort_rank_memory_bytes", "host=\"b\",rank=\"12\"", 5e7},
                {"system/gpu.0.percent", "cohort_gpu_utilization_ratio", "host=\"here\",gpu=\"0\"", 0.5},
                {"system/gpu.0.temperature_c", "cohort_gpu_temperature_celsius", "host=\"here\",gpu=\"0\"", 50},
                {"system/a\"b\\c/load", "cohort_system_load", "host=\"a\\\"b\\\\c\"", 50}};
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        struct metric m;
        metric_of(&m, rows[i].name, 50, "here");
        CHECK(!strcmp(m.name, rows[i].metric) && !strcmp(m.labels, rows[i].labels) &&
                  fabs(m.value - rows[i].value) < 1e-9 * rows[i].value,
              "%s: %s{%s} %g", rows[i].name, m.name, m.labels, m.value);
    }
    char name[400];
    for (size_t n = 1; n < sizeof name; n++) { /* of any length, within its room */
        struct metric m;
        memset(name, 'x', n);
        memcpy(name, "system/", n < 7 ? n : 7);
        name[n - 1] = 0;
        metric_of(&m, name, 1, name);
        CHECK(strlen(m.name) < METRIC_NAME && strlen(m.labels) < METRIC_LABELS, "%zu", n);
    }
}

TEST(requests_are_judged_by_their_first_line)
{
    static const struct {
        const char *text;
        int status;
    } rows[] = {{"", 0},
                {"GET /metrics HTTP/1.1\r\n", 0},
                {"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200},
                {"GET /metrics?x=1 HTTP/1.0\r\n\r\n", 200},
                {"HEAD /metrics HTTP/1.1\r\n\r\n", 200},
                {"GET / HTTP/1.1\r\n\r\n", 404},
                {"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", 404},
                {"POST /metrics HTTP/1.1\r\n\r\n", 405},
                {"GET /metrics\r\n\r\n", 400},
                {"\r\n\r\n", 400},
                {"GET  HTTP/1.1\r\n\r\n", 404}};
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        bool head;
        int status = prom_http_judge(rows[i].text, strlen(rows[i].text), &head);
        CHECK(status == rows[i].status, "%s: %d", rows[i].text, status);
    }
    char *much = malloc(8 << 10);
    bool head;
    memset(much, 'x', 8 << 10);
    CHECK(prom_http_judge(much, 8 << 10, &head) == 400, "8 KiB without an end");
    free(much);
}

/* --- served --------------------------------------------------------------------------------------------- */
static void *open_exporter(void)
{
    static const co_run_facts facts = {
        .dir = "logs/run1", .run_id = "r", .task = "t", .config = "c", .host = "here"};
    static struct {
        int64_t port;
        char *address;
    } cfg = {0, "127.0.0.1"};
    void *self;
    CHECK_OK(co_fs_mkdirs("logs/run1"));
    CHECK_OK(prometheus_def.open(&self, &facts, &cfg));
    return self;
}

static void give(void *self, const char *text)
{
    json_t *v;
    CHECK_OK(co_json_parse(&v, text, strlen(text), "line"));
    CHECK_OK(prometheus_def.take(self, &(co_record_line){.text = text, .len = strlen(text), .json = v}));
    json_decref(v);
}

static int connect_to(const char *url)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int port, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(sscanf(url, "http://127.0.0.1:%d/metrics\n", &port) == 1, "%s", url);
    at.sin_port = htons((uint16_t)port);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect: %m");
    return fd;
}

static char *fetch(const char *url, const char *request)
{
    static char got[1 << 16];
    size_t have = 0;
    ssize_t n;
    int fd = connect_to(url);
    CHECK(send(fd, request, strlen(request), 0) == (ssize_t)strlen(request), "send");
    while ((n = recv(fd, got + have, sizeof got - 1 - have, 0)) > 0)
        have += (size_t)n;
    close(fd);
    got[have] = 0;
    return got;
}

static void give_all(void *self)
{
    give(self, "{\"name\":\"run_start\",\"step\":0,\"t\":1}");
    give(self, "{\"step\":1,\"name\":\"train/loss_step\",\"value\":0.5,\"t\":1.5}");
    give(self, "{\"step\":2,\"name\":\"train/loss_step\",\"value\":0.25,\"t\":1.6}");
    give(self, "{\"step\":2,\"name\":\"val/acc\",\"value\":\"nan\",\"t\":1.6}");
    give(self, "{\"step\":2,\"name\":\"system/cpu_percent\",\"value\":40,\"t\":1.6}");
    give(self, "{\"step\":2,\"name\":\"system/b/cpu_percent\",\"value\":60,\"t\":1.6}");
    give(self, "{\"step\":2,\"name\":\"system/rank.0.memory_mb\",\"value\":12.5,\"t\":1.7}");
    give(self, "{\"name\":\"checkpoint\",\"step\":2,\"path\":\"x\",\"t\":1.8}");
    give(self, "{\"name\":\"checkpoint\",\"step\":4,\"path\":\"x\",\"t\":1.8}");
}

TEST(the_page_has_the_last_value_of_each_scalar_and_goes_with_the_run)
{
    void *self = open_exporter();
    give_all(self);
    CHECK_OK(prometheus_def.flush(self));
    char *url = slurp("logs/run1/prometheus.url");
    int silent = connect_to(url); /* says nothing and goes */
    close(silent);
    const char *got = fetch(url, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(
        test_contains(got, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n") &&
            test_contains(
                got, "# TYPE cohort_train_loss_step gauge\ncohort_train_loss_step{run=\"run1\"} 0.25\n") &&
            test_contains(got, "cohort_val_acc{run=\"run1\"} NaN\n") &&
            test_contains(got, "cohort_system_cpu_ratio{run=\"run1\",host=\"b\"} 0.6\n"
                               "cohort_system_cpu_ratio{run=\"run1\",host=\"here\"} 0.4\n") &&
            test_contains(
                got, "# TYPE cohort_checkpoints_total counter\ncohort_checkpoints_total{run=\"run1\"} 2\n") &&
            test_contains(got, "cohort_train_steps_total{run=\"run1\"} 2\n"),
        "%s", got);
    CHECK(test_contains(fetch(url, "GET / HTTP/1.1\r\n\r\n"), "404 Not Found"), "/");
    got = fetch(url, "HEAD /metrics HTTP/1.1\r\n\r\n");
    CHECK(test_contains(got, "200 OK") && !test_contains(got, "cohort_"), "%s", got);
    prometheus_def.close(self);
    CHECK(!co_fs_exists("logs/run1/prometheus.url"), "the file goes with the page");
    co_free(url);
}

TEST(promtool_accepts_the_page)
{
    if (test_sh("command -v promtool").status != 0)
        test_skip("promtool is not here (Debian package prometheus)");
    void *self = open_exporter();
    give_all(self);
    CHECK_OK(prometheus_def.flush(self));
    char *url = slurp("logs/run1/prometheus.url");
    const char *body = strstr(fetch(url, "GET /metrics HTTP/1.1\r\n\r\n"), "\r\n\r\n");
    CHECK_OK(co_fs_write_atomic("page", body + 4, strlen(body + 4)));
    test_run r = test_sh("promtool check metrics < page");
    CHECK(r.status == 0 && !*r.out, "%d %s", r.status, r.out);
    prometheus_def.close(self);
    co_free(url);
}

TEST(a_port_that_is_taken_or_an_address_that_is_none_is_said)
{
    void *self = open_exporter(), *other;
    static const co_run_facts facts = {.dir = "logs/run1", .host = "here"};
    struct {
        int64_t port;
        char *address;
    } cfg = {0, "127.0.0.1"};
    CHECK_OK(prometheus_def.flush(self));
    char *url = slurp("logs/run1/prometheus.url");
    cfg.port = atoi(strrchr(url, ':') + 1);
    CHECK_FAILS(prometheus_def.open(&other, &facts, &cfg), CO_EINPUT, "Address already in use");
    cfg.address = "localhost";
    CHECK_FAILS(prometheus_def.open(&other, &facts, &cfg), CO_EINPUT, "is no IPv4 or IPv6 address");
    prometheus_def.close(self);
    co_free(url);
}
