/* roster_net_rounds.c -- when a round ends, and what follows; roster_net_gather.c: how one begins.
 *
 *     GATHER --enough hosts--> PICK --host 0 named a port--> RUN --all done--> OVER 0
 *        ^                      | host comes or goes          |  failure, lost host, new host
 *        +----------------------+                             v
 *        +<----restarts left, enough hosts---- STOPPING --all stopped--> OVER (status of the cause)
 *
 * The cause is the failure that is first in time on the server's clock, over all that are heard of until everybody has stopped; a lost
 * host failed when its connection ended or, silent, when it was last heard. A new host does not cost a restart.
 *
 * A server that goes on for a lost one (server_resume) begins in GATHER with that loss as the cause: it waits a while for the
 * other hosts of the lost one's round, and numbers rounds and restarts on from the highest that any host brings.
 */
#include "roster/net/server_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

void rounds_enter(server *s, stage to)
{
    s->stage = to;
    s->stage_ms = 0;
    s->last_call_ms = -1;
}

static void with_cause(const server *s, json_t *body)
{
    if (s->has_cause && body)
        json_object_set_new(body, "cause", failure_pack(&s->cause));
}

void rounds_over(server *s, int status, const char *text)
{
    if (s->stage == OVER)
        return;
    rounds_enter(s, OVER);
    s->status = status;
    snprintf(s->why, sizeof s->why, "%s", text);
    for (int i = 0; i < s->n; i++)
        if (s->seats[i]->joined) {
            json_t *body = json_pack("{si so}", "status", status, "text", co_json_string(text));
            with_cause(s, body);
            seat_say(s, s->seats[i], WORD_OVER, body);
        }
}

void server_end(server *s, int status, const char *why)
{
    rounds_over(s, status, why);
}

static void consider(server *s, const co_failure *f)
{
    if (s->has_cause && s->cause.when_ns <= f->when_ns)
        return;
    s->cause = *f;
    s->has_cause = true;
}

static void stop_round(server *s, bool counts, const char *why)
{
    s->counts = s->counts || counts;
    if (s->stage != RUN)
        return;
    snprintf(s->why, sizeof s->why, "%s", why);
    rounds_enter(s, STOPPING);
    for (int i = 0; i < s->n; i++)
        if (s->seats[i]->host >= 0) {
            json_t *body = json_pack("{so}", "text", co_json_string(why));
            with_cause(s, body);
            seat_say(s, s->seats[i], WORD_STOP, body);
        }
}

static void stop_failed(server *s)
{
    char why[128] = "";

    if (s->round.restarts < s->terms.max_restarts)
        snprintf(why, sizeof why, "all workers start again (restart %d of %d)", s->round.restarts + 1,
                 s->terms.max_restarts);
    stop_round(s, true, why);
}

void rounds_failed(server *s, seat *h, const co_failure *f)
{
    co_failure mine = *f;

    mine.host_rank = h->host;
    consider(s, &mine);
    stop_failed(s);
}

/* Between rounds, not before the first. */
static bool has_run(const server *s)
{
    return s->round.world > 0 || s->past.number > 0;
}

/* After a lost keeper: its hosts are on their way, in any order. */
bool rounds_regather(const server *s)
{
    return s->past.number > 0 && s->round.number == 0;
}

void rounds_lost(server *s, seat *h)
{
    char name[300];

    if (s->stage == OVER)
        return;
    seat_name(name, sizeof name, h);
    if (h->local) { /* the carrier of this host closed its seat without a word: it ends */
        rounds_over(s, CO_EXIT_PREEMPTED, "the host that keeps the roster ended");
        return;
    }
    if (h->host < 0 || h->done || s->stage == GATHER || s->stage == PICK) { /* nothing of it is missing */
        server_talk(s, true, "host %s is gone (%s); %d of %d hosts are here", name, h->gone, server_joined(s),
                    s->terms.min_hosts);
        if (s->stage == PICK)
            rounds_enter(s, GATHER);
        if (s->stage == GATHER && has_run(s) && !rounds_regather(s) && server_joined(s) < s->terms.min_hosts)
            rounds_over(s, 1, "too few hosts are left to start again");
        return;
    }
    co_failure f = {
        .host_rank = h->host, .rank = -1, .local_rank = -1, .status = 1 << 8, .when_ns = h->heard_ns};
    snprintf(f.host, sizeof f.host, "%s", h->who.name);
    snprintf(f.how, sizeof f.how, "was lost: %.200s", h->gone);
    snprintf(f.advice, sizeof f.advice, "Is host %.60s (%.60s) up, its network too? Was cohort killed there?",
             h->who.name, h->who.addr);
    consider(s, &f);
    stop_failed(s);
}

/* Ctrl-C on a host of an elastic job that can go on without it is that host's affair; SIGTERM and SIGUSR1, a scheduler's
 * warnings, are everybody's. */
