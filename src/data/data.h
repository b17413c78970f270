/* data.h -- data sets, the order of samples, and the loader that keeps a rank fed.
 *
 * Which samples make up batch b of epoch e is a pure function of (data, seed, epoch, batch size): any rank
 * can work out any slice. Every sample counts exactly once per epoch; the last batch may be short.
 */
#ifndef CO_DATA_DATA_H
#define CO_DATA_DATA_H

#include "base/fds.h"
#include "base/option.h"
#include "tensor/io.h"

typedef enum { CO_SPLIT_TRAIN, CO_SPLIT_VAL, CO_SPLIT_TEST, CO_SPLIT_COUNT } co_split;

/* Where a slice goes: pointers into the rank's input buffer, by the task's input names. Unused ones are NULL.
 */
typedef struct co_slice_dst {
    void *x, *y;
    int64_t *ids;
    int32_t *items; /* ratings: the item of each sample; x is its user */
    int32_t *y2;    /* io.mix: the other label of each sample, */
    float *lam;     /* and the first one's weight */
    /* LM, PAIRS: where each sample (PAIRS: its source, its target) begins, and where the last one ends.
     * co_dataset_fill sets them, from `length` and `target_length`; a set's fill reads them. */
    int32_t *offsets, *y_offsets; /* [room + 1]; those past n + 1 equal the last */
    int32_t *given;               /* PAIRS: what the decoder is given; y is what it must predict */
    int room;                     /* LM, PAIRS: samples that the buffers have room for */
    float *mirror; /* io.mirror: for the mirror images of x, by co_dataset_fill; a set's fill ignores it */
} co_slice_dst;

/* PAIRS: the two sides of a sample. */
typedef enum { CO_SIDE_SOURCE, CO_SIDE_TARGET } co_side;

/* Time spent filling. fill adds to it. */
typedef struct co_fill_times {
    uint64_t read_ns, decode_ns, augment_ns;
} co_fill_times;

/* The stages of filling a sample, for measurements. A set times those that it has; what it does not time counts as
 * CO_STAGE_FILL. */
typedef enum {
    CO_STAGE_READ,
    CO_STAGE_DECODE,
    CO_STAGE_DRAW,
    CO_STAGE_CROP,
    CO_STAGE_BRIGHTNESS,
    CO_STAGE_CONTRAST,
    CO_STAGE_SATURATION,
    CO_STAGE_HUE,
    CO_STAGE_TRIVIAL,
    CO_STAGE_NORMALISE,
    CO_STAGE_ERASE,
    CO_STAGE_MIX,
    CO_STAGE_FILL,
    CO_STAGES
} co_stage;
typedef struct co_stage_times {
    uint64_t ns[CO_STAGES]; /* CPU time of this thread */
    uint64_t laps[CO_STAGES];
    uint64_t last;
} co_stage_times;
const char *co_stage_name(co_stage s);            /* "decode" */
const char *co_stage_help(co_stage s);            /* "bytes to pixels" */
void co_stage_begin(co_stage_times *t);           /* NULL: does nothing, here and below */
void co_stage_lap(co_stage_times *t, co_stage s); /* the time since the last lap was stage s's */

/* Ratings: what the rows of users and items stand for. */
struct co_dataset;
typedef struct co_rating_names {
    bool (*user_row)(const struct co_dataset *d, int64_t id, uint32_t *row); /* false: no such user */
    int64_t (*user_id)(const struct co_dataset *d, uint32_t row);            /* row 0 has the lowest */
    int64_t (*item_id)(const struct co_dataset *d, uint32_t row);
    const char *(*title)(const struct co_dataset *d, uint32_t row); /* UTF-8; NULL: it has none */
    /* All rows as CSV, a line each: kind (user or item), row, id, title. */
    void (*list)(const struct co_dataset *d, co_str *out);
    /* When the oldest and the newest rating were given, in seconds since 1970; false: it is not known. */
    bool (*times)(const struct co_dataset *d, uint32_t *first_s, uint32_t *last_s);
} co_rating_names;

/* How a sample is varied. Everything random about it is a function of (seed, epoch, id). */
typedef struct co_draw {
    uint64_t seed;
    uint32_t epoch;
    bool augment;           /* false: the plain sample, as in evaluation */
    co_fill_times *times;   /* NULL: times are not measured */
    co_stage_times *stages; /* the same in detail; it slows filling down */
} co_draw;

/* A PNG of 8-bit pixels, row by row: channels 1 (grey) or 3 (RGB). *out is the caller's, co_free. */
co_err co_png_write(char **out, size_t *len, const uint8_t *pixels, int width, int height, int channels);

