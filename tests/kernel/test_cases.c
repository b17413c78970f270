/* Tests that run on every operator, over the table of cases.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "harness.h"
#include "kernel/cases.h"
#include "kernel/kernel_int.h"
#include "kernel/wide.h"

static const co_kernels *kernels_of(const char *level)
{
    const co_kernels *k = NULL;

    CHECK_OK(co_kernels_get(&k, level));
    return k;
}

/* The providers that this CPU can run. */
static void each_provider(void (*check)(const co_kernels *k))
{
    for (int i = 0; i < provider_count; i++)
        if (providers[i].has())
            check(kernels_of(providers[i].name));
}

static void same_bytes(const void *a, const void *b, size_t len, int i, const char *what)
{
    CHECK(!memcmp(a, b, len), "case %d (%s): %s", i, co_op_name(op_case_at(i)->op), what);
}

TEST(every_operator_has_a_case)
{
    for (int op = 0; op < CO_OP_COUNT; op++) {
        int n = 0;
        for (int i = 0; i < op_case_count(); i++)
            n += op_case_at(i)->op == (co_op)op;
        CHECK(n > 0, "no case for %s: add a row to tests/kernel/cases.c", co_op_name((co_op)op));
    }
}

static void threads_do_not_matter(const co_kernels *k)
{
    for (int i = 0; i < op_case_count(); i++) {
        size_t len;
        void *one = op_case_run(k, op_case_at(i), 1, 0, &len);
        for (int nth = 2; nth <= 7; nth++) {
            void *many = op_case_run(k, op_case_at(i), nth, 0, &len);
            same_bytes(one, many, len, i, "other bytes from more threads");
            free(many);
        }
        free(one);
    }
}

TEST(the_number_of_threads_does_not_change_a_bit)
{
    each_provider(threads_do_not_matter);
}

/* A gradient that the kernel adds to its sibling has the bits of one that is stored and then added. */
static void adding_is_storing_and_adding(const co_kernels *k)
{
    float held;
    int added = 0;

    memset(&held, 0x3e, sizeof held);
    for (int i = 0; i < op_case_count(); i++)
        for (int nth = 1; nth <= 3; nth++) {
            size_t len;
            float *sum = op_case_run_add(k, op_case_at(i), nth, 0x3e, &len);
            if (!sum)
                continue;
            float *stored = op_case_run(k, op_case_at(i), 1, 0, &len);
            for (size_t e = 0; e < len / sizeof *stored; e++)
                stored[e] += held;
            same_bytes(stored, sum, len, i, "other bytes when the kernel adds");
            free(stored);
            free(sum);
            added++;
        }
    CHECK(k->space || added > 0, "%s: no kernel adds, so this tests nothing", k->level);
}

TEST(a_kernel_that_adds_its_output_gives_the_bits_of_storing_and_adding)
{
    each_provider(adding_is_storing_and_adding);
}

static void garbage_does_not_matter(const co_kernels *k)
{
    for (int i = 0; i < op_case_count(); i++) {
        size_t len;
        void *a = op_case_run(k, op_case_at(i), 1, 0x00, &len),
             *b = op_case_run(k, op_case_at(i), 1, 0xff, &len);
        same_bytes(a, b, len, i, "what the outputs held before shows");
        free(a);
        free(b);
    }
}

TEST(every_element_of_every_output_is_written)
{
    each_provider(garbage_does_not_matter);
    garbage_does_not_matter(test_kernels_wide());
}

static void gives_the_bytes_of(const co_kernels *a, const co_kernels *b)
{
    char what[64];

    snprintf(what, sizeof what, "%s differs from %s", a->level, b->level);
    for (int i = 0; i < op_case_count(); i++) {
        size_t len;
        void *of_a = op_case_run(a, op_case_at(i), 2, 1, &len);
        void *of_b = op_case_run(b, op_case_at(i), 1, 0, &len);
        same_bytes(of_a, of_b, len, i, what);
        free(of_a);
        free(of_b);
    }
}

TEST(far_gives_the_bytes_of_ref)
{
    gives_the_bytes_of(kernels_of("far"), kernels_of("ref"));
}

/* A run may be computed by any of them, or by several at once. */
TEST(providers_of_one_numerics_give_the_same_bytes)
{
    int pairs = 0;

    for (int i = 0; i < provider_count; i++)
        for (int j = 0; j < i; j++)
            if (!strcmp(providers[i].numerics, providers[j].numerics) && providers[i].has() &&
                providers[j].has()) {
                gives_the_bytes_of(kernels_of(providers[i].name), kernels_of(providers[j].name));
                pairs++;
            }
    test_note("%d pairs", pairs);
}

/* Outputs lie end to end, so that a double may be anywhere. */
static double double_at(const char *p, int64_t i)
{
    double x;

    memcpy(&x, p + (size_t)i * sizeof x, sizeof x);
    return x;
}

/* The largest distance of a case's outputs from those in double, relative to the largest element of that
 * output. */
static double distance(const co_kernels *k, const op_case *c)
{
    size_t len, wide_len;
    char *got = op_case_run(k, c, 1, 0, &len), *wide = op_case_run(test_kernels_wide(), c, 1, 0, &wide_len);
    const char *g = got, *w = wide;
    double worst = 0;

    for (int o = 0; o < c->n_out; o++) {
        int64_t n = co_shape_count(&c->out[o].shape);
        double top = 1e-30, off = 0;
        for (int64_t j = 0; j < n && c->out[o].dtype == CO_F32; j++) {
            double want = double_at(w, j), have = ((const float *)g)[j];
            top = fabs(want) > top ? fabs(want) : top;
            off = !(fabs(want - have) <= off) ? fabs(want - have) : off; /* a nan stays */
        }
        if (c->out[o].dtype == CO_F64)
            off = fabs(double_at(g, 0) - double_at(w, 0));
        else if (c->out[o].dtype != CO_F32)
            off = memcmp(g, w, op_arg_size(k, c->out[o].dtype, &c->out[o].shape)) ? INFINITY : 0;
        worst = !(off / top <= worst) ? off / top : worst;
        g += op_arg_size(k, c->out[o].dtype, &c->out[o].shape);
        w += op_arg_size(test_kernels_wide(), c->out[o].dtype, &c->out[o].shape);
    }
    free(got);
    free(wide);
    return worst;
}

static void close_to_wide(const co_kernels *k)
{
    double worst = 0;

    for (int i = 0; i < op_case_count(); i++) {
        double off = distance(k, op_case_at(i));
        CHECK(off < 5e-6, "case %d (%s) on %s: off by %.3g of the largest element", i,
              co_op_name(op_case_at(i)->op), k->level, off);
        worst = off > worst ? off : worst;
    }
    test_note("%s: %.2g from double at worst", k->level, worst);
}

TEST(float_stays_close_to_double)
{
    each_provider(close_to_wide);
}

/* If a number here has to change, the algorithm has changed: raise the version of the kernels and add a line
 * to CHANGELOG. A different compiler must not change it. */
TEST(ref_version_1_gives_one_hash_whoever_compiled_it)
{
    uint64_t hash = 0;

    for (int i = 0; i < op_case_count(); i++) {
        size_t len;
        void *out = op_case_run(kernels_of("ref"), op_case_at(i), 1, 0, &len);
        hash = hash * 31 + co_fnv1a64(out, len);
        free(out);
    }
    CHECK(hash == 0x651203bca5fb379eu, "0x%016llx", (unsigned long long)hash);
}
