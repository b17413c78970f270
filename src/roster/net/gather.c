/* roster_net_gather.c -- from enough hosts to a round: numbers, an address that all reach, a port, BEGIN. */
#include "roster/net/server_int.h"

#include <stdio.h>

/* Numbers: wishes first, the rest in the order of joining. */
static void number_hosts(server *s, int n)
{
    bool taken[CO_MAX_HOSTS] = {false};

    for (int i = 0; i < s->n; i++) {
        seat *h = s->seats[i];
        h->host = h->joined && h->terms.host_rank >= 0 && h->terms.host_rank < n ? h->terms.host_rank : -1;
        h->stopped = h->done = false;
        if (h->host >= 0)
            taken[h->host] = true;
    }
    for (int at = 0; at < n; at++) {
        seat *next = NULL;
        for (int i = 0; i < s->n && !taken[at]; i++) {
            seat *h = s->seats[i];
            if (h->joined && h->host < 0 && (!next || h->seq < next->seq))
                next = h;
        }
        if (next)
            next->host = at;
    }
}

static seat *host_number(const server *s, int at)
{
    for (int i = 0; i < s->n; i++)
        if (s->seats[i]->host == at && !*s->seats[i]->gone)
            return s->seats[i];
    return NULL;
}

/* An address of a host that all others reach: what it says itself; if it is the server's own machine, the address by which a host
 * from elsewhere came; else the one we see it at. Loopback only if all are on this machine. */
static void address_of(const server *s, const seat *one, char *out, size_t size)
{
    bool here = one->local || co_addr_is_loopback(&one->from);

    snprintf(out, size, "%s", here ? "127.0.0.1" : one->who.addr);
    for (int i = 0; here && i < s->n; i++) {
        const seat *h = s->seats[i];
        if (h->host >= 0 && !h->local && !co_addr_is_loopback(&h->from)) {
            snprintf(out, size, "%s", h->via);
            here = false;
        }
    }
    if (*one->advertise)
        snprintf(out, size, "%s", one->advertise);
}

static void pick(server *s)
{
    int n = server_joined(s);

    s->round.number = (s->round.number > s->least_number ? s->round.number : s->least_number) + 1;
    if (s->round.restarts < s->least_restarts)
        s->round.restarts = s->least_restarts;
    s->has_cause = s->counts = s->some_done = s->undone = false;
    number_hosts(s, n);
    s->round.hosts = n;
    seat *first = host_number(s, 0);
    rounds_enter(s, PICK);
    if (first)
        seat_say(s, first, WORD_PICK, NULL);
}

void rounds_port(server *s, seat *h, int port)
{
    int rank = 0, world = 0;

    if (s->stage != PICK || h->host != 0)
        return;
    if (!port) {
        rounds_over(s, 1, "the first host has no free TCP port for MASTER_PORT");
        return;
    }
    s->round.master_port = port;
    address_of(s, h, s->round.master_addr, sizeof s->round.master_addr);
    for (int i = 0; i < s->n; i++)
        world += s->seats[i]->host >= 0 ? s->seats[i]->terms.nproc : 0;
    s->round.world = world;
    rounds_enter(s, RUN);
    for (int at = 0; at < s->round.hosts; at++) {
        seat *o = host_number(s, at);
        if (!o)
            continue; /* lost in this very turn: the sweep tells */
        s->round.my_host = at;
        address_of(s, o, s->round.my_addr, sizeof s->round.my_addr);
        s->round.first_rank = rank;
        rank += o->terms.nproc;
        seat_say(s, o, WORD_BEGIN, round_pack(&s->round));
    }
}

/* Every host has been told how far its clock is off, or does not answer. */
static bool clocks_known(const server *s)
{
    for (int i = 0; i < s->n; i++) {
        const seat *h = s->seats[i];
        if (h->joined && !h->local && !*h->gone && h->best_rtt_ns < 0 && h->age_ms < CLOCK_MS)
            return false;
    }
    return true;
}

/* Not before it is sure that no host that was lost has made a roster of its own. */
static void pick_if_sure(server *s)
{
    if (!clocks_known(s))
        return;
    s->asks = s->where.etcd.members && s->cleared != s->losses;
    if (!s->asks)
        pick(s);
}

/* The hosts of a lost keeper's round meet again. */
static void regather_turn(server *s, int n, double elapsed_ms, double limit_ms, double last_call_ms)
{
    int done = 0, were = s->past.hosts - 1;
    double wait_ms = n < s->terms.min_hosts ? limit_ms : last_call_ms;
    char text[200];

    for (int i = 0; i < s->n; i++)
        done += s->seats[i]->joined && s->seats[i]->past_done && s->seats[i]->past_round == s->past.number;
    if (s->past.keeper_done && done == were) {
        s->has_cause = false; /* nothing was missing */
        rounds_over(s, 0, "");
    } else if (n < were && n < s->terms.max_hosts && s->stage_ms < wait_ms) {
        if ((int)(s->stage_ms / RETALK_MS) > (int)((s->stage_ms - elapsed_ms) / RETALK_MS))
            server_talk(s, true,
                        "still waiting for the others to come back: %d of %d hosts are here after %.0f s "
                        "(%.0f s are the limit)",
                        n, were, s->stage_ms / 1000, wait_ms / 1000);
    } else if (n < s->terms.min_hosts) {
        snprintf(text, sizeof text, "%d hosts are left, at least %d are needed", n, s->terms.min_hosts);
        rounds_over(s, co_failure_status(&s->cause), text);
    } else if (s->past.restarts > s->terms.max_restarts)
        rounds_over(s, co_failure_status(&s->cause), "");
    else
        pick_if_sure(s);
}

void rounds_gather(server *s, double elapsed_ms)
{
    int n = server_joined(s), min = s->terms.min_hosts;
    double limit_ms = 1000 * (s->where.join_timeout_s > 0 ? s->where.join_timeout_s : 600);
    double last_call_ms = 1000 * (s->where.last_call_s > 0 ? s->where.last_call_s : 30);
    char text[200];

    if (rounds_regather(s)) {
        regather_turn(s, n, elapsed_ms, limit_ms, last_call_ms);
        return;
    }
    if (n < min) {
        s->last_call_ms = -1;
        if ((int)(s->stage_ms / RETALK_MS) > (int)((s->stage_ms - elapsed_ms) / RETALK_MS))
            server_talk(s, true, "still waiting: %d of %d hosts are here after %.0f s (%.0f s are the limit)",
                        n, min, s->stage_ms / 1000, limit_ms / 1000);
        if (s->stage_ms < limit_ms)
            return;
        snprintf(text, sizeof text, "only %d of %d hosts came within %.0f s", n, min, limit_ms / 1000);
        rounds_over(s, 1, text);
        return;
    }
    bool first = s->round.number == 0;
    if (first && s->last_call_ms < 0 && n < s->terms.max_hosts)
        server_talk(s, true, "%d host%s here, enough to start; up to %d may come within %.0f s", n,
                    n == 1 ? " is" : "s are", s->terms.max_hosts, last_call_ms / 1000);
    s->last_call_ms = s->last_call_ms < 0 ? 0 : s->last_call_ms + elapsed_ms;
    if (!first || n == s->terms.max_hosts || s->last_call_ms >= last_call_ms)
        pick_if_sure(s);
}
