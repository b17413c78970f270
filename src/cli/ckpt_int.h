/* ckpt_int.h -- the line of `cohort ckpt`, for the files of its subcommands. */
#ifndef CO_CLI_CKPT_INT_H
#define CO_CLI_CKPT_INT_H

#include "cli/cli_int.h"

typedef struct ckpt_line {
    line line; /* words[0] is the subcommand */
    const char *out, *to, *prefix;
    bool average, drop_objects;
} ckpt_line;

/* ckpt_import.c. The exit status. */
int ckpt_import(const ckpt_line *l);

#endif
