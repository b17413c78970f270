/* graphs_int.h -- one executor for every slice shape that can occur; for text one that has room for all of
 * them. Seen by this room only. */
#ifndef CO_TRAIN_GRAPHS_INT_H
#define CO_TRAIN_GRAPHS_INT_H

#include <stddef.h>

#include "base/err.h"
#include "data/data.h"
#include "graph/graph.h"
#include "nn/nn.h"
#include "train/train.h"

typedef struct shape_exec {
    co_slice_shape shape;
    co_exec *exec;
    /* offsets in the input buffer; SIZE_MAX: absent */
    size_t x, items, y, ids, y2, lam, given, offsets, y_offsets;
    size_t mirror; /* of the second half of x, the mirror images; or SIZE_MAX */
} shape_exec;

typedef struct exec_set {
    shape_exec *e;
    int n;
    size_t input_bytes, work_bytes, output_bytes; /* the most that any of them needs */
} exec_set;

co_err make_train_graphs(co_plan *plan);
co_err make_eval_graphs(co_plan *plan);
const shape_exec *exec_for(const exec_set *set, co_slice_shape shape); /* asserts that it was planned */
/* A run of an executor computes as many rows as the slice has. */
void set_rows(co_bases *bases, co_slice_shape shape);
co_err exec_set_add(exec_set *set, const co_plan *plan, co_slice_shape shape, co_mode mode);
void exec_set_fini(exec_set *set);
/* Where in an input buffer of this executor the data loader puts what. */
void slice_dst(const shape_exec *exec, char *buffer, co_slice_dst *dst);

#endif
