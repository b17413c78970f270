/* Rosters of hosts that are network namespaces: addresses, pulled cables, dropped packets, and hundreds of
 * strangers that connect. */
#include "roster/rosters.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/ns.h"

static co_roster *host_at(const ns_lan *lan, int i, scene s, const char *name)
{
    ns_enter(lan, i);
    co_roster *r = host(s, name);
    ns_leave(lan);
    return r;
}

static scene lan_scene(int min, int max)
{
    scene s = scene_of(min, max, "10.77.0.1");
    co_token t = {{7, 7}};

    co_token_text(s.where.token, &t);
    return s;
}

static void meet(int n)
{
    ns_lan lan = ns_open(n);
    scene s = lan_scene(n, n);
    co_roster *r[NS_MOST];
    double before = co_now_s();

    for (int i = n; i-- > 0;) /* the host that serves starts last */
        r[i] = host_at(&lan, i, s, "h");
    for (int i = 0; i < n; i++) {
        co_round o = event(r[i], CO_ROSTER_BEGIN).round;
        CHECK(o.hosts == n && strcmp(o.master_addr, "10.77.0.1") == 0, "%d hosts, master %s", o.hosts,
              o.master_addr);
        CHECK(i != 0 || o.my_host == 0, "who serves came last but is seated first");
    }
    test_note("%d hosts met in %.3f s", n, co_now_s() - before);
    for (int i = 0; i < n; i++)
        co_roster_done(r[i]);
    for (int i = n; i-- > 0;) {
        CHECK(event(r[i], CO_ROSTER_OVER).status == 0, "host %d", i);
        co_roster_close(r[i]);
    }
}

TEST(two_hosts_meet_across_a_network)
{
    meet(2);
}

TEST(eight_hosts_meet_across_a_network)
{
    meet(8);
}

TEST(the_master_address_is_that_of_the_first_host_wherever_the_roster_is)
{
    ns_lan lan = ns_open(3);
    scene s = lan_scene(3, 3), o = s;
    co_roster *r[3];

    s.where.role = CO_MEET_SERVE;
    s.terms.host_rank = 1;
    r[0] = host_at(&lan, 0, s, "a");
    o.terms.host_rank = 2;
    r[1] = host_at(&lan, 1, o, "b");
    o.terms.host_rank = 0;
    o.where.role = CO_MEET_JOIN;
    r[2] = host_at(&lan, 2, o, "c");
    for (int i = 0; i < 3; i++)
        CHECK(strcmp(event(r[i], CO_ROSTER_BEGIN).round.master_addr, "10.77.0.3") == 0, "seen by %d", i);
    for (int i = 3; i-- > 0;)
        co_roster_close(r[i]);
}

TEST(a_host_whose_cable_is_pulled_is_lost_within_seconds_and_both_sides_say_so)
{
    ns_lan lan = ns_open(3);
    scene s = lan_scene(2, 3);
    co_roster *r[3];

    s.terms.max_restarts = 1;
    s.where.last_call_s = 10;
    s.where.lost_after_s = 1.5;
    for (int i = 0; i < 3; i++)
        r[i] = host_at(&lan, i, s, i == 2 ? "c" : "ab");
    for (int i = 0; i < 3; i++)
        event(r[i], CO_ROSTER_BEGIN);
    double before = co_now_s();
    ns_cable(&lan, 2, false);
    for (int i = 0; i < 2; i++) {
        co_roster_event ev = event(r[i], CO_ROSTER_STOP);
        CHECK(ev.has_cause && ev.cause.rank == -1 && strcmp(ev.cause.host, "c") == 0 &&
                  test_contains(ev.cause.how, "no sign of life for"),
              "%s: %s", ev.cause.host, ev.cause.how);
        co_roster_stopped(r[i]);
    }
    double took = co_now_s() - before;
    test_note("seen after %.1f s", took);
    CHECK(took > 1 && took < 8, "seen after %g s", took);
    co_roster_event over = event(r[2], CO_ROSTER_OVER);
    CHECK(over.status == 75 && test_contains(over.text, "which keeps the roster, was lost: no sign of life"),
          "%s", over.text);
    for (int i = 0; i < 2; i++)
        CHECK(event(r[i], CO_ROSTER_BEGIN).round.hosts == 2, "the others go on");
    for (int i = 3; i-- > 0;)
        co_roster_close(r[i]);
}

