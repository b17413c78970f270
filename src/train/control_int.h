/* control_int.h -- the words by which ranks and supervisor agree on how the run goes on, and the results that
 * ranks publish. They lie in the arena. Seen by this room only. */
#ifndef CO_TRAIN_CONTROL_INT_H
#define CO_TRAIN_CONTROL_INT_H

#include <stdatomic.h>
#include <stdint.h>

#include "comm/deal.h"
#include "comm/event.h"
#include "comm/mark.h"
#include "train/plan_int.h"
#include "train/units_int.h"
#include "train/watch_int.h"

enum { RING = 4096 }; /* results that the supervisor may be behind by */

/* pc: | unit 32 | redeals 24 | flags 8 |. Ranks change it by compare-and-swap; the carrier freezes it by an atomic or,
 * and stores a new one only while it is frozen.
 *
 * The turn of a unit is one attempt at it: unit + redeals. A unit that is dealt anew, because a host was lost,
 * is a new turn of the same unit. Marks of leaves, sums and evaluation items are stamped by turn. Marks of
 * apply, of the journal and of copies aside are stamped by unit, so that nothing is applied twice.
 *
 * PC_READY and PC_FROZEN are the gate of a step (neither: it is open). A rank makes it READY when the whole sum
 * and everybody's wishes are there: from then on the step can only be finished. The carrier makes an open gate
 * FROZEN before it says where this host stands: from then on the step cannot be finished without a new view.
 *
 * PC_CUT stays once it is set: the run ends with the state that its first unit found. */
enum { PC_STOP = 1, PC_END = 2, PC_FAIL = 4, PC_SNAP = 8, PC_CUT = 16, PC_READY = 32, PC_FROZEN = 64 };

static inline uint64_t pc_of(uint32_t number, uint32_t redeals, uint64_t flags)
{
    return (uint64_t)number << 32 | (uint64_t)(redeals & 0xffffff) << 8 | flags;
}
static inline uint32_t pc_unit(uint64_t pc)
{
    return (uint32_t)(pc >> 32);
}
static inline uint32_t pc_redeals(uint64_t pc)
{
    return (uint32_t)(pc >> 8) & 0xffffff;
}
static inline uint32_t pc_turn(uint64_t pc)
{
    return pc_unit(pc) + pc_redeals(pc);
}

/* Frozen before it was READY. A READY unit is finished, also when the gate is frozen after that: then the next unit
 * waits for the new view. */
static inline bool pc_is_frozen(uint64_t pc)
{
    return (pc & (PC_FROZEN | PC_READY)) == PC_FROZEN;
}

/* What a host wants of the run. It is fixed once per turn, travels with the statistics of its leaves, and the
 * wishes of all hosts together take effect after the unit, everywhere. */
enum { WISH_STOP = 1, WISH_TIME_IS_UP = 2, WISH_LEAVE = 4 /* leaves this evaluation in its midst */ };

typedef struct result {
    _Atomic uint64_t unit;                   /* the other fields are this unit's once it is stored */
    _Atomic uint64_t loss, metric, norm, lr; /* bits of doubles */
    _Atomic uint64_t count, applied, skipped, t_ns, sum_apply_ns;
    _Atomic uint64_t top5;  /* bits of a double */
    _Atomic uint64_t bad;   /* samples that could not be read */
    _Atomic uint64_t slice; /* 1 + the first slice whose loss is not finite; 0: none */
} result;

enum { AUDITORS = 3 }; /* of a leaf: the host whose it is, and those that compute it again */

typedef struct control {
    co_event event;
    _Alignas(64) _Atomic uint64_t pc;
    _Alignas(64) _Atomic uint64_t snap;     /* unit << 1 | pending: the state before `unit` is being saved */
    co_mark snap_read;                      /* (unit, 1): its saver has read all it needs; see aside.c */
    _Atomic uint64_t aside_used;            /* unit << 32 | elements of the pool for copies aside */
    _Atomic int64_t snap_applied;           /* applied steps of that state */
    _Atomic uint64_t snap_at_ns;            /* when the last save was requested */
    _Atomic uint64_t save_beat;             /* changes while a saver gets on */
    _Alignas(64) _Atomic uint64_t consumed; /* last unit whose result was read */
    _Atomic uint32_t stop_request;          /* this host's; see WISH_STOP */
    _Atomic uint32_t time_is_up;
    _Atomic uint64_t wish[CO_MAX_MEMBERS]; /* by member of the view: turn << 8 | wishes */
    _Atomic uint64_t settled[2]; /* all of them, by unit & 1: unit << 8 | wishes, once the gate is READY */
    co_mark sent; /* several hosts: (turn, 1): the carrier has sent all that the others need of this host */
    struct {      /* several hosts: the carrier's words. A successor goes on with them */
        _Atomic uint32_t begun, since, whole; /* see struct carrier */
        _Atomic uint64_t start;               /* a number for the state that this host started from */
        _Atomic uint64_t audit[AUDITORS],
            audited[AUDITORS]; /* hashes of leaves, and their turns; see agree_int.h */
        /* a rank cannot read a sample of this turn: turn << 16 | leaf or item; 0: none. See unreadable.c */
        _Atomic uint64_t unreadable;
        _Atomic uint32_t counts;    /* the unit of which nobody can: see co_view */
        _Atomic uint64_t beat;      /* changes while the carrier gets on */
        _Atomic uint64_t sent, got; /* bytes of messages */
    } host;
    _Atomic uint64_t cut;                        /* first unit with PC_CUT; 0: none yet */
    _Atomic uint64_t watch[2][WATCH_WORDS];      /* after k evaluations, at k & 1 */
    _Atomic uint64_t snap_watch[2][WATCH_WORDS]; /* of the snapshot's state: before and after its evaluation */
    _Atomic uint64_t joined_watch[WATCH_WORDS];  /* of the state that this host was given when it joined */
    _Atomic uint32_t joined;                     /* after which unit that was; 0: it did not join late */
    _Atomic int64_t applied[2];                  /* applied steps after step k, at k & 1 */
    _Atomic uint32_t translated;                 /* the last unit whose translations are in the arena */
    _Atomic uint32_t test_of;                    /* which weights TEST evaluates: the words below */
    _Alignas(64) _Atomic uint64_t fault; /* armed accident: seed << 16 | phase << 8 | slot + 1; 0: none */
    _Atomic uint64_t fault_at_ns;        /* when the last one struck */
    result ring[RING];
} control;

/* test_of: not chosen yet; the state, or its average; the best weights, read from their checkpoint. */
enum { TEST_UNDECIDED, TEST_STATE, TEST_BEST };

/* The order of units as the run goes: cut short, or not. */
unit_order unit_order_now(const co_plan *plan, const control *ctl);
unit unit_now(const co_plan *plan, const control *ctl, uint32_t n);

static inline uint64_t bits_of(double x)
{
    uint64_t u;
    __builtin_memcpy(&u, &x, 8);
    return u;
}
static inline double of_bits(uint64_t u)
{
    double x;
    __builtin_memcpy(&x, &u, 8);
    return x;
}

#endif
