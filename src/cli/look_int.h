/* look_int.h -- a checkpoint looked at: what `cohort test`, `cohort predict` and the library's calls share. */
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

/* From a parsed line to a plan with the checkpoint's weights. look_line_close gives all back, also after a failure. */
co_err look_line_open(look_line *t);
void look_line_close(look_line *t);

#endif
