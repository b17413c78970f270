/* carry_int.h -- the carrier as a process of its own: what the supervisor orders, and what it reports. Seen
 * by this room only.
 *
 * The process owns the link and every socket of it. If it dies, another one takes its place: all that it must
 * know lies in the arena, and the members begin the unit anew with a change of the view.
 */
#ifndef CO_TRAIN_CARRY_INT_H
#define CO_TRAIN_CARRY_INT_H

#include "comm/view.h"
#include "link/links.h"
#include "train/run_int.h"

typedef enum { ORDER_FREEZE, ORDER_VIEW } order_kind;

/* From the supervisor. A packet of a socket of its own. */
struct order {
    order_kind kind;
    uint32_t number; /* of the view */
    co_view view;    /* VIEW: with deal.me */
    int peers;
    co_link_peer peer[CO_MAX_MEMBERS];
};

typedef enum {
    REPORT_POSITION, /* answers FREEZE */
    REPORT_WHOLE,    /* this newcomer holds the whole state */
    REPORT_CUT,      /* the connection to `peer` is lost: `why` */
    REPORT_WRONG, /* the members of `bits` are outvoted: they hold other weights, or (`leaf`) compute wrong */
    REPORT_FAILED /* the carrier cannot go on: `why`; it exits */
} report_kind;

struct report {
    report_kind kind;
    uint32_t number; /* of the view that it speaks of */
    co_position at;
    int peer;
    uint64_t bits;
    bool leaf;
    char why[256];
};

/* What the process is started with. */
struct carry {
    const struct run *run;
    int id;     /* this host's place */
    int socket; /* orders come, reports go */
};

int carry_main(void *carry); /* in the child; the exit status */

#endif
