/* Hosts that meet through a real etcd, and what happens to them when etcd does not answer. */
#include "roster/etcds.h"

#include <poll.h>

#include "base/clock.h"
#include "roster/rosters.h"

static bool etcd_holds(const etcds *e, const char *key_base64)
{
    char body[200];

    snprintf(body, sizeof body, "{\"key\":\"%s\"}", key_base64);
    json_t *v = etcds_call(e, 0, "/v3/kv/range", body);
    CHECK(v, "etcd does not answer");
    bool holds = json_array_size(json_object_get(v, "kvs")) > 0;
    json_decref(v);
    return holds;
}

TEST(hosts_find_each_other_through_etcd_and_the_same_id_serves_one_job_after_another)
{
    static const char keeper[] = "L2NvaG9ydC9qb2Iva2VlcGVy"; /* /cohort/job/keeper */
    pid_t pid[3];
    int seen = 0;
    etcds e;

    etcds_open(&e, 3, "127.0.0.1");
    for (int i = 0; i < 3;
         i++) { /* a host that is done with a job goes on to the next while the others still end */
        char out[16];
        snprintf(out, sizeof out, "out%d", i);
        pid[i] =
            test_spawn(out,
                       "for k in 0 1 2 3; do %s TMPDIR=$PWD %s launch --nnodes=3 --rdzv-backend=etcd-v3"
                       " --rdzv-id=job --rdzv-endpoint=%s --no-python sh -c"
                       " 'echo job-'$k'-rank-$RANK-of-$WORLD_SIZE-$TORCHELASTIC_RUN_ID token=$COHORT_TOKEN.'"
                       " || exit 1; done",
                       token_env(), test_cohort(), e.members);
    }
    for (int i = 0; i < 3; i++) {
        ends(pid[i], i, 0, "-job token=.");
        for (int k = 0; k < 12; k++) {
            char want[64];
            snprintf(want, sizeof want, "job-%d-rank-%d-of-3-job", k / 3, k % 3);
            seen += strstr(output(i), want) != NULL;
        }
    }
    CHECK(seen == 12, "%d of 12 ranks", seen);
    CHECK(!etcd_holds(&e, keeper), "the keeper's key is still there");
    etcds_close(&e);
}

TEST(rosters_meet_through_etcd_and_end_in_order_tsan)
{
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    scene s = scene_of(2, 2, "");
    s.where.endpoint[0] = '\0';
    s.where.insecure = true;
    s.where.etcd.members = e.members;
    co_roster *a = host(s, "a"), *b = host(s, "b");
    for (int i = 0; i < 2; i++) {
        co_round o = event(i ? b : a, CO_ROSTER_BEGIN).round;
        CHECK(o.number == 1 && o.hosts == 2 && o.restarts == 0, "round %d", (int)o.number);
    }
    co_roster_done(b);
    co_roster_done(a);
    CHECK(event(a, CO_ROSTER_OVER).status == 0 && event(b, CO_ROSTER_OVER).status == 0, "status");
    co_roster_close(b);
    co_roster_close(a);
    etcds_close(&e);
}

TEST(etcd_without_libcurl_or_an_id_is_refused_with_what_to_do)
{
    test_run r = test_sh(
        "touch libcurl.so.4; LD_LIBRARY_PATH=$PWD %s launch --nnodes=2 --rdzv-backend=etcd-v3 --rdzv-id=x"
        " --rdzv-endpoint=127.0.0.1:2379 --no-python true",
        test_cohort());

    CHECK(r.status == 2 && strstr(r.out, "libcurl.so.4 is not here (package libcurl4)"), "%d: %s", r.status,
          r.out);
    test_note("%s", r.out);
    free(r.out);
    r = test_sh("%s launch --nnodes=2 --rdzv-backend=etcd-v3 --rdzv-endpoint=127.0.0.1:2379 --no-python true",
                test_cohort());
    CHECK(r.status == 2 && strstr(r.out, "needs --rdzv-id=NAME"), "%d: %s", r.status, r.out);
    free(r.out);
    r = test_sh("%s launch --nnodes=2 --rdzv-backend=etcd-v3 --rdzv-id=x --no-python true", test_cohort());
    CHECK(r.status == 2 && strstr(r.out, "--rdzv-endpoint=HOST:2379"), "%d: %s", r.status, r.out);
    free(r.out);
}

TEST(the_death_of_etcds_leader_is_not_noticed_by_a_run)
{
    pid_t pid[2];
    etcds e;

    etcds_open(&e, 3, "127.0.0.1");
    start(&e, pid, 2, "--nnodes=2 --max-restarts=3 --rdzv-conf=lease=2");
    char *before[2] = {output(0), output(1)};
    double began = co_now_s();
    etcds_kill(&e, etcds_leader(&e));
    test_until(etcds_healthy, &e, 20, "a new leader");
    test_note("etcd had a new leader after %.1f s", co_now_s() - began);
    while (co_now_s() - began < 3) /* longer than the lease, which must be renewed in this time */
        poll(NULL, 0, 50);
    go();
    for (int i = 0; i < 2; i++) {
        ends(pid[i], i, 0, "ended");
        char *after = output(i), want[2000];
        snprintf(want, sizeof want, "%s[", before[i]);
        CHECK(strncmp(after, want, strlen(want)) == 0 && strchr(strstr(after, "ended"), '\n')[1] == '\0',
              "more than the workers' own lines: %s", after);
        CHECK(!strstr(after, "restart 1"), "a restart: %s", after);
    }
    etcds_close(&e);
}

