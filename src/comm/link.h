/* link.h -- moves bytes between the hosts of a run, for the carrier alone. One row per transport.
 *
 * A receive is posted before its bytes come, so they land where they belong. A send's bytes stay as they are
 * until it is reported as done. Every message carries a tag; a receive takes the message with the same tag
 * from the same host.
 *
 *     co_link_post(link, from, &tag, to, len);
 *     co_link_send(link, to, &tag, bytes, len);
 *     co_link_turn(link, 0);                    // reports what is done, through link->done
 *     co_link_cut(link, view);                  // nothing of earlier views can land any more
 *
 * Between two hosts messages come in the order in which they were sent. A message whose receive is not posted
 * yet waits, and holds up what the same host sent after it: its view or its unit has not begun here. Messages
 * of views that were cut are dropped.
 *
 * A link that loses a connection never repeats a message by itself. It reports the peer (co_link_lost); the
 * members then go through a change of the view, which begins the unit anew.
 *
 * Rows: `self` (several hosts in one process, for tests: link_self.h), `tcp` and `mpi` (link/links.h).
 */
#ifndef CO_COMM_LINK_H
#define CO_COMM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum {
    /* a piece of a chunk, to the chunk's owner; node: its place in the sender's list of pieces */
    CO_MSG_PIECE,
    CO_MSG_SUM,   /* the sum of a chunk, from its owner */
    CO_MSG_ROWS,  /* the row-sparse gradients of a leaf; chunk: the leaf */
    CO_MSG_STATS, /* a host's statistics and wishes of a unit */
    CO_MSG_GIVEN, /* the sum of a chunk of a unit that the receiver missed, from a donor */
    CO_MSG_NEWS,  /* what a donor knows besides: statistics and wishes of all, control words */
    CO_MSG_FED    /* the state of a chunk, for a newcomer; node: its part (weights, moments) */
} co_msg;

typedef struct co_tag {
    uint32_t view, unit;
    uint16_t kind; /* co_msg */
    uint16_t node;
    uint32_t chunk;
} co_tag;

typedef struct co_link co_link;

/* Where a host is found. `birth` is a number that no earlier process at this place had: a host that comes
 * back is another one. */
typedef struct co_link_peer {
    int id;
    uint64_t birth;
    char host[256]; /* a numeric address, or a name */
    int port;
} co_link_peer;

/* Since the link was opened. `payload` counts the bytes of messages; `wire` all that went through sockets. */
typedef struct co_link_counts {
    uint64_t payload_sent, payload_got, wire_sent, wire_got;
} co_link_counts;

typedef struct co_link_ops {
    const char *name;
    co_err (*post)(co_link *link, int from, const co_tag *tag, void *to, size_t len);
    co_err (*send)(co_link *link, int to, const co_tag *tag, const void *bytes, size_t len);
    co_err (*turn)(co_link *link, int timeout_ms);
    void (*cut)(co_link *link, uint32_t view);
    /* The rest may be NULL: the link has nothing to do there. */
    co_err (*meet)(co_link *link, const co_link_peer *peers, int n);
    int (*fd)(const co_link *link);
    bool (*lost)(co_link *link, int *peer, char *why, size_t size);
    co_link_counts (*counts)(const co_link *link);
    void (*close)(co_link *link);
} co_link_ops;

struct co_link {
    const co_link_ops *ops;
    int me; /* this host's address; hosts are addressed by their place in the run (co_deal.id) */
    /* Reports, from within turn: a receive from, or a send to, `peer` is done. */
    void (*done)(void *ctx, bool sent, int peer, const co_tag *tag);
    void *ctx;
};

static inline co_err co_link_post(co_link *l, int from, const co_tag *tag, void *to, size_t len)
{
    return l->ops->post(l, from, tag, to, len);
}
static inline co_err co_link_send(co_link *l, int to, const co_tag *tag, const void *bytes, size_t len)
{
    return l->ops->send(l, to, tag, bytes, len);
}
static inline co_err co_link_turn(co_link *l, int timeout_ms)
{
    return l->ops->turn(l, timeout_ms);
}
/* Cancels all posted receives and all sends of views before `view`: their memory is the caller's again,
 * nothing of theirs is reported any more, and whatever of theirs comes later is dropped. */
static inline void co_link_cut(co_link *l, uint32_t view)
{
    l->ops->cut(l, view);
}
/* The hosts of the next view, this one among them. Connections to others, or to earlier lives of these, are
 * closed; missing ones are made while turns go on. Nothing waits here. Messages may be sent at once. */
co_err co_link_meet(co_link *link, const co_link_peer *peers, int n);
/* A descriptor to poll for POLLIN: a turn has something to do. -1: call turn often. */
int co_link_fd(const co_link *link);
/* True: the connection to *peer is lost, and *why says how. Each loss is reported once. */
bool co_link_lost(co_link *link, int *peer, char *why, size_t size);
co_link_counts co_link_count(const co_link *link);
void co_link_close(co_link *link); /* frees it; NULL is fine */
bool co_tag_same(const co_tag *a, const co_tag *b);

#endif
