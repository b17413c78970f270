/* test_exec.c -- compiled graphs: results checked by hand, leaves, memory spaces, sharing, running out of
 * memory. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/graph_int.h"
#include "graph/rig.h"
#include "harness.h"
#include "kernel/wide.h"

static co_node *P(co_graph *g, const char *name, co_shape s)
{
    return co_param(g, name, s, (co_init){CO_INIT_UNIFORM, 1}, 0);
}

static void set_state(rig *r, const char *name, const double *x, int n)
{
    const co_entry *e = co_layout_find(co_exec_layout(r->e), name);
    for (int i = 0; i < n; i++)
        rig_set(r, r->b.state, e->offset + (size_t)i, x[i]);
}

static void expect_leaf(const rig *r, const char *name, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        CHECK(rig_leaf(r, name, (size_t)i) == want[i], "d%s[%d] = %g, want %g", name, i,
              rig_leaf(r, name, (size_t)i), want[i]);
}

/* y = w x + b on two samples of two features, squared error. */
static co_graph *small(bool training)
{
    co_graph *g;
    CHECK_OK(co_graph_new(&g, training));
    co_node *x = co_input(g, "x", CO_F32, CO_SHAPE(2, 2)), *t = co_input(g, "t", CO_F32, CO_SHAPE(2, 1));
    co_node *y = co_linear(g, x, P(g, "fc.weight", CO_SHAPE(1, 2)), P(g, "fc.bias", CO_SHAPE(1)));
    co_node *loss = co_mse(g, y, t);
    co_graph_loss(g, loss);
    co_graph_stat(g, 1, co_sum_all(g, loss));
    co_graph_output(g, y);
    return g;
}

TEST(a_small_graph_gives_the_numbers_worked_out_by_hand)
{
    const char *levels[] = {"ref", "auto", "far"};
    for (size_t k = 0; k < CO_COUNT(levels); k++) {
        co_graph *g = small(true);
        rig r;
        rig_open(&r, g, rig_kernels(levels[k]));
        co_graph_free(g);
        set_state(&r, "fc.weight", (double[]){2, -1}, 2);
        set_state(&r, "fc.bias", (double[]){0.5}, 1);
        memcpy(rig_input(&r, "x"), (float[]){1, 2, 3, 4}, 16);
        memcpy(rig_input(&r, "t"), (float[]){1, 2}, 8);
        rig_run(&r); /* y = 0.5, 2.5; errors -0.5, 0.5 */
        const float *y = r.b.output;
        CHECK(y[0] == 0.5f && y[1] == 2.5f, "y %g %g", (double)y[0], (double)y[1]);
        CHECK(r.stat[1] == 0.5, "loss %g", r.stat[1]);
        expect_leaf(&r, "fc.weight", (double[]){2, 2}, 2);
        expect_leaf(&r, "fc.bias", (double[]){0}, 1);
        co_shape s = co_exec_output_shape(r.e);
        CHECK(s.nd == 2 && s.d[0] == 2 && s.d[1] == 1 && co_exec_info_of(r.e)->output_bytes == 8,
              "output shape");
        void *output = r.b.output;
        r.b.output = NULL; /* the caller does not want the output */
        rig_run(&r);
        r.b.output = output;
        rig_close(&r);
    }
}

TEST(flops_forward_calls_and_beat_are_counted)
{
    co_graph *g = small(true);
    rig r;
    _Atomic uint32_t beat = 0;
    rig_open(&r, g, rig_kernels("ref"));
    const co_exec_info *info = co_exec_info_of(r.e);
    /* forward and dw; x needs no gradient */
    CHECK(info->flops == 2 * 2 * 2 * 1 * 2, "flops %g", info->flops);
    CHECK(info->forward_calls == 3, "%d forward", info->forward_calls);
    CHECK(info->calls == 3 + 4, "%d calls", info->calls); /* fill, mse_grad, matmul_tn_sum, sum_rows */
    CHECK(info->input_bytes == 128, "inputs at 64-byte steps: %zu", info->input_bytes);
    co_exec_run(r.e, &r.b, &r.run, &beat);
    CHECK(beat == (uint32_t)info->calls, "beat %u", beat);
    size_t offset;
    co_dtype t;
    co_shape s;
    CHECK_FAILS(co_exec_input(r.e, "z", &offset, &t, &s), CO_EINPUT, "no input 'z'");
    co_graph_free(g);
    rig_close(&r);
}

