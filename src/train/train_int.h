/* train_int.h -- what the supervisor and the ranks share. Seen by this room only.
 *
 * A run is a sequence of units, numbered from 1: a training step, an evaluation, a test. Which unit does what is a pure
 * function of the plan (schedule.c), so `pc`, the unit in progress, is all the control state there is.
 */
#ifndef CO_TRAIN_TRAIN_INT_H
#define CO_TRAIN_TRAIN_INT_H

#include <assert.h>

#include "comm/event.h"
#include "comm/mark.h"
#include "comm/recorder.h"
#include "comm/tree.h"
#include "graph/graph.h"
#include "proc/crew.h"
#include "train/train.h"

/* --- schedule ------------------------------------------------------------------------------------------------ */
typedef enum { UNIT_TRAIN, UNIT_VAL, UNIT_TEST } unit_kind;

typedef struct schedule {
    int64_t steps_per_epoch, steps; /* of the whole run */
    int64_t block;                  /* steps between two evaluations; 0: none */
    bool final_val, final_test;
    int64_t first_step; /* where this process began */
    uint32_t first_unit, last_unit;
} schedule;

typedef struct unit {
    unit_kind kind;
    int64_t step; /* TRAIN: the step it makes (1 for the first). VAL, TEST: the state it looks at */
} unit;

unit unit_of(const schedule *s, uint32_t u);
uint32_t unit_of_state(const schedule *s, int64_t step); /* the unit to run next when `step` steps are done */
void schedule_close(schedule *s);                        /* fills first_unit and last_unit */
/* The same run ended with the state before unit `u`: units before `u` are what they were, then come what is due of VAL
 * and TEST. */
schedule schedule_cut(const schedule *s, uint32_t u);
/* VAL units before the one that looks at state `step`: 0 for the first. Needs a block. */
int64_t evals_before(const schedule *s, int64_t step);

/* --- what is watched ------------------------------------------------------------------------------------------ */
typedef enum { MONITOR_LOSS, MONITOR_METRIC, MONITOR_TOP5 } monitor_kind;
typedef struct monitor {
    monitor_kind of;
    bool up; /* more is better */
} monitor;

/* All that evaluations leave behind, in words, so that ranks can share it: a function of the totals so far. */
typedef enum { GO_ON, STOP_PATIENCE, STOP_REACHED, STOP_DIVERGED, STOP_NOT_FINITE } stop_why;
typedef struct watch {
    double best;       /* of callbacks.model_checkpoint's monitor */
    int64_t best_step; /* 0: none yet */
    double value;      /* the same monitor's last one */
    int64_t value_step;
    co_plateau plateau;
    double early_best;
    int64_t early_bad, early_seen;
    int64_t why; /* stop_why */
} watch;
enum { WATCH_WORDS = sizeof(watch) / 8 };

/* --- the plan ------------------------------------------------------------------------------------------------ */
typedef struct shape_exec {
    co_slice_shape shape;
    co_exec *exec;
    size_t x, y, ids, lens, y2, lam; /* offsets in the input buffer; SIZE_MAX: absent */
} shape_exec;

typedef struct exec_set {
    shape_exec *e;
    int n;
    size_t input_bytes, work_bytes, output_bytes;
} exec_set;

enum { CUT_FULL, CUT_SHORT, CUTS };

struct co_plan {
    co_train_spec spec;
    co_train_cfg cfg; /* a copy; strings stay the spec's */
    const co_kernels *kernels;
    co_dataset *data;
    co_order *order; /* of training, for every rank through fork */
    exec_set train, eval;
    co_loss loss;
    const co_layout *layout;
    schedule sched;
    int ranks, slices;
    uint32_t batch, short_n; /* samples of a whole batch, of the last one of an epoch (0: all are whole) */
    co_tree tree[CUTS];
    int moments;
    const char *moment_name[CO_MAX_MOMENTS];
    int ema; /* which moment is the average of the weights; -1: none */
    double lr, clip_norm, clip_value;
    int64_t warmup;
    struct treat *treat; /* [layout->n] */
    monitor best_of, early_of, plateau_of;
    watch watch; /* as the checkpoint left it */
    uint64_t max_time_ns;
    size_t chunk, chunks; /* elements per chunk, chunks of the state */
    bool sparse;          /* there are marks: one more chunk to sum */
    uint32_t eval_count[CO_SPLIT_COUNT], eval_items[CO_SPLIT_COUNT], max_items;
    co_arena arena;
    struct regions *at;
    int32_t *choice;    /* of co_evaluate; a run's own are in the arena */
    co_ckpt_meta start; /* of the checkpoint, or zero */
    co_plan_facts facts;
};

