/* data_int.h -- the actions of `cohort data`. */
#ifndef CO_CLI_DATA_INT_H
#define CO_CLI_DATA_INT_H

#include "cli/cli_int.h"

typedef struct data_flags {
    const char *out;              /* of pack */
    const char *mirror, *retries; /* of get, as are the others */
    bool force, keep;
} data_flags;

int data_get(const line *l, const data_flags *flags);

#endif
