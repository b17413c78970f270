/* accept.c -- the side that is connected to.
 *
 * Strangers are the gate's matter (net/gate.c): what comes out of it knows the token and has sent a hello. We
 * check the hello's run, place and birth, and answer with our own.
 *
 * A host may be connected to before it has met the other one, because views do not arrive everywhere at once.
 * Such a connection waits, unanswered, until meet brings its host, or for LINK_MEET_MS.
 */
#include "link/tcp_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

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

void accept_waiting(struct tcp *tcp, struct peer *peer)
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

/* The hello is of this version and run, for this host, from one with a lower place. */
static bool fits(const struct tcp *tcp, const hello *theirs)
{
    return theirs->version == HELLO_VERSION && theirs->run == tcp->spec.run &&
           theirs->to == (uint32_t)tcp->spec.me && theirs->to_birth == tcp->spec.birth &&
           theirs->from < (uint32_t)tcp->spec.me;
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
    if (!fits(tcp, &theirs)) { /* our own hello tells the other side what is wrong */
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

void accept_turn(struct tcp *tcp)
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

void accept_tick(struct tcp *tcp, uint64_t now)
{
    accept_turn(tcp);
    for (int i = 0; i < LINK_WAITING; i++)
        if (tcp->waiting[i] && now > tcp->waiting_since_ns[i] + (uint64_t)tcp->meet_ms * 1000000)
            stop_waiting(tcp, i);
}
