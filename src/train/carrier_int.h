/* carrier_int.h -- the carrier of a host: it alone talks to the other hosts. Seen by this room only.
 *
 * It reads in the arena what the ranks have done, sends what the others need, and marks what has come. It is
 * a state machine without waits: carrier_turn does what can be done now. A change of the members goes through
 * three calls, which the roster's orders lead to:
 *
 *     carrier_freeze    the gate is frozen, the old view is cut off; says where this host stands
 *     carrier_view      the new view: waits for a step that is READY, takes what this host missed, deals anew
 *     carrier_turn      ... and all that goes on
 */
#ifndef CO_TRAIN_CARRIER_INT_H
#define CO_TRAIN_CARRIER_INT_H

#include "comm/exchange.h"
#include "comm/view.h"
#include "train/agree_int.h"
#include "train/plan_int.h"
#include "train/regions_int.h"

enum { FEED_AT_ONCE = 4 }; /* chunks that are on their way to a newcomer */

/* What travels besides sums: of one host (CO_MSG_STATS), or all that a giver knows (CO_MSG_NEWS). */
struct stats {
    uint64_t wish;
    uint64_t fed;                             /* parts of the state that were sent up to and with this unit */
    uint64_t fed_to;                          /* 1 + the id of the host that got them; 0: nobody */
    uint64_t state_hash, leaf_hash[AUDITORS]; /* 0: none; see agree_int.h */
    /* Of CO_MSG_NEWS only, for a newcomer: the words that evaluations and steps leave behind. */
    uint64_t cut, over; /* over: flags of pc, if the run has ended with the unit that is held */
    int64_t applied[2];
    uint64_t watch[2][WATCH_WORDS];
    double stat[]; /* of the unit's leaves or items, LEAF_STATS each */
};

/* The state of one chunk on its way: weights and moments. */
struct feeding {
    bool busy;
    int left; /* parts that were not reported as sent */
    size_t chunk;
    float *part; /* [1 + moments][chunk] */
};

struct carrier {
    co_plan *plan;
    struct regions *regions;
    co_link *link;
    co_exchange exchange;
    uint32_t turn; /* for which receives are posted; 0: none yet */
    co_err err;    /* a host sent what cannot be used */
    bool said;     /* this host's statistics of that turn are sent */
    size_t stats_bytes;
    struct stats *mine[2]; /* by unit & 1: the one before may still be on its way */
    struct stats *theirs[CO_MAX_MEMBERS], *news;
    int rows_missing, rows_unsent;  /* lists of leaves that have not come, that were not taken */
    uint64_t heard;                 /* bits: members whose statistics of this turn are in */
    bool held_back[CO_MAX_MEMBERS]; /* a feeder's statistics have come, and not all that it has fed */

    /* agree.c: hashes of this unit, by member */
    uint64_t state_hash[CO_MAX_MEMBERS], leaf_hash[CO_MAX_MEMBERS][AUDITORS];
    uint64_t known; /* bits: members whose hashes are in */
    uint64_t wrong; /* bits: members that are outvoted; the run ends */
    bool wrong_leaf;
    int64_t flip_at; /* for tests */

    /* a change of the members */
    bool frozen, changing;
    co_view view;   /* the one that is being entered, or was entered last */
    int missing;    /* messages of the giver that have not come */
    bool taking;    /* what this host missed */
    bool begun;     /* this host was in a view */
    bool fresh;     /* this host has no state yet */
    uint32_t since; /* the first unit that it took part in */

    /* feeding a newcomer, or being fed */
    struct feeding feeding[FEED_AT_ONCE];
    size_t fed;      /* chunks that were sent, or that are counted */
    uint16_t *parts; /* [chunks] parts that have come */
    int fed_member;  /* whom this host feeds; -1: nobody */
};

co_err carrier_open(struct carrier *carrier, co_plan *plan, struct regions *regions, co_link *link);
void carrier_close(struct carrier *carrier);
co_err carrier_turn(struct carrier *carrier);
co_position carrier_freeze(struct carrier *carrier, uint32_t view);
/* `me`: this host's place among the members. */
co_err carrier_view(struct carrier *carrier, const co_view *view, int me);
bool carrier_is_whole(const struct carrier *carrier);

/* lists.c: the lists of rows of every host's leaves */
co_err lists_post(struct carrier *carrier, int64_t step, uint32_t open); /* the receives of a step */
co_err lists_send(struct carrier *carrier, int64_t step, uint32_t open); /* this host's, to everybody */
void lists_took(struct carrier *carrier, int peer, const co_tag *tag);
void lists_check(struct carrier *carrier); /* all have come, and everybody has begun this step: marks it */

/* feed.c: a newcomer is fed while the others go on */
size_t feed_parts(const co_plan *plan);    /* parts of the state: chunks, and ranges of tables */
size_t feed_size(const co_plan *plan);     /* elements of the largest part */
co_err feed_post(struct carrier *carrier); /* the newcomer's receives */
/* the feeder: sends chunks of the state before `open` */
co_err feed_turn(struct carrier *carrier, uint32_t open);
void feed_sent(struct carrier *carrier, const co_tag *tag);
void feed_took(struct carrier *carrier, const co_tag *tag);
bool feed_has(const struct carrier *carrier, uint64_t count); /* so many chunks have come, whole */
/* from unit `open` on they are held */
void feed_count(struct carrier *carrier, uint64_t count, uint32_t open);

#endif
