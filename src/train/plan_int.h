/* plan_int.h -- everything that is decided before anything is started. Constant from then on. Seen by this
 * room only. */
#ifndef CO_TRAIN_PLAN_INT_H
#define CO_TRAIN_PLAN_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/arena.h"
#include "comm/tree.h"
#include "train/graphs_int.h"
#include "train/rows_int.h"
#include "train/train.h"
#include "train/translate_int.h"
#include "train/units_int.h"
#include "train/watch_int.h"

/* An epoch's batches are cut into slices in two ways: whole batches, and the last one if it is shorter. */
enum { CUT_FULL, CUT_SHORT, CUTS };
enum { GROUP_PARTS = 17, GROUP_SLICES = 32 }; /* the most of each */

/* How one parameter is updated. */
typedef struct param_rule {
    float rate; /* factor on the learning rate */
    bool no_decay, frozen;
} param_rule;

/* How the optimiser is driven: recipe.c fills it in. */
typedef struct recipe {
    double lr, clip_norm, clip_value;
    int64_t warmup;   /* steps */
    param_rule *rule; /* [layout->n] */
} recipe;

/* What evaluations are judged by: watch.c fills it in. */
typedef struct monitors {
    monitor best, early, plateau;
    watch start; /* as the checkpoint left it */
} monitors;

/* resume.c. The file that a run starts from, of `weights` or `model.pretrained`. */
typedef struct first_weights {
    const char *path;                    /* NULL: none, the state is drawn from the seed */
    co_new_head new_head;                /* of model.pretrained */
    const co_pretrained_row *public_row; /* of model.pretrained=true; NULL: a file was named */
    co_pretrained *got;                  /* its file, once it is there; owned */
    char *skip; /* patterns of tensors that the file does not give; owned; NULL: none */
} first_weights;

struct co_plan {
    co_train_spec spec;
    co_train_cfg cfg; /* a copy; strings stay the spec's */
    const co_kernels *kernels;
    co_dataset *data;
    co_order *order;       /* of the training samples; every rank inherits it through fork */
    co_order *audit_order; /* the same for agree.c, if a rank's loader has threads; NULL: one host */
    co_ckpt_meta start;    /* of the checkpoint, or zero */
    first_weights first;   /* where the state before the first step is read from */

    exec_set train, eval;
    translate_plan translations;
    co_loss loss;
    const co_layout *layout;
    size_t chunk, chunks; /* elements per chunk, chunks of the dense part of the state */
    rows_plan rows;       /* the row-sparse part */
    int moments;
    const char *moment_name[CO_MAX_MOMENTS];
    size_t aside_room; /* elements of the pool for copies aside */
    int ema;           /* which moment is the average of the weights; -1: none */

    unit_order units;
    uint64_t max_time_ns;
    int ranks, slices;
    int threads;             /* of each rank: the team that computes its slices */
    uint32_t batch, short_n; /* samples of a whole batch, of the last one of an epoch (0: all are whole) */
    co_cut cut[CUTS];
    co_slice_shape room; /* text: no slice of a step has more samples or tokens */
    int hosts;           /* members of the largest view; 1: this host alone */
    int n_buffers;       /* leaf buffers of a slot, for the worst deal */
    struct {             /* several hosts: slices of a slot that go backward together; see group.c */
        int first, most; /* at the beginning; 0: none */
        int parts;       /* of the passes; */
        int call[GROUP_PARTS + 1];     /* part i is calls [call[i], call[i + 1]) */
        size_t final[GROUP_PARTS + 1]; /* elements from here on are final when parts [0, i) are done */
    } group;
    int at_once; /* threads of a rank that compute slices at once, see at_once.c; 0: they share the calls of one */
    uint32_t eval_count[CO_SPLIT_COUNT], eval_items[CO_SPLIT_COUNT], max_items;
    recipe recipe;
    monitors monitors;

    co_arena arena;
    struct regions *regions; /* NULL until the arena is open */
    int32_t *choice;         /* of co_evaluate; a run's own are in the arena */
    co_plan_facts facts;
    char weights_note[160]; /* what loading `weights` changes; empty: nothing */
};

enum { AT_ONCE_MOST = 32, AT_ONCE_EACH = 2 }; /* threads; slices of each */
/* at_once_plan.c: fills in plan->at_once; the memory of a slot for it */
co_err at_once_plan(co_plan *plan);
size_t at_once_bytes(const co_plan *plan);

