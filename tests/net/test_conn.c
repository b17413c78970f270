/* Two ends over loopback, plain and TLS: frames arrive whole, strangers do not get in, and each failure names
 * its reason. */
#include "net/net.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "harness.h"

/* Replaces time(), which OpenSSL and everything else in this program calls. */
static time_t later_s;
time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec + later_s;
    return now.tv_sec + later_s;
}

static co_tls *tls_of(uint8_t seed, const char *identity)
{
    co_token t = {{seed, 1, 2, 3}};
    co_tls *tls;

    CHECK_OK(co_tls_new(&tls, &t, identity));
    return tls;
}

struct two {
    co_conn *client, *server;
};

static struct two ends(co_tls *client, co_tls *server)
{
    struct two two;
    int fd[2];

    CHECK_OK(co_net_pair(fd));
    CHECK_OK(co_conn_new(&two.client, fd[0], client, CO_CONN_CLIENT));
    CHECK_OK(co_conn_new(&two.server, fd[1], server, CO_CONN_SERVER));
    return two;
}

/* Runs both ends in turn until both know each other or one fails. Returns 'c' or 's' for the end that failed,
 * else 0. */
static char shake(struct two *two, co_err *err)
{
    for (int i = 0; i < 20 && !(co_conn_known(two->client) && co_conn_known(two->server)); i++) {
        if ((*err = co_conn_work(two->client)))
            return 'c';
        if ((*err = co_conn_work(two->server)))
            return 's';
    }
    return 0;
}

static void frames_get_through(co_tls *client, co_tls *server)
{
    struct two two = ends(client, server);
    size_t most = CO_FRAME_MOST;
    uint8_t *body = malloc(most);
    uint64_t rng = 7;
    co_err err = CO_OK;

    for (size_t i = 0; i < most; i++)
        body[i] = (uint8_t)test_u32(&rng);
    if (client)
        CHECK(shake(&two, &err) == 0, "%s", co_errmsg());
    static const size_t lengths[] = {0, 1, 31, 16384, 16385, CO_FRAME_MOST};
    for (size_t k = 0; k < CO_COUNT(lengths); k++) {
        co_frame f = {.type = (uint8_t)k, .view = 3, .step = k, .len = (uint32_t)lengths[k], .body = body}, got;
        bool came = false;
        CHECK_OK(co_conn_send(two.client, &f));
        for (int i = 0; i < 10000 && !came; i++) {
            CHECK_OK(co_conn_work(two.client));
            CHECK_OK(co_conn_work(two.server));
            CHECK_OK(co_conn_next(two.server, &got, &came));
        }
        CHECK(came && got.type == k && got.step == k && got.len == lengths[k] &&
                  memcmp(got.body, body, got.len) == 0,
              "frame of %zu bytes", lengths[k]);
    }
    CHECK(co_conn_known(two.server), "not known after frames");
    co_conn_free(two.client);
    CHECK_FAILS(co_conn_work(two.server), CO_EPEER, "closed the connection");
    co_conn_free(two.server);
    free(body);
}

TEST(a_token_is_as_good_after_months_as_on_the_first_day)
{
    co_tls *server = tls_of(1, "run"), *client = tls_of(1, "run");

    later_s = 100 * 24 * 3600;
    CHECK(time(NULL) > 1000000, "a clock");
    for (int old = 0; old < 2; old++) { /* first with a fresh client key, then with two old ones */
        co_tls *fresh = tls_of(1, "run");
        struct two two = ends(old ? client : fresh, server);
        co_err err = CO_OK;
        char who = shake(&two, &err);
        CHECK(who == 0 && !err, "%c: %s", who, co_errmsg());
        co_conn_free(two.client);
        co_conn_free(two.server);
        co_tls_free(fresh);
    }
    co_tls_free(server);
    co_tls_free(client);
}

TEST(frames_of_every_length_get_through_plain_and_inside_tls)
{
    co_tls *a = tls_of(1, "run"), *b = tls_of(1, "another run id is for the terms to refuse");

    frames_get_through(NULL, NULL);
    frames_get_through(a, b);
    co_tls_free(a);
    co_tls_free(b);
}

TEST(another_token_is_told_apart_on_both_sides)
{
    co_tls *a = tls_of(1, "run"), *b = tls_of(2, "run");
    struct two two = ends(a, b);
    co_err err = CO_OK;

    CHECK(shake(&two, &err) == 's' && err == CO_EINPUT && test_contains(co_errmsg(), "another token"),
          "%d: %s", err, co_errmsg());
    CHECK_FAILS(co_conn_work(two.client), CO_EINPUT, "another token");
    CHECK(!co_conn_known(two.client) && !co_conn_known(two.server), "one got in");
    co_conn_free(two.client);
    co_conn_free(two.server);
    co_tls_free(a);
    co_tls_free(b);
}

