/* recommend.h -- ratings: what to recommend, and how good the recommendations are. */
#ifndef CO_TRAIN_RECOMMEND_H
#define CO_TRAIN_RECOMMEND_H

#include "train/train.h"

typedef struct co_recommended {
    uint32_t item; /* its row */
    float score;   /* the prediction */
} co_recommended;
/* The k items (or fewer, *n) that the user of this row has not rated and that have the highest predictions,
 * highest first; out[k]. With a checkpoint's weights, or after a training with the last ones. CO_EINPUT: no
 * ratings. */
co_err co_recommend(co_plan *p, uint32_t user, int k, co_recommended *out, int *n);

typedef struct co_hits {
    int k;
    int64_t users, cases;  /* a case is a held-out rating */
    double hit_rate, ndcg; /* at k, means over the cases */
} co_hits;
/* Leave one out: how often the item of a held-out rating is among the k that stand highest of it and all
 * items that the user has not rated. At most about `most` predictions are made, for users evenly spread; 0:
 * all. */
co_err co_hit_rates(co_plan *p, co_split split, int k, int64_t most, co_hits *out);

#endif