void group_plan(co_plan *plan);            /* group_plan.c: its parts, and how many slices */
bool calls_are_alike(const exec_set *set); /* do calls with the same number write the same elements, in all shapes? */
size_t group_bytes(const co_plan *plan); /* the memory that a slot needs for it */
size_t slice_work_bytes(const co_plan *plan); /* group_plan.c: the workspace of one slice, where several have one */
/* The samples of step `step`, in order: samples_of_step of them. One thread at a time uses an order. */
const uint32_t *ids_of_step(const co_plan *plan, co_order *order, int64_t step);
int cut_of_step(const co_plan *plan, int64_t step); /* CUT_FULL or CUT_SHORT */
uint32_t samples_of_step(const co_plan *plan, int64_t step);
int64_t samples_until(const co_plan *plan, int64_t step); /* trained on when `step` steps are done */
/* The elements of chunk c of the dense parameters: *lo, and how many. */
size_t chunk_span(const co_plan *plan, size_t c, size_t *lo);
/* The samples ids[*lo] to ids[*hi - 1] of a step's batch that belong to a leaf. Text is cut by tokens:
 * token_cut.c. */
void slice_range(const co_plan *plan, const uint32_t *ids, int64_t step, int leaf, uint32_t *lo, uint32_t *hi);
co_err room_for_training(co_plan *plan); /* room.c: fills in plan->room; CO_EINPUT: slices would be too large */
co_slice_shape room_for_evaluation(const co_plan *plan); /* the most of any item of VAL and TEST */
/* Do training samples that cannot be read end the run? `bad` is a sum of leaf_stat.bad. */
bool must_stop(const co_plan *plan, double bad);
/* The same for an evaluation, which leaves such samples out; `count` is the number of those that could be
 * read. */
bool must_stop_eval(const co_plan *plan, double bad, double count);

size_t work_bytes(const co_plan *plan); /* regions.c: of a rank's workspace */
/* regions.c: slices that a loader keeps ready, and the room of one */
int loader_depth(const co_plan *plan);
size_t loader_slot_bytes(const co_plan *plan);
/* Two classes of each sample of the final test, the predicted and the right one; 0: they are not kept. */
size_t choices_bytes(const co_plan *plan);
/* Samples of the validation whose classes are kept, the first ones; 0: none. */
uint32_t val_kept(const co_plan *plan);

/* lengths.c */
co_err choose_eval(co_plan *plan);  /* samples of each split that are evaluated */
co_err choose_steps(co_plan *plan); /* needs the former */
/* slices.c */
co_err check_given_slices(co_plan *plan);
co_err choose_slices(co_plan *plan);       /* needs the data */
co_err choose_buffers(co_plan *plan);      /* leaf buffers for the worst deal */
void choose_aside(co_plan *plan);          /* aside.c: plan->aside_room */
bool test_wants_best(const co_plan *plan); /* watch.c: the final test is of the best weights, not of the last */
/* resume.c */
co_err check_weights(co_plan *plan);
co_err find_weights(co_plan *plan);
co_err fetch_weights(co_plan *plan);     /* when no mistake is left: downloads them if need be, and checks */
co_err check_weights_fit(co_plan *plan); /* those of the checkpoint to start from */
co_err check_same_model(co_plan *plan);
co_err check_same_batch(co_plan *plan);
co_err check_same_epochs(co_plan *plan);
co_err check_same_seed(co_plan *plan);
co_err check_same_optim(co_plan *plan);
co_err check_same_kernels(co_plan *plan);
co_err check_same_moments(co_plan *plan);
co_err check_steps_left(co_plan *plan);
co_err check_accumulate(co_plan *plan);
co_err make_recipe(co_plan *plan); /* recipe.c; refuses what fits nothing */
void plan_lines(co_plan *plan);    /* screen.c: the first screen */
/* values.c: checks of the option tables; `key` begins the message. */
co_err check_devices(const char *key, const char *text);
co_err check_threads(const char *key, const char *text);
co_err check_kernels(const char *key, const char *text);
co_err check_slices(const char *key, const char *text);
co_err check_limit(const char *key, const char *text); /* max_epochs, max_steps: not 0 */
co_err check_train_batches(const char *key, const char *text);
co_err check_eval_batches(const char *key, const char *text);
co_err check_interval(const char *key, const char *text);
co_err check_time(const char *key, const char *text);

co_err parse_duration(const char *text, uint64_t *ns); /* duration.c: "90s", "2h", "00:12:00:00" */

#endif
