/* views.c -- a job of views: when a view ends, and what follows. How one begins: views_change.c.
 *
 *     GATHER --enough hosts--> FREEZING --all positions--> RUN --all members ended--> OVER 0
 *                              |   ^  ^                     |
 *     too few are left         v   |  +---------------------+  a change (below)
 *     of a run that began    WAITING   more have joined
 *
 * A change: a host is lost, leaves or joins; a newcomer holds the whole state; a connection between two
 * members is cut; the deal no longer fits the hosts' speeds; a member cannot read a sample of its slices.
 * A host that is lost, leaves or joins while a change is under way makes it begin again.
 *
 * The deal follows the hosts' speeds: a weight that a host reports leads to a change if steps would become
 * faster by a tenth, and the view is at least REDEAL_MS old.
 */
#include "roster/net/seat_int.h"

#include <stdio.h>

#include "roster/times_int.h"

/* Whether all members have ended, in this view or at the positions where they wait; there is at least one. */
static bool all_ended(const server *srv)
{
    bool runs = srv->job.stage == RUN;
    int n = 0, over = 0;

    for (int i = 0; i < srv->seats.n; i++) {
        const seat *peer = srv->seats.at[i];
        n += peer->number >= 0;
        over += peer->number >= 0 && (runs ? peer->done : peer->member.known && peer->member.at.ended);
    }
    return n > 0 && n == over;
}

static void joined(server *srv, seat *peer)
{
    stage now = srv->job.stage;
    char name[300];

    seat_name(name, sizeof name, peer);
    if (now == GATHER) {
        gather_joined(srv, peer);
    } else if (now == WAITING && !views_enough(srv)) {
        views_wait(srv, peer);
        seats_talk(&srv->seats, true, "host %s joins; %d of %d hosts are here", name,
                   seats_joined(&srv->seats), srv->terms.least_hosts);
    } else if (now != OVER) {
        views_want(&srv->views, "host %s joins", name);
    }
}

/* A member is gone, and is out of the list. `how` is for people. */
static void go_on_without(server *srv, const seat *peer, const char *how)
{
    char name[300];

    seat_name(name, sizeof name, peer);
    if (srv->job.stage == RUN && all_ended(srv))
        stage_over(srv, 0, "");
    else if (srv->job.stage == WAITING && !all_ended(srv))
        seats_talk(&srv->seats, true, "host %s %s; %d of %d hosts are here", name, how,
                   seats_joined(&srv->seats), srv->terms.least_hosts);
    else
        views_want(&srv->views, "host %s %s", name, how);
}

/* A host that was only silent learns that the others went on. With etcd it finds them again by itself. */
static void say_farewell(server *srv, seat *peer)
{
    co_leave how = {.status = CO_EXIT_PREEMPTED};

    if (srv->handover.checked)
        return;
    snprintf(
        how.text, sizeof how.text,
        "the run goes on without this host: %.250s. If it does not come back by itself, start it here again: "
        "it joins as a new host",
        peer->gone);
    seat_farewell(&srv->seats, peer, FRAME_OVER, leave_pack(&how));
}

static void lost(server *srv, seat *peer)
{
    char how[400];

    if (srv->job.stage == OVER)
        return;
    if (peer->local) { /* its agent does not answer, or this process ends */
        snprintf(how, sizeof how, "the host that keeps the roster ended: %.300s", peer->gone);
        stage_over(srv, CO_EXIT_PREEMPTED, how);
    } else if (srv->job.stage == GATHER) {
        gather_gone(srv, peer);
    } else {
        say_farewell(srv, peer);
        snprintf(how, sizeof how, "is lost: %.300s", peer->gone);
        go_on_without(srv, peer, how);
    }
}

/* The others go on without this host. The keeper's host takes the job with it. */
static void left(server *srv, seat *peer, const co_leave *how)
{
    char why[512], text[600], name[300];
    co_leave all = *how;

    if (srv->job.stage == OVER)
        return;
    leave_text(why, sizeof why, how);
    seat_name(name, sizeof name, peer);
    if (peer->local) {
        snprintf(all.text, sizeof all.text, "host %s, which keeps the roster, was asked to end: %.500s", name,
                 why);
        stage_end(srv, &all);
    } else if (srv->job.stage == GATHER) {
        gather_left(srv, peer, how);
    } else {
        views_dismiss(srv, peer, how);
        snprintf(text, sizeof text, "left: %s", why);
        go_on_without(srv, peer, text);
    }
}

/* --- what members say ----------------------------------------------------------------------------------- */
static void whole(server *srv, seat *peer, const json_t *body)
{
    char name[300];

    (void)body;
    seat_name(name, sizeof name, peer);
    if (!(srv->views.view.deal.whole >> peer->number & 1) && !srv->views.wanted)
        views_want(&srv->views, "host %s holds the whole state", name);
}

