/* exchange.h -- the owner computes: how the hosts of a view come to hold the sum of a step, chunk by chunk.
 *
 * Every chunk has an owner. The others send it their pieces of the chunk (the fewest aligned subtrees that
 * cover their leaves); it adds them up along the tree and sends the sum back.
 *
 *     ranks     pieces of a chunk into the outbox, then `pieced`
 *     carrier   sends them to the owner                                     (CO_MSG_PIECE)
 *     carrier   all pieces of an own chunk have come: `here`
 *     ranks     add them up into the sum, then `summed`
 *     carrier   sends the sum of an own chunk to everybody                  (CO_MSG_SUM)
 *     carrier   the sum of another's chunk has come: `here`; ranks measure it, then `summed`
 *
 * A member without leaves sends empty pieces. A piece of step k says that its sender has applied step k - 1:
 * so nobody needs the sum of k - 1 any more when an owner overwrites it, and a host that missed it can still
 * be given it until then.
 *
 * The exchange belongs to the carrier. It reads and sets marks in the arena; ranks never touch the link.
 */
#ifndef CO_COMM_EXCHANGE_H
#define CO_COMM_EXCHANGE_H

#include "comm/deal.h"
#include "comm/link.h"
#include "comm/mark.h"

/* What it reads and writes in the arena. */
typedef struct co_exchange_map {
    size_t count, chunk, chunks;     /* elements of the gradient, of a chunk; chunks */
    float *sum;                      /* [count] */
    float *outbox;                   /* [pieces][count] */
    float *inbox;                    /* see co_exchange_piece */
    co_mark *here;                   /* [chunks] (turn, 1) */
    const co_claim *pieced, *summed; /* [chunks] by turn */
} co_exchange_map;

typedef struct co_exchange {
    co_link *link;
    const co_deal *deal;
    co_exchange_map map;
    co_cut cut;
    uint32_t unit, turn;
    int pieces[CO_MAX_MEMBERS]; /* of each member; 0: it sends an empty one */
    int before[CO_MAX_MEMBERS]; /* pieces of the members before it, this host's own left out */
    uint16_t *missing;          /* [chunks] messages that an addition still waits for */
    uint8_t *sent;              /* [chunks] this host's part of it */
    size_t unsent;              /* chunks without */
} co_exchange;

co_err co_exchange_init(co_exchange *x, co_link *link, const co_deal *deal, const co_exchange_map *map);
void co_exchange_fini(co_exchange *x);
/* Begins a step: posts its receives. */
co_err co_exchange_begin(co_exchange *x, uint32_t unit, uint32_t turn, const co_cut *cut);
/* Sends what has become ready. */
co_err co_exchange_turn(co_exchange *x);
/* all pieces and own sums of this step were handed to the link */
bool co_exchange_sent(const co_exchange *x);
/* A message of this unit has come. True: a mark was set, ring the event. */
bool co_exchange_took(co_exchange *x, const co_tag *tag);

/* Element lo of a node that another member sent, in the inbox; NULL if no member has this node as a piece. lo
 * lies in an own chunk. For ranks: pure arithmetic on the deal. */
const float *co_exchange_piece(const co_deal *deal, const co_cut *cut, const co_exchange_map *map, int level,
                               int index, size_t lo);
/* Elements that the inbox needs at most with up to `hosts` members. */
size_t co_exchange_inbox(size_t chunk, size_t chunks, int hosts, int pieces);
/* The most pieces of any run of leaves. */
int co_exchange_pieces(int slices);

#endif
