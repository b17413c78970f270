/* gather.c -- waits until enough hosts are here for the first round or view, or until the hosts of a lost
 * keeper have come back. How the round or view then begins is the policy's matter. */
#include "roster/net/seat_int.h"

#include <stdio.h>

#include "roster/times_int.h"

double gather_limit_ms(const server *srv)
{
    return 1000 * (srv->where.join_timeout_s > 0 ? srv->where.join_timeout_s : 600);
}

double gather_call_ms(const server *srv)
{
    return 1000 * (srv->where.last_call_s > 0 ? srv->where.last_call_s : 30);
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

void gather_begin(server *srv)
{
    if (!clocks_known(srv))
        return;
    srv->handover.wants_clearance = stage_unsure(srv);
    if (!srv->handover.wants_clearance)
        srv->policy->begin(srv);
}

static bool talk_is_due(const job *now, double elapsed_ms)
{
    return (int)(now->stage_ms / RETALK_MS) > (int)((now->stage_ms - elapsed_ms) / RETALK_MS);
}

bool gather_waits(const server *srv, double elapsed_ms, double wait_ms, int n, int were)
{
    const job *now = &srv->job;

    if (n >= were || n >= srv->terms.max_hosts || now->stage_ms >= wait_ms)
        return false;
    if (talk_is_due(now, elapsed_ms))
        seats_talk(&srv->seats, true,
                   "still waiting for the others to come back: %d of %d hosts are here after %.0f s "
                   "(%.0f s are the limit)",
                   n, were, now->stage_ms / 1000, wait_ms / 1000);
    return true;
}

static void too_few(server *srv, int n, double elapsed_ms)
{
    job *now = &srv->job;
    double limit_ms = gather_limit_ms(srv);
    int min = srv->terms.min_hosts;
    char text[200];

    now->last_call_ms = -1;
    if (talk_is_due(now, elapsed_ms))
        seats_talk(&srv->seats, true,
                   "still waiting: %d of %d hosts are here after %.0f s (%.0f s are the limit)", n, min,
                   now->stage_ms / 1000, limit_ms / 1000);
    if (now->stage_ms < limit_ms)
        return;
    snprintf(text, sizeof text, "only %d of %d hosts came within %.0f s", n, min, limit_ms / 1000);
    stage_over(srv, 1, text);
}

void gather_turn(server *srv, double elapsed_ms)
{
    job *now = &srv->job;
    int n = seats_joined(&srv->seats);
    double call_ms = gather_call_ms(srv);

    if (stage_regathers(srv)) {
        srv->policy->regather(srv, elapsed_ms);
        return;
    }
    if (n < srv->terms.min_hosts) {
        too_few(srv, n, elapsed_ms);
        return;
    }
    bool first = srv->seats.view == 0;
    if (first && now->last_call_ms < 0 && n < srv->terms.max_hosts)
        seats_talk(&srv->seats, true, "%d host%s here, enough to start; up to %d may come within %.0f s", n,
                   n == 1 ? " is" : "s are", srv->terms.max_hosts, call_ms / 1000);
    now->last_call_ms = now->last_call_ms < 0 ? 0 : now->last_call_ms + elapsed_ms;
    if (!first || n == srv->terms.max_hosts || now->last_call_ms >= call_ms)
        gather_begin(srv);
}

/* --- hosts that come and go in the meantime ------------------------------------------------------------- */
void gather_joined(server *srv, seat *peer)
{
    int n = seats_joined(&srv->seats);
    char name[300], text[100];

    if (n >= srv->terms.min_hosts || srv->seats.view > 0 || peer->local)
        return;
    seat_name(name, sizeof name, peer);
    snprintf(text, sizeof text, "%d of %d hosts are here", n, srv->terms.min_hosts);
    seat_say(&srv->seats, peer, FRAME_TALK, json_pack("{so}", "text", co_json_string(text)));
    if (srv->job.stage_ms > FIRST_TALK_MS) /* hosts that start together need no count */
        seats_talk(&srv->seats, false, "%s; the last to come is %s", text, name);
}

void gather_gone(server *srv, const seat *peer)
{
    char name[300];

    seat_name(name, sizeof name, peer);
    seats_talk(&srv->seats, true, "host %s is gone (%s); %d of %d hosts are here", name, peer->gone,
               seats_joined(&srv->seats), srv->terms.min_hosts);
}

void gather_left(server *srv, seat *peer, const co_leave *how)
{
    char name[300], why[512];

    seat_name(name, sizeof name, peer);
    leave_text(why, sizeof why, how);
    stage_dismiss(srv, peer, how);
    seats_talk(&srv->seats, true, "host %s left before the start: %s; %d of %d hosts are here", name, why,
               seats_joined(&srv->seats), srv->terms.min_hosts);
}