static void cut(server *srv, seat *peer, const json_t *body)
{
    char why[200];

    field_text(why, sizeof why, body, "text");
    accuse(srv, peer, (int)field_int(body, "place", 0, CO_MAX_MEMBERS - 1, -1), why);
}

static void ended(server *srv, seat *peer, const json_t *body)
{
    (void)srv, (void)body;
    peer->done = true;
}

static void unreadable(server *srv, seat *peer, const json_t *body)
{
    uint32_t unit = (uint32_t)field_int(body, "unit", 1, UINT32_MAX - 1, 0);
    char name[300];

    if (!unit || unit <= peer->member.unreadable)
        return;
    peer->member.unreadable = unit;
    seat_name(name, sizeof name, peer);
    views_want(&srv->views, "host %s cannot read a sample, which is offered to the others", name);
}

static void weigh(server *srv, seat *peer, const json_t *body)
{
    speed_unpack(&peer->member.speed, body);
    if (!peer->member.speed.weight)
        return;
    peer->member.weight = peer->member.speed.weight;
    srv->views.weighed = true;
    slow_check(srv, peer);
}

static const struct {
    frame_type type;
    stage stage; /* in which it counts */
    void (*hear)(server *srv, seat *peer, const json_t *body);
} frames[] = {{FRAME_POSITION, FREEZING, views_position},
              {FRAME_WHOLE, RUN, whole},
              {FRAME_CUT, RUN, cut},
              {FRAME_ENDED, RUN, ended},
              {FRAME_UNREADABLE, RUN, unreadable},
              {FRAME_WEIGH, RUN, weigh}};

/* Frames of an earlier view, or of a host that is not in this one, are dropped. */
static void hear(server *srv, seat *peer, const co_frame *frame, const json_t *body)
{
    if (field_int(body, "number", 1, INT32_MAX, -1) != srv->seats.view || peer->number < 0)
        return;
    for (size_t i = 0; i < CO_COUNT(frames); i++)
        if (frames[i].type == frame->type && frames[i].stage == srv->job.stage)
            frames[i].hear(srv, peer, body);
}

/* --- time ----------------------------------------------------------------------------------------------- */
/* Whether the hosts' speeds ask for another deal. */
static bool deal_is_off(const server *srv)
{
    const co_deal *deal = &srv->views.view.deal;
    co_deal next = *deal;
    int weight[CO_MAX_MEMBERS] = {0};

    if (views_weights(srv, weight) != deal->hosts)
        return false;
    for (int h = 0; h < deal->hosts; h++)
        weight[h] = deal->whole >> h & 1 ? weight[h] : 0;
    co_deal_leaves(&next, srv->slices, weight);
    return co_deal_time(&next, weight) < CO_DEAL_GAIN * co_deal_time(deal, weight);
}

static void run_turn(server *srv)
{
    views *now = &srv->views;

    if (all_ended(srv)) {
        stage_over(srv, 0, "");
    } else if (now->wanted) {
        views_freeze(srv);
    } else if (now->weighed && now->view_ms >= REDEAL_MS) {
        now->weighed = false;
        if (deal_is_off(srv))
            views_want(now, "the hosts' speeds have changed");
    }
}

static void waiting_turn(server *srv)
{
    double limit_ms = gather_limit_ms(srv);
    char text[300];

    if (srv->views.wanted) {
        views_freeze(srv);
    } else if (srv->job.stage_ms > limit_ms) {
        snprintf(
            text, sizeof text,
            "%d of %d hosts were here, and no other joined within %.0f s: start the run again, it continues "
            "from its last checkpoint",
            seats_joined(&srv->seats), srv->terms.least_hosts, limit_ms / 1000);
        stage_over(srv, CO_EXIT_PREEMPTED, text);
    }
}

static void turn(server *srv, double elapsed_ms)
{
    srv->job.stage_ms += elapsed_ms;
    srv->views.view_ms += elapsed_ms;
    accuse_turn(srv, elapsed_ms);
    if (srv->job.stage == GATHER)
        gather_turn(srv, elapsed_ms);
    else if (srv->job.stage == FREEZING && srv->views.wanted)
        views_freeze(srv);
    else if (srv->job.stage == FREEZING)
        views_change(srv);
    else if (srv->job.stage == WAITING)
        waiting_turn(srv);
    else if (srv->job.stage == RUN)
        run_turn(srv);
}

/* The hosts of a lost keeper meet again. Too few may be here: then they wait, frozen. */
static void regather(server *srv, double elapsed_ms)
{
    int n = seats_joined(&srv->seats), were = srv->handover.past.hosts - 1;

    if (gather_waits(srv, elapsed_ms, gather_call_ms(srv), n, were))
        return;
    snprintf(srv->views.why, sizeof srv->views.why, "the host that kept the roster is lost");
    gather_begin(srv);
}

const policy policy_views = {.name = "views",
                             .admit = views_admit,
                             .joined = joined,
                             .lost = lost,
                             .left = left,
                             .hear = hear,
                             .turn = turn,
                             .begin = views_freeze,
                             .regather = regather};
