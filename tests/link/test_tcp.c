/* The link tcp between two to four hosts in one process. Most bodies run plain and with TLS. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "harness.h"
#include "link/scene.h"

enum { MB = 1 << 20 };
static struct scene scene; /* large */

static void each_dialect(void (*body)(bool tls))
{
    body(false);
    body(true);
}

/* --- order and waiting ---------------------------------------------------------------------------------- */
static void some_messages(bool tls)
{
    enum { N = 500 };
    static uint8_t from[N][300], to[N][300];

    scene_open(&scene, 2, tls);
    for (int i = 0; i < N; i++) {
        fill(from[i], sizeof from[i], (uint64_t)i);
        put(&scene, 0, 1, tag_of(1, (uint32_t)i), from[i], (size_t)i % 300);
        post(&scene, 1, 0, tag_of(1, (uint32_t)i), to[i], (size_t)i % 300);
    }
    scene_until(&scene, 0, N);
    scene_until(&scene, 1, N);
    for (int i = 0; i < N; i++) {
        CHECK(scene.host[0].done[i].sent && scene.host[0].done[i].tag.chunk == (uint32_t)i, "send %d", i);
        CHECK(!scene.host[1].done[i].sent && scene.host[1].done[i].tag.chunk == (uint32_t)i, "receive %d", i);
        CHECK(scene.host[1].done[i].peer == 0, "peer");
        CHECK(memcmp(from[i], to[i], (size_t)i % 300) == 0, "bytes of %d", i);
    }
    co_link_counts a = co_link_count(scene.host[0].link), b = co_link_count(scene.host[1].link);
    CHECK(a.payload_sent == b.payload_got && a.payload_sent > 0 && a.payload_got == 0, "counts");
    CHECK(a.wire_sent == b.wire_got && a.wire_sent > a.payload_sent, "wire %llu, %llu",
          (unsigned long long)a.wire_sent, (unsigned long long)b.wire_got);
    scene_close(&scene);
}

TEST(messages_over_tcp_come_whole_and_in_order)
{
    each_dialect(some_messages);
}

static void waits(bool tls)
{
    char to[3][8] = {{0}};

    scene_open(&scene, 2, tls);
    put(&scene, 1, 0, tag_of(1, 0), "first", 6);
    put(&scene, 1, 0, tag_of(1, 1), "second", 7);
    put(&scene, 1, 0, tag_of(1, 2), "", 0);
    post(&scene, 0, 1, tag_of(1, 1), to[1], 7);
    scene_until(&scene, 1, 3);
    CHECK(scene_quiet(&scene, 200), "the second overtook the first");
    post(&scene, 0, 1, tag_of(1, 0), to[0], 6);
    scene_until(&scene, 0, 2);
    CHECK(scene.host[0].done[0].tag.chunk == 0 && scene.host[0].done[1].tag.chunk == 1, "order");
    CHECK(strcmp(to[0], "first") == 0 && strcmp(to[1], "second") == 0, "bytes");
    post(&scene, 0, 1, tag_of(1, 2), NULL, 0);
    scene_until(&scene, 0, 3);
    scene_close(&scene);
}

TEST(a_message_over_tcp_waits_until_its_receive_is_posted)
{
    each_dialect(waits);
}

static void large_both_ways(bool tls)
{
    size_t len = 24 * MB + 5;
    uint8_t *a = co_alloc(len), *b = co_alloc(len), *c = co_zalloc(len), *d = co_zalloc(len);

    scene_open(&scene, 2, tls);
    fill(a, len, 1);
    fill(b, len, 2);
    post(&scene, 0, 1, tag_of(1, 0), c, len);
    post(&scene, 1, 0, tag_of(1, 0), d, len);
    put(&scene, 0, 1, tag_of(1, 0), a, len);
    put(&scene, 1, 0, tag_of(1, 0), b, len);
    scene_until(&scene, 0, 2);
    scene_until(&scene, 1, 2);
    CHECK(memcmp(a, d, len) == 0 && memcmp(b, c, len) == 0, "bytes");
    scene_close(&scene);
    co_free(a);
    co_free(b);
    co_free(c);
    co_free(d);
}

TEST(large_messages_cross_each_other_over_tcp)
{
    each_dialect(large_both_ways);
}

