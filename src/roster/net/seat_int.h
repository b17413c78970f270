/* seat_int.h -- inside the server: hosts and seats below, and above them two policies, one of which runs the
 * job: rounds of workers (any program), or views (training). Calls point down this list:
 *
 *     server.c         the loop: reads every connection, drops the silent ones
 *     hello.c          the first frame of a connection: a seat, a refusal, or the plan for a host that only
 *                      asks
 *     rounds.c         when a round ends, and what follows
 *     begin.c          how a round begins
 *     views.c          when a view ends, and what follows
 *     accuse.c         members of a view that lost their connection to each other
 *     slow.c           a member that is slower than the others for good
 *     views_change.c   how a view begins
 *     gather.c         waits for enough hosts
 *     place.c          the hosts' places in a run of views
 *     facts.c          what must be the same on all hosts
 *     stage.c          the steps from stage to stage, which all hosts hear of
 *     clock.c          how far the hosts' clocks are apart
 *     seat.c           one host's connection: frames to it, lines for its terminal
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

    /* In this round or view. */
    int number; /* -1: not in it */
    bool stopped, done;
    bool logged; /* it has sent all its log lines */

    struct {                 /* place.c, views.c, views_change.c */
        int place;           /* in the run; -1: none */
        bool known;          /* `at` is its answer to the last FREEZE */
        bool in_view;        /* a member of the last view that began */
        bool awaits;         /* too few hosts are here, and it knows */
        co_position at;      /* where it stands */
        int weight;          /* 0: not known */
        co_host_speed speed; /* weight 0: not known */
        int slow;            /* measurements in a row in which it was slower than the others; see slow.c */
        bool slow_said;      /* everybody knows */
        uint32_t unreadable; /* the last unit of which it could not read a sample; 0: none */
        /* of a host that lost its keeper: the last view that began there, and the last for which it froze */
        int64_t past_view, past_frozen;
    } member;

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
    int64_t view; /* with the number of the round or view; 0: none has begun */
    int64_t next_seq;
} seats;

/* Where the job stands. PICK and STOPPING: rounds. FREEZING and WAITING: views. */
typedef enum { GATHER, PICK, STOPPING, FREEZING, WAITING, RUN, OVER } stage;

typedef struct job { /* stage.c, gather.c */
    stage stage;
    double stage_ms;     /* in this stage */
    double last_call_ms; /* time since enough hosts are here; -1: there are too few */
    bool has_cause;
    co_failure cause;
    co_leave ending; /* once the job is over */
} job;

typedef struct rounds { /* rounds.c, begin.c */
    co_round round;
    bool counts;    /* the round that is being stopped ended by a failure */
    bool some_done; /* a host of this round is done; it may be gone by now */
    bool undone;    /* a host of this round left before it was done */
} rounds;

typedef struct accusation { /* accuse.c */
    double age_ms;
    int64_t number; /* of the view */
    int by, whom;   /* places */
} accusation;
enum { ACCUSATIONS = 256 };

typedef struct views {             /* views.c, views_change.c, accuse.c */
    co_view view;                  /* the last that began */
    int64_t decided;               /* its number; 0: none, at this keeper */
    double view_ms;                /* since it began */
    bool wanted;                   /* a change must begin */
    char why[400];                 /* for people: the reasons for the change */
    double settles_ms;             /* since a member was cut off from another; -1: none was */
    char cut[320];                 /* for people: which one */
    bool weighed;                  /* a weight has changed since the view began */
    uint64_t born[CO_MAX_MEMBERS]; /* by place: the birth of the last host that had it; 0: nobody has */
    accusation accused[ACCUSATIONS];
    int accusations;
} views;

typedef struct handover { /* of a keeper whose place another host could have taken */
    bool checked;         /* rounds and views need server_clear */
    past past;            /* of the keeper before this one; number 0: none */
    int64_t least_number; /* rounds and restarts go on from the highest that any host brings */
    int least_restarts;
    bool wants_clearance;
    int losses, cleared; /* see server_clear */
} handover;

/* How a job goes on: one row for each kind of job. `peer->gone` of a lost host says how it was lost; it is
 * out of the list already. */
typedef struct policy {
    const char *name;
    /* More that a host must have to join: false, with what to say to each side. NULL: nothing. */
    bool (*admit)(server *srv, seat *peer, const json_t *hello, char *to_it, char *to_us, size_t size);
    void (*joined)(server *srv, seat *peer);
    void (*lost)(server *srv, seat *peer);
    void (*left)(server *srv, seat *peer, const co_leave *how); /* that host was asked to end */
    void (*hear)(server *srv, seat *peer, const co_frame *frame, const json_t *body);
    void (*turn)(server *srv, double elapsed_ms);
    void (*begin)(server *srv);                       /* enough hosts are here */
    void (*regather)(server *srv, double elapsed_ms); /* after a lost keeper: its hosts come back */
} policy;
extern const policy policy_rounds, policy_views;

