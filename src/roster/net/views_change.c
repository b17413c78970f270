/* views_change.c -- from one view to the next: FREEZE to all hosts, everybody's position, VIEW.
 *
 * Who is in: every host that has joined. If one is lost or another joins meanwhile, the change begins again
 * with the next number; a host stays frozen until a VIEW with the number for which it froze last. Who
 * computes, gives and feeds what follows from the positions alone (comm/view.h).
 *
 * What a host brings counts only if it was a member of the last view. Once the run has begun, any other host
 * is fed like one that has nothing: its state may be of a checkpoint or of steps that the run has redone.
 * Before the first view all positions count, so one host with a checkpoint is enough.
 *
 * A view needs a member of the last view that holds the whole state, and least_hosts members unless all have
 * ended. With etcd, no view begins before etcd has confirmed that the lost hosts cannot go on without us.
 */
#include "roster/net/seat_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "roster/times_int.h"

void views_want(views *all, const char *fmt, ...)
{
    size_t len = strlen(all->why);
    va_list ap;

    all->wanted = true;
    if (len + 3 > sizeof all->why)
        return;
    if (len)
        len += (size_t)snprintf(all->why + len, sizeof all->why - len, "; ");
    va_start(ap, fmt);
    vsnprintf(all->why + len, sizeof all->why - len, fmt, ap);
    va_end(ap);
}

/* The number of the last view, of this keeper or of the one before it; 0: the run has not begun. */
static int64_t last_view(const server *srv)
{
    int64_t last = srv->views.decided;

    for (int i = 0; i < srv->seats.n; i++)
        if (srv->seats.at[i]->joined && srv->seats.at[i]->member.past_view > last)
            last = srv->seats.at[i]->member.past_view;
    return last > srv->handover.past.view ? last : srv->handover.past.view;
}

/* After a lost keeper, a host that froze for the last view was to be in it, whether or not it heard that it
 * began. */
static bool was_member(const server *srv, const seat *peer)
{
    return srv->views.decided ? peer->member.in_view : peer->member.past_frozen >= last_view(srv);
}

bool views_enough(const server *srv)
{
    return seats_joined(&srv->seats) >= srv->terms.least_hosts;
}

/* --- who is in ------------------------------------------------------------------------------------------ */
static seat *next_without_rank(const seats *all, int64_t after)
{
    seat *next = NULL;

    for (int i = 0; i < all->n; i++) {
        seat *peer = all->at[i];
        if (peer->joined && !*peer->gone && peer->terms.host_rank < 0 && peer->seq > after &&
            (!next || peer->seq < next->seq))
            next = peer;
    }
    return next;
}

static seat *with_rank(const seats *all, int rank)
{
    for (int i = 0; i < all->n; i++)
        if (all->at[i]->joined && !*all->at[i]->gone && all->at[i]->terms.host_rank == rank)
            return all->at[i];
    return NULL;
}

/* In the order of --node-rank. Hosts without a rank fill the gaps in the order of joining. */
static void order_members(server *srv)
{
    int64_t after = -1;
    int n = 0;

    for (int i = 0; i < srv->seats.n; i++)
        srv->seats.at[i]->number = -1;
    for (int rank = 0; rank < srv->terms.max_hosts && n < CO_MAX_MEMBERS; rank++) {
        seat *peer = with_rank(&srv->seats, rank);
        if (!peer && (peer = next_without_rank(&srv->seats, after)))
            after = peer->seq;
        if (peer)
            peer->number = n++;
    }
}

void views_freeze(server *srv)
{
    views *now = &srv->views;

    now->wanted = false;
    now->settles_ms = -1;
    if (!last_view(srv) && seats_joined(&srv->seats) < srv->terms.min_hosts) {
        stage_enter(&srv->job, GATHER);
        return;
    }
    stage_next_number(srv);
    stage_enter(&srv->job, FREEZING);
    order_members(srv);
    for (int i = 0; i < srv->seats.n; i++) {
        seat *peer = srv->seats.at[i];
        peer->member.known = peer->member.awaits = false;
        if (peer->number >= 0)
            seat_say(&srv->seats, peer, FRAME_FREEZE,
                     json_pack("{si so}", "place", peer->member.place, "text", co_json_string(now->why)));
    }
}

void views_position(server *srv, seat *peer, const json_t *body)
{
    int weight;

    if (srv->job.stage != FREEZING || peer->member.known ||
        position_unpack(&peer->member.at, &weight, body) != CO_OK)
        return;
    peer->member.known = true;
    if (weight)
        peer->member.weight = weight;
}

