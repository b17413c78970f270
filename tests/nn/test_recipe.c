/* test_recipe.c -- ten steps of residual networks with a whole recipe against PyTorch
 * (tests/golden/make_recipe.py): Nesterov momentum cycled by a one-cycle schedule, weight decay except on
 * norms and biases, smoothed labels, and the average of the weights and running statistics. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "nn/golden.h"

enum { S = 2 };

/* The norm of the entry's average, or of its distance from the start. */
static double norm_of(const golden *r, const char *name, const float *start)
{
    const co_entry *e = co_layout_find(r->layout, name);
    double squares = 0;

    CHECK(e, "no entry %s", name);
    for (size_t i = e->offset; i < e->offset + e->count; i++) {
        double x = (double)r->ema[i] - (start ? (double)start[i] : 0);
        squares += x * x;
    }
    return sqrt(squares);
}

static double worst_norm(const golden *r, const char *list, const float *start, double bound)
{
    const char *name;
    json_t *value;
    double worst = 0;
    int n = 0;

    json_object_foreach(json_object_get(r->c, list), name, value)
    {
        double want = json_number_value(value), got = norm_of(r, name, start), off = fabs(got - want) / want;
        CHECK(off <= bound, "%s: %s of %s is %.9g, PyTorch has %.9g: relative difference %.2g",
              r->model->name, list, name, got, want, off);
        worst = fmax(worst, off);
        n++;
    }
    CHECK(n >= 7, "%s has %d entries", list, n);
    return worst;
}

static double number(const json_t *c, const char *key)
{
    double v = 0;

    CHECK(co_json_f64(c, key, &v), "no number %s", key);
    return v;
}

/* The cases of one model, `want` of them. */
static void replay(const char *model, size_t want)
{
    const co_kernels *kernels;
    json_t *cases = golden_cases("recipe.json", "avx2", &kernels), *c;
    size_t i, seen = 0;

    json_array_foreach(cases, i, c)
    {
        golden r;
        double loss, norm;
        if (strcmp(co_json_str(c, "model"), model) != 0)
            continue;
        golden_open(&r, c, kernels, S);
        float *start = golden_room(r.layout->count * sizeof *start);
        memcpy(start, r.state, r.layout->count * sizeof *start);
        golden_replay(&r, r.steps, 1e-4, &loss, &norm);
        double average = worst_norm(&r, "ema_norms", NULL, 1e-4),
               moved = worst_norm(&r, "ema_moved", start, 1e-4);
        test_note("worst relative differences from PyTorch in float64 (PyTorch's own float32 in brackets):");
        test_note("losses %.1e (%.1e)  gradient norm %.1e  norms of the average %.1e (%.1e), of its way %.1e "
                  "(%.1e)",
                  loss, number(c, "float32"), norm, average, number(c, "float32_norms"), moved,
                  number(c, "float32_moved"));
        seen++;
    }
    CHECK(seen == want, "%zu cases", seen);
}

TEST(ten_steps_of_resnet18_with_a_whole_recipe_are_those_of_pytorch)
{
    test_may_leak();
    replay("resnet18", 2);
}

TEST_LONG(ten_steps_of_resnet50_with_a_whole_recipe_are_those_of_pytorch)
{
    test_may_leak();
    replay("resnet50", 1);
}
