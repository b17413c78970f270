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
    co_who who;         /* unit in progress, slot, incarnation: for marks by unit */
    uint32_t turn;      /* of that unit: for marks by turn, see turn_of */
    co_deal deal;       /* a copy, of this turn */
    co_tree tree[CUTS]; /* this host's leaves, as dealt for this turn */
    uint32_t dealt;     /* 1 + the number of the deal that they follow */
    int cut;            /* of the step in progress: CUT_FULL or CUT_SHORT */
    int spin;
    co_team *team; /* the threads that compute with this one; NULL: it is alone */
    co_loader *loader;
    uint64_t job; /* next index of the loader's sequence */
    struct jobs *jobs;
    char *work; /* this rank's workspace: arena, or the provider's own space */
    size_t work_bytes;
    uint64_t pc;                   /* as it was when the turn began */
    uint64_t compute_ns, phase_ns; /* last leaf's time, last phase's: where an accident is aimed */
    uint64_t sum_apply_ns;
    uint64_t waited_ns; /* for data, by earlier incarnations */
    struct {            /* in all, with those of earlier incarnations */
        uint64_t compute_ns, update_ns, exchange_ns, idle_ns, leaves;
    } spent;
    uint64_t base_allocs, base_faults;
    int group;                            /* slices that go backward together; see group.c */
    uint64_t group_ns, group_exchange_ns; /* when that was decided last */
    uint32_t units_done;
    beam_search *search;            /* for translations; NULL: the run makes none */
    int32_t *sources;               /* their sources */
    co_load audit;                  /* a leaf that is computed again; see agree.c */
    co_rows_order order[MAX_LISTS]; /* of the last sums of rows that this rank made; see rows.c */
    int64_t spoil_from;             /* for tests: its leaves are wrong from this step on; 0: never */
    bool doomed;                    /* by an accident that strikes soon */
    int bell;                       /* eventfd to the supervisor; -1: none */
    /* For tests; NULL: called at every place where dying makes a difference, and instead of sleeping. */
    void (*point)(struct rank *rank), (*pause)(struct rank *rank);
};

/* What the root decides about a step: the same in every rank, from the same bytes. */
typedef struct decision {
    double loss, metric, top5, count, norm, lr, momentum, bad;
    float scale, inv_samples;
    bool finite, apply;
    int slice; /* the first with a loss that is not finite; -1: none */
    int64_t t; /* applied steps, this one included */
    int64_t step;
} decision;

/* rank.c: its life */
void ring_bell(const struct rank *rank); /* the supervisor looks at the control words at once */
/* For wait_for: has the supervisor read the results of all units before this number? It may still need what they left
 * in the arena. */
bool supervisor_has_read(struct rank *rank, int64_t number);
co_err rank_open(struct rank *rank, co_plan *plan, struct regions *regions, int slot, uint32_t inc, int bell);
void rank_close(struct rank *rank);
void rank_loop(struct rank *rank); /* units until the end; what TSan runs in threads */

/* at_once.c: how many operations of the fold from `from` on, and before `to`, are slices that are computed at once; 1:
 * this one is computed alone, or is not a slice. leaves_at_once: false: the turn is over. */
int slices_at_once(const struct rank *rank, const co_fold *fold, int from, int to);
bool leaves_at_once(struct rank *rank, int64_t step, const co_fold_op *op, int n);

/* group.c: the last slices of a slot go backward together, part by part, and what is final of their sum is
 * sent at once. */
/* The first operation of the fold that belongs to the group; n_ops: there is none. */
int group_begins(const struct rank *rank, const co_fold *fold, int64_t step);
bool group_run(struct rank *rank, int64_t step, const co_fold *fold, int first); /* false: the turn is over */
void group_grow(struct rank *rank); /* after a step: more slices, if this rank waits for the wire */
/* This slot's sums of chunks [chunk, ...) are final. */
void say_final(struct rank *rank, size_t chunk);
/* The phases, in order. Each returns when all ranks are through with it, or when the turn is over: false. */
bool leaves(struct rank *rank, int64_t step);
bool sum_chunks(struct rank *rank, int64_t step);
/* While leaves are computed: makes pieces of chunks that are final, and adds up those that have come. */
void sum_early(struct rank *rank, int64_t step);
/* apply.c: a newcomer applies only to the parts of the state that it has been given, each from its unit on:
 * chunks, then ranges of the tables. */
bool holds_part(const struct rank *rank, size_t part);
bool holds_all(const struct rank *rank); /* not a newcomer */
bool pass_gate(struct rank *rank);       /* gate.c */
void wait_at_gate(struct rank *rank);    /* as long as it is frozen */
void decide(const struct rank *rank, int64_t step, decision *out);
void apply_chunks(struct rank *rank, const decision *decided);
bool evaluate_items(struct rank *rank, co_split split); /* false: left before its end, see leave_evaluation */
float *state_to_evaluate(const struct rank *rank);

