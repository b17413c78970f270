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

/* ckpt_hf.c. The checkpoint's weights as the new folder `to`: model.safetensors and config.json, as timm and
 * the Hugging Face hub have them. */
co_err ckpt_export_hf(const char *ckpt, const char *to, bool average);

#endif
