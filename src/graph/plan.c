/* plan.c -- places buffers in memory according to when they are alive.
 *
 * A buffer is alive from the call that writes it to the last call that reads it. Buffers alive at the same
 * call must not overlap; others may. Buffers are placed largest first, each at the lowest offset where it
 * overlaps no earlier one that is alive at the same time (Pisarchyk and Lee, 2020: "greedy by size").
 *
 *     offset
 *       |  ######            ####      #### takes the place of ###### after its death
 *       |  =====================
 *       +---------------------------> call
 *
 * Cost: n^2 in the number of buffers, once per executor.
 */
#include "graph/graph_int.h"

#include <stdlib.h>

static int larger_first(const void *a, const void *b)
{
    const struct buffer *x = *(struct buffer *const *)a, *y = *(struct buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : 1; /* both are in one array, so this is a total order that is the same in every run */
}

static bool together(const struct buffer *a, const struct buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

co_err plan_buffers(struct buffer *b, int n, size_t *work_bytes, size_t *naive_bytes)
{
    struct buffer **order = co_array((size_t)n, sizeof(struct buffer *));  /* largest first */
    struct buffer **placed = co_array((size_t)n, sizeof(struct buffer *)); /* lowest offset first */

    *work_bytes = *naive_bytes = 0;
    for (int i = 0; order && i < n; i++)
        order[i] = &b[i];
    if (!order || !placed) {
        co_free(order);
        co_free(placed);
        return CO_ENOMEM;
    }
    qsort(order, (size_t)n, sizeof(struct buffer *), larger_first);
    for (int i = 0; i < n; i++) {
        struct buffer *x = order[i];
        size_t len = round_up(x->bytes);
        x->offset = 0;
        for (int j = 0; j < i; j++) { /* each buffer in the way pushes it up */
            if (!together(x, placed[j]) || placed[j]->offset + round_up(placed[j]->bytes) <= x->offset)
                continue;
            if (placed[j]->offset >= x->offset + len)
                break;
            x->offset = placed[j]->offset + round_up(placed[j]->bytes);
        }
        int at = i;
        for (; at > 0 && placed[at - 1]->offset > x->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = x;
        *naive_bytes += len;
        if (x->offset + len > *work_bytes)
            *work_bytes = x->offset + len;
    }
    co_free(order);
    co_free(placed);
    return CO_OK;
}