static bool may_leave(const server *s, const seat *h, int status)
{
    return status == 128 + SIGINT && !h->local && s->terms.min_hosts < s->terms.max_hosts &&
           server_joined(s) > s->terms.min_hosts && s->stage != OVER;
}

/* The job is over for this host. */
static void dismiss(server *s, seat *h, int status, const char *why)
{
    seat_say(s, h, WORD_OVER, json_pack("{si so}", "status", status, "text", co_json_string(why)));
    h->joined = false;
    h->closing = true;
    h->host = -1;
    h->age_ms = 0;
}

void rounds_left(server *s, seat *h, int status, const char *why)
{
    char name[300], text[900];

    seat_name(name, sizeof name, h);
    if (s->stage == GATHER && !has_run(s) && !h->local) { /* the others wait on for enough hosts */
        dismiss(s, h, status, why);
        server_talk(s, true, "host %s left before the start: %s; %d of %d hosts are here", name, why,
                    server_joined(s), s->terms.min_hosts);
        return;
    }
    if (may_leave(s, h, status)) {
        s->undone = s->undone || (h->host >= 0 && !h->done);
        dismiss(s, h, status, why);
        snprintf(text, sizeof text, "host %s left (%.300s): all workers start again on %d host%s", name, why,
                 server_joined(s), server_joined(s) == 1 ? "" : "s");
        if (s->stage == PICK)
            rounds_enter(s, GATHER);
        stop_round(s, false, text);
        return;
    }
    snprintf(text, sizeof text, "host %s was asked to end: %.500s", name, why);
    bool failed = s->stage == STOPPING && s->has_cause && s->round.restarts >= s->terms.max_restarts;
    rounds_over(s, failed ? co_failure_status(&s->cause) : status, text); /* a failure that ended it stands */
}

void rounds_joined(server *s, seat *h)
{
    char name[300], text[900];
    bool finishing = s->some_done;

    seat_name(name, sizeof name, h);
    if (s->stage == PICK)
        rounds_enter(s, GATHER);
    if (s->stage == GATHER && server_joined(s) < s->terms.min_hosts && s->round.number == 0 && !h->local) {
        snprintf(text, sizeof text, "%d of %d hosts are here", server_joined(s), s->terms.min_hosts);
        seat_say(s, h, WORD_TALK, json_pack("{so}", "text", co_json_string(text)));
        if (s->stage_ms > FIRST_TALK_MS) /* hosts that are started together need no count */
            server_talk(s, false, "%s; the last to come is %s", text, name);
    }
    finishing = finishing || (h->past_done && h->past_round == s->round.number);
    if (s->stage != RUN || finishing)
        return; /* it waits: for the next round, or to hear that the job is over */
    snprintf(text, sizeof text, "host %s joins: all workers start again on %d hosts", name, server_joined(s));
    stop_round(s, false, text);
}

static void after_stop(server *s, int unfinished)
{
    int n = server_joined(s);
    char text[200] = "";

    if (!s->counts && !unfinished && !s->undone) { /* a host came when the last were done */
        rounds_over(s, 0, "");
        return;
    }
    if (!s->counts || (s->round.restarts < s->terms.max_restarts && n >= s->terms.min_hosts)) {
        s->round.restarts += s->counts;
        rounds_enter(s, GATHER);
        return;
    }
    if (s->where.etcd.members && s->cleared != s->losses)
        return; /* those who were lost may have gone on without us: etcd is asked first */
    if (s->round.restarts < s->terms.max_restarts)
        snprintf(text, sizeof text, "%d hosts are left, at least %d are needed", n, s->terms.min_hosts);
    rounds_over(s, co_failure_status(&s->cause), text);
}

void rounds_turn(server *s, double elapsed_ms)
{
    int busy = 0, unfinished = 0;

    s->stage_ms += elapsed_ms;
    for (int i = 0; i < s->n; i++) {
        seat *h = s->seats[i];
        busy += h->host >= 0 && !h->stopped;
        unfinished += h->host >= 0 && !h->done;
        double limit_ms = 1000 * h->grace_s + AFTER_GRACE_MS;
        limit_ms = limit_ms > STOPPING_MS ? limit_ms : STOPPING_MS;
        if (s->stage == STOPPING && h->host >= 0 && !h->stopped && s->stage_ms > limit_ms && !*h->gone)
            snprintf(h->gone, sizeof h->gone, "did not end its workers within %.0f s", limit_ms / 1000);
    }
    if (s->stage == GATHER)
        rounds_gather(s, elapsed_ms);
    else if (s->stage == RUN && !unfinished)
        rounds_over(s, 0, "");
    else if (s->stage == STOPPING && !busy)
        after_stop(s, unfinished);
}
