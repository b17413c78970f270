/* roster_net.c -- the roster over the network, as its agent sees it: orders go in, events come out.
 *
 * One thread, the carrier (roster_net_carrier.c), owns every socket. The agent and the carrier meet in two queues under one lock; a
 * descriptor wakes each side.
 */
#include "roster/net/carrier_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"

void queue_wake(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof one) < 0)
        errno = 0; /* it is awake already */
}

void queue_calm(int fd)
{
    uint64_t n;

    if (read(fd, &n, sizeof n) < 0)
        errno = 0;
}

static void queue_put(net *r, co_err err, const co_roster_event *ev)
{
    struct item *it = co_zalloc(sizeof *it);

    if (!it) {
        atomic_store(&r->starved, true);
        queue_wake(r->event_fd);
        return;
    }
    it->err = err;
    it->ev = *ev;
    pthread_mutex_lock(&r->lock);
    *r->events_end = it;
    r->events_end = &it->next;
    pthread_mutex_unlock(&r->lock);
    queue_wake(r->event_fd);
}

void queue_event(void *ctx, const co_roster_event *ev)
{
    queue_put(ctx, CO_OK, ev);
}

void queue_broke(void *ctx, co_err err, const char *text)
{
    co_roster_event ev = {.kind = CO_ROSTER_OVER};

    snprintf(ev.text, sizeof ev.text, "%s", text);
    queue_put(ctx, err, &ev);
}

void queue_talk(void *ctx, const char *text)
{
    co_roster_event ev = {.kind = CO_ROSTER_TALK};

    snprintf(ev.text, sizeof ev.text, "%s", text);
    queue_put(ctx, CO_OK, &ev);
}

static co_err net_turn(co_roster *base, int timeout_ms, co_roster_event *ev)
{
    net *r = (net *)base;
    struct pollfd p = {.fd = r->event_fd, .events = POLLIN};

    if (r->broken)
        return co_fail(r->broken, "%s", r->why);
    poll(&p, 1, timeout_ms);
    if (atomic_load(&r->starved))
        return co_fail(CO_ENOMEM, "out of memory: what the roster says is lost");
    pthread_mutex_lock(&r->lock);
    struct item *it = r->events;
    if (it) {
        r->events = it->next;
        if (!r->events)
            r->events_end = &r->events;
    }
    if (!r->events)
        queue_calm(r->event_fd);
    pthread_mutex_unlock(&r->lock);
    if (!it) {
        *ev = (co_roster_event){.kind = CO_ROSTER_NOTHING};
        return CO_OK;
    }
    *ev = it->ev;
    r->broken = it->err;
    snprintf(r->why, sizeof r->why, "%s", it->err ? it->ev.text : "");
    co_free(it);
    return r->broken ? co_fail(r->broken, "%s", r->why) : CO_OK;
}

static int net_fd(const co_roster *base)
{
    return ((const net *)base)->event_fd;
}

static int64_t net_clock_offset(const co_roster *base)
{
    const net *r = (const net *)base;

    return atomic_load(&r->client.offset_ns) - r->where.skew_ns; /* a clock that a test set wrong is right */
}

static void put_order(net *r, word type, json_t *body)
{
    struct order *o = co_zalloc(sizeof *o);

    if (!o) {
        json_decref(body);
        atomic_store(&r->starved, true);
        queue_wake(r->event_fd);
        return;
    }
    o->type = type;
    o->body = body;
    pthread_mutex_lock(&r->lock);
    *r->orders_end = o;
    r->orders_end = &o->next;
    pthread_mutex_unlock(&r->lock);
    queue_wake(r->order_fd);
}

static void net_done(co_roster *base)
{
    put_order((net *)base, WORD_DONE, NULL);
}

static void net_failed(co_roster *base, const co_failure *f)
{
    put_order((net *)base, WORD_FAILED, failure_pack(f));
}

static void net_stopped(co_roster *base)
{
    put_order((net *)base, WORD_STOPPED, NULL);
}

static void net_leave(co_roster *base, int status, const char *why)
{
    net *r = (net *)base;
    co_roster_event ev = {.kind = CO_ROSTER_OVER, .status = status};

    pthread_mutex_lock(&r->lock);
    bool seated = atomic_load(&r->seated);
    if (!seated)
        atomic_store(&r->closing, true); /* before the carrier could sit down */
    pthread_mutex_unlock(&r->lock);
    if (!seated) {
        snprintf(ev.text, sizeof ev.text, "%s", why);
        queue_put(r, CO_OK, &ev);
        return;
    }
    put_order(r, WORD_LEAVE, json_pack("{si so}", "status", status, "why", co_json_string(why)));
}

static bool net_keeps(const co_roster *base)
{
    return atomic_load(&((const net *)base)->keeps);
}

static void net_finish(co_roster *base)
{
    net *r = (net *)base;

    atomic_store(&r->closing, true);
    queue_wake(r->order_fd);
    if (r->started)
        pthread_join(r->thread, NULL);
    r->started = false;
}