TEST(evaluation_needs_no_leaf_and_runs_no_backward_pass)
{
    co_graph *g = rig_net(false);
    rig r;
    rig_open(&r, g, rig_kernels("ref"));
    rig_fill(&r, 4);
    for (int i = 0; i < 4; i++) /* a variance is positive */
        set_state(&r, "bn.running_var", (double[]){1, 2, 3, 4}, 4);
    void *leaf = r.b.leaf;
    r.b.leaf = NULL;
    rig_run(&r);
    r.b.leaf = leaf;
    CHECK(co_exec_info_of(r.e)->calls == co_exec_info_of(r.e)->forward_calls, "backward calls");
    CHECK(isfinite(r.stat[0]) && r.stat[1] > 0, "loss %g of %g", r.stat[0], r.stat[1]);
    co_graph_free(g);
    rig_close(&r);
}

/* loss = sum of (w + w) x + w: each use counts. */
TEST(a_tied_weight_gets_the_sum_of_its_uses)
{
    co_graph *g;
    rig r;
    CHECK_OK(co_graph_new(&g, true));
    co_node *x = co_input(g, "x", CO_F32, CO_SHAPE(1, 2)), *w = P(g, "w", CO_SHAPE(1, 2));
    co_node *y = co_add(g, co_mul(g, co_add(g, w, w), x), P(g, "w", CO_SHAPE(1, 2)));
    co_graph_loss(g, y);
    rig_open(&r, g, rig_kernels("ref"));
    memcpy(rig_input(&r, "x"), (float[]){3, 5}, 8);
    rig_run(&r);
    expect_leaf(&r, "w", (double[]){7, 11}, 2);
    co_graph_free(g);
    rig_close(&r);
}

/* In float (1e8 - 1e8) + 1 is 1; every other order gives 0. */
TEST(contributions_are_added_in_the_order_of_use)
{
    co_graph *g;
    rig r;
    CHECK_OK(co_graph_new(&g, true));
    co_node *w = P(g, "w", CO_SHAPE(1)), *big = co_fill(g, CO_SHAPE(1), 1e8f);
    co_node *a = co_mul(g, w, big), *b = co_mul(g, w, co_scale(g, big, -1)), *c = co_scale(g, w, 1);
    co_graph_loss(g, co_add(g, co_add(g, c, b), a)); /* read in a different order than created */
    rig_open(&r, g, rig_kernels("ref"));
    rig_run(&r);
    expect_leaf(&r, "w", (double[]){1}, 1);
    co_graph_free(g);
    rig_close(&r);
}

/* One gradient value for two parameters, through views of each: both leaves get it. */
TEST(parameters_that_share_a_gradient_each_get_it)
{
    co_graph *g;
    rig r;
    CHECK_OK(co_graph_new(&g, true));
    co_node *a = P(g, "a", CO_SHAPE(2, 3)), *b = P(g, "b", CO_SHAPE(3, 2)), *c = P(g, "c", CO_SHAPE(6));
    co_node *y = co_add(g, co_reshape(g, a, CO_SHAPE(6)), co_reshape(g, b, CO_SHAPE(6)));
    co_graph_loss(g, co_scale(g, co_add(g, y, c), 3));
    rig_open(&r, g, rig_kernels("ref"));
    rig_run(&r);
    for (const char *name = "abc"; *name; name++)
        expect_leaf(&r, (char[]){*name, 0}, (double[]){3, 3, 3, 3, 3, 3}, 6);
    co_graph_free(g);
    rig_close(&r);
}

TEST(a_dead_parameter_and_an_unused_statistic_get_zeros_and_padding_stays)
{
    co_graph *g = rig_net(true);
    rig r;
    co_stat(g, "lonely", CO_SHAPE(3), (co_init){CO_INIT_ZERO, 0}, 0.1f);
    rig_open(&r, g, rig_kernels("ref"));
    rig_fill(&r, 2);
    memset(r.b.leaf, 0x55, r.leaf_len);
    rig_run(&r);
    expect_leaf(&r, "unused", (double[]){0, 0, 0}, 3);
    expect_leaf(&r, "lonely", (double[]){0, 0, 0}, 3);
    const co_layout *l = co_exec_layout(r.e);
    const unsigned char *leaf = r.b.leaf;
    for (int i = 0; i + 1 < l->n; i++) { /* between entries, and the counter */
        const co_entry *e = &l->entry[i];
        size_t from = e->kind == CO_KIND_COUNTER ? e->offset : e->offset + e->count;
        size_t to = (e->offset + e->count + 15) / 16 * 16;
        for (size_t k = from * 4; !e->sparse && k < to * 4; k++)
            CHECK(leaf[k] == 0x55, "padding after %s was written", e->name);
    }
    co_graph_free(g);
    rig_close(&r);
}

