/* csv_int.h -- the table that both styles of the csv tracker print. */
#ifndef CO_TRACK_CSV_INT_H
#define CO_TRACK_CSV_INT_H

#include "track/name_list_int.h"
#include "track/track_int.h"

struct csv_cell {
    int64_t step;
    uint32_t name : 24, row : 8; /* row: of those with the same step; always 0 in the style `table` */
    uint32_t turn;               /* place in the file */
    double value;
};

struct csv_table {
    char *folder, *path; /* csv, csv/metrics.csv; or csv/version_0 */
    struct csv_cell *cells;
    size_t n, room;
    name_list names; /* the columns */
    bool lightning;
    int64_t steps_per_epoch; /* 0: not known */
};

void csv_add_text(co_str *out, const char *text); /* quoted if needed */

/* csv_lightning.c */
/* Which row of its step a value belongs to: what Lightning logs together. */
int csv_row_of(const char *name);
/* The cells are sorted by step, row and turn. */
co_err csv_print_lightning(co_str *out, const struct csv_table *t);

#endif
