/* rows.h -- adds row-sparse gradients (tensor/rows.h) along the tree of comm/tree.h.
 *
 * A list belongs to a node of the tree and is named by the node's first leaf. The sum of several nodes has
 * every row that one of them has. A row that one node has is copied, to the bit; a row that several have is
 * added exactly as the tree adds dense gradients: left + right, where a child without the row is the
 * identity. So the sum does not depend on which nodes the leaves were folded into before.
 */
#ifndef CO_COMM_ROWS_H
#define CO_COMM_ROWS_H

#include <stddef.h>

#include "tensor/rows.h"

enum { CO_ROWS_MOST = 1 << 24 }; /* rows in one part */

typedef struct co_rows_of {
    co_rows rows;
    int leaf; /* the first leaf below the node */
} co_rows_of;

/* The order in which the rows of all parts are added up. Two tables that are looked up by the same indices have lists
 * with the same rows: the second sum finds the order of the first, and does not sort again. The caller fills in `key`
 * with memory of its own and sets the rest to zero; it may do so before any sum. */
typedef struct co_rows_order {
    uint64_t *key;    /* co_rows_order_bytes */
    uint64_t *sorted; /* somewhere in it */
    size_t total;     /* rows in all parts; 0: nothing is known */
} co_rows_order;
size_t co_rows_order_bytes(size_t total); /* for up to `total` rows in all parts together */

/* Bytes of scratch for a sum of rows of `width` values. */
size_t co_rows_scratch(size_t width);

/* out = the sum of part[0..n), which are in ascending order of `leaf` and lie apart from `out`. There must be
 * room for every row in `out`: `cap` rows. The parts do not change, so this can be repeated. */
void co_rows_sum(const co_rows *out, size_t cap, const co_rows_of *part, int n, size_t width,
                 co_rows_order *order, void *scratch);

#endif