/* --- cutting -------------------------------------------------------------------------------------------- */
static void old_views(bool tls)
{
    char to[8] = "", never[8] = "";

    scene_open(&scene, 2, tls);
    post(&scene, 1, 0, tag_of(1, 9), never, 4);
    put(&scene, 0, 1, tag_of(1, 0), "old", 4); /* no receive: it waits, and is cut while it waits */
    put(&scene, 0, 1, tag_of(1, 9), "old", 4);
    scene_until(&scene, 0, 2);
    scene_quiet(&scene, 20);
    co_link_cut(scene.host[1].link, 2);
    post(&scene, 1, 0, tag_of(2, 0), to, 4);
    put(&scene, 0, 1, tag_of(1, 1), "old", 4); /* the sender is not yet cut */
    co_link_cut(scene.host[0].link, 2);
    put(&scene, 0, 1, tag_of(2, 0), "new", 4);
    scene_until(&scene, 1, 1);
    CHECK(strcmp(to, "new") == 0 && !never[0], "bytes");
    CHECK(scene.host[1].n_done == 1 && scene.host[1].done[0].tag.view == 2, "reports");
    scene_close(&scene);
}

TEST(messages_of_cut_views_are_dropped_over_tcp)
{
    each_dialect(old_views);
}

/* Turns until a part of a large message has come, and not all of it. */
static void until_half(const uint8_t *to, size_t len)
{
    double until = co_now_s() + 20;

    while (!to[2 * MB] && co_now_s() < until)
        scene_turn(&scene);
    CHECK(to[2 * MB] && !to[len - 1], "a part of the message is there");
}

static void cut_receiver(bool tls)
{
    size_t len = 32 * MB;
    uint8_t *from = co_alloc(len), *to = co_zalloc(len), *copy = co_alloc(len);
    char small[8] = "";

    memset(from, 7, len);
    scene_open(&scene, 2, tls);
    post(&scene, 1, 0, tag_of(1, 0), to, len);
    put(&scene, 0, 1, tag_of(1, 0), from, len);
    until_half(to, len);
    co_link_cut(scene.host[1].link, 2);
    memcpy(copy, to, len);
    put(&scene, 0, 1, tag_of(2, 0), "after", 6);
    post(&scene, 1, 0, tag_of(2, 0), small, 6);
    scene_until(&scene, 1, 1);
    CHECK(memcmp(copy, to, len) == 0, "bytes landed after the cut");
    CHECK(scene.host[1].n_done == 1 && strcmp(small, "after") == 0, "the connection works on");
    CHECK(scene.host[1].n_lost == 0 && scene.host[0].n_lost == 0, "lost");
    scene_close(&scene);
    co_free(from);
    co_free(to);
    co_free(copy);
}

TEST(nothing_lands_over_tcp_after_a_cut_in_the_middle_of_a_message)
{
    each_dialect(cut_receiver);
}

static void cut_sender(bool tls)
{
    size_t len = 32 * MB;
    uint8_t *from = co_alloc(len), *to = co_zalloc(len), *copy = co_alloc(len);
    char small[8] = "";

    fill(from, len, 3);
    from[2 * MB] = from[len - 1] = 9;
    memcpy(copy, from, len);
    scene_open(&scene, 2, tls);
    post(&scene, 1, 0, tag_of(1, 0), to, len);
    put(&scene, 0, 1, tag_of(1, 0), from, len);
    put(&scene, 0, 1, tag_of(1, 1), from, len);
    until_half(to, len);
    co_link_cut(scene.host[0].link, 2);
    memset(from, 0, len); /* the caller's again */
    put(&scene, 0, 1, tag_of(2, 0), "after", 6);
    post(&scene, 1, 0, tag_of(2, 0), small, 6);
    scene_until(&scene, 1, 2);
    CHECK(memcmp(copy, to, len) == 0, "the half-sent message was finished with other bytes");
    CHECK(scene.host[1].done[0].tag.view == 1 && strcmp(small, "after") == 0, "order");
    CHECK(scene.host[0].n_done == 1 && scene.host[0].done[0].tag.view == 2,
          "the sender reports the new one only");
    scene_close(&scene);
    co_free(from);
    co_free(to);
    co_free(copy);
}

TEST(a_half_sent_tcp_message_is_finished_with_its_own_bytes_after_a_cut)
{
    each_dialect(cut_sender);
}

/* --- who is there --------------------------------------------------------------------------------------- */
static void exchange_small(int a, int b, uint32_t view)
{
    char to[2][8] = {"", ""};
    int n[2] = {scene.host[a].n_done, scene.host[b].n_done};

    post(&scene, a, b, tag_of(view, 0), to[0], 6);
    post(&scene, b, a, tag_of(view, 0), to[1], 6);
    put(&scene, a, b, tag_of(view, 0), "hello", 6);
    put(&scene, b, a, tag_of(view, 0), "world", 6);
    scene_until(&scene, a, n[0] + 2);
    scene_until(&scene, b, n[1] + 2);
    CHECK(strcmp(to[0], "world") == 0 && strcmp(to[1], "hello") == 0, "bytes");
}

