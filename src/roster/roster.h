/* roster.h -- where the hosts of a job meet. A roster decides which hosts are in the job, in which order, and
 * when a round of workers begins and ends.
 *
 * A job is a sequence of rounds. In a round every host runs its workers, and all hosts agree on the ranks. A
 * round ends when all workers are done, when one has failed, or when a host comes or goes. After a failure
 * another round begins if restarts are left. The local roster (for one host) and the roster over the network
 * have the same interface: the agent, which runs the workers, does not know which one it uses.
 *
 *     co_roster *r;
 *     CO_TRY(co_roster_local(&r, &terms));                 // or co_roster_open(&r, &terms, &where)
 *     while (co_roster_turn(r, 100, &ev) == CO_OK && ev.kind != CO_ROSTER_OVER) ...
 *
 * A training job (terms.views) is a sequence of views instead of rounds. Its hosts keep their processes and
 * memory when another comes or goes:
 *
 *     FREEZE   every host freezes its step and answers with its position
 *     VIEW     the members, what each of them computes, and who gives what to whom (comm/view.h)
 */
#ifndef CO_ROSTER_ROSTER_H
#define CO_ROSTER_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "comm/view.h"

enum { CO_MAX_HOSTS = 1024, CO_MAX_WORKERS = 1024 /* of one host */, CO_HOST_NAME = 256 };
enum { CO_EXIT_PREEMPTED = 75 }; /* the job was asked to end, or lost its roster: it can be started again */
enum { CO_MEET_PORT = 29400 };   /* the port of an endpoint that names none; torchrun has the same default */

/* What a host's command line says about the job. All hosts must agree on run_id, min_hosts, max_hosts,
 * program, version, views and facts. */
typedef struct co_terms {
    char run_id[128];
    int min_hosts, max_hosts;
    int nproc;     /* workers on this host */
    int host_rank; /* the host's number that the user asked for; -1: any */
    int max_restarts;
    char program[256]; /* what runs, for comparison and messages */
    char version[32];

    /* The rest is for a job of views. */
    bool views;
    /* with fewer members a run that has begun waits for more; min_hosts are needed to begin. The keeper's
     * counts. */
    int least_hosts;
    int bulk_port;  /* where this host's link listens; 0: nowhere */
    uint64_t birth; /* see co_link_peer */
    /* What must be the same on all hosts: a JSON object of texts, {"data": "sha256 ...", "config.seed": "1"}.
     * A host that differs from the first one is refused, and the refusal names the first key that differs,
     * with both values. "slices" is how many slices a step has, 1 to CO_MAX_SLICES; without it the roster
     * deals one. At most 512 KiB. Borrowed until co_roster_close; NULL: nothing is compared. */
    const char *facts;
} co_terms;

/* A member of a view. */
typedef struct co_member {
    int id; /* its place in the run */
    uint64_t birth;
    char name[CO_HOST_NAME], addr[CO_HOST_NAME];
    int port, ranks; /* where its link listens; its workers */
} co_member;

/* How fast a host is, and what may make it slow. Measured over the last seconds. */
typedef struct co_host_speed {
    int weight;     /* how fast, in any unit that all hosts share; the deal follows it */
    int compute_us; /* what computing a slice costs: time of a rank times its threads */
    int input_us;   /* the same for waiting for the slice's data */
    int cpus;       /* that it may use */
    int threads;    /* that compute: all ranks together */
    int queued;     /* percent of their time in which its ranks could run, but other processes had the CPU */
    int stolen;     /* percent of the CPUs' time that other virtual machines had */
    int mhz;        /* 0: not known */
    bool rehearsed; /* it is slow on purpose */
} co_host_speed;

typedef struct co_roster_view {
    co_view view; /* with deal.me of this host */
    co_member member[CO_MAX_MEMBERS];
} co_roster_view;

/* One round from the point of view of one host. */
typedef struct co_round {
    int64_t number;     /* 1 for the first */
    int restarts;       /* restarts after a failure so far */
    int hosts, my_host; /* number of hosts, and the number of this one: 0 .. hosts - 1 */
    int first_rank, world;
    char master_addr[CO_HOST_NAME];
    /* the address by which the others reach this host; "": there are no others, or it is not known */
    char my_addr[CO_HOST_NAME];
    int master_port; /* free on the first host when the round began */
} co_round;

/* A worker that failed. The earliest failure on any host is the cause of the job's failure. */
typedef struct co_failure {
    char host[CO_HOST_NAME];
    int host_rank, rank, local_rank, pid; /* rank -1: the host itself was lost, not a worker */
    int status;                           /* wait status */
    int64_t when_ns;                      /* on the roster's clock: CLOCK_REALTIME - co_roster_clock_offset */
    char how[256];                        /* "exited with status 3", "killed by SIGSEGV (11)" */
    char advice[256];                     /* one line, or "" */
    char last[4096];                      /* the worker's last lines of output */
} co_failure;
int co_failure_status(const co_failure *f); /* as an exit status */

