/* nn.h -- models: a table of rows, each a file under models/ that builds its graph for any slice shape.
 *
 *     const co_model_def *def = co_model_find("mlp");
 *     co_graph *g;
 *     CO_TRY(co_model_graph(&g, def, cfg, &io, NULL, (co_slice_shape){.n = 16}, CO_MODE_TRAIN));
 *
 * co_model_graph declares the inputs of the task (tensor/io.h), lets the model build its prediction, and
 * adds the task's loss and statistics. Every shape of one model gives the same layout. A graph for text is
 * for any slice that has no more samples and tokens than `shape`.
 */
#ifndef CO_NN_NN_H
#define CO_NN_NN_H

#include "base/option.h"
#include "graph/graph.h"
#include "tensor/io.h"

typedef enum { CO_MODE_TRAIN, CO_MODE_EVAL, CO_MODE_PREDICT } co_mode;

/* Stat slots that every graph fills (PREDICT: none). All are sums over the slice. */
enum {
    CO_STAT_LOSS,   /* sum of row losses */
    CO_STAT_COUNT,  /* rows that count (samples, or tokens that are not ignored); the loss is divided by it */
    CO_STAT_METRIC, /* CLASSIFY, LM, PAIRS: rows predicted right; REGRESS: sum of absolute errors, each
                     * the mean over y_width */
    CO_STAT_TOP5, /* CLASSIFY: rows whose class is among the five likeliest (of fewer classes: all); else 0 */
    CO_STATS
};
const char *co_metric_name(co_task task); /* "acc", "mae" */
/* Ratings have one metric more, "rmse": the square root of the mean loss. */
bool co_has_rmse(const co_io *io);
double co_rmse(double loss);

/* The arguments of a model's build(). Inputs that the task does not have are NULL. */
typedef struct co_build {
    const struct co_model_def *def; /* the row itself, for a file that defines several models */
    co_graph *g;
    const co_io *io;
    co_slice_shape shape;
    co_node *x, *items, *ids;
    co_node *given;   /* PAIRS */
    co_spans x_spans; /* LM: the samples in x and in the prediction; PAIRS: the sources in x */
    co_spans y_spans; /* PAIRS: the targets in `given` and in the prediction */
} co_build;

typedef struct co_model_def {
    const char *name, *help;
    const co_option *options;
    size_t cfg_size;
    bool batch_stats; /* normalises over the slice: larger slices, see co_slices_for */
    /* Whether the model fits this data; if not, CO_EINPUT with a message that names models that do. */
    co_err (*check)(const void *cfg, const co_io *io);
    /* The prediction: CLASSIFY [n, classes], REGRESS [n, y_width], LM [tokens, classes], PAIRS [targets,
     * classes]. */
    co_node *(*build)(const co_build *b, const void *cfg);
    /* What the user should know about this model with this data, for the first screen; NULL: nothing. */
    void (*note)(char *text, size_t size, const struct co_model_def *def, const void *cfg, const co_io *io);
    const struct co_decoder *decoder; /* PAIRS: how it translates, one token at a time; NULL: it cannot */
} co_model_def;

/* --- PAIRS: one token at a time; see decoding.c --------------------------------------------------------- */
enum { CO_MAX_CACHES = 128 };
/* The arguments of a decoder's step(). */
typedef struct co_step {
    co_graph *g;
    const co_io *io;
    co_node *last, *place, *pick;
    co_node *memory[CO_MAX_CACHES], *kept[CO_MAX_CACHES];
    co_spans rows, keys;     /* each row alone; the keys of each row */
    co_spans beams, sources; /* the rows of each sentence; its source */
} co_step;
typedef struct co_decoder {
    int (*caches)(const void *cfg,
                  int64_t *width); /* how many values are kept of a token, and the width of each */
    co_node *(*encode)(const co_build *b, const void *cfg); /* [tokens, caches * width] */
    co_node *(*step)(const co_step *s, const void *cfg);    /* [rows, classes + caches * width] */
} co_decoder;
/* The most that a step has of each: sentences, tokens of sources, rows, rows kept, keys of all rows, keys
 * of a row. */
typedef struct co_step_room {
    int sentences, tokens, rows, kept, keys, longest;
} co_step_room;
co_err co_encode_graph(co_graph **out, const co_model_def *def, const void *cfg, const co_io *io,
                       co_slice_shape room);
co_err co_step_graph(co_graph **out, const co_model_def *def, const void *cfg, const co_io *io,
                     const co_step_room *room);

extern const co_model_def *const co_models[];        /* NULL-terminated */
const co_model_def *co_model_find(const char *name); /* NULL if there is none */

/* Options of the loss. Functions that take it accept NULL for the task's plain loss. */
typedef struct co_loss {
    double label_smoothing; /* as PyTorch's CrossEntropyLoss, in training and evaluation */
} co_loss;

/* In EVAL the prediction is also the graph's output, for callers that give an output base. */
co_err co_model_graph(co_graph **out, const co_model_def *def, const void *cfg, const co_io *io,
                      const co_loss *loss, co_slice_shape shape, co_mode mode);

/* Layers with PyTorch's names, shapes and default initialisation; `name` is the module's ("fc1",
 * "layer1.0.bn1"). */
co_node *co_nn_linear(co_graph *g, co_node *x, int64_t out, bool bias, const char *name);
co_node *co_nn_conv(co_graph *g, co_node *x, int64_t out, int k, int stride, int pad, bool bias,
                    const char *name);
/* Without bias; weight normal with deviation sqrt(2 / (out * k * k)): He initialisation by fan-out, as in
 * torchvision. */
co_node *co_nn_conv_he(co_graph *g, co_node *x, int64_t out, int k, int stride, int pad, const char *name);
co_node *co_nn_batch_norm(co_graph *g, co_node *x,
                          const char *name); /* weight bias running_mean running_var num_batches_tracked */
co_node *co_nn_batch_norm_zero(co_graph *g, co_node *x, const char *name); /* the same; weight starts at 0 */
co_node *co_nn_layer_norm(co_graph *g, co_node *x, const char *name);
co_node *co_nn_std_norm(co_graph *g, co_node *x, float eps, const char *name); /* co_std_norm: alpha bias */
co_node *co_nn_embedding(co_graph *g, co_node *idx, int64_t rows, int64_t width, bool sparse, const char *name);

/* --- initial values that come from the data ----------------------------------------------------------------
 * An entry with CO_INIT_WHITEN [2m,c,k,k], m = c * k * k, gets m filters that make the patches of the data
 * uncorrelated and equally strong, and the negatives of those: see whiten.c.
 *
 *     co_whiten w;
 *     CO_TRY(co_whiten_init(&w, entry, &io));
 *     co_whiten_add(&w, x, n);                      // as often as there are pictures
 *     co_whiten_filters(&w, state + entry->offset);
 */
enum { CO_WHITEN_MOST = 48 }; /* numbers in a patch */
typedef struct co_whiten {
    int c, k, h, w; /* channels, side of a patch, size of the pictures */
    double patches;
    double product[CO_WHITEN_MOST * CO_WHITEN_MOST]; /* sums over the patches; below the diagonal */
} co_whiten;
co_err co_whiten_init(co_whiten *w, const co_entry *entry, const co_io *io); /* CO_EINPUT: shapes differ */
void co_whiten_add(co_whiten *w, const float *x, int n);                     /* x [n,c,h,w] */
void co_whiten_filters(const co_whiten *w, float *out);                      /* out [2m,c,k,k] */

#endif
