/* roster_net_client.c -- this host's seat: what the server says becomes events, what the agent says becomes frames.
 *
 * The server pings every second; when it has been silent for too long on our own scheduled time, or the connection ends before
 * OVER came, the job is over for this host, unless another roster can be found (roster_etcd_lost.c).
 */
#include "roster/net/net_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is said while nobody listens may still count when the hosts meet again. */
static void remember(client *c, word type, const json_t *body)
{
    co_failure f;

    if (type == WORD_DONE)
        c->past.done = true;
    if (type == WORD_DONE || type == WORD_STOPPED)
        c->agent = CLIENT_IDLE;
    if (type != WORD_FAILED || c->conn)
        return;
    failure_unpack(&f, body);
    if (!c->past.has_cause || f.when_ns < c->past.cause.when_ns)
        c->past.cause = f;
    c->past.has_cause = true;
}

co_err client_say(client *c, word type, json_t *body)
{
    remember(c, type, body);
    if (!c->conn) {
        json_decref(body);
        return CO_OK;
    }
    return word_send(c->conn, type, c->run, c->view, body);
}

co_err client_hello(client *c, const char *via)
{
    char host[CO_HOST_NAME] = "host";
    json_t *body = terms_pack(c->terms);

    if (*c->where->host)
        snprintf(host, sizeof host, "%s", c->where->host);
    else
        gethostname(host, sizeof host - 1);
    if (!body || json_object_set_new(body, "host", co_json_string(host)) ||
        json_object_set_new(body, "via", co_json_string(via)) ||
        json_object_set_new(body, "advertise", co_json_string(c->where->advertise)) ||
        json_object_set_new(body, "grace", json_integer((json_int_t)(c->where->grace_s + 0.999))) ||
        json_object_set_new(body, "round", json_integer(c->past.number)) ||
        json_object_set_new(body, "used", json_integer(c->past.restarts - (c->past.done && c->past.counted))) ||
        json_object_set_new(body, "done", json_integer(c->past.done))) {
        json_decref(body);
        return co_fail(CO_ENOMEM, "out of memory for a greeting");
    }
    return client_say(c, WORD_HELLO, body);
}

static void end(client *c)
{
    co_conn_free(c->conn);
    c->conn = NULL;
    c->over = true;
}

void client_cut_off(client *c, const char *why)
{
    co_roster_event ev = {.kind = CO_ROSTER_OVER, .status = CO_EXIT_PREEMPTED};

    if (c->lost) {
        co_conn_free(c->conn);
        c->conn = NULL;
        c->lost(c->ctx, why);
        return;
    }

    snprintf(ev.text, sizeof ev.text,
             "host %s, which keeps the roster, was lost: %s. Without it no host can go on: the job ends here",
             c->server, why);
    end(c);
    c->event(c->ctx, &ev);
}

static void take_cause(co_roster_event *ev, const json_t *body)
{
    const json_t *cause = json_object_get(body, "cause");

    ev->has_cause = json_is_object(cause);
    if (ev->has_cause)
        failure_unpack(&ev->cause, cause);
}

static void name_port(client *c)
{
    int port = 0;

    if (co_net_free_port(&port))
        port = 0;
    client_say(c, WORD_PORT, json_pack("{si}", "port", port));
}

static void answer_ping(client *c, const json_t *body)
{
    atomic_store(&c->offset_ns, word_int(body, "offset", INT64_MIN, INT64_MAX, 0));
    c->past.keeper_done = word_int(body, "done", 0, 1, 0);
    client_say(c, WORD_PONG,
               json_pack("{sI sI}", "t", (json_int_t)word_int(body, "t", 0, INT64_MAX, 0), "mine",
                         (json_int_t)meet_clock(c->where)));
}

static void act(client *c, const co_frame *f, const json_t *body)
{
    co_roster_event ev = {.kind = CO_ROSTER_NOTHING};
    char at[CO_HOST_NAME], name[CO_HOST_NAME];

    word_text(ev.text, sizeof ev.text, body, "text");
    switch (f->type) {
    case WORD_WELCOME:
        snprintf(at, sizeof at, "%.200s", c->server);
        word_text(name, sizeof name, body, "host");
        snprintf(c->server, sizeof c->server, *at ? "%.255s (%.200s)" : "%.255s", name, at);
        c->logs = word_int(body, "logs", 0, 1, 0);
        break;
    case WORD_REFUSED:
        end(c);
        c->broke(c->ctx, c->lost && word_int(body, "over", 0, 1, 0) ? CO_EPEER : CO_EINPUT, ev.text);
        return;
    case WORD_PING:
        answer_ping(c, body);
        break;
    case WORD_TALK:
        ev.kind = CO_ROSTER_TALK;
        break;
    case WORD_PICK:
        c->view = f->view;
        name_port(c);
        break;
    case WORD_BEGIN:
        c->view = f->view;
        ev.kind = CO_ROSTER_BEGIN;
        round_unpack(&ev.round, body);
        c->past = (past){.number = f->view, .restarts = ev.round.restarts, .hosts = ev.round.hosts};
        c->agent = CLIENT_RUNS;
        break;
    case WORD_STOP:
        ev.kind = CO_ROSTER_STOP;
        take_cause(&ev, body);
        c->past.has_cause = ev.has_cause;
        c->past.cause = ev.cause;
        c->agent = CLIENT_STOPS;
        break;
    case WORD_OVER:
        ev.kind = CO_ROSTER_OVER;
        ev.status = (int)word_int(body, "status", 0, 255, 1);
        take_cause(&ev, body);
        if (!c->logs)
            end(c);
        c->over = true;
        break;
    }
    if (ev.kind != CO_ROSTER_NOTHING)
        c->event(c->ctx, &ev);
}

co_err client_hear(client *c, const co_frame *f)
{
    json_t *body = NULL;

    CO_TRY(word_read(&body, f));
    c->silent_ms = 0;
    act(c, f, body);
    json_decref(body);
    return CO_OK;
}

/* The job is over; what this host still logs goes out. A server that is gone, or says nothing sensible, misses it. */
static void log_on(client *c)
{
    json_t *body;
    co_frame f;
    bool got = true;
    co_err err = co_conn_work(c->conn);

    while (!err && got) {
        err = co_conn_next(c->conn, &f, &got);
        if (err || !got || f.type != WORD_PING)
            continue;
        err = word_read(&body, &f);
        if (!err) {
            answer_ping(c, body);
            json_decref(body);
        }
    }
    if (err)
        end(c);
}

void client_turn(client *c, double elapsed_ms)
{
    double limit_ms = 1000 * (c->where->lost_after_s > 0 ? c->where->lost_after_s : 3);
    char why[300];
    co_frame f;
    bool got = true;

    if (c->conn && c->over)
        log_on(c);
    if (!c->conn || c->over)
        return;
    c->silent_ms += elapsed_ms;
    co_err err = co_conn_work(c->conn);
    snprintf(why, sizeof why, "%s", err ? co_errmsg() : "");
    while (got && c->conn) {
        co_err bad = co_conn_next(c->conn, &f, &got);
        if (!bad && got)
            bad = client_hear(c, &f);
        if (bad) {
            client_cut_off(c, co_errmsg());
            return;
        }
    }
    if (c->conn && err)
        client_cut_off(c, why);
    else if (c->conn && c->silent_ms > limit_ms) {
        snprintf(why, sizeof why, "no sign of life for %.1f s", c->silent_ms / 1000);
        client_cut_off(c, why);
    }
}