TEST(packets_that_are_dropped_and_networks_that_are_not_there_are_told_apart)
{
    ns_lan lan = ns_open(2);
    scene s = lan_scene(2, 2);
    co_roster *r;

    s.where.join_timeout_s = 1;
    s.where.role = CO_MEET_JOIN;
    snprintf(s.where.endpoint, sizeof s.where.endpoint, "192.0.2.1:29400"); /* no default route */
    r = host_at(&lan, 1, s, "b");
    broken(r, CO_EFAIL, "step route: no route to 192.0.2.1");
    co_roster_close(r);
    ns_sh(lan.host[1],
          "ip route add 192.0.2.1 via 10.77.0.1"); /* that host forwards nothing, so packets are dropped */
    ns_sh(lan.host[0], "echo 0 > /proc/sys/net/ipv4/ip_forward");
    r = host_at(&lan, 1, s, "b");
    broken(r, CO_EFAIL, "step connect: 192.0.2.1:29400 does not answer (tried from 10.77.0.2)");
    CHECK(test_contains(co_errmsg(), "A firewall drops it"), "%s", co_errmsg());
    co_roster_close(r);
}

/* A thread that connects as four kinds of strangers until `stop` is set. */
struct siege {
    const ns_lan *lan;
    co_addr at;
    uint8_t hello[512]; /* first bytes of a real client, to be replayed */
    size_t hello_len;
    atomic_bool stop;
    atomic_int came;
};

static void *besiege(void *arg)
{
    struct siege *s = arg;
    int open_fd[100] = {0}, k = 0;
    uint8_t noise[900];
    uint64_t rng = 3;

    ns_enter(s->lan, 1);
    for (int i = 0; !atomic_load(&s->stop); i++) {
        co_patience p = co_patience_s(2);
        int fd = -1;
        if (co_net_connect(&fd, &s->at, &p))
            continue;
        for (size_t j = 0; j < sizeof noise; j++)
            noise[j] = (uint8_t)test_u32(&rng);
        ssize_t n = i % 4 == 0   ? write(fd, noise, sizeof noise)
                    : i % 4 == 1 ? write(fd, noise, 1)
                    : i % 4 == 2 ? write(fd, s->hello, s->hello_len)
                                 : 0; /* the fourth kind sends nothing */
        (void)n;
        if (open_fd[k])
            close(open_fd[k]);
        open_fd[k] = fd;
        k = (k + 1) % 100;
        atomic_fetch_add(&s->came, 1);
    }
    return NULL;
}

/* Records the first bytes that a real client sends. */
static void record_hello(struct siege *s, const co_token *t)
{
    co_tls *tls;
    co_conn *c;
    int fd[2];

    CHECK_OK(co_tls_new(&tls, t, "run7"));
    CHECK_OK(co_net_pair(fd));
    CHECK_OK(co_conn_new(&c, fd[0], tls, CO_CONN_CLIENT));
    CHECK_OK(co_conn_work(c));
    ssize_t n = read(fd[1], s->hello, sizeof s->hello);
    CHECK(n > 0, "no hello");
    s->hello_len = (size_t)n;
    co_conn_free(c);
    close(fd[1]);
    co_tls_free(tls);
}

TEST(five_hundred_strangers_do_not_harm_a_job)
{
    ns_lan lan = ns_open(3);
    scene s = lan_scene(2, 3);
    struct siege siege = {.lan = &lan};
    co_endpoint e;
    co_patience p = co_patience_s(5);
    co_token t;
    pthread_t thread;
    int n;

    s.where.lost_after_s = 1;
    CHECK_OK(co_endpoint_parse(&e, s.where.endpoint));
    CHECK_OK(co_net_resolve(&siege.at, 1, &n, e.host, e.port, &p));
    CHECK_OK(co_token_parse(&t, s.where.token));
    record_hello(&siege, &t);
    co_roster *a = host_at(&lan, 0, s, "a"), *c;
    CHECK(co_thread_start(&thread, besiege, &siege) == 0, "no thread");
    while (atomic_load(&siege.came) < 100)
        co_roster_turn(a, 1, &(co_roster_event){0});
    c = host_at(&lan, 2, s, "c"); /* joins while the strangers connect */
    event(c, CO_ROSTER_BEGIN);
    event(a, CO_ROSTER_BEGIN);
    double before = co_now_s();
    /* longer than a host may be silent */
    while (atomic_load(&siege.came) < 600 || co_now_s() - before < 1.5) {
        co_roster_event ev;
        CHECK_OK(co_roster_turn(a, 20, &ev));
        CHECK(ev.kind == CO_ROSTER_NOTHING || ev.kind == CO_ROSTER_TALK, "event %d: %s", ev.kind, ev.text);
        CHECK(co_now_s() - before < 40, "only %d came", atomic_load(&siege.came));
    }
    co_roster_done(a);
    co_roster_done(c);
    CHECK(event(a, CO_ROSTER_OVER).status == 0 && event(c, CO_ROSTER_OVER).status == 0, "disturbed");
    atomic_store(&siege.stop, true);
    pthread_join(thread, NULL);
    test_note("%d strangers came", atomic_load(&siege.came));
    co_roster_close(c);
    co_roster_close(a);
}
