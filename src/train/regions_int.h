/* regions_int.h -- the map of the arena: what lies where in the memory that supervisor, ranks and savers
 * share. Seen by this room only. */
#ifndef CO_TRAIN_REGIONS_INT_H
#define CO_TRAIN_REGIONS_INT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "comm/exchange.h"
#include "comm/mark.h"
#include "comm/recorder.h"
#include "train/control_int.h"
#include "train/gradients_int.h"
#include "train/plan_int.h"

/* One rank's place. Only the rank that holds the slot writes it. */
typedef struct rank_slot {
    _Alignas(64) co_mark progress; /* (turn, 1): all leaves of this turn are done */
    _Alignas(64) co_mark journal;  /* (unit, chunk + 1): the journal holds the old bytes of that chunk */
    /* several hosts: turn << 32 | incarnation (8 bits) << 24 | chunk: from here on this slot's sums are
     * final */
    _Atomic uint64_t final;
    _Atomic uint32_t writes; /* several hosts: it writes a sum or a leaf's lists of rows; see change.c */
    co_record record;
    _Atomic uint64_t allocs, faults;                          /* since warm-up */
    _Atomic uint64_t wait_ns, read_ns, decode_ns, augment_ns; /* for data, in all */
    /* In all. compute: the passes; update: adding up and applying; exchange: waiting for other hosts. */
    _Atomic uint64_t compute_ns, update_ns, exchange_ns, idle_ns, leaves;
    _Atomic uint64_t anon_bytes; /* private memory */
} rank_slot;

typedef struct leaf_stat {
    double stat[CO_STATS];
    double bad; /* samples that could not be read; LOST if it is unknown whether they can */
} leaf_stat;
#define LOST (-1e12)                      /* any sum with it is negative */
enum { STAT_BAD = CO_STATS, LEAF_STATS }; /* the same as an array */
static_assert(sizeof(leaf_stat) == LEAF_STATS * sizeof(double), "a leaf's statistics are doubles");

typedef struct chunk_stat {
    double squares;
    uint64_t finite;
} chunk_stat;

/* A sample of the validation: the likeliest class, the right one, and the unit that found it. */
typedef struct val_choice {
    int32_t chosen, right;
    uint32_t unit;
} val_choice;

/* Pointers into the arena, the same in every process. */
struct regions {
    control *ctl;
    co_deal *deal;
    rank_slot *slots; /* [ranks] */
    float *state, *moment[CO_MAX_MOMENTS], *sum;
    float *aside;          /* [plan->aside_room]: the pool for copies aside */
    float *best;           /* [layout->count]: weights read for the final test; may share memory */
    co_mark *aside_mark;   /* (unit, 1 + place) [chunks], then [ranges] of the tables of rows */
    co_claim *aside_claim; /* [ranges] */
    co_claim *sum_claim, *apply_claim; /* [chunks], then [lists]; [chunks], then [pieces] */
    co_exchange_map wire;              /* several hosts: what is exchanged, and its marks */
    co_claim *piece_claim;             /* [chunks]: wire.pieced, for those who write it */
    co_mark *fed;                      /* [chunks] (unit, 1): a newcomer holds the chunk from this unit on */
    leaf_stat *leaf[2];                /* by step parity: [slices] */
    chunk_stat *norm[2];               /* by step parity: [chunks], then [lists] */
    gradient_part *gradients;          /* of the last step that is counted; NULL: none is */
    co_claim *eval_claim;              /* [max_items] */
    leaf_stat *eval_stat[CO_SPLIT_COUNT]; /* by split: [its items]. A slow rank may still add up VAL in TEST */
    float *leaf_buffer[CO_MAX_SLOTS];     /* n_buffers * dense elements each */
    int n_buffers;
    _Atomic uint64_t *given_up[CO_SPLIT_COUNT]; /* several hosts: bits, samples that nobody could read */
    co_claim *translate_claim;                  /* [groups] */
    /* By split, as eval_stat: [sentences][stride], see translate_rank.c */
    int32_t *translation[CO_SPLIT_COUNT];
    int32_t *choice;        /* [test samples][2]: the likeliest class, and the right one */
    val_choice *val_choice; /* [val_kept(plan)] */
    float *eval_output[CO_MAX_SLOTS];
    char *work[CO_MAX_SLOTS], *input[CO_MAX_SLOTS], *eval_input[CO_MAX_SLOTS], *audit_input[CO_MAX_SLOTS],
        *group[CO_MAX_SLOTS], *at_once[CO_MAX_SLOTS]; /* see group.c, at_once.c */
    float *journal[CO_MAX_SLOTS], *scratch[CO_MAX_SLOTS], *clipped[CO_MAX_SLOTS];
    float *leaf_rows, *sum_rows; /* the lists of rows of every leaf; their sums */
    void *row_scratch[CO_MAX_SLOTS];
};

void regions_reserve(co_plan *plan);                       /* lays out the arena */
void regions_bind(co_plan *plan, struct regions *regions); /* after it is open */
/* Part 0 of the state: weights; 1, 2 ...: moments. */
float *state_part(const struct regions *regions, int part);
float *leaf_buffer_of(const co_plan *plan, const struct regions *regions, int slot, int i);

/* state.c */
co_err open_state(co_plan *plan); /* the arena, with the first state (or the checkpoint's) and pc in it */
/* The state before the first step: drawn from the seed, then overwritten by what `weights` gives. */
co_err first_state(const co_plan *plan, float *state);
co_err values_from_data(const co_plan *plan,
                        float *state); /* parameters whose initial values come from the data */

#endif
