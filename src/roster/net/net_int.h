/* roster_net_int.h -- the parts of a roster over the network.
 *
 *     agent --orders--> | carrier thread:   client <--frames--> server of this or another host | --events--> agent
 *
 * roster_net.c       the object and both queues; roster_net_carrier.c  its thread; roster_net_logs.c  lines of all hosts
 * roster_net_client.c  this host's seat: frames to events, orders to frames
 * roster_net_server.c  the seats: who is in, heartbeats; roster_net_gather.c, roster_net_rounds.c  when rounds
 *                    begin and end; roster_net_clock.c  clocks
 * roster_net_hello.c   who gets a seat; ask.c  who only asks what runs
 * roster_net_terms.c   who is refused, and what both sides are told; roster_net_words.c  frames' bodies, as JSON
 * meet.c             who serves; meet_reach.c  the steps from a name to a connection
 * roster_etcd*.c     who serves when etcd says it, and what becomes of the job when that host is lost
 */
#ifndef CO_ROSTER_NET_NET_INT_H
#define CO_ROSTER_NET_NET_INT_H

#include <poll.h>
#include <pthread.h>

#include "base/json.h"
#include "roster/roster_int.h"
#include "net/net.h"

enum { MEET_ADDRESSES = 8 }; /* of one endpoint, at most */

/* All times of a roster but those of co_meet. */
enum {
    BEAT_MS = 1000, /* from ping to ping; three in the time after which silence is a loss, if that is less */
    TURN_MS = 100,  /* the longest turn of the carrier */
    LATE_TURN_MS = 200, /* what a turn counts at most towards a deadline: suspend and Ctrl-Z are no silence */
    HELLO_MS = 5000,    /* a connection that does not say who it is by then is closed */
    CONNECT_MS = 3000,  /* no answer to a connection by then: dropped somewhere; tried again */
    STAGGER_MS = 250,   /* an endpoint with several addresses: from trying one to trying the next as well */
    RESOLVE_MS = 10000, /* likewise for names */
    DOUBT_MS = 2000,    /* and for a name that is looked up only to warn */
    ANSWER_MS = 10000,  /* from hello to welcome */
    GONE_MS = 3000,     /* a code says that somebody listens, and all refuse so long: it is over */
    FIRST_TALK_MS = 2000,     /* trouble that lasts so long is told */
    RETALK_MS = 15000,        /* the same trouble is told again after so long */
    STOPPING_MS = 120000,     /* a host that does not end its workers by then is lost, */
    AFTER_GRACE_MS = 30000,   /* but not before its grace period and this are over */
    LINGER_MS = 2000,         /* at the end: for the last words to arrive */
    LOG_LINGER_MS = 10000,    /* likewise for lines of logs, on a slow network */
    CLOCK_MS = 1000,          /* for a host's clock to be known before a round begins */
    CLOCK_WARN_S = 60,        /* clocks further apart are worth a line */
    CLOCK_SLACK_NS = 1000000, /* and this much is no step */
    GREETING_MOST = 1 << 16   /* bytes of who has not said yet who it is */
};

/* Types of frames. S: from the server, C: from a client. */
typedef enum {
    WORD_HELLO = 1, /* C: terms, host, via, advertise, grace; who comes back: round, used, done */
    WORD_WELCOME,   /* S: host, logs */
    WORD_REFUSED,   /* S: text, over */
    WORD_PING,      /* S: t, offset, done */
    WORD_PONG,      /* C: t as sent, mine */
    WORD_TALK,      /* S: text */
    WORD_PICK,      /* S: choose a port for MASTER_PORT */
    WORD_PORT,      /* C: port */
    WORD_BEGIN,     /* S: round */
    WORD_STOP,      /* S: text, cause */
    WORD_STOPPED,   /* C */
    WORD_DONE,      /* C */
    WORD_FAILED,    /* C: failure */
    WORD_LEAVE,     /* C: status, why */
    WORD_OVER,      /* S: status, text, cause */
    WORD_LOG,       /* C: lines as they are, no JSON */
    WORD_LOGGED,    /* C: those were all; it closes */
    WORD_ASK = 32,  /* C, instead of hello: host */
    WORD_PLAN       /* S: what runs, for who asked: host, version, cwd, words */
} word;

/* ---- words ---- */
/* Takes body (NULL: none), also when it fails. */
co_err word_send(co_conn *c, word type, uint64_t run, int64_t view, json_t *body);
co_err word_read(json_t **out, const co_frame *f); /* *out: an object, the caller's */
void word_text(char *out, size_t size, const json_t *body, const char *key);
int64_t word_int(const json_t *body, const char *key, int64_t least, int64_t most, int64_t otherwise);
json_t *terms_pack(const co_terms *t);
void terms_unpack(co_terms *t, const json_t *body);
json_t *round_pack(const co_round *r);
void round_unpack(co_round *r, const json_t *body);
json_t *failure_pack(const co_failure *f);
void failure_unpack(co_failure *f, const json_t *body);

