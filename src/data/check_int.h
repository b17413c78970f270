/* check_int.h -- what the files of the check share. */
#ifndef CO_DATA_CHECK_INT_H
#define CO_DATA_CHECK_INT_H

#include "data/check.h"

/* What one reading of every sample found. Samples of all splits in a row: train, val, test. */
typedef struct walk {
    const co_dataset *set;
    uint64_t n;
    uint64_t *hash;                      /* [n] of the pixels; 0: unreadable, or not a picture */
    int32_t *label;                      /* [n] as the set gave it; CO_IGNORE: unreadable */
    uint64_t sum[3], squares[3], pixels; /* of the bytes of those to train on, by plane */
    uint32_t planes;                     /* 0: samples are not pictures */
} walk;
co_err walk_samples(walk *out, const co_dataset *set, void (*tell)(void *ctx, uint64_t done, uint64_t of),
                    void *ctx);
void walk_fini(walk *w);

/* The split and id of place i. */
co_split walk_split(const walk *w, uint64_t i, uint32_t *id);

/* --- check_ratings.c */
co_err count_ratings(co_rating_stats *out, const co_dataset *d);

/* --- quick.c */
/* The class that has more than 9 of 10 samples of val, but at most 7 of 10 of train; -1: none.
 * Too few samples: -1. */
int64_t one_class(const uint32_t *train, const uint32_t *val, int64_t classes);
/* For co_dataset_open: fails if all of val is one class, warns of classes that it lacks. About 2 ns a
 * sample. */
co_err quick_check(const co_dataset *d);

#endif