TEST(tls_and_plain_ends_tell_each_other_so)
{
    co_tls *tls = tls_of(1, "run");
    struct two two = ends(tls, NULL);
    co_err err = CO_OK;

    CHECK(shake(&two, &err) == 's' && err == CO_EFORMAT && test_contains(co_errmsg(), "uses TLS"), "%s",
          co_errmsg());
    CHECK_FAILS(co_conn_work(two.client), CO_EFORMAT, "started with --insecure, this one was not");
    co_conn_free(two.client);
    co_conn_free(two.server);

    two = ends(NULL, tls);
    CHECK_OK(co_conn_send(two.client, &(co_frame){.type = 1}));
    CHECK_FAILS(co_conn_work(two.server), CO_EFORMAT, "does not use TLS");
    CHECK_FAILS(co_conn_work(two.client), CO_EFORMAT, "it has a token, this one was started with --insecure");
    co_conn_free(two.client);
    co_conn_free(two.server);
    co_tls_free(tls);
}

/* Sends given bytes to a server's end. */
static co_err stranger(co_tls *tls, const void *bytes, size_t len, bool *known)
{
    co_conn *c;
    int fd[2];

    CHECK_OK(co_net_pair(fd));
    CHECK_OK(co_conn_new(&c, fd[1], tls, CO_CONN_SERVER));
    CHECK(write(fd[0], bytes, len) == (ssize_t)len, "write");
    co_err err = co_conn_work(c);
    for (int i = 0; i < 4 && !err; i++)
        err = co_conn_work(c);
    *known = co_conn_known(c);
    co_conn_free(c);
    close(fd[0]);
    return err;
}

TEST(strangers_are_refused_within_a_kilobyte)
{
    co_tls *tls = tls_of(1, "run");
    uint8_t bytes[4096];
    uint64_t rng = 11;
    bool known;

    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)test_u32(&rng);
        if (round % 2) { /* looks like a TLS record, so that the parser reads the rest */
            memcpy(bytes, "\x16\x03\x01\x0f\xf0\x01\x00\x0f\xec\x03\x03", 11);
        }
        CHECK(stranger(tls, bytes, sizeof bytes, &known) != CO_OK && !known, "round %d got in", round);
        CHECK(stranger(NULL, bytes, sizeof bytes, &known) != CO_OK && !known, "round %d got in plain", round);
    }
    co_tls_free(tls);
}

TEST(a_replayed_handshake_does_not_get_in)
{
    co_tls *tls = tls_of(1, "run");
    uint8_t flight[2][2048];
    ssize_t len[2];
    int client_side[2];
    co_conn *client, *server;
    bool known;

    /* A man in the middle records what a genuine client sends. */
    int server_side[2];
    CHECK_OK(co_net_pair(client_side));
    CHECK_OK(co_net_pair(server_side));
    CHECK_OK(co_conn_new(&client, client_side[0], tls, CO_CONN_CLIENT));
    CHECK_OK(co_conn_new(&server, server_side[1], tls, CO_CONN_SERVER));
    for (int i = 0; i < 2; i++) {
        uint8_t answer[4096];
        CHECK_OK(co_conn_work(client));
        len[i] = read(client_side[1], flight[i], sizeof flight[i]);
        CHECK(len[i] > 0 && write(server_side[0], flight[i], (size_t)len[i]) == len[i], "flight %d", i);
        CHECK_OK(co_conn_work(server));
        ssize_t n = read(server_side[0], answer, sizeof answer);
        CHECK(i == 1 || (n > 0 && write(client_side[1], answer, (size_t)n) == n), "answer");
    }
    CHECK(co_conn_known(server) && co_conn_known(client), "the true one got in");
    test_note("client's flights: %zd and %zd bytes", len[0], len[1]);
    uint8_t all[4096];
    memcpy(all, flight[0], (size_t)len[0]);
    memcpy(all + len[0], flight[1], (size_t)len[1]);
    CHECK(stranger(tls, all, (size_t)(len[0] + len[1]), &known) != CO_OK && !known, "the replay got in");
    CHECK(stranger(tls, all, (size_t)len[0], &known) == CO_OK && !known, "half of it got in");
    co_conn_free(client);
    co_conn_free(server);
    close(client_side[1]);
    close(server_side[0]);
    co_tls_free(tls);
}

TEST(a_reader_that_never_reads_is_given_up)
{
    struct two two = ends(NULL, NULL);
    static uint8_t body[CO_FRAME_MOST];
    co_err err = CO_OK;

    for (int i = 0; i < 8 && !err; i++)
        err = co_conn_send(two.client, &(co_frame){.len = sizeof body, .body = body});
    CHECK(err == CO_EPEER && test_contains(co_errmsg(), "does not read"), "%d: %s", err, co_errmsg());
    co_conn_free(two.client);
    co_conn_free(two.server);
}

static co_err open_both(void *ctx)
{
    co_token t = {{1}};
    co_tls *tls = NULL;
    co_conn *c = NULL;
    int fd[2];

    CO_TRY(co_tls_new(&tls, &t, "run"));
    co_err err = co_net_pair(fd);
    if (!err) {
        err = co_conn_new(&c, fd[0], tls, CO_CONN_CLIENT);
        close(fd[1]);
    }
    co_conn_free(c);
    co_tls_free(tls);
    return err;
}

TEST(connections_survive_each_failed_allocation)
{
    test_each_alloc_fails(open_both, NULL);
}
