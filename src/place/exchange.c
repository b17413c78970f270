/* exchange.c -- the first launcher listens, makes the token and sends both to the others.
 *
 * The place's row decides how they travel (munge, PMIx, PMI). This file makes sure that every launcher has
 * them before it opens a roster.
 */
#include "place/place_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "place/times_int.h"

enum { SPEAKERS = 2 };

waiting waiting_begin(const co_place *p, const co_patience *patience, void (*talk)(const char *))
{
    return (waiting){p, patience, talk, co_now_ns() + SAY_MS * UINT64_C(1000000)};
}

static const char *command(const co_place *p)
{
    return p->training ? "train" : "launch";
}

int waiting_turn(waiting *w)
{
    uint64_t now = co_now_ns(), until = w->patience->until_ns;
    char line[400];

    if (now >= until)
        return 0;
    if (now >= w->say_ns) {
        snprintf(line, sizeof line, "%s: waiting; not all of the %d tasks have come to their `cohort %s`",
                 w->place->name, w->place->seats, command(w->place));
        if (w->talk && w->place->task < SPEAKERS)
            w->talk(line);
        w->say_ns = now + SAY_AGAIN_MS * UINT64_C(1000000);
    }
    uint64_t due = until < w->say_ns ? until : w->say_ns, ms = (due - now) / 1000000 + 1;
    return ms < SAY_AGAIN_MS ? (int)ms : SAY_AGAIN_MS;
}

co_err waiting_over(const waiting *w)
{
    return co_fail(CO_ETIMEOUT,
                   "not all of the %d tasks came to their `cohort %s` in time (--rdzv-conf=join_timeout=S):"
                   " does one hang, or start something else before it?",
                   w->place->seats, command(w->place));
}

/* All launchers are on this host, so no other host needs to reach it. */
static bool alone(const co_place *p)
{
    return p->nodes == 1 || p->tasks == p->seats;
}

static co_err first_address(char *out, size_t size, const co_place *p)
{
    if (alone(p)) {
        snprintf(out, size, "127.0.0.1");
        return CO_OK;
    }
    if (p->row->address)
        return p->row->address(out, size, p);
    if (gethostname(out, size - 1) != 0)
        return co_fail(CO_EIO, "gethostname: %m");
    out[size - 1] = '\0';
    return CO_OK;
}

static co_err serve(co_place *p, co_meet *where, const co_patience *patience, void (*talk)(const char *))
{
    char host[CO_HOST_NAME];
    card c = {0};
    co_token token;

    CO_TRY(first_address(host, sizeof host, p));
    co_endpoint_text(where->endpoint, sizeof where->endpoint, host, 0);
    if (!where->insecure && !*where->token) {
        CO_TRY(co_token_make(&token));
        co_token_text(where->token, &token);
    }
    CO_TRY(co_meet_listen(where));
    snprintf(c.endpoint, sizeof c.endpoint, "%s", where->endpoint);
    snprintf(c.token, sizeof c.token, "%s", where->insecure ? "" : where->token);
    if (!alone(p))
        co_addr_mine(c.also, sizeof c.also);
    co_err err = p->row->share(p, &c, patience, talk);
    explicit_bzero(&c, sizeof c);
    if (err) {
        close(where->listener);
        where->listener = 0;
    }
    return err;
}

static co_err join(co_place *p, co_meet *where, const co_patience *patience, void (*talk)(const char *))
{
    card c;

    CO_TRY(p->row->share(p, &c, patience, talk));
    if (!*c.token && !where->insecure)
        return co_fail(
            CO_EINPUT,
            "%s: the first launcher runs with --insecure, this one does not: the same line for all", p->name);
    snprintf(where->endpoint, sizeof where->endpoint, "%s", c.endpoint);
    snprintf(where->also, sizeof where->also, "%s", c.also);
    snprintf(where->token, sizeof where->token, "%s", where->insecure ? "" : c.token);
    explicit_bzero(&c, sizeof c);
    where->role = CO_MEET_JOIN;
    return CO_OK;
}

co_err co_place_share(co_place *p, co_meet *where, void (*talk)(const char *line))
{
    co_patience patience = co_patience_s(where->join_timeout_s > 0 ? where->join_timeout_s : JOIN_S);
    char host[CO_HOST_NAME];

    if (*p->host)
        snprintf(where->host, sizeof where->host, "%s", p->host);
    if (p->row->needs_token && !*where->token && !where->insecure)
        return co_fail(CO_EINPUT,
                       "launch: %s: COHORT_TOKEN is not set. All pods take it from one Secret: kubectl "
                       "create secret generic"
                       " cohort-token --from-literal=token=\"$(cohort token)\", and in the manifest env "
                       "COHORT_TOKEN with"
                       " valueFrom.secretKeyRef; or --insecure",
                       p->name);
    if (where->role == CO_MEET_AUTO) /* the user typed no rank, so messages should not speak of --node-rank */
        where->role = p->seat ? CO_MEET_JOIN : CO_MEET_SERVE;
    if (!p->row->share) {
        snprintf(where->endpoint, sizeof where->endpoint, "%s", p->endpoint);
        return CO_OK;
    }
    if (p->row->address && (*where->token || where->insecure)) { /* every launcher can compute the endpoint */
        CO_TRY(first_address(host, sizeof host, p));
        co_endpoint_text(where->endpoint, sizeof where->endpoint, host, lobby_port(p->run_id, 0));
        return CO_OK;
    }
    return p->seat == 0 ? serve(p, where, &patience, talk) : join(p, where, &patience, talk);
}

void co_place_say(char *out, size_t size, const co_place *p, const co_meet *where)
{
    char host[CO_HOST_NAME] = "";
    const char *what = p->tasks_most == 1 ? "hosts"
                       : p->training      ? "tasks on this machine, each a host of its own"
                                          : "tasks, a worker each";

    *out = '\0';
    if (p->quiet)
        return;
    if (*p->host)
        snprintf(host, sizeof host, "%s", p->host);
    else if (gethostname(host, sizeof host - 1) != 0)
        *host = '\0';
    int n = snprintf(out, size, "%s: %d %s, this is %d (%s); they meet at %s", p->name, p->seats, what,
                     p->seat, host, where->endpoint);
    if (*p->reading && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ". %s", p->reading);
}
