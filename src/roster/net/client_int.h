/* client_int.h -- this host's seat at the roster, wherever the server runs. */
#ifndef CO_ROSTER_NET_CLIENT_INT_H
#define CO_ROSTER_NET_CLIENT_INT_H

#include <stdatomic.h>

#include "roster/net/frame_int.h"

/* What a host knows of the last round when the keeper of the roster was lost. Zeroed: the host is new. */
typedef struct past {
    int64_t number; /* the last round that began here */
    int restarts;   /* used up so far, the loss included */
    int hosts;      /* in that round, the keeper included */
    bool done;      /* this host's part of it */
    bool keeper_done;
    bool counted; /* the loss is in restarts */
    bool has_cause;
    co_failure cause;
    /* In a job of views, where `number` is the highest that the host has heard of. */
    int64_t view, frozen; /* the last view that began here, and the last for which a keeper froze this host */
    uint64_t born[CO_MAX_MEMBERS]; /* by place: the birth of the last member that this host knows of */
} past;

/* What the client reports; the carrier thread makes all these calls. */
typedef struct client_events {
    void (*event)(void *ctx, const co_roster_event *ev);
    void (*refused)(void *ctx, co_err err, const char *text); /* CO_EPEER: the job there is over */
    void (*lost)(void *ctx, const char *why); /* the server is lost; NULL: then the job is over */
} client_events;

typedef struct client {
    co_conn *conn; /* NULL: not connected, or over */
    const co_terms *terms;
    const co_meet *where;
    const client_events *report;
    void *ctx;
    uint64_t run;
    int64_t view;
    double silent_ms;
    char server[CO_HOST_NAME * 2]; /* name and address of the host that keeps the roster, for messages */
    bool over;
    bool logs;   /* the server wants our log lines, so we stay connected until the agent closes */
    bool logged; /* the server knows that no more lines will come */
    int place;   /* in a run of views; -1: none yet */
    past past;
    enum { CLIENT_IDLE, CLIENT_RUNS, CLIENT_STOPS } agent; /* what the agent's workers do */
    atomic_llong offset_ns;                                /* our clock less the server's */
} client;

/* ---- client_views.c: frames of a job of views (see `frames` in client.c) ---- */
co_err hear_freeze(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev);
co_err hear_view(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev);
co_err hear_wait(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev);
bool client_add_past_views(const client *cl, json_t *hello);

/* ---- client.c ---- */
co_err client_hello(client *cl, const char *via);
co_err client_hear(client *cl, const co_frame *frame); /* CO_EFORMAT: not a message */
void client_turn(client *cl, double elapsed_ms);
void client_cut_off(client *cl, const char *why);
co_err client_say(client *cl, frame_type type, json_t *body); /* takes body */

#endif