/* Who wants a job to end. The numbers go over the wire (docs/formats/wire.md). */
typedef enum {
    CO_ORIGIN_JOB,       /* nobody: the job ended by itself */
    CO_ORIGIN_USER,      /* Ctrl-C and other signals from a terminal */
    CO_ORIGIN_SCHEDULER, /* SIGTERM and SIGUSR1 */
    CO_ORIGIN_CONDUCTOR, /* the command that started the launchers of all hosts */
    CO_ORIGIN_HOST       /* a host that cannot go on */
} co_origin;

/* How a job ends, and who wanted it to end. */
typedef struct co_leave {
    int sig; /* 0: no signal */
    co_origin origin;
    int status;              /* exit status of the job */
    char host[CO_HOST_NAME]; /* the host that got the signal; "": filled in by the roster */
    char text[1024];         /* for people; "": made from the fields above */
} co_leave;

typedef enum {
    CO_ROSTER_NOTHING, /* no event came before the time-out */
    CO_ROSTER_BEGIN,   /* start workers for `round` */
    CO_ROSTER_STOP,    /* end this round's workers, then call co_roster_stopped; `text` says why */
    /* the job is over: end all workers and exit with `status`; `text` says why; `cause` if has_cause */
    CO_ROSTER_OVER,
    CO_ROSTER_TALK, /* a line for the terminal in `text` */
    /* For a job of views. */
    CO_ROSTER_FREEZE, /* freeze for view `number`, then call co_roster_position; `text` says why */
    CO_ROSTER_VIEW,   /* `view` begins */
    CO_ROSTER_WAIT    /* too few hosts are left: all stay frozen until others come; `text` says so */
} co_roster_kind;

typedef struct co_roster_event {
    co_roster_kind kind;
    co_round round;
    int status;              /* OVER: exit status of the job */
    int sig;                 /* OVER: the signal that ended the job, which one of its hosts got; 0: none */
    co_origin origin;        /* OVER: who wanted the end */
    char host[CO_HOST_NAME]; /* OVER: the host that got the signal */
    bool has_cause;
    co_failure cause;
    char text[1024];      /* for people */
    uint32_t number;      /* FREEZE, WAIT: of the view */
    int id;               /* FREEZE: this host's place in the run */
    co_roster_view *view; /* VIEW: the receiver frees it (co_free) */
} co_roster_event;

/* Where and how to meet. In a zeroed co_meet the endpoint decides who serves, the server makes the token, and
 * all times are the defaults. */
typedef enum { CO_MEET_AUTO, CO_MEET_SERVE, CO_MEET_JOIN } co_meet_role;
/* An etcd cluster that stores which host keeps the roster. When that host is lost, another can take over. */
typedef struct co_meet_etcd {
    /* host:port or URLs, separated by commas; NULL: no etcd. Pointers are borrowed until co_roster_close */
    const char *members;
    bool tls;                    /* members without a scheme are https:// */
    const char *ca, *cert, *key; /* files in PEM, or NULL */
    double lease_s;              /* 0: 10. How long the place of a lost keeper stays taken */
} co_meet_etcd;
typedef struct co_meet {
    /* host:port or [v6]:port. Port 0: any free port, reported by a TALK. With etcd: where a keeper listens */
    char endpoint[CO_HOST_NAME + 8];
    /* AUTO: rank 0 serves; without ranks, the host that has the endpoint's address and gets its port */
    co_meet_role role;
    char token[64];          /* "": a server makes one (on loopback none is needed); a joiner is refused */
    bool insecure;           /* neither TLS nor token */
    char host[CO_HOST_NAME]; /* this host's name in messages; "": gethostname */
    /* the address to listen on; "": all, but only loopback if the endpoint is loopback without a token */
    char listen[CO_HOST_NAME];
    /* the address of this host for others; "": the address from which its connection to the roster comes */
    char advertise[CO_HOST_NAME];
    /* for a joiner: further addresses of the endpoint, separated by commas; the first that answers is used */
    char also[512];
    int listener; /* for a server: the socket of co_meet_listen; 0: none, co_roster_open listens itself */
    /* for a server: the plan that `cohort join` gets (code.h), borrowed; NULL: nobody may ask for it. With a
     * plan the caller shows where to join, and no TALK says so. */
    const char *plan;
    double join_timeout_s; /* 0: 600. How long to wait for the roster and for enough hosts */
    double last_call_s;    /* 0: 30. How long an elastic job with enough hosts waits for more */
    double lost_after_s;   /* 0: 3. Silence after which a host counts as lost */
    double grace_s;        /* how long this host's workers have to end; it does not count as lost before */
    bool logs;             /* for a server: it wants the log lines of the others (co_roster_logged) */
    int64_t skew_ns;       /* for tests: pretends that this host's clock is wrong by this much */
    co_meet_etcd etcd;
} co_meet;

