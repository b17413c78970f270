/* MLflow: against a server of ours that can be ill, and against a real one. */
#include "track_test.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/http.h"
#include "track/mlflow_int.h"
#include "track/track_int.h"

typedef struct server {
    int fd, port;
    pthread_t thread;
    atomic_bool end;
    atomic_int answer_500, cut;
    int created, params, metrics, files;
    char status[32], auth[128], first[256];
    int64_t steps; /* sum of the steps of all metrics */
} server;

static void reply(int fd, int status, const char *body)
{
    char *text = co_sprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\nConnection: "
                            "close\r\nContent-Length: %zu\r\n\r\n%s",
                            status, strlen(body), body);
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) > 0, "send");
    co_free(text);
}

static void take_batch(server *s, const char *body)
{
    json_t *v, *m;
    size_t i;
    CHECK_OK(co_json_parse(&v, body, strlen(body), "batch"));
    json_t *metrics = json_object_get(v, "metrics");
    json_array_foreach(metrics, i, m) s->steps += json_integer_value(json_object_get(m, "step"));
    if (s->metrics == 0 && json_array_size(metrics)) {
        char *text = co_json_text(json_array_get(metrics, 0));
        snprintf(s->first, sizeof s->first, "%s", text);
        co_free(text);
    }
    s->metrics += (int)json_array_size(metrics);
    s->params += (int)json_array_size(json_object_get(v, "params"));
    json_decref(v);
}

static void answer(server *s, int fd, const char *request, const char *body)
{
    char *auth = strcasestr(request, "\r\nauthorization: ");
    if (auth)
        snprintf(s->auth, sizeof s->auth, "%.*s", (int)strcspn(auth + 17, "\r"), auth + 17);
    if (atomic_load(&s->cut) > 0) {
        atomic_fetch_sub(&s->cut, 1);
    } else if (atomic_load(&s->answer_500) > 0) {
        atomic_fetch_sub(&s->answer_500, 1);
        reply(fd, 500, "{}");
    } else if (strstr(request, "experiments/get-by-name?experiment_name=my%20task ")) {
        reply(fd, s->created ? 200 : 404, s->created ? "{\"experiment\":{\"experiment_id\":\"7\"}}" : "{}");
    } else if (strstr(request, "experiments/create ")) {
        reply(fd, 200, "{\"experiment_id\":\"7\"}");
    } else if (strstr(request, "runs/create ")) {
        s->created++;
        reply(fd,
              200, "{\"run\":{\"info\":{\"run_id\":\"abc\",\"artifact_uri\":\"mlflow-artifacts:/7/abc/artifacts\"}}}");
    } else if (strstr(request, "runs/log-batch ")) {
        take_batch(s, body);
        reply(fd, 200, "{}");
    } else if (strstr(request, "runs/update ")) {
        const char *status = strstr(body, "\"status\":\"");
        snprintf(s->status, sizeof s->status, "%.*s", (int)strcspn(status + 10, "\""), status + 10);
        reply(fd, 200, "{}");
    } else {
        CHECK(strncmp(request, "PUT /api/2.0/mlflow-artifacts/artifacts/7/abc/artifacts/", 56) == 0, "%.100s",
              request);
        s->files++;
        reply(fd, 200, "{}");
    }
}

static void serve(server *s, int fd)
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
            answer(s, fd, in.p, end + 4);
            break;
        }
    }
    co_str_fini(&in);
}

static void *server_main(void *arg)
{
    server *s = arg;
    while (!atomic_load(&s->end)) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        int fd = poll(&p, 1, 20) > 0 ? accept(s->fd, NULL, NULL) : -1;
        if (fd >= 0) {
            serve(s, fd);
            close(fd);
        }
    }
    return NULL;
}