static void net_close(co_roster *base)
{
    net *r = (net *)base;

    net_finish(base);
    json_decref(r->leave);
    co_conn_free(r->client.conn);
    server_close(r->server);
    finder_close(r->finder);
    co_tls_free(r->tls);
    for (struct item *next, *it = r->events; it; it = next) {
        next = it->next;
        co_free(it);
    }
    for (struct order *next, *o = r->orders; o; o = next) {
        next = o->next;
        json_decref(o->body);
        co_free(o);
    }
    if (r->event_fd >= 0)
        close(r->event_fd);
    if (r->order_fd >= 0)
        close(r->order_fd);
    co_str_fini(&r->log_out);
    co_str_fini(&r->log_in);
    pthread_mutex_destroy(&r->lock);
    explicit_bzero(r, sizeof *r); /* the token is in it */
    co_free(r);
}

co_err roster_serve_here(net *r)
{
    int pair[2];
    co_err err = co_net_pair(pair);

    if (err) {
        close(r->meeting.listener);
        return err;
    }
    err = co_conn_new(&r->client.conn, pair[0], NULL, CO_CONN_CLIENT);
    if (err) {
        close(pair[1]);
        close(r->meeting.listener);
        return err;
    }
    CO_TRY(server_open(&r->server, &r->terms, &r->where, &r->meeting, r->tls, pair[1]));
    if (r->where.logs)
        server_logs_to(r->server, logs_heard, r);
    atomic_store(&r->keeps, true);
    atomic_store(&r->seated, true);
    return client_hello(&r->client, "");
}

/* What the others need to know to come, and what a reader of the screen should know. */
static void invite(net *r)
{
    char line[1000], made[120] = "";
    const char *ranks = "", *here = "";
    const meeting *m = &r->meeting;

    if (!m->serves && r->where.insecure) {
        snprintf(line, sizeof line, "joining %.255s:%d without TLS and token (--insecure)", m->at.host,
                 m->at.port);
        queue_talk(r, line);
    }
    if (!m->serves || r->terms.max_hosts == 1 || r->where.plan || r->where.listener > 0)
        return;
    if (*m->made)
        snprintf(made, sizeof made, ", with COHORT_TOKEN=%s before it", m->made);
    if (r->terms.host_rank == 0 && r->where.role == CO_MEET_AUTO)
        ranks = r->terms.max_hosts == 2 ? " with --node-rank=1" : " with --node-rank=1, 2 and so on";
    if (co_host_is_loopback(m->at.host))
        here = ". Only launchers on this host can come to that address: for others, name one of this host's "
               "that "
               "they reach";
    if (*m->doubt)
        queue_talk(r, m->doubt);
    snprintf(line, sizeof line, "waiting for %d host%s at %.255s:%d%s; run the same line on the others%s%s%s",
             r->terms.min_hosts, r->terms.min_hosts == 1 ? "" : "s", *m->at.host ? m->at.host : "this host",
             m->at.port, m->tls ? "" : " (without TLS and token)", ranks, made, here);
    queue_talk(r, line);
}

static const struct roster_ops ops = {.turn = net_turn,
                                      .fd = net_fd,
                                      .done = net_done,
                                      .failed = net_failed,
                                      .stopped = net_stopped,
                                      .leave = net_leave,
                                      .close = net_close,
                                      .clock_offset = net_clock_offset,
                                      .log = logs_put,
                                      .keeps = net_keeps,
                                      .logged = logs_take,
                                      .settled = logs_settled,
                                      .finish = net_finish};

co_err co_roster_open(co_roster **out, const co_terms *terms, const co_meet *where)
{
    net *r = co_zalloc(sizeof *r);
    co_err err;

    if (!r)
        return CO_ENOMEM;
    *r = (net){.base.ops = &ops,
               .terms = *terms,
               .where = *where,
               .event_fd = -1,
               .order_fd = -1,
               .meeting.listener = -1};
    pthread_mutex_init(&r->lock, NULL);
    r->events_end = &r->events;
    r->orders_end = &r->orders;
    r->client.terms = &r->terms;
    r->client.where = &r->where;
    r->client.run = run_number(terms->run_id);
    r->client.event = queue_event;
    r->client.broke = queue_broke;
    r->client.ctx = r;
    err = where->etcd.members ? finder_open(&r->finder, terms, where) : meet_decide(&r->meeting, terms, where);
    if (r->finder) {
        r->client.broke = finder_refused;
        r->client.lost = finder_lost;
    }
    if (!err && !r->finder && r->meeting.tls)
        err = co_tls_new(&r->tls, &r->meeting.token, terms->run_id);
    if (!err && ((r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
                 (r->order_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0))
        err = co_fail(CO_EIO, "eventfd: %m");
    if (err && r->meeting.listener >= 0)
        close(r->meeting.listener);
    else if (!err && r->meeting.serves)
        err = roster_serve_here(r);
    if (!err) {
        if (!r->finder)
            invite(r);
        if (co_thread_start(&r->thread, carrier_main, r))
            err = co_fail(CO_EIO, "no thread for the roster: %m");
        r->started = !err;
    }
    if (err) {
        net_close(&r->base);
        return err;
    }
    *out = &r->base;
    return CO_OK;
}
