/* client.c -- this host's seat: frames from the server become events, the agent's orders become frames.
 *
 * The server pings every second. The job is over for this host when the server has been silent for too long,
 * or when the connection ends before OVER came, unless another keeper of the roster can be found
 * (etcd/lost.c). Time in which this process itself did not run does not count as silence.
 */
#include "roster/net/client_int.h"

#include <stdio.h>
#include <string.h>

#include "roster/net/role_int.h"

/* What the agent says while no server is connected may still count when the hosts meet again. */
static void remember(client *cl, frame_type type, const json_t *body)
{
    co_failure frame;

    if (type == FRAME_DONE || type == FRAME_ENDED)
        cl->past.done = true;
    if (type == FRAME_DONE || type == FRAME_STOPPED)
        cl->agent = CLIENT_IDLE;
    if (type != FRAME_FAILED || cl->conn)
        return;
    failure_unpack(&frame, body);
    if (!cl->past.has_cause || frame.when_ns < cl->past.cause.when_ns)
        cl->past.cause = frame;
    cl->past.has_cause = true;
}

co_err client_say(client *cl, frame_type type, json_t *body)
{
    remember(cl, type, body);
    if (!cl->conn) {
        json_decref(body);
        return CO_OK;
    }
    return frame_send(cl->conn, type, cl->run, cl->view, body);
}

co_err client_hello(client *cl, const char *via)
{
    char host[CO_HOST_NAME];
    json_t *body = terms_pack(cl->terms);

    host_own_name(host, sizeof host, cl->where);
    if (!body || json_object_set_new(body, "host", co_json_string(host)) ||
        json_object_set_new(body, "via", co_json_string(via)) ||
        json_object_set_new(body, "advertise", co_json_string(cl->where->advertise)) ||
        json_object_set_new(body, "grace", json_integer((json_int_t)(cl->where->grace_s + 0.999))) ||
        json_object_set_new(body, "round", json_integer(cl->past.number)) ||
        json_object_set_new(body, "used",
                            json_integer(cl->past.restarts - (cl->past.done && cl->past.counted))) ||
        json_object_set_new(body, "done", json_integer(cl->past.done)) || !client_add_past_views(cl, body)) {
        json_decref(body);
        return co_fail(CO_ENOMEM, "out of memory for a greeting");
    }
    return client_say(cl, FRAME_HELLO, body);
}

static void end(client *cl)
{
    co_conn_free(cl->conn);
    cl->conn = NULL;
    cl->over = true;
}

void client_cut_off(client *cl, const char *why)
{
    co_roster_event ev = {.kind = CO_ROSTER_OVER, .status = CO_EXIT_PREEMPTED};

    if (cl->report->lost) {
        co_conn_free(cl->conn);
        cl->conn = NULL;
        cl->report->lost(cl->ctx, why);
        return;
    }
    snprintf(ev.text, sizeof ev.text,
             cl->terms->views ? "host %s, which keeps the roster, was lost: %s"
                              : "host %s, which keeps the roster, was lost: %s. Without it no host can go "
                                "on: the job ends here",
             cl->server, why);
    end(cl);
    cl->report->event(cl->ctx, &ev);
}

static void take_cause(co_roster_event *ev, const json_t *body)
{
    const json_t *cause = json_object_get(body, "cause");

    ev->has_cause = json_is_object(cause);
    if (ev->has_cause)
        failure_unpack(&ev->cause, cause);
}

static void name_port(client *cl)
{
    int port = 0;

    if (co_net_free_port(&port))
        port = 0;
    client_say(cl, FRAME_PORT, json_pack("{si}", "port", port));
}

static void answer_ping(client *cl, const json_t *body)
{
    atomic_store(&cl->offset_ns, field_int(body, "offset", -WALL_MOST_NS, WALL_MOST_NS, 0));
    cl->past.keeper_done = field_int(body, "done", 0, 1, 0);
    client_say(cl, FRAME_PONG,
               json_pack("{sI sI}", "t", (json_int_t)field_int(body, "t", 0, WALL_MOST_NS, 0), "mine",
                         (json_int_t)host_clock_ns(cl->where)));
}

/* A round that has room for our workers. */
static co_err take_round(co_round *r, const client *cl, const json_t *body)
{
    CO_TRY(round_unpack(r, body));
    if (r->first_rank + cl->terms->nproc > r->world)
        return co_fail(CO_EFORMAT, "a round that contradicts itself: %d workers from rank %d of %d",
                       cl->terms->nproc, r->first_rank, r->world);
    return CO_OK;
}

/* ---- frames: each function acts on one type and fills in the event for the agent, if there is one ---- */
static co_err hear_welcome(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    char at[CO_HOST_NAME], name[CO_HOST_NAME];

    (void)frame, (void)ev;
    snprintf(at, sizeof at, "%.200s", cl->server);
    field_text(name, sizeof name, body, "host");
    snprintf(cl->server, sizeof cl->server, *at ? "%.255s (%.200s)" : "%.255s", name, at);
    cl->logs = field_int(body, "logs", 0, 1, 0);
    cl->place = (int)field_int(body, "place", 0, CO_MAX_MEMBERS - 1, -1);
    return CO_OK;
}

