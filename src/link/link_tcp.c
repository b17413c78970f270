/* link_tcp.c -- the link `tcp`: one connection between each two hosts, driven by turns of one thread.
 *
 * A host that was out of a view and comes back without a new birth calls meet with itself alone when it
 * learns that it is out. Its old connections are then closed on both sides before new ones are made.
 */
#include "link/tcp_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/alloc.h"

static struct tcp *tcp_of(const co_link *link)
{
    return (struct tcp *)(void *)((char *)link - offsetof(struct tcp, link));
}

static co_err tcp_turn(co_link *link, int timeout_ms)
{
    return turn_run(tcp_of(link), timeout_ms);
}

/* --- messages ------------------------------------------------------------------------------------------- */
/* *out NULL: the peer is lost, and what is for it is given up. */
static co_err peer_for(const struct tcp *tcp, int id, struct peer **out)
{
    struct peer *peer = id >= 0 && id < LINK_IDS ? tcp->peer[id] : NULL;

    if (!peer)
        return co_fail(CO_EPEER, "host %d is not among the hosts that were met", id);
    *out = peer->state == PEER_LOST ? NULL : peer;
    return CO_OK;
}

static co_err tcp_post(co_link *link, int from, const co_tag *tag, void *to, size_t len)
{
    struct tcp *tcp = tcp_of(link);
    struct peer *peer = NULL;

    CO_TRY(peer_for(tcp, from, &peer));
    if (!peer || tag->view < tcp->view)
        return CO_OK;
    CO_TRY(receives_add(&peer->receives, tag, to, len));
    if (!peer->reading.waits || !co_tag_same(tag, &peer->reading.tag))
        return CO_OK;
    if (reading_match(tcp, peer))
        peer_lose(tcp, peer, co_errmsg());
    turn_ring(tcp);
    return CO_OK;
}

static co_err tcp_send(co_link *link, int to, const co_tag *tag, const void *bytes, size_t len)
{
    struct tcp *tcp = tcp_of(link);
    struct peer *peer = NULL;

    CO_TRY(peer_for(tcp, to, &peer));
    if (len > UINT32_MAX)
        return co_fail(CO_EINPUT, "a message of %zu bytes is too long for the link", len);
    if (!peer || tag->view < tcp->view)
        return CO_OK;
    CO_TRY(sends_add(&peer->sends, tag, bytes, (uint32_t)len));
    turn_ring(tcp);
    return CO_OK;
}

static void tcp_cut(co_link *link, uint32_t view)
{
    struct tcp *tcp = tcp_of(link);

    tcp->view = view > tcp->view ? view : tcp->view;
    for (int i = 0; i < tcp->n_met; i++) {
        struct peer *peer = tcp->peer[tcp->met[i]];
        receives_cut(&peer->receives, view);
        reading_cut(tcp, peer);
        if (sends_cut(&peer->sends, view))
            peer_lose(tcp, peer, co_errmsg());
    }
    turn_ring(tcp);
}

/* --- who is met ----------------------------------------------------------------------------------------- */
static co_err check_peers(const struct tcp *tcp, const co_link_peer *peers, int n)
{
    bool seen[LINK_IDS] = {0};

    for (int i = 0; i < n; i++) {
        int id = peers[i].id;
        if (id < 0 || id >= LINK_IDS || seen[id])
            return co_fail(CO_EINPUT, "host %d is listed twice, or no place in a run", id);
        if (id < tcp->spec.me && !tcp->gate)
            return co_fail(CO_EINPUT, "host %d has to connect to this host, which listens nowhere", id);
        if (id == tcp->spec.me && peers[i].birth != tcp->spec.birth)
            return co_fail(CO_EINPUT, "the list of hosts has another process at this host's place %d", id);
        seen[id] = true;
    }
    return CO_OK;
}

static const co_link_peer *find(const co_link_peer *peers, int n, int id)
{
    for (int i = 0; i < n; i++)
        if (peers[i].id == id)
            return &peers[i];
    return NULL;
}

/* A peer that stays, or is new. */
static co_err meet_one(struct tcp *tcp, const co_link_peer *who)
{
    struct peer *peer = tcp->peer[who->id];

    if (!peer)
        CO_TRY(peer_new(tcp, who));
    peer = tcp->peer[who->id];
    if (strcmp(peer->who.host, who->host) != 0 || peer->who.port != who->port)
        peer->addrs = peer->addr_now = 0;
    peer->who = *who;
    peer_wanted(tcp, peer);
    if (who->id < tcp->spec.me)
        accept_waiting(tcp, peer);
    return CO_OK;
}