static void kept(bool tls)
{
    scene_open(&scene, 3, tls);
    exchange_small(0, 1, 1);
    exchange_small(1, 2, 1);
    uint64_t wire = co_link_count(scene.host[0].link).wire_sent;
    for (int h = 0; h < 2; h++) {
        co_link_cut(scene.host[h].link, 2);
        scene_meet(&scene, h, 3); /* host 2 is out */
    }
    exchange_small(0, 1, 2);
    CHECK(co_link_count(scene.host[0].link).wire_sent - wire < 100, "a new handshake");
    CHECK_FAILS(co_link_send(scene.host[0].link, 2, &(co_tag){2}, "x", 1), CO_EPEER, "not among the hosts");
    scene_until_lost(&scene, 2, 0, "closed the connection");
    scene_until_lost(&scene, 2, 1, "closed the connection");
    for (int h = 0; h < 3; h++) {
        co_link_cut(scene.host[h].link, 3);
        scene_meet(&scene, h, 7);
    }
    exchange_small(0, 2, 3);
    exchange_small(2, 1, 3);
    CHECK(scene.host[0].n_lost == 0 && scene.host[1].n_lost == 0 && scene.host[2].n_lost == 2, "losses");
    scene_close(&scene);
}

TEST(a_new_view_keeps_tcp_connections_and_closes_those_of_others)
{
    each_dialect(kept);
}

static void reborn(bool tls)
{
    for (int who = 0; who < 2; who++) {
        scene_open(&scene, 2, tls);
        exchange_small(0, 1, 1);
        CHECK_OK(scene_host(&scene, who, 900, scene.tls)); /* its earlier life ends */
        scene_meet(&scene, who, 3);                        /* it comes before the other one knows */
        scene_until_lost(&scene, 1 - who, who, "");
        scene_quiet(&scene, 50);
        co_link_cut(scene.host[1 - who].link, 2);
        scene_meet(&scene, 1 - who, 3);
        exchange_small(0, 1, 2);
        CHECK(scene.host[who].n_lost == 0 || who == 0, "the new life lost something: %s",
              scene.host[who].why[1]);
        scene_close(&scene);
    }
}

TEST(a_host_that_comes_back_is_another_one_over_tcp)
{
    each_dialect(reborn);
}

/* --- losses --------------------------------------------------------------------------------------------- */
/* Breaks the connection between hosts 0 and 1 in the middle of a message. */
static void broken(bool tls)
{
    size_t len = 32 * MB;
    uint8_t *from = co_zalloc(len), *to = co_zalloc(len);

    memset(from, 1, len);
    scene_open(&scene, 2, tls);
    post(&scene, 1, 0, tag_of(1, 0), to, len);
    put(&scene, 0, 1, tag_of(1, 0), from, len);
    until_half(to, len);
    for (int fd = 3; fd < 64; fd++) { /* the connected sockets of this process */
        co_addr peer = co_net_peer(fd);
        if (peer.sa.sa_family == AF_INET)
            shutdown(fd, SHUT_RDWR);
    }
    scene_until_lost(&scene, 0, 1, "host 1 (127.0.0.1:");
    scene_until_lost(&scene, 1, 0, "host 0 (127.0.0.1:");
    put(&scene, 0, 1, tag_of(1, 1), from, len); /* given up */
    CHECK(scene_quiet(&scene, 200), "reported again, or done");
    for (int h = 0; h < 2; h++) {
        co_link_cut(scene.host[h].link, 2);
        scene_meet(&scene, h, 3);
    }
    exchange_small(0, 1, 2);
    CHECK(scene.host[0].n_lost == 1 && scene.host[1].n_lost == 1, "each loss is reported once");
    scene_close(&scene);
    co_free(from);
    co_free(to);
}

TEST(a_broken_tcp_connection_is_reported_once_by_both_and_made_again_after_meet)
{
    each_dialect(broken);
}

TEST(a_host_that_ends_while_its_tcp_message_waits_is_reported)
{
    scene_open(&scene, 2, true);
    exchange_small(0, 1, 1);
    put(&scene, 1, 0, tag_of(2, 0), "early", 6);
    scene_quiet(&scene, 50);
    co_link_close(scene.host[1].link);
    scene.host[1].link = NULL;
    scene_until_lost(&scene, 0, 1, "closed the connection");
    scene_close(&scene);
}
