/* measure_int.h -- one slice of training, computed in this process alone, for measurements. Its results are thrown
 * away. Seen by this room only. */
#ifndef CO_TRAIN_MEASURE_INT_H
#define CO_TRAIN_MEASURE_INT_H

#include "train/measure.h"
#include "train/plan_int.h"
#include "train/regions_int.h"
#include "train/rows_int.h"

struct one_slice {
    co_plan *plan;
    const shape_exec *e;
    void *block;
    float *state, *leaf, *other, *lists;
    co_rows rows[MAX_LISTS];
    char *input, *work;
    co_team *team;
    leaf_stat stat;
    const uint32_t *ids; /* [shape.n], the order's */
    co_slice_shape shape;
};

/* Memory, first weights, and the first slice of step 1 that has samples, not loaded yet. Close it also after an
 * error. */
co_err one_slice_open(struct one_slice *s, co_plan *plan);
void one_slice_close(struct one_slice *s);
bool one_slice_use(struct one_slice *s, int leaf); /* another slice of step 1; false: it has no samples */
void one_slice_load(struct one_slice *s);          /* its samples */
co_bases one_slice_bases(struct one_slice *s);
co_run one_slice_run(const struct one_slice *s);
void one_slice_compute(struct one_slice *s);       /* forward and backward pass, by all threads of the team */
void one_slice_compute_alone(struct one_slice *s); /* by this thread */

#endif
