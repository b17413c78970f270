/* rank_int.h -- a rank and the phases of its units. Seen by this room only. */
#ifndef CO_TRAIN_RANK_INT_H
#define CO_TRAIN_RANK_INT_H

#include "comm/mark.h"
#include "comm/recorder.h"
#include "train/plan_int.h"
#include "train/regions_int.h"

struct rank {
    co_plan *plan;
    struct regions *regions;
    rank_slot *me;
    co_who who; /* unit in progress, slot, incarnation */
    int spin;
    co_team *team; /* the threads that compute with this one; NULL: it is alone */
    co_loader *loader;
    uint64_t job; /* next index of the loader's sequence */
    struct jobs *jobs;
    char *work; /* this rank's workspace: arena, or the provider's own space */
    size_t work_bytes;
    uint64_t pc;                   /* as it was when the unit began */
    uint64_t compute_ns, phase_ns; /* last leaf's time, last phase's: where an accident is aimed */
    uint64_t sum_apply_ns;
    uint64_t waited_ns; /* for data, by earlier incarnations */
    uint64_t base_allocs, base_faults;
    uint32_t units_done;
    bool doomed;                      /* by an accident that strikes soon */
    int bell;                         /* eventfd to the supervisor; -1: none */
    void (*point)(struct rank *rank); /* for tests: called at every place where dying makes a difference; NULL */
};

/* What the root decides about a step: the same in every rank, from the same bytes. */
typedef struct decision {
    double loss, metric, top5, count, norm, lr, momentum, bad;
    float scale, inv_samples;
    bool finite, apply;
    int slice; /* the first with a loss that is not finite; -1: none */
    int64_t t; /* applied steps, this one included */
} decision;

/* rank.c: its life */
void ring_bell(const struct rank *rank); /* the supervisor looks at the control words at once */
co_err rank_open(struct rank *rank, co_plan *plan, struct regions *regions, int slot, uint32_t inc, int bell);
void rank_close(struct rank *rank);
void rank_loop(struct rank *rank); /* units until the end; what TSan runs in threads */

/* The phases, in order. Each returns when all ranks are through with it. */
void leaves(struct rank *rank, int64_t step);
void sum_chunks(struct rank *rank, int64_t step);
void decide(const struct rank *rank, int64_t step, decision *out);
void apply_chunks(struct rank *rank, int64_t step, const decision *decided);
bool evaluate_items(struct rank *rank, co_split split); /* false: left before its end, see leave_evaluation */

/* advance.c: the end of a unit. `now`: after a VAL unit; NULL after the others */
void advance(struct rank *rank, const unit *done, const decision *decided, const watch *now);
/* In the middle of an evaluation: if a stop was requested, moves pc to "stopped before this unit". True: the
 * evaluation was left, by this rank or another. */
bool leave_evaluation(struct rank *rank);
bool evaluation_left(const struct rank *rank);

/* decide.c: a sum of doubles along the fixed binary tree over n places, `stride` doubles apart */
double tree_of(const double *x, size_t stride, size_t n);

/* jobs.c: starts the loader, from where this slot stands */
co_err jobs_start(struct rank *rank);

/* phase.c: what every phase needs */
void rank_phase(struct rank *rank, co_phase phase, uint32_t item);
void wait_for(struct rank *rank, bool (*done)(struct rank *rank, int64_t arg), int64_t arg, co_phase phase);

/* fault.c: accidents on request. Dies here, or soon, if one is armed. CO_FAULT_NONE: a place that only tests
 * aim at. */
void fault_point(struct rank *rank, co_fault phase);
uint64_t fault_word(co_fault phase, int slot, uint64_t seed);

#endif
