/* MixUp and CutMix: the Beta distribution, the labels' weights, and samples that could not be read. */
#include "data/transform_int.h"

#include <math.h>
#include <string.h>

#include "harness.h"

enum { DRAWS = 20000, N = 5, NUMBERS = 3 * 8 * 6 };

static transform made(double mixup, double cutmix)
{
    return (transform){
        .planes = 3, .height = 8, .width = 6, .numbers = NUMBERS, .mix = true, .mixup = mixup, .cutmix = cutmix};
}

static void near(const char *what, double is, double should, double within)
{
    CHECK(fabs(is - should) < within, "%s: %g, not %g", what, is, should);
}

static struct mix_drawn mix_of(const transform *t, uint64_t seed, uint32_t epoch, uint32_t id)
{
    struct mix_drawn m;
    CHECK(transform_draw_mix(&m, t, &(co_draw){seed, epoch, true, NULL}, id), "nothing drawn");
    return m;
}

TEST(mixups_lambda_has_the_beta_distribution)
{
    static const double alphas[] = {0.01, 0.2, 0.5, 1, 3, 200};

    for (size_t a = 0; a < CO_COUNT(alphas); a++) {
        transform t = made(alphas[a], 0);
        double sum = 0, squares = 0, small = 0, var = 1 / (4 * (2 * alphas[a] + 1));
        for (uint32_t i = 0; i < DRAWS; i++) {
            struct mix_drawn m = mix_of(&t, 3, 0, i);
            CHECK(m.lambda >= 0 && m.lambda <= 1 && !m.cuts, "lambda %g", m.lambda);
            sum += m.lambda / DRAWS;
            squares += (m.lambda - 0.5) * (m.lambda - 0.5) / DRAWS;
            small += (m.lambda < 0.25) / (double)DRAWS;
        }
        near("mean", sum, 0.5, 5 * sqrt(var / DRAWS));
        near("variance", squares, var, 0.03 * var);
        if (alphas[a] == 1)
            near("below a quarter", small, 0.25, 0.015);
        if (alphas[a] == 0.5) /* the arcsine law: 2 / pi asin(sqrt(1 / 4)) = 1 / 3 */
            near("below a quarter", small, 1 / 3.0, 0.015);
    }
}

TEST(with_both_on_half_of_the_slices_are_cut_and_boxes_lie_inside)
{
    transform t = made(0.2, 1);
    int cuts = 0;

    for (uint32_t i = 0; i < DRAWS; i++) {
        struct mix_drawn m = mix_of(&t, 4, 1, i);
        cuts += m.cuts;
        CHECK(m.box.top >= 0 && m.box.left >= 0 && m.box.height >= 0 && m.box.width >= 0 &&
                  m.box.top + m.box.height <= 8 && m.box.left + m.box.width <= 6,
              "outside");
        if (m.cuts)
            near("lambda", m.lambda, 1 - m.box.height * m.box.width / 48.0, 1e-9);
    }
    near("cut", (double)cuts / DRAWS, 0.5, 0.015);
    CHECK(mix_of(&t, 4, 1, 7).lambda == mix_of(&t, 4, 1, 7).lambda, "not a function");
    CHECK(mix_of(&t, 4, 1, 7).lambda != mix_of(&t, 4, 2, 7).lambda ||
              mix_of(&t, 4, 1, 8).lambda != mix_of(&t, 4, 2, 8).lambda,
          "the epoch does not count");
}

/* Sample i is i + 1 everywhere, so that its share of a mixture can be read off. */
static void fill(float x[N][NUMBERS], int32_t y[N])
{
    for (int i = 0; i < N; i++) {
        y[i] = i;
        for (int k = 0; k < NUMBERS; k++)
            x[i][k] = (float)(i + 1);
    }
}

TEST(labels_weigh_as_much_as_their_pictures)
{
    for (int cuts = 0; cuts < 2; cuts++)
        for (uint32_t first = 0; first < 50; first++) {
            transform t = made(!cuts, cuts);
            float x[N][NUMBERS], lam[N];
            int32_t y[N], y2[N];
            uint32_t ids[N] = {first, 90, 91, 92, 93};
            fill(x, y);
            transform_mix(&t, &(co_draw){1, 2, true, NULL}, ids, N,
                          &(co_slice_dst){.x = x, .y = y, .y2 = y2, .lam = lam});
            for (int i = 0; i < N; i++) {
                double mean = 0, other = i ? i : N; /* x of the sample before */
                for (int k = 0; k < NUMBERS; k++)
                    mean += (double)x[i][k] / NUMBERS;
                CHECK(y[i] == i && y2[i] == (i ? i - 1 : N - 1) && lam[i] == lam[0], "labels of %d", i);
                near("mean", mean, (double)lam[i] * (i + 1) + (1 - (double)lam[i]) * other, 1e-5);
            }
        }
}

TEST(a_sample_that_could_not_be_read_stays_so_when_mixed)
{
    transform t = made(1, 0);
    float x[N][NUMBERS], lam[N];
    int32_t y[N], y2[N];
    uint32_t ids[N] = {3, 4, 5, 6, 7};

    fill(x, y);
    y[2] = CO_IGNORE;
    transform_mix(&t, &(co_draw){1, 2, true, NULL}, ids, N,
                  &(co_slice_dst){.x = x, .y = y, .y2 = y2, .lam = lam});
    CHECK(y[2] == CO_IGNORE && y2[2] == CO_IGNORE && y2[3] == CO_IGNORE, "%d %d %d", y[2], y2[2], y2[3]);
    CHECK(y[3] == 3 && y2[4] == 3 && y2[0] == 4 && y2[1] == 0, "the others");
}

TEST(a_slice_of_one_and_a_plain_slice_keep_their_samples)
{
    float x[N][NUMBERS], lam[N];
    int32_t y[N], y2[N];
    uint32_t ids[N] = {3, 4, 5, 6, 7};
    co_slice_dst dst = {.x = x, .y = y, .y2 = y2, .lam = lam};
    transform t = made(1, 0);

    fill(x, y);
    transform_mix(&t, &(co_draw){1, 2, true, NULL}, ids, 1, &dst);
    CHECK(fabsf(x[0][0] - 1) < 1e-6f && y2[0] == 0 && x[1][0] == 2, "mixed with another");
    fill(x, y);
    transform_mix(&t, &(co_draw){1, 2, false, NULL}, ids, N, &dst);
    for (int i = 0; i < N; i++)
        CHECK(x[i][0] == (float)(i + 1) && y2[i] == y[i] && lam[i] == 1, "sample %d", i);
    transform_mix(&t, &(co_draw){1, 2, true, NULL}, ids, 0, &dst);
}
