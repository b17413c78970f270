/* server.c -- the loop of the host that keeps the roster: who is connected, who speaks, who is silent.
 *
 * One thread, nothing blocks. Seats are dropped in one place only (sweep), at the end of a turn, so that
 * no other loop over the seats sees one vanish. Silence is counted in turns of at most LATE_TURN_MS: if
 * this process itself was stopped or starved, no host counts as silent because of it.
 */
#include "roster/net/seat_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "roster/times_int.h"

/* bytes from a connection that has not said yet who it is */
enum { GREETING_MOST = FACTS_MOST + (1 << 16) };

/* By co_terms.views. */
static const policy *const policies[2] = {&policy_rounds, &policy_views};

static seat *sit_down(server *srv, co_conn *conn)
{
    seat *peer = seat_new(&srv->seats, conn);

    if (peer)
        peer->heard_ns = host_clock_ns(&srv->where);
    return peer;
}

co_err server_open(server **out, const co_terms *terms, const co_meet *where, const role *here, co_tls *tls,
                   int local_fd)
{
    server *srv = co_zalloc(sizeof *srv);
    co_conn *mine = NULL;
    co_err err = srv ? co_conn_new(&mine, local_fd, NULL, CO_CONN_SERVER) : CO_ENOMEM;

    if (!srv)
        close(local_fd);
    if (err)
        close(here->listener);
    else
        err = co_gate_open(&srv->gate, here->listener, tls);
    if (err) {
        co_conn_free(mine);
        co_free(srv);
        return err;
    }
    srv->terms = *terms;
    srv->policy = policies[terms->views];
    srv->views.settles_ms = -1;
    srv->where = *where;
    srv->at = here->at;
    srv->seats.run = run_number(terms->run_id);
    srv->job.last_call_ms = -1;
    srv->handover.checked = where->etcd.members != NULL;
    host_own_name(srv->me, sizeof srv->me, where);
    err = facts_parse(&srv->facts, terms->facts);
    srv->slices = facts_slices(srv->facts);
    seat *own = err ? NULL : sit_down(srv, mine);
    if (!own) {
        co_conn_free(mine);
        server_close(srv);
        return err ? err : CO_ENOMEM;
    }
    own->local = true;
    snprintf(own->who.addr, sizeof own->who.addr, "here");
    *out = srv;
    return CO_OK;
}

void server_close(server *srv)
{
    if (!srv)
        return;
    for (int i = 0; i < srv->seats.n; i++)
        seat_free(srv->seats.at[i]);
    co_free(srv->seats.at);
    co_gate_close(srv->gate);
    json_decref(srv->facts);
    explicit_bzero(srv->where.token, sizeof srv->where.token);
    co_free(srv);
}

int server_fds(const server *srv, struct pollfd *fds, int most)
{
    int n = 0;

    fds[n++] = (struct pollfd){.fd = co_gate_fd(srv->gate), .events = POLLIN};
    for (int i = 0; i < srv->seats.n && n < most; i++) {
        co_conn *conn = srv->seats.at[i]->conn;
        fds[n++] = (struct pollfd){.fd = co_conn_fd(conn), .events = (short)co_conn_events(conn)};
    }
    return n;
}

/* --- what hosts say ------------------------------------------------------------------------------------- */
static void hear_body(server *srv, seat *peer, const co_frame *frame, const json_t *body)
{
    co_leave how;

    if (!peer->joined) {
        if (!peer->closing)
            hello_first(srv, peer, frame->type, body);
    } else if (frame->type == FRAME_PONG) {
        clock_pong(srv, peer, body);
    } else if (frame->type == FRAME_LEAVE) {
        leave_unpack(&how, body);
        srv->policy->left(srv, peer, &how);
    } else {
        srv->policy->hear(srv, peer, frame, body);
    }
}

static void hear(server *srv, seat *peer, const co_frame *frame)
{
    json_t *body = NULL;

    if (frame->type != FRAME_LOG && frame_read(&body, frame)) {
        seat_drop(peer, co_errmsg());
        return;
    }
    peer->silent_ms = 0;
    peer->heard_ns = host_clock_ns(&srv->where);
    if (frame->type == FRAME_LOG) {
        if (peer->logs)
            srv->log(srv->log_ctx, frame->body, frame->len);
        return;
    }
    peer->logged = peer->logged || frame->type == FRAME_LOGGED;
    hear_body(srv, peer, frame, body);
    json_decref(body);
}

static void serve(server *srv, seat *peer)
{
    co_frame frame;
    bool got = true;
    co_err err = *peer->gone ? CO_OK : co_conn_work(peer->conn);
    char why[300];

    snprintf(why, sizeof why, "%s", err ? co_errmsg() : "");
    if (!seat_stays(peer) && !peer->local && co_conn_unread(peer->conn) > GREETING_MOST)
        seat_drop(peer, "its first frame is too long");
    while (got && !*peer->gone) {
        if (co_conn_next(peer->conn, &frame, &got))
            seat_drop(peer, co_errmsg());
        else if (got)
            hear(srv, peer, &frame);
    }
    if (err) {
        peer->heard_ns =
            host_clock_ns(&srv->where); /* a connection ends now; a silence began at the last frame */
        seat_drop(peer, why);
    }
}