static co_err hear_refused(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    bool over = field_int(body, "over", 0, 1, 0);

    (void)frame;
    end(cl);
    cl->report->refused(cl->ctx, cl->report->lost && over ? CO_EPEER : CO_EINPUT, ev->text);
    return CO_OK;
}

static co_err hear_ping(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    (void)frame, (void)ev;
    answer_ping(cl, body);
    return CO_OK;
}

static co_err hear_talk(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    (void)cl, (void)frame, (void)body;
    ev->kind = CO_ROSTER_TALK;
    return CO_OK;
}

static co_err hear_pick(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    (void)body, (void)ev;
    cl->view = frame->view;
    name_port(cl);
    return CO_OK;
}

static co_err hear_begin(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    CO_TRY(take_round(&ev->round, cl, body));
    cl->view = frame->view;
    ev->kind = CO_ROSTER_BEGIN;
    cl->past = (past){.number = frame->view, .restarts = ev->round.restarts, .hosts = ev->round.hosts};
    cl->agent = CLIENT_RUNS;
    return CO_OK;
}

static co_err hear_stop(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    (void)frame;
    ev->kind = CO_ROSTER_STOP;
    take_cause(ev, body);
    cl->past.has_cause = ev->has_cause;
    cl->past.cause = ev->cause;
    cl->agent = CLIENT_STOPS;
    return CO_OK;
}

static co_err hear_over(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    co_leave how;

    (void)frame;
    leave_unpack(&how, body);
    *ev = leave_event(&how);
    take_cause(ev, body);
    if (!cl->logs)
        end(cl);
    cl->over = true;
    return CO_OK;
}

static const struct {
    frame_type type;
    co_err (*hear)(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev);
} frames[] = {
    {FRAME_WELCOME, hear_welcome}, {FRAME_REFUSED, hear_refused}, {FRAME_PING, hear_ping},
    {FRAME_TALK, hear_talk},       {FRAME_PICK, hear_pick},       {FRAME_BEGIN, hear_begin},
    {FRAME_STOP, hear_stop},       {FRAME_OVER, hear_over},       {FRAME_FREEZE, hear_freeze},
    {FRAME_VIEW, hear_view},       {FRAME_WAIT, hear_wait},
};

/* Frames of other types are not for a client and are ignored. */
static co_err act(client *cl, const co_frame *frame, const json_t *body)
{
    co_roster_event ev = {.kind = CO_ROSTER_NOTHING};

    field_text(ev.text, sizeof ev.text, body, "text");
    for (size_t i = 0; i < CO_COUNT(frames); i++)
        if (frames[i].type == frame->type)
            CO_TRY(frames[i].hear(cl, frame, body, &ev));
    if (ev.kind != CO_ROSTER_NOTHING)
        cl->report->event(cl->ctx, &ev);
    return CO_OK;
}

co_err client_hear(client *cl, const co_frame *frame)
{
    json_t *body = NULL;

    CO_TRY(frame_read(&body, frame));
    cl->silent_ms = 0;
    co_err err = act(cl, frame, body);
    json_decref(body);
    return err;
}

/* The job is over, but this host still sends log lines. Pings are answered; any error closes the
 * connection. */
static void stay_for_logs(client *cl)
{
    json_t *body;
    co_frame frame;
    bool got = true;
    co_err err = co_conn_work(cl->conn);

    while (!err && got) {
        err = co_conn_next(cl->conn, &frame, &got);
        if (err || !got || frame.type != FRAME_PING)
            continue;
        err = frame_read(&body, &frame);
        if (!err) {
            answer_ping(cl, body);
            json_decref(body);
        }
    }
    if (err)
        end(cl);
}

void client_turn(client *cl, double elapsed_ms)
{
    double limit_ms = 1000 * (cl->where->lost_after_s > 0 ? cl->where->lost_after_s : 3);
    char why[300];
    co_frame frame;
    bool got = true;

    if (cl->conn && cl->over)
        stay_for_logs(cl);
    if (!cl->conn || cl->over)
        return;
    cl->silent_ms += elapsed_ms;
    co_err err = co_conn_work(cl->conn);
    snprintf(why, sizeof why, "%s", err ? co_errmsg() : "");
    while (got && cl->conn) {
        co_err bad = co_conn_next(cl->conn, &frame, &got);
        if (!bad && got)
            bad = client_hear(cl, &frame);
        if (bad) {
            client_cut_off(cl, co_errmsg());
            return;
        }
    }
    if (cl->conn && err)
        client_cut_off(cl, why);
    else if (cl->conn && cl->silent_ms > limit_ms) {
        snprintf(why, sizeof why, "no sign of life for %.1f s", cl->silent_ms / 1000);
        client_cut_off(cl, why);
    }
}