struct server {
    co_terms terms; /* these do not change */
    co_meet where;
    co_endpoint at;
    char me[CO_HOST_NAME];
    const policy *policy;
    json_t *facts; /* see co_terms; NULL: none */
    int slices;    /* of a step, from the facts */

    co_gate *gate; /* server.c */
    uint64_t wrong_token_told;
    double wrong_token_ms;                               /* time since that was last reported */
    void (*log)(void *ctx, const char *lines, size_t n); /* see server_logs_to */
    void *log_ctx;

    seats seats;
    job job;
    rounds rounds;
    views views;
    handover handover;
};

/* ---- seat.c ---- */
seat *seat_new(seats *all, co_conn *conn);
void seat_free(seat *peer);
void seat_drop(seat *peer, const char *why); /* at the end of this turn */
void seat_say(const seats *all, seat *peer, frame_type type,
              json_t *body); /* takes body; a failure drops the seat */
/* to a seat that is dropped */
void seat_farewell(const seats *all, seat *peer, frame_type type, json_t *body);
void seat_name(char *out, size_t size, const seat *peer); /* "b (10.0.0.2)" */
bool seat_stays(const seat *peer); /* in the job, or it left and its log lines are still to come */
int seats_joined(const seats *all);
seat *seats_number(const seats *all, int number); /* NULL: lost */
/* The address by which `to` reaches a host; NULL: any of the others. */
void seats_address(const seats *all, const seat *peer, const seat *to, char *out, size_t size);
void seats_talk(const seats *all, bool to_all, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- clock.c ---- */
void clock_ping(server *srv, seat *peer);
void clock_pong(server *srv, seat *peer, const json_t *body);

/* ---- stage.c ---- */
void stage_enter(job *all, stage to);
void stage_end(server *srv, const co_leave *how);           /* ends the job, if it is not over */
void stage_over(server *srv, int status, const char *text); /* ends the job by itself, at nobody's request */
void stage_dismiss(server *srv, seat *peer, const co_leave *how); /* the job is over for this host alone */
void stage_add_cause(const job *all, json_t *body);
int64_t stage_next_number(server *srv);  /* of a round or view: frames have it from now on */
bool stage_regathers(const server *srv); /* after a lost keeper: its hosts are on their way, in any order */
bool stage_unsure(const server *srv); /* lost hosts may have gone on without us: etcd must be asked first */

/* ---- gather.c ---- */
double gather_limit_ms(const server *srv); /* how long we wait for enough hosts, */
double gather_call_ms(const server *srv);  /* and for more than enough */
void gather_turn(server *srv, double elapsed_ms);
/* Enough hosts are here: begins, unless lost hosts may have gone on without us. */
void gather_begin(server *srv);
void gather_joined(server *srv, seat *peer);
void gather_gone(server *srv, const seat *peer);
void gather_left(server *srv, seat *peer, const co_leave *how);
bool gather_waits(const server *srv, double elapsed_ms, double wait_ms, int n,
                  int were); /* for hosts to come back */

/* ---- begin.c ---- */
void begin_pick(server *srv);
void begin_port(server *srv, seat *peer, int port);
void begin_regather(server *srv, double elapsed_ms);

/* ---- facts.c, place.c ---- */
bool facts_agree(server *srv, const seat *peer, const json_t *theirs, char *to_it, char *to_us, size_t size);
int facts_slices(const json_t *facts);
bool views_admit(server *srv, seat *peer, const json_t *hello, char *to_it, char *to_us, size_t size);

/* ---- views_change.c ---- */
void views_freeze(server *srv);
void views_change(server *srv);
void views_position(server *srv, seat *peer, const json_t *body);
void views_want(views *all, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void views_dismiss(server *srv, seat *peer, const co_leave *how); /* the others go on without this host */
bool views_enough(const server *srv);                             /* hosts, for a run that has begun */
void views_wait(server *srv, seat *peer);                         /* that host hears that too few are here */
int views_weights(const server *srv, int *weight); /* by number; returns how many members there are */

/* ---- accuse.c ---- */
void accuse(server *srv, seat *by, int whom, const char *why);
void accuse_turn(server *srv, double elapsed_ms);

/* ---- slow.c ---- */
void slow_check(server *srv, seat *peer); /* after each measurement of its */

/* ---- hello.c ---- */
void hello_first(server *srv, seat *peer, frame_type type, const json_t *body); /* HELLO, ASK or LEAVE */

#endif