/* How an entry is updated. */
typedef struct treat {
    float rate; /* factor on the learning rate */
    bool no_decay, frozen;
} treat;
co_err make_recipe(co_plan *p); /* recipe.c: treat, the average, clipping, warm-up; refuses what fits nothing */

/* watch.c */
co_err make_watch(co_plan *p); /* monitors, and what the checkpoint remembers */
void watch_see(const co_plan *p, const double total[], int64_t step, watch *w);
const char *watch_why(const co_plan *p, const watch *w, char text[200]);
void watch_put(_Atomic uint64_t *words, const watch *w);
watch watch_get(const _Atomic uint64_t *words);
json_t *watch_json(const co_plan *p, const watch *before, const watch *after, int64_t step); /* for the manifest */
const char *monitor_name(const co_plan *p, monitor m);                                       /* "val/acc" */
double monitor_value(monitor m, const double total[]);

co_err parse_duration(const char *text, uint64_t *ns); /* "90s", "2h", "00:12:00:00" */
/* The samples of step `step`, in order: samples_of_step of them. One thread at a time. */
const uint32_t *ids_of_step(const co_plan *p, int64_t step);

int cut_of_step(const co_plan *p, int64_t step); /* CUT_FULL or CUT_SHORT */
uint32_t samples_of_step(const co_plan *p, int64_t step);
void plan_lines(co_plan *p); /* the first screen */

/* graphs.c */
co_err make_train_graphs(co_plan *p);
co_err make_eval_graphs(co_plan *p);
const shape_exec *exec_for(const exec_set *s, co_slice_shape shape); /* it is there */
co_err exec_set_add(exec_set *s, const co_plan *p, co_slice_shape shape, co_mode mode);
void exec_set_fini(exec_set *s);

/* --- shared memory ------------------------------------------------------------------------------------------- */
enum { RING = 4096 }; /* results that the supervisor may be behind by */

/* Flags of pc: unit << 8 | flags. PC_CUT stays once it is set: the run ends with the state that its first unit found. */
enum { PC_STOP = 1, PC_END = 2, PC_FAIL = 4, PC_SNAP = 8, PC_CUT = 16 };

typedef struct result {
    _Atomic uint64_t unit;                   /* the others are of this unit when it says so */
    _Atomic uint64_t loss, metric, norm, lr; /* bits of doubles */
    _Atomic uint64_t count, applied, skipped, t_ns, sum_apply_ns;
    _Atomic uint64_t top5;  /* bits of a double */
    _Atomic uint64_t bad;   /* samples that could not be read */
    _Atomic uint64_t slice; /* 1 + the first slice whose loss is not finite; 0: none */
} result;

typedef struct control {
    co_event event;
    _Alignas(64) _Atomic uint64_t pc;
    _Alignas(64) _Atomic uint64_t snap;     /* unit << 1 | pending: the state before `unit` is being saved */
    _Atomic int64_t snap_applied;           /* applied steps of that state */
    _Atomic uint64_t snap_at_ns;            /* when the last one was asked for */
    _Atomic uint64_t save_ns;               /* how long the last one took */
    _Alignas(64) _Atomic uint64_t consumed; /* last unit whose result was read */
    _Atomic uint32_t stop_request;
    _Atomic uint32_t time_is_up;
    _Atomic uint64_t cut;                        /* first unit with PC_CUT; 0: none yet */
    _Atomic uint64_t watch[2][WATCH_WORDS];      /* after k evaluations, at k & 1 */
    _Atomic uint64_t snap_watch[2][WATCH_WORDS]; /* of the snapshot's state: before and after its evaluation */
    _Atomic int64_t applied[2];                  /* applied steps after step k, at k & 1 */
    _Alignas(64) _Atomic uint64_t fault; /* armed accident: seed << 16 | phase << 8 | slot + 1; 0: none */
    _Atomic uint64_t fault_at_ns;        /* when the last one struck */
    result ring[RING];
} control;

