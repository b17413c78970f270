/* versus_int.h -- shared by the files of `cohort bench vs-torch`; its arms are used by `cohort bench growth`,
 * too.
 *
 *     versus_tasks.c    the tables: what is trained, and in which ways PyTorch may train it
 *     versus_words.c    the words of our side's training, and text for it
 *     versus_arms.c     one run of an arm; the loss of the first step on both sides
 *     versus_report.c   medians, ratios, JSON
 *     versus.c          the command line, and the arms in turn
 */
#ifndef CO_BENCH_VERSUS_INT_H
#define CO_BENCH_VERSUS_INT_H

#include "bench/bench_int.h"

enum { VERSUS_ROUNDS = 50, VERSUS_ARMS = 10 };

typedef enum versus_kind {
    VERSUS_TRAIN,   /* speed of the steps after the first */
    VERSUS_START,   /* from the command to the end of the first step */
    VERSUS_EXCHANGE /* sum and update of a step; nothing else counts */
} versus_kind;

/* A way in which PyTorch may run a task. */
typedef struct versus_setting {
    unsigned bit;
    const char *name;
    const char *args[4]; /* for versus.py */
} versus_setting;

typedef struct versus_task {
    const char *name, *help;
    versus_kind kind;
    const char *unit;    /* what speed counts */
    unsigned settings;   /* bits of those that are tried */
    unsigned few;        /* those of them that bench growth tries */
    const char *package; /* of Python, besides torch; or NULL */
    const char *data;    /* what --data FOLDER has to have; NULL: the data is made up */
    int steps, batch;
    int size;              /* pictures: height and width; text: tokens of a sequence; exchange: floats */
    const char *size_key;  /* of `cohort train`; NULL: --size does not fit the task */
    bool text;             /* trains on a file of text that the bench makes, each line a sequence */
    bool alone;            /* its steps are too small to share: one rank is faster than two */
    const char *still;     /* a word that switches dropout off, or NULL */
    const char *words[12]; /* of `cohort train` */
} versus_task;

/* cohort, or PyTorch with one of its settings. */
typedef struct versus_arm {
    const versus_setting *setting; /* NULL: cohort */
    bool dropped;                  /* much slower than another setting in round 0: not run again */
    double rate[VERSUS_ROUNDS], start_s[VERSUS_ROUNDS];
    double cpu_s[VERSUS_ROUNDS]; /* of all processes, for one of the task's unit; 0: not known */
    size_t peak, libraries;      /* bytes; libraries: PyTorch's processes before they make the model */
} versus_arm;

typedef struct versus {
    const versus_task *task;
    int rounds, steps, batch, size;
    int ranks, threads; /* 0: cohort chooses; not for versus_run_arm */
    int torch_threads;
    int warmup; /* steps of PyTorch before the clock starts; one step of ours is not timed */
    bool compile;
    const char *data; /* a folder; for tasks with text: a file */
    torch_side torch;
    const char *script_given;
    char root[64], text[80]; /* text: the file, below root */
    json_t *versions;        /* of PyTorch */
    versus_arm arm[VERSUS_ARMS];
    int arms;
    long long parameters; /* ours */
    double first_loss[2]; /* ours, PyTorch's, from the same weights; 0: not compared */
    char kernels[32];
} versus;

/* versus_tasks.c */
co_err versus_find_task(const versus_task **out, const char *name); /* CO_EINPUT: lists all */
void versus_choose_arms(versus *v, bool few);
const char *versus_arm_name(const versus_arm *arm);

/* versus_words.c */
enum { VERSUS_WORDS = 40 };
typedef struct versus_words {
    const char *word[VERSUS_WORDS]; /* for `cohort train`; NULL ends them */
    char number[5][48], *data;      /* texts of some of them */
} versus_words;
/* `more` ends with NULL, and may be NULL; its words win. Nothing is kept after an error. */
co_err versus_words_init(versus_words *w, const versus *v, int steps, const char *const *more);
void versus_words_fini(versus_words *w);
co_err versus_make_text(versus *v); /* enough of it for all steps; sets `data` */

/* versus_arms.c */
co_err versus_run_arm(versus *v, versus_arm *arm, int round);
co_err versus_compare_losses(versus *v); /* CO_EFAIL: they differ */

/* versus.c */
co_err versus_check_torch(versus *v); /* PyTorch and the task's package are there; notes the versions */

/* versus_report.c */
void versus_report(const versus *v);

#endif