/* An open data set: read-only after open, shared by all ranks through fork. */
typedef struct co_dataset {
    const struct co_dataset_def *def;
    co_io io;
    uint32_t count[CO_SPLIT_COUNT];
    char fingerprint[65]; /* SHA-256 of the content as used */
    char note[256];       /* what was decided for the user, a line or two for the first screen; "": nothing */
    char place[512];      /* the folder or file that it was read from, as the user gave it; "": none */
    size_t shared_bytes;  /* taken with co_alloc_shared: one copy for all ranks */
    co_fds fds;           /* descriptors that `open` left open: ranks inherit these and no others */
    /* Sample ids are 0..count-1 within a split. */
    /* LM: tokens of a sample; PAIRS: of its source, begin and end among them. Takes constant time: it is
     * called often. NULL for other tasks. */
    int (*length)(const struct co_dataset *d, co_split s, uint32_t id);
    /* PAIRS: tokens of `given`, which are as many as those of y: the target's words and one more. */
    int (*target_length)(const struct co_dataset *d, co_split s, uint32_t id);
    /* Called by co_dataset_fill. Fills n samples (LM, PAIRS: end to end, at dst's offsets). Thread-safe;
     * allocates nothing after the first calls. Returns how many of them could not be read: such a sample
     * has x = 0, y = CO_IGNORE and y2 = CO_IGNORE, in every rank and every epoch. Negative: a file that was
     * there at open is gone or changed (a disk, a network). Then nobody knows what the sample is, and the
     * run must end whatever stop_on_bad says. */
    int (*fill)(const struct co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst);
    /* Reads a sample again and says what is wrong with it, naming the file: CO_EINPUT: it cannot be decoded;
     * CO_EIO: it was there at open and is not now; CO_EFORMAT: it was changed since it was read first. NULL:
     * nothing can be wrong. */
    co_err (*check)(const struct co_dataset *d, co_split s, uint32_t id);
    /* NULL: never needed. Files that the fingerprint does not cover are compared with what `path`, a file of
     * the run, says of earlier reading, and are noted there. Once, before the first fork. CO_EINPUT names a
     * file that was changed. */
    co_err (*remember)(struct co_dataset *d, const char *path);
    /* A training sample that cannot be read ends the run; else it is left out and counted. */
    bool stop_on_bad;
    /* No label can mark a sample as left out (regression): one that cannot be read ends an evaluation too. */
    bool needs_every_sample;
    /* CLASSIFY: adds the samples of each class of a split to per_class [io.classes], by labels that are known
     * without reading a sample. NULL: they are not. */
    void (*count_classes)(const struct co_dataset *d, co_split s, uint32_t *per_class);
    /* CLASSIFY: the name of a class; NULL, or gives NULL: it has none but its number. */
    const char *(*class_name)(const struct co_dataset *d, int64_t label);
    /* The file that a sample came from; NULL, or gives NULL: it has none of its own. */
    const char *(*file)(const struct co_dataset *d, co_split s, uint32_t id);
    const co_rating_names *names;       /* ratings: ids and titles; NULL: the rows are all there is */
    const struct picture_use *pictures; /* how pictures become samples; NULL: its samples are none */
    /* LM: text of token ids, for predict; PAIRS: of tokens of the targets' vocabulary, without begin and
     * end. NULL otherwise. */
    void (*decode)(const struct co_dataset *d, const int32_t *tokens, int n, co_str *out);
    /* PAIRS: the tokens of a source sentence, begin and end among them; `text` has `len` bytes of UTF-8.
     * Returns how many; more than `room`: the sentence is too long, and only the first `room` were stored. */
    int (*encode)(const struct co_dataset *d, const char *text, size_t len, int32_t *tokens, int room);
    /* PAIRS: the text of one side of a sample, as it was read, without its line's end. */
    void (*text)(const struct co_dataset *d, co_split s, uint32_t id, co_side side, co_str *out);
    /* LM, PAIRS: all that encode and decode need, as one JSON object, for checkpoints. NULL otherwise. */
    void (*vocabulary)(const struct co_dataset *d, co_str *out);
    /* File i of those that a run keeps in its folder, such as a tokenizer: its name is appended to `name`,
     * its bytes live as long as the set. False: there are only i. NULL: there are none. */
    bool (*run_file)(const struct co_dataset *d, int i, co_str *name, const char **bytes, size_t *len);
    void (*close)(struct co_dataset *d);
} co_dataset;

typedef struct co_dataset_def {
    const char *name, *help;
    const co_option *options;
    size_t cfg_size;
    co_err (*open)(co_dataset **out, const void *cfg); /* CO_EINPUT names the file and what is wrong */
    /* Instead of open, for rows that share one function: it is given its row. */
    co_err (*open_row)(co_dataset **out, const struct co_dataset_def *row, const void *cfg);
    /* LM, PAIRS: a set without samples, made of what `vocabulary` wrote: its io, encode and decode work.
     * CO_EINPUT says what is wrong with the text. NULL: there is no vocabulary. */
    co_err (*open_vocabulary)(co_dataset **out, const char *json, size_t len);
} co_dataset_def;

extern const co_dataset_def *const co_datasets[]; /* NULL-terminated */
const co_dataset_def *co_dataset_find(const char *name);
co_err co_dataset_open(co_dataset **out, const co_dataset_def *def, const void *cfg);
void co_dataset_close(co_dataset *d); /* NULL is fine */
/* Is `dir` a folder in Tiny ImageNet's layout, with a flat val/ and its annotations? */
bool co_dataset_is_tiny_imagenet(const char *dir);