static co_err tcp_meet(co_link *link, const co_link_peer *peers, int n)
{
    struct tcp *tcp = tcp_of(link);
    int met = 0;

    CO_TRY(check_peers(tcp, peers, n));
    for (int i = 0; i < tcp->n_met; i++) {
        const co_link_peer *same = find(peers, n, tcp->met[i]);
        if (same && same->birth == tcp->peer[tcp->met[i]]->who.birth)
            tcp->met[met++] = tcp->met[i];
        else
            peer_free(tcp, tcp->met[i]);
    }
    tcp->n_met = met;
    for (int i = 0; i < n; i++) {
        bool is_new = peers[i].id != tcp->spec.me && !tcp->peer[peers[i].id];
        if (peers[i].id != tcp->spec.me)
            CO_TRY(meet_one(tcp, &peers[i]));
        if (is_new)
            tcp->met[tcp->n_met++] = (uint8_t)peers[i].id;
    }
    tcp->hurry = true; /* names are resolved in a turn: nothing waits here */
    turn_ring(tcp);
    return CO_OK;
}

static bool tcp_lost(co_link *link, int *peer, char *why, size_t size)
{
    struct tcp *tcp = tcp_of(link);

    for (int i = 0; i < tcp->n_met; i++) {
        struct peer *lost = tcp->peer[tcp->met[i]];
        if (!lost->lost)
            continue;
        lost->lost = false;
        *peer = lost->who.id;
        if (size)
            snprintf(why, size, "%s", lost->why);
        return true;
    }
    return false;
}

static co_link_counts tcp_counts(const co_link *link)
{
    const struct tcp *tcp = tcp_of(link);
    co_link_counts counts = tcp->counts;

    for (int i = 0; i < tcp->n_met; i++) {
        const co_stream *stream = tcp->peer[tcp->met[i]]->stream;
        counts.wire_got += stream ? co_stream_raw_got(stream) : 0;
        counts.wire_sent += stream ? co_stream_raw_sent(stream) : 0;
    }
    return counts;
}

static int tcp_fd(const co_link *link)
{
    return tcp_of(link)->epoll;
}

/* --- opening and closing -------------------------------------------------------------------------------- */
static void tcp_close(co_link *link)
{
    struct tcp *tcp = tcp_of(link);

    for (int i = 0; i < tcp->n_met; i++)
        peer_free(tcp, tcp->met[i]);
    for (int i = 0; i < LINK_WAITING; i++)
        co_stream_free(tcp->waiting[i]);
    co_gate_close(tcp->gate);
    int fd[] = {tcp->epoll, tcp->timer, tcp->bell};
    for (size_t i = 0; i < CO_COUNT(fd); i++)
        if (fd[i] >= 0)
            close(fd[i]);
    co_free(tcp->report);
    co_free(tcp);
}

static const co_link_ops tcp_ops = {"tcp",    tcp_post, tcp_send, tcp_turn,   tcp_cut,
                                    tcp_meet, tcp_fd,   tcp_lost, tcp_counts, tcp_close};

static co_err watch(struct tcp *tcp, int fd, uint32_t event)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event};

    return fd >= 0 && epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? CO_OK : co_fail(CO_EIO, "epoll: %m");
}

static co_err open_all(struct tcp *tcp)
{
    struct itimerspec tick = {{0, LINK_TICK_MS * 1000000}, {0, LINK_TICK_MS * 1000000}};

    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    tcp->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    tcp->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (tcp->epoll < 0 || tcp->timer < 0 || tcp->bell < 0 || timerfd_settime(tcp->timer, 0, &tick, NULL) != 0)
        return co_fail(CO_EIO, "a link cannot be opened: %m");
    CO_TRY(watch(tcp, tcp->timer, EVENT_TIMER));
    CO_TRY(watch(tcp, tcp->bell, EVENT_BELL));
    if (tcp->spec.listener < 0)
        return CO_OK;
    int listener = fcntl(tcp->spec.listener, F_DUPFD_CLOEXEC, 3); /* the gate closes its own */
    if (listener < 0)
        return co_fail(CO_EIO, "a link cannot be opened: %m");
    CO_TRY(co_gate_open_streams(&tcp->gate, listener, tcp->spec.tls));
    return watch(tcp, co_gate_fd(tcp->gate), EVENT_GATE);
}

co_err co_link_tcp(co_link **out, const co_link_spec *spec)
{
    if (spec->me < 0 || spec->me >= LINK_IDS)
        return co_fail(CO_EINPUT, "%d is no place in a run", spec->me);
    struct tcp *tcp = co_zalloc(sizeof *tcp);
    if (!tcp)
        return CO_ENOMEM;
    tcp->link = (co_link){.ops = &tcp_ops, .me = spec->me};
    tcp->spec = *spec;
    tcp->meet_ms = LINK_MEET_MS;
    tcp->dead_ms = LINK_DEAD_MS;
    tcp->epoll = tcp->timer = tcp->bell = -1;
    co_err err = open_all(tcp);
    if (err) {
        tcp_close(&tcp->link);
        return err;
    }
    *out = &tcp->link;
    return CO_OK;
}
