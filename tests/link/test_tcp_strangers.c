/* Who must not get in over the link tcp, and what a member may not send: tokens, dialects, garbage,
 * hostile heads. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "harness.h"
#include "link/scene.h"
#include "link/tcp_int.h"

enum { MB = 1 << 20 };
static struct scene scene;

static void small_message(uint32_t view)
{
    char to[8] = "";
    int n = scene.host[1].n_done;

    post(&scene, 1, 0, tag_of(view, 0), to, 6);
    put(&scene, 0, 1, tag_of(view, 0), "hello", 6);
    scene_until(&scene, 1, n + 1);
    CHECK(strcmp(to, "hello") == 0, "bytes");
}

/* --- set-ups that do not fit ---------------------------------------------------------------------------- */
/* Host 0 is opened anew with `tls` and says `words` about host 1. */
static void refused(bool server_tls, co_tls *client, const char *words)
{
    double before = co_now_s();

    scene_open(&scene, 2, server_tls);
    CHECK_OK(scene_host(&scene, 0, 100, client));
    scene_meet(&scene, 0, 3);
    scene_until_lost(&scene, 0, 1, words);
    test_note("%s", scene.host[0].why[1]);
    CHECK(co_now_s() - before < 5, "it took %g s", co_now_s() - before);
    CHECK(scene.host[0].n_done == 0 && scene.host[1].n_done == 0, "something was moved");
    scene_close(&scene);
}

TEST(a_wrong_token_is_named_over_tcp)
{
    co_token token = {{9, 9}};
    co_tls *tls;

    CHECK_OK(co_tls_new(&tls, &token, "run"));
    refused(true, tls, "TLS: the other side has another token");
    co_tls_free(tls);
}

TEST(plain_against_tls_is_named_over_tcp)
{
    co_token token = {{3, 1, 4}};
    co_tls *tls;

    CHECK_OK(co_tls_new(&tls, &token, "run"));
    refused(true, NULL, "the other side uses TLS");
    refused(false, tls, "the other side does not use TLS");
    co_tls_free(tls);
}

TEST(a_host_of_another_run_is_named_over_tcp)
{
    co_link_spec spec = {.me = 0, .birth = 100, .run = 78, .listener = -1};

    scene_open(&scene, 2, false);
    co_link_close(scene.host[0].link);
    CHECK_OK(co_link_tcp(&scene.host[0].link, &spec));
    scene_meet(&scene, 0, 3);
    scene_until_lost(&scene, 0, 1, "greeting: it belongs to another run");
    scene_close(&scene);
}

/* The deadline of a connection, for tests that wait for it. */
static void shorten(int h)
{
    struct tcp *tcp = (struct tcp *)(void *)((char *)scene.host[h].link - offsetof(struct tcp, link));

    CHECK(tcp->meet_ms == 10000, "the deadline is 10 s");
    tcp->meet_ms = 1000;
}

TEST(tcp_says_which_step_failed_when_a_host_cannot_be_reached)
{
    int dead;
    double before = co_now_s();

    scene_open(&scene, 3, true);
    /* Nobody listens at host 1's port; host 2 listens, and nobody answers. */
    co_link_close(scene.host[1].link);
    scene.host[1].link = NULL;
    close(scene.host[1].listener);
    co_link_close(scene.host[2].link);
    scene.host[2].link = NULL;
    CHECK_OK(co_net_listen(&dead, "127.0.0.1", 0)); /* so that it stays closed */
    scene.host[1].listener = dead;
    shorten(0);
    scene_meet(&scene, 0, 7);
    scene_until_lost(&scene, 0, 1, "not connected within 1 s; connecting: ");
    scene_until_lost(&scene, 0, 2, "not connected within 1 s; TLS: no answer");
    CHECK(test_contains(scene.host[0].why[1], "nothing listens there"), "%s", scene.host[0].why[1]);
    test_note("%s; %s", scene.host[0].why[1], scene.host[0].why[2]);
    CHECK(co_now_s() - before < 4, "it took %g s", co_now_s() - before);
    scene_close(&scene);
}

TEST(tcp_says_that_a_host_did_not_connect)
{
    scene_open(&scene, 2, true);
    co_link_close(scene.host[0].link);
    scene.host[0].link = NULL;
    scene.host[0].me.birth = 999; /* its next life, which never comes */
    shorten(1);
    scene_meet(&scene, 1, 3);
    scene_until_lost(&scene, 1, 0, "it did not connect to this host within 1 s");
    scene_close(&scene);
}

