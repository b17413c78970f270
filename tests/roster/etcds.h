/* etcds.h -- a real etcd cluster in the test's folder, on free ports, which ends with the test; and hosts
 * that meet through it. */
#ifndef TESTS_LAUNCH_ETCDS_H
#define TESTS_LAUNCH_ETCDS_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "harness.h"
#include "net/http.h"
#include "net/net.h"

enum { ETCDS = 3 };
typedef struct etcds {
    int n, port[ETCDS];
    char ip[32];
    pid_t pid[ETCDS];
    char members[200]; /* for --rdzv-endpoint */
    co_http *http;
} etcds;

/* POSTs to member i. The caller owns the answer; NULL: none, or its status is not a success. */
static inline json_t *etcds_call(const etcds *e, int i, const char *path, const char *body)
{
    co_patience p = co_patience_s(2);
    co_http_answer a = {0};
    json_t *v = NULL;
    char url[200];

    snprintf(url, sizeof url, "http://%s:%d%s", e->ip, e->port[i], path);
    if (co_http_do(
            e->http, &a,
            &(co_http_request){.url = url, .body = body, .len = strlen(body), .most = 65536, .direct = true},
            &p) == CO_OK &&
        a.status == 200 && co_json_parse(&v, a.body, a.len, "etcd"))
        v = NULL;
    co_free(a.body);
    return v;
}

/* Whether a living member can write, which shows that there is a leader. */
static inline bool etcds_healthy(void *cluster)
{
    const etcds *e = cluster;
    json_t *v = NULL;

    for (int i = 0; i < e->n && !v; i++)
        if (e->pid[i])
            v = etcds_call(e, i, "/v3/kv/put", "{\"key\":\"dA==\",\"value\":\"dA==\"}");
    json_decref(v);
    return v != NULL;
}

/* Must be called on the host whose address `ip` is. */
static inline void etcds_open(etcds *e, int n, const char *ip)
{
    char cluster[300] = "";
    int peer[ETCDS];

    *e = (etcds){.n = n};
    test_run have = test_sh("etcd --version");
    if (have.status != 0)
        test_skip("no etcd here (package etcd-server)");
    free(have.out);
    if (co_http_open(&e->http))
        test_skip("%s", co_errmsg());
    snprintf(e->ip, sizeof e->ip, "%s", ip);
    for (int i = 0; i < n; i++) {
        CHECK_OK(co_net_free_port(&e->port[i]));
        CHECK_OK(co_net_free_port(&peer[i]));
        snprintf(cluster + strlen(cluster), sizeof cluster - strlen(cluster), "%sm%d=http://%s:%d",
                 i ? "," : "", i, ip, peer[i]);
        snprintf(e->members + strlen(e->members), sizeof e->members - strlen(e->members), "%s%s:%d",
                 i ? "," : "", ip, e->port[i]);
    }
    for (int i = 0; i < n; i++) {
        char log[32];
        snprintf(log, sizeof log, "etcd%d.log", i);
        e->pid[i] =
            test_spawn(log,
                       "exec etcd --name m%d --data-dir etcd%d --heartbeat-interval 50 --election-timeout 500"
                       " --listen-client-urls http://%s:%d --advertise-client-urls http://%s:%d"
                       " --listen-peer-urls http://%s:%d --initial-advertise-peer-urls http://%s:%d"
                       " --initial-cluster %s --initial-cluster-token test --initial-cluster-state new",
                       i, i, ip, e->port[i], ip, e->port[i], ip, peer[i], ip, peer[i], cluster);
    }
    test_until(etcds_healthy, e, 30, "a leader of etcd");
}

static inline void etcds_kill(etcds *e, int i)
{
    kill(e->pid[i], SIGKILL);
    test_wait(e->pid[i], 5);
    e->pid[i] = 0;
}

static inline int etcds_leader(const etcds *e)
{
    for (int i = 0; i < e->n; i++) {
        json_t *v = e->pid[i] ? etcds_call(e, i, "/v3/maintenance/status", "{}") : NULL;
        const char *me = co_json_str(json_object_get(v, "header"), "member_id"),
                   *leader = co_json_str(v, "leader");
        bool is = me && leader && strcmp(me, leader) == 0;
        json_decref(v);
        if (is)
            return i;
    }
    test_fail(__FILE__, __LINE__, "leader", "etcd has no leader");
}

static inline void etcds_close(etcds *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->pid[i])
            etcds_kill(e, i);
    co_http_close(e->http);
}

/* --- `cohort launch` on several hosts ------------------------------------------------------------------- */
static inline const char *token_env(void)
{
    static char env[64] = "COHORT_TOKEN=";
    co_token t = {{4, 2}};

    co_token_text(env + 13, &t);
    return env;
}

/* Host i of a job; its output goes to out<i>. A short lease, so that tests need not wait for it. */
static inline pid_t launch(const etcds *e, int i, const char *flags, const char *script)
{
    char out[16];

    snprintf(out, sizeof out, "out%d", i);
    return test_spawn(
        out,
        "%s TMPDIR=$PWD exec %s launch --rdzv-backend=etcd-v3 --rdzv-id=job --rdzv-endpoint=%s %s"
        " --no-python sh -c '%s'",
        token_env(), test_cohort(), e->members, flags, script);
}

static inline char *output(int i)
{
    static char *text;
    char path[16];

    test_may_leak(); /* what was printed is kept to the end of the test */
    snprintf(path, sizeof path, "out%d", i);
    CHECK_OK(co_fs_read(&text, NULL, path, 1 << 20));
    return text;
}

static inline void ends(pid_t pid, int i, int want, const char *words)
{
    int status = test_wait(pid, 25);
    char *text = output(i);

    test_note("host %d: %s", i, text);
    CHECK(status == want && strstr(text, words), "host %d: status %d, wanted %d and \"%s\": %s", i, status,
          want, words, text);
}

static inline bool is_there(void *path)
{
    return access(path, F_OK) == 0;
}

static inline void wait_for(const char *path)
{
    test_until(is_there, (void *)path, 25, path);
}

static inline void go(void)
{
    CHECK_OK(co_fs_write_atomic("go", "", 0));
}

static inline bool host_0_says(void *words)
{
    return access("out0", F_OK) == 0 && strstr(output(0), words);
}

/* A worker that creates a file named after its rank and the number of restarts, and then runs until the test
 * lets it end. */
#define WAITS                                                                                                \
    "echo rank $RANK of $WORLD_SIZE, restart $TORCHELASTIC_RESTART_COUNT.;"                                  \
    "touch began$RANK.$TORCHELASTIC_RESTART_COUNT; while ! test -e go; do sleep 0.05; done; echo ended "     \
    "$RANK"

/* Host 0 is the keeper. */
static inline void start(const etcds *e, pid_t *pid, int n, const char *flags)
{
    for (int i = 0; i < n; i++) {
        pid[i] = launch(e, i, flags, WAITS);
        if (i == 0)
            test_until(host_0_says, "find this one (port ", 20, "host 0 to keep the roster");
    }
    for (int i = 0; i < n; i++) {
        char path[32];
        snprintf(path, sizeof path, "began%d.0", i);
        wait_for(path);
    }
}

#endif
