/* mark.h -- atomic words by which ranks agree on who did what, although any of them may die at any instant.
 *
 * A word is never a boolean that somebody must reset. It names its unit of work, so a word of an old unit is
 * simply out of date. Units only rise; a word of a later unit means that everything of the earlier ones is
 * done.
 *
 *     claim:  | unit 32 | slot 8 | incarnation 22 | state 2 |
 *
 *     (older unit) --CAS--> CLAIMED by (slot, inc) --store--> DONE
 *                              |  the holder died, its slot has a new incarnation
 *                              +--CAS--> CLAIMED by (slot, inc + n): the work is done again ("redo")
 *
 * Only an incarnation of the same slot may take over a claim. A slot gets a new incarnation only after the
 * old one has been reaped. So a claim never has two live holders.
 */
#ifndef CO_COMM_MARK_H
#define CO_COMM_MARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CO_MAX_SLOTS = 64 }; /* ranks of one host; also the bits of an event's sleepers */

typedef struct co_claim {
    _Atomic uint64_t word;
} co_claim;

/* The caller's identity. */
typedef struct co_who {
    uint32_t unit; /* from 1 */
    uint32_t slot, inc;
} co_who;

typedef enum {
    CO_CLAIM_FRESH, /* yours; nobody has begun this work */
    CO_CLAIM_REDO,  /* yours; your predecessor died during this work */
    CO_CLAIM_BUSY,  /* another rank holds it */
    CO_CLAIM_DONE
} co_claimed;

co_claimed co_claim_take(co_claim *c, co_who who);
/* release: a rank that sees DONE also sees all earlier writes of the holder */
void co_claim_finish(co_claim *c, co_who who);
void co_claim_give_back(co_claim *c, co_who who); /* the holder did nothing that lasts: nobody has begun */
bool co_claim_is_done(const co_claim *c, uint32_t unit);
bool co_claim_is_free(const co_claim *c, uint32_t unit); /* nobody has begun this work */

/* Progress of a single writer: (unit, count) in one word. */
typedef struct co_mark {
    _Atomic uint64_t word;
} co_mark;

void co_mark_set(co_mark *m, uint32_t unit, uint32_t count); /* release */
/* The count reached in `unit`; 0 if the mark belongs to an earlier unit, UINT32_MAX if to a later one.
 * Acquire. */
uint32_t co_mark_get(const co_mark *m, uint32_t unit);

#endif
