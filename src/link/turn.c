/* turn.c -- what a turn does: events, deadlines, a round of all peers, reports.
 *
 * All sockets are watched by one epoll, edge by edge: a peer remembers that it can be read or written until a
 * read or write moves nothing. A turn moves at most LINK_ROUND bytes per peer and direction, so no peer
 * starves the others.
 */
#include "link/tcp_int.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

/* --- deadlines ---------------------------------------------------------------------------------------- */
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
        peer_check(tcp, peer, now);
        return;
    }
    if (peer->state == PEER_LOST)
        return;
    if (now > peer->deadline_ns) {
        too_late(tcp, peer);
        return;
    }
    if (peer->state == PEER_CONNECTING && now > peer->try_ends_ns)
        connect_give_up(tcp, peer);
    else if (peer->state == PEER_WANTED && tcp->spec.me < peer->who.id && now >= peer->next_try_ns)
        connect_start(tcp, peer, now);
}

static void tick(struct tcp *tcp)
{
    uint64_t now = co_now_ns();

    tcp->hurry = false;
    accept_tick(tcp, now);
    for (int i = 0; i < tcp->n_met; i++)
        tick_peer(tcp, tcp->peer[tcp->met[i]], now);
}

/* --- turns ---------------------------------------------------------------------------------------------- */
/* The bell makes the epoll descriptor readable while work is left that no event will announce. */
void turn_ring(struct tcp *tcp)
{
    bool work = tcp->hurry;
    uint64_t one = 1;

    for (int i = 0; i < tcp->n_met && !work; i++)
        work = peer_has_work(tcp->peer[tcp->met[i]]);
    if (work == tcp->rung)
        return;
    ssize_t n = work ? write(tcp->bell, &one, sizeof one) : read(tcp->bell, &one, sizeof one);
    tcp->rung = n == sizeof one ? work : tcp->rung;
}

static void take_event(struct tcp *tcp, const struct epoll_event *ev)
{
    uint32_t whose = (uint32_t)ev->data.u64;
    uint64_t ticks;

    if (whose == EVENT_TIMER && read(tcp->timer, &ticks, sizeof ticks) == sizeof ticks)
        tick(tcp);
    if (whose == EVENT_GATE)
        accept_turn(tcp);
    struct peer *peer = whose < LINK_IDS ? tcp->peer[whose] : NULL;
    if (!peer || peer->watched != ev->data.u64 >> 32)
        return;
    if (peer->state != PEER_UP) {
        connect_event(tcp, peer);
        return;
    }
    peer->ended |= (ev->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    peer->can_read |= (ev->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    peer->can_write |= (ev->events & (EPOLLOUT | EPOLLERR)) != 0;
}

co_err turn_run(struct tcp *tcp, int timeout_ms)
{
    struct epoll_event ev[LINK_WAITING];
    int n = epoll_wait(tcp->epoll, ev, LINK_WAITING, tcp->rung ? 0 : timeout_ms);

    for (int i = 0; i < n; i++)
        take_event(tcp, &ev[i]);
    if (tcp->hurry)
        tick(tcp);
    tcp->turn = tcp->n_met ? (tcp->turn + 1) % tcp->n_met : 0;
    for (int i = 0; i < tcp->n_met; i++)
        peer_turn(tcp, tcp->peer[tcp->met[(tcp->turn + i) % tcp->n_met]]);
    report_all(tcp);
    turn_ring(tcp);
    return tcp->err;
}
