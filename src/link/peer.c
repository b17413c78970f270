/* peer.c -- one peer: its connection from the first byte of a message to its loss.
 *
 * A lost connection is not made again by itself: messages of the view may have been lost with it. All that
 * waits for the peer is given up, the loss is reported once, and the next meet begins anew.
 *
 * A dead wire is noticed by the kernel's own measurements. TCP_USER_TIMEOUT would be simpler, but it also
 * ends a connection whose other side lives and does not read for a while, and that is allowed here: its
 * receives may not be posted yet.
 */
#include "link/tcp_int.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

co_err peer_new(struct tcp *tcp, const co_link_peer *who)
{
    struct peer *peer = co_zalloc(sizeof *peer);

    if (!peer)
        return CO_ENOMEM;
    peer->who = *who;
    peer->fd = -1;
    tcp->peer[who->id] = peer;
    peer_wanted(tcp, peer);
    return CO_OK;
}

void peer_free(struct tcp *tcp, int id)
{
    struct peer *peer = tcp->peer[id];

    peer_hang_up(tcp, peer);
    sends_fini(&peer->sends);
    receives_fini(&peer->receives);
    co_free(peer);
    tcp->peer[id] = NULL;
}

void peer_wanted(struct tcp *tcp, struct peer *peer)
{
    uint64_t now = co_now_ns();

    peer->lost = false;
    peer->deadline_ns = now + (uint64_t)tcp->meet_ms * 1000000;
    if (peer->state == PEER_CONNECTING || peer->state == PEER_GREETING || peer->state == PEER_UP)
        return;
    peer->state = PEER_WANTED;
    peer->next_try_ns = now;
    peer->trouble[0] = 0;
    peer->step = "connecting";
}

co_err peer_watch(struct tcp *tcp, struct peer *peer, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                             .data.u64 = (uint64_t)++peer->watched << 32 | (uint32_t)peer->who.id};

    return epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? CO_OK : co_fail(CO_EIO, "epoll: %m");
}

void peer_up(struct tcp *tcp, struct peer *peer)
{
    int fd = co_stream_fd(peer->stream), on = 1, each = 1, half = tcp->dead_ms / 2000;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &half, sizeof half);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof each);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &half, sizeof half);
    peer->state = PEER_UP;
    peer->can_read = peer->can_write = true;
    peer->ended = peer->unflushed = peer->moved = false;
    peer->silent_since_ns = 0;
    memset(&peer->reading, 0, sizeof peer->reading);
}

void peer_hang_up(struct tcp *tcp, struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    if (peer->stream) {
        tcp->counts.wire_got += co_stream_raw_got(peer->stream);
        tcp->counts.wire_sent += co_stream_raw_sent(peer->stream);
    }
    co_stream_free(peer->stream);
    peer->stream = NULL;
    memset(&peer->reading, 0, sizeof peer->reading);
}

void peer_lose(struct tcp *tcp, struct peer *peer, const char *why)
{
    char where[CO_NAME_MOST + 8];

    co_endpoint_text(where, sizeof where, peer->who.host, peer->who.port);
    snprintf(peer->why, sizeof peer->why, "host %d (%s): %s", peer->who.id, where, why);
    peer_hang_up(tcp, peer);
    sends_clear(&peer->sends);
    receives_clear(&peer->receives);
    peer->state = PEER_LOST;
    peer->lost = true;
}

bool peer_has_work(const struct peer *peer)
{
    const struct reading *reading = &peer->reading;

    if (peer->state != PEER_UP)
        return false;
    return (peer->can_read && !reading->waits) || (peer->ended && reading->waits) ||
           (reading->in_body && reading->len == 0) ||
           (peer->can_write && (peer->sends.n > 0 || peer->unflushed));
}

void peer_turn(struct tcp *tcp, struct peer *peer)
{
    if (!peer_has_work(peer))
        return;
    co_err err = receives_turn(tcp, peer);
    if (!err && peer->can_write && (peer->sends.n > 0 || peer->unflushed))
        err = sends_turn(tcp, peer);
    if (err)
        peer_lose(tcp, peer, co_errmsg());
}

void peer_check(struct tcp *tcp, struct peer *peer, uint64_t now)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    char why[80];

    if (getsockopt(co_stream_fd(peer->stream), IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return;
    /* Segments that nobody acknowledges, or probes of a closed window that nobody answers. */
    bool unanswered = (info.tcpi_unacked > 0 && info.tcpi_retransmits > 0) || info.tcpi_probes > 0;
    peer->silent_since_ns = !unanswered ? 0 : peer->silent_since_ns ? peer->silent_since_ns : now;
    bool dead = unanswered && now - peer->silent_since_ns > (uint64_t)tcp->dead_ms * 1000000;
    if (!dead || info.tcpi_last_ack_recv <= (uint32_t)tcp->dead_ms)
        return;
    snprintf(why, sizeof why, "no answer for %d s: the host or the network between is down",
             tcp->dead_ms / 1000);
    peer_lose(tcp, peer, why);
}
