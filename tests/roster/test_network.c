/* Rosters over loopback: hosts meet, are numbered, fail, start again, come and go. */
#include "roster/rosters.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void meet(int n, const char *at_host)
{
    scene s = scene_of(n, n, at_host);
    co_roster *r[8];
    co_roster_event ev[8];
    int rank = 0;

    for (int i = 0; i < n; i++) {
        s.terms.nproc = i + 1;
        r[i] = host(s, "h");
    }
    for (int i = 0; i < n; i++)
        ev[i] = event(r[i], CO_ROSTER_BEGIN);
    for (int at = 0; at < n; at++)
        for (int i = 0; i < n; i++)
            if (ev[i].round.my_host == at) {
                co_round o = ev[i].round;
                CHECK(o.first_rank == rank && o.hosts == n && o.world == n * (n + 1) / 2 && o.number == 1 &&
                          o.restarts == 0,
                      "host %d: first rank %d of %d, %d hosts", at, o.first_rank, o.world, o.hosts);
                CHECK(strcmp(o.master_addr, "127.0.0.1") == 0 && o.master_port == ev[0].round.master_port &&
                          o.master_port > 0,
                      "master %s:%d", o.master_addr, o.master_port);
                rank += i + 1;
            }
    CHECK(rank == n * (n + 1) / 2, "not every host has a number");
    for (int i = 0; i < n; i++)
        co_roster_done(r[i]);
    for (int i = 0; i < n; i++)
        CHECK(event(r[i], CO_ROSTER_OVER).status == 0, "host %d", i);
    for (int i = n; i-- > 0;)
        co_roster_close(r[i]);
}

TEST(hosts_meet_and_are_numbered_by_their_workers)
{
    meet(1, "127.0.0.1");
    meet(2, "127.0.0.1");
    meet(3, "localhost");
    meet(8, "127.0.0.1");
}

TEST(hosts_meet_over_ipv6)
{
    int fd;

    if (co_net_listen(&fd, "::1", 0))
        test_skip("no IPv6 on this machine: %s", co_errmsg());
    close(fd);
    meet(2, "::1");
}

TEST(wished_ranks_are_honoured)
{
    static const int wish[] = {0, 2, -1, 1};
    scene s = scene_of(4, 4, "127.0.0.1");
    co_roster *r[4];

    for (int i = 0; i < 4; i++) {
        s.terms.host_rank = wish[i];
        r[i] = host(s, "h");
    }
    for (int i = 0; i < 4; i++) {
        co_round o = event(r[i], CO_ROSTER_BEGIN).round;
        CHECK(o.my_host == (wish[i] < 0 ? 3 : wish[i]) && o.first_rank == 2 * o.my_host, "host %d is %d", i,
              o.my_host);
    }
    for (int i = 4; i-- > 0;)
        co_roster_close(r[i]);
}

TEST(the_first_failure_in_time_is_the_cause_whatever_the_clocks_say)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    co_roster *a = host(s, "a"), *b;
    int64_t now = wall_ns();

    s.where.skew_ns = 300 * 1000000000ll; /* b's clock is five minutes ahead */
    b = host(s, "b");
    talk(a, "the clock of host b (127.0.0.1) is 300 s ahead of that of host a");
    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    CHECK(llabs(co_roster_clock_offset(b)) < 500000000, "%lld ns are left of it",
          (long long)co_roster_clock_offset(b)); /* the host's real clock is right */
    co_failure late = failure(0, 3, now + 2000000000), early = failure(2, 4, now + 1000000000);
    early.when_ns -= co_roster_clock_offset(b); /* as its agent does */
    co_roster_failed(a, &late);
    event(a, CO_ROSTER_STOP);
    co_roster_event stop = event(b, CO_ROSTER_STOP);
    CHECK(stop.has_cause && stop.cause.rank == 0, "the cause so far");
    co_roster_failed(b, &early); /* reported later, but it happened earlier */
    co_roster_stopped(b);
    co_roster_stopped(a);
    for (int i = 0; i < 2; i++) {
        co_roster_event over = event(i ? a : b, CO_ROSTER_OVER);
        CHECK(over.status == 4 && over.has_cause && over.cause.rank == 2 && over.cause.pid == 102 &&
                  over.cause.host_rank == 1,
              "status %d, rank %d", over.status, over.cause.rank);
        int64_t off = over.cause.when_ns - (now + 1000000000);
        CHECK(off > -500000000 && off < 500000000, "its time is off by %lld ns", (long long)off);
    }
    co_roster_close(b);
    co_roster_close(a);
}

