/* test_ema.c -- the running average of the weights. tests/nn/test_recipe.c compares it with PyTorch's. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "optim/optim.h"

enum { N = 37, STEPS = 30 };

static void walk(float w[N], uint64_t *words)
{
    for (int i = 0; i < N; i++)
        w[i] += 0.1f * test_unit(words);
}

TEST(the_average_starts_as_the_weights_and_follows_them_slowly)
{
    float w[N] = {0}, ema[N];
    double want[N];
    uint64_t words = 3;

    memset(ema, 0xff, sizeof ema); /* nans: the first step must not read the old average */
    for (int64_t t = 1; t <= STEPS; t++) {
        walk(w, &words);
        co_ema_apply(ema, w, N, 0.9, t);
        for (int i = 0; i < N; i++)
            want[i] = t == 1 ? (double)w[i] : 0.9 * want[i] + 0.1 * (double)w[i];
    }
    for (int i = 0; i < N; i++)
        CHECK(fabs((double)ema[i] - want[i]) < 1e-6, "element %d: %.9g, not %.9g", i, (double)ema[i], want[i]);
    CHECK(memcmp(ema, w, sizeof w) != 0, "it is the weights");
}

TEST(an_average_cut_into_odd_pieces_has_the_same_bits)
{
    static const int pieces[] = {1, 3, 8, 13};

    for (size_t p = 0; p < CO_COUNT(pieces); p++) {
        float w[N] = {0}, whole[N], cut[N];
        uint64_t words = 3;
        for (int64_t t = 1; t <= STEPS; t++) {
            walk(w, &words);
            co_ema_apply(whole, w, N, 0.99, t);
            for (int at = 0; at < N; at += pieces[p])
                co_ema_apply(cut + at, w + at, (size_t)(N - at < pieces[p] ? N - at : pieces[p]), 0.99, t);
        }
        CHECK(memcmp(whole, cut, sizeof cut) == 0, "in pieces of %d", pieces[p]);
    }
}

TEST(an_average_of_weights_that_rest_settles_on_them)
{
    static const double decays[] = {0.9, 0.999, 0.9999, 0.99999};

    for (size_t d = 0; d < CO_COUNT(decays); d++) {
        float w = 0.7f, ema = 0.7f;
        for (int64_t t = 2; t < 200000; t++)
            co_ema_apply(&ema, &w, 1, decays[d], t);
        CHECK(ema == w, "decay %g: the average of %.9g is %.9g", decays[d], (double)w, (double)ema);
    }
}
