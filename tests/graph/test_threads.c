/* An executor with a team: the same bits for any number of threads, and small calls are left alone. Two executors at
 * once: one adds to what the other has written. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "graph/graph_int.h"
#include "graph/rig.h"
#include "harness.h"

static void same_run(const rig *a, const rig *b, const char *what)
{
    CHECK(memcmp(a->b.leaf, b->b.leaf, a->leaf_len) == 0, "%s: other gradients", what);
    CHECK(memcmp(a->stat, b->stat, sizeof a->stat) == 0, "%s: other statistics", what);
    CHECK(memcmp(a->b.output, b->b.output, co_exec_info_of(a->e)->output_bytes) == 0, "%s: other output", what);
}

static void any_team_agrees(const char *level, bool training)
{
    static const int sizes[] = {2, 3, 5};
    co_graph *g = rig_net(training);
    rig one;
    char what[64];

    rig_open(&one, g, rig_kernels(level));
    rig_fill(&one, 9);
    rig_run(&one);
    CHECK(co_exec_info_of(one.e)->split_calls == 0, "one thread divides nothing");
    for (size_t t = 0; t < CO_COUNT(sizes); t++) {
        rig many;
        snprintf(what, sizeof what, "%s, %d threads", level, sizes[t]);
        rig_open_team(&many, g, rig_kernels(level), sizes[t], 1);
        const co_exec_info *info = co_exec_info_of(many.e);
        CHECK(one.k->space ? info->split_calls == 0 : info->split_calls > info->calls / 2,
              "%s: %d of %d calls are divided", what, info->split_calls, info->calls);
        CHECK(info->work_bytes >= co_exec_info_of(one.e)->work_bytes, "%s: scratch for one thread", what);
        rig_fill(&many, 9);
        for (int round = 0; round < 3; round++) {
            rig_poison(&many, 0xff);
            rig_run(&many);
            same_run(&one, &many, what);
        }
        rig_close(&many);
    }
    rig_close(&one);
    co_graph_free(g);
}

TEST(an_executor_gives_the_same_bits_with_any_team_tsan)
{
    any_team_agrees("auto", true);
    any_team_agrees("ref", true);
    any_team_agrees("auto", false);
}

TEST(a_few_rows_of_a_large_table_are_not_worth_a_second_thread)
{
    co_graph *g;
    rig r;

    CHECK_OK(co_graph_new(&g, true));
    co_node *table = co_param(g, "t", CO_SHAPE(100000, 32), (co_init){CO_INIT_ZERO, 0}, CO_PARAM_SPARSE);
    co_graph_loss(g, co_embedding(g, table, co_input(g, "below 100000", CO_I32, CO_SHAPE(16))));
    rig_open_team(&r, g, rig_kernels("auto"), 4, 0);
    CHECK(co_exec_info_of(r.e)->split_calls == 0, "%d calls are divided", co_exec_info_of(r.e)->split_calls);
    rig_close(&r);
    co_graph_free(g);
}

TEST(a_memory_space_is_computed_in_by_one_thread)
{
    any_team_agrees("far", true);
}

/* [n,n] x [n,n], and the sum of the result. */
static co_graph *product(int64_t n)
{
    co_graph *g;

    CHECK_OK(co_graph_new(&g, false));
    co_node *x = co_input(g, "x", CO_F32, CO_SHAPE(n, n));
    co_node *y = co_matmul(g, x, x, false, false);
    co_graph_stat(g, 0, co_sum_all(g, y));
    co_graph_output(g, y);
    return g;
}

TEST(a_call_is_divided_by_its_size_and_a_single_number_never)
{
    static const struct {
        int64_t n;
        int threads, divided;
    } rows[] = {{8, 4, 1}, {64, 2, 2}, {64, 4, 4}, {256, 64, 64}, {256, 1, 1}};

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        co_graph *g = product(rows[i].n);
        co_exec *e;
        CHECK_OK(co_exec_new_team(&e, g, rig_kernels("auto"), rows[i].threads, 0));
        CHECK(e->info.calls == 2 && e->call[0].threads == rows[i].divided && e->call[1].threads == 1,
              "%lld x %lld for %d threads: %d and %d", (long long)rows[i].n, (long long)rows[i].n,
              rows[i].threads, e->call[0].threads, e->call[1].threads);
        co_exec_free(e);
        co_graph_free(g);
    }
}

