/* seat_int.h -- inside the server: seats, stages and rounds. Calls point down this list:
 *
 *     server.c    the loop: reads every connection, drops the silent ones
 *     hello.c     the first frame of a connection: a seat, a refusal, or the plan for a host that only asks
 *     rounds.c    when a round ends, and what follows
 *     gather.c    how a round begins
 *     stage.c     the steps from stage to stage, which all hosts hear of
 *     clock.c     how far the hosts' clocks are apart
 *     seat.c      one host's connection: frames to it, lines for its terminal
 */
#ifndef CO_ROSTER_NET_SEAT_INT_H
#define CO_ROSTER_NET_SEAT_INT_H

#include "roster/net/server_int.h"

/* A host in the job, or a connection that has not said yet who it is. */
typedef struct seat {
    co_conn *conn;
    bool local;     /* the server's own host */
    bool joined;    /* said HELLO and was welcomed */
    bool closing;   /* has its last frame and is closed soon */
    char gone[300]; /* not "": to be dropped at the end of this turn, for this reason */
    double silent_ms, since_ping_ms, age_ms;
    int64_t heard_ns; /* our wall clock when the last frame came */

    /* Set by hello.c. */
    host_name who;
    co_addr from;
    char via[CO_HOST_NAME], advertise[CO_HOST_NAME];
    co_terms terms;
    double grace_s;     /* how long its workers have to end */
    int64_t seq;        /* order of joining */
    int64_t past_round; /* its last round when it came; 0: it is new */
    bool past_done;
    bool logs; /* we want its log lines, also after it left, until it has sent all */

    /* In this round. */
    int number; /* -1: not in it */
    bool stopped, done;
    bool logged; /* it has sent all its log lines */

    struct {                 /* clock.c */
        int64_t offset_ns;   /* its clock less ours */
        int64_t best_rtt_ns; /* -1: not measured */
        bool warned;
    } clock;
} seat;

typedef struct seats { /* seat.c */
    seat **at;
    int n, room;
    uint64_t run; /* in the head of every frame, */
    int64_t view; /* with the number of the round */
    int64_t next_seq;
} seats;

typedef enum { GATHER, PICK, RUN, STOPPING, OVER } stage;

typedef struct rounds { /* stage.c, gather.c, rounds.c */
    stage stage;
    double stage_ms;     /* in this stage */
    double last_call_ms; /* time since enough hosts are here; -1: there are too few */
    co_round round;
    bool counts;    /* the round that is being stopped ended by a failure */
    bool some_done; /* a host of this round is done; it may be gone by now */
    bool undone;    /* a host of this round left before it was done */
    bool has_cause;
    co_failure cause;
    co_leave ending; /* once the job is over */
} rounds;

typedef struct handover { /* of a keeper whose place another host could have taken */
    bool checked;         /* rounds need server_clear */
    past past;            /* of the keeper before this one; number 0: none */
    int64_t least_number; /* rounds and restarts go on from the highest that any host brings */
    int least_restarts;
    bool wants_clearance;
    int losses, cleared; /* see server_clear */
} handover;

struct server {
    co_terms terms; /* these four do not change */
    co_meet where;
    co_endpoint at;
    char me[CO_HOST_NAME];

    co_gate *gate; /* server.c */
    uint64_t wrong_token_told;
    double wrong_token_ms;                               /* time since that was last reported */
    void (*log)(void *ctx, const char *lines, size_t n); /* see server_logs_to */
    void *log_ctx;

    seats seats;
    rounds rounds;
    handover handover;
};

/* ---- seat.c ---- */
seat *seat_new(seats *all, co_conn *conn);
void seat_free(seat *peer);
void seat_drop(seat *peer, const char *why); /* at the end of this turn */
void seat_say(const seats *all, seat *peer, frame_type type,
              json_t *body);                              /* takes body; a failure drops the seat */
void seat_name(char *out, size_t size, const seat *peer); /* "b (10.0.0.2)" */
bool seat_stays(const seat *peer); /* in the job, or it left and its log lines are still to come */
int seats_joined(const seats *all);
void seats_talk(const seats *all, bool to_all, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- clock.c ---- */
void clock_ping(server *srv, seat *peer);
void clock_pong(server *srv, seat *peer, const json_t *body);

/* ---- stage.c ---- */
void stage_enter(rounds *all, stage to);
void stage_stop(server *srv, bool counts, const char *why); /* ends the round, if one runs */
void stage_end(server *srv, const co_leave *how);           /* ends the job, if it is not over */
void stage_over(server *srv, int status, const char *text); /* ends the job by itself, at nobody's request */
bool stage_between(const server *srv);   /* a round has run, here or before a lost keeper */
bool stage_regathers(const server *srv); /* after a lost keeper: its hosts are on their way, in any order */
bool stage_unsure(const server *srv); /* lost hosts may have gone on without us: etcd must be asked first */

/* ---- gather.c ---- */
void gather_turn(server *srv, double elapsed_ms);
void gather_port(server *srv, seat *peer, int port);

/* ---- rounds.c ---- */
void rounds_turn(server *srv, double elapsed_ms);
void rounds_joined(server *srv, seat *peer);
void rounds_failed(server *srv, seat *peer, const co_failure *failure);
void rounds_left(server *srv, seat *peer, const co_leave *how); /* that host was asked to end */
void rounds_lost(server *srv, seat *peer); /* peer->gone says how; it is out of the list already */

/* ---- hello.c ---- */
void hello_first(server *srv, seat *peer, frame_type type, const json_t *body); /* HELLO, ASK or LEAVE */

#endif
