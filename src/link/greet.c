/* greet.c -- how two hosts come to share a connection.
 *
 * Of two hosts the one with the lower place connects. It sends its hello; the other one answers with its
 * own. Each side checks the other's run, place and birth. Strangers are the gate's matter (net/gate.c):
 * what comes out of it knows the token and has sent a hello.
 *
 * A host may be connected to before it has met the other one, because views do not arrive everywhere at
 * once. Such a connection waits, unanswered, until meet brings its host, or for LINK_MEET_MS.
 */
#include "link/tcp_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static uint64_t after_ms(uint64_t now, int ms)
{
    return now + (uint64_t)ms * 1000000;
}

static hello hello_to(const struct tcp *tcp, int id, uint64_t birth)
{
    return (hello){.version = HELLO_VERSION,
                   .run = tcp->spec.run,
                   .from = (uint32_t)tcp->spec.me,
                   .from_birth = tcp->spec.birth,
                   .to = (uint32_t)id,
                   .to_birth = birth};
}

/* --- connecting ----------------------------------------------------------------------------------------- */
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
    peer->next_try_ns = after_ms(co_now_ns(), LINK_TICK_MS);
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

static void attempt(struct tcp *tcp, struct peer *peer, uint64_t now)
{
    co_err err = resolve(peer);

    if (err) {
        attempt_failed(tcp, peer, CO_EIO);
        peer->next_try_ns = after_ms(now, LINK_NAMES_MS);
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
    peer->try_ends_ns = after_ms(now, LINK_TRY_MS);
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

void greet_event(struct tcp *tcp, struct peer *peer)
{
    co_err err = CO_OK;

    if (peer->state == PEER_CONNECTING)
        err = connected(tcp, peer, true);
    if (!err && peer->state == PEER_GREETING)
        err = greet(tcp, peer);
    if (err)
        attempt_failed(tcp, peer, err);
}

/* --- accepting ------------------------------------------------------------------------------------------ */
/* Takes the stream: the peer is up if the answer can be sent. */
static void adopt(struct tcp *tcp, struct peer *peer, co_stream *stream)
{
    uint8_t bytes[CO_STREAM_HELLO];
    hello mine = hello_to(tcp, peer->who.id, peer->who.birth);

    hello_write(bytes, &mine);
    co_stream_say(stream, bytes);
    peer_hang_up(tcp, peer);
    peer->stream = stream;
    co_err err = co_stream_work(stream);
    if (!err)
        err = peer_watch(tcp, peer, co_stream_fd(stream));
    if (err) {
        snprintf(peer->trouble, sizeof peer->trouble, "%s", co_errmsg());
        peer_hang_up(tcp, peer); /* it will come again */
        peer->state = PEER_WANTED;
        return;
    }
    peer_up(tcp, peer);
}

static void stop_waiting(struct tcp *tcp, int i)
{
    co_stream_free(tcp->waiting[i]);
    tcp->waiting[i] = NULL;
}

/* Takes the stream. A host has one place in the waiting room; when it is full, the oldest leaves. */
static void let_wait(struct tcp *tcp, co_stream *stream, const hello *theirs)
{
    int place = 0;

    for (int i = 0; i < LINK_WAITING; i++) {
        hello other;
        if (!tcp->waiting[i]) {
            place = tcp->waiting[place] ? i : place;
            continue;
        }
        if (hello_read(&other, co_stream_heard(tcp->waiting[i])) == CO_OK && other.from == theirs->from) {
            place = i;
            break;
        }
        if (tcp->waiting[place] && tcp->waiting_since_ns[i] < tcp->waiting_since_ns[place])
            place = i;
    }
    stop_waiting(tcp, place);
    tcp->waiting[place] = stream;
    tcp->waiting_since_ns[place] = co_now_ns();
}

/* The other side has closed a connection that waits. */
static bool has_left(const co_stream *stream)
{
    char byte;
    ssize_t n = recv(co_stream_fd(stream), &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN);
}

void greet_waiting(struct tcp *tcp, struct peer *peer)
{
    for (int i = 0; i < LINK_WAITING; i++) {
        hello theirs;
        co_stream *stream = tcp->waiting[i];
        if (!stream || hello_read(&theirs, co_stream_heard(stream)) != CO_OK ||
            (int)theirs.from != peer->who.id || theirs.from_birth != peer->who.birth)
            continue;
        if (has_left(stream)) {
            stop_waiting(tcp, i);
            continue;
        }
        tcp->waiting[i] = NULL;
        if (peer->state == PEER_UP)
            peer_lose(tcp, peer, "it has connected anew");
        if (peer->state == PEER_LOST)
            peer_wanted(tcp, peer);
        adopt(tcp, peer, stream);
        return;
    }
}

/* Why a hello is refused, or NULL. */
static const char *refusal(const struct tcp *tcp, const hello *theirs)
{
    return theirs->version != HELLO_VERSION                                         ? "version"
           : theirs->run != tcp->spec.run                                           ? "run"
           : (int)theirs->to != tcp->spec.me || theirs->to_birth != tcp->spec.birth ? "address"
           : theirs->from >= (uint32_t)tcp->spec.me                                 ? "place"
                                                                                    : NULL;
}

/* Somebody who knows the token has sent a hello. Takes the stream. */
static void let_in(struct tcp *tcp, co_stream *stream)
{
    uint8_t bytes[CO_STREAM_HELLO];
    hello theirs;

    if (hello_read(&theirs, co_stream_heard(stream)) != CO_OK) {
        co_stream_free(stream);
        return;
    }
    if (refusal(tcp, &theirs)) { /* our own hello tells the other side what is wrong */
        hello mine = hello_to(tcp, (int)theirs.from, theirs.from_birth);
        hello_write(bytes, &mine);
        co_stream_say(stream, bytes);
        (void)co_stream_work(stream);
        co_stream_free(stream);
        return;
    }
    struct peer *peer = tcp->peer[theirs.from];
    bool met = peer && peer->who.birth == theirs.from_birth;
    if (met && (peer->state == PEER_WANTED || (peer->state == PEER_UP && !peer->moved))) {
        adopt(tcp, peer, stream);
        return;
    }
    if (met && peer->state == PEER_UP) /* the other side has lost the old connection before we noticed */
        peer_lose(tcp, peer, "it lost the connection and has connected anew");
    let_wait(tcp, stream, &theirs);
}

void greet_gate(struct tcp *tcp)
{
    uint64_t began = co_now_ns();

    if (!tcp->gate || began < tcp->gate_rests_ns)
        return;
    for (int i = 0; i < LINK_BATCH; i++) {
        co_stream *stream = co_gate_turn_stream(tcp->gate);
        if (!stream)
            break;
        let_in(tcp, stream);
    }
    uint64_t now = co_now_ns();
    tcp->gate_rests_ns = now + 4 * (now - began); /* a flood gets a fifth of our time at most */
}

/* --- deadlines ------------------------------------------------------------------------------------------ */
static void too_late(struct tcp *tcp, struct peer *peer)
{
    char why[sizeof peer->trouble + 200], from[CO_NAME_MOST] = "";
    co_gate_counts strangers = tcp->gate ? co_gate_count(tcp->gate) : (co_gate_counts){0};

    if (tcp->spec.me < peer->who.id) {
        snprintf(why, sizeof why, "not connected within %d s; %s: %s", tcp->meet_ms / 1000, peer->step,
                 peer->trouble[0] ? peer->trouble : "no answer");
    } else {
        co_addr_text(from, sizeof from, &strangers.wrong_from);
        snprintf(why, sizeof why, "it did not connect to this host within %d s%s%s", tcp->meet_ms / 1000,
                 strangers.wrong_token ? "; a host with another token tried, from " : "",
                 strangers.wrong_token ? from : "");
    }
    peer_lose(tcp, peer, why);
}

static void tick_peer(struct tcp *tcp, struct peer *peer, uint64_t now)
{
    if (peer->state == PEER_UP) {
        peer_check(tcp, peer);
        return;
    }
    if (peer->state == PEER_LOST)
        return;
    if (now > peer->deadline_ns) {
        too_late(tcp, peer);
        return;
    }
    if (peer->state == PEER_CONNECTING && now > peer->try_ends_ns) {
        co_err err = connected(tcp, peer, false);
        if (err)
            attempt_failed(tcp, peer, err);
    } else if (peer->state == PEER_WANTED && tcp->spec.me < peer->who.id && now >= peer->next_try_ns) {
        attempt(tcp, peer, now);
    }
}

void greet_tick(struct tcp *tcp)
{
    uint64_t now = co_now_ns();

    tcp->hurry = false;
    greet_gate(tcp);
    for (int i = 0; i < tcp->n_met; i++)
        tick_peer(tcp, tcp->peer[tcp->met[i]], now);
    for (int i = 0; i < LINK_WAITING; i++)
        if (tcp->waiting[i] && now > after_ms(tcp->waiting_since_ns[i], tcp->meet_ms))
            stop_waiting(tcp, i);
}