/* A team may be larger or smaller than the executor was made for. */
TEST(an_executor_runs_with_a_team_of_another_size)
{
    co_graph *g = rig_net(true);
    rig one, many;

    rig_open(&one, g, rig_kernels("auto"));
    rig_open_team(&many, g, rig_kernels("auto"), 4, 1);
    rig_fill(&one, 9);
    rig_fill(&many, 9);
    rig_run(&one);
    co_team *four = many.b.team;
    many.b.team = NULL;
    rig_run(&many);
    same_run(&one, &many, "no team");
    one.b.team = four;
    rig_run(&one);
    one.b.team = NULL;
    many.b.team = four;
    same_run(&one, &many, "a team for an executor of one thread");
    rig_close(&many);
    rig_close(&one);
    co_graph_free(g);
}

static void *run_beside(void *ctx)
{
    rig *r = ctx;

    co_exec_run(r->e, &r->b, &r->run, NULL);
    return NULL;
}

static void least_call(void *ctx, int call, size_t offset, size_t count)
{
    uint32_t *least = ctx;

    (void)offset;
    (void)count;
    *least = (uint32_t)call < *least ? (uint32_t)call : *least;
}

/* The second slice begins first. Where it would add a gradient, the first has none yet. */
static void runs_beside_its_sibling(co_graph *g, int spin)
{
    co_bell done[2] = {0};
    rig first, second, both;
    uint32_t writes = UINT32_MAX;
    pthread_t thread;

    rig_open(&first, g, rig_kernels("auto"));
    rig_open(&second, g, rig_kernels("auto"));
    rig_open(&both, g, rig_kernels("auto"));
    rig_fill(&both, 9);
    rig_run(&both);
    rig_fill(&both, 10);
    both.b.add = true;
    rig_run(&both);

    rig_fill(&first, 9);
    rig_fill(&second, 10);
    void *own_leaf = second.b.leaf;
    second.b.leaf = first.b.leaf;
    second.b.add = true;
    first.b.pace.done = &done[0];
    second.b.pace.before = &done[0];
    second.b.pace.done = &done[1];
    second.b.pace.spin = spin;
    CHECK(pthread_create(&thread, NULL, run_beside, &second) == 0, "a thread");
    co_exec_leaf_parts(second.e, 0, co_exec_info_of(second.e)->calls, least_call, &writes);
    while (atomic_load(&done[1].word) < writes)
        sched_yield();
    co_exec_run(first.e, &first.b, &first.run, NULL);
    pthread_join(thread, NULL);
    size_t dense = co_exec_layout(first.e)->dense * sizeof(float);
    CHECK(memcmp(first.b.leaf, both.b.leaf, dense) == 0, "spin %d: other gradients", spin);
    CHECK(memcmp(second.stat, both.stat, sizeof both.stat) == 0, "spin %d: other statistics", spin);
    second.b.leaf = own_leaf;
    rig_close(&both);
    rig_close(&second);
    rig_close(&first);
    co_graph_free(g);
}

TEST(a_slice_beside_its_sibling_adds_what_one_after_the_other_would_tsan)
{
    runs_beside_its_sibling(rig_net(true), CO_TEAM_SPIN);
    runs_beside_its_sibling(rig_net(true), 0);
}

/* The gradient of `b` is a copy of that of `a`, which lies in the leaf: nobody may add to it before it is copied. */
static co_graph *sum_of_two(void)
{
    co_graph *g;

    CHECK_OK(co_graph_new(&g, true));
    co_node *a = co_param(g, "a", CO_SHAPE(64, 64), (co_init){CO_INIT_ZERO, 0}, 0);
    co_node *b = co_param(g, "b", CO_SHAPE(64, 64), (co_init){CO_INIT_ZERO, 0}, 0);
    co_node *x = co_input(g, "x", CO_F32, CO_SHAPE(64, 64));
    co_node *y = co_matmul(g, x, co_add(g, a, b), false, false);
    co_graph_loss(g, co_mse(g, y, co_input(g, "t", CO_F32, CO_SHAPE(64, 64))));
    return g;
}

TEST(a_gradient_in_the_leaf_that_is_read_again_is_added_to_afterwards_tsan)
{
    co_graph *g = sum_of_two();
    co_exec *e;

    CHECK_OK(co_exec_new(&e, g, rig_kernels("auto")));
    CHECK(co_exec_reads_leaf(e), "a call reads what another wrote to the leaf");
    co_exec_free(e);
    co_graph_free(g);
    for (int i = 0; i < 50; i++)
        runs_beside_its_sibling(sum_of_two(), i % 2 ? CO_TEAM_SPIN : 0);
    CHECK_OK(co_exec_new(&e, g = rig_net(true), rig_kernels("auto")));
    CHECK(!co_exec_reads_leaf(e), "in this net none does");
    co_exec_free(e);
    co_graph_free(g);
}
