/* queue_int.h -- between the agent, which runs workers, and the carrier thread, which owns the sockets.
 *
 *     agent --orders, log lines--> carrier        carrier --events, other hosts' log lines--> agent
 *
 * There is one lock. Each side has a descriptor that wakes it.
 */
#ifndef CO_ROSTER_NET_QUEUE_INT_H
#define CO_ROSTER_NET_QUEUE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "roster/net/frame_int.h"

typedef struct order { /* a frame that the agent wants to send */
    struct order *next;
    frame_type type;
    json_t *body;
} order;

typedef struct queue {
    pthread_mutex_t lock;
    int event_fd, order_fd;
    struct event_item *events, **events_end;
    order *orders, **orders_end;
    atomic_bool starved;    /* out of memory for an event or an order */
    co_str log_out, log_in; /* lines of this host for the server; lines of other hosts for the agent */
    long long log_lost;     /* lines that did not fit into log_in */
} queue;

co_err queue_init(queue *q);
void queue_fini(queue *q);

/* The carrier's side. */
void queue_event(queue *q, const co_roster_event *ev);
void queue_talk(void *queue, const char *text);           /* an event with a line for the terminal */
void queue_broke(queue *q, co_err err, const char *text); /* no event will follow */
order *queue_take_orders(queue *q); /* all of them, oldest first; the caller frees them */
co_str queue_take_log(queue *q);    /* lines for the server; the caller frees them */
bool queue_has_log(queue *q);       /* some wait for the carrier */
void queue_log_in(queue *q, const char *lines, size_t n); /* lines from another host */
void queue_calm(int fd);                                  /* after waking up */

/* The agent's side. */
void queue_order(queue *q, frame_type type, json_t *body); /* takes body */
/* CO_ROSTER_NOTHING: no event came. After an error no event follows. */
co_err queue_next(queue *q, int timeout_ms, co_roster_event *ev);
bool queue_log_out(queue *q, const char *lines, size_t n); /* false: too many wait already */
long long queue_logged(queue *q, co_str *out);             /* adds other hosts' lines; how many were lost */
void queue_wake_carrier(queue *q);

#endif
