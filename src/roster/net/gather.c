/* gather.c -- from enough hosts to a round: numbers, an address that all reach, a port, BEGIN. */
#include "roster/net/seat_int.h"

#include <stdio.h>

#include "roster/times_int.h"

/* Hosts that asked for a number get it; the others get the rest in the order of joining. */
static void number_hosts(server *srv, int n)
{
    bool taken[CO_MAX_HOSTS] = {false};

    for (int i = 0; i < srv->seats.n; i++) {
        seat *peer = srv->seats.at[i];
        peer->number = peer->joined && peer->terms.host_rank >= 0 && peer->terms.host_rank < n
                           ? peer->terms.host_rank
                           : -1;
        peer->stopped = peer->done = false;
        if (peer->number >= 0)
            taken[peer->number] = true;
    }
    for (int at = 0; at < n; at++) {
        seat *next = NULL;
        for (int i = 0; i < srv->seats.n && !taken[at]; i++) {
            seat *peer = srv->seats.at[i];
            if (peer->joined && peer->number < 0 && (!next || peer->seq < next->seq))
                next = peer;
        }
        if (next)
            next->number = at;
    }
}

static seat *host_number(const server *srv, int at)
{
    for (int i = 0; i < srv->seats.n; i++)
        if (srv->seats.at[i]->number == at && !*srv->seats.at[i]->gone)
            return srv->seats.at[i];
    return NULL;
}

/* An address of a host that all others reach: the one it advertises; for the server's own machine, the one
 * by which a host from elsewhere came; otherwise the one its connection comes from. Loopback only if all
 * hosts are on this machine. */
static void address_of(const server *srv, const seat *one, char *out, size_t size)
{
    bool here = one->local || co_addr_is_loopback(&one->from);

    snprintf(out, size, "%s", here ? "127.0.0.1" : one->who.addr);
    for (int i = 0; here && i < srv->seats.n; i++) {
        const seat *peer = srv->seats.at[i];
        if (peer->number >= 0 && !peer->local && !co_addr_is_loopback(&peer->from)) {
            snprintf(out, size, "%s", peer->via);
            here = false;
        }
    }
    if (*one->advertise)
        snprintf(out, size, "%s", one->advertise);
}

static void pick(server *srv)
{
    rounds *now = &srv->rounds;
    const handover *from = &srv->handover;
    int n = seats_joined(&srv->seats);

    now->round.number = (now->round.number > from->least_number ? now->round.number : from->least_number) + 1;
    if (now->round.restarts < from->least_restarts)
        now->round.restarts = from->least_restarts;
    now->has_cause = now->counts = now->some_done = now->undone = false;
    srv->seats.view = now->round.number;
    number_hosts(srv, n);
    now->round.hosts = n;
    seat *first = host_number(srv, 0);
    stage_enter(now, PICK);
    if (first)
        seat_say(&srv->seats, first, FRAME_PICK, NULL);
}

void gather_port(server *srv, seat *peer, int port)
{
    rounds *now = &srv->rounds;
    int rank = 0, world = 0;

    if (now->stage != PICK || peer->number != 0)
        return;
    if (!port) {
        stage_over(srv, 1, "the first host has no free TCP port for MASTER_PORT");
        return;
    }
    now->round.master_port = port;
    address_of(srv, peer, now->round.master_addr, sizeof now->round.master_addr);
    for (int i = 0; i < srv->seats.n; i++)
        world += srv->seats.at[i]->number >= 0 ? srv->seats.at[i]->terms.nproc : 0;
    now->round.world = world;
    stage_enter(now, RUN);
    for (int at = 0; at < now->round.hosts; at++) {
        seat *other = host_number(srv, at);
        if (!other)
            continue; /* this host was lost in this turn: the sweep stops the round */
        now->round.my_host = at;
        address_of(srv, other, now->round.my_addr, sizeof now->round.my_addr);
        now->round.first_rank = rank;
        rank += other->terms.nproc;
        seat_say(&srv->seats, other, FRAME_BEGIN, round_pack(&now->round));
    }
}

