/* network_int.h -- the roster over the network: the object that the agent's calls and the carrier thread
 * share, and the seam through which this host finds the one that keeps the roster. Calls point down this
 * list:
 *
 *     network.c             the agent's calls (roster.h)
 *     carrier.c             the thread that owns every socket
 *     given.c, etcd/        two kinds of finder: the endpoint is given, or etcd knows it
 *     join.c                takes this host's seat, at its own server or at another's
 *     logs.c                log lines of all hosts, on their way to the host that keeps the roster
 *     server.c, client.c    both ends of a seat (seat_int.h shows the inside of the server)
 *     role.c, reach.c       who serves; how to get there
 *     queue.c               what the agent and the carrier thread hand to each other
 *     terms.c               what the hosts' command lines must have in common
 *     frame.c, view_frame.c the frames, and the checks of what they contain
 */
#ifndef CO_ROSTER_NET_NETWORK_INT_H
#define CO_ROSTER_NET_NETWORK_INT_H

#include "roster/net/queue_int.h"
#include "roster/net/server_int.h"

typedef struct network network;

/* How this host finds the one that keeps the roster. One row per way, in `finders`; the first that is
 * wanted is taken. `open`, `close` and `needs_token` are the agent's calls, all others the carrier's. */
typedef struct finder_ops {
    const char *name;
    bool (*wanted)(const co_meet *where);
    bool (*needs_token)(const co_terms *terms, const co_meet *where); /* see co_meet_needs_token */
    co_err (*open)(network *net);                                     /* this host may serve from here on */
    /* On return this host serves, has a seat at another host's server, or the job is over. */
    co_err (*enter)(network *net, const co_patience *patience);
    void (*refused)(void *net, co_err err, const char *text); /* the host that we reached refuses us */

    /* The rest are NULL if a lost keeper ends the job. */
    void (*lost)(void *net, const char *why); /* the keeper is lost; `enter` may find another */
    void (*failed)(network *net);             /* `enter` found none in time: co_errmsg */
    void (*turn)(network *net);               /* this host keeps the roster: may it go on? */
    void (*let_go)(network *net);             /* this host no longer keeps the roster: frees its place */
    void (*end)(network *net);                /* the job is over, and this host kept it: frees its place */
    void (*close)(network *net);
} finder_ops;
extern const finder_ops finder_given, finder_etcd;
extern const finder_ops *const finders[2];
const finder_ops *finder_for(const co_meet *where);

struct network {
    co_roster base;
    co_terms terms;
    co_meet where;
    queue queue;

    /* The carrier's. */
    role role;
    co_tls *tls;
    client client;
    client_events report; /* what the client calls */
    server *server;       /* NULL: another host serves */
    const finder_ops *find;
    struct finder *finder; /* etcd/'s state; NULL: it has none */
    json_t *leave;         /* body of the agent's LEAVE; NULL: the agent was not asked to end */

    /* Both sides'. */
    atomic_bool closing, seated; /* seated: there is a server to send orders to. Changed under queue.lock */
    atomic_bool log_wanted, keeps;
    atomic_bool settled; /* see co_roster_settled */

    /* The agent's. */
    pthread_t thread;
    bool started;
    co_err broken; /* what every further turn returns, with the text below */
    char why[1024];
};

/* ---- carrier.c ---- */
void *carrier_main(void *net);

/* ---- join.c ---- */
co_err join_own(network *net); /* serves and sits down there; takes net->role.listener */
/* Connects, says HELLO and hears the answer: WELCOME, or a refusal, which went to find->refused. */
co_err join_other(network *net, const co_patience *patience);
void join_seated(network *net, bool seated);
/* The agent was asked to end (net->leave), and there is no server to tell: its job is over. */
void join_leave_alone(network *net);

/* ---- logs.c ---- */
void logs_end(network *net);   /* tells the server, once, that this host has no more log lines */
void logs_carry(network *net); /* sends as many log lines to the server as the connection takes */

#endif