TEST(failures_are_answered_with_restarts_while_there_are_some_tsan)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    s.terms.max_restarts = 1;
    co_roster *r[2] = {host(s, "a"), host(s, "b")};

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            co_round o = event(r[i], CO_ROSTER_BEGIN).round;
            CHECK(o.number == round + 1 && o.restarts == round, "round %lld, restarts %d",
                  (long long)o.number, o.restarts);
        }
        co_failure f = failure(2, 9, wall_ns());
        co_roster_failed(r[1], &f);
        for (int i = 0; i < 2; i++) {
            co_roster_event ev = event(r[i], CO_ROSTER_STOP);
            CHECK(test_contains(ev.text, round ? "" : "start again (restart 1 of 1)"), "%s", ev.text);
            co_roster_stopped(r[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        co_roster_event over = event(r[i], CO_ROSTER_OVER);
        CHECK(over.status == 9 && over.has_cause && strcmp(over.cause.how, "exited with status 9") == 0, "%d",
              over.status);
    }
    co_roster_close(r[1]);
    co_roster_close(r[0]);
}

TEST(a_worker_that_failed_before_a_host_was_lost_stays_the_cause)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    co_roster *a = host(s, "a"), *b = host(s, "b");

    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    co_roster_event none;
    /* wait for the first pongs, so that b's last frame is older than the failure */
    CHECK_OK(co_roster_turn(b, 100, &none));
    co_failure f = failure(1, 3, wall_ns());
    co_roster_failed(a, &f);
    event(b, CO_ROSTER_STOP);
    co_roster_close(b); /* instead of saying that it stopped */
    event(a, CO_ROSTER_STOP);
    co_roster_stopped(a);
    co_roster_event over = event(a, CO_ROSTER_OVER);
    CHECK(over.status == 3 && over.cause.rank == 1, "status %d, rank %d: %s", over.status, over.cause.rank,
          over.cause.how);
    co_roster_close(a);
}

TEST(an_elastic_job_takes_in_a_host_and_goes_on_without_a_lost_one)
{
    scene s = scene_of(2, 3, "127.0.0.1");
    s.terms.max_restarts = 1;
    co_roster *r[3] = {host(s, "a"), host(s, "b"), NULL};

    for (int i = 0; i < 2; i++)
        CHECK(event(r[i], CO_ROSTER_BEGIN).round.hosts == 2, "last call is over");
    r[2] = host(s, "c");
    for (int i = 0; i < 2; i++) {
        CHECK(test_contains(event(r[i], CO_ROSTER_STOP).text, "host c (127.0.0.1) joins"), "no word of c");
        co_roster_stopped(r[i]);
    }
    for (int i = 0; i < 3; i++) {
        co_round o = event(r[i], CO_ROSTER_BEGIN).round;
        CHECK(o.hosts == 3 && o.world == 6 && o.restarts == 0, "%d hosts", o.hosts);
    }
    co_roster_close(r[1]); /* leaves without a LEAVE frame */
    for (int i = 0; i < 3; i += 2) {
        co_roster_event ev = event(r[i], CO_ROSTER_STOP);
        CHECK(ev.has_cause && ev.cause.rank == -1 && strcmp(ev.cause.host, "b") == 0 &&
                  test_contains(ev.cause.how, "was lost"),
              "%s: %s", ev.cause.host, ev.cause.how);
        co_roster_stopped(r[i]);
    }
    for (int i = 0; i < 3; i += 2) {
        co_round o = event(r[i], CO_ROSTER_BEGIN).round;
        CHECK(o.hosts == 2 && o.restarts == 1 && o.my_host == i / 2, "%d hosts, this is %d", o.hosts,
              o.my_host);
    }
    co_roster_close(r[2]); /* no restart is left */
    event(r[0], CO_ROSTER_STOP);
    co_roster_stopped(r[0]);
    co_roster_event over = event(r[0], CO_ROSTER_OVER);
    CHECK(over.status == 1 && over.has_cause && strcmp(over.cause.host, "c") == 0, "status %d", over.status);
    co_roster_close(r[0]);
}

