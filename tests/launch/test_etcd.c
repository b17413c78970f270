/* Hosts that meet through a real etcd, and what they survive. */
#include "launch/etcds.h"

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "launch/rosters.h"
#include "net/ns.h"

static const char *token_env(void)
{
    static char env[64] = "COHORT_TOKEN=";
    co_token t = {{4, 2}};

    co_token_text(env + 13, &t);
    return env;
}

/* Host i of a job; its output goes to out<i>. A short lease, so that tests need not wait for it. */
static pid_t launch(const etcds *e, int i, const char *flags, const char *script)
{
    char out[16];

    snprintf(out, sizeof out, "out%d", i);
    return test_spawn(
        out,
        "%s TMPDIR=$PWD exec %s launch --rdzv-backend=etcd-v3 --rdzv-id=job --rdzv-endpoint=%s %s"
        " --no-python sh -c '%s'",
        token_env(), test_cohort(), e->members, flags, script);
}

static char *output(int i)
{
    char path[16], *text = NULL;
    size_t len;

    test_may_leak(); /* what was printed is kept to the end of the test */
    snprintf(path, sizeof path, "out%d", i);
    CHECK_OK(co_fs_read(&text, &len, path, 1 << 20));
    return text;
}

static void ends(pid_t pid, int i, int want, const char *words)
{
    int status = test_wait(pid, 25);
    char *text = output(i);

    test_note("host %d: %s", i, text);
    CHECK(status == want && strstr(text, words), "host %d: status %d, wanted %d and \"%s\": %s", i, status,
          want, words, text);
}

static bool is_there(void *path)
{
    return access(path, F_OK) == 0;
}

static void wait_for(const char *path)
{
    test_until(is_there, (void *)path, 25, path);
}

static void go(void)
{
    CHECK_OK(co_fs_write_atomic("go", "", 0));
}

static bool host_0_keeps(void *unused)
{
    return access("out0", F_OK) == 0 && strstr(output(0), "find this one (port ");
}

/* A worker that says it runs by a file named after its rank and the restarts, and goes on until it may end. */
#define WAITS                                                                                                \
    "echo rank $RANK of $WORLD_SIZE, restart $TORCHELASTIC_RESTART_COUNT.;"                                  \
    "touch began$RANK.$TORCHELASTIC_RESTART_COUNT; while ! test -e go; do sleep 0.05; done; echo ended "     \
    "$RANK"