TEST(etcd_that_cannot_be_used_is_told_by_its_step)
{
    pid_t pid;
    etcds e;
    int port;

    etcds_open(&e, 3, "127.0.0.1");
    etcds_kill(&e, 0);
    etcds_kill(&e, 2);
    double before = co_now_s();
    pid = launch(&e, 0, "--nnodes=2 --rdzv-conf=join_timeout=2.5", "true");
    ends(pid, 0, 1, "cannot join the job job: step etcd: no member is of use");
    CHECK(strstr(output(0), "took the request but did not answer") && strstr(output(0), "Failed to connect"),
          "%s", output(0));
    CHECK(co_now_s() - before < 8, "took %g s", co_now_s() - before);
    etcds_kill(&e, 1);
    CHECK_OK(co_net_free_port(&port));
    snprintf(e.members, sizeof e.members, "127.0.0.1:%d", port);
    pid = launch(&e, 0, "--nnodes=2 --rdzv-conf=join_timeout=0.5", "true");
    ends(pid, 0, 1, "cannot join the job job: step etcd: no member is of use");
    CHECK(strstr(output(0), "Failed to connect"), "%s", output(0));
    snprintf(e.members, sizeof e.members, "no.such.host.invalid:2379");
    pid = launch(&e, 0, "--nnodes=2 --rdzv-conf=join_timeout=0.5", "true");
    ends(pid, 0, 1, "no.such.host.invalid");
    snprintf(e.members, sizeof e.members, "ftp://x:y:z");
    pid = launch(&e, 0, "--nnodes=2", "true");
    ends(pid, 0, 2, "HOST:PORT of a member of etcd is needed");
    etcds_close(&e);
}

TEST_LONG(a_job_goes_on_without_etcd_and_says_so_after_ten_seconds)
{
    pid_t pid[2];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    start(&e, pid, 2, "--nnodes=2 --max-restarts=3 --rdzv-conf=lease=2");
    kill(e.pid[0], SIGSTOP);
    double before = co_now_s();
    test_until(host_0_says, "etcd has not answered for 1", 25, "a line about etcd");
    double after = co_now_s() - before;
    CHECK(after > 7 && after < 14, "after %.1f s", after);
    kill(e.pid[0], SIGCONT);
    test_until(host_0_says, "etcd answers again", 25, "another about its return");
    etcds_kill(&e, 0);
    go();
    for (int i = 0; i < 2; i++) {
        ends(pid[i], i, 0, "ended");
        CHECK(!strstr(output(i), "restart 1"), "a restart: %s", output(i));
    }
    etcds_close(&e);
}

TEST(etcd_is_spoken_to_inside_tls_with_the_files_that_are_named)
{
    static const char conf[] = "--nnodes=2 --rdzv-conf=protocol=https,cacert=cert.pem,";
    char flags[200];
    pid_t etcd, pid[2];
    int port, peer;
    etcds e = {.n = 0};

    if (test_sh("etcd --version && openssl version").status != 0)
        test_skip("no etcd or no openssl here (packages etcd-server, openssl)");
    test_run made = test_sh("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext"
                            " subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem");
    CHECK(made.status == 0, "%s", made.out);
    CHECK_OK(co_net_free_port(&port));
    CHECK_OK(co_net_free_port(&peer));
    etcd = test_spawn("etcd.log",
                      "exec etcd --data-dir data --client-cert-auth --trusted-ca-file cert.pem --cert-file"
                      " cert.pem --key-file key.pem --listen-client-urls https://127.0.0.1:%d"
                      " --advertise-client-urls https://127.0.0.1:%d --listen-peer-urls http://127.0.0.1:%d",
                      port, port, peer);
    snprintf(e.members, sizeof e.members, "127.0.0.1:%d", port);
    snprintf(flags, sizeof flags, "%scert=cert.pem,key=key.pem", conf);
    for (int i = 0; i < 2; i++)
        pid[i] = launch(&e, i, flags, "echo rank $RANK of $WORLD_SIZE.");
    for (int i = 0; i < 2; i++)
        ends(pid[i], i, 0, "of 2.");
    snprintf(flags, sizeof flags, "%sjoin_timeout=0.5", conf);
    pid[0] = launch(&e, 0, flags, "true");
    ends(pid[0], 0, 1, "step etcd: no member is of use");
    kill(etcd, SIGKILL);
    test_wait(etcd, 5);
}