TEST(a_host_that_comes_when_the_last_are_done_does_not_start_them_again)
{
    scene s = scene_of(2, 3, "127.0.0.1");
    co_roster *r[3] = {host(s, "a"), host(s, "b"), NULL};

    for (int i = 0; i < 2; i++)
        event(r[i], CO_ROSTER_BEGIN);
    r[2] = host(s, "c");
    for (int i = 0; i < 2; i++) {
        event(r[i], CO_ROSTER_STOP);
        co_roster_done(r[i]); /* they were done before they heard of the new host */
        co_roster_stopped(r[i]);
    }
    for (int i = 0; i < 3; i++)
        CHECK(event(r[i], CO_ROSTER_OVER).status == 0, "host %d", i);
    for (int i = 3; i-- > 0;)
        co_roster_close(r[i]);
}

TEST(a_host_that_was_asked_to_end_ends_the_job_everywhere)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    co_roster *a = host(s, "a"), *b = host(s, "b");

    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    leave(b, SIGTERM, 75);
    for (int i = 0; i < 2; i++) {
        co_roster_event over = event(i ? a : b, CO_ROSTER_OVER);
        CHECK(over.status == 75 && test_contains(over.text, "host b (127.0.0.1) was asked to end: SIGTERM"),
              "%s", over.text);
    }
    co_roster_close(a);
    co_roster_close(b);
}

TEST(the_signal_and_its_origin_reach_all_hosts_of_a_roster_as_fields_whatever_the_text_says)
{
    static const co_leave ways[] = {
        {.sig = SIGUSR1, .origin = CO_ORIGIN_SCHEDULER, .status = 75, .text = "SIGKILL on c; SIGINT on d"},
        {.sig = SIGTERM, .origin = CO_ORIGIN_CONDUCTOR, .status = 75, .text = "\xfe\xff"},
        {.origin = CO_ORIGIN_HOST, .status = 1, .text = "SIGTERM on the command that started the job"}};

    for (size_t i = 0; i < CO_COUNT(ways); i++) {
        scene s = scene_of(2, 2, "127.0.0.1");
        co_roster *a = host(s, "a"), *b = host(s, "b");
        event(a, CO_ROSTER_BEGIN);
        event(b, CO_ROSTER_BEGIN);
        co_roster_leave(b, &ways[i]);
        for (int k = 0; k < 2; k++) {
            co_roster_event over = event(k ? a : b, CO_ROSTER_OVER);
            CHECK(over.status == ways[i].status && over.sig == ways[i].sig && over.origin == ways[i].origin &&
                      strcmp(over.host, "b") == 0,
                  "case %zu: status %d, signal %d, origin %d, host %s: %s", i, over.status, over.sig,
                  over.origin, over.host, over.text);
        }
        co_roster_close(b);
        co_roster_close(a);
    }
}

TEST(ctrl_c_on_a_host_of_an_elastic_job_is_its_own_affair)
{
    scene s = scene_of(1, 1, "127.0.0.1");
    s.terms.min_hosts = 1;
    s.terms.max_hosts = 2;
    co_roster *a = host(s, "a"), *b = host(s, "b");

    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    leave(b, SIGINT, 130);
    CHECK(event(b, CO_ROSTER_OVER).status == 130, "b");
    co_roster_event stop = event(a, CO_ROSTER_STOP);
    CHECK(
        test_contains(stop.text, "host b (127.0.0.1) left (SIGINT on b): all workers start again on 1 host"),
        "%s", stop.text);
    co_roster_stopped(a);
    co_roster_event again = event(a, CO_ROSTER_BEGIN);
    CHECK(again.round.hosts == 1 && again.round.restarts == 0, "%d hosts, %d restarts", again.round.hosts,
          again.round.restarts);
    leave(a, SIGINT, 130); /* too few hosts would be left, so the job ends */
    CHECK(event(a, CO_ROSTER_OVER).status == 130, "a");
    co_roster_close(b);
    co_roster_close(a);
}

