/* change_int.h -- a change of the members, as the carrier goes through it. Seen by this room only. */
#ifndef CO_TRAIN_CHANGE_INT_H
#define CO_TRAIN_CHANGE_INT_H

#include "train/carrier_int.h"

co_err change_turn(struct carrier *carrier);
void change_took(struct carrier *carrier, const co_tag *tag);
leaf_stat *stats_of(const struct carrier *carrier, const unit *u, size_t *n); /* carrier.c */

#endif
