/* rounds.c -- when a round ends, and what follows. How one begins: begin.c.
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
    job *now = &srv->job;

    if (now->has_cause && now->cause.when_ns <= f->when_ns)
        return;
    now->cause = *f;
    now->has_cause = true;
}

/* Ends the round, if one runs. */
static void stop(server *srv, bool counts, const char *why)
{
    srv->rounds.counts = srv->rounds.counts || counts;
    if (srv->job.stage != RUN)
        return;
    stage_enter(&srv->job, STOPPING);
    for (int i = 0; i < srv->seats.n; i++)
        if (srv->seats.at[i]->number >= 0) {
            json_t *body = json_pack("{so}", "text", co_json_string(why));
            stage_add_cause(&srv->job, body);
            seat_say(&srv->seats, srv->seats.at[i], FRAME_STOP, body);
        }
}

/* A round has run, here or before a lost keeper. */
static bool has_run(const server *srv)
{
    return srv->rounds.round.world > 0 || srv->handover.past.number > 0;
}

static void stop_failed(server *srv)
{
    char why[128] = "";

    if (srv->rounds.round.restarts < srv->terms.max_restarts)
        snprintf(why, sizeof why, "all workers start again (restart %d of %d)",
                 srv->rounds.round.restarts + 1, srv->terms.max_restarts);
    stop(srv, true, why);
}

static void failed(server *srv, seat *peer, const co_failure *f)
{
    co_failure mine = *f;

    mine.host_rank = peer->number;
    consider(srv, &mine);
    stop_failed(srv);
}

static void lost(server *srv, seat *peer)
{
    job *now = &srv->job;

    if (now->stage == OVER)
        return;
    if (peer->local) { /* the carrier of this host closed its seat: this process ends */
        stage_over(srv, CO_EXIT_PREEMPTED, "the host that keeps the roster ended");
        return;
    }
    if (peer->number < 0 || peer->done || now->stage == GATHER ||
        now->stage == PICK) { /* no work of that host is missing */
        gather_gone(srv, peer);
        if (now->stage == PICK)
            stage_enter(now, GATHER);
        if (now->stage == GATHER && has_run(srv) && !stage_regathers(srv) &&
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
           seats_joined(&srv->seats) > srv->terms.min_hosts && srv->job.stage != OVER;
}

static void left(server *srv, seat *peer, const co_leave *how)
{
    job *now = &srv->job;
    char name[300], why[512], text[900];
    co_leave all = *how;

    seat_name(name, sizeof name, peer);
    leave_text(why, sizeof why, how);
    if (now->stage == GATHER && !has_run(srv) && !peer->local) {
        gather_left(srv, peer, how); /* the others go on waiting until there are enough hosts */
        return;
    }
    if (may_leave(srv, peer, how)) {
        srv->rounds.undone = srv->rounds.undone || (peer->number >= 0 && !peer->done);
        stage_dismiss(srv, peer, how);
        snprintf(text, sizeof text, "host %s left (%.300s): all workers start again on %d host%s", name, why,
                 seats_joined(&srv->seats), seats_joined(&srv->seats) == 1 ? "" : "s");
        if (now->stage == PICK)
            stage_enter(now, GATHER);
        stop(srv, false, text);
        return;
    }
    /* A failure that had ended the job already keeps its status. */
    if (now->stage == STOPPING && now->has_cause && srv->rounds.round.restarts >= srv->terms.max_restarts)
        all.status = co_failure_status(&now->cause);
    snprintf(all.text, sizeof all.text, "host %s was asked to end: %.500s", name, why);
    stage_end(srv, &all);
}

static void joined(server *srv, seat *peer)
{
    job *now = &srv->job;
    char name[300], text[900];
    bool finishing = srv->rounds.some_done || (peer->past_done && peer->past_round == srv->rounds.round.number);

    seat_name(name, sizeof name, peer);
    if (now->stage == PICK)
        stage_enter(now, GATHER);
    if (now->stage == GATHER)
        gather_joined(srv, peer);
    if (now->stage != RUN || finishing)
        return; /* it waits for the next round, or to hear that the job is over */
    snprintf(text, sizeof text, "host %s joins: all workers start again on %d hosts", name,
             seats_joined(&srv->seats));
    stop(srv, false, text);
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
        stage_enter(&srv->job, GATHER);
        return;
    }
    if (stage_unsure(srv))
        /* the lost hosts may have gone on without us: the job is over only if etcd says they have not */
        return;
    if (now->round.restarts < srv->terms.max_restarts)
        snprintf(text, sizeof text, "%d hosts are left, at least %d are needed", n, srv->terms.min_hosts);
    stage_over(srv, co_failure_status(&srv->job.cause), text);
}

static void turn(server *srv, double elapsed_ms)
{
    job *now = &srv->job;
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

/* --- what hosts say ------------------------------------------------------------------------------------- */
static void done(server *srv, seat *peer)
{
    peer->done = srv->rounds.some_done = true;
    for (int i = 0; i < srv->seats.n && peer->local; i++)
        if (srv->seats.at[i]->joined)
            clock_ping(srv, srv->seats.at[i]); /* all learn at once that the keeper's part is done */
}

/* Frames of an earlier round, or of a host that is not in this one, are dropped. */
static void hear(server *srv, seat *peer, const co_frame *frame, const json_t *body)
{
    co_failure failure;

    if (frame->view != (uint32_t)srv->rounds.round.number || peer->number < 0)
        return;
    if (frame->type == FRAME_PORT) {
        begin_port(srv, peer, (int)field_int(body, "port", 1, 65535, 0));
    } else if (frame->type == FRAME_DONE) {
        done(srv, peer);
    } else if (frame->type == FRAME_STOPPED) {
        peer->stopped = true;
    } else if (frame->type == FRAME_FAILED) {
        failure_unpack(&failure, body);
        failed(srv, peer, &failure);
    }
}

const policy policy_rounds = {.name = "rounds",
                              .joined = joined,
                              .lost = lost,
                              .left = left,
                              .hear = hear,
                              .turn = turn,
                              .begin = begin_pick,
                              .regather = begin_regather};
