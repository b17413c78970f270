/* cohort.h -- train models of your own with cohort: one header, one archive (libcohort.a).
 *
 * There are two ways to use it. A program can be `cohort` itself, with your models and data sets added to the
 * built-in ones:
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
 * Or a program can call cohort_train, cohort_evaluate and cohort_predict.
 *
 * Training with your parts also gives the same weights, bit for bit, for any number of ranks and after any
 * crash, on two conditions. `build` and `fill` depend on their arguments alone (no clock, no rand(), no
 * counters of their own). And samples are not computed with libm, whose results differ between CPUs: use
 * cohort_sin and its relatives.
 *
 * Rules. Functions that can fail return cohort_err; cohort_errmsg() then says what went wrong, where, and
 * what to do. The library borrows the strings and tables that you pass: make them static const. Only
 * cohort_main prints, and nothing exits your program. Ranks are forked, so call the library before your
 * program starts threads. Make one call at a time per process. New versions may add fields at the end of
 * structs: zero them, set fields by name, and recompile. Names do not change within a major version. All
 * names start with cohort_ or COHORT_; the archive has no other global symbols.
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

const char *cohort_version(void); /* the COHORT_VERSION with which the archive was built */

/* --- errors ------------------------------------------------------------------------------------------- */
typedef enum cohort_err {
    COHORT_OK = 0,
    COHORT_EINPUT,   /* an argument, a file or a part is wrong; nothing was started */
    COHORT_EIO,      /* the outside world refused: disk, file */
    COHORT_EFORMAT,  /* bytes are not what they claim to be */
    COHORT_ENOMEM,   /* not enough memory */
    COHORT_EPEER,    /* a rank or host is gone */
    COHORT_ETIMEOUT, /* a deadline passed */
    COHORT_ESTOP,    /* a stop was requested */
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

/* COHORT_SHAPE(3, 32, 32). For C++ see the end of this file. */
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
    /* x: int32_t [length], y: int32_t [length], the tokens to predict; loss and metric as CLASSIFY, per token */
    COHORT_TOKENS,
    /* x: int32_t [length], a source; y: int32_t [length], its target; loss and metric as CLASSIFY, per token of the
     * target. For models; such data sets are built in (data=pairs) */
    COHORT_PAIRS
} cohort_task;

enum { COHORT_IGNORE = -100 }; /* a y that does not count in loss and metrics */

typedef enum cohort_split { COHORT_TRAIN, COHORT_VAL, COHORT_TEST, COHORT_SPLITS } cohort_split;

/* --- graphs: how a model is written ------------------------------------------------------------------- */
typedef struct co_graph cohort_graph;
typedef struct co_node cohort_node;

/* Samples of different lengths lie end to end, without padding: rows [offsets[i], offsets[i + 1]) are sample i's. */
typedef struct cohort_spans {
    cohort_node *offsets; /* [n + 1] */
    cohort_node *ids;     /* [n]: for dropout */
    int64_t longest;      /* no sample has more rows */
} cohort_spans;

/* The arguments of `build`: a slice of n samples to predict for. */
typedef struct cohort_build {
    cohort_graph *g;
    cohort_node *x; /* CLASSIFY, REGRESS: [n, x...]; TOKENS: [tokens], token numbers of all samples end to end */
    cohort_node *ids;     /* [n]: for cohort_dropout */
    cohort_spans samples; /* TOKENS: where each sample begins in x; PAIRS: each source; else empty */
    cohort_node *given; /* PAIRS: [targets], what the model is given of the targets: begin, w0, w1 ...; else NULL */
    cohort_spans targets; /* PAIRS: where each target begins in `given` and in the prediction; else empty */
    int64_t sources;      /* PAIRS: the sources' vocabulary; else 0 */
    cohort_task task;
    cohort_shape sample; /* of one sample */
    int64_t n, tokens;   /* TOKENS: the most that a slice can have; it is computed for as many as there are */
    int64_t outputs;     /* to predict: classes, or y_width */
} cohort_build;

