/* seat.c -- one host's connection to the server: frames to it, lines for its terminal, its name in
 * messages. */
#include "roster/net/seat_int.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

seat *seat_new(seats *all, co_conn *conn)
{
    if (all->n == all->room) {
        int room = all->room ? 2 * all->room : 8;
        seat **at = co_realloc(all->at, (size_t)room * sizeof *at);
        if (!at)
            return NULL;
        all->at = at;
        all->room = room;
    }
    seat *peer = co_zalloc(sizeof *peer);
    if (!peer)
        return NULL;
    peer->conn = conn;
    peer->number = peer->member.place = -1;
    peer->clock.best_rtt_ns = -1;
    peer->from = co_net_peer(co_conn_fd(conn));
    co_addr_text(peer->who.addr, sizeof peer->who.addr, &peer->from);
    all->at[all->n++] = peer;
    return peer;
}

void seat_free(seat *peer)
{
    co_conn_free(peer->conn);
    co_free(peer);
}

void seat_drop(seat *peer, const char *why)
{
    if (!*peer->gone)
        snprintf(peer->gone, sizeof peer->gone, "%s", *why ? why : "gone");
}

void seat_name(char *out, size_t size, const seat *peer)
{
    if (peer->local)
        snprintf(out, size, "%.200s", peer->who.name);
    else
        snprintf(out, size, "%.200s (%.60s)", peer->who.name, peer->who.addr);
}

bool seat_stays(const seat *peer)
{
    return peer->joined || (peer->logs && !peer->logged);
}

void seat_say(const seats *all, seat *peer, frame_type type, json_t *body)
{
    if (!co_conn_known(peer->conn) || *peer->gone) { /* it has not shown the token yet, or is being dropped */
        json_decref(body);
        return;
    }
    if (frame_send(peer->conn, type, all->run, all->view, body))
        seat_drop(peer, co_errmsg());
}

/* The connection is closed right after this, so the frame must leave at once or not at all. */
void seat_farewell(const seats *all, seat *peer, frame_type type, json_t *body)
{
    if (!co_conn_known(peer->conn)) {
        json_decref(body);
        return;
    }
    if (frame_send(peer->conn, type, all->run, all->view, body) == CO_OK)
        co_conn_work(peer->conn); /* it may be gone: nobody needs to know whether this arrived */
}

int seats_joined(const seats *all)
{
    int n = 0;

    for (int i = 0; i < all->n; i++)
        n += all->at[i]->joined && !*all->at[i]->gone;
    return n;
}

seat *seats_number(const seats *all, int number)
{
    for (int i = 0; i < all->n; i++)
        if (all->at[i]->number == number && !*all->at[i]->gone)
            return all->at[i];
    return NULL;
}

static bool from_elsewhere(const seat *peer)
{
    return !peer->local && !co_addr_is_loopback(&peer->from);
}

/* The address that the host advertises; for the server's own machine, the one by which `to`, or any host from
 * elsewhere, came; otherwise the one its connection comes from. Loopback only if all hosts are on this
 * machine. */
void seats_address(const seats *all, const seat *one, const seat *to, char *out, size_t size)
{
    const seat *guest = to && from_elsewhere(to) ? to : NULL;

    for (int i = 0; !guest && i < all->n; i++)
        if (all->at[i]->number >= 0 && from_elsewhere(all->at[i]))
            guest = all->at[i];
    if (*one->advertise)
        snprintf(out, size, "%s", one->advertise);
    else if (from_elsewhere(one))
        snprintf(out, size, "%s", one->who.addr);
    else
        snprintf(out, size, "%s", guest ? guest->via : "127.0.0.1");
}

void seats_talk(const seats *all, bool to_all, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (int i = 0; i < all->n; i++)
        if (all->at[i]->joined && (to_all || all->at[i]->local))
            seat_say(all, all->at[i], FRAME_TALK, json_pack("{so}", "text", co_json_string(text)));
}
