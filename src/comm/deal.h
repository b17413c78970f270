/* deal.h -- which leaves are whose: the members of a view, and the contiguous run of leaves of each.
 *
 * A deal lies in the arena. It changes only while the gate of the open unit is frozen, and a new turn begins
 * with it, so every rank reads it once per turn.
 */
#ifndef CO_COMM_DEAL_H
#define CO_COMM_DEAL_H

#include <stdint.h>

#include "comm/tree.h"

enum { CO_MAX_MEMBERS = 64 };

typedef struct co_deal {
    uint32_t view;                    /* from 1 */
    int32_t hosts;                    /* members */
    int32_t me;                       /* this host's place among them */
    int32_t writer;                   /* the member that writes checkpoints: the first that is whole */
    uint64_t whole;                   /* bits: members that hold the whole state; the others are being fed */
    int16_t from[CO_MAX_MEMBERS + 1]; /* member h has leaves [from[h], from[h + 1]); none: a spare */
    uint8_t id[CO_MAX_MEMBERS];       /* the members' places in the run: their addresses on a link */
} co_deal;

/* One host with all leaves. */
co_deal co_deal_alone(int slices);
/* A run of leaves for each member in proportion to its weight, which is its speed (all zero weights: equal
 * ones; weight 0 among others: a spare). The shares are equal if that makes a step nearly as fast: speeds are
 * measured with noise, and the borders of equal shares cut the tree into fewer pieces. */
void co_deal_leaves(co_deal *d, int slices, const int *weight);
/* How long the slowest member takes for its leaves, if the weights are speeds: for comparisons. */
double co_deal_time(const co_deal *d, const int *weight);
/* Another deal is worth a change if it needs less than this part of the time. */
#define CO_DEAL_GAIN 0.9

/* The fewest aligned subtrees that cover member h's leaves: what it sends for each chunk. Subtrees without
 * samples are left out. At most 2 * CO_MAX_LEVELS. */
typedef struct co_piece {
    int16_t level, index;
} co_piece;
int co_deal_pieces(const co_deal *d, const co_cut *cut, int h, co_piece out[2 * CO_MAX_LEVELS]);

/* The member that adds up chunk c. Equal shares in runs of neighbouring chunks. */
static inline int co_deal_owner(const co_deal *d, size_t c, size_t chunks)
{
    return (int)(c * (size_t)d->hosts / chunks);
}

#endif
