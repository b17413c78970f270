/* evaluate_int.h -- evaluation item by item: by ranks, or in this process alone. Seen by this room only. */
#ifndef CO_TRAIN_EVALUATE_INT_H
#define CO_TRAIN_EVALUATE_INT_H

#include "train/graphs_int.h"
#include "train/plan_int.h"
#include "train/predict.h"
#include "train/regions_int.h"

enum { EVAL_SLICE_MAX = 4096 }; /* samples evaluated together; the limit of data.eval_slice */

/* The samples of an item into `ids` (room for eval_slice); their slice shape. */
co_slice_shape item_samples(const co_plan *plan, co_split split, uint32_t item, uint32_t *ids);
/* Returns how many of its samples could not be read. */
int run_item(const co_plan *plan, const exec_set *set, co_split split, uint32_t item, co_bases *bases,
             _Atomic uint32_t *beat);
/* The items [*lo, *hi) that member h of a deal computes. */
void eval_share(const co_plan *plan, const co_deal *deal, int h, co_split split, uint32_t *lo, uint32_t *hi);
void eval_total(const co_plan *plan, const leaf_stat *items, co_split split, double total[LEAF_STATS]);
/* The first few unreadable samples of an evaluation, each "file: reason", from the items' statistics. */
void eval_bad_names(const co_plan *plan, const leaf_stat *items, co_split split, char *out, size_t room);
/* The likeliest class of each sample of an item, beside the right one: choice[its samples][2]. */
void note_choices(const co_plan *plan, co_split split, uint32_t item, const float *logits, const char *input,
                  int32_t *choice);

/* offline.c: memory to run one executor set in this process, with the checkpoint's weights (or the first
 * ones). */
struct offline {
    const co_space_ops *space;
    float *state;
    co_bases bases;
    void *buffers, *far; /* input, output and, on the host, work; else work */
};
co_err offline_open(struct offline *offline, co_plan *plan, const exec_set *set);
void offline_close(struct offline *offline);
co_err no_samples(const co_plan *plan, co_split split); /* the sentences */

#endif
