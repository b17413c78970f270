/* Bulk streams: hellos, bytes both ways, new keys while data flows, the limits for strangers. */
#include "net/stream_int.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "harness.h"

struct pair {
    co_tls *tls;
    co_stream *side[2];
};

static struct pair pair_open(bool with_tls)
{
    static const uint8_t hello[2][CO_STREAM_HELLO] = {"client", "server"};
    co_token token = {{5}};
    struct pair pair = {0};
    int fd[2];

    if (with_tls)
        CHECK_OK(co_tls_new(&pair.tls, &token, "run"));
    CHECK_OK(co_net_pair(fd));
    CHECK_OK(co_stream_new(&pair.side[0], fd[0], pair.tls, CO_CONN_CLIENT));
    CHECK_OK(co_stream_new(&pair.side[1], fd[1], pair.tls, CO_CONN_SERVER));
    co_stream_say(pair.side[0], hello[0]);
    co_stream_say(pair.side[1], hello[1]);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(co_stream_work(pair.side[0]));
        CHECK_OK(co_stream_work(pair.side[1]));
    }
    for (int s = 0; s < 2; s++) {
        const uint8_t *heard = co_stream_heard(pair.side[s]);
        CHECK(heard && memcmp(heard, hello[1 - s], CO_STREAM_HELLO) == 0, "side %d heard no hello", s);
        CHECK(co_stream_trusts(pair.side[s]), "side %d", s);
    }
    return pair;
}

static void pair_close(struct pair *pair)
{
    co_stream_free(pair->side[0]);
    co_stream_free(pair->side[1]);
    co_tls_free(pair->tls);
}

/* Moves `len` bytes from one side to the other while the other side sends as many. */
static void move(struct pair *pair, size_t len)
{
    uint8_t *from[2] = {co_alloc(len), co_alloc(len)}, *to[2] = {co_zalloc(len), co_zalloc(len)};
    size_t sent[2] = {0}, got[2] = {0}, n;
    double until = co_now_s() + 30;
    uint64_t rng = 1;

    for (size_t i = 0; i < len; i++) {
        from[0][i] = (uint8_t)test_u32(&rng);
        from[1][i] = (uint8_t)(from[0][i] + i);
    }
    while ((got[0] < len || got[1] < len) && co_now_s() < until)
        for (int s = 0; s < 2; s++) {
            struct iovec out = {from[s] + sent[s], len - sent[s]}, in = {to[s] + got[s], len - got[s]};
            CHECK_OK(co_stream_write(pair->side[s], &out, 1, &n));
            sent[s] += n;
            CHECK_OK(co_stream_flush(pair->side[s], &n));
            CHECK_OK(co_stream_read(pair->side[s], &in, 1, &n));
            got[s] += n;
        }
    CHECK(memcmp(from[0], to[1], len) == 0 && memcmp(from[1], to[0], len) == 0, "bytes");
    for (int s = 0; s < 2; s++) {
        co_free(from[s]);
        co_free(to[s]);
    }
}

TEST(a_stream_moves_bytes_both_ways)
{
    for (int tls = 0; tls < 2; tls++) {
        struct pair pair = pair_open(tls);
        move(&pair, (5 << 20) + 3);
        CHECK(co_stream_raw_sent(pair.side[0]) == co_stream_raw_got(pair.side[1]), "counts");
        pair_close(&pair);
    }
}

TEST(a_stream_takes_new_keys_while_data_flows)
{
    struct pair pair = pair_open(true);

    CHECK(pair.side[0]->rekey_every == (uint64_t)1 << 34, "far below the limit of AES-GCM");
    pair.side[0]->rekey_every = 100000;
    pair.side[1]->rekey_every = 30000;
    move(&pair, 20 << 20);
    test_note("%llu and %llu new keys", (unsigned long long)pair.side[0]->rekeys,
              (unsigned long long)pair.side[1]->rekeys);
    CHECK(pair.side[0]->rekeys > 150 && pair.side[1]->rekeys > 500, "no new keys");
    pair_close(&pair);
}

TEST(a_stream_reads_little_from_a_stranger)
{
    co_token token = {{5}};
    uint8_t noise[3000] = {0x16, 3, 1, 0x3f, 0};
    co_tls *tls;
    co_stream *stream;
    co_err err = CO_OK;
    int fd[2];

    CHECK_OK(co_tls_new(&tls, &token, "run"));
    CHECK_OK(co_net_pair(fd));
    CHECK_OK(co_stream_new(&stream, fd[1], tls, CO_CONN_SERVER));
    CHECK(write(fd[0], noise, sizeof noise) == sizeof noise, "write");
    for (int i = 0; i < 100 && !err; i++)
        err = co_stream_work(stream);
    CHECK(err == CO_EFORMAT, "error %d: %s", err, co_errmsg());
    CHECK(co_stream_raw_got(stream) <= CO_STRANGER_BYTES, "%llu bytes",
          (unsigned long long)co_stream_raw_got(stream));
    co_stream_free(stream);
    close(fd[0]);
    co_tls_free(tls);
}