typedef struct cohort_model {
    const char *name, *help;      /* model=NAME */
    const cohort_option *options; /* NULL: none */
    size_t cfg_size;              /* of the struct that options fill */
    bool batch_stats;             /* uses cohort_nn_batch_norm: batches are cut into fewer, larger slices */
    /* The prediction: [n, outputs]; TOKENS: [tokens, outputs]; PAIRS: a row for each of `given`. It is
     * called for several n; names and sizes of parameters must not depend on n or tokens. Call
     * cohort_graph_fail to refuse data that does not fit. */
    cohort_node *(*build)(const cohort_build *b, const void *cfg);
} cohort_model;

/* Building is sticky: an operator given NULL, or shapes that do not fit, returns NULL; the first mistake is
 * kept and reported with names and shapes, so no result needs a check. Do not create two nodes in the
 * arguments of one call; write one statement for each. C does not fix which argument is evaluated first, and
 * the order changes the bits of the result. */
cohort_node *cohort_graph_fail(cohort_graph *g, const char *fmt, ...) COHORT_PRINTF(2, 3); /* gives NULL */
bool cohort_graph_training(const cohort_graph *g);
cohort_shape cohort_node_shape(const cohort_node *n); /* of NULL: nd = -1 */

/* Layers with PyTorch's parameter names, shapes and initial values; `name` is the module's: "fc1",
 * "layer1.0.bn1". */
cohort_node *cohort_nn_linear(cohort_graph *g, cohort_node *x, int64_t out, bool bias, const char *name);
cohort_node *cohort_nn_conv(cohort_graph *g, cohort_node *x, int64_t out, int k, int stride, int pad,
                            bool bias, const char *name); /* x [n,c,h,w] */
cohort_node *cohort_nn_batch_norm(cohort_graph *g, cohort_node *x, const char *name);
cohort_node *cohort_nn_layer_norm(cohort_graph *g, cohort_node *x, const char *name);
cohort_node *cohort_nn_embedding(cohort_graph *g, cohort_node *tokens, int64_t rows, int64_t width,
                                 bool sparse, const char *name);

/* A parameter of your own. A second call with the same name returns the same parameter (a tied weight). */
typedef enum cohort_init_kind {
    COHORT_INIT_ZERO,
    COHORT_INIT_ONE,
    COHORT_INIT_UNIFORM, /* [-a, a) */
    COHORT_INIT_NORMAL,  /* standard deviation a */
    COHORT_INIT_VALUE,   /* a itself */
    /* [out,in,k,k]: the first `in` filters pass their own channel on, the others are UNIFORM */
    COHORT_INIT_DIRAC,
    /* [2m,in,k,k], m = in * k * k: filters that whiten the patches of the training pictures */
    COHORT_INIT_WHITEN
} cohort_init_kind;
cohort_node *cohort_param(cohort_graph *g, const char *name, cohort_shape shape, cohort_init_kind init,
                          float a);

cohort_node *cohort_relu(cohort_graph *g, cohort_node *x);
cohort_node *cohort_gelu(cohort_graph *g, cohort_node *x);
cohort_node *cohort_softmax(cohort_graph *g, cohort_node *x); /* over the last dimension */
/* In training each value is 0 with probability p, else divided by 1 - p; ids is cohort_build's. */
cohort_node *cohort_dropout(cohort_graph *g, cohort_node *x, cohort_node *ids, float p, const char *name);
cohort_node *cohort_add(cohort_graph *g, cohort_node *a, cohort_node *b); /* b's dimensions are a's last */
cohort_node *cohort_mul(cohort_graph *g, cohort_node *a, cohort_node *b); /* b's dimensions are a's last */
cohort_node *cohort_scale(cohort_graph *g, cohort_node *x, float value);
cohort_node *cohort_fill(cohort_graph *g, cohort_shape shape, float value); /* a constant */
cohort_node *cohort_matmul(cohort_graph *g, cohort_node *a, cohort_node *b, bool transpose_a, bool transpose_b);
cohort_node *cohort_max_pool(cohort_graph *g, cohort_node *x, int k, int stride, int pad);
cohort_node *cohort_avg_pool(cohort_graph *g, cohort_node *x, int kh, int kw, int stride, int pad);
cohort_node *cohort_reshape(cohort_graph *g, cohort_node *x, cohort_shape shape); /* one may be -1 */
cohort_node *cohort_transpose(cohort_graph *g, cohort_node *x, const int *perm);
cohort_node *cohort_concat(cohort_graph *g, cohort_node *const *x, int n, int axis);
cohort_node *cohort_slice(cohort_graph *g, cohort_node *x, int axis, int64_t start, int64_t len);
/* q [n,t,width], k and v [n,u,width]; lens [n] or NULL: positions past it are masked */
cohort_node *cohort_attention(cohort_graph *g, cohort_node *q, cohort_node *k, cohort_node *v,
                              cohort_node *lens, int heads, bool causal);

