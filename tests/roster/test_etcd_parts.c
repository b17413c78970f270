/* The parts of the etcd finder, called one by one. */
#include "roster/etcds.h"

#include <dirent.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "roster/etcd/etcd_int.h"
#include "roster/rosters.h"

TEST(a_campaign_whose_answer_was_lost_finds_itself_in_the_place)
{
    static const keeper me = {.endpoint = "127.0.0.1:7", .host = "a", .job = "j"};
    co_patience p = co_patience_s(20);
    keeping other = {0};
    int64_t first = 0, again = 0, third = 1;
    bool held = false;
    etcds e;
    etcd *one;

    etcds_open(&e, 1, "127.0.0.1");
    CHECK_OK(etcd_open(&one, "job", &(co_meet_etcd){.members = e.members}));
    CHECK_OK(etcd_campaign(one, &other, &first, &me, 10, &p));
    CHECK_OK(etcd_campaign(one, &other, &again, &me, 10, &p)); /* as if the first answer had been lost */
    CHECK(first != 0 && again == first, "lease %lld, then %lld", (long long)first, (long long)again);
    CHECK_OK(etcd_stay(one, &held, again, &p));
    CHECK(held, "the lease is gone");
    keeper elsewhere = me;
    snprintf(elsewhere.host, sizeof elsewhere.host, "b");
    CHECK_OK(etcd_campaign(one, &other, &third, &elsewhere, 10, &p));
    CHECK(third == 0 && other.there && strcmp(other.who.host, "a") == 0, "another took the place: %s",
          other.who.host);
    etcd_close(one);
    etcds_close(&e);
}

struct race {
    etcd *etcd;
    const keeper *me;
    int64_t id;
    keeping seen;
};

static bool wins(void *race)
{
    struct race *c = race;
    co_patience p = co_patience_s(20);

    CHECK_OK(etcd_campaign(c->etcd, &c->seen, &c->id, c->me, 10, &p));
    return c->id != 0;
}

static void leave_place(etcd *e, int64_t id)
{
    co_patience p = co_patience_s(20);
    keeping now;

    etcd_owe(e, id);
    CHECK_OK(etcd_look(e, &now, "", &p));
}

TEST(a_job_that_runs_keeps_its_name_without_a_keeper_until_it_ends_or_is_not_heard_of_for_long)
{
    static const keeper first = {.endpoint = "127.0.0.1:7", .host = "a", .job = "j1"},
                        mate = {.endpoint = "127.0.0.1:8", .host = "b", .job = "j1"},
                        new = {.endpoint = "127.0.0.1:9", .host = "c", .job = "j2"};
    co_patience p = co_patience_s(20);
    int64_t running;
    bool held;
    etcds e;
    etcd *one;

    etcds_open(&e, 1, "127.0.0.1");
    CHECK_OK(etcd_open(&one, "job", &(co_meet_etcd){.members = e.members}));
    struct race a = {.etcd = one, .me = &first}, b = {.etcd = one, .me = &mate}, c = {.etcd = one, .me = &new};
    CHECK(wins(&a), "the place was taken");
    CHECK_OK(etcd_mark(one, &held, &running, &first, a.id, 60, &p));
    CHECK(held && etcd_seconds_left(one, running, &p) > 50, "not noted that it runs");
    leave_place(one, a.id);
    CHECK(!wins(&c) && !c.seen.there && strcmp(c.seen.running, "j1") == 0 &&
              strcmp(c.seen.running_host, "a") == 0,
          "a new job took the place beside %s of %s", c.seen.running, c.seen.running_host);
    CHECK(wins(&b), "a host of the job that runs cannot keep it");
    CHECK_OK(etcd_mark(one, &held, &running, &first, a.id, 60, &p));
    CHECK(!held, "noted by a host that does not keep the roster");
    CHECK_OK(etcd_mark(one, &held, &running, &mate, b.id, 60, &p));
    CHECK_OK(etcd_give_up(one, &first, &(co_leave){.status = 1}, &p));
    leave_place(one, b.id);
    CHECK(!wins(&c) && strcmp(c.seen.running_host, "b") == 0, "ended by who had lost another keeper");
    CHECK_OK(etcd_give_up(one, &mate, &(co_leave){.status = 1}, &p));
    CHECK(!wins(&c), "an end is there already, so nothing of this one was to be done");
    CHECK_OK(etcd_end(one, b.id, &mate, &(co_leave){.status = 0}, &p));
    CHECK(wins(&c), "the end of the job is not enough");
    CHECK_OK(etcd_mark(one, &held, &running, &new, c.id, 1, &p)); /* the job ends without noting its end */
    leave_place(one, c.id);
    static const keeper last = {.endpoint = "127.0.0.1:9", .host = "d", .job = "j3"};
    struct race d = {.etcd = one, .me = &last};
    test_until(wins, &d, 10, "the job that is not heard of to be forgotten");
    etcd_close(one);
    etcds_close(&e);
}

TEST(a_host_that_comes_back_is_patient_until_its_old_seat_is_missed)
{
    co_patience soon = co_patience_s(0.2);
    char members[40];
    int port;
    network r = {.terms.run_id = "job", .where.lost_after_s = 30, .client.past.number = 1};

    CHECK_OK(co_net_free_port(&port)); /* nobody listens there */
    snprintf(members, sizeof members, "127.0.0.1:%d", port);
    r.where.etcd.members = members;
    if (finder_etcd.open(&r))
        test_skip("%s", co_errmsg());
    uint64_t began_ns = co_now_ns();
    CHECK_FAILS(finder_etcd.enter(&r, &soon), CO_EFAIL, "cannot join the job job");
    CHECK(r.finder->refused_until_ns > began_ns + 30 * UINT64_C(1000000000), "for %.1f s",
          (double)(r.finder->refused_until_ns - began_ns) / 1e9);
    finder_etcd.close(&r);
}

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    CHECK(d, "/proc/self/fd: %m");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Runs as a user who may have two threads: the main one and the carrier's. The lease's thread cannot start.
 */
static void fail_to_keep(const char *members)
{
    struct rlimit threads = {.rlim_cur = 2, .rlim_max = 16};
    scene s = scene_of(1, 1, "");

    s.where.endpoint[0] = '\0';
    s.where.insecure = true;
    s.where.etcd.members = members;
    CHECK(setrlimit(RLIMIT_NPROC, &threads) == 0 && setuid(60000 + (uid_t)getpid() % 5000) == 0, "%m");
    int before = descriptors();
    co_roster *r = host(s, "a");
    talk(r, "trying on: no thread for the lease in etcd"); /* it has tried several times by now */
    int more = descriptors() - before;
    CHECK(more < 10, "%d more descriptors", more);
    threads.rlim_cur = threads.rlim_max;
    CHECK(setrlimit(RLIMIT_NPROC, &threads) == 0, "%m");
    event(r, CO_ROSTER_BEGIN);
    co_roster_done(r);
    CHECK(event(r, CO_ROSTER_OVER).status == 0, "status");
    co_roster_close(r);
}

TEST(a_host_that_cannot_keep_the_roster_it_won_gives_it_back_and_tries_again)
{
    etcds e;

    if (geteuid() != 0)
        test_skip("only root can become a user who may start no threads");
    etcds_open(&e, 1, "127.0.0.1");
    pid_t pid = fork();
    if (pid == 0) {
        fail_to_keep(e.members);
        _exit(0);
    }
    int status = test_wait(pid, 30);
    CHECK(status == 0, "status %d", status);
    etcds_close(&e);
}