/* --- what is decided ------------------------------------------------------------------------------------ */
int views_weights(const server *srv, int *weight)
{
    int64_t sum = 0, ranks = 0;
    int n = 0;

    for (int i = 0; i < srv->seats.n; i++) {
        const seat *peer = srv->seats.at[i];
        if (peer->number < 0 || !peer->member.weight)
            continue;
        sum += peer->member.weight;
        ranks += peer->terms.nproc;
    }
    for (int i = 0; i < srv->seats.n; i++) {
        const seat *peer = srv->seats.at[i];
        if (peer->number < 0)
            continue;
        /* a host whose speed is not known is taken to be as fast as the others */
        int64_t guess = ranks ? sum * peer->terms.nproc / ranks : peer->terms.nproc;
        guess = guess < 1 ? 1 : guess > WEIGHT_MOST ? WEIGHT_MOST : guess;
        weight[peer->number] = peer->member.weight ? peer->member.weight : (int)guess;
        n++;
    }
    return n;
}

/* Positions by number, as far as they count. False: one is missing. */
static bool collect(const server *srv, co_position *at, uint8_t *id, int n)
{
    bool begun = last_view(srv) > 0;

    for (int h = 0; h < n; h++) {
        const seat *peer = seats_number(&srv->seats, h);
        if (!peer || !peer->member.known)
            return false;
        at[h] = peer->member.at;
        id[h] = (uint8_t)peer->member.place;
        if (begun && !was_member(srv, peer))
            at[h] = (co_position){.fresh = true};
    }
    return true;
}

/* It may be cut off and not hear this, so it counts as lost. */
void views_dismiss(server *srv, seat *peer, const co_leave *how)
{
    srv->handover.losses++;
    stage_dismiss(srv, peer, how);
}

/* Members that cannot be in the next view are sent away, and the change begins again. */
static bool send_unfit_away(server *srv, const co_position *at, int n)
{
    uint64_t unfit = co_view_unfit(n, at);
    co_leave how = {.status = CO_EXIT_PREEMPTED,
                    .text =
                        "the run has gone on, or has ended, without this host's last steps. If it goes on, "
                        "start this host again: it joins as a new one"};
    char name[300];

    for (int h = 0; h < n; h++) {
        seat *peer = unfit >> h & 1 ? seats_number(&srv->seats, h) : NULL;
        if (!peer)
            continue;
        if (peer->local) {
            stage_end(srv, &how); /* the roster ends with its host */
            return true;
        }
        seat_name(name, sizeof name, peer);
        views_dismiss(srv, peer, &how);
        views_want(&srv->views, "host %s is sent away", name);
    }
    return unfit != 0;
}

static void fill_member(co_member *out, const seat *peer)
{
    *out = (co_member){.id = peer->member.place,
                       .birth = peer->terms.birth,
                       .port = peer->terms.bulk_port,
                       .ranks = peer->terms.nproc};
    snprintf(out->name, sizeof out->name, "%s", peer->who.name);
}

/* The view as `peer` gets it: with its own number, and with addresses that it reaches. */
static void send_view(const server *srv, co_roster_view *all, seat *peer)
{
    all->view.deal.me = peer->number;
    for (int h = 0; h < all->view.deal.hosts; h++) {
        const seat *member = seats_number(&srv->seats, h);
        if (member)
            seats_address(&srv->seats, member, peer, all->member[h].addr, sizeof all->member[h].addr);
    }
    seat_say(&srv->seats, peer, FRAME_VIEW, view_pack(all));
}

/* "view 3: 2 hosts, a has 8 slices, b has 8 (host c is lost: ...)" */
static void announce(const server *srv, const co_roster_view *all)
{
    enum { NAMED = 8 }; /* members with their slices in the line */
    const co_deal *deal = &all->view.deal;
    const char *why = srv->views.why;
    bool unit = false; /* the word "slices" has been written */
    co_str line = {0};

    if (srv->terms.max_hosts == 1)
        return;
    co_str_addf(&line, "view %u: %d host%s", deal->view, deal->hosts, deal->hosts == 1 ? "" : "s");
    for (int h = 0; h < deal->hosts && h < NAMED; h++) {
        int leaves = deal->from[h + 1] - deal->from[h];
        co_str_addf(&line, ", %.60s ", all->member[h].name);
        if (deal->whole >> h & 1) {
            co_str_addf(&line, "has %d%s", leaves, unit ? "" : leaves == 1 ? " slice" : " slices");
            unit = true;
        } else {
            co_str_add(&line, "gets the state first");
        }
    }
    if (deal->hosts > NAMED)
        co_str_addf(&line, " and %d more", deal->hosts - NAMED);
    if (*why)
        co_str_addf(&line, " (%s)", why);
    seats_talk(&srv->seats, true, "%s", co_str_text(&line));
    co_str_fini(&line);
}

static void begin_view(server *srv, const co_view *view, const co_position *at)
{
    views *now = &srv->views;
    co_roster_view all = {.view = *view};

    for (int h = 0; h < view->deal.hosts; h++)
        fill_member(&all.member[h], seats_number(&srv->seats, h));
    announce(srv, &all);
    for (int i = 0; i < srv->seats.n; i++) {
        seat *peer = srv->seats.at[i];
        int h = peer->number;
        peer->member.in_view = h >= 0;
        if (h < 0)
            continue;
        /* one that has ended and lacks nothing has nothing left to do */
        peer->done = at[h].ended && view->giver[h] < 0 && view->feeder[h] < 0;
        send_view(srv, &all, peer);
    }
    now->view = *view;
    now->decided = srv->seats.view;
    now->view_ms = 0;
    now->weighed = false;
    now->why[0] = '\0';
    stage_enter(&srv->job, RUN);
}

