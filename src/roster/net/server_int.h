/* roster_net_server_int.h -- shared by the files of the server: seats (server.c, hello.c) and rounds (rounds.c). */
#ifndef CO_ROSTER_NET_SERVER_INT_H
#define CO_ROSTER_NET_SERVER_INT_H

#include "roster/net/net_int.h"

/* A host in the job, or a connection that has not said yet who it is. */
typedef struct seat {
    co_conn *conn;
    bool local;   /* the server's own host */
    bool joined;  /* said hello and was welcomed */
    bool closing; /* gets its last words, then goes */
    bool logs;    /* was in the job, and its lines are wanted: also after it left, until it has logged all */
    bool logged;
    char gone[300]; /* not "": to be dropped in this turn, with this reason */
    host_name who;
    co_addr from;
    char via[CO_HOST_NAME], advertise[CO_HOST_NAME];
    co_terms terms;
    double grace_s; /* what it gives its workers to end */
    int64_t seq;    /* order of joining */
    int host;       /* number in this round; -1: not in it */
    bool stopped, done;
    double silent_ms, since_ping_ms, age_ms;
    int64_t offset_ns, best_rtt_ns; /* its clock less ours; rtt -1: not measured */
    int64_t heard_ns;               /* our wall clock when it last said something */
    bool clock_told;
    int64_t past_round; /* its last round when it came; 0: it is new */
    bool past_done;
} seat;

typedef enum { GATHER, PICK, RUN, STOPPING, OVER } stage;

struct server {
    co_terms terms;
    co_meet where;
    co_endpoint at;
    uint64_t run;
    char me[CO_HOST_NAME];
    co_gate *gate;
    seat **seats;
    int n, room;
    int64_t next_seq;
    stage stage;
    double stage_ms, last_call_ms; /* in this stage; since there were enough hosts, -1: there are not */
    co_round round;
    bool counts;    /* the round that is being stopped ended by a failure */
    bool some_done; /* of this round: a host, which may be gone by now */
    bool undone;    /* likewise: a host left before it was done */
    bool has_cause;
    co_failure cause;
    char why[1024]; /* the round is stopped because */
    uint64_t wrong_token_told;
    double wrong_token_ms; /* since it was told */
    past past;             /* of a keeper before this one; number 0: none */
    int64_t least_number;  /* what those who come have seen: rounds go on from there */
    int least_restarts;
    bool asks;                                           /* see server_asks */
    int losses, cleared;                                 /* see server_clear */
    int status;                                          /* once it is over; its text is in why */
    void (*log)(void *ctx, const char *lines, size_t n); /* see server_logs_to */
    void *log_ctx;
};

/* seats */
void seat_say(server *s, seat *h, word type, json_t *body); /* takes body; a failure drops the seat */
void server_talk(server *s, bool to_all, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int server_joined(const server *s);
void seat_name(char *out, size_t size, const seat *h); /* "b (10.0.0.2)" */

/* ask.c: a seat that did not say hello but asked what runs, or that knows and does not join */
void server_asked(server *s, seat *h, const json_t *body);
void server_not_joined(server *s, seat *h, const json_t *body);

/* roster_net_clock.c */
void seat_ping(server *s, seat *h);
void seat_pong(server *s, seat *h, const json_t *body);

/* roster_net_hello.c */
void seat_hello(server *s, seat *h, const json_t *body);
void seat_refuse(server *s, seat *h, const char *to_it, const char *to_us);

/* rounds, roster_net_gather.c */
void rounds_enter(server *s, stage to);
bool rounds_regather(const server *s); /* after a lost keeper: its hosts are on their way */
void rounds_gather(server *s, double elapsed_ms);
void rounds_turn(server *s, double elapsed_ms);
void rounds_joined(server *s, seat *h);
void rounds_port(server *s, seat *h, int port);
void rounds_failed(server *s, seat *h, const co_failure *f);
void rounds_left(server *s, seat *h, int status, const char *why); /* asked to end */
void rounds_lost(server *s, seat *h); /* h->gone says how; it is out of the list already */
void rounds_over(server *s, int status, const char *text);

#endif
