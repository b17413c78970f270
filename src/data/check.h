/* check.h -- looks at a folder of data before a second of training is spent on it.
 *
 * The layout of a folder is recognised by its file names. Then the set is opened as training would open it,
 * and every sample is read once: unreadable files, labels out of range, classes that val lacks, a val that is
 * one class, pictures that are both in train and in val. All of it by as many threads as there are CPUs.
 *
 *     co_data_report r;
 *     CO_TRY(co_data_check(&r, "tiny-imagenet-200", NULL, NULL));
 *     for (int i = 0; i < r.n_problems; i++)
 *         puts(r.problems[i].text);
 *     co_data_report_fini(&r);
 */
#ifndef CO_DATA_CHECK_H
#define CO_DATA_CHECK_H

#include "base/alloc.h"
#include "data/data.h"

typedef struct co_data_layout {
    const char *data;  /* the choice of data= */
    const char *title; /* "Tiny ImageNet" */
} co_data_layout;

/* What the folder or file is; NULL if no layout is recognised. */
const co_data_layout *co_data_recognise(const char *dir);
/* The names of all layouts, for a message. */
const char *co_data_layouts(char out[256]);

typedef struct co_data_problem {
    /* One word for scripts: "open", "unreadable", "label", "missing_class", "one_class" or "duplicate". */
    const char *kind;
    uint64_t count;   /* of samples, or classes */
    const char *text; /* a sentence: what is wrong, where, what to do */
} co_data_problem;

/* Ratings: figures over all splits. */
typedef struct co_count_spread {
    uint32_t least, most;
    double median;
} co_count_spread;
enum { CO_STAR_BINS = 10 };
typedef struct co_rating_stats {
    uint64_t ratings;
    double mean, std, density;          /* density: the share of all pairs of user and item that is rated */
    uint64_t per_stars[CO_STAR_BINS];   /* ratings of 0.5, 1, 1.5 ... 5 stars, each to the nearest of them */
    co_count_spread per_user, per_item; /* ratings of one user, of one item */
    bool has_times;                     /* the files say when: */
    uint32_t first_s, last_s;           /* the oldest and the newest, in seconds since 1970 */
} co_rating_stats;

enum { CO_DATA_PROBLEMS_MAX = 16 };
typedef struct co_data_report {
    const co_data_layout *layout;
    co_dataset *set; /* NULL: it could not be opened, and the only problem says why */
    /* [set->io.classes] samples of each class; NULL: the set has no classes */
    uint32_t *per_class[CO_SPLIT_COUNT];
    uint64_t unreadable[CO_SPLIT_COUNT];
    bool has_ratings; /* the set is of ratings: */
    co_rating_stats ratings;
    bool has_pixels;        /* the set is of pictures: */
    double mean[3], std[3]; /* of byte / 255 of those to train on, by plane */
    co_data_problem problems[CO_DATA_PROBLEMS_MAX];
    int n_problems;
    co_pool pool;   /* holds the texts */
    bool no_memory; /* for a text: co_data_check fails then */
} co_data_report;

/* `tell`, if not NULL, is called about twice a second with the samples done so far. CO_EINPUT: no such
 * folder, or no layout is recognised. Problems of the data are in the report, and the result is CO_OK. */
co_err co_data_check(co_data_report *out, const char *dir,
                     void (*tell)(void *ctx, uint64_t done, uint64_t of), void *ctx);
void co_data_report_fini(co_data_report *r);

#endif
