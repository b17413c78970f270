/* The gate under attack: a client with the token gets in while hundreds without it come and go. */
#include "net/net.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

struct scene {
    co_tls *tls;
    co_gate *gate;
    co_addr at;
};

static struct scene scene_open(void)
{
    co_token t = {{9}};
    struct scene s;
    int fd;

    CHECK_OK(co_tls_new(&s.tls, &t, "run"));
    CHECK_OK(co_net_listen(&fd, "127.0.0.1", 0));
    s.at = co_net_local(fd);
    CHECK_OK(co_gate_open(&s.gate, fd, s.tls));
    return s;
}

static void scene_close(struct scene *s)
{
    co_gate_close(s->gate);
    co_tls_free(s->tls);
}

static int dial(const struct scene *s)
{
    co_patience p = co_patience_s(10);
    int fd;

    CHECK_OK(co_net_connect(&fd, &s->at, &p));
    return fd;
}

/* Runs the gate and one honest client in turn until the client is in. */
static void honest_gets_in(struct scene *s)
{
    co_conn *c, *in = NULL;
    double until = co_now_s() + 20;

    CHECK_OK(co_conn_new(&c, dial(s), s->tls, CO_CONN_CLIENT));
    while (!in || !co_conn_known(c)) {
        CHECK(co_now_s() < until, "not let in");
        if (co_conn_work(c)) { /* the flood displaced it: it reconnects, as a host does */
            co_conn_free(c);
            CHECK_OK(co_conn_new(&c, dial(s), s->tls, CO_CONN_CLIENT));
        }
        co_conn *next = co_gate_turn(s->gate);
        if (next) {
            co_conn_free(in);
            in = next;
        }
    }
    co_conn_free(c);
    co_conn_free(in);
}

TEST(five_hundred_strangers_neither_get_in_nor_keep_others_out)
{
    struct scene s = scene_open();
    uint8_t noise[700];
    uint64_t rng = 5;
    int fd[500];
    double before = co_now_s();

    for (int i = 0; i < 500; i++) {
        fd[i] = dial(&s);
        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = (uint8_t)test_u32(&rng);
        if (i % 3 == 1)
            CHECK(write(fd[i], noise, sizeof noise) > 0, "write"); /* random bytes */
        else if (i % 3 == 2)
            CHECK(write(fd[i], "\x16\x03\x01", 3) == 3, "write"); /* begins a handshake, then falls silent */
        co_gate_turn(s.gate);
        if (i % 50 == 49)
            honest_gets_in(&s);
    }
    co_gate_counts n = co_gate_count(s.gate);
    test_note("%llu came, %llu were let in, %llu sent away, %.3f s", (unsigned long long)n.accepted,
              (unsigned long long)n.let_in, (unsigned long long)n.sent_away, co_now_s() - before);
    CHECK(n.let_in == 10, "%llu were let in", (unsigned long long)n.let_in);
    CHECK(n.accepted - n.let_in - n.sent_away <= CO_STRANGERS, "too many strangers are kept");
    for (int i = 0; i < 500; i++)
        close(fd[i]);
    scene_close(&s);
}

TEST(a_silent_stranger_is_closed_after_two_seconds)
{
    struct scene s = scene_open();
    int fd = dial(&s);
    double before = co_now_s(), took = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (poll(&p, 1, 0) == 0) {
        struct pollfd wait = {.fd = co_gate_fd(s.gate), .events = POLLIN};
        CHECK(co_now_s() - before < 10, "still open");
        poll(&wait, 1, 50);
        co_gate_turn(s.gate);
    }
    took = co_now_s() - before;
    char byte;
    CHECK(read(fd, &byte, 1) == 0, "it was sent something");
    CHECK(took > 1.5 && took < 4, "closed after %g s", took);
    close(fd);
    scene_close(&s);
}