/* --- who is dropped ------------------------------------------------------------------------------------- */
static void check_silence(server *srv, seat *peer, double elapsed_ms)
{
    double limit_ms = 1000 * (srv->where.lost_after_s > 0 ? srv->where.lost_after_s : 3);
    double beat_ms = limit_ms < 3 * BEAT_MS ? limit_ms / 3 : BEAT_MS;
    bool stays = seat_stays(peer);
    char why[100];

    peer->silent_ms += elapsed_ms;
    peer->age_ms += elapsed_ms;
    if (stays && !peer->local && peer->silent_ms > limit_ms) {
        snprintf(why, sizeof why, "no sign of life for %.1f s", peer->silent_ms / 1000);
        seat_drop(peer, why);
    }
    if (!stays && peer->age_ms > (peer->closing ? REFUSED_MS : HELLO_MS))
        seat_drop(peer, "did not say who it is");
    if (stays && (peer->since_ping_ms += elapsed_ms) >= beat_ms)
        clock_ping(srv, peer);
}

/* The host is gone and has not said that these were all its lines. */
static void note_unlogged(server *srv, const seat *peer)
{
    char stamp[CO_STAMP], line[CO_HOST_NAME + 200];

    if (!peer->logs || peer->logged)
        return;
    co_stamp(stamp, (double)host_clock_ns(&srv->where) / 1e9);
    int n = snprintf(line, sizeof line,
                     "%s [%s:-] what it logged last may be missing here: that host has it in its own log\n",
                     stamp, peer->who.name);
    srv->log(srv->log_ctx, line, (size_t)n);
}

void server_logs_end(server *srv)
{
    for (int i = 0; i < srv->seats.n; i++)
        note_unlogged(srv, srv->seats.at[i]);
}

static void sweep(server *srv)
{
    seats *all = &srv->seats;

    for (int i = 0; i < all->n;) {
        seat *peer = all->at[i];
        if (!*peer->gone) {
            i++;
            continue;
        }
        memmove(&all->at[i], &all->at[i + 1], (size_t)(--all->n - i) * sizeof *all->at);
        note_unlogged(srv, peer);
        if (peer->joined) {
            srv->handover.losses++;
            srv->policy->lost(srv, peer);
        }
        seat_free(peer);
        i = 0; /* sending this to the others may have lost one more */
    }
}

/* Reports hosts that tried to join with a wrong token: one line every RETALK_MS at most. */
static void tell_wrong_tokens(server *srv, double elapsed_ms)
{
    co_gate_counts n = co_gate_count(srv->gate);
    char from[CO_NAME_MOST];

    srv->wrong_token_ms += elapsed_ms;
    if (n.wrong_token == srv->wrong_token_told || (srv->wrong_token_told && srv->wrong_token_ms < RETALK_MS))
        return;
    co_addr_text(from, sizeof from, &n.wrong_from);
    seats_talk(&srv->seats, false,
               "step token: %s tried to join with another token and was sent away (%llu so far)", from,
               (unsigned long long)n.wrong_token);
    srv->wrong_token_told = n.wrong_token;
    srv->wrong_token_ms = 0;
}

/* Without TLS anybody who sends a frame's head gets in. If too many have not said who they are, the oldest
 * goes. */
static void make_room(server *srv)
{
    seat *oldest = NULL;
    int n = 0;

    for (int i = 0; i < srv->seats.n; i++) {
        seat *peer = srv->seats.at[i];
        if (seat_stays(peer) || peer->local || *peer->gone)
            continue;
        n++;
        if (!oldest || peer->age_ms > oldest->age_ms)
            oldest = peer;
    }
    if (n >= CO_STRANGERS)
        seat_drop(oldest, "too many others came");
}

/* --- the loop ------------------------------------------------------------------------------------------- */
void server_turn(server *srv, double elapsed_ms)
{
    seats *all = &srv->seats;

    for (co_conn *conn; (conn = co_gate_turn(srv->gate));) {
        make_room(srv);
        if (all->n >= CO_MAX_HOSTS + CO_STRANGERS || !sit_down(srv, conn))
            co_conn_free(conn);
    }
    for (int i = 0; i < all->n; i++)
        serve(srv, all->at[i]);
    for (int i = 0; i < all->n; i++)
        check_silence(srv, all->at[i], elapsed_ms);
    tell_wrong_tokens(srv, elapsed_ms);
    sweep(srv);
    srv->policy->turn(srv, elapsed_ms);
}
