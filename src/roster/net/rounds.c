/* rounds.c -- when a round ends, and what follows. How one begins: gather.c.
 *
 *     GATHER --enough hosts--> PICK --host 0 named a port--> RUN --all done--> OVER 0
 *        ^                      | host comes or goes          |  failure, lost host, new host
 *        +----------------------+                             v
 *        +<----restarts left, enough hosts---- STOPPING --all stopped--> OVER (status of the cause)
 *
 * The cause is the first failure, by the server's clock, of all that hosts report until every host has
 * stopped. A lost host failed when its connection ended or, if it fell silent, when its last frame came. A
 * new host does not cost a restart.
 *
 * A server that goes on for a lost keeper (server_resume) begins in GATHER with that loss as the cause. It
 * waits a while for the other hosts of the lost round, and counts rounds and restarts on from the highest
 * numbers that any host brings.
 */
#include "roster/net/seat_int.h"

#include <signal.h>
#include <stdio.h>

#include "roster/times_int.h"

static void consider(server *srv, const co_failure *f)
{
    rounds *now = &srv->rounds;

    if (now->has_cause && now->cause.when_ns <= f->when_ns)
        return;
    now->cause = *f;
    now->has_cause = true;
}

static void stop_failed(server *srv)
{
    char why[128] = "";

    if (srv->rounds.round.restarts < srv->terms.max_restarts)
        snprintf(why, sizeof why, "all workers start again (restart %d of %d)",
                 srv->rounds.round.restarts + 1, srv->terms.max_restarts);
    stage_stop(srv, true, why);
}

void rounds_failed(server *srv, seat *peer, const co_failure *f)
{
    co_failure mine = *f;

    mine.host_rank = peer->number;
    consider(srv, &mine);
    stop_failed(srv);
}

void rounds_lost(server *srv, seat *peer)
{
    rounds *now = &srv->rounds;
    char name[300];

    if (now->stage == OVER)
        return;
    seat_name(name, sizeof name, peer);
    if (peer->local) { /* the carrier of this host closed its seat: this process ends */
        stage_over(srv, CO_EXIT_PREEMPTED, "the host that keeps the roster ended");
        return;
    }
    if (peer->number < 0 || peer->done || now->stage == GATHER ||
        now->stage == PICK) { /* no work of that host is missing */
        seats_talk(&srv->seats, true, "host %s is gone (%s); %d of %d hosts are here", name, peer->gone,
                   seats_joined(&srv->seats), srv->terms.min_hosts);
        if (now->stage == PICK)
            stage_enter(now, GATHER);
        if (now->stage == GATHER && stage_between(srv) && !stage_regathers(srv) &&
            seats_joined(&srv->seats) < srv->terms.min_hosts)
            stage_over(srv, 1, "too few hosts are left to start again");
        return;
    }
    co_failure f = {
        .host_rank = peer->number, .rank = -1, .local_rank = -1, .status = 1 << 8, .when_ns = peer->heard_ns};
    snprintf(f.host, sizeof f.host, "%s", peer->who.name);
    snprintf(f.how, sizeof f.how, "was lost: %.200s", peer->gone);
    snprintf(f.advice, sizeof f.advice, "Is host %.60s (%.60s) up, its network too? Was cohort killed there?",
             peer->who.name, peer->who.addr);
    consider(srv, &f);
    stop_failed(srv);
}

/* Ctrl-C on one host of an elastic job that can go on without it concerns that host alone. SIGTERM and
 * SIGUSR1 are a scheduler's warnings and concern all. */
static bool may_leave(const server *srv, const seat *peer, const co_leave *how)
{
    return how->sig == SIGINT && !peer->local && srv->terms.min_hosts < srv->terms.max_hosts &&
           seats_joined(&srv->seats) > srv->terms.min_hosts && srv->rounds.stage != OVER;
}

/* The job is over for this host alone. */
static void dismiss(server *srv, seat *peer, const co_leave *how)
{
    seat_say(&srv->seats, peer, FRAME_OVER, leave_pack(how));
    peer->joined = false;
    peer->closing = true;
    peer->number = -1;
    peer->age_ms = 0;
}

