/* run_read_int.h -- what the files of the run reader share: run_read.c, run_series.c, run_line.c,
 * run_files.c. */
#ifndef CO_TRACK_RUN_READ_INT_H
#define CO_TRACK_RUN_READ_INT_H

#include <sys/types.h>
#include <time.h>

#include "track/run_read.h"
#include "track/track_int.h"

enum { NAMES_MOST = 10000, NAME_SLOTS = 32768 };

/* One scalar of the record. The name is not terminated and lives as long as the line. */
typedef struct scalar {
    const char *name;
    size_t name_len;
    co_point at;
} scalar;

/* run_line.c: the lines that we write ourselves, read without building a JSON tree. True only if the line is
 * one of these, to the letter; every other line, also a good one, is left to the JSON parser. */
bool scalar_line_read(scalar *out, const char *line, size_t len);
/* The same from a parsed line: true if it has name, step and value, and so is a scalar. */
bool scalar_json_read(scalar *out, const json_t *line);

/* run_series.c */
typedef struct series {
    co_series shown; /* .point is `points` */
    co_point *points;
    size_t room;
    uint64_t width; /* of a stretch that keeps its least and greatest value; 0: not thinned yet */
    bool unsorted;
} series;

typedef struct series_table {
    series *all; /* [n] */
    size_t n, room;
    uint16_t *slots;            /* [NAME_SLOTS] index into `all` plus 1, by hash of the name */
    size_t points_most, points; /* of one series; of all together, as allocated */
    co_point *spare;            /* [points_most] for sorting */
} series_table;

co_err series_add(series_table *t, const scalar *s); /* a name too many is ignored */
void series_settle(series_table *t);                 /* sorts what came out of order */
series *series_find(const series_table *t, const char *name, size_t len);
void series_fini(series_table *t);

/* run_files.c: header.json and its like, read again when they have changed. */
typedef struct seen_file {
    bool there;
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
} seen_file;

typedef struct run_files {
    seen_file seen[4];
    json_t *header, *summary, *blame;
    char *config;
} run_files;

co_err files_more(run_files *f, const char *dir);
void files_fini(run_files *f);
co_err files_state(co_run_state *out, const run_files *f, const char *dir);

#endif
