/* data_int.h -- the actions of `cohort data`. */
#ifndef CO_CLI_DATA_INT_H
#define CO_CLI_DATA_INT_H

#include "cli/cli_int.h"
#include "data/check.h"

typedef struct data_flags {
    const char *out;              /* of pack */
    const char *mirror, *retries; /* of get, as are the others */
    bool force, keep;
} data_flags;

/* data_ratings.c: the figures of a set of ratings. */
void print_ratings(const co_rating_stats *r, const co_io *io);
json_t *ratings_json(const co_rating_stats *r, const co_io *io);

int data_get(const line *l, const data_flags *flags);

#endif
