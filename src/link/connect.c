/* connect.c -- the side that connects: of two hosts the one with the lower place.
 *
 * It sends its hello as soon as the handshake is done, and waits for the other side's answer. An attempt that
 * fails is repeated after LINK_TICK_MS, unless its failure cannot heal: another token, another run, another
 * protocol.
 */
#include "link/tcp_int.h"

#include <stdio.h>

#include "base/clock.h"

hello hello_to(const struct tcp *tcp, int id, uint64_t birth)
{
    return (hello){.version = HELLO_VERSION,
                   .run = tcp->spec.run,
                   .from = (uint32_t)tcp->spec.me,
                   .from_birth = tcp->spec.birth,
                   .to = (uint32_t)id,
                   .to_birth = birth};
}

/* An attempt failed. Some failures will not heal: then there is no use in trying again. */
static void attempt_failed(struct tcp *tcp, struct peer *peer, co_err err)
{
    char why[sizeof peer->trouble + 32];

    snprintf(peer->trouble, sizeof peer->trouble, "%s", co_errmsg());
    if (err == CO_EINPUT || err == CO_EFORMAT) {
        snprintf(why, sizeof why, "%s: %s", peer->step, peer->trouble);
        peer_lose(tcp, peer, why);
        return;
    }
    peer_hang_up(tcp, peer);
    peer->state = PEER_WANTED;
    peer->next_try_ns = co_now_ns() + LINK_TICK_MS * 1000000ull;
    peer->addr_now = peer->addrs ? (peer->addr_now + 1) % peer->addrs : 0;
}

static co_err resolve(struct peer *peer)
{
    co_patience patience = co_patience_s(LINK_RESOLVE_MS * 1e-3);

    if (peer->addrs)
        return CO_OK;
    peer->step = "resolving its name";
    return co_net_resolve(peer->addr, LINK_ADDRESSES, &peer->addrs, peer->who.host, peer->who.port, &patience);
}

void connect_start(struct tcp *tcp, struct peer *peer, uint64_t now)
{
    co_err err = resolve(peer);

    if (err) {
        attempt_failed(tcp, peer, CO_EIO);
        peer->next_try_ns = now + LINK_NAMES_MS * 1000000ull;
        return;
    }
    peer->step = "connecting";
    err = co_net_connect_start(&peer->fd, &peer->addr[peer->addr_now]);
    if (!err)
        err = peer_watch(tcp, peer, peer->fd);
    if (err) {
        attempt_failed(tcp, peer, err);
        return;
    }
    peer->state = PEER_CONNECTING;
    peer->try_ends_ns = now + LINK_TRY_MS * 1000000ull;
}

/* The socket is connected, or failed. */
static co_err connected(struct tcp *tcp, struct peer *peer, bool in_time)
{
    uint8_t bytes[CO_STREAM_HELLO];
    hello mine = hello_to(tcp, peer->who.id, peer->who.birth);

    CO_TRY(co_net_connect_end(peer->fd, &peer->addr[peer->addr_now], in_time));
    int fd = peer->fd;
    peer->fd = -1; /* the stream's from now on */
    CO_TRY(co_stream_new(&peer->stream, fd, tcp->spec.tls, CO_CONN_CLIENT));
    hello_write(bytes, &mine);
    co_stream_say(peer->stream, bytes);
    peer->state = PEER_GREETING;
    peer->step = tcp->spec.tls ? "TLS" : "greeting";
    return CO_OK;
}

/* The other side's answer to our hello. */
static co_err answered(struct tcp *tcp, struct peer *peer)
{
    hello theirs;

    CO_TRY(hello_read(&theirs, co_stream_heard(peer->stream)));
    if (theirs.version != HELLO_VERSION)
        return co_fail(CO_EFORMAT, "it uses version %u of the protocol, this host uses version %d",
                       theirs.version, HELLO_VERSION);
    if (theirs.run != tcp->spec.run)
        return co_fail(CO_EFORMAT, "it belongs to another run");
    if ((int)theirs.from != peer->who.id || theirs.from_birth != peer->who.birth)
        return co_fail(CO_EPEER, "another process answers there, with place %u", theirs.from);
    if ((int)theirs.to != tcp->spec.me || theirs.to_birth != tcp->spec.birth)
        return co_fail(CO_EPEER, "its answer is for another host, with place %u", theirs.to);
    return CO_OK;
}

static co_err greet(struct tcp *tcp, struct peer *peer)
{
    CO_TRY(co_stream_work(peer->stream));
    if (co_stream_trusts(peer->stream))
        peer->step = "greeting";
    if (!co_stream_heard(peer->stream))
        return CO_OK;
    CO_TRY(answered(tcp, peer));
    peer_up(tcp, peer);
    return CO_OK;
}

void connect_event(struct tcp *tcp, struct peer *peer)
{
    co_err err = CO_OK;

    if (peer->state == PEER_CONNECTING)
        err = connected(tcp, peer, true);
    if (!err && peer->state == PEER_GREETING)
        err = greet(tcp, peer);
    if (err)
        attempt_failed(tcp, peer, err);
}

void connect_give_up(struct tcp *tcp, struct peer *peer)
{
    co_err err = connected(tcp, peer, false);

    if (err)
        attempt_failed(tcp, peer, err);
}
