/* begin.c -- from enough hosts to a round: numbers, an address that all reach, a port, BEGIN. */
#include "roster/net/seat_int.h"

#include <stdio.h>

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

void begin_pick(server *srv)
{
    rounds *now = &srv->rounds;
    int n = seats_joined(&srv->seats);

    now->round.number = stage_next_number(srv);
    if (now->round.restarts < srv->handover.least_restarts)
        now->round.restarts = srv->handover.least_restarts;
    srv->job.has_cause = now->counts = now->some_done = now->undone = false;
    number_hosts(srv, n);
    now->round.hosts = n;
    seat *first = seats_number(&srv->seats, 0);
    stage_enter(&srv->job, PICK);
    if (first)
        seat_say(&srv->seats, first, FRAME_PICK, NULL);
}

void begin_port(server *srv, seat *peer, int port)
{
    rounds *now = &srv->rounds;
    int rank = 0, world = 0;

    if (srv->job.stage != PICK || peer->number != 0)
        return;
    if (!port) {
        stage_over(srv, 1, "the first host has no free TCP port for MASTER_PORT");
        return;
    }
    now->round.master_port = port;
    seats_address(&srv->seats, peer, NULL, now->round.master_addr, sizeof now->round.master_addr);
    for (int i = 0; i < srv->seats.n; i++)
        world += srv->seats.at[i]->number >= 0 ? srv->seats.at[i]->terms.nproc : 0;
    now->round.world = world;
    stage_enter(&srv->job, RUN);
    for (int at = 0; at < now->round.hosts; at++) {
        seat *other = seats_number(&srv->seats, at);
        if (!other)
            continue; /* this host was lost in this turn: the sweep stops the round */
        now->round.my_host = at;
        seats_address(&srv->seats, other, NULL, now->round.my_addr, sizeof now->round.my_addr);
        now->round.first_rank = rank;
        rank += other->terms.nproc;
        seat_say(&srv->seats, other, FRAME_BEGIN, round_pack(&now->round));
    }
}

/* The hosts of a lost keeper's round meet again. */
void begin_regather(server *srv, double elapsed_ms)
{
    job *now = &srv->job;
    int done = 0, were = srv->handover.past.hosts - 1, n = seats_joined(&srv->seats);
    bool few = n < srv->terms.min_hosts;
    char text[200];

    for (int i = 0; i < srv->seats.n; i++)
        done += srv->seats.at[i]->joined && srv->seats.at[i]->past_done &&
                srv->seats.at[i]->past_round == srv->handover.past.number;
    if (srv->handover.past.keeper_done && done == were) {
        now->has_cause = false; /* nothing was missing */
        stage_over(srv, 0, "");
    } else if (gather_waits(srv, elapsed_ms, few ? gather_limit_ms(srv) : gather_call_ms(srv), n, were)) {
        return;
    } else if (few) {
        snprintf(text, sizeof text, "%d hosts are left, at least %d are needed", n, srv->terms.min_hosts);
        stage_over(srv, co_failure_status(&now->cause), text);
    } else if (srv->handover.past.restarts > srv->terms.max_restarts)
        stage_over(srv, co_failure_status(&now->cause), "");
    else
        gather_begin(srv);
}
