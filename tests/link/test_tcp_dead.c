/* A wire that dies without a word, between hosts that are network namespaces; and a host that lives and does
 * not read.
 */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "harness.h"
#include "link/scene.h"
#include "link/tcp_int.h"
#include "net/ns.h"

enum { MB = 1 << 20, DEAD_MS = 2000 };
static struct scene scene;
static ns_lan lan;

/* Sockets belong to the namespace in which they are made. */
static void turn_inside(int h)
{
    char why[400];
    int peer;

    ns_enter(&lan, h);
    CHECK_OK(co_link_turn(scene.host[h].link, 0));
    ns_leave(&lan);
    while (co_link_lost(scene.host[h].link, &peer, why, sizeof why)) {
        scene.host[h].n_lost++;
        snprintf(scene.host[h].why[peer], sizeof scene.host[h].why[peer], "%s", why);
    }
}

static void open_hosts(void)
{
    co_token token = {{7}};

    lan = ns_open(2);
    memset(&scene, 0, sizeof scene);
    scene.hosts = 2;
    CHECK_OK(co_tls_new(&scene.tls, &token, "run"));
    for (int h = 0; h < 2; h++) {
        struct host *host = &scene.host[h];
        char address[32];
        snprintf(address, sizeof address, "10.77.0.%d", h + 1);
        ns_enter(&lan, h);
        CHECK_OK(co_net_listen(&host->listener, address, 0));
        ns_leave(&lan);
        co_addr at = co_net_local(host->listener);
        host->me = (co_link_peer){.id = h, .port = co_addr_port(&at)};
        snprintf(host->me.host, sizeof host->me.host, "%s", address);
        CHECK_OK(scene_host(&scene, h, 100 + (uint64_t)h, scene.tls));
        struct tcp *tcp = (struct tcp *)(void *)((char *)host->link - offsetof(struct tcp, link));
        tcp->dead_ms = DEAD_MS;
    }
    for (int h = 0; h < 2; h++)
        scene_meet(&scene, h, 3);
}

static void turns_for(double seconds)
{
    for (double until = co_now_s() + seconds; co_now_s() < until;)
        for (int h = 0; h < 2; h++)
            turn_inside(h);
}

static void say_hello(void)
{
    char to[8] = "";
    double until = co_now_s() + 10;

    post(&scene, 1, 0, tag_of(1, 0), to, 6);
    put(&scene, 0, 1, tag_of(1, 0), "hello", 6);
    while (scene.host[1].n_done == 0 && co_now_s() < until)
        turns_for(0.001);
    CHECK(strcmp(to, "hello") == 0, "the hosts are not connected: %s%s", scene.host[0].why[1],
          scene.host[1].why[0]);
}

/* Both notice within `seconds` that the cable is out. */
static void both_notice(double seconds)
{
    double before = co_now_s();

    ns_cable(&lan, 1, false);
    while ((!scene.host[0].n_lost || !scene.host[1].n_lost) && co_now_s() < before + seconds)
        turns_for(0.01);
    test_note("%.1f s: %s; %s", co_now_s() - before, scene.host[0].why[1], scene.host[1].why[0]);
    CHECK(scene.host[0].n_lost == 1 && scene.host[1].n_lost == 1, "losses: %d, %d", scene.host[0].n_lost,
          scene.host[1].n_lost);
    scene_close(&scene);
}

TEST(a_dead_wire_is_noticed_over_tcp_without_traffic)
{
    open_hosts();
    say_hello();
    both_notice(8);
}

TEST(a_dead_wire_is_noticed_over_tcp_in_the_middle_of_a_message)
{
    size_t len = 64 * MB;
    uint8_t *from = co_zalloc(len), *to = co_zalloc(len);

    memset(from, 1, len);
    open_hosts();
    say_hello();
    post(&scene, 1, 0, tag_of(1, 1), to, len);
    put(&scene, 0, 1, tag_of(1, 1), from, len);
    for (int i = 0; !to[MB] && i < 1000000; i++)
        for (int h = 0; h < 2; h++)
            turn_inside(h);
    CHECK(to[MB] && !to[len - 1], "in the middle");
    both_notice(12);
    CHECK(test_contains(scene.host[0].why[1], "no answer for 2 s"), "%s", scene.host[0].why[1]);
    co_free(from);
    co_free(to);
}

TEST_LONG(a_host_that_does_not_read_is_not_lost_over_tcp_until_its_wire_is_dead)
{
    size_t len = 64 * MB;
    uint8_t *from = co_zalloc(len);

    open_hosts();
    say_hello();
    put(&scene, 0, 1, tag_of(1, 1), from, len); /* no receive is posted */
    turns_for(3 * DEAD_MS / 1000.0);
    CHECK(scene.host[0].n_lost + scene.host[1].n_lost == 0, "lost: %s%s", scene.host[0].why[1],
          scene.host[1].why[0]);
    both_notice(40);
    CHECK(test_contains(scene.host[0].why[1], "no answer for 2 s"), "%s", scene.host[0].why[1]);
    co_free(from);
}
