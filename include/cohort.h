/* cohort.h -- train models of your own with cohort: one header, one archive (libcohort.a).
 *
 * Two ways in. A program that IS `cohort`, with your models and data sets beside the built-in ones:
 *
 *     static const cohort_model *const models[] = {&mine, NULL};
 *     static const cohort_dataset *const datasets[] = {&spirals, NULL};
 *
 *     int main(int argc, char **argv)
 *     {
 *         cohort_parts parts = {0};
 *         parts.models = models;
 *         parts.datasets = datasets;
 *         return cohort_main(argc, argv, &parts);
 *     }
 *
 *     $ ./own train model=mine data=spirals model.width=64 optim.lr=0.01 trainer.devices=2
 *
 * Or a program that trains now and then: cohort_train, cohort_evaluate, cohort_predict.
 *
 * The promise holds for your parts too: the same weights, bit for bit, for any number of ranks, whoever is killed on the
 * way, if `build` and `fill` are functions of their arguments alone (no clock, no rand(), no counters of their own) and
 * what goes into a sample does not come out of libm, which differs between CPUs: cohort_sin and friends do not.
 *
 * Rules. Functions that can fail return cohort_err; cohort_errmsg() then says what, where and what to do. Strings and
 * tables that you give are borrowed: static const is best. The library does not print, but for cohort_main, and never
 * exits. Ranks are forked, so call it before your program starts threads. One call at a time per process.
 * Between versions structs may grow at their ends: zero them, set fields by name, compile again. Names do not change
 * within a major version. All are cohort_ or COHORT_; the archive has no other global symbols.
 */
#ifndef COHORT_H
#define COHORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COHORT_VERSION        "0.1.0"
#define COHORT_VERSION_NUMBER 1000 /* major * 1000000 + minor * 1000 + patch */

#if defined(__GNUC__) || defined(__clang__)
#define COHORT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define COHORT_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

const char *cohort_version(void); /* of the archive: COHORT_VERSION as it was when that was built */

/* --- errors ------------------------------------------------------------------------------------------- */
typedef enum cohort_err {
    COHORT_OK = 0,
    COHORT_EINPUT,   /* words, files or parts are wrong; nothing was started */
    COHORT_EIO,      /* the outside world refused: disk, file */
    COHORT_EFORMAT,  /* bytes are not what they claim to be */
    COHORT_ENOMEM,   /* not enough memory */
    COHORT_EPEER,    /* a rank or host is gone */
    COHORT_ETIMEOUT, /* a deadline passed */
    COHORT_ESTOP,    /* asked to stop */
    COHORT_EFAIL     /* the run itself failed: a loss that is not finite, repeated deaths */
} cohort_err;

const char *cohort_errmsg(void); /* this thread's last message; "" if there is none */
/* For your own functions: keeps the message, returns the code. */
cohort_err cohort_fail(cohort_err code, const char *fmt, ...) COHORT_PRINTF(2, 3);

/* --- shapes ------------------------------------------------------------------------------------------- */
enum { COHORT_MAX_DIMS = 6 };

typedef struct cohort_shape {
    int nd; /* 0: a scalar */
    int64_t d[COHORT_MAX_DIMS];
} cohort_shape;