static co_err open_and_close(void *ctx)
{
    co_link_spec spec = {.me = 1, .birth = 5, .run = 77, .listener = scene.host[1].listener, .tls = scene.tls};
    co_link_peer peers[2] = {scene.host[0].me, scene.host[1].me};
    co_link *link = NULL;
    co_tag tag = tag_of(1, 0);
    char to[4];

    (void)ctx;
    peers[1].birth = 5;
    co_err err = co_link_tcp(&link, &spec);
    if (!err)
        err = co_link_meet(link, peers, 2);
    if (!err)
        err = co_link_post(link, 0, &tag, to, 4);
    if (!err)
        err = co_link_send(link, 0, &tag, "abc", 4);
    co_link_close(link);
    return err;
}

TEST(a_tcp_link_without_memory_fails_and_leaks_nothing)
{
    scene_open(&scene, 2, true);
    co_link_close(scene.host[1].link);
    scene.host[1].link = NULL;
    test_each_alloc_fails(open_and_close, NULL);
    scene_close(&scene);
}

/* --- a hostile member ----------------------------------------------------------------------------------- */
/* Plays host 0 with plain bytes: greets host 1, then sends `bytes`. */
static int play_host_0(uint64_t birth)
{
    co_patience patience = co_patience_s(5);
    uint8_t bytes[CO_STREAM_HELLO];
    hello h = {HELLO_VERSION, 77, 0, 1, birth, scene.host[1].me.birth};
    co_addr to = co_net_local(scene.host[1].listener);
    int fd;

    CHECK_OK(co_net_connect(&fd, &to, &patience));
    hello_write(bytes, &h);
    CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes, "write");
    return fd;
}

static void until_answered(int fd)
{
    uint8_t answer[CO_STREAM_HELLO];
    size_t got = 0;
    double until = co_now_s() + 10;

    while (got < sizeof answer && co_now_s() < until) {
        scene_turn(&scene);
        ssize_t n = read(fd, answer + got, sizeof answer - got);
        got += n > 0 ? (size_t)n : 0;
    }
    CHECK(got == sizeof answer, "no answer");
}

static void hostile(const uint8_t *head, const char *words)
{
    static char to[64];

    scene_open(&scene, 2, false);
    co_link_close(scene.host[0].link);
    scene.host[0].link = NULL;
    scene.host[0].me.birth = 555;
    scene_meet(&scene, 1, 3);
    int fd = play_host_0(555);
    until_answered(fd);
    post(&scene, 1, 0, tag_of(1, 0), to, 6);
    CHECK(write(fd, head, LINK_HEAD) == LINK_HEAD, "write");
    scene_until_lost(&scene, 1, 0, words);
    CHECK(scene.host[1].n_done == 0 && !to[0], "it landed");
    close(fd);
    scene_close(&scene);
}

TEST(hostile_heads_over_tcp_end_the_connection)
{
    uint8_t head[LINK_HEAD];
    co_tag tag = tag_of(1, 0);

    head_write(head, &tag, 7);
    hostile(head, "sent what does not fit: 7 bytes where 6 are expected");
    head_write(head, &tag, 0xffffffff);
    hostile(head, "sent what does not fit: 4294967295 bytes where 6 are expected");
    tag.kind = CO_MSG_FED + 1;
    head_write(head, &tag, 6);
    hostile(head, "sent what does not fit: a message of kind 7");
    tag.kind = 0;
    head_write(head, &tag, 6);
    head[30] ^= 1;
    hostile(head, "not the head of a message");
    memset(head, 'x', sizeof head);
    hostile(head, "not the head of a message");
}