/* Rule 9 of docs/decisions/0017: somebody who was there holds the whole state. */
static bool state_survives(const co_position *at, int n)
{
    for (int h = 0; h < n; h++)
        if (at[h].whole && !at[h].fresh)
            return true;
    return false;
}

/* The next unit has a sample that some members cannot read: the others get all slices of it. These members
 * have slices again in the first view that follows the hosts' speeds. If no member is left that has not
 * tried, the sample counts as unreadable. */
static co_err pass_unreadable(const server *srv, co_view *view, const uint8_t *id, const co_position *at,
                              int *weight)
{
    int n = view->deal.hosts, tried = 0, left = 0;

    for (int h = 0; h < n; h++) {
        bool cannot = seats_number(&srv->seats, h)->member.unreadable == view->held + 1;
        tried += cannot;
        left += !cannot && (view->deal.whole >> h & 1);
        weight[h] = cannot ? 0 : weight[h];
    }
    if (tried == 0)
        return CO_OK;
    if (left == 0) {
        view->counts = view->held + 1;
        return CO_OK;
    }
    return co_view_decide(view, view->deal.view, n, id, at, weight, srv->slices);
}

static void decide(server *srv, const co_position *at, const uint8_t *id, int n)
{
    int weight[CO_MAX_MEMBERS];
    co_view view;

    srv->handover.wants_clearance = stage_unsure(srv);
    if (srv->handover.wants_clearance)
        return;
    if (!state_survives(at, n) || views_weights(srv, weight) != n ||
        co_view_decide(&view, (uint32_t)srv->seats.view, n, id, at, weight, srv->slices) != CO_OK ||
        pass_unreadable(srv, &view, id, at, weight) != CO_OK)
        stage_over(
            srv, CO_EXIT_PREEMPTED,
            "no host that is left holds the whole state: start the run again, it continues from its last "
            "checkpoint");
    else
        begin_view(srv, &view, at);
}

/* --- waiting -------------------------------------------------------------------------------------------- */
void views_wait(server *srv, seat *peer)
{
    int n = seats_joined(&srv->seats);
    char text[700];

    snprintf(text, sizeof text,
             "%d host%s here, at least %d are needed: the run waits for more, for %.0f s at most%s%s%s", n,
             n == 1 ? " is" : "s are", srv->terms.least_hosts, gather_limit_ms(srv) / 1000,
             *srv->views.why ? " (" : "", srv->views.why, *srv->views.why ? ")" : "");
    peer->member.awaits = true;
    seat_say(&srv->seats, peer, FRAME_WAIT, json_pack("{so}", "text", co_json_string(text)));
}

static void wait_for_more(server *srv)
{
    stage_enter(&srv->job, WAITING);
    for (int i = 0; i < srv->seats.n; i++)
        if (srv->seats.at[i]->joined)
            views_wait(srv, srv->seats.at[i]);
}

/* A host that does not answer counts as lost. Before the first view of a run, hosts may still be preparing:
 * filling the memory of a large model takes a while. One that dies then is noticed by its silence. */
static void drop_the_silent(server *srv)
{
    double lost_ms = 1000 * (srv->where.lost_after_s > 0 ? srv->where.lost_after_s : 3);
    double limit_ms = 3 * lost_ms > FREEZE_MS ? 3 * lost_ms : FREEZE_MS;
    bool first = srv->views.decided == 0 && srv->handover.past.number == 0;
    char why[100];

    if (first && limit_ms < PREPARE_MS)
        limit_ms = PREPARE_MS;
    snprintf(why, sizeof why,
             first ? "it was not ready to train within %.0f s" : "it did not stop its step within %.0f s",
             limit_ms / 1000);
    for (int i = 0; i < srv->seats.n && srv->job.stage_ms > limit_ms; i++)
        if (srv->seats.at[i]->number >= 0 && !srv->seats.at[i]->member.known)
            seat_drop(srv->seats.at[i], why);
}

void views_change(server *srv)
{
    co_position at[CO_MAX_MEMBERS] = {0};
    uint8_t id[CO_MAX_MEMBERS] = {0};
    bool ended = true;
    int n = 0;

    for (int i = 0; i < srv->seats.n; i++)
        n += srv->seats.at[i]->number >= 0;
    if (n == 0 || !collect(srv, at, id, n)) {
        drop_the_silent(srv);
        return;
    }
    if (send_unfit_away(srv, at, n))
        return;
    for (int h = 0; h < n; h++)
        ended = ended && at[h].ended;
    if (!views_enough(srv) && !ended)
        wait_for_more(srv);
    else
        decide(srv, at, id, n);
}
