/* view.h -- what a change of the members decides: a pure function of where everybody stands.
 *
 * Before a change every member freezes its gate and says where it stands: the unit in progress, and whether
 * its gate is READY. Such a member, or one that is past a unit, holds all that the unit needs. Let m be the
 * last unit that anybody holds. Members that do not hold m are frozen at m, and are given it by one that
 * does. If nobody holds the unit in progress, it is computed again, as a new turn with the new deal.
 *
 * Before the first view every host has the state that it started from. The one that is furthest (a
 * checkpoint), of several the first in order, has the state of the run. Hosts that started from another
 * state, or that come later, are newcomers: they are fed. A member of the first view that the view did not
 * reach before the next change stands where the run began, and is whole.
 *
 * A newcomer holds the units before it came only in its state: it cannot give such a unit, and its position
 * does not count.
 * A member whose state is of no use (a newcomer ahead of everybody who is whole) is fed anew.
 *
 * Positions differ by one unit at most, because a unit becomes READY only with a part of everybody.
 */
#ifndef CO_COMM_VIEW_H
#define CO_COMM_VIEW_H

#include "comm/deal.h"

typedef struct co_position {
    uint32_t unit;  /* in progress, or the one at which the run has ended */
    bool ready;     /* its gate */
    bool ended;     /* this member has stopped, ended or failed: it only gives */
    bool whole;     /* it holds the whole state; else it is being fed */
    bool fresh;     /* it has no state, and no position */
    uint32_t fed;   /* chunks of the state that it holds, if it is not whole */
    uint32_t since; /* the first unit that it took part in: it can give this one and later ones */
    bool starts;    /* it was told of no view yet: its state is the one that it started from */
    uint32_t first; /* the unit that it started at */
    uint64_t start; /* a number for the state that it started from. Equal numbers are equal states */
} co_position;

typedef struct co_view {
    co_deal deal;                  /* `me` is each member's own */
    uint32_t held;                 /* m: after the change everybody holds it */
    int8_t giver[CO_MAX_MEMBERS];  /* by member: who gives it m; -1: it holds m */
    int8_t feeder[CO_MAX_MEMBERS]; /* by member: who feeds it; -1: it is whole */
    uint32_t fed[CO_MAX_MEMBERS];  /* by member: chunks that it holds */
    bool anew[CO_MAX_MEMBERS];     /* by member: what it has is of no use, it is fed like a newcomer */
    uint32_t counts; /* no member can read a sample of this unit: it counts as unreadable; 0: none */
    bool stops;      /* a member left an evaluation: the others leave it too */
} co_view;

/* `weight`: how many leaves each member gets, in proportion; members that are not whole get none. CO_EFAIL if
 * no member is whole. */
co_err co_view_decide(co_view *view, uint32_t number, int hosts, const uint8_t *id, const co_position *at,
                      const int *weight, int slices);

/* Bits: members that cannot be in the next view. A host without a state, once the run has ended; one that
 * ended ahead of everybody who is whole, and whose ranks are gone. They may come as newcomers. */
uint64_t co_view_unfit(int hosts, const co_position *at);

#endif
