/* roster.h -- where the hosts of a job meet: who is in, in which order, and when a round of workers begins
 * and ends.
 *
 * A job is a sequence of rounds. In a round every host runs its workers with one agreed numbering. A round
 * ends when all workers are done, when one has failed, or when a host comes or goes; then, if restarts are
 * left, another begins. The local roster (one host) and the one over the network answer the same calls;
 * the agent that runs workers does not know which it has.
 *
 *     co_roster *r;
 *     CO_TRY(co_roster_local(&r, &terms));                 // or co_roster_open(&r, &terms, &where)
 *     while (co_roster_turn(r, 100, &ev) == CO_OK && ev.kind != CO_ROSTER_OVER) ...
 */
#ifndef CO_ROSTER_ROSTER_H
#define CO_ROSTER_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum { CO_MAX_HOSTS = 1024, CO_MAX_WORKERS = 1024 /* of one host */, CO_HOST_NAME = 256 };
enum { CO_EXIT_PREEMPTED = 75 }; /* of a job that was asked to end or lost its roster: start it again */
enum { CO_MEET_PORT = 29400 };   /* of an endpoint without one, as torchrun has it */

/* What all hosts of a job must agree about (but nproc, which may differ), each as its command line says
 * it. */
typedef struct co_terms {
    char run_id[128];
    int min_hosts, max_hosts;
    int nproc;     /* workers on this host */
    int host_rank; /* wished for; -1: as it comes */
    int max_restarts;
    char program[256]; /* what runs, for comparison and messages */
    char version[32];
} co_terms;

/* One round, as seen by one host. */
typedef struct co_round {
    int64_t number;     /* 1 for the first */
    int restarts;       /* failures that were answered with a restart so far */
    int hosts, my_host; /* how many, and which this is: 0 .. hosts - 1 */
    int first_rank, world;
    char master_addr[CO_HOST_NAME];
    /* at which the others reach this host; "": there are none, or it is not known */
    char my_addr[CO_HOST_NAME];
    int master_port; /* free on the first host when the round began */
} co_round;

/* A worker that ended badly. The first in time, over all hosts, is the job's cause. */
typedef struct co_failure {
    char host[CO_HOST_NAME];
    int host_rank, rank, local_rank, pid; /* rank -1: not a worker but the host itself was lost */
    int status;                           /* as of waitpid */
    int64_t when_ns;                      /* CLOCK_REALTIME less co_roster_clock_offset: the roster's clock */
    char how[256];                        /* "exited with status 3", "killed by SIGSEGV (11)" */
    char advice[256];                     /* one line, or "" */
    char last[4096];                      /* its last lines */
} co_failure;
int co_failure_status(const co_failure *f); /* as an exit status */

/* Who wants a job to end. The numbers go over the wire (docs/formats/wire.md). */
typedef enum {
    CO_ORIGIN_JOB,       /* nobody: it ended by itself */
    CO_ORIGIN_USER,      /* Ctrl-C and other signals of a terminal */
    CO_ORIGIN_SCHEDULER, /* SIGTERM and SIGUSR1 */
    CO_ORIGIN_CONDUCTOR, /* the command that started the launchers of all hosts */
    CO_ORIGIN_HOST       /* a host that cannot go on */
} co_origin;

/* How a job ends, and at whose wish. */
typedef struct co_leave {
    int sig; /* 0: no signal */
    co_origin origin;
    int status;              /* exit status of the job */
    char host[CO_HOST_NAME]; /* the host that got the signal; "": filled in by the roster */
    char text[1024];         /* for people; "": made from the fields above */
} co_leave;

typedef enum {
    CO_ROSTER_NOTHING, /* the time was over */
    CO_ROSTER_BEGIN,   /* start workers for `round` */
    CO_ROSTER_STOP,    /* end this round's workers; why in `text`; then tell co_roster_stopped */
    /* the job is over: exit with `status` after ending what runs; why in `text`, cause if has_cause */
    CO_ROSTER_OVER,
    CO_ROSTER_TALK /* a line for the terminal in `text` */
} co_roster_kind;

typedef struct co_roster_event {
    co_roster_kind kind;
    co_round round;
    int status;              /* OVER: exit status of the job */
    int sig;                 /* OVER: the signal that a host got, which ended the job; 0: none did */
    co_origin origin;        /* OVER: who wanted the end */
    char host[CO_HOST_NAME]; /* OVER: the host that got the signal */
    bool has_cause;
    co_failure cause;
    char text[1024]; /* for people */
} co_roster_event;

