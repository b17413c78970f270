/* test_golden.c -- ten training steps of each model against PyTorch (tests/golden/make_steps.py), on every
 * level of kernels: graph, autodiff, kernels, the sum of leaves, clipping and optimisers in one. */
#include <math.h>

#include "harness.h"
#include "nn/golden.h"

enum { S = 4, STEPS = 10 };

/* Compares the weights that the golden file holds; differences are relative to the value, or to 0.1 if it is
 * smaller. */
static double worst_weight(const golden *r)
{
    const char *name;
    json_t *values, *v;
    double worst = 0;
    size_t i;

    json_object_foreach(json_object_get(r->c, "final"), name, values)
    {
        const co_entry *e = co_layout_find(r->layout, name);
        CHECK(e, "no entry %s", name);
        json_array_foreach(values, i, v)
        {
            double want = json_number_value(v), got = (double)r->state[e->offset + i];
            double diff = fabs(got - want) / fmax(fabs(want), 0.1);
            CHECK(diff <= 1e-4, "%s: %s[%zu] is %.9g, PyTorch has %.9g", r->model->name, name, i, got, want);
            worst = fmax(worst, diff);
        }
    }
    return worst;
}

static void replay(const json_t *c, const co_kernels *kernels)
{
    golden r;
    double worst, worst_norm, torch32 = 0;

    golden_open(&r, c, kernels, S);
    golden_replay(&r, STEPS, 1e-5, &worst, &worst_norm);
    CHECK(worst_norm <= 1e-4, "%s: gradient norms differ by %.2g", r.model->name, worst_norm);
    co_json_f64(c, "float32", &torch32);
    test_note("%-6s loss %.1e (PyTorch in float32: %.1e)  gradient norm %.1e  final weights %.1e",
              r.model->name, worst, torch32, worst_norm, worst_weight(&r));
}

static void replay_file(const char *file, const char *level, size_t want)
{
    const co_kernels *kernels;
    json_t *cases = golden_cases(file, level, &kernels), *c;
    size_t i;

    test_note("worst relative differences from PyTorch in float64, level %s:", level);
    json_array_foreach(cases, i, c) replay(c, kernels);
    CHECK(i == want, "%zu cases", i);
}

static void replay_all(const char *level)
{
    replay_file("steps.json", level, 4);
}

/* A matrix factorisation and neumf, with SparseAdam for the tables. */
TEST(ten_steps_of_models_of_ratings_are_those_of_pytorch)
{
    static const char *const levels[] = {"ref", "avx2", "far"};

    test_may_leak();
    for (size_t i = 0; i < CO_COUNT(levels); i++)
        replay_file("ratings.json", levels[i], 3);
}

/* The translation model, with label smoothing and without dropout. */
TEST(ten_steps_of_the_transformer_are_those_of_pytorch)
{
    static const char *const levels[] = {"ref", "avx2", "far"};

    test_may_leak();
    for (size_t i = 0; i < CO_COUNT(levels); i++)
        replay_file("transformer.json", levels[i], 2);
}

TEST(ten_steps_of_each_model_are_those_of_pytorch_on_ref)
{
    test_may_leak();
    replay_all("ref");
}

TEST(ten_steps_of_each_model_are_those_of_pytorch_on_avx2)
{
    test_may_leak();
    replay_all("avx2");
}

TEST(ten_steps_of_each_model_are_those_of_pytorch_on_far)
{
    test_may_leak();
    replay_all("far");
}
