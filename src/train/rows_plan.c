/* rows_plan.c -- sizes and places of row-sparse gradients, decided before the run. */
#include "train/plan_int.h"
#include "train/regions_int.h"

enum { PIECE = 4096 }; /* elements of a piece, about: what is journalled and copied aside at once */

static size_t most_rows(const co_plan *plan, int list)
{
    size_t most = 0;

    for (int i = 0; i < plan->train.n; i++) {
        size_t rows = co_exec_rows(plan->train.e[i].exec, list);
        most = rows > most ? rows : most;
    }
    return most;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A table of as many rows that a slice looks up as often is likely looked up by the same indices. If it is not, sums
 * only take longer. */
static int like_before(const rows_plan *all, int list)
{
    for (int k = 0; k < list; k++)
        if (all->list[k].rows == all->list[list].rows && all->list[k].leaf_cap == all->list[list].leaf_cap)
            return all->list[k].order;
    return list;
}

static void plan_list(const co_plan *plan, rows_plan *all, int entry, row_plan *list)
{
    const co_entry *e = &plan->layout->entry[entry];

    *list = (row_plan){.entry = entry, .rows = (size_t)e->shape.d[0], .width = co_entry_width(e)};
    list->leaf_cap = most_rows(plan, e->list);
    list->cap = least(list->rows, (size_t)plan->slices * list->leaf_cap);
    list->leaf_at = all->leaf_elements;
    list->sum_at = all->sum_elements;
    list->piece = list->width < PIECE ? PIECE / list->width : 1;
    list->ranges = (list->rows + list->piece - 1) / list->piece;
    list->first_range = all->ranges;
    list->first_piece = all->pieces;

    size_t scratch = co_rows_scratch(list->width);
    all->leaf_elements += co_rows_elements(list->leaf_cap, list->width);
    all->sum_elements += co_rows_elements(list->cap, list->width);
    all->ranges += list->ranges;
    /* The average of the weights needs every row of the table. */
    all->pieces += plan->ema >= 0 ? list->ranges : (list->cap + list->piece - 1) / list->piece;
    if (list->piece * list->width > all->piece_elements)
        all->piece_elements = list->piece * list->width;
    if (scratch > all->sum_scratch)
        all->sum_scratch = scratch;
}

static void plan_orders(const co_plan *plan, rows_plan *all)
{
    for (int k = 0; k < all->n; k++) {
        row_plan *list = &all->list[k];
        list->order = like_before(all, k);
        list->order_at = list->order < k ? all->list[list->order].order_at : all->order_bytes;
        if (list->order == k)
            all->order_bytes += co_rows_order_bytes((size_t)plan->slices * list->leaf_cap);
    }
}

co_err plan_rows(co_plan *plan)
{
    const co_layout *layout = plan->layout;
    rows_plan *all = &plan->rows;

    if (layout->lists > MAX_LISTS)
        return co_fail(CO_EINPUT, "model=%s has %d row-sparse parameters; at most %d are possible",
                       plan->spec.model->name, layout->lists, MAX_LISTS);
    *all = (rows_plan){.n = layout->lists};
    for (int i = 0; i < layout->n; i++) {
        if (!layout->entry[i].sparse)
            continue;
        row_plan *list = &all->list[layout->entry[i].list];
        plan_list(plan, all, i, list);
        if (list->leaf_cap > CO_ROWS_MOST)
            return co_fail(CO_EINPUT,
                           "a slice may touch %zu rows of '%s', more than %d: take more trainer.slices",
                           list->leaf_cap, layout->entry[i].name, CO_ROWS_MOST);
    }
    plan_orders(plan, all);
    return CO_OK;
}

void rows_of_leaf(const co_plan *plan, const struct regions *regions, int leaf, co_rows rows[MAX_LISTS])
{
    float *lists = regions->leaf_rows + (size_t)leaf * plan->rows.leaf_elements;

    for (int k = 0; k < plan->rows.n; k++)
        rows[k] = co_rows_in(lists + plan->rows.list[k].leaf_at, plan->rows.list[k].leaf_cap);
}

co_rows rows_of_sum(const co_plan *plan, const struct regions *regions, int list)
{
    const row_plan *of = &plan->rows.list[list];

    return co_rows_in(regions->sum_rows + of->sum_at, of->cap);
}

/* Padding after a table counts as part of its last range. */
size_t range_of_offset(const co_plan *plan, size_t offset, size_t *end)
{
    int k = plan->rows.n - 1;

    while (k > 0 && plan->layout->entry[plan->rows.list[k].entry].offset > offset)
        k--;
    const row_plan *list = &plan->rows.list[k];
    size_t start = plan->layout->entry[list->entry].offset, size = list->piece * list->width;
    size_t range = least((offset - start) / size, list->ranges - 1);
    size_t next =
        k + 1 < plan->rows.n ? plan->layout->entry[plan->rows.list[k + 1].entry].offset : plan->layout->count;
    *end = range + 1 < list->ranges ? start + (range + 1) * size : next;
    return list->first_range + range;
}

size_t range_span(const co_plan *plan, size_t range, size_t *lo)
{
    int k = plan->rows.n - 1;

    while (plan->rows.list[k].first_range > range)
        k--;
    const row_plan *list = &plan->rows.list[k];
    const co_entry *entry = &plan->layout->entry[list->entry];
    size_t size = list->piece * list->width, at = (range - list->first_range) * size;

    *lo = entry->offset + at;
    return least(size, entry->count - at);
}

bool rows_are_sound(const co_plan *plan, float *lists, bool sum)
{
    for (int k = 0; k < plan->rows.n; k++) {
        const row_plan *of = &plan->rows.list[k];
        size_t cap = sum ? of->cap : of->leaf_cap;
        co_rows rows = co_rows_in(lists + (sum ? of->sum_at : of->leaf_at), cap);
        if (*rows.count > cap)
            return false;
        for (uint32_t i = 0; i < *rows.count; i++)
            if (rows.row[i] >= of->rows || (i > 0 && rows.row[i] <= rows.row[i - 1]))
                return false;
    }
    return true;
}