/* Every host knows how far its clock is off, or did not answer in time. */
static bool clocks_known(const server *srv)
{
    for (int i = 0; i < srv->seats.n; i++) {
        const seat *peer = srv->seats.at[i];
        if (peer->joined && !peer->local && !*peer->gone && peer->clock.best_rtt_ns < 0 &&
            peer->age_ms < CLOCK_MS)
            return false;
    }
    return true;
}

/* A round begins only when no lost host can have made a roster of its own. */
static void pick_if_sure(server *srv)
{
    if (!clocks_known(srv))
        return;
    srv->handover.wants_clearance = stage_unsure(srv);
    if (!srv->handover.wants_clearance)
        pick(srv);
}

/* The hosts of a lost keeper's round meet again. */
static void regather_turn(server *srv, int n, double elapsed_ms, double limit_ms, double last_call_ms)
{
    rounds *now = &srv->rounds;
    int done = 0, were = srv->handover.past.hosts - 1;
    double wait_ms = n < srv->terms.min_hosts ? limit_ms : last_call_ms;
    char text[200];

    for (int i = 0; i < srv->seats.n; i++)
        done += srv->seats.at[i]->joined && srv->seats.at[i]->past_done &&
                srv->seats.at[i]->past_round == srv->handover.past.number;
    if (srv->handover.past.keeper_done && done == were) {
        now->has_cause = false; /* nothing was missing */
        stage_over(srv, 0, "");
    } else if (n < were && n < srv->terms.max_hosts && now->stage_ms < wait_ms) {
        if ((int)(now->stage_ms / RETALK_MS) > (int)((now->stage_ms - elapsed_ms) / RETALK_MS))
            seats_talk(&srv->seats, true,
                       "still waiting for the others to come back: %d of %d hosts are here after %.0f s "
                       "(%.0f s are the limit)",
                       n, were, now->stage_ms / 1000, wait_ms / 1000);
    } else if (n < srv->terms.min_hosts) {
        snprintf(text, sizeof text, "%d hosts are left, at least %d are needed", n, srv->terms.min_hosts);
        stage_over(srv, co_failure_status(&now->cause), text);
    } else if (srv->handover.past.restarts > srv->terms.max_restarts)
        stage_over(srv, co_failure_status(&now->cause), "");
    else
        pick_if_sure(srv);
}

void gather_turn(server *srv, double elapsed_ms)
{
    rounds *now = &srv->rounds;
    int n = seats_joined(&srv->seats), min = srv->terms.min_hosts;
    double limit_ms = 1000 * (srv->where.join_timeout_s > 0 ? srv->where.join_timeout_s : 600);
    double last_call_ms = 1000 * (srv->where.last_call_s > 0 ? srv->where.last_call_s : 30);
    char text[200];

    if (stage_regathers(srv)) {
        regather_turn(srv, n, elapsed_ms, limit_ms, last_call_ms);
        return;
    }
    if (n < min) {
        now->last_call_ms = -1;
        if ((int)(now->stage_ms / RETALK_MS) > (int)((now->stage_ms - elapsed_ms) / RETALK_MS))
            seats_talk(&srv->seats, true,
                       "still waiting: %d of %d hosts are here after %.0f s (%.0f s are the limit)", n, min,
                       now->stage_ms / 1000, limit_ms / 1000);
        if (now->stage_ms < limit_ms)
            return;
        snprintf(text, sizeof text, "only %d of %d hosts came within %.0f s", n, min, limit_ms / 1000);
        stage_over(srv, 1, text);
        return;
    }
    bool first = now->round.number == 0;
    if (first && now->last_call_ms < 0 && n < srv->terms.max_hosts)
        seats_talk(&srv->seats, true, "%d host%s here, enough to start; up to %d may come within %.0f s", n,
                   n == 1 ? " is" : "s are", srv->terms.max_hosts, last_call_ms / 1000);
    now->last_call_ms = now->last_call_ms < 0 ? 0 : now->last_call_ms + elapsed_ms;
    if (!first || n == srv->terms.max_hosts || now->last_call_ms >= last_call_ms)
        pick_if_sure(srv);
}
