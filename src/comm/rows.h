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

/* Bytes of scratch for a sum of up to `total` rows in all its parts together, of `width` values each. */
size_t co_rows_scratch(size_t total, size_t width);

/* out = the sum of part[0..n), which are in ascending order of `leaf` and lie apart from `out`. There must be
 * room for every row in `out`: `cap` rows. The parts do not change, so this can be repeated. */
void co_rows_sum(const co_rows *out, size_t cap, const co_rows_of *part, int n, size_t width, void *scratch);

#endif