TEST(what_a_host_leaves_undone_is_done_again_also_if_the_others_were_done)
{
    scene s = scene_of(1, 2, "127.0.0.1");
    co_roster *a = host(s, "a"), *b = host(s, "b");

    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    co_roster_done(a);
    leave(b, SIGINT, 130);
    event(b, CO_ROSTER_OVER);
    event(a, CO_ROSTER_STOP);
    co_roster_stopped(a);
    CHECK(event(a, CO_ROSTER_BEGIN).round.hosts == 1, "alone");
    co_roster_done(a);
    CHECK(event(a, CO_ROSTER_OVER).status == 0, "then it is");
    co_roster_close(b);
    co_roster_close(a);
}

static bool knows_its_clock(void *roster)
{
    return co_roster_clock_offset(roster) != 0; /* nanoseconds */
}

TEST(what_a_lost_host_had_done_is_not_done_again_for_one_that_comes)
{
    scene s = scene_of(1, 2, "127.0.0.1");
    co_roster *a = host(s, "a"), *b = host(s, "b");

    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    co_roster_done(b);
    co_roster_close(b);
    talk(a, "host b (127.0.0.1) is gone");
    co_roster *c = host(s, "c");
    test_until(knows_its_clock, c, 20, "c to be in");
    co_roster_done(a);
    CHECK(event(a, CO_ROSTER_OVER).status == 0, "a");
    co_roster_close(c);
    co_roster_close(a);
}

TEST(a_host_may_leave_before_the_start_and_another_comes)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    s.terms.min_hosts = s.terms.max_hosts = 3;
    co_roster *a = host(s, "a"), *b = host(s, "b"), *c;

    talk(b, "2 of 3 hosts are here");
    leave(b, SIGINT, 130);
    CHECK(event(b, CO_ROSTER_OVER).status == 130, "b");
    talk(a, "host b (127.0.0.1) left before the start");
    co_roster_close(b);
    b = host(s, "b");
    c = host(s, "c");
    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    event(c, CO_ROSTER_BEGIN);
    co_roster_close(c);
    co_roster_close(b);
    co_roster_close(a);
}

TEST(the_loss_of_the_rosters_host_ends_the_job_and_says_so)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    co_roster *a = host(s, "a"), *b = host(s, "b");

    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    co_roster_close(a);
    co_roster_event over = event(b, CO_ROSTER_OVER);
    CHECK(over.status == 75 && test_contains(over.text, "the host that keeps the roster ended"), "%s",
          over.text);
    co_roster_close(b);
}

TEST(too_few_hosts_end_the_waiting)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    s.where.join_timeout_s = 0.3;
    co_roster *a = host(s, "a");
    co_roster_event over = event(a, CO_ROSTER_OVER);

    CHECK(over.status == 1 && test_contains(over.text, "only 1 of 2 hosts came"), "%s", over.text);
    co_roster_close(a);
}

/* The next event that is OVER, whatever comes before. */
static co_roster_event over(co_roster *r)
{
    double until = co_now_s() + 20;
    co_roster_event ev = {0};

    while (ev.kind != CO_ROSTER_OVER) {
        CHECK(co_now_s() < until, "not over");
        CHECK_OK(co_roster_turn(r, 100, &ev));
    }
    return ev;
}

TEST(a_host_that_is_asked_to_end_between_two_rounds_ends_the_job)
{
    for (int ms = 0; ms < 12; ms++) {
        scene s = scene_of(2, 2, "127.0.0.1");
        s.terms.max_restarts = 1;
        co_roster *a = host(s, "a"), *b = host(s, "b");
        event(a, CO_ROSTER_BEGIN);
        event(b, CO_ROSTER_BEGIN);
        co_failure f = failure(2, 9, wall_ns());
        co_roster_failed(b, &f);
        event(a, CO_ROSTER_STOP);
        event(b, CO_ROSTER_STOP);
        co_roster_stopped(b);
        co_roster_stopped(a);
        double until = co_now_s() + ms * 1e-3; /* a moment between the rounds, or in the second round */
        while (co_now_s() < until)
            ;
        leave(b, SIGTERM, 75);
        int status_a = over(a).status, status_b = over(b).status;
        CHECK(status_a == 75 && status_b == 75, "after %d ms: %d and %d", ms, status_a, status_b);
        co_roster_close(b);
        co_roster_close(a);
    }
}
