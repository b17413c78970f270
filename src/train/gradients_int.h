/* gradients_int.h -- how the elements of a step's gradient are spread: counted while it is summed. Seen
 * by this room only. */
#ifndef CO_TRAIN_GRADIENTS_INT_H
#define CO_TRAIN_GRADIENTS_INT_H

#include "train/plan_int.h"

enum { GRADIENT_CLASSES = 1024 }; /* a float's sign, exponent and first bit behind the point */

/* The elements of one parameter in one chunk. */
typedef struct gradient_part {
    uint32_t count[GRADIENT_CLASSES];
    float least, most; /* of those that are finite */
    double sum, squares;
} gradient_part;

/* Are the elements of this step's gradient counted? */
static inline bool gradients_due(const co_plan *plan, int64_t step)
{
    return plan->spec.gradients_every > 0 && step % plan->spec.gradients_every == 0;
}

size_t gradients_bytes(const co_plan *plan); /* of the parts; 0: nothing is counted */
/* Counts elements [lo, hi) of the sum, which are chunk c. */
void gradients_count(const co_plan *plan, gradient_part *parts, const float *sum, size_t c, size_t lo,
                     size_t hi);
/* Entry i's histogram; `count` is what the sum is divided by for the mean. False: the entry has none. */
bool gradients_read(const co_plan *plan, const gradient_part *parts, int i, double count, co_histogram *out);

#endif
