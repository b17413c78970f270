/* etcd_int.h -- hosts that find each other through etcd. It stores which host keeps the roster and which job
 * runs, and nothing else.
 *
 *     /cohort/RUN_ID/keeper      {endpoint, also, host, job}, with the keeper's lease: vanishes with the
 *                                keeper
 *     /cohort/RUN_ID/running     {job, host}, from the first round on, with a longer lease: a keeper that is
 *                                cut off from etcd goes on
 *     /cohort/RUN_ID/over/JOB    {status, sig, origin, host, text}, for ten minutes after the end: for hosts
 *                                that were cut off at that time
 *
 * Calls point down this list:
 *     finder.c     the row `finder_etcd`: finds the host that keeps the roster, and joins it or becomes it
 *     campaign.c   becomes the keeper
 *     keep.c       the keeper: how long it may go on
 *     lost.c       the keeper was lost: what becomes of the round or view
 *     lease.c      the keeper's thread: holds the lease, gives it back
 *     kv.c         the requests that the roster sends to etcd
 *     json.c       the parts of those requests
 *     call.c       one call to one member
 */
#ifndef CO_ROSTER_ETCD_ETCD_INT_H
#define CO_ROSTER_ETCD_ETCD_INT_H

#include "net/http.h"
#include "roster/net/network_int.h"
#include "roster/times_int.h"

enum { ETCD_MEMBERS = 16, ETCD_TEXT = 500 /* bytes of how a job ended */ };

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
    bool there;          /* somebody keeps the roster: `who` */
    keeper who;
    bool over; /* the job that we asked about has ended: how */
    co_leave end;
    char running[33]; /* the job that runs, or may still run without etcd; "": none */
    char running_host[CO_HOST_NAME];
    int64_t running_lease;
} keeping;

/* Keys, in etcd's form. */
json_t *kv_keeper(const etcd *db);
json_t *kv_running(const etcd *db);
json_t *kv_over(const etcd *db, const char *job);
json_t *kv_running_value(const char *job, const char *host);
/* Parts of a transaction. They take the JSON they are given. */
json_t *kv_absent(json_t *key);
/* A condition: this job runs, and this host has noted that it does. */
json_t *kv_runs(const etcd *db, const char *job, const char *host);
json_t *kv_read_all(const etcd *db, const char *job);
json_t *kv_put(json_t *key, json_t *value, int64_t lease);
json_t *kv_lease(int64_t id);
int64_t kv_number(const json_t *obj, const char *key);
/* Parses the answer to kv_read_all; *id: the keeper's lease. */
void kv_understand(keeping *out, int64_t *id, const json_t *answer);

/* CO_EINPUT: no libcurl, or a malformed URL. where->etcd is borrowed. */
co_err etcd_open(etcd **out, const char *run_id, const co_meet_etcd *where);
void etcd_close(etcd *db);                /* NULL is fine */
const char *etcd_members(const etcd *db); /* for messages */
/* POSTs body, which it takes; *out: an object that the caller owns. */
co_err etcd_call(etcd *db, json_t **out, const char *path, json_t *body, const co_patience *patience);
/* If no member gives a useful answer, the calls below return CO_EFAIL, with what each member said. They may
 * also return CO_ESTOP. */
co_err etcd_look(etcd *db, keeping *out, const char *job, const co_patience *patience);
/* Puts `me` into the keeper's place if the place is empty and no other job runs. *id is the lease. If it is
 * 0, the place was not free, and *out says which host has it, how the job ended, or which job runs. */
co_err etcd_campaign(etcd *db, keeping *out, int64_t *id, const keeper *me, int ttl_s,
                     const co_patience *patience);
co_err etcd_stay(etcd *db, bool *held, int64_t id, const co_patience *patience);
/* Notes that the job of `me`, who holds the place with lease `place`, runs; *id is that note's lease.
 * *held false: the place is another's, and nothing was written. */
co_err etcd_mark(etcd *db, bool *held, int64_t *id, const keeper *me, int64_t place, int ttl_s,
                 const co_patience *patience);
int etcd_seconds_left(etcd *db, int64_t id, const co_patience *patience); /* of a lease */
void etcd_owe(etcd *db, int64_t id); /* the next etcd_look gives this lease back */
/* Empties the place, notes that the job no longer runs, and remembers how it ended. */
co_err etcd_end(etcd *db, int64_t id, const keeper *me, const co_leave *how, const co_patience *patience);
/* For a host that lost its keeper and knows that the job cannot go on: notes the end, unless one is noted
 * already. The place stays taken until its lease ends. */
co_err etcd_give_up(etcd *db, const keeper *lost, const co_leave *how, const co_patience *patience);

/* ---- the lease ---- */
typedef struct lease lease;
typedef struct lease_spec {
    etcd *etcd; /* nobody else may use it until lease_end */
    keeper me;
    int64_t id;
    int ttl_s;
    uint64_t sure_ns;                          /* when the lease was requested */
    void (*talk)(void *ctx, const char *text); /* from its thread */
    void *ctx;
} lease_spec;
co_err lease_start(lease **out, const lease_spec *spec);
void lease_run(lease *held); /* a round is about to begin: from now on etcd also holds that the job runs */
/* When the last request that succeeded was sent. Until ttl_s later nobody else keeps the roster; until
 * ETCD_RUNS_LEASES times ttl_s later nobody begins the job anew, if lease_run was called before. */
uint64_t lease_sure_ns(const lease *held);
bool lease_lost(const lease *held);     /* etcd says that another host has the place */
void lease_hurry(lease *held);          /* renews now */
void lease_watch(lease *held, bool on); /* on: each renewal also checks whether a host has ended the job */
bool lease_over(lease *held, keeping *out); /* a host has ended the job; *out says how */
/* Begins an orderly end: gives the place back and notes the end, if etcd answers soon. */
void lease_finish(lease *held, const co_leave *how);
/* If lease_finish was not called, the next etcd_look gives the place back. NULL is fine. */
void lease_end(lease *held);

/* ---- the finder ---- */
typedef struct finder {
    etcd *etcd;
    lease *lease; /* while this host keeps the roster */
    keeper now;   /* who keeps it, or kept it last */
    int ttl_s;
    int losses;     /* hosts that this keeper lost */
    bool may_begin; /* a round or view is about to begin: etcd must store that the job runs */
    /* when `losses` or `may_begin` changed: nothing begins before etcd has answered a later request */
    uint64_t doubt_ns;
    char refused[600]; /* not "": why the keeper does not take this host just now */
    uint64_t refused_until_ns;
    char step_down[400]; /* not "": why this host no longer keeps the roster */
} finder;

/* *won false: *other says what etcd has instead. */
co_err campaign(network *net, bool *won, keeping *other, const co_patience *patience);
void keep_turn(network *net);
void keep_let_go(network *net);
void keep_end(network *net);
void keep_lost(void *net, const char *why); /* lost.c */

#endif
