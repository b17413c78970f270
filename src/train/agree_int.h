/* agree_int.h -- two guards against silent corruption, for several hosts. Seen by this room only.
 *
 * Every trainer.verify_every steps, and when a checkpoint is due, every host sends with its statistics
 *
 *     a hash of its state     all hosts must have the same one
 *     hashes of leaves        of one of its own, and of one of each of the two hosts before it, which it
 *                             computes again
 *
 * The first finds a state that went wrong on one host; the second finds a host that computes wrong, which the
 * first cannot: all hosts apply the same wrong sum. Every host sees all hashes. If two differ, no host makes
 * the step READY, and the run ends: it can be continued from its last checkpoint, whose state all had agreed
 * on.
 */
#ifndef CO_TRAIN_AGREE_INT_H
#define CO_TRAIN_AGREE_INT_H

#include "comm/deal.h"
#include "train/plan_int.h"
#include "train/regions_int.h"

/* Which leaf of member `member[0]` is audited in a step, and who computes it again. n < 2: none. */
typedef struct audit {
    int leaf, n;
    int member[AUDITORS];
} audit;

bool verify_due(const co_plan *plan, const unit *u);
audit audit_of(const co_plan *plan, const co_deal *deal, const unit *u, int owner);
uint64_t hash_of_state(const co_plan *plan, const struct regions *regions);
/* The members that are outvoted, as bits, of those with a hash (0: it has none). Nobody has a majority: all
 * of them. 0: all agree. */
uint64_t outvoted(const uint64_t *hash, int members);
/* The same for the audits of all members' leaves: hash[h][i] is what h computed as the i-th of an audit. */
uint64_t outvoted_leaves(const co_plan *plan, const co_deal *deal, const unit *u,
                         const uint64_t hash[CO_MAX_MEMBERS][AUDITORS]);

/* A rank's part. `audit_others` computes leaves of others again, before this rank's own; `audit_own` is
 * called for each own leaf after it was computed. */
struct rank;
void audit_others(struct rank *rank, int64_t step);
void audit_own(struct rank *rank, int64_t step, int leaf, const float *gradient, const double *stat);

#endif