TEST(a_sparse_table_sends_the_rows_that_occur_to_its_list)
{
    const char *levels[] = {"ref", "far"};
    for (size_t k = 0; k < CO_COUNT(levels); k++) {
        co_graph *g;
        rig r;
        CHECK_OK(co_graph_new(&g, true));
        co_node *t = co_param(g, "t", CO_SHAPE(5, 2), (co_init){CO_INIT_ONE, 0}, CO_PARAM_SPARSE);
        P(g, "other", CO_SHAPE(3));
        co_node *y = co_embedding(g, t, co_input(g, "below 5", CO_I32, CO_SHAPE(3)));
        co_graph_loss(g, co_mul(g, y, co_input(g, "x", CO_F32, CO_SHAPE(3, 2))));
        rig_open(&r, g, rig_kernels(levels[k]));
        CHECK(co_exec_rows(r.e, 0) == 3, "room for %zu rows", co_exec_rows(r.e, 0));
        memcpy(rig_input(&r, "below 5"), (int32_t[]){3, 1, 3}, 12);
        memcpy(rig_input(&r, "x"), (float[]){1, 2, 3, 4, 5, 6}, 24);
        rig_run(&r);
        expect_leaf(&r, "t", (double[]){0, 0, 3, 4, 0, 0, 6, 8, 0, 0}, 10);
        CHECK(*r.rows[0].count == 2 && r.rows[0].row[0] == 1 && r.rows[0].row[1] == 3, "%u rows: %u %u",
              *r.rows[0].count, r.rows[0].row[0], r.rows[0].row[1]);
        const co_layout *l = co_exec_layout(r.e);
        CHECK(l->dense == 16 && co_layout_find(l, "t")->offset == 16, "the table lies at %zu",
              co_layout_find(l, "t")->offset);
        co_graph_free(g);
        rig_close(&r);
    }
}

TEST(a_sparse_table_that_the_loss_does_not_reach_has_an_empty_list)
{
    co_graph *g = small(true);
    rig r;
    co_node *t = co_param(g, "t", CO_SHAPE(5, 2), (co_init){CO_INIT_ONE, 0}, CO_PARAM_SPARSE);
    co_embedding(g, t, co_input(g, "below 5", CO_I32, CO_SHAPE(3)));
    rig_open(&r, g, rig_kernels("ref"));
    *r.rows[0].count = 77;
    rig_run(&r);
    CHECK(*r.rows[0].count == 0, "%u rows", *r.rows[0].count);
    CHECK(co_exec_info_of(r.e)->forward_calls == 3, "the embedding runs although its result is not used");
    co_graph_free(g);
    rig_close(&r);
}

/* Mean and variance of {1,3} and {2,6} per channel, times two samples. */
TEST(batch_norm_sends_its_statistics_to_the_leaf)
{
    co_graph *g;
    rig r;
    CHECK_OK(co_graph_new(&g, true));
    co_shape c = CO_SHAPE(2);
    co_node *m = co_stat(g, "m", c, (co_init){CO_INIT_ZERO, 0}, 0.1f);
    co_node *v = co_stat(g, "v", c, (co_init){CO_INIT_ONE, 0}, 0.1f);
    co_counter(g, "n");
    co_node *y =
        co_batch_norm(g, co_input(g, "x", CO_F32, CO_SHAPE(2, 2)), P(g, "w", c), P(g, "b", c), m, v, 1e-5f);
    co_graph_loss(g, y);
    rig_open(&r, g, rig_kernels("ref"));
    memcpy(rig_input(&r, "x"), (float[]){1, 2, 3, 6}, 16);
    rig_run(&r);
    expect_leaf(&r, "m", (double[]){4, 8}, 2);
    expect_leaf(&r, "v", (double[]){4, 16}, 2);
    expect_leaf(&r, "b", (double[]){2, 2}, 2);
    co_graph_free(g);
    rig_close(&r);
}

TEST(a_measure_can_go_to_two_slots)
{
    co_graph *g = small(true);
    rig r;
    co_node *n = co_sum_all(g, co_fill(g, CO_SHAPE(5), 2));
    co_graph_stat(g, 0, n);
    co_graph_stat(g, 3, n);
    rig_open(&r, g, rig_kernels("ref"));
    rig_run(&r);
    CHECK(r.stat[0] == 10 && r.stat[3] == 10, "%g and %g", r.stat[0], r.stat[3]);
    co_graph_free(g);
    rig_close(&r);
}