/* One rank's place. Only its holder writes it (but for counters that say so). */
typedef struct rank_slot {
    _Alignas(64) co_mark progress; /* operations of the fold done */
    _Alignas(64) co_mark journal;  /* (unit, chunk + 1): the journal holds the old bytes of that chunk */
    co_record record;
    _Atomic uint64_t allocs, faults;                          /* since warm-up */
    _Atomic uint64_t wait_ns, read_ns, decode_ns, augment_ns; /* for data, in all */
    _Atomic uint64_t anon_bytes;                              /* private memory */
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

/* Pointers into the arena, the same in every process. */
typedef struct regions {
    control *ctl;
    rank_slot *slots;
    float *state, *moment[CO_MAX_MOMENTS], *sum;
    float *aside[CO_MAX_MOMENTS + 1];
    co_mark *aside_mark;                  /* [chunks] */
    co_claim *sum_claim, *apply_claim;    /* [chunks + 1], [chunks] */
    leaf_stat *leaf[2];                   /* by step parity: [slices] */
    chunk_stat *norm[2];                  /* by step parity: [chunks] */
    co_claim *eval_claim;                 /* [max_items] */
    leaf_stat *eval_stat[CO_SPLIT_COUNT]; /* by split: [its items]. A slow rank may still add up VAL in TEST */
    float *leaf_buffer[CO_MAX_SLOTS];     /* n_buffers * leaf_count each */
    int n_buffers;
    int32_t *choice; /* [test samples][2]: the likeliest class, and the right one */
    float *eval_output[CO_MAX_SLOTS];
    char *work[CO_MAX_SLOTS], *input[CO_MAX_SLOTS], *eval_input[CO_MAX_SLOTS];
    float *journal[CO_MAX_SLOTS], *scratch[CO_MAX_SLOTS];
} regions;

void regions_reserve(co_plan *p);          /* lays out the arena */
void regions_bind(co_plan *p, regions *r); /* after it is open */
co_err open_state(co_plan *p); /* the arena, with the first state (or the checkpoint's) and pc in it */

/* --- a rank -------------------------------------------------------------------------------------------------- */
typedef struct rank rank;
struct rank {
    co_plan *p;
    regions *r;
    rank_slot *me;
    co_who who; /* unit in progress, slot, incarnation */
    int spin;
    co_loader *loader;
    uint64_t job; /* next index of the loader's sequence */
    struct jobs *jobs;
    char *work; /* this rank's workspace: arena, or the provider's own space */
    size_t work_bytes;
    uint64_t pc;                   /* as seen when the unit began */
    uint64_t compute_ns, phase_ns; /* last leaf's time, last phase's: where an accident is aimed */
    uint64_t sum_apply_ns;
    uint64_t waited_ns; /* for data, by earlier incarnations */
    uint64_t base_allocs, base_faults;
    uint32_t units_done;
    bool doomed;            /* by an accident that strikes soon */
    int bell;               /* eventfd to the supervisor; -1: none */
    void (*point)(rank *k); /* for tests: called at every place where dying makes a difference; NULL */
};

/* What rank_main needs to know; the supervisor's, inherited through fork. */
struct team {
    co_plan *p;
    regions *r;
    int bell;
};

/* What the root decides about a step: the same in every rank, from the same bytes. */
typedef struct decision {
    double loss, metric, top5, count, norm, lr, momentum, bad;
    float scale, inv_samples;
    bool finite, apply;
    int slice; /* the first with a loss that is not finite; -1: none */
    int64_t t; /* applied steps with this one */
} decision;

int rank_main(void *run, int slot, uint32_t inc); /* run: struct team */
co_err rank_open(rank *k, co_plan *p, regions *r, int slot, uint32_t inc, int bell);
void rank_close(rank *k);
void rank_loop(rank *k); /* units until the end; what TSan runs in threads */
void rank_phase(rank *k, co_phase phase, uint32_t item);

co_err jobs_start(rank *k); /* the loader, from where this slot stands */
void slice_dst(const shape_exec *e, char *buffer, co_slice_dst *dst);
void wait_for(rank *k, bool (*done)(rank *k, int64_t arg), int64_t arg, co_phase phase);
void leaves(rank *k, int64_t step);
void sum_chunks(rank *k, int64_t step);
void apply_chunks(rank *k, int64_t step, const decision *d);
/* Do samples that cannot be read end the run? `bad` is a sum of leaf_stat.bad. */
static inline bool must_stop(const co_plan *p, double bad)
{
    return bad < 0 || (bad > 0 && p->data->stop_on_bad);
}
void decide(const rank *k, int64_t step, decision *d);
void evaluate_items(rank *k, co_split split);
enum { EVAL_SLICE_MAX = 4096 }; /* samples evaluated together; the limit of data.eval_slice */
/* The samples of an item into `ids` (room for eval_slice); their slice shape. */
co_slice_shape item_samples(const co_plan *p, co_split split, uint32_t item, uint32_t *ids);
/* Returns how many of its samples could not be read. */
int run_item(const co_plan *p, const exec_set *set, co_split split, uint32_t item, const co_bases *bases,
             _Atomic uint32_t *beat);
void eval_total(const co_plan *p, const leaf_stat *items, co_split split, double total[LEAF_STATS]);
/* Sums of doubles along the fixed binary tree over n places, `stride` doubles apart. */
double tree_of(const double *x, size_t stride, size_t n);

/* Memory to run one executor set in this process, with the checkpoint's weights (or the first ones) as state. */
typedef struct look {
    const co_space_ops *space;
    float *state;
    co_bases bases;
    void *buffers, *far; /* input, output and, on the host, work; else work */
} look;
co_err no_samples(const co_plan *p, co_split split); /* the sentences */
co_err lost_file(void);
co_err look_open(look *l, co_plan *p, const exec_set *set);
/* The state before the first step: drawn from the seed, then what `weights` gives. */
co_err first_state(const co_plan *p, float *state);
void look_close(look *l);
float *leaf_buffer_of(const co_plan *p, const regions *r, int slot, int i);
const float *sum_of_step(const co_plan *p, const regions *r, int64_t step);

unit unit_now(const co_plan *p, const control *ctl, uint32_t u); /* as the run goes: cut short, or not */
schedule schedule_now(const co_plan *p, const control *ctl);

/* --- accidents on request ------------------------------------------------------------------------------------ */
/* Dies here, or soon, if that was asked for. CO_FAULT_NONE: a place that only tests aim at. */
void fault_point(rank *k, co_fault phase);
uint64_t fault_word(co_fault phase, int slot, uint64_t seed);

/* --- saving -------------------------------------------------------------------------------------------------- */
/* The state as it was before unit `snap`, while later steps are applied. snap = 0: as it is now. */
co_err snapshot_read(void *snapshot, int part, size_t offset, size_t count, float *dst);
typedef struct snapshot {
    const co_plan *p;
    const regions *r;
    uint32_t unit;
} snapshot;
/* w: before and after the evaluation of that state. */
co_err save_state(const co_plan *p, const regions *r, uint32_t snap_unit, int64_t step, int64_t applied,
                  const watch w[2]);
int64_t samples_until(const co_plan *p, int64_t step); /* trained on when `step` steps are done */
enum { SAVE_NAME = 160 };
/* name.c: epoch_009, step_00000123, or as callbacks.model_checkpoint.filename says. `w`: after the state's evaluation. */
void save_name(const co_plan *p, int64_t step, const watch *w, char name[SAVE_NAME]);
co_err check_save_name(const co_plan *p);

/* --- the supervisor ------------------------------------------------------------------------------------------ */
enum { KILLS_KEPT = 8192, STEPS_KEPT = 65536, SAVE_TRIES = 3 };

typedef struct super {
    struct team team;
    watch watch;                      /* after the last evaluation that was read */
    uint64_t *known_bad;              /* bits: training samples that were named */
    int64_t eval_bad[CO_SPLIT_COUNT]; /* unreadable ones of an evaluation that were told of */
    co_plan *p;
    regions *r;
    const co_train_hooks *hooks;
    co_train_summary *out;
    co_crew *crew;
    int signals, bell;
    co_err lost; /* the run folder is no longer ours: write nothing */
    uint64_t began_ns;
    /* the saver */
    pid_t saver;
    int saver_fd, saver_pipe, saver_tries;
    uint32_t saver_unit;
    uint64_t saver_began_ns;
    bool saver_told;
    int64_t saver_step, saver_applied, saved_step;
    watch saver_watch[2];
    /* results */
    uint64_t last_t_ns, data_wait_ns;
    bool have_t;
    int64_t steps_timed, samples_timed;
    double timed_s;
    float *step_ms, *sum_ms; /* [STEPS_KEPT] */
    /* accidents */
    int64_t kills_left;
    uint64_t next_kill_ns, kill_rng;
    pid_t struck[CO_MAX_SLOTS]; /* whom we killed or stopped last */
    uint64_t open_kill_ns[CO_MAX_SLOTS];
    int n_open_kills;
    float *recovery_ms; /* [KILLS_KEPT] raw: median step still in it */
    int n_recoveries;
    uint64_t death_key[CO_MAX_SLOTS]; /* where each slot died last */
    int death_count[CO_MAX_SLOTS];
} super;

void consume_results(super *s); /* results.c */
void results_close(super *s);   /* medians and rates into the summary */
void accidents(super *s);       /* accidents.c: kills that are due */
int accident_timeout_ms(const super *s);
void accident_recovered(super *s, uint64_t t_ns);
void describe_failure(super *s);                     /* cause.c: why a step ended the run, into the blame */
void tell_bad(super *s, int64_t step, uint64_t bad); /* cause.c: names those of a step that cannot be read */
void tell_skipped(super *s, int64_t step, int slice, bool empty); /* cause.c; empty: nothing in it counted */
co_verdict rank_died(void *super, const co_death *d);             /* deaths.c */
void snapshots(super *s);                                         /* saver.c */
void saver_finish(super *s);                                      /* waits for the one that is under way */
int64_t steps_done(const super *s);                               /* of the state, when the ranks are gone */
co_err save_last(super *s);                                       /* that state, unless it is saved already */

static inline uint64_t bits_of(double x)
{
    uint64_t u;
    __builtin_memcpy(&u, &x, 8);
    return u;
}
static inline double of_bits(uint64_t u)
{
    double x;
    __builtin_memcpy(&x, &u, 8);
    return x;
}

#endif
