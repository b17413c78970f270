/* roster_net_hello.c -- a connection says who it is: it gets a seat, or a refusal that says why to both sides. */
#include "roster/net/server_int.h"

#include <stdio.h>

void seat_refuse(server *s, seat *h, const char *to_it, const char *to_us)
{
    seat_say(s, h, WORD_REFUSED, json_pack("{so si}", "text", co_json_string(to_it), "over", s->stage == OVER));
    h->closing = true;
    server_talk(s, false, "%s", to_us);
}

/* What the terms alone do not show: ranks that are taken, a job that is full. */
static bool has_place(server *s, const seat *h, char *to_it, char *to_us, size_t size)
{
    char name[300], other[300];

    seat_name(name, sizeof name, h);
    for (int i = 0; i < s->n; i++) {
        const seat *o = s->seats[i];
        if (o == h || !o->joined || *o->gone || h->terms.host_rank < 0 ||
            o->terms.host_rank != h->terms.host_rank)
            continue;
        seat_name(other, sizeof other, o);
        snprintf(to_it, size, "--node-rank=%d is taken by host %s: give each host its own, 0 to %d",
                 h->terms.host_rank, other, s->terms.max_hosts - 1);
        snprintf(to_us, size, "host %s was refused: it says --node-rank=%d, and so does host %s", name,
                 h->terms.host_rank, other);
        return false;
    }
    if (h->terms.host_rank >= s->terms.max_hosts) {
        snprintf(to_it, size, "--node-rank=%d of --nnodes=%d: ranks go from 0 to %d", h->terms.host_rank,
                 s->terms.max_hosts, s->terms.max_hosts - 1);
        snprintf(to_us, size, "host %s was refused: it says --node-rank=%d, ranks go from 0 to %d", name,
                 h->terms.host_rank, s->terms.max_hosts - 1);
        return false;
    }
    if (server_joined(s) >= s->terms.max_hosts || s->stage == OVER) {
        snprintf(to_it, size, "the job %.127s at host %.255s %s", s->terms.run_id, s->me,
                 s->stage == OVER
                     ? "is over"
                     : "has all its hosts already: is one of them started twice, or --nnodes too small?");
        snprintf(to_us, size, "host %s was refused: %s", name,
                 s->stage == OVER ? "the job is over" : "the job has all its hosts");
        return false;
    }
    return true;
}

void seat_hello(server *s, seat *h, const json_t *body)
{
    char to_it[1024], to_us[1024];
    host_name me = {{0}};

    terms_unpack(&h->terms, body);
    word_text(h->who.name, sizeof h->who.name, body, "host");
    word_text(h->via, sizeof h->via, body, "via");
    word_text(h->advertise, sizeof h->advertise, body, "advertise");
    h->grace_s = (double)word_int(body, "grace", 0, INT32_MAX, 0);
    h->past_round = word_int(body, "round", 0, INT32_MAX, 0);
    h->past_done = word_int(body, "done", 0, 1, 0);
    snprintf(me.name, sizeof me.name, "%s", s->me);
    co_endpoint_text(me.addr, sizeof me.addr, h->via, s->at.port);
    if ((s->stage != OVER && !terms_agree(to_it, to_us, sizeof to_it, &s->terms, &h->terms, &me, &h->who)) ||
        !has_place(s, h, to_it, to_us, sizeof to_it)) {
        seat_refuse(s, h, to_it, to_us);
        return;
    }
    h->joined = true;
    h->logs = s->log && !h->local;
    h->seq = s->next_seq++;
    if (h->past_round > s->least_number)
        s->least_number = h->past_round;
    int used = (int)word_int(body, "used", 0, INT32_MAX, 0);
    if (used > s->least_restarts)
        s->least_restarts = used < s->terms.max_restarts ? used : s->terms.max_restarts;
    seat_say(s, h, WORD_WELCOME, json_pack("{so si}", "host", co_json_string(s->me), "logs", h->logs));
    seat_ping(s, h);
    rounds_joined(s, h);
}