TEST(an_input_can_be_the_output)
{
    const char *levels[] = {"ref", "far"};
    for (size_t k = 0; k < CO_COUNT(levels); k++) {
        co_graph *g;
        rig r;
        CHECK_OK(co_graph_new(&g, false));
        co_graph_output(g, co_reshape(g, co_input(g, "x", CO_F32, CO_SHAPE(2, 2)), CO_SHAPE(4)));
        rig_open(&r, g, rig_kernels(levels[k]));
        memcpy(rig_input(&r, "x"), (float[]){1, 2, 3, 4}, 16);
        rig_run(&r);
        CHECK(((float *)r.b.output)[3] == 4, "output %g", (double)((float *)r.b.output)[3]);
        co_graph_free(g);
        rig_close(&r);
    }
}

TEST(an_output_made_early_survives_to_the_end)
{
    const char *levels[] = {"ref", "far"};
    for (size_t k = 0; k < CO_COUNT(levels); k++) {
        co_graph *g;
        rig r;
        CHECK_OK(co_graph_new(&g, false));
        co_node *x = co_scale(g, co_input(g, "x", CO_F32, CO_SHAPE(100)), 2);
        co_graph_output(g, x);
        for (int i = 0; i < 5; i++)
            x = co_scale(g, x, 3);
        co_graph_stat(g, 0, co_sum_all(g, x));
        rig_open(&r, g, rig_kernels(levels[k]));
        ((float *)rig_input(&r, "x"))[99] = 1;
        rig_run(&r);
        CHECK(((float *)r.b.output)[99] == 2, "output %g", (double)((float *)r.b.output)[99]);
        CHECK(r.stat[0] == 486, "sum %g", r.stat[0]);
        co_graph_free(g);
        rig_close(&r);
    }
}

/* Compiles one graph for several kernel sets: compiling must not change the graph. */
TEST(far_memory_gives_the_bits_of_host_memory)
{
    co_graph *g = rig_net(true);
    rig host, away, again;
    rig_open(&host, g, rig_kernels("ref"));
    rig_open(&away, g, rig_kernels("far"));
    rig_open(&again, g, rig_kernels("ref"));
    co_graph_free(g);
    rig *all[] = {&host, &away, &again};
    for (int i = 0; i < 3; i++) {
        rig_fill(all[i], 9);
        rig_run(all[i]);
        CHECK(all[i]->leaf_len == host.leaf_len && memcmp(all[i]->b.leaf, host.b.leaf, host.leaf_len) == 0,
              "leaf %d", i);
        CHECK(memcmp(all[i]->stat, host.stat, sizeof host.stat) == 0, "stats %d", i);
        CHECK(memcmp(all[i]->b.output, host.b.output, co_exec_info_of(host.e)->output_bytes) == 0,
              "output %d", i);
    }
    CHECK(host.stat[0] != 0 && rig_leaf(&host, "conv.weight", 0) != 0, "nothing was computed");
    for (int i = 0; i < 3; i++)
        rig_close(all[i]);
}

/* Float and double must agree, so that the gradient checks in double also hold for the float kernels. */
TEST(float_kernels_agree_with_double_ones_on_a_whole_net)
{
    const char *levels[] = {"ref", "auto"};
    co_graph *g = rig_net(true);
    rig wide;
    rig_open(&wide, g, test_kernels_wide());
    rig_fill(&wide, 9);
    rig_run(&wide);
    for (size_t k = 0; k < CO_COUNT(levels); k++) {
        rig r;
        rig_open(&r, g, rig_kernels(levels[k]));
        rig_fill(&r, 9);
        rig_run(&r);
        const co_layout *l = co_exec_layout(r.e);
        for (int i = 0; i < l->n; i++)
            for (size_t j = 0; l->entry[i].kind != CO_KIND_COUNTER && j < l->entry[i].count; j++) {
                double a = rig_leaf(&r, l->entry[i].name, j), b = rig_leaf(&wide, l->entry[i].name, j);
                CHECK(fabs(a - b) <= 1e-4 * (1 + fabs(b)), "%s: d%s[%zu] %g, in double %g", levels[k],
                      l->entry[i].name, j, a, b);
            }
        rig_close(&r);
    }
    co_graph_free(g);
    rig_close(&wide);
}

static void *run_20(void *arg)
{
    for (int i = 0; i < 20; i++)
        rig_run(arg);
    return NULL;
}