/* COHORT_SHAPE(3, 32, 32); of C++ see the end. */
#ifndef __cplusplus
#define COHORT_SHAPE(...)                                                                                    \
    ((cohort_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#endif

/* --- options: one row per key; rows give the command line, --help, config.yaml and completion --------- */
typedef enum cohort_type {
    COHORT_INT,   /* int64_t */
    COHORT_FLOAT, /* double */
    COHORT_BOOL,  /* bool */
    COHORT_STR,   /* char *; NULL for null */
    COHORT_ENUM   /* int, the index into choices */
} cohort_type;

typedef struct cohort_option {
    const char *key; /* "width": the key model.width, or data.width */
    cohort_type type;
    size_t offset;        /* of the field in your struct */
    const char *fallback; /* the default, as text: "32" */
    const char *help;     /* one line */
    double min, max;      /* of a number; both 0: any */
    const char *choices;  /* ENUM: "relu|gelu" */
} cohort_option;          /* a table ends with an empty row */

/* --- what a sample is --------------------------------------------------------------------------------- */
typedef enum cohort_task {
    COHORT_CLASSIFY, /* x: float [x...]   y: int32_t, the class   loss: cross entropy   metric: acc */
    COHORT_REGRESS,  /* x: float [x...]   y: float [y_width]      loss: squared error   metric: mae */
    COHORT_TOKENS /* x: int32_t [len]  y: int32_t [len], the tokens to be told; loss and metric as CLASSIFY, per token */
} cohort_task;

enum { COHORT_IGNORE = -100 }; /* a y that does not count */

typedef enum cohort_split { COHORT_TRAIN, COHORT_VAL, COHORT_TEST, COHORT_SPLITS } cohort_split;

/* --- graphs: how a model is written ------------------------------------------------------------------- */
typedef struct co_graph cohort_graph;
typedef struct co_node cohort_node;

/* What `build` is given: a slice of n samples to predict for. */
typedef struct cohort_build {
    cohort_graph *g;
    cohort_node *x;    /* CLASSIFY, REGRESS: [n, x...]; TOKENS: [n, len] of token numbers */
    cohort_node *ids;  /* [n]: for cohort_dropout */
    cohort_node *lens; /* TOKENS: [n], each sample's length; else NULL */
    cohort_task task;
    cohort_shape sample; /* of one sample */
    int64_t n, len;
    int64_t outputs; /* to predict: classes, or y_width */
} cohort_build;

typedef struct cohort_model {
    const char *name, *help;      /* model=NAME */
    const cohort_option *options; /* NULL: none */
    size_t cfg_size;              /* of the struct that options fill */
    bool batch_stats;             /* uses cohort_nn_batch_norm: batches are cut into fewer, larger slices */
    /* The prediction: [n, outputs]; TOKENS: [n, len, outputs]. Called for several n; names and sizes of parameters must
     * not depend on n or len. Refuses data that does not suit it by cohort_graph_fail. */
    cohort_node *(*build)(const cohort_build *b, const void *cfg);
} cohort_model;

/* Building is sticky: an operator given NULL, or shapes that do not fit, returns NULL; the first mistake is kept and ends
 * in a message with names and shapes. So no result needs a check. Write one statement per operator where two arguments
 * would each make something: C does not fix which is made first, and the order is part of the numerics. */
cohort_node *cohort_graph_fail(cohort_graph *g, const char *fmt, ...) COHORT_PRINTF(2, 3); /* gives NULL */
bool cohort_graph_training(const cohort_graph *g);
cohort_shape cohort_node_shape(const cohort_node *n); /* of NULL: nd = -1 */

/* Layers with PyTorch's parameter names, shapes and initial values; `name` is the module's: "fc1", "layer1.0.bn1". */
cohort_node *cohort_nn_linear(cohort_graph *g, cohort_node *x, int64_t out, bool bias, const char *name);
cohort_node *cohort_nn_conv(cohort_graph *g, cohort_node *x, int64_t out, int k, int stride, int pad,
                            bool bias, const char *name); /* x [n,c,h,w] */
cohort_node *cohort_nn_batch_norm(cohort_graph *g, cohort_node *x, const char *name);
cohort_node *cohort_nn_layer_norm(cohort_graph *g, cohort_node *x, const char *name);
cohort_node *cohort_nn_embedding(cohort_graph *g, cohort_node *tokens, int64_t rows, int64_t width,
                                 bool sparse, const char *name);

/* A parameter of your own. The same name again is the same parameter (a tied weight). */
typedef enum cohort_init_kind {
    COHORT_INIT_ZERO,
    COHORT_INIT_ONE,
    COHORT_INIT_UNIFORM, /* [-a, a) */
    COHORT_INIT_NORMAL   /* standard deviation a */
} cohort_init_kind;
cohort_node *cohort_param(cohort_graph *g, const char *name, cohort_shape shape, cohort_init_kind init,
                          float a);

cohort_node *cohort_relu(cohort_graph *g, cohort_node *x);
cohort_node *cohort_gelu(cohort_graph *g, cohort_node *x);
cohort_node *cohort_softmax(cohort_graph *g, cohort_node *x); /* over the last dimension */
/* In training each value is 0 with probability p, else divided by 1 - p; ids is cohort_build's. */
cohort_node *cohort_dropout(cohort_graph *g, cohort_node *x, cohort_node *ids, float p, const char *name);
cohort_node *cohort_add(cohort_graph *g, cohort_node *a, cohort_node *b); /* b's dimensions: the last ones of a */
cohort_node *cohort_mul(cohort_graph *g, cohort_node *a, cohort_node *b); /* likewise */
cohort_node *cohort_scale(cohort_graph *g, cohort_node *x, float value);
cohort_node *cohort_fill(cohort_graph *g, cohort_shape shape, float value); /* a constant */
cohort_node *cohort_matmul(cohort_graph *g, cohort_node *a, cohort_node *b, bool transpose_a, bool transpose_b);
cohort_node *cohort_max_pool(cohort_graph *g, cohort_node *x, int k, int stride, int pad);
cohort_node *cohort_avg_pool(cohort_graph *g, cohort_node *x, int kh, int kw, int stride, int pad);
cohort_node *cohort_reshape(cohort_graph *g, cohort_node *x, cohort_shape shape); /* one may be -1 */
cohort_node *cohort_transpose(cohort_graph *g, cohort_node *x, const int *perm);
cohort_node *cohort_concat(cohort_graph *g, cohort_node *const *x, int n, int axis);
cohort_node *cohort_slice(cohort_graph *g, cohort_node *x, int axis, int64_t start, int64_t len);
/* q [n,t,width], k and v [n,u,width]; lens [n] or NULL: positions past it are not seen */
cohort_node *cohort_attention(cohort_graph *g, cohort_node *q, cohort_node *k, cohort_node *v,
                              cohort_node *lens, int heads, bool causal);

/* --- data sets ---------------------------------------------------------------------------------------- */
/* Filled in by `open`; all zero when it is called. */
typedef struct cohort_samples {
    cohort_task task;
    cohort_shape x;               /* one sample; TOKENS: leave it */
    int64_t classes;              /* CLASSIFY; TOKENS: the vocabulary */
    int64_t y_width;              /* REGRESS */
    int64_t max_len;              /* TOKENS: no sample is longer */
    int64_t count[COHORT_SPLITS]; /* samples; ids are 0..count-1 within a split */
    void *self;                   /* yours */
    char fingerprint[65]; /* 64 hex digits that name this content; "": made from samples here and there */
} cohort_samples;

/* What a sample may be varied by: draw with (seed, epoch, id), and any rank draws the same. */
typedef struct cohort_draw {
    uint64_t seed;
    uint32_t epoch;
    bool augment; /* false: the plain sample, as in evaluation */
} cohort_draw;

typedef struct cohort_dataset {
    const char *name, *help;      /* data=NAME */
    const cohort_option *options; /* NULL: none */
    size_t cfg_size;
    cohort_err (*open)(cohort_samples *out, const void *cfg);
    /* Writes one sample. Called by several threads and processes at once. Not 0: it cannot be read (cohort_fail may say
     * why), and is left out and counted; so is one whose class or token does not exist. With REGRESS it ends the run:
     * there is no y that does not count. */
    int (*fill)(void *self, cohort_split split, uint32_t id, const cohort_draw *draw, void *x, void *y);
    int (*length)(void *self, cohort_split split, uint32_t id); /* TOKENS only: 1..max_len */
    const char *(*class_name)(void *self, int64_t label);       /* NULL, or gives NULL: has none */
    void (*close)(void *self);                                  /* NULL: nothing to give back */
} cohort_dataset;

/* Random numbers without state: x[i] is a function of (seed, stream, step, sample, i) and of nothing else. */
void cohort_uniform(float *x, size_t n, float lo, float hi, uint64_t seed, const char *stream, uint32_t step,
                    uint32_t sample);
void cohort_normal(float *x, size_t n, float mean, float deviation, uint64_t seed, const char *stream,
                   uint32_t step, uint32_t sample);
/* The same bits on every CPU and from every compiler, unlike libm's. */
double cohort_exp(double x);
double cohort_log(double x);
double cohort_cos(double x);
double cohort_sin(double x);
double cohort_pow(double x, double y);

/* --- the program -------------------------------------------------------------------------------------- */
typedef struct cohort_parts {
    const cohort_model *const *models;     /* end with NULL; NULL: none */
    const cohort_dataset *const *datasets; /* likewise */
    const char *program;                   /* its name in messages; NULL: argv[0]'s */
} cohort_parts;

/* All of cohort's command line with your parts in it; the exit status. NULL: cohort itself. */
int cohort_main(int argc, char **argv, const cohort_parts *parts);

/* --- from inside a program ---------------------------------------------------------------------------- */
typedef struct cohort_step {
    int64_t step, epoch; /* step: 1 for the first */
    double loss, metric, grad_norm, lr;
    int64_t samples;
    bool skipped; /* not applied: its loss or gradient was not finite */
} cohort_step;

typedef struct cohort_eval {
    int64_t step, epoch;
    cohort_split split;
    double loss, metric;
    int64_t count;           /* samples, or tokens */
    char weights_sha256[65]; /* of cohort_evaluate; else "" */
} cohort_eval;

typedef struct cohort_prediction {
    int64_t id; /* of the sample in its split */
    cohort_task task;
    int64_t choice; /* CLASSIFY: the likeliest class; TOKENS: the likeliest token after the sample's end */
    double probability;  /* of the choice */
    const float *values; /* REGRESS: [n]; valid until the callback returns */
    int64_t n;
} cohort_prediction;

/* What to do, and whom to tell. Callbacks run in the calling process; NULL: nobody asks. */
typedef struct cohort_job {
    const cohort_parts *parts; /* NULL: what is built in */
    const char *const *words;  /* as on the command line: "model=mine", "optim.lr=0.01"; no sweeps */
    int n_words;
    void *ctx;
    int (*on_step)(void *ctx, const cohort_step *s); /* not 0: save and stop */
    int (*on_eval)(void *ctx, const cohort_eval *e); /* likewise */
    void (*on_text)(void *ctx, const char *line);    /* what the program would say on the screen */
    void (*on_prediction)(void *ctx, const cohort_prediction *p);
} cohort_job;

typedef enum cohort_status { COHORT_DONE, COHORT_STOPPED, COHORT_FAILED } cohort_status;

typedef struct cohort_summary {
    cohort_status status;
    int64_t steps, epochs, samples;
    double wall_s, samples_per_s;
    double loss, train_metric, val_loss, val_metric, test_loss, test_metric; /* nan where there is none */
    int recoveries;                                                          /* ranks replaced */
    char weights_sha256[65];
    char run_dir[1024]; /* config.yaml, events.jsonl, summary.json, checkpoints/ */
    char saved[1024];   /* the last good checkpoint; "" if none */
    char blame[2048];   /* FAILED: why */
} cohort_summary;

/* What `cohort train` does, run folder and all. COHORT_OK: trained, or stopped on request (status says which). While it
 * runs, SIGINT, SIGTERM and SIGUSR1 ask for a stop, and SIGPIPE and SIGHUP are ignored; all is as before when it returns. */
cohort_err cohort_train(const cohort_job *job, cohort_summary *out);

/* The weights of the word ckpt_path=FOLDER (a run's or a checkpoint's) on VAL or TEST. A run folder brings its own
 * configuration; words override it. */
cohort_err cohort_evaluate(const cohort_job *job, cohort_split split, cohort_eval *out);
/* on_prediction for each sample in order; limit < 0: all. */
cohort_err cohort_predict(const cohort_job *job, cohort_split split, int64_t limit);

#ifdef __cplusplus
} /* extern "C" */

template <typename... Dims> inline cohort_shape COHORT_SHAPE(Dims... d)
{
    static_assert(sizeof...(d) <= COHORT_MAX_DIMS, "too many dimensions");
    return cohort_shape{static_cast<int>(sizeof...(d)), {static_cast<int64_t>(d)...}};
}
#endif

#endif
