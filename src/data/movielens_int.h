/* movielens_int.h -- ratings of movies as they stand in the files of MovieLens. */
#ifndef CO_DATA_MOVIELENS_INT_H
#define CO_DATA_MOVIELENS_INT_H

#include "base/alloc.h"
#include "base/hash.h"
#include "data/csv_int.h"
#include "data/data_int.h"

/* One line of the file. User and item are the file's ids, then (ml_number) rows. */
typedef struct ml_rating {
    uint32_t user, item, time; /* time: seconds since 1970; 0 if the file has none */
    float stars;
} ml_rating;

/* The ids of one kind, rising: row r has id[r]. */
typedef struct ml_ids {
    uint32_t *id;
    uint32_t n;
} ml_ids;

typedef struct ml_files {
    const struct ml_layout *layout;
    char ratings[4096], titles[4096]; /* titles "": there is no such file */
} ml_files;

enum { ML_MOST = 1 << 30 }; /* ratings of a file */

const struct ml_layout *ml_layout_at(int i); /* NULL past the last */
/* Finds the files in `dir`, or in a folder of it that has the name of a MovieLens archive. */
co_err ml_find(ml_files *out, const char *dir);
/* All ratings, in the file's order; *out is the caller's (co_free). Their bytes go into `hash`. */
co_err ml_read_ratings(ml_rating **out, uint32_t *n, bool *has_times, const ml_files *files, co_sha256 *hash);
/* The same from a stream of bytes, which is taken over. */
co_err ml_parse_ratings(ml_rating **out, uint32_t *n, bool *has_times, const struct ml_layout *layout,
                        packed *in, co_sha256 *hash);
/* The titles of these movies in UTF-8, [items->n], in `pool`; NULL where the file has none. */
co_err ml_read_titles(const char **out, const ml_ids *items, const ml_files *files, co_pool *pool);

co_err ml_parse_titles(const char **out, const ml_ids *items, const struct ml_layout *layout, packed *in,
                       co_pool *pool);

/* Sorts the ids that occur, and replaces each by its row. */
co_err ml_number(ml_ids *users, ml_ids *items, ml_rating *ratings, uint32_t n);
bool ml_row_of(const ml_ids *ids, uint32_t id, uint32_t *row);

/* What each user has rated, by user and then by item, both rising: the rows of user u are
 * item[start[u]] ... item[start[u + 1] - 1]. CO_EINPUT: a user rates an item twice. */
typedef struct ml_seen {
    uint32_t *start; /* [users + 1] */
    uint32_t *item;  /* [n] */
} ml_seen;
co_err ml_list_seen(ml_seen *out, const ml_rating *ratings, uint32_t n, const ml_ids *users,
                    const ml_ids *items);
bool ml_has_seen(const ml_seen *seen, uint32_t user, uint32_t item);

#endif
