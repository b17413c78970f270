/* roster_net_carrier.c -- the thread that owns every socket of a roster: it connects, answers pings while the agent is busy with its
 * workers, and runs the server on the host that has it.
 */
#include "roster/net/carrier_int.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"

void carrier_leave_alone(net *r)
{
    co_roster_event ev = {.kind = CO_ROSTER_OVER, .status = (int)word_int(r->leave, "status", 0, 255, 1)};

    word_text(ev.text, sizeof ev.text, r->leave, "why");
    r->client.over = true;
    queue_event(r, &ev);
}

/* Lines first: who hears that all is done or has stopped has them. */
static void carry_orders(net *r)
{
    logs_carry(r);
    pthread_mutex_lock(&r->lock);
    struct order *o = r->orders;
    r->orders = NULL;
    r->orders_end = &r->orders;
    pthread_mutex_unlock(&r->lock);
    for (struct order *next; o; o = next) {
        next = o->next;
        if (o->type == WORD_LEAVE && r->finder && !r->leave) {
            r->leave = json_incref(o->body); /* whoever hears of it may be lost before it answers */
            if (!r->client.conn && !r->client.over)
                carrier_leave_alone(r);
        }
        client_say(&r->client, o->type, o->body); /* a broken connection shows in the client's turn */
        co_free(o);
    }
}

co_err carrier_greet(net *r, const co_patience *p)
{
    reached to = {0};
    co_frame first;

    CO_TRY(meet_reach(&to, &r->meeting, r->tls, p, queue_talk, r)); /* which may have taken minutes */
    co_patience soon = co_patience_s(ANSWER_MS / 1000.0);
    r->client.conn = to.conn;
    soon.give_up = &r->closing;
    soon.until_ns = soon.until_ns < p->until_ns ? soon.until_ns : p->until_ns;
    co_endpoint_text(r->client.server, sizeof r->client.server, to.via, r->meeting.at.port);
    co_err err = client_hello(&r->client, to.via);
    if (!err)
        err = co_conn_wait(to.conn, &first, &soon);
    if (!err)
        err = client_hear(&r->client, &first);
    if (err) {
        co_conn_free(r->client.conn);
        r->client.conn = NULL;
        if (err == CO_EPEER || err == CO_ETIMEOUT)
            co_fail(err,
                    "cannot join the job at %s: step terms: it accepts connections but %s: another program, "
                    "or a busy host",
                    r->client.server, err == CO_EPEER ? "closes them" : "says nothing");
        else
            co_fail_in(err, "cannot join the job at %s: step terms", r->client.server);
        poll(NULL, 0, TURN_MS); /* before another attempt */
    }
    return err;
}

static void talk_on(net *r)
{
    char line[1000];

    snprintf(line, sizeof line, "not yet, trying on: %s", co_errmsg());
    queue_talk(r, line);
}

static bool reach(net *r)
{
    co_patience p = co_patience_s(r->where.join_timeout_s > 0 ? r->where.join_timeout_s : 600);
    uint64_t tell_ns = co_now_ns() + FIRST_TALK_MS * UINT64_C(1000000);
    co_err err;

    p.give_up = &r->closing;
    do { /* closed before it was read: a crowd at the door, or a server that just ended */
        err = r->finder ? finder_meet(r, &p) : carrier_greet(r, &p);
        if ((err == CO_EPEER || err == CO_ETIMEOUT) && co_now_ns() >= tell_ns) {
            talk_on(r);
            tell_ns = co_now_ns() + RETALK_MS * UINT64_C(1000000);
        }
    } while ((err == CO_EPEER || err == CO_ETIMEOUT) && co_now_ns() < p.until_ns);
    if (err && err != CO_ESTOP && r->finder && r->client.past.number)
        finder_fail(r);
    else if (err && err != CO_ESTOP)
        queue_broke(r, err == CO_EINPUT ? err : CO_EFAIL, co_errmsg());
    pthread_mutex_lock(&r->lock);
    atomic_store(&r->seated, !err && !atomic_load(&r->closing));
    pthread_mutex_unlock(&r->lock);
    return !err;
}

/* After the agent has closed: the last words of a server go out before it ends. */
static bool finished(net *r, uint64_t *until_ns)
{
    client *c = &r->client;
    bool first = !*until_ns;

    if (first)
        *until_ns = co_now_ns() + (c->logs ? LOG_LINGER_MS : LINGER_MS) * 1000000ull;
    logs_end(r);
    if (!r->server)
        return !c->conn || (co_conn_settled(c->conn) && !logs_wait(r)) || co_now_ns() > *until_ns;
    if (first)
        server_end(r->server, CO_EXIT_PREEMPTED, "the host that keeps the roster ended");
    return server_idle(r->server) || co_now_ns() > *until_ns;
}

/* The keeper was lost, and another can be found: once the agent has ended its workers. */
static bool meets_again(net *r)
{
    struct pollfd p = {.fd = r->order_fd, .events = POLLIN};

    if (!r->finder || r->client.conn || r->client.over)
        return false;
    finder_let_go(r);
    carry_orders(r); /* what was said before the agent could know */
    while (r->client.agent == CLIENT_STOPS && !r->client.over && !atomic_load(&r->closing)) {
        poll(&p, 1, TURN_MS);
        queue_calm(r->order_fd);
        carry_orders(r);
    }
    return !r->client.over && !atomic_load(&r->closing);
}

static void carry(net *r)
{
    struct pollfd fds[SERVER_FDS + 2];
    uint64_t last_ns = co_now_ns(), until_ns = 0;
    bool first = true; /* frames that came with the welcome are there already */

    for (bool closing = false; !closing || !finished(r, &until_ns);) {
        closing = atomic_load(&r->closing); /* what was ordered before still goes out in this turn */
        int n = r->server ? server_fds(r->server, fds, SERVER_FDS) : 0;
        fds[n++] = (struct pollfd){.fd = r->order_fd, .events = POLLIN};
        if (r->client.conn)
            fds[n++] = (struct pollfd){.fd = co_conn_fd(r->client.conn),
                                       .events = (short)co_conn_events(r->client.conn)};
        poll(fds, (nfds_t)n, first ? 0 : closing ? 1 : TURN_MS);
        first = false;
        uint64_t now = co_now_ns();
        double elapsed_ms = (double)(now - last_ns) / 1e6;
        last_ns = now;
        if (elapsed_ms > LATE_TURN_MS)
            elapsed_ms = LATE_TURN_MS;
        queue_calm(r->order_fd);
        carry_orders(r);
        client_turn(&r->client, elapsed_ms);
        if (r->server)
            server_turn(r->server, elapsed_ms);
        atomic_store(&r->settled, r->server ? server_idle(r->server)
                                            : !r->client.conn || co_conn_unsent(r->client.conn) == 0);
        if (r->server && r->finder && (r->client.conn || r->client.over))
            finder_turn(r);
        if ((r->client.over && !r->client.conn && !r->server) ||
            (r->finder && !r->client.conn && !r->client.over))
            break;
    }
}

void *carrier_main(void *arg)
{
    net *r = arg;

    do {
        if (!r->server && !reach(r))
            return NULL;
        carry(r);
    } while (meets_again(r));
    if (r->server)
        server_logs_end(r->server);
    if (r->server && r->finder)
        finder_end(r);
    return NULL;
}