/* Where and how to meet. Zeroed is: the endpoint decides, token made or asked for, default times. */
typedef enum { CO_MEET_AUTO, CO_MEET_SERVE, CO_MEET_JOIN } co_meet_role;
/* An etcd cluster that holds who keeps the roster, so that another host may keep it when that one is lost. */
typedef struct co_meet_etcd {
    /* host:port or URLs, comma between; NULL: no etcd. Borrowed until co_roster_close, like the others */
    const char *members;
    bool tls;                    /* members without a scheme are https:// */
    const char *ca, *cert, *key; /* files in PEM, or NULL */
    double lease_s;              /* 0: 10. How long a lost keeper's place stays taken */
} co_meet_etcd;
typedef struct co_meet {
    /* host:port, [v6]:port; port 0: any, said in a TALK. With etcd: where a keeper listens */
    char endpoint[CO_HOST_NAME + 8];
    co_meet_role role; /* AUTO: rank 0, or whoever has the endpoint's address and gets its port, serves */
    char token[64];    /* "": the server makes one (loopback: none is needed); a joiner is refused */
    bool insecure;     /* neither TLS nor token */
    char host[CO_HOST_NAME];   /* this host's name in messages; "": gethostname */
    char listen[CO_HOST_NAME]; /* to listen on; "": every address; loopback's endpoint, no token: loopback */
    char advertise[CO_HOST_NAME]; /* this host's address for others; "": as seen by the roster */
    /* a joiner: further addresses of the endpoint, comma between; whichever answers is taken */
    char also[512];
    int listener; /* a server: co_meet_listen's socket; 0: none, co_roster_open listens itself */
    const char *plan; /* a server: what those who ask are told to run (code.h), borrowed; NULL: nobody may ask. Its user has
                         told the others where to come: no TALK does */
    double join_timeout_s; /* 0: 600. How long to wait for the roster and for enough hosts */
    double last_call_s;    /* 0: 30. How long an elastic job with enough hosts waits for more */
    double lost_after_s;   /* 0: 3. Silence after which a host counts as lost */
    double grace_s;        /* what this host gives its workers to end: it is not lost before */
    bool logs;             /* a server: it wants what the others log (co_roster_logged) */
    int64_t skew_ns;       /* for tests: this host's clock is off by so much */
    co_meet_etcd etcd;
} co_meet;

typedef struct co_roster co_roster;
co_err co_roster_local(co_roster **out, const co_terms *terms);
/* Returns when it is clear who serves: at once, but for an endpoint by name without a role, which is
 * resolved here (up to 10 s). Connecting, waiting and answering go on in a thread of the roster's own.
 * CO_EINPUT: the endpoint cannot be understood, its port is taken (the message names the holder), or a
 * joiner has no token. */
co_err co_roster_open(co_roster **out, const co_terms *terms, const co_meet *where);
/* Before the others are told where: listens at the endpoint (port 0: any; no host: this one), makes a
 * token if there is none and one is needed. Then endpoint, token and listener say what to tell them;
 * co_roster_open takes the listener. */
co_err co_meet_listen(co_meet *where);
/* Whether this host would join somebody else's roster and lacks the token for it: before co_roster_open is
 * the time to ask the user. Looks at the endpoint's name (up to 10 s), local addresses and the port, or at
 * etcd, which has a few seconds. */
bool co_meet_needs_token(const co_terms *terms, const co_meet *where);
/* Waits up to timeout_ms for the next event. CO_EINPUT: refused (terms that do not agree); CO_EFAIL: cut
 * off. */
co_err co_roster_turn(co_roster *r, int timeout_ms, co_roster_event *ev);
int co_roster_fd(const co_roster *r);               /* to poll on with other things; -1: none */
int64_t co_roster_clock_offset(const co_roster *r); /* this host's CLOCK_REALTIME less the roster's, ns */
void co_roster_done(co_roster *r);                  /* all workers of this host ended well */
void co_roster_failed(co_roster *r, const co_failure *f);
void co_roster_stopped(co_roster *r); /* this host's workers are gone, as STOP asked */
/* This host shall end, and with it the job: OVER on all hosts has the fields of `how`. In an elastic job
 * that can go on without this host, SIGINT ends only this host's part. */
void co_roster_leave(co_roster *r, const co_leave *how);
/* Logs of all hosts in one place. Whole lines of this host's, for whoever keeps the roster, if that host
 * wants them; false: more of them wait than may. */
bool co_roster_log(co_roster *r, const char *lines, size_t n);
bool co_roster_keeps(const co_roster *r); /* this host does: what others log comes to it */
/* Adds what came since the last call. How many lines were lost because nobody took them. */
long long co_roster_logged(co_roster *r, co_str *out);
/* After OVER. Of a host that keeps the roster: all others have logged their last and are gone; of another:
 * its own is on its way. */
bool co_roster_settled(co_roster *r);
/* After that: returns when all hosts know that the job is over, or after 2 s. Then there is
 * co_roster_logged and co_roster_close only. */
void co_roster_finish(co_roster *r);
void co_roster_close(co_roster *r); /* NULL is fine */

#endif