/* For samples that lie end to end, as those of TOKENS do. The values derived from x keep their first
 * dimension, and no operator mixes rows of different samples but these. */
/* q [t,width], k and v [u,width]: the queries of a sample attend to its keys. q_spans and k_spans may be the same. p:
 * probabilities that are dropped in training; 0: none. */
cohort_node *cohort_ragged_attention(cohort_graph *g, cohort_node *q, cohort_node *k, cohort_node *v,
                                     const cohort_spans *q_spans, const cohort_spans *k_spans, int heads,
                                     bool causal, float p, const char *name);
cohort_node *cohort_ragged_dropout(cohort_graph *g, cohort_node *x, const cohort_spans *spans, float p,
                                   const char *name);
/* [tokens], the place of each token in its sample, from 0: for cohort_nn_embedding or cohort_sinusoids */
cohort_node *cohort_positions(cohort_graph *g, const cohort_spans *spans, cohort_node *x);
cohort_node *cohort_sinusoids(cohort_graph *g, cohort_node *positions, int64_t width); /* [tokens,width] */
/* alpha * (x - mean) / (std + eps) + bias over the last dimension; parameters name.alpha and name.bias */
cohort_node *cohort_nn_std_norm(cohort_graph *g, cohort_node *x, float eps, const char *name);

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
    char fingerprint[65];         /* 64 hex digits that identify the content; "": made from some samples */
} cohort_samples;

/* For random variation of a sample: draw with (seed, epoch, id), and every rank draws the same. */
typedef struct cohort_draw {
    uint64_t seed;
    uint32_t epoch;
    bool augment; /* false: the plain sample, as in evaluation */
} cohort_draw;

typedef struct cohort_dataset {
    const char *name, *help;      /* data=NAME */
    const cohort_option *options; /* NULL: none */
    size_t cfg_size;
    /* Files that it leaves open stay open in the ranks, where `fill` is called; no others of the program do. */
    cohort_err (*open)(cohort_samples *out, const void *cfg);
    /* Writes one sample. Called by several threads and processes at once. Return 0, or another value if the
     * sample cannot be read (cohort_fail may say why). A sample that cannot be read, or whose class or token
     * does not exist, is left out and counted. With REGRESS it ends the run, because no value of y means
     * "left out". */
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
    const cohort_dataset *const *datasets; /* ends with NULL; NULL: none */
    const char *program;                   /* its name in messages; NULL: argv[0]'s */
} cohort_parts;

/* Runs cohort's whole command line with your parts added and returns the exit status. parts may be NULL. */
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

/* What to run, and which callbacks to call. Callbacks run in the calling process and may be NULL. */
typedef struct cohort_job {
    const cohort_parts *parts; /* NULL: what is built in */
    const char *const *words;  /* as on the command line: "model=mine", "optim.lr=0.01"; no sweeps */
    int n_words;
    void *ctx;
    int (*on_step)(void *ctx, const cohort_step *s); /* not 0: save and stop */
    int (*on_eval)(void *ctx, const cohort_eval *e); /* not 0: save and stop */
    void (*on_text)(void *ctx, const char *line);    /* the lines that the cohort program would print */
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

/* Trains like `cohort train`, with a run folder. COHORT_OK: the run finished, or stopped on request (`status`
 * says which). While it runs, SIGINT, SIGTERM and SIGUSR1 request a stop, and SIGPIPE and SIGHUP are ignored;
 * it restores all handlers when it returns. */
cohort_err cohort_train(const cohort_job *job, cohort_summary *out);

/* Evaluates the weights given by the argument ckpt_path=FOLDER (of a run or a checkpoint) on VAL or TEST. A
 * run folder brings its own configuration; other arguments override it. */
cohort_err cohort_evaluate(const cohort_job *job, cohort_split split, cohort_eval *out);
/* Calls on_prediction for each sample in order, at most `limit` times; limit < 0: for all. */
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