/* Picture files of the user's own as samples of CO_SPLIT_TEST, in this order: through the evaluation
 * transform of `like`, with its classes, y = CO_NO_LABEL. Of a folder, all pictures in it. A file that cannot
 * be read is an unreadable sample. CO_EINPUT: `like` is no set of pictures, or a folder has none. `like` is
 * borrowed until *out is closed. */
enum { CO_NO_LABEL = -2 };
co_err co_pictures_open(co_dataset **out, const co_dataset *like, const char *const *paths, int n);
/* Lines of the user's own as samples of CO_SPLIT_TEST, in this order, with the characters of `like`, which
 * is data=text or was opened from its vocabulary. The prediction for a line is what follows it. CO_EINPUT
 * names the line by its number; `first` is that of the first line. */
co_err co_lines_open(co_dataset **out, const co_dataset *like, const char *const *lines, int n,
                     long long first);
/* How a set of pictures makes samples for evaluation: x = (byte / 255 - mean) / std in each plane, of the
 * middle of a picture whose shorter side was resized. False: `d` is no set of pictures. */
typedef struct co_picture_use {
    int planes;
    double mean[3], std[3];
    double crop_share; /* the sample's height as a share of that shorter side; 1: nothing is cut off */
} co_picture_use;
bool co_pictures_use(const co_dataset *d, co_picture_use *out);
/* What this machine makes of built-in pictures: hosts that train together compare it. For a set that
 * decodes picture files, `fact` is given a hash of the pixels of each library's picture; for one that
 * resizes or varies its pictures, a hash of samples made by all transforms that its keys turn on. Not
 * called for other sets. Takes a few milliseconds. CO_ENOMEM. */
co_err co_dataset_probe(const co_dataset *d, void (*fact)(void *ctx, const char *what, const char *hash),
                        void *ctx);
/* Does the name end as pictures do? True for formats that are not read, too. */
bool co_picture_named(const char *name);

/* --- order -------------------------------------------------------------------------------------------------
 */
typedef struct co_order co_order;

/* shuffle = false: 0..n-1 (evaluation). */
co_err co_order_new(co_order **out, const co_dataset *d, co_split s, uint64_t seed, bool shuffle);
void co_order_free(co_order *o);
/* ids[count] of this epoch. Valid until the call after next with other epochs (two epochs are kept).
 * Allocates nothing. One thread at a time. */
const uint32_t *co_order_epoch(co_order *o, uint32_t epoch);
/* Writes to its pages without changing them: after a fork, so that no later epoch takes a page fault. */
void co_order_touch(co_order *o);

/* The shape of a slice of these samples. */
co_slice_shape co_slice_of(const co_dataset *d, co_split s, const uint32_t *ids, int n);
/* What a sample weighs when a batch is cut into slices: its tokens, of both sides; 1 if it is not text. */
int co_sample_weight(const co_dataset *d, co_split s, uint32_t id);
/* Sets the offsets of dst and calls the set's fill. */
int co_dataset_fill(const co_dataset *d, co_split s, const uint32_t *ids, co_slice_shape shape,
                    const co_draw *draw, const co_slice_dst *dst);
/* The error for a result below 0. */
co_err co_dataset_lost(void);

/* --- loader --------------------------------------------------------------------------------------------- */
enum { CO_SLICE_MAX = 8192 }; /* samples in a slice */

/* One slice to load. */
typedef struct co_load {
    co_split split;
    co_draw draw; /* set by `next`, but for times */
    int bad;      /* what fill returned */
    uint32_t ids[CO_SLICE_MAX];
    co_slice_shape shape;
    co_slice_dst dst; /* set by `where` */
} co_load;

/* Job number `index` of a rank's endless, deterministic sequence of slices. Returns false past the end.
 * Called with rising index, one thread at a time. */
typedef bool (*co_load_next)(void *ctx, uint64_t index, co_load *job);
/* Sets job->dst inside `buffer` for job->shape. Called by any loader thread. */
typedef void (*co_load_where)(void *ctx, void *buffer, co_load *job);

typedef struct co_loader_spec {
    const co_dataset *data;
    int threads; /* 0: slices are loaded by the caller of co_loader_get */
    int depth;   /* ring slots: 1 with 0 threads, else at least 2 */
    char *ring;  /* depth * slot_bytes, the caller's memory, 64-byte aligned */
    size_t slot_bytes;
    uint64_t first; /* index of the first job */
    co_load_next next;
    co_load_where where;
    void *ctx;
} co_loader_spec;

typedef struct co_loader co_loader;
co_err co_loader_start(co_loader **out, const co_loader_spec *spec);
/* The loaded slice `index` (must rise by one per call), and where; blocks until it is there. NULL past the
 * end. The one before it is given back. Allocates nothing. */
const co_load *co_loader_get(co_loader *l, uint64_t index, void **buffer);
uint64_t co_loader_wait_ns(const co_loader *l);    /* time the caller waited, or loaded, in all */
co_fill_times co_loader_times(const co_loader *l); /* of all threads together, so far */
void co_loader_stop(co_loader *l);                 /* NULL is fine */

#endif
