/* look_int.h -- a checkpoint looked at: what `cohort test`, `cohort predict` and the library's calls
 * share. */
#ifndef CO_CLI_LOOK_INT_H
#define CO_CLI_LOOK_INT_H

#include "cli/cli_int.h"

typedef struct look_line {
    line line;
    const char *split_name, *limit_text;
    co_split split;
    int64_t limit;
    app app;
    co_plan *plan;
} look_line;

/* From a parsed line to a plan with the checkpoint's weights. look_line_close gives all back, also after a
 * failure. */
co_err look_line_open(look_line *t);
void look_line_close(look_line *t);

/* own_pictures.c: files and folders of pictures among the words of a line. */
typedef struct own_files {
    char **argv; /* the line without them; co_free gives all of this back */
    int argc;
    const char *const *paths; /* [n] */
    int n;
} own_files;
co_err take_own_files(own_files *own, int argc, char **argv);
/* Predicts and prints them. *status: CO_EXIT_FAILED if a file could not be read. */
co_err predict_own_files(look_line *t, const own_files *own, bool logits, int *status);

#endif
