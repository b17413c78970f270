/* test_pairs.c -- pair_score against the operators that it stands for: the same bits forward and backward, on every
 * provider, for widths and numbers of pairs around every vector's. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "graph/rig.h"
#include "harness.h"

enum { USERS = 23, ITEMS = 11 };

static co_node *table(co_graph *g, const char *name, int64_t rows, int64_t width)
{
    return co_param(g, name, CO_SHAPE(rows, width), (co_init){CO_INIT_UNIFORM, 1}, CO_PARAM_SPARSE);
}

/* As model=factors builds it with dense gradients, but with row-sparse ones. */
static co_node *by_operators(co_graph *g, const co_pair *of, int64_t width)
{
    co_node *ones = co_fill(g, CO_SHAPE(1, width), 1);
    co_node *product =
        co_mul(g, co_embedding(g, of->table[0], of->idx[0]), co_embedding(g, of->table[1], of->idx[1]));
    co_node *both =
        co_add(g, co_embedding(g, of->biases[0], of->idx[0]), co_embedding(g, of->biases[1], of->idx[1]));

    return co_add(g, co_add(g, co_linear(g, product, ones, NULL), both), of->bias);
}

/* Some indices are past the last row. */
static co_graph *net(bool fused, int64_t n, int64_t width)
{
    co_graph *g;

    CHECK_OK(co_graph_new(&g, true));
    co_pair of = {
        .table = {table(g, "a", USERS, width), table(g, "b", ITEMS, width)},
        .biases = {table(g, "a_bias", USERS, 1), table(g, "b_bias", ITEMS, 1)},
        .bias = co_param(g, "bias", CO_SHAPE(1), (co_init){CO_INIT_UNIFORM, 1}, 0),
        .idx = {co_input(g, "upto 23", CO_I32, CO_SHAPE(n)), co_input(g, "upto 11", CO_I32, CO_SHAPE(n))}};
    co_node *y = fused ? co_pair_score(g, &of) : by_operators(g, &of, width);
    co_node *loss = co_mse(g, y, co_input(g, "y", CO_F32, CO_SHAPE(n, 1)));
    co_graph_loss(g, loss);
    co_graph_stat(g, 0, co_sum_all(g, loss));
    return g;
}

static void check_alike(const co_kernels *k, int64_t n, int64_t width, uint64_t seed)
{
    rig r[2];

    for (int fused = 0; fused < 2; fused++) {
        co_graph *g = net(fused, n, width);
        rig_open(&r[fused], g, k);
        rig_fill(&r[fused], seed);
        rig_run(&r[fused]);
        co_graph_free(g);
    }
    CHECK(memcmp(r[0].stat, r[1].stat, sizeof(double)) == 0, "%s, %lld pairs of width %lld: another loss",
          k->level, (long long)n, (long long)width);
    CHECK(r[0].leaf_len == r[1].leaf_len && memcmp(r[0].b.leaf, r[1].b.leaf, r[0].leaf_len) == 0,
          "%s, %lld pairs of width %lld: another gradient", k->level, (long long)n, (long long)width);
    for (int list = 0; list < 4; list++)
        CHECK(*r[0].rows[list].count == *r[1].rows[list].count &&
                  memcmp(r[0].rows[list].row, r[1].rows[list].row,
                         *r[0].rows[list].count * sizeof(uint32_t)) == 0,
              "%s, %lld pairs of width %lld: list %d has other rows", k->level, (long long)n,
              (long long)width, list);
    rig_close(&r[0]);
    rig_close(&r[1]);
}

TEST(pair_score_has_the_bits_of_the_operators_that_it_stands_for)
{
    static const char *const levels[] = {"ref", "fma128", "avx2", "far"};
    static const int64_t pairs[] = {1, 3, 8, 16, 21, 60}, widths[] = {1, 7, 8, 32, 33, 67};
    const co_kernels *k;

    for (size_t l = 0; l < CO_COUNT(levels); l++) {
        if (co_kernels_get(&k, levels[l]) != CO_OK)
            continue; /* this CPU lacks it */
        for (size_t n = 0; n < CO_COUNT(pairs); n++)
            for (size_t w = 0; w < CO_COUNT(widths); w++)
                check_alike(k, pairs[n], widths[w], 1 + n);
    }
}

TEST(pair_score_refuses_tables_that_are_not_row_sparse)
{
    co_graph *g;

    CHECK_OK(co_graph_new(&g, true));
    co_node *dense = co_param(g, "d", CO_SHAPE(ITEMS, 4), (co_init){CO_INIT_UNIFORM, 1}, 0);
    co_pair of = {.table = {table(g, "a", USERS, 4), dense},
                  .biases = {table(g, "a_bias", USERS, 1), table(g, "b_bias", ITEMS, 1)},
                  .bias = co_param(g, "bias", CO_SHAPE(1), (co_init){CO_INIT_UNIFORM, 1}, 0),
                  .idx = {co_input(g, "u", CO_I32, CO_SHAPE(3)), co_input(g, "i", CO_I32, CO_SHAPE(3))}};
    CHECK(!co_pair_score(g, &of) && co_graph_error(g) == CO_EINPUT, "it was taken");
    CHECK(strstr(co_errmsg(), "row-sparse"), "said: %s", co_errmsg());
    co_graph_free(g);
}
