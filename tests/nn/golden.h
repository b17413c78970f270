/* golden.h -- replays training steps that PyTorch made (tests/golden/make_*.py), with the program's step
 * only. Each slice has its own inputs and the executor of its shape; the leaves are added along the tree;
 * then come one division, one clip factor, one update and one average.
 *
 *     golden r;
 *     golden_open(&r, golden_case, kernels, 4);
 *     for (int t = 1; t <= steps; t++)
 *         golden_step(&r, t, &loss, &norm);
 *
 * Nothing is freed, because the test's process ends soon (test_may_leak).
 */
#ifndef TESTS_NN_GOLDEN_H
#define TESTS_NN_GOLDEN_H

#include "base/json.h"
#include "nn/nn.h"
#include "optim/optim.h"

enum { GOLDEN_BATCHES = 2, GOLDEN_SLICES = 4 }; /* two alternating batches; the largest number of slices */

/* All samples of a batch; arrays that the task does not use are NULL. */
typedef struct golden_batch {
    float *x, *y;            /* [n, x...], [n, y_width] */
    int32_t *user, *item;    /* ratings: [n] */
    int32_t *label;          /* [n] */
    int32_t *token, *chars;  /* LM, PAIRS: [n, max_len + 1], and how many each has without the last, [n] */
    int32_t *source, *words; /* PAIRS: [n, max_len], and how many each has */
} golden_batch;

typedef struct golden {
    const json_t *c; /* the case */
    const co_kernels *kernels;
    const co_model_def *model;
    const co_optim_def *optim;
    const co_schedule_def *schedule; /* of the case's "schedule"; constant without one */
    void *model_cfg, *optim_cfg, *schedule_cfg;
    co_io io;
    co_loss loss;
    int n, slices, steps;
    double clip, ema_decay; /* 0: none */
    bool no_decay;          /* no weight decay for biases and norms */
    golden_batch batch[GOLDEN_BATCHES];
    struct {
        co_exec *exec;
        char *input;
        co_slice_shape shape;
    } slice[GOLDEN_BATCHES][GOLDEN_SLICES];
    const co_layout *layout;
    float *state, *ema, *leaf[GOLDEN_SLICES], *moment[CO_MAX_MOMENTS]; /* [count], leaves with marks */
    void *work;
    size_t work_bytes;
} golden;

/* The cases of tests/golden/NAME. Skips the test if this CPU lacks the level. */
json_t *golden_cases(const char *name, const char *level, const co_kernels **kernels);
int golden_int(const json_t *c, const char *key, int fallback);
double golden_at(const json_t *c, const char *list, size_t i); /* fails if there is no such number */

/* Memory for the lists of rows of a run. */
enum { GOLDEN_LISTS = 4 };
void golden_lists(const golden *r, const co_exec *exec, co_rows rows[GOLDEN_LISTS]);
void golden_lists_free(const golden *r, co_rows rows[GOLDEN_LISTS]);
/* The marks of a sparse entry's rows in a leaf: 1: present. They follow the state. */
uint32_t *golden_marks(const golden *r, float *leaf, const co_entry *e);
void golden_open(golden *r, const json_t *c, const co_kernels *kernels, int slices);
co_exec *golden_compile(const golden *r, co_slice_shape shape, co_mode mode);
void golden_load(const co_exec *exec, char *input, const char *name, const void *from); /* one whole input */
/* Step t = 1, 2, ...: gives the loss and the gradient's norm, both per row that counts. */
void golden_step(golden *r, int t, double *loss, double *norm);
/* Compares steps 1 to `steps` with the case's losses (relative difference at most `bound`) and grad_norms;
 * gives the largest difference of each. */
void golden_replay(golden *r, int steps, double bound, double *worst_loss, double *worst_norm);

/* Evaluates the first n pictures with the state as it is, and compares with the case's logits: the largest
 * difference, and in *top the largest logit. */
double golden_worst_logit(const golden *r, int n, double *top);

void *golden_room(size_t bytes); /* zeroed, aligned as executors want it */

#endif
