/* Each reason for which a host is refused: both sides print their message quickly, and the job goes on. */
#include "roster/rosters.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* One host waits for another, which has the scene `other`, different in one thing, and is refused. */
static void refused(const scene *s, const scene *other, const char *there, const char *here)
{
    co_roster *a = host(*s, "a"), *b = host(*other, "b");

    broken(b, CO_EINPUT, there);
    if (here)
        talk(a, here);
    co_roster_close(b);
    co_roster_close(a);
}

TEST(terms_that_differ_are_refused_with_both_values_on_both_sides)
{
    scene s = scene_of(2, 2, "127.0.0.1"), o = s;

    snprintf(o.terms.run_id, sizeof o.terms.run_id, "run8");
    refused(&s, &o, "it was started with --rdzv-id=run7, this one with --rdzv-id=run8",
            "it was started with --rdzv-id=run8, this one with --rdzv-id=run7");
    o = s;
    o.terms.min_hosts = 1;
    refused(&s, &o, "it was started with --nnodes=2, this one with --nnodes=1:2",
            "host b (127.0.0.1) was refused: it was started with --nnodes=1:2");
    o = s;
    snprintf(o.terms.version, sizeof o.terms.version, "1.1");
    refused(&s, &o, "it was started with cohort 1.0, this one with cohort 1.1", "this one with cohort 1.0");
    o = s;
    snprintf(o.terms.program, sizeof o.terms.program, "other.py");
    refused(&s, &o, "the program train.py, this one with the program other.py",
            "Every host must run the same program");
}

TEST(a_job_of_one_host_answers_at_its_endpoint)
{
    scene s = scene_of(1, 1, "127.0.0.1"), o = s;
    co_roster *a = host(s, "a"), *b;

    event(a, CO_ROSTER_BEGIN);
    o.terms.min_hosts = o.terms.max_hosts = 2;
    b = host(o, "b");
    broken(b, CO_EINPUT, "it was started with --nnodes=1, this one with --nnodes=2");
    CHECK(test_contains(co_errmsg(), "start it with --nnodes=2"), "%s", co_errmsg());
    co_roster_close(b);
    b = host(s, "b");
    broken(b, CO_EINPUT, "has all its hosts already");
    co_roster_close(b);
    talk(a, "it was started with --nnodes=2, this one with --nnodes=1");
    co_roster_done(a);
    CHECK(event(a, CO_ROSTER_OVER).status == 0, "the job was disturbed");
    co_roster_close(a);
}

TEST(a_rank_that_is_taken_or_too_large_is_refused)
{
    scene s = scene_of(2, 2, "127.0.0.1"), o;

    s.terms.host_rank = 0;
    o = s;
    o.where.role = CO_MEET_JOIN;
    refused(&s, &o, "--node-rank=0 is taken by host a: give each host its own, 0 to 1",
            "it says --node-rank=0, and so does host a");
    o.terms.host_rank = 2;
    refused(&s, &o, "--node-rank=2 of --nnodes=2: ranks go from 0 to 1", "ranks go from 0 to 1");
}

static void make_token(scene *s, uint8_t seed)
{
    co_token t = {{seed}};

    co_token_text(s->where.token, &t);
}

TEST(another_token_is_refused_as_such_and_seen_on_both_sides)
{
    scene s = scene_of(2, 2, "127.0.0.1"), o = s;

    make_token(&s, 1);
    make_token(&o, 2);
    refused(&s, &o, "step token: 127.0.0.1 (reached from 127.0.0.1): the other side has another token",
            "step token: 127.0.0.1 tried to join with another token");
    o.where.insecure = true;
    co_roster *a = host(s, "a"), *b = host(o, "b");
    broken(b, CO_EFAIL, "it has a token, this one was started with --insecure");
    co_roster_close(b);
    co_roster_close(a);
    a = host(o, "a");
    b = host(s, "b");
    broken(b, CO_EFAIL, "it was started with --insecure, this one was not");
    co_roster_close(b);
    co_roster_close(a);
}

TEST(with_the_token_hosts_meet_inside_tls)
{
    scene s = scene_of(2, 2, "127.0.0.1");

    make_token(&s, 1);
    co_roster *a = host(s, "a"), *b = host(s, "b");
    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    co_roster_done(a);
    co_roster_done(b);
    CHECK(event(a, CO_ROSTER_OVER).status == 0 && event(b, CO_ROSTER_OVER).status == 0, "both are done");
    co_roster_close(b);
    co_roster_close(a);
}

