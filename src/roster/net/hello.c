/* hello.c -- the first frame of a connection says what it wants: a seat in the job (HELLO), to know what
 * runs (ASK), or to say that it does not join (LEAVE). A host that is refused gets the reason, which the host
 * that keeps the roster also prints.
 */
#include "roster/net/seat_int.h"

#include <stdio.h>
#include <string.h>

static void refuse(server *srv, seat *peer, const char *to_it, const char *to_us)
{
    seat_say(&srv->seats, peer, FRAME_REFUSED,
             json_pack("{so si}", "text", co_json_string(to_it), "over", srv->job.stage == OVER));
    peer->closing = true;
    seats_talk(&srv->seats, false, "%s", to_us);
}

static const seat *holder_of(const server *srv, const seat *peer, int host_rank)
{
    for (int i = 0; i < srv->seats.n && host_rank >= 0; i++) {
        const seat *other = srv->seats.at[i];
        if (other != peer && other->joined && !*other->gone && other->terms.host_rank == host_rank)
            return other;
    }
    return NULL;
}

/* Terms that agree are not enough: the rank may be taken, or the job may be full. */
static bool has_place(server *srv, const seat *peer, char *to_it, char *to_us, size_t size)
{
    int rank = peer->terms.host_rank, last = srv->terms.max_hosts - 1;
    bool over = srv->job.stage == OVER;
    const seat *holder = holder_of(srv, peer, rank);
    char name[300], other[300];

    seat_name(name, sizeof name, peer);
    if (holder) {
        seat_name(other, sizeof other, holder);
        snprintf(to_it, size, "--node-rank=%d is taken by host %s: give each host its own, 0 to %d", rank,
                 other, last);
        snprintf(to_us, size, "host %s was refused: it says --node-rank=%d, and so does host %s", name, rank,
                 other);
        return false;
    }
    if (rank > last) {
        snprintf(to_it, size, "--node-rank=%d of --nnodes=%d: ranks go from 0 to %d", rank, last + 1, last);
        snprintf(to_us, size, "host %s was refused: it says --node-rank=%d, ranks go from 0 to %d", name,
                 rank, last);
        return false;
    }
    if (seats_joined(&srv->seats) > last || over) {
        snprintf(to_it, size, "the job %.127s at host %.255s %s", srv->terms.run_id, srv->me,
                 over ? "is over"
                      : "has all its hosts already: is one of them started twice, or --nnodes too small?");
        snprintf(to_us, size, "host %s was refused: %s", name,
                 over ? "the job is over" : "the job has all its hosts");
        return false;
    }
    return true;
}

static void read_hello(seat *peer, const json_t *body)
{
    terms_unpack(&peer->terms, body);
    field_text(peer->who.name, sizeof peer->who.name, body, "host");
    field_text(peer->via, sizeof peer->via, body, "via");
    field_text(peer->advertise, sizeof peer->advertise, body, "advertise");
    peer->grace_s = (double)field_int(body, "grace", 0, INT32_MAX, 0);
    peer->past_round = field_int(body, "round", 0, INT32_MAX, 0);
    peer->past_done = field_int(body, "done", 0, 1, 0);
}

static void hello(server *srv, seat *peer, const json_t *body)
{
    handover *from = &srv->handover;
    char to_it[1024], to_us[1024];
    host_name me = {{0}};

    read_hello(peer, body);
    snprintf(me.name, sizeof me.name, "%s", srv->me);
    co_endpoint_text(me.addr, sizeof me.addr, peer->via, srv->at.port);
    if ((srv->job.stage != OVER &&
         !terms_agree(to_it, to_us, sizeof to_it, &srv->terms, &peer->terms, &me, &peer->who)) ||
        !has_place(srv, peer, to_it, to_us, sizeof to_it) ||
        (srv->policy->admit && !srv->policy->admit(srv, peer, body, to_it, to_us, sizeof to_it))) {
        refuse(srv, peer, to_it, to_us);
        return;
    }
    peer->joined = true;
    peer->logs = srv->log && !peer->local;
    peer->seq = srv->seats.next_seq++;
    if (peer->past_round > from->least_number)
        from->least_number = peer->past_round;
    int used = (int)field_int(body, "used", 0, INT32_MAX, 0);
    if (used > from->least_restarts)
        from->least_restarts = used < srv->terms.max_restarts ? used : srv->terms.max_restarts;
    seat_say(&srv->seats, peer, FRAME_WELCOME,
             json_pack("{so si si}", "host", co_json_string(srv->me), "logs", peer->logs, "place",
                       peer->member.place));
    clock_ping(srv, peer);
    srv->policy->joined(srv, peer);
}

/* `cohort join` wants to know what runs. It is not a seat of the job: it joins by another connection. */
static void ask(server *srv, seat *peer, const json_t *body)
{
    const char *plan = srv->where.plan;
    char to_us[600], name[300];

    field_text(peer->who.name, sizeof peer->who.name, body, "host");
    if (plan) { /* if the connection breaks here, its next turn finds out */
        co_conn_send(
            peer->conn,
            &(co_frame){.type = FRAME_PLAN, .run = srv->seats.run, .body = plan, .len = (uint32_t)strlen(plan)});
        return;
    }
    seat_name(name, sizeof name, peer);
    snprintf(to_us, sizeof to_us,
             "host %s was refused: it runs `cohort join`, and this job was not started by `cohort host`", name);
    refuse(srv, peer,
           "the job was not started by `cohort host`: run the same `cohort launch` line here as there", to_us);
}

/* The host was to take part but cannot, and says why. */
static void decline(server *srv, seat *peer, const json_t *body)
{
    char why[512], name[300];

    field_text(why, sizeof why, body, "text");
    if (!peer->who.name[0])
        field_text(peer->who.name, sizeof peer->who.name, body, "host");
    seat_name(name, sizeof name, peer);
    seats_talk(&srv->seats, false, "host %s does not join: %s", name, why);
    peer->closing = true;
}

void hello_first(server *srv, seat *peer, frame_type type, const json_t *body)
{
    if (type == FRAME_HELLO)
        hello(srv, peer, body);
    else if (type == FRAME_ASK)
        ask(srv, peer, body);
    else if (type == FRAME_LEAVE)
        decline(srv, peer, body);
}
