/* aside_int.h -- copies aside: the pool of old bytes that a checkpoint in progress still needs. Seen by this
 * room only.
 *
 * A part is what is copied at once: chunk c of the dense state is part c, range r of the tables of rows is
 * part chunks + r. A copy holds the part's weights and all its moments.
 */
#ifndef CO_TRAIN_ASIDE_INT_H
#define CO_TRAIN_ASIDE_INT_H

#include "train/plan_int.h"
#include "train/regions_int.h"

struct rank;

/* The pool has a place for every part: a saver that dies can always be replaced. */
bool aside_holds_all(const co_plan *plan);
/* The elements of a part in each array: *lo, and how many. */
size_t part_span(const co_plan *plan, size_t part, size_t *lo);

/* The rank is about to change the part. If a checkpoint still needs its old bytes, copies them; if the pool
 * is full, waits until the checkpoint needs nothing any more. */
void copy_aside(struct rank *rank, size_t part);
/* The unit of the checkpoint that still needs old bytes; 0: none. */
uint32_t aside_needed(const struct regions *regions);

/* For the saver of the state before unit `snap`: the old bytes of a part in one array (0: weights, 1 ...:
 * moments), from the part's first element on. NULL: nobody has changed the part before aside_done. */
const float *aside_find(const co_plan *plan, const struct regions *regions, uint32_t snap, size_t part,
                        int array);
/* The saver has read all it needs: from now on nobody copies anything for it. */
void aside_done(const struct regions *regions, uint32_t snap);
bool aside_is_done(const struct regions *regions, uint32_t snap);

#endif