void rounds_left(server *srv, seat *peer, const co_leave *how)
{
    rounds *now = &srv->rounds;
    char name[300], why[512], text[900];
    co_leave all = *how;

    seat_name(name, sizeof name, peer);
    leave_text(why, sizeof why, how);
    /* the others go on waiting until there are enough hosts */
    if (now->stage == GATHER && !stage_between(srv) && !peer->local) {
        dismiss(srv, peer, how);
        seats_talk(&srv->seats, true, "host %s left before the start: %s; %d of %d hosts are here", name, why,
                   seats_joined(&srv->seats), srv->terms.min_hosts);
        return;
    }
    if (may_leave(srv, peer, how)) {
        now->undone = now->undone || (peer->number >= 0 && !peer->done);
        dismiss(srv, peer, how);
        snprintf(text, sizeof text, "host %s left (%.300s): all workers start again on %d host%s", name, why,
                 seats_joined(&srv->seats), seats_joined(&srv->seats) == 1 ? "" : "s");
        if (now->stage == PICK)
            stage_enter(now, GATHER);
        stage_stop(srv, false, text);
        return;
    }
    /* A failure that had ended the job already keeps its status. */
    if (now->stage == STOPPING && now->has_cause && now->round.restarts >= srv->terms.max_restarts)
        all.status = co_failure_status(&now->cause);
    snprintf(all.text, sizeof all.text, "host %s was asked to end: %.500s", name, why);
    stage_end(srv, &all);
}

void rounds_joined(server *srv, seat *peer)
{
    rounds *now = &srv->rounds;
    char name[300], text[900];
    bool finishing = now->some_done;

    seat_name(name, sizeof name, peer);
    if (now->stage == PICK)
        stage_enter(now, GATHER);
    if (now->stage == GATHER && seats_joined(&srv->seats) < srv->terms.min_hosts && now->round.number == 0 &&
        !peer->local) {
        snprintf(text, sizeof text, "%d of %d hosts are here", seats_joined(&srv->seats), srv->terms.min_hosts);
        seat_say(&srv->seats, peer, FRAME_TALK, json_pack("{so}", "text", co_json_string(text)));
        if (now->stage_ms > FIRST_TALK_MS) /* hosts that start together need no count */
            seats_talk(&srv->seats, false, "%s; the last to come is %s", text, name);
    }
    finishing = finishing || (peer->past_done && peer->past_round == now->round.number);
    if (now->stage != RUN || finishing)
        return; /* it waits for the next round, or to hear that the job is over */
    snprintf(text, sizeof text, "host %s joins: all workers start again on %d hosts", name,
             seats_joined(&srv->seats));
    stage_stop(srv, false, text);
}

static void after_stop(server *srv, int unfinished)
{
    rounds *now = &srv->rounds;
    int n = seats_joined(&srv->seats);
    char text[200] = "";

    if (!now->counts && !unfinished && !now->undone) { /* a host joined when all work was done */
        stage_over(srv, 0, "");
        return;
    }
    if (!now->counts || (now->round.restarts < srv->terms.max_restarts && n >= srv->terms.min_hosts)) {
        now->round.restarts += now->counts;
        stage_enter(now, GATHER);
        return;
    }
    if (stage_unsure(srv))
        /* the lost hosts may have gone on without us: the job is over only if etcd says they have not */
        return;
    if (now->round.restarts < srv->terms.max_restarts)
        snprintf(text, sizeof text, "%d hosts are left, at least %d are needed", n, srv->terms.min_hosts);
    stage_over(srv, co_failure_status(&now->cause), text);
}

void rounds_turn(server *srv, double elapsed_ms)
{
    rounds *now = &srv->rounds;
    int busy = 0, unfinished = 0;

    now->stage_ms += elapsed_ms;
    for (int i = 0; i < srv->seats.n; i++) {
        seat *peer = srv->seats.at[i];
        busy += peer->number >= 0 && !peer->stopped;
        unfinished += peer->number >= 0 && !peer->done;
        double limit_ms = 1000 * peer->grace_s + AFTER_GRACE_MS;
        limit_ms = limit_ms > STOPPING_MS ? limit_ms : STOPPING_MS;
        if (now->stage == STOPPING && peer->number >= 0 && !peer->stopped && now->stage_ms > limit_ms &&
            !*peer->gone)
            snprintf(peer->gone, sizeof peer->gone, "did not end its workers within %.0f s", limit_ms / 1000);
    }
    if (now->stage == GATHER)
        gather_turn(srv, elapsed_ms);
    else if (now->stage == RUN && !unfinished)
        stage_over(srv, 0, "");
    else if (now->stage == STOPPING && !busy)
        after_stop(srv, unfinished);
}
