/* rows_int.h -- row-sparse gradients in a step: lists of rows from the leaves to the optimiser. Seen by this
 * room only.
 *
 * A leaf's list lies at the leaf's own place, whoever computes the leaf. The sum of all leaves' lists has a
 * place of its own. The optimiser goes through the sum in pieces of `piece` rows, which are claimed,
 * journalled and marked done like the chunks of dense gradients. The same number of rows of the table,
 * whether they are in the list or not, is the unit in which tables are copied aside for a checkpoint, and in
 * which the average of the weights is brought up to date (that needs every row, so with it a piece is a range
 * of the table).
 */
#ifndef CO_TRAIN_ROWS_INT_H
#define CO_TRAIN_ROWS_INT_H

#include "comm/rows.h"
#include "tensor/layout.h"
#include "train/train.h"

enum { MAX_LISTS = 64 };

/* What is planned for one row-sparse entry. Sizes in elements of 4 bytes. */
typedef struct row_plan {
    int entry;              /* of the layout */
    size_t rows, width;     /* of the table */
    size_t leaf_cap, cap;   /* the most rows in the list of a leaf, of the sum */
    size_t leaf_at, sum_at; /* where the list lies among a leaf's lists, among the sums */
    size_t piece;           /* rows */
    size_t ranges;          /* pieces of the table */
    size_t first_range;     /* its first piece among those of all tables: copies aside */
    size_t first_piece;     /* its first piece among those of all lists: claims of apply */
    int order;              /* the list whose order its sum tries first; see rows.c */
    size_t order_at;        /* where that lies in a rank's scratch, bytes */
} row_plan;

typedef struct rows_plan {
    int n;
    row_plan list[MAX_LISTS];
    size_t leaf_elements, sum_elements; /* of all lists of a leaf, of the sum */
    size_t ranges, pieces;              /* of all tables, of all lists */
    size_t piece_elements;              /* the most in one part of a piece: weights, or a moment */
    size_t order_bytes, sum_scratch;    /* a rank's scratch: the orders of lists, then what a sum needs */
} rows_plan;

struct rank;
struct regions;

co_err plan_rows(co_plan *plan); /* needs layout, executors, slices, moments */
/* The lists of a leaf, for an executor: rows[plan->rows.n]. */
void rows_of_leaf(const co_plan *plan, const struct regions *regions, int leaf, co_rows rows[MAX_LISTS]);
co_rows rows_of_sum(const co_plan *plan, const struct regions *regions, int list);
/* The copy aside that holds element `offset` of a row-sparse entry, and the end of what it covers. */
size_t range_of_offset(const co_plan *plan, size_t offset, size_t *end);
/* The elements of a range of the tables: *lo, and how many. */
size_t range_span(const co_plan *plan, size_t range, size_t *lo);
/* Lists that came from another host, of a leaf or the sums: counts within bounds, rows ascending and in the
 * table. */
bool rows_are_sound(const co_plan *plan, float *lists, bool sum);

/* Adds up list `list` of this step. The chunk_stat of the sum goes to its place after those of the chunks. */
void sum_rows(struct rank *rank, int64_t step, int list);

/* The pieces of this step: how many there are, and the number of the i-th among all claims of apply. */
size_t pieces_of_step(const struct rank *rank);
size_t piece_number(const struct rank *rank, size_t i);

/* A piece: rows of the sum, and with an average of the weights the range of the table that they lie in. */
typedef struct piece {
    const row_plan *of;
    const co_entry *entry;
    size_t n;                /* rows of the list */
    const uint32_t *row;     /* [n] */
    const float *value;      /* [n, width] */
    size_t from_row, to_row; /* rows of the table; to_row = 0: only those in the list */
} piece;
piece piece_of(const struct rank *rank, size_t number);

/* apply_rows.c: what apply.c does with a piece, in this order. put_back comes before the others, if the
 * journal holds this piece. */
struct decision;
void rows_put_back(struct rank *rank, size_t number);
void rows_set_aside(struct rank *rank, size_t number);
void rows_keep(struct rank *rank, size_t number);
void rows_update(struct rank *rank, size_t number, const struct decision *decided);

#endif
