/* rows.c -- row-sparse gradients in a step: adds up the leaves' lists, and cuts their sum into pieces.
 *
 * The leaves' lists are only read, so a sum whose rank died is simply made again. From the gate on the sum
 * does not change, so every rank, and every successor, cuts it into the same pieces.
 *
 * A rank remembers the order of the rows of its last sums (co_rows_order): a user's bias has the rows of the user's
 * factors. Whether the rows are the same is checked each time, so the memory needs no upkeep, and another rank's sum or
 * a successor without it has the same bits.
 */
#include "train/rank_int.h"

#include "optim/optim.h"

static co_rows_order *order_of(struct rank *rank, const row_plan *of)
{
    co_rows_order *order = &rank->order[of->order];

    order->key = (uint64_t *)(void *)((char *)rank->regions->row_scratch[rank->who.slot] + of->order_at);
    return order;
}

void sum_rows(struct rank *rank, int64_t step, int list)
{
    const co_plan *plan = rank->plan;
    const row_plan *of = &plan->rows.list[list];
    const co_cut *cut = &plan->cut[cut_of_step(plan, step)];
    co_rows sum = rows_of_sum(plan, rank->regions, list);
    co_rows_of part[CO_MAX_SLICES];
    int n = 0;

    for (int leaf = 0; leaf < plan->slices; leaf++) {
        uint32_t lo, hi;
        co_cut_range(cut, leaf, &lo, &hi);
        if (lo == hi)
            continue;
        float *lists = rank->regions->leaf_rows + (size_t)leaf * plan->rows.leaf_elements;
        part[n++] = (co_rows_of){co_rows_in(lists + of->leaf_at, of->leaf_cap), leaf};
    }
    if (!(rank->pc & PC_READY)) /* else another host gave the sum, and it is only to be measured */
        co_rows_sum(&sum, of->cap, part, n, of->width, order_of(rank, of),
                    (char *)rank->regions->row_scratch[rank->who.slot] + plan->rows.order_bytes);

    bool finite = true, frozen = plan->recipe.rule[of->entry].frozen;
    double squares = frozen ? 0 : co_sum_squares(sum.value, *sum.count * of->width, &finite);
    rank->regions->norm[step & 1][plan->chunks + (size_t)list] = (chunk_stat){squares, finite};
}

static size_t pieces_of_list(const struct rank *rank, int list)
{
    const co_plan *plan = rank->plan;
    const row_plan *of = &plan->rows.list[list];

    if (plan->ema >= 0)
        return of->ranges;
    if (plan->recipe.rule[of->entry].frozen)
        return 0;
    return (*rows_of_sum(plan, rank->regions, list).count + of->piece - 1) / of->piece;
}

size_t pieces_of_step(const struct rank *rank)
{
    size_t sum = 0;

    for (int k = 0; k < rank->plan->rows.n; k++)
        sum += pieces_of_list(rank, k);
    return sum;
}

size_t piece_number(const struct rank *rank, size_t i)
{
    int list = 0;

    for (size_t n; i >= (n = pieces_of_list(rank, list)); list++)
        i -= n;
    return rank->plan->rows.list[list].first_piece + i;
}

static uint32_t first_from(const co_rows *sum, size_t row)
{
    uint32_t lo = 0, hi = *sum->count;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (sum->row[mid] < row)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

piece piece_of(const struct rank *rank, size_t number)
{
    const co_plan *plan = rank->plan;
    int k = plan->rows.n - 1;

    while (plan->rows.list[k].first_piece > number)
        k--;
    const row_plan *of = &plan->rows.list[k];
    co_rows sum = rows_of_sum(plan, rank->regions, k);
    size_t from = (number - of->first_piece) * of->piece, to = from + of->piece;
    piece p = {.of = of, .entry = &plan->layout->entry[of->entry]};

    if (plan->ema >= 0) { /* a range of the table */
        p.from_row = from;
        p.to_row = to < of->rows ? to : of->rows;
        from = first_from(&sum, p.from_row);
        to = first_from(&sum, p.to_row);
    } else if (to > *sum.count) {
        to = *sum.count;
    }
    p.n = to - from;
    p.row = sum.row + from;
    p.value = sum.value + from * of->width;
    return p;
}
