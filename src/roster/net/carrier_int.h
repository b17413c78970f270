/* roster_net_carrier_int.h -- the object that the agent's side (roster_net.c) and its thread (roster_net_carrier.c) share. */
#ifndef CO_ROSTER_NET_CARRIER_INT_H
#define CO_ROSTER_NET_CARRIER_INT_H

#include "roster/net/net_int.h"

struct item { /* an event, or why there will be none any more */
    struct item *next;
    co_err err;
    co_roster_event ev;
};

struct order {
    struct order *next;
    word type;
    json_t *body;
};

struct net {
    co_roster base;
    co_terms terms;
    co_meet where;
    meeting meeting;
    co_tls *tls;
    server *server; /* NULL: elsewhere */
    finder *finder; /* NULL: the endpoint is known, and there is no other */
    client client;
    json_t *leave; /* what the agent said when it was asked to end; NULL: it was not */
    pthread_t thread;
    bool started;
    int event_fd, order_fd;
    atomic_bool closing, seated; /* seated: there is somebody to tell orders to */
    pthread_mutex_t lock;        /* of the two queues */
    struct item *events, **events_end;
    struct order *orders, **orders_end;
    atomic_bool starved;    /* out of memory for an event or an order */
    co_str log_out, log_in; /* lines of this host for the server; of the others for the agent. Under the lock */
    long long log_lost;     /* of log_in; likewise */
    atomic_bool log_wanted, keeps;
    atomic_bool settled; /* see co_roster_settled */
    co_err broken;       /* agent's side: what every further turn returns, with the text below */
    char why[1024];
};

void *carrier_main(void *roster);
/* One whole greeting: connected, hello said, and the answer, welcome or not, heard. */
co_err carrier_greet(net *r, const co_patience *p);
/* The agent was asked to end (r->leave), and there is nobody to tell: its job is over. */
void carrier_leave_alone(net *r);
co_err roster_serve_here(net *r); /* takes r->meeting.listener */

/* Events, from the carrier to the agent; ctx is the roster. */
void queue_event(void *ctx, const co_roster_event *ev);
void queue_talk(void *ctx, const char *text);
void queue_broke(void *ctx, co_err err, const char *text); /* none will follow */
void queue_calm(int fd);
void queue_wake(int fd);

/* roster_net_logs.c */
bool logs_put(co_roster *r, const char *lines, size_t n);   /* co_roster_log */
long long logs_take(co_roster *r, co_str *out);             /* co_roster_logged */
void logs_heard(void *roster, const char *lines, size_t n); /* from another host */
bool logs_settled(co_roster *r);                            /* co_roster_settled */
void logs_end(net *r);                                      /* this host has no more: tells so, once */
bool logs_wait(net *r);                                     /* some are not on their way yet */
void logs_carry(net *r);                                    /* to the server, as many as go */

#endif