/* What a host brings to a meeting after the keeper of the roster was lost. Zeroed: it is new. */
typedef struct past {
    int64_t number; /* the last round that began here */
    int restarts;   /* used up so far, the loss included */
    int hosts;      /* in that round, the keeper included */
    bool done;      /* this host's part of it */
    bool keeper_done;
    bool counted; /* the loss is in restarts */
    bool has_cause;
    co_failure cause;
} past;

/* ---- terms ---- */
typedef struct host_name {
    char name[CO_HOST_NAME], addr[CO_HOST_NAME];
} host_name;
/* Whether a host with terms `b` may be in a job with terms `a`. If not: what each side is told. */
bool terms_agree(char *to_b, char *to_a, size_t size, const co_terms *a, const co_terms *b,
                 const host_name *at_a, const host_name *at_b);

/* ---- meeting ---- */
int64_t meet_clock(const co_meet *m); /* CLOCK_REALTIME, and what a test adds to it */
typedef struct meeting {
    bool serves, tls;
    int listener; /* if it serves */
    co_endpoint at;
    co_token token;
    char made[CO_TOKEN_TEXT]; /* the token, if it was made here */
    char also[512];           /* further addresses of the endpoint */
    char doubt[700];          /* why it may be the wrong host that serves; "": no doubt */
    bool shown;               /* a joiner: the endpoint is of a code, shown when it was listened at already */
} meeting;
co_err meet_decide(meeting *out, const co_terms *terms, const co_meet *where);
/* From the name to a connection that knows the token. `told` gets a line when it takes long. */
typedef struct reached {
    co_conn *conn;
    char via[CO_HOST_NAME], from[CO_HOST_NAME]; /* the address that was reached, and ours */
} reached;
co_err meet_reach(reached *out, const meeting *m, co_tls *tls, const co_patience *p,
                  void (*told)(void *, const char *), void *ctx);

/* Who keeps the roster is found (roster_etcd.c) rather than given. All calls are the carrier's. */
typedef struct finder finder;
typedef struct net net;
co_err finder_open(finder **out, const co_terms *terms, const co_meet *where);
void finder_close(finder *f); /* NULL is fine */
bool finder_needs_token(const co_terms *terms, const co_meet *where);
co_err finder_meet(net *r, const co_patience *p); /* then r serves, is welcome elsewhere, or is over */
void finder_turn(net *r);                         /* of a keeper: may step down */
void finder_fail(net *r);                         /* no meeting in time: co_errmsg */
void finder_end(net *r);                          /* of a keeper: until its place is free again */
void finder_let_go(net *r); /* of a keeper: others may take its place when its lease is over */
void finder_refused(void *roster, co_err err, const char *text); /* client.broke */
void finder_lost(void *roster, const char *why);                 /* client.lost */

/* ---- the server ---- */
typedef struct server server;
/* Takes listener and local_fd (this host's own seat). */
co_err server_open(server **out, const co_terms *terms, const co_meet *where, const meeting *m, co_tls *tls,
                   int local_fd);
int server_fds(const server *s, struct pollfd *fds, int most);
enum { SERVER_FDS = CO_MAX_HOSTS + CO_STRANGERS + 2 };
void server_turn(server *s, double elapsed_ms);
void server_end(server *s, int status, const char *why); /* tells all that the job is over, if it is not */
/* Lines that other hosts log; also after the end, while they are connected. */
void server_logs_to(server *s, void (*log)(void *ctx, const char *lines, size_t n), void *ctx);
void server_logs_end(server *s);   /* whoever has not said all by now: a line says so */
bool server_idle(const server *s); /* over, and everybody knows */
void server_close(server *s);      /* NULL is fine */
/* For a keeper whose place another could have taken. It goes on where a lost one was. */
void server_resume(server *s, const past *p);
int server_losses(const server *s);       /* hosts lost so far */
bool server_asks(const server *s);        /* a round would begin if it were cleared */
void server_clear(server *s, int losses); /* these have not taken its place: a round may begin */
bool server_over(const server *s);
int server_status(const server *s, char *text, size_t size); /* once it is over */

/* ---- the client ---- */
typedef struct client {
    co_conn *conn; /* NULL: not connected, or over */
    const co_terms *terms;
    const co_meet *where;
    uint64_t run;
    int64_t view;
    double silent_ms;
    char server[CO_HOST_NAME * 2]; /* name and address of who keeps the roster, for messages */
    bool over;
    bool logged; /* the server has been told that there is no more */
    bool logs; /* the server wants what we log: connected until the agent closes, not only until it is over */
    past past;
    enum { CLIENT_IDLE, CLIENT_RUNS, CLIENT_STOPS } agent; /* what the agent's workers do */
    atomic_llong offset_ns;
    void (*event)(void *ctx, const co_roster_event *ev);
    void (*broke)(void *ctx, co_err err, const char *text);
    void (*lost)(void *ctx, const char *why); /* the server; NULL: then the job is over */
    void *ctx;
} client;
co_err client_hello(client *c, const char *via);
co_err client_hear(client *c, const co_frame *f); /* CO_EFORMAT: not a message */
void client_turn(client *c, double elapsed_ms);
void client_cut_off(client *c, const char *why);
co_err client_say(client *c, word type, json_t *body); /* takes body */
uint64_t run_number(const char *run_id);

#endif
