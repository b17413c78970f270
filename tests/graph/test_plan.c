/* test_plan.c -- the memory plan, checked independently of the planner. */
#include <string.h>

#include "graph/graph_int.h"
#include "graph/rig.h"
#include "harness.h"
#include "kernel/wide.h"

static bool clash(const struct buffer *a, const struct buffer *b)
{
    bool same_time = !(a->last < b->first || b->last < a->first);
    bool same_bytes = !(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
    return same_time && same_bytes;
}

/* The largest number of bytes alive at one call, a lower bound for every plan. */
static size_t bound(const struct buffer *b, int n)
{
    size_t most = 0;
    for (int k = 0; k < n; k++) {
        size_t alive = 0;
        for (int i = 0; i < n; i++)
            if (b[i].first <= b[k].first && b[k].first <= b[i].last)
                alive += b[i].bytes;
        most = alive > most ? alive : most;
    }
    return most;
}

TEST(random_plans_never_overlap_and_waste_little)
{
    enum { N = 300 };
    static struct buffer b[N];
    uint64_t seed = 5;
    double worst = 0;
    for (int round = 0; round < 50; round++) {
        size_t work, naive, sum = 0;
        int n = round < 3 ? round : 1 + (int)(test_u32(&seed) % N);
        for (int i = 0; i < n; i++) {
            int first = (int)(test_u32(&seed) % 200), len = (int)(test_u32(&seed) % (round % 2 ? 5 : 80));
            b[i] = (struct buffer){0, 1 + test_u32(&seed) % 5000, first, first + len, "b"};
            sum += (b[i].bytes + 63) / 64 * 64;
        }
        CHECK_OK(plan_buffers(b, n, &work, &naive));
        CHECK(naive == sum, "naive %zu, want %zu", naive, sum);
        for (int i = 0; i < n; i++) {
            CHECK(b[i].offset % 64 == 0 && b[i].offset + b[i].bytes <= work, "buffer %d at %zu", i,
                  b[i].offset);
            for (int k = 0; k < i; k++)
                CHECK(!clash(&b[i], &b[k]), "round %d: buffers %d and %d", round, i, k);
        }
        size_t least = bound(b, n);
        CHECK(work >= least, "less than what lives at once");
        if (n > 20 && (double)work / (double)least > worst)
            worst = (double)work / (double)least;
    }
    CHECK(worst < 1.5, "%.2f times what lives at once", worst);
    test_note("at worst %.2f times what lives at once", worst);
}

/* Recomputes lifetimes from the addresses of the calls: a range of bytes is written, then read until another
 * call overwrites it. A call must read exactly what the writer of its input left there. */
static void check_calls(const co_exec *e)
{
    for (int i = 0; i < e->info.calls; i++) {
        const struct call *c = &e->call[i];
        for (int k = 0; k < c->n_in; k++) {
            struct place at = c->in[k].at;
            size_t len = (size_t)co_shape_count(&c->in[k].plain.shape) * co_dtype_size(c->in[k].plain.dtype);
            if (at.base != BASE_WORK)
                continue;
            int writer = -1;
            for (int w = i - 1; w >= 0 && writer < 0; w--)
                for (int o = 0; o < e->call[w].n_out; o++) {
                    const struct arg *a = &e->call[w].out[o];
                    size_t a_len = (size_t)co_shape_count(&a->plain.shape) * co_dtype_size(a->plain.dtype);
                    if (a->at.base != BASE_WORK || a->at.offset + a_len <= at.offset ||
                        at.offset + len <= a->at.offset)
                        continue;
                    CHECK(a->at.offset == at.offset && a_len == len && a->plain.dtype == c->in[k].plain.dtype,
                          "%s reads what %s wrote over", c->name, e->call[w].name);
                    writer = w;
                }
            CHECK(writer >= 0, "%s reads bytes that no call wrote", c->name);
        }
    }
}

/* The arguments of one call, including its scratch, do not overlap. */
static void check_apart(const co_exec *e)
{
    for (int i = 0; i < e->n_buffer; i++)
        for (int k = 0; k < i; k++)
            CHECK(!clash(&e->buffer[i], &e->buffer[k]), "%s and %s", e->buffer[i].name, e->buffer[k].name);
}

TEST(no_call_of_a_net_reads_memory_that_was_given_to_another)
{
    for (int training = 0; training < 2; training++) {
        co_graph *g = rig_net(training);
        rig r;
        rig_open(&r, g, rig_kernels("ref"));
        co_graph_free(g);
        check_calls(r.e);
        check_apart(r.e);
        const co_exec_info *info = co_exec_info_of(r.e);
        CHECK(info->work_bytes < info->naive_bytes, "nothing is reused");
        test_note("%s: %zu bytes, %zu without reuse, %zu live at once", training ? "training" : "evaluation",
                  info->work_bytes, info->naive_bytes, bound(r.e->buffer, r.e->n_buffer));
        rig_close(&r);
    }
}

TEST(the_plan_can_be_printed)
{
    co_graph *g = rig_net(true);
    rig r;
    co_str s = {0};
    rig_open(&r, g, rig_kernels("ref"));
    co_exec_print(r.e, &s);
    CHECK(strstr(co_str_text(&s), "conv2d 'conv'"), "%s", co_str_text(&s));
    int lines = 0;
    for (const char *p = co_str_text(&s); *p; p++)
        lines += *p == '\n';
    CHECK(lines == r.e->n_buffer + 2, "%d lines", lines);
    co_str_fini(&s);
    co_graph_free(g);
    rig_close(&r);
}

/* The result does not depend on what the workspace held before. */
TEST(garbage_in_the_workspace_changes_nothing)
{
    const co_kernels *sets[] = {rig_kernels("ref"), rig_kernels("auto"), test_kernels_wide()};
    for (size_t k = 0; k < CO_COUNT(sets); k++) {
        co_graph *g = rig_net(true);
        rig r;
        rig_open(&r, g, sets[k]);
        co_graph_free(g);
        rig_fill(&r, 2);
        rig_run(&r);
        void *leaf = co_alloc(r.leaf_len);
        memcpy(leaf, r.b.leaf, r.leaf_len);
        double loss = r.stat[0];
        CHECK(loss > 0 && loss < 1e6, "loss %g", loss);
        const unsigned char garbage[] = {0xff, 0x7f, 0x55};
        for (size_t i = 0; i < sizeof garbage; i++) {
            rig_poison(&r, garbage[i]);
            memset(r.b.leaf, 0, r.leaf_len);
            rig_run(&r);
            CHECK(memcmp(leaf, r.b.leaf, r.leaf_len) == 0 && memcmp(&loss, &r.stat[0], sizeof loss) == 0,
                  "%s: garbage %#x shows", sets[k]->level, garbage[i]);
        }
        co_free(leaf);
        rig_close(&r);
    }
}