TEST(wrong_greetings_over_tcp_are_refused)
{
    scene_open(&scene, 2, false);
    small_message(1);
    const hello bad[] = {{HELLO_VERSION, 78, 0, 1, 100, 101}, /* run */
                         {HELLO_VERSION, 77, 0, 1, 100, 999}, /* birth of the receiver */
                         {HELLO_VERSION, 77, 0, 2, 100, 101}, /* place of the receiver */
                         {HELLO_VERSION, 77, 1, 1, 100, 101}, /* only lower places connect */
                         {HELLO_VERSION, 77, 400, 1, 100, 101}, {HELLO_VERSION + 1, 77, 0, 1, 100, 101}};
    for (size_t i = 0; i <= CO_COUNT(bad); i++) {
        co_patience patience = co_patience_s(5);
        co_addr to = co_net_local(scene.host[1].listener);
        uint8_t bytes[CO_STREAM_HELLO] = "COHBgarbage";
        double until = co_now_s() + 10;
        int fd;
        if (i < CO_COUNT(bad))
            hello_write(bytes, &bad[i]);
        CHECK_OK(co_net_connect(&fd, &to, &patience));
        CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes, "write");
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n = 1;
        size_t sum = 0;
        while (n != 0 && co_now_s() < until) {
            scene_turn(&scene);
            n = poll(&p, 1, 0) > 0 ? read(fd, bytes, sizeof bytes) : 1;
            sum += n > 0 && p.revents ? (size_t)n : 0;
        }
        CHECK(n == 0, "greeting %zu is still open", i);
        CHECK(sum <= CO_STREAM_HELLO, "it was sent %zu bytes", sum);
        close(fd);
    }
    small_message(2);
    CHECK(scene.host[1].n_lost == 0, "%s", scene.host[1].why[0]);
    scene_close(&scene);
}

/* --- a flood -------------------------------------------------------------------------------------------- */
static int stranger(const struct scene *at, int i, uint64_t *rng)
{
    co_addr to = co_net_local(at->host[1].listener);
    uint8_t noise[1500];
    int fd;

    if (co_net_connect_start(&fd, &to))
        return -1;
    for (size_t k = 0; k < sizeof noise; k++)
        noise[k] = (uint8_t)test_u32(rng);
    if (i % 4 == 1)
        (void)!write(fd, noise, sizeof noise);
    else if (i % 4 == 2)
        (void)!write(fd, "\x16\x03\x01", 3); /* begins a handshake, then falls silent */
    else if (i % 4 == 3) {
        noise[0] = 0x16, noise[1] = 3, noise[2] = 1, noise[3] = 0x40, noise[4] = 0; /* a record of 16 KiB */
        (void)!write(fd, noise, sizeof noise);
    }
    return fd;
}

TEST(two_thousand_strangers_do_not_hold_up_100_MB_over_tcp)
{
    enum { STRANGERS = 2000, AT_ONCE = 400, PIECES = 50 };
    size_t len = 2 * MB;
    uint8_t *from = co_alloc(len), *to = co_zalloc(len);
    static int fd[AT_ONCE];
    uint64_t rng = 3;
    double before = co_now_s();

    memset(fd, -1, sizeof fd);
    scene_open(&scene, 2, true);
    fill(from, len, 8);
    small_message(1);
    int n = scene.host[1].n_done, came = 0;
    for (int i = 0; i < PIECES; i++) {
        post(&scene, 1, 0, tag_of(2, (uint32_t)i), to, len);
        put(&scene, 0, 1, tag_of(2, (uint32_t)i), from, len);
    }
    for (; came < STRANGERS || scene.host[1].n_done < n + PIECES; came++) {
        int *slot = &fd[came % AT_ONCE];
        CHECK(co_now_s() - before < 40, "%d strangers, %d pieces", came, scene.host[1].n_done - n);
        if (came < STRANGERS) {
            if (*slot >= 0)
                close(*slot);
            *slot = stranger(&scene, came, &rng);
        }
        scene_turn(&scene);
    }
    test_note("%.2f s", co_now_s() - before);
    CHECK(memcmp(from, to, len) == 0, "bytes");
    CHECK(scene.host[0].n_lost + scene.host[1].n_lost == 0, "lost: %s%s", scene.host[0].why[1],
          scene.host[1].why[0]);
    for (int i = 0; i < AT_ONCE; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    scene_close(&scene);
    co_free(from);
    co_free(to);
}

TEST(a_member_gets_in_over_tcp_while_strangers_come)
{
    static int fd[300];
    uint64_t rng = 4;
    double until = co_now_s() + 20;

    memset(fd, -1, sizeof fd);
    scene_open(&scene, 2, true);
    char to[8] = "";
    post(&scene, 1, 0, tag_of(1, 0), to, 6);
    put(&scene, 0, 1, tag_of(1, 0), "hello", 6);
    for (int i = 0; scene.host[1].n_done == 0 || i < 300; i++) {
        CHECK(co_now_s() < until, "not let in");
        if (fd[i % 300] >= 0)
            close(fd[i % 300]);
        fd[i % 300] = stranger(&scene, i, &rng);
        scene_turn(&scene);
    }
    CHECK(scene.host[0].n_lost + scene.host[1].n_lost == 0, "lost");
    for (int i = 0; i < 300; i++)
        close(fd[i]);
    scene_close(&scene);
}
