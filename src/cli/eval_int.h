/* eval_int.h -- evaluating a checkpoint: what `cohort test`, `cohort predict` and the library's calls
 * share. */
#ifndef CO_CLI_EVAL_INT_H
#define CO_CLI_EVAL_INT_H

#include "cli/cli_int.h"
#include "train/predict.h"
#include "train/recommend.h"
#include "train/translate.h"

typedef struct eval_line {
    line line;
    const char *split_name, *limit_text;
    const char *beam_text;
    bool lines;      /* predict: without a split, lines are read if the run translates, or its text is gone */
    bool lines_told; /* --lines: they are read */
    co_split split;
    int64_t limit;
    app app;
    co_plan *plan;
} eval_line;

/* Turns a parsed line into a plan with the checkpoint's weights. Call eval_line_close in any case, also after
 * a failure. */
co_err eval_line_open(eval_line *t);
void eval_line_close(eval_line *t);

/* own_pictures.c: files and folders of pictures among the words of a line. */
typedef struct own_files {
    char **argv; /* the line without the pictures; co_free(argv) frees all of this */
    int argc;
    const char *const *paths; /* [n] */
    int n;
} own_files;
co_err take_own_files(own_files *own, int argc, char **argv);
/* Predicts and prints them. *status: CO_EXIT_FAILED if a file could not be read. */
co_err predict_own_files(eval_line *t, const own_files *own, bool logits, int *status);

/* translate.c: runs on pairs of sentences. */
co_err read_beam(const char *text, int *out); /* NULL: 1 */
bool translates(const eval_line *t);
co_err predict_lines(eval_line *t, int beam, int *status); /* *status: CO_EXIT_FAILED if a line was left empty */
co_err predict_pairs(eval_line *t, int beam);              /* the split's */
co_err score_translations(eval_line *t, int beam, co_translation_scores *out);

/* lines.c: text that a run on data=text continues; `print` prints a prediction. */
bool continues_lines(const eval_line *t);
co_err predict_next(eval_line *t, void (*print)(void *ctx, const co_prediction *r), void *ctx);

/* translations.c: a remark that follows the number of sentences of a BLEU; "" if they are many */
const char *few_sentences(int64_t n);
/* SOURCE, TARGET and PREDICTED as the guide prints them, fit for a terminal. */
enum { SAMPLE_LINES = 3100 };
void sample_lines(char out[SAMPLE_LINES], const co_translated *t);

/* suggest.c: what is recommended to a user. */
typedef struct wish {
    bool wanted;  /* user=N is on the line */
    int64_t user; /* its id */
    int k;        /* items */
} wish;
/* Takes user=N and k=N off the line. CO_EINPUT: they are no numbers, or k=N is alone. */
co_err take_wish(wish *w, int *argc, char **argv);
co_err predict_wish(eval_line *t, const wish *w);
/* The newest run below logs/ that has ids.csv and a checkpoint; NULL: none. The caller's (co_free). */
char *newest_run_of_ratings(void);

#endif
