/* roster_etcd_int.h -- hosts that meet on etcd: it holds who keeps the roster and what runs, and nothing else.
 *
 *     /cohort/RUN_ID/keeper      {endpoint, also, host, job}, with the keeper's lease: gone when the keeper is
 *     /cohort/RUN_ID/running     {job, host}, from the first round on, with a longer lease: a keeper that is cut off from etcd goes on
 *     /cohort/RUN_ID/over/JOB    {status, text}, for ten minutes after the end: for hosts that were cut off then
 *
 * roster_etcd_call.c   a call to one of etcd's members; roster_etcd_kv.c  the few that there are; roster_etcd_words.c  their parts
 * roster_etcd_lease.c  the keeper's thread: holds the lease, hands it back
 * roster_etcd.c        the finder: who keeps the roster, joining or becoming it
 * roster_etcd_keep.c   of a keeper: how long it may
 * roster_etcd_lost.c   what is left of a round whose keeper was lost
 */
#ifndef CO_ROSTER_ETCD_ETCD_INT_H
#define CO_ROSTER_ETCD_ETCD_INT_H

#include "roster/net/carrier_int.h"
#include "net/http.h"

enum {
    ETCD_ANSWER_MS = 2000, /* a member that has not answered by then: the next is asked */
    ETCD_MEMBERS = 16,
    ETCD_TTL_S = 10,      /* of the keeper's lease, unless co_meet says another */
    ETCD_RUNS_LEASES = 6, /* so many times as long a job that was not heard of is taken to run */
    ETCD_OVER_S = 600,    /* how long the end of a job is remembered */
    ETCD_LOOK_MS = 1000,  /* from look to look while meeting */
    ETCD_FAREWELL_MS = 2000,
    ETCD_AWAY_MS = 10000, /* away for longer: worth a line */
    REFUSED_MS = 7000 /* after lost_after: a host that comes back is refused while its old seat is there */
};

/* ---- etcd ---- */
typedef struct etcd {
    co_http *http;
    co_meet_etcd where;
    char run_id[128];
    char url[ETCD_MEMBERS][300];
    int n, at;
    int64_t owed; /* see etcd_owe */
} etcd;
typedef struct keeper {
    char endpoint[CO_HOST_NAME + 8], also[512], host[CO_HOST_NAME];
    char job[33]; /* made by the first keeper of a job, kept by those after it */
} keeper;
typedef struct keeping { /* what etcd says */
    bool there;          /* somebody keeps the roster: who */
    keeper who;
    bool over; /* the job that was asked for has ended: how */
    int status;
    char text[512];
    char running[33]; /* the job that runs, or may, cut off from etcd; "": none does */
    char running_host[CO_HOST_NAME];
    int64_t running_lease;
} keeping;

/* Keys, as etcd has them. */
json_t *kv_keeper(const etcd *e);
json_t *kv_running(const etcd *e);
json_t *kv_over(const etcd *e, const char *job);
json_t *kv_running_value(const char *job, const char *host);
/* Parts of a transaction. They take what they are given. */
json_t *kv_absent(json_t *key);
json_t *kv_runs(const etcd *e, const char *job, const char *host); /* that job runs, as that host said */
json_t *kv_read_all(const etcd *e, const char *job);
json_t *kv_put(json_t *key, json_t *value, int64_t lease);
json_t *kv_lease(int64_t id);
int64_t kv_number(const json_t *obj, const char *key);
void kv_understand(keeping *out, int64_t *id,
                   const json_t *answer); /* what kv_read_all found; the keeper's lease */

/* CO_EINPUT: no libcurl, or a URL that is none. where->etcd is borrowed. */
co_err etcd_open(etcd **out, const char *run_id, const co_meet_etcd *where);
void etcd_close(etcd *e);                /* NULL is fine */
const char *etcd_members(const etcd *e); /* for messages */
/* POSTs body, which it takes; *out: an object, the caller's. */
co_err etcd_call(etcd *e, json_t **out, const char *path, json_t *body, const co_patience *p);
/* All: CO_EFAIL with what each member said when none is of use, CO_ESTOP. */
co_err etcd_look(etcd *e, keeping *out, const char *job, const co_patience *p);
/* Puts `me` into the keeper's place if that is empty and no other job runs. *id, of the lease: 0, and *out says who has it, who ended
 * the job, or what runs. */
co_err etcd_campaign(etcd *e, keeping *out, int64_t *id, const keeper *me, int ttl_s, const co_patience *p);
co_err etcd_stay(etcd *e, bool *held, int64_t id, const co_patience *p);
/* The job of `me`, who holds the place with lease `place`, runs: *id is that key's lease. *held: false, and nothing was written, if the
 * place is another's. */
co_err etcd_mark(etcd *e, bool *held, int64_t *id, const keeper *me, int64_t place, int ttl_s,
                 const co_patience *p);
int etcd_seconds_left(etcd *e, int64_t id, const co_patience *p); /* of a lease */
void etcd_owe(etcd *e, int64_t id); /* a lease to be given back with the next look */
/* The place is empty again, the job does not run, and its end is remembered. */
co_err etcd_end(etcd *e, int64_t id, const keeper *me, int status, const char *text, const co_patience *p);
/* Of a host that does not keep the roster and knows that the job cannot go on without the keeper it lost: likewise, unless an end is
 * remembered already; the place is left to its lease. */
co_err etcd_despair(etcd *e, const keeper *lost, int status, const char *text, const co_patience *p);

/* ---- the lease ---- */
typedef struct lease lease;
typedef struct lease_spec {
    etcd *etcd; /* the lease's alone until lease_end */
    keeper me;
    int64_t id;
    int ttl_s;
    uint64_t sure_ns;                          /* when it was asked for */
    void (*talk)(void *ctx, const char *text); /* from its thread */
    void *ctx;
} lease_spec;
co_err lease_start(lease **out, const lease_spec *spec);
void lease_run(lease *l); /* a round is to begin: from now on etcd is also told that the job runs */
/* Until then + ttl_s nobody else keeps the roster, and until then + ETCD_RUNS_LEASES * ttl_s nobody begins the job anew, if
 * lease_run was called before: when the last request that succeeded was sent. */
uint64_t lease_sure_ns(const lease *l);
bool lease_lost(const lease *l);         /* etcd says that another has the place */
void lease_hurry(lease *l);              /* asks etcd now */
void lease_watch(lease *l, bool on);     /* whether it also looks if a host has ended the job */
bool lease_over(lease *l, keeping *out); /* one has: how */
/* Begins an orderly end: the place is given back and the end remembered, if etcd answers soon. */
void lease_finish(lease *l, int status, const char *text);
/* Without lease_finish before it, the place is given back when etcd is next looked at. NULL is fine. */
void lease_end(lease *l);

/* ---- the finder ---- */
struct finder {
    etcd *etcd;
    lease *lease; /* while this host keeps the roster */
    keeper now;   /* who keeps it, or kept it last */
    int ttl_s;
    int losses;        /* hosts that this keeper lost */
    bool asked;        /* etcd was asked to let its first round begin */
    uint64_t doubt_ns; /* when either changed: no round before etcd has answered since */
    char refused[600]; /* not "": why this host is not taken in just now */
    uint64_t refused_until_ns;
    char step_down[400]; /* not "": why this host no longer keeps the roster */
};

#endif
