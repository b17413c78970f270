/* io.h -- what a sample of a data set looks like, and thus the inputs a model is built for. The rooms data
 * and nn share this description; neither includes the other.
 *
 * Inputs of a slice of n samples, by task (names, dtypes and shapes of the graph's inputs):
 *   CLASSIFY   x F32 [n, x...]     y I32 [n]            ids I64 [n]
 *   REGRESS    x F32 [n, x...]     y F32 [n, y_width]   ids I64 [n]
 *              with users > 0 (ratings): x I32 [n] is a user, items I32 [n] an item, y the rating
 *   LM         x I32 [n, len]      y I32 [n, len]       ids I64 [n]    lens I32 [n]
 *              past a sample's own length: x = 0, y = CO_IGNORE
 */
#ifndef CO_TENSOR_IO_H
#define CO_TENSOR_IO_H

#include <stdbool.h>

#include "tensor/tensor.h"

enum { CO_IGNORE = -100 };

typedef enum { CO_TASK_CLASSIFY, CO_TASK_REGRESS, CO_TASK_LM } co_task;

typedef struct co_io {
    co_task task;
    co_shape x;       /* one sample, without n; LM: scalar */
    int64_t classes;  /* CLASSIFY; LM: vocabulary */
    int64_t y_width;  /* REGRESS */
    int64_t users;    /* REGRESS: a sample is a pair of numbers, a user below `users` ... */
    int64_t items;    /* ... and an item below `items`. Both 0: a sample is x */
    double y_mean;    /* ratings: the mean of those to train on; 0: not known */
    int64_t max_len;  /* LM: no sample is longer */
    int64_t len_step; /* LM: slices are padded to the next multiple of this */
    /* CLASSIFY, training only: samples are mixed in pairs. The graph gets two more inputs, y2 I32 [n] and
     * lam F32 [n]; a row's loss is lam * loss(y) + (1 - lam) * loss(y2). */
    bool mix;
} co_io;

/* The shape of one slice, for which an executor is compiled. */
typedef struct co_slice_shape {
    int n;
    int len; /* LM: padded length; else 0 */
} co_slice_shape;

#endif