TEST(threads_share_an_executor_over_their_own_memory_tsan)
{
    enum { THREADS = 4 };
    co_graph *g = rig_net(true);
    rig r[THREADS];
    pthread_t t[THREADS];
    co_exec *own[THREADS];
    for (int i = 0; i < THREADS; i++) {
        rig_open(&r[i], g, rig_kernels("auto"));
        rig_fill(&r[i], 9);
        own[i] = r[i].e;
        r[i].e = r[0].e;
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, run_20, &r[i]) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        CHECK(memcmp(r[i].b.leaf, r[0].b.leaf, r[0].leaf_len) == 0, "thread %d", i);
        r[i].e = own[i];
    }
    for (int i = 0; i < THREADS; i++)
        rig_close(&r[i]);
    co_graph_free(g);
}

static co_err build_and_compile(void *ctx)
{
    co_graph *g = NULL;
    co_exec *e = NULL;
    co_err err = co_graph_new(&g, true);
    if (err)
        return err;
    co_node *x = co_input(g, "x", CO_F32, CO_SHAPE(2, 1, 4, 4)), *ids = co_input(g, "ids", CO_I64, CO_SHAPE(2));
    x = co_relu(g, co_conv2d(g, x, P(g, "conv.weight", CO_SHAPE(2, 1, 3, 3)), NULL, 1, 1));
    x = co_dropout(g, co_reshape(g, x, CO_SHAPE(2, -1)), ids, 0.5f, "drop");
    co_node *w = P(g, "fc.weight", CO_SHAPE(3, 32)), *many[9];
    for (int i = 0; i < 9; i++)
        many[i] = x;
    x = co_add(g, co_linear(g, x, w, P(g, "fc.bias", CO_SHAPE(3))), P(g, "more", CO_SHAPE(3)));
    x = co_concat(g, (co_node *[]){x, co_slice(g, co_concat(g, many, 9, 1), 1, 100, 2)}, 2, 1);
    co_counter(g, "n");
    P(g, "unused", CO_SHAPE(3));
    co_graph_loss(g, co_cross_entropy(g, x, co_input(g, "y", CO_I32, CO_SHAPE(2)), 0, -100));
    co_graph_output(g, x);
    err = co_exec_new(&e, g, ctx);
    if (!err)
        co_exec_free(e);
    CHECK(!err || err == CO_ENOMEM, "error %d: %s", (int)err, co_errmsg());
    co_graph_free(g);
    return err;
}

TEST(building_and_compiling_survive_every_failing_allocation)
{
    test_each_alloc_fails(build_and_compile, (void *)rig_kernels("ref"));
    test_each_alloc_fails(build_and_compile, (void *)rig_kernels("far"));
}

static void count_part(void *ctx, int call, size_t offset, size_t count)
{
    uint8_t *written = ctx;

    (void)call;
    for (size_t i = offset; i < offset + count; i++)
        written[i]++;
}

/* Two runs with their own memory, part by part in turn, give what each gives alone; every element of a dense
 * gradient is written by one call. */
TEST(runs_may_go_together_part_by_part)
{
    co_graph *g = rig_net(true);
    rig alone[2], together[2];

    for (int i = 0; i < 2; i++) {
        rig_open(&alone[i], g, rig_kernels("auto"));
        rig_open(&together[i], g, rig_kernels("auto"));
        rig_fill(&alone[i], 3 + (uint64_t)i);
        rig_fill(&together[i], 3 + (uint64_t)i);
        co_exec_run(alone[i].e, &alone[i].b, &alone[i].run, NULL);
    }
    int calls = co_exec_info_of(alone[0].e)->calls;
    for (int from = 0; from < calls; from += 7)
        for (int i = 0; i < 2; i++)
            co_exec_run_part(together[i].e, &together[i].b, &together[i].run, from,
                             from + 7 < calls ? from + 7 : calls, NULL);
    const co_layout *layout = co_exec_layout(alone[0].e);
    uint8_t *written = co_zalloc(layout->count);
    co_exec_leaf_parts(alone[0].e, 0, calls, count_part, written);
    for (int e = 0; e < layout->n; e++)
        for (size_t k = 0; k < layout->entry[e].count && layout->entry[e].offset < layout->dense &&
                           layout->entry[e].kind != CO_KIND_COUNTER;
             k++)
            CHECK(written[layout->entry[e].offset + k] == 1, "element %zu of %s is written %d times", k,
                  layout->entry[e].name, written[layout->entry[e].offset + k]);
    co_free(written);
    size_t bytes = layout->dense * sizeof(float);
    for (int i = 0; i < 2; i++) {
        CHECK(memcmp(alone[i].b.leaf, together[i].b.leaf, bytes) == 0, "run %d", i);
        CHECK(memcmp(alone[i].stat, together[i].stat, sizeof alone[i].stat) == 0, "statistics of run %d", i);
        rig_close(&alone[i]);
        rig_close(&together[i]);
    }
    co_graph_free(g);
}