typedef struct co_roster co_roster;
co_err co_roster_local(co_roster **out, const co_terms *terms);
/* Returns when it is clear who serves. That is immediate, unless the role is AUTO and the endpoint is a
 * name, which is resolved here (up to 10 s). A thread of the roster then connects, waits and answers.
 * CO_EINPUT: the endpoint is malformed, its port is taken (the message names the process that has it), or a
 * joiner has no token. */
co_err co_roster_open(co_roster **out, const co_terms *terms, const co_meet *where);
/* For a server that must know its port and token before co_roster_open, to pass them to the others. Listens
 * at the endpoint (port 0: any; no host: this one) and makes a token if one is needed and there is none.
 * Fills in endpoint, token and listener. co_roster_open takes the listener. */
co_err co_meet_listen(co_meet *where);
/* Whether this host would join another host's roster and lacks the token. Call it before co_roster_open, and
 * ask the user for the token. It resolves the endpoint's name (up to 10 s) and checks local addresses and the
 * port; with etcd, it waits a few seconds for etcd's answer. */
bool co_meet_needs_token(const co_terms *terms, const co_meet *where);
/* This host was to take part and cannot: tells the host that keeps the roster why, if it is reached within 3
 * s. */
void co_roster_decline(const co_terms *terms, const co_meet *where, const char *why);
/* Waits up to timeout_ms for the next event. CO_EINPUT: this host was refused, for example because its terms
 * do not agree. CO_EFAIL: it is cut off. */
co_err co_roster_turn(co_roster *r, int timeout_ms, co_roster_event *ev);
int co_roster_fd(const co_roster *r);               /* readable when an event waits; -1: there is none */
int64_t co_roster_clock_offset(const co_roster *r); /* ns: this host's CLOCK_REALTIME minus the roster's */
void co_roster_done(co_roster *r);                  /* all workers of this host ended well */
void co_roster_failed(co_roster *r, const co_failure *f);
void co_roster_stopped(co_roster *r); /* this host's workers are gone, as STOP asked */

/* A job of views. `view` is the number that the caller speaks of: what comes too late is dropped. */
/* Answers FREEZE. `weight`: how fast this host is, in any unit that all hosts share; 0: not known yet. */
void co_roster_position(co_roster *r, uint32_t view, const co_position *at, int weight);
void co_roster_whole(co_roster *r, uint32_t view); /* this newcomer holds the whole state now */
/* This host lost its connection to the member at place `id`, which may be alive. Its own place: it lost all
 * of its connections, and makes them anew in the next view. */
void co_roster_cut(co_roster *r, uint32_t view, int id, const char *why);
/* This host's part of the run is over. It goes on answering FREEZE until OVER, which comes when all members
 * of a view have ended. A host that has ended says so again in each view, by this call or in its position. */
void co_roster_ended(co_roster *r, uint32_t view);
/* A sample of this unit, which is among this host's slices, cannot be read here. The next view gives these
 * slices to hosts that have not said so; if all have, its `counts` is the unit. */
void co_roster_unreadable(co_roster *r, uint32_t view, uint32_t unit);
/* How fast this host is now. The slices may be dealt anew; a host that is slow twice in a row is named,
 * once. */
void co_roster_weigh(co_roster *r, uint32_t view, const co_host_speed *speed);

/* This host must end, and the job with it: OVER on all hosts has the fields of `how`. In an elastic job that
 * can go on without this host, SIGINT ends only this host's part. */
void co_roster_leave(co_roster *r, const co_leave *how);
/* The host that keeps the roster can collect the logs of all hosts. This sends whole log lines of this host
 * to it, if it wants them. False: too many lines wait to be sent already, and these were not taken. */
bool co_roster_log(co_roster *r, const char *lines, size_t n);
/* The key of the job, for other connections between its hosts; NULL: the job has none. Lives until
 * co_roster_close. */
struct co_tls *co_roster_tls(const co_roster *r);
bool co_roster_keeps(const co_roster *r); /* this host keeps the roster and gets the others' log lines */
/* Appends the lines that came since the last call. Returns how many were lost because the buffer was full. */
long long co_roster_logged(co_roster *r, co_str *out);
/* Call after OVER. On the host that keeps the roster: true once all others have sent their last log lines and
 * are gone. On another host: true once its own lines are on their way. */
bool co_roster_settled(co_roster *r);
/* Call after co_roster_settled. Returns when all hosts know that the job is over, or after 2 s. After it,
 * call only co_roster_logged and co_roster_close. */
void co_roster_finish(co_roster *r);
void co_roster_close(co_roster *r); /* NULL is fine */

#endif
