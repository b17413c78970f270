/* io.h -- what a sample of a data set looks like, and thus the inputs a model is built for. The rooms data
 * and nn share this description; neither includes the other.
 *
 * Inputs of a slice of n samples, by task (names, dtypes and shapes of the graph's inputs):
 *   CLASSIFY   x F32 [n, x...]     y I32 [n]            ids I64 [n]
 *   REGRESS    x F32 [n, x...]     y F32 [n, y_width]   ids I64 [n]
 *              with users > 0 (ratings): x I32 [n] is a user, items I32 [n] an item, y the rating
 *   LM         x I32 [tokens]      y I32 [tokens]       ids I64 [n]    offsets I32 [n + 1]
 *              samples lie end to end, without padding: sample i is x and y from offsets[i] to offsets[i + 1] - 1
 *   PAIRS      a source sequence and a target sequence per sample. All sources lie end to end in x, all
 *              targets in given and y, without padding:
 *              x I32 [tokens]  given, y I32 [targets]  ids I64 [n]  offsets, y_offsets I32 [n + 1]
 *              source of sample i: x[offsets[i]] to x[offsets[i + 1] - 1], with the tokens that begin and end it
 *              target of sample i: given and y from y_offsets[i] to y_offsets[i + 1] - 1. The model is given
 *              begin, w0, w1 ... and must predict, in y, w0, w1 ..., end
 */
#ifndef CO_TENSOR_IO_H
#define CO_TENSOR_IO_H

#include <stdbool.h>

#include "tensor/tensor.h"

enum { CO_IGNORE = -100 };

typedef enum { CO_TASK_CLASSIFY, CO_TASK_REGRESS, CO_TASK_LM, CO_TASK_PAIRS } co_task;

typedef struct co_io {
    co_task task;
    co_shape x;         /* one sample, without n; LM: scalar */
    int64_t classes;    /* CLASSIFY; LM: vocabulary; PAIRS: vocabulary of the targets */
    int64_t sources;    /* PAIRS: vocabulary of the sources */
    int32_t begin, end; /* PAIRS: tokens of the targets' vocabulary before the first and after the last word */
    int64_t y_width;    /* REGRESS */
    int64_t users;      /* REGRESS: a sample is a pair of numbers, a user below `users` ... */
    int64_t items;      /* ... and an item below `items`. Both 0: a sample is x */
    double y_mean;      /* ratings: the mean of those to train on; 0: not known */
    int64_t max_len; /* LM: no sample is longer; PAIRS: nor is a source or a target, with its begin and end */
    /* CLASSIFY, training only: samples are mixed in pairs. The graph gets two more inputs, y2 I32 [n] and
     * lam F32 [n]; a row's loss is lam * loss(y) + (1 - lam) * loss(y2). */
    bool mix;
    /* CLASSIFY, pictures [c,h,w], evaluation and prediction only: x has 2n samples; sample n + i is the mirror
     * image of sample i, and the prediction for i is the mean of both. */
    bool mirror;
} co_io;

/* The shape of one slice. Text is ragged: an executor is compiled for the most samples and tokens that a
 * slice can have, and computes as many as there are. For all other tasks there is an executor for each n.
 * */
typedef struct co_slice_shape {
    int n;
    int tokens;  /* LM: of all samples together; PAIRS: of all sources; else 0 */
    int targets; /* PAIRS: of all targets; else 0 */
} co_slice_shape;

static inline bool co_is_text(const co_io *io)
{
    return io->task == CO_TASK_LM || io->task == CO_TASK_PAIRS;
}

#endif