/* Host 0 is the keeper. */
static void start(const etcds *e, pid_t *pid, int n, const char *flags)
{
    for (int i = 0; i < n; i++) {
        pid[i] = launch(e, i, flags, WAITS);
        if (i == 0)
            test_until(host_0_keeps, NULL, 20, "host 0 to keep the roster");
    }
    for (int i = 0; i < n; i++) {
        char path[32];
        snprintf(path, sizeof path, "began%d.0", i);
        wait_for(path);
    }
}

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
         i++) { /* whoever is through with a job goes on to the next while the others still end */
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
    while (co_now_s() - began < 3) /* the lease would be over: it was prolonged meanwhile */
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

TEST(when_the_keeper_is_killed_the_others_go_on)
{
    pid_t pid[3];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    start(&e, pid, 3, "--nnodes=1:3 --max-restarts=2 --rdzv-conf=lease=2,last_call_timeout=5");
    double before = co_now_s();
    kill(pid[0], SIGKILL);
    wait_for("began0.1");
    wait_for("began1.1");
    test_note("the others went on after %.1f s, with a lease of 2 s", co_now_s() - before);
    CHECK(access("began2.1", F_OK) != 0, "a rank of a host that is gone");
    go();
    for (int i = 1; i < 3; i++) {
        ends(pid[i], i, 0, "was lost, and it kept the roster: the other side closed the connection");
        CHECK(strstr(output(i), "of 2, restart 1.") && !strstr(output(i), "restart 2"), "%s", output(i));
    }
    test_wait(pid[0], 5);
    etcds_close(&e);
}

TEST(without_restarts_or_enough_hosts_a_lost_keeper_ends_the_job)
{
    static const struct {
        const char *flags, *words;
    } cases[] = {
        {"--nnodes=1:3 --rdzv-conf=lease=2,last_call_timeout=5", "and it kept the roster"},
        {"--nnodes=3 --max-restarts=3 --rdzv-conf=lease=2", "2 hosts are left, at least 3 are needed"}};
    pid_t pid[3];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    for (size_t k = 0; k < CO_COUNT(cases); k++) {
        start(&e, pid, 3, cases[k].flags);
        kill(pid[0], SIGKILL);
        ends(pid[1], 1, 1, cases[k].words);
        ends(pid[2], 2, 1, cases[k].words);
        test_wait(pid[0], 5);
        CHECK(test_sh("rm -f began* out0").status == 0, "rm");
    }
    etcds_close(&e);
}

TEST(a_job_whose_hosts_were_all_done_ends_well_though_the_keeper_dies)
{
    pid_t pid[2];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    for (int i = 0; i < 2; i++) {
        pid[i] = launch(&e, i, "--nnodes=2 --rdzv-conf=lease=2,lost_after=1",
                        "touch began$RANK; test $RANK = 0 && exit; while ! test -e go; do sleep 0.05; done");
        if (i == 0)
            test_until(host_0_keeps, NULL, 20, "host 0 to keep the roster");
    }
    wait_for("began0");
    wait_for("began1");
    CHECK(test_sh("while pgrep -P %d >/dev/null; do sleep 0.05; done; sleep 1", (int)pid[0]).status == 0,
          "pgrep");
    kill(pid[0], SIGSTOP); /* it is done, and has said so; what the other says from now on it does not hear */
    go();
    ends(pid[1], 1, 0, "and it kept the roster: no sign of life");
    CHECK(!strstr(output(1), "advice"), "blame in spite of it: %s", output(1));
    kill(pid[0], SIGKILL);
    test_wait(pid[0], 5);
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
    CHECK(strstr(output(0), "took the request but has not answered") &&
              strstr(output(0), "Failed to connect"),
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

TEST(a_keeper_whose_cable_is_pulled_stops_and_the_others_go_on_without_it)
{
    static const char flags[] =
        "--nnodes=1:3 --max-restarts=1 --rdzv-conf=lease=2,lost_after=1.5,last_call_timeout=3,join_timeout=";
    ns_lan lan = ns_open(4);
    pid_t pid[3];
    etcds e;

    ns_enter(&lan, 3);
    etcds_open(&e, 1, "10.77.0.4");
    for (int i = 0; i < 3; i++) {
        char whole[200];
        snprintf(whole, sizeof whole, "%s%d", flags, i == 0 ? 2 : 20);
        ns_enter(&lan, i);
        pid[i] = launch(&e, i, whole,
                        "touch began$RANK.$TORCHELASTIC_RESTART_COUNT;"
                        "trap \"touch stopped$RANK.$TORCHELASTIC_RESTART_COUNT; exit 1\" TERM;"
                        "while ! test -e go; do sleep 0.05; done");
        if (i == 0)
            test_until(host_0_keeps, NULL, 20, "host 0 to keep the roster");
    }
    for (int i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "began%d.0", i);
        wait_for(path);
    }
    double before = co_now_s();
    ns_cable(&lan, 0, false);
    wait_for("stopped0.0");
    test_note("the cut-off keeper's worker was stopped after %.1f s", co_now_s() - before);
    wait_for("began0.1");
    wait_for("began1.1");
    test_note("the others went on after %.1f s", co_now_s() - before);
    CHECK(access("stopped0.1", F_OK) != 0, "stopped again");
    ends(pid[0], 0, 1, "no longer keeps the roster: it has lost a host and not reached etcd for");
    CHECK(strstr(output(0), "cannot join the job job: step etcd"), "%s", output(0));
    go();
    ends(pid[1], 1, 0, "and it kept the roster: no sign of life");
    ends(pid[2], 2, 0, "and it kept the roster: no sign of life");
    etcds_close(&e);
    ns_leave(&lan);
}

TEST_LONG(a_keeper_that_was_suspended_finds_its_place_taken_and_joins_the_others)
{
    pid_t pid[3];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    start(&e, pid, 3, "--nnodes=1:3 --max-restarts=3 --rdzv-conf=lease=2,lost_after=1,last_call_timeout=3");
    kill(pid[0], SIGSTOP);
    wait_for("began0.1");
    wait_for("began1.1");
    kill(pid[0], SIGCONT);
    wait_for("began2.1"); /* three again; a host that joins costs no restart */
    go();
    for (int i = 0; i < 3; i++)
        ends(pid[i], i, 0, "of 3, restart 1.");
    etcds_close(&e);
}

TEST_LONG(a_host_that_was_cut_off_while_the_job_ended_finds_how_it_ended)
{
    static const char flags[] =
        "--nnodes=1:3 --max-restarts=1 --rdzv-conf=lease=2,lost_after=1,last_call_timeout=3";
    ns_lan lan = ns_open(4);
    pid_t pid[3];
    etcds e;

    ns_enter(&lan, 3);
    etcds_open(&e, 1, "10.77.0.4");
    for (int i = 0; i < 3; i++) {
        ns_enter(&lan, i);
        pid[i] = launch(&e, i, flags, WAITS);
        if (i == 0)
            test_until(host_0_keeps, NULL, 20, "host 0 to keep the roster");
    }
    for (int i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "began%d.0", i);
        wait_for(path);
    }
    ns_cable(&lan, 2, false);
    wait_for("began0.1");
    wait_for("began1.1");
    go();
    ends(pid[0], 0, 0, "ended");
    ends(pid[1], 1, 0, "ended");
    CHECK(test_wait(pid[2], 0) == -1, "it ended by itself: %s", output(2));
    ns_cable(&lan, 2, true);
    ends(pid[2], 2, 0, "the job ended while this host was cut off");
    etcds_close(&e);
    ns_leave(&lan);
}