static void server_open(server *s)
{
    co_http *probe;
    if (co_http_open(&probe) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(probe);
    CHECK_OK(co_net_listen(&s->fd, "127.0.0.1", 0));
    co_addr a = co_net_local(s->fd);
    s->port = co_addr_port(&a);
    CHECK(co_thread_start(&s->thread, server_main, s) == 0, "thread");
    setenv("no_proxy", "127.0.0.1", 1);
}

static void take(void *self, bool replayed, const char *fmt, int i)
{
    char text[256];
    json_t *v;
    snprintf(text, sizeof text, fmt, i, i);
    CHECK_OK(co_json_parse(&v, text, strlen(text), "line"));
    CHECK_OK(mlflow_def.take(
        self, &(co_record_line){.text = text, .len = strlen(text), .json = v, .replayed = replayed}));
    json_decref(v);
}

static const char scalar[] = "{\"step\":%d,\"name\":\"hit@10\",\"value\":0.5,\"t\":%d.25}";

TEST(mlflow_has_every_value_once_after_errors_and_a_continuation)
{
    server s = {0};
    server_open(&s);
    char uri[64];
    snprintf(uri, sizeof uri, "http://127.0.0.1:%d/", s.port);
    mlflow_cfg cfg = {.tracking_uri = uri};
    co_run_facts facts = {.dir = "r", .task = "my task"};
    setenv("MLFLOW_TRACKING_USERNAME", "me", 1);
    setenv("MLFLOW_TRACKING_PASSWORD", "secret", 1);
    mkdir("r", 0777);
    test_sh("echo x > r/config.yaml; echo y > r/train.log");
    atomic_store(&s.answer_500, 2);
    atomic_store(&s.cut, 1);
    for (int start = 0; start < 2; start++) {
        void *self;
        CHECK_OK(mlflow_def.open(&self, &facts, &cfg));
        take(self, start == 1, "{\"name\":\"run_start\",\"t\":%d,\"config\":{\"optim.lr\":0.5,\"seed\":%d}}",
             1);
        for (int i = 1; i <= 1500; i++) {
            take(self, start == 1, scalar, i);
            if (start == 0 && i % 500 == 0)
                CHECK_OK(mlflow_def.flush(self));
        }
        if (start == 0)
            take(self, false, "{\"name\":\"run_end\",\"status\":\"stopped\",\"t\":%d}", 1501);
        for (int i = 1401; start == 1 && i <= 2000; i++) /* 100 steps again */
            take(self, false, scalar, i);
        if (start == 1)
            take(self, false, "{\"name\":\"run_end\",\"status\":\"done\",\"t\":%d}", 2001);
        mlflow_def.close(self);
        CHECK(strcmp(s.status, start ? "FINISHED" : "KILLED") == 0, "start %d: %s", start, s.status);
    }
    atomic_store(&s.end, true);
    pthread_join(s.thread, NULL);
    close(s.fd);
    CHECK(s.created == 1 && s.params == 2 && s.metrics == 2000 && s.steps == 2000 * 2001 / 2 && s.files == 3,
          "%d runs, %d parameters, %d metrics, %d files", s.created, s.params, s.metrics, s.files);
    CHECK(strcmp(s.first, "{\"key\":\"hit_10\",\"value\":0.5,\"timestamp\":1250,\"step\":1}") == 0, "%s",
          s.first);
    CHECK(strcmp(s.auth, "Basic bWU6c2VjcmV0") == 0, "%s", s.auth);
    CHECK(test_sh("grep -r secret r").status != 0, "the password is in the run folder");
}

TEST(an_address_that_is_no_server_is_refused_before_the_run)
{
    test_run r =
        test_sh("$COHORT train experiment=demo logger=mlflow logger.mlflow.tracking_uri=here:5000 run.dir=r");
    CHECK(r.status == 2 && test_contains(r.out, "here:5000 is not the address of a server"), "%d %s",
          r.status, r.out);
}

/* $COHORT_PYTHON must have the package mlflow. */
TEST_LONG(a_real_mlflow_server_has_every_value_parameter_and_file_of_a_run)
{
    const char *python = getenv("COHORT_PYTHON");
    if (!python || test_sh("'%s' -c 'import mlflow'", python).status != 0)
        test_skip("COHORT_PYTHON names no Python with the package mlflow");
    int fd;
    CHECK_OK(co_net_listen(&fd, "127.0.0.1", 0));
    co_addr a = co_net_local(fd);
    int port = co_addr_port(&a);
    close(fd);
    pid_t pid = test_spawn("server.log",
                           "exec '%s' -m mlflow server --host 127.0.0.1 --port %d --workers 1 "
                           "--backend-store-uri sqlite:///$PWD/m.db --artifacts-destination $PWD/files",
                           python, port);
    test_run r = test_sh(
        "for i in $(seq 120); do curl -sf http://127.0.0.1:%d/health && exit 0; sleep 1; done; exit 1", port);
    CHECK(r.status == 0, "the server does not start: %s", test_sh("tail -5 server.log").out);
    char uri[64];
    snprintf(uri, sizeof uri, "http://127.0.0.1:%d", port);
    setenv("MLFLOW_TRACKING_URI", uri, 1);
    r = test_sh("$COHORT train experiment=demo trainer.max_epochs=3 run.dir=r logger=mlflow && "
                "$COHORT train run.dir=r ckpt_path=auto trainer.max_epochs=5 logger=mlflow && "
                "python3 %s %s r FINISHED",
                test_repo("tests/tools/mlflow_check.py"), uri);
    kill(pid, SIGTERM);
    test_wait(pid, 20);
    CHECK(r.status == 0 && test_contains(r.out, "parameters, 2 files"), "%d %s", r.status, r.out);
    test_note("%s", strrchr(r.out, '\n') ? r.out + strlen(r.out) - 60 : "");
}