/* translate_rank.c: the translations of an evaluation */
co_err open_search(struct rank *rank);
void close_search(struct rank *rank);
bool translation_due(const struct rank *rank, co_split split); /* does this unit translate? */
bool translate_groups_of(struct rank *rank, co_split split);   /* false: the turn is over, or left */
bool all_translated(const struct rank *rank, co_split split);  /* or nothing was to do */
void say_translated(struct rank *rank, co_split split);        /* for the supervisor */

/* apply.c: weights (part 0), a moment (1 ...); clips each element of the mean gradient to plus or minus
 * clip_value. The result lies in the slot's memory for it, from element `at` on. */
float *part_of(const struct rank *rank, int part);
void clip(const struct rank *rank, co_apply *given, float scale, size_t at);

/* sum.c: elements [lo, hi) of this step's sum; at most as many as a chunk has. They may lie in scratch memory of thread
 * `ith` of this rank, until that thread's next call. */
const float *sum_of(struct rank *rank, int64_t step, int ith, size_t lo, size_t hi);

/* gate.c: turns and wishes */
co_who turn_of(const struct rank *rank); /* who, for marks by turn */
/* The turn is over: the unit is done, or was dealt anew. */
bool turn_is_over(const struct rank *rank);
bool turn_is_open(const struct rank *rank); /* neither over nor frozen */
/* Around writing what other hosts' bytes may land in: sums, and lists of rows. The carrier freezes the gate
 * and then waits until no rank writes, before anything of a new view can land. False: the gate is frozen,
 * write nothing. */
bool begin_write(struct rank *rank);
void end_write(struct rank *rank);
bool follow_deal(struct rank *rank);               /* the leaves of this turn; false: it is over */
void latch_wish(struct rank *rank, uint64_t more); /* fixes what this host wishes for this turn, once */
bool all_wished(const struct rank *rank);  /* every host's wishes of this turn are here, and ours are sent */
uint64_t wishes(const struct rank *rank);  /* of all hosts, as far as they are here */
uint64_t settled(const struct rank *rank); /* of all hosts, past the gate */

/* advance.c: the end of a unit. `now`: after a VAL unit; NULL after the others */
void advance(struct rank *rank, const unit *done, const decision *decided, const watch *now);
/* In the middle of an evaluation: if a stop was requested, moves pc to "stopped before this unit". True: the
 * evaluation was left, by this rank or another. */
bool leave_evaluation(struct rank *rank);
bool stop_evaluation(struct rank *rank); /* the move itself */
bool evaluation_left(const struct rank *rank);

/* decide.c: a sum of doubles along the fixed binary tree over n places, `stride` doubles apart */
double tree_of(const double *x, size_t stride, size_t n);

/* jobs.c: starts the loader, from where this slot stands */
co_err jobs_start(struct rank *rank);
/* The slice of this leaf, which is the next one of the sequence, in *input until the one after it is asked
 * for. NULL: a sample cannot be read here, and another host gets the leaf. */
const co_load *next_slice(struct rank *rank, int leaf, void **input);
void jobs_follow(struct rank *rank, int64_t step); /* the next job is the first of this step, also after a jump */
/* The samples of a leaf of a step, and how they are drawn; not where they go. */
void load_of_leaf(const co_plan *plan, co_order *order, int64_t step, int leaf, co_load *load);
void jobs_dealt(struct rank *rank); /* this slot's leaves have changed */

/* unreadable.c: several hosts. This host could not read a sample of a leaf, or of an item of an evaluation.
 * True: nobody can, it counts as unreadable. False: the turn is over, and another host gets it; or the run
 * has ended. */
struct unread {
    co_split split;
    uint32_t item; /* or leaf */
    const uint32_t *ids;
    int n, bad; /* of its samples, `bad` could not be read; negative: they were there before */
};
bool nobody_reads(struct rank *rank, const struct unread *what);

/* phase.c: what every phase needs */
void rank_phase(struct rank *rank, co_phase phase, uint32_t item);
/* False: the turn was over first. */
bool wait_for(struct rank *rank, bool (*done)(struct rank *rank, int64_t arg), int64_t arg, co_phase phase);

/* fault.c: accidents on request. Dies here, or soon, if one is armed. CO_FAULT_NONE: a place that only tests
 * aim at. */
void fault_point(struct rank *rank, co_fault phase);
uint64_t fault_word(co_fault phase, int slot, uint64_t seed);
/* What began at `t0_ns` takes fault.host_slow times as long. Returns early if the turn is frozen or over. */
void fault_slow(struct rank *rank, uint64_t t0_ns);

#endif
