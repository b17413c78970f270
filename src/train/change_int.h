/* change_int.h -- a change of the members, as the carrier goes through it. Seen by this room only. */
#ifndef CO_TRAIN_CHANGE_INT_H
#define CO_TRAIN_CHANGE_INT_H

#include "train/carrier_int.h"

co_err change_turn(struct carrier *carrier);
void change_took(struct carrier *carrier, const co_tag *tag);
leaf_stat *stats_of(const struct carrier *carrier, const unit *u, size_t *n); /* carrier.c */
/* carrier.c: in a message of the final test the choices of all its samples follow the statistics;
 * *bytes: of them. */
int32_t *choices_after(const struct carrier *carrier, const unit *u, struct stats *stats, size_t *bytes);

#endif