TEST(the_first_host_makes_a_token_and_others_need_it)
{
    scene s = scene_of(2, 2, ""), o;
    char token[64] = "";
    co_roster_event ev = {0};
    co_roster *r, *b;

    CHECK(!co_meet_needs_token(&s.terms, &s.where), "the first needs none");
    CHECK_OK(co_roster_open(&r, &s.terms, &s.where)); /* on every address: loopback's freedom does not hold */
    while (ev.kind != CO_ROSTER_TALK)
        CHECK_OK(co_roster_turn(r, 100, &ev));
    const char *at = strstr(ev.text, "COHORT_TOKEN=");
    CHECK(at && sscanf(at + 13, "%40s", token) == 1, "%s", ev.text);
    o = s;
    snprintf(o.where.endpoint, sizeof o.where.endpoint, "192.0.2.77:1");
    CHECK(co_meet_needs_token(&o.terms, &o.where), "a joiner needs one");
    CHECK_FAILS(co_roster_open(&b, &o.terms, &o.where), CO_EINPUT,
                "this host has no token to join the job at 192.0.2.77:1");
    o = s;
    co_endpoint e;
    CHECK_OK(co_endpoint_parse(&e, s.where.endpoint));
    snprintf(o.where.endpoint, sizeof o.where.endpoint, "127.0.0.1:%d", e.port);
    o.where.role = CO_MEET_JOIN;
    snprintf(o.where.token, sizeof o.where.token, "%s", token);
    b = host(o, "b");
    event(b, CO_ROSTER_BEGIN);
    event(r, CO_ROSTER_BEGIN);
    co_roster_close(b);
    co_roster_close(r);
}

TEST(each_step_on_the_way_names_itself)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    co_roster *r;
    double before = co_now_s();

    s.where.role = CO_MEET_JOIN;
    s.where.insecure = true;
    s.where.join_timeout_s = 0.5;
    r = host(s, "b"); /* nobody listens */
    broken(r, CO_EFAIL, "step connect: 127.0.0.1:");
    CHECK(test_contains(co_errmsg(), "refuses: nothing listens there (tried from 127.0.0.1)"), "%s",
          co_errmsg());
    co_roster_close(r);
    snprintf(s.where.endpoint, sizeof s.where.endpoint, "no-such-host.invalid:29400");
    r = host(s, "b");
    broken(r, CO_EFAIL, "step resolve: the name no-such-host.invalid cannot be resolved");
    co_roster_close(r);
    CHECK(co_now_s() - before < 10, "took %g s", co_now_s() - before);
    s.where.join_timeout_s = 20;
    r = host(s, "b");
    talk(r, "not yet at no-such-host.invalid:29400, trying on: step resolve");
    leave(r, SIGINT, 130);
    CHECK(event(r, CO_ROSTER_OVER).status == 130, "can be left while it tries");
    co_roster_close(r);
}

TEST(a_taken_endpoint_names_the_process_that_has_it)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    co_endpoint e;
    co_roster *r;
    int fd, ready[2];
    char byte = 0, want[64];

    CHECK_OK(co_endpoint_parse(&e, s.where.endpoint));
    CHECK(pipe(ready) == 0, "pipe");
    CHECK_OK(co_net_listen(&fd, "127.0.0.1", e.port));
    pid_t pid = fork(); /* another program that holds the listener as its standard output */
    if (pid == 0) {
        dup2(fd, 0);
        dup2(ready[1], 1);
        execl("/bin/sh", "sh", "-c", "echo; kill -STOP $$", NULL);
        _exit(127);
    }
    close(fd);
    CHECK(read(ready[0], &byte, 1) == 1, "the other program does not run");
    snprintf(want, sizeof want, "the port is taken by process %d (sh -c", (int)pid);
    CHECK_FAILS(co_roster_open(&r, &s.terms, &s.where), CO_EINPUT, want);
    CHECK_FAILS(co_roster_open(&r, &s.terms, &s.where), CO_EINPUT,
                "the meeting point: cannot listen on 127.0.0.1:");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
