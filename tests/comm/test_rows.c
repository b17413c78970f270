/* test_rows.c -- sums of row-sparse gradients: against a tree over whole tables in which absent rows are
 * marked, and against themselves, however the leaves were folded before. */
#include "comm/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "harness.h"

enum { MOST_LEAVES = 32, V = 23, CAP = V, MOST_WIDTH = 17 };

struct leaves {
    int n;
    size_t width;
    bool present[MOST_LEAVES][V];
    float table[MOST_LEAVES][V * MOST_WIDTH];
    co_rows_of part[MOST_LEAVES];
};

static co_rows new_rows(size_t width)
{
    return co_rows_in(aligned_alloc(64, co_rows_elements(CAP, width) * sizeof(float)), CAP);
}

/* Each leaf has about `share` of 256 of the rows; some values are -0.0, which an addition of zero would
 * lose. */
static void draw_leaves(struct leaves *all, int n, size_t width, uint32_t share)
{
    all->n = n;
    all->width = width;
    for (int leaf = 0; leaf < n; leaf++) {
        co_rows rows = new_rows(width);
        uint32_t count = 0;
        for (uint32_t row = 0; row < V; row++) {
            uint32_t u[4];
            co_rng_draw(u, co_rng_key_make(7, CO_RNG_TEST), (uint32_t)n, share, (uint32_t)leaf, row);
            all->present[leaf][row] = u[0] % 256 < share;
            float *value = all->table[leaf] + row * width;
            co_rng_uniform(value, width, -1, 1, co_rng_key_make(8, CO_RNG_TEST), row, share, (uint32_t)leaf);
            if (u[1] % 4 == 0)
                value[u[2] % width] = -0.0f;
            if (!all->present[leaf][row])
                continue;
            rows.row[count] = row;
            memcpy(rows.value + count++ * width, value, width * sizeof *value);
        }
        *rows.count = count;
        all->part[leaf] = (co_rows_of){rows, leaf};
    }
}

static void free_leaves(struct leaves *all)
{
    for (int leaf = 0; leaf < all->n; leaf++)
        free(all->part[leaf].rows.count);
}

/* Row `row` of the node over leaves [from, from + n). False: absent. */
static bool node(const struct leaves *all, uint32_t row, int from, int n, float *out)
{
    float right[MOST_WIDTH];

    if (n == 1) {
        memcpy(out, all->table[from] + row * all->width, all->width * sizeof *out);
        return all->present[from][row];
    }
    bool has_left = node(all, row, from, n / 2, out);
    if (!node(all, row, from + n / 2, n / 2, has_left ? right : out))
        return has_left;
    for (size_t i = 0; has_left && i < all->width; i++)
        out[i] += right[i];
    return true;
}

static void check_sum(const struct leaves *all, const co_rows *sum, const char *how)
{
    uint32_t at = 0;

    for (uint32_t row = 0; row < V; row++) {
        float want[MOST_WIDTH];
        if (!node(all, row, 0, all->n, want))
            continue;
        CHECK(at < *sum->count && sum->row[at] == row, "%s, %d leaves: row %u is missing", how, all->n, row);
        CHECK(memcmp(sum->value + at * all->width, want, all->width * sizeof *want) == 0,
              "%s, %d leaves: row %u has other bits", how, all->n, row);
        at++;
    }
    CHECK(*sum->count == at, "%s: %u rows, not %u", how, *sum->count, at);
}

/* Folds aligned groups of `group` leaves into nodes first, as a slot or another host would. */
static void check_folded(const struct leaves *all, int group, co_rows_order *order, void *scratch)
{
    co_rows_of part[MOST_LEAVES];
    co_rows sum = new_rows(all->width);
    int n = 0;

    for (int leaf = 0; leaf < all->n; leaf += group, n++) {
        part[n] = (co_rows_of){new_rows(all->width), leaf};
        co_rows_sum(&part[n].rows, CAP, all->part + leaf, group, all->width, order, scratch);
    }
    co_rows_sum(&sum, CAP, part, n, all->width, order, scratch);
    check_sum(all, &sum, "folded");
    for (int i = 0; i < n; i++)
        free(part[i].rows.count);
    free(sum.count);
}

TEST(a_sum_of_row_lists_has_the_bits_of_the_tree_over_whole_tables)
{
    static const size_t widths[] = {1, 4, 17};
    static const uint32_t shares[] = {0, 10, 100, 256};
    static struct leaves all;

    for (size_t w = 0; w < CO_COUNT(widths); w++)
        for (size_t s = 0; s < CO_COUNT(shares); s++)
            for (int n = 1; n <= MOST_LEAVES; n *= 2) {
                void *scratch = malloc(co_rows_scratch(widths[w]));
                co_rows_order order = {.key = malloc(co_rows_order_bytes((size_t)n * V) + 1)};
                co_rows sum = new_rows(widths[w]);
                draw_leaves(&all, n, widths[w], shares[s]);
                co_rows_sum(&sum, CAP, all.part, n, widths[w], &order, scratch);
                check_sum(&all, &sum, "at once");
                co_rows_sum(&sum, CAP, all.part, n, widths[w], &order, scratch);
                check_sum(&all, &sum, "in the order of the sum before");
                for (int group = 2; group <= n; group *= 2)
                    check_folded(&all, group, &order, scratch);
                free(sum.count);
                free(order.key);
                free(scratch);
                free_leaves(&all);
            }
}
