/* test_loss.c -- the classification loss that the step uses: smoothed labels, samples mixed in pairs, and
 * what counts as right. The model is one linear layer, so that the test can compute the logits itself. */
#include <math.h>
#include <string.h>

#include "graph/rig.h"
#include "harness.h"
#include "kernel/wide.h"
#include "nn/nn.h"

enum { N = 7, IN = 3, CLASSES = 6 };

static const int32_t y[N] = {0, 5, 2, CO_IGNORE, 1, 4, 3}, y2[N] = {3, 5, CO_IGNORE, 2, 0, 1, 2};
static const double lam[N] = {0.25, 0.75, 0.5, 0.5, 1, 0, 0.875};

static void open_linear(rig *r, const co_io *io, double smooth, co_mode mode, const co_kernels *k)
{
    co_graph *g;

    CHECK_OK(co_model_graph(&g, co_model_find("linear"), NULL, io, &(co_loss){.label_smoothing = smooth},
                            (co_slice_shape){.n = N}, mode));
    rig_open(r, g, k);
    co_graph_free(g);
}

/* A mixed batch with made-up weights and samples. */
static void open_mixed(rig *r, double smooth)
{
    const co_io io = {.task = CO_TASK_CLASSIFY, .x = {1, {IN}}, .classes = CLASSES, .mix = true};
    uint64_t words = 4;

    open_linear(r, &io, smooth, CO_MODE_TRAIN, test_kernels_wide());
    for (size_t i = 0; i < co_exec_layout(r->e)->count; i++)
        rig_set(r, r->b.state, i, (double)test_unit(&words));
    for (size_t i = 0; i < N * IN; i++)
        rig_set(r, rig_input(r, "x"), i, 2 * (double)test_unit(&words));
    for (size_t i = 0; i < N; i++)
        rig_set(r, rig_input(r, "lam"), i, lam[i]);
    memcpy(rig_input(r, "y"), y, sizeof y);
    memcpy(rig_input(r, "y2"), y2, sizeof y2);
}

static void logits_of(const rig *r, int row, double out[CLASSES])
{
    const co_layout *l = co_exec_layout(r->e);
    size_t w = co_layout_find(l, "fc.weight")->offset, b = co_layout_find(l, "fc.bias")->offset;

    for (size_t c = 0; c < CLASSES; c++) {
        out[c] = rig_get(r, r->b.state, b + c);
        for (size_t k = 0; k < IN; k++)
            out[c] +=
                rig_get(r, r->b.state, w + c * IN + k) * rig_get(r, rig_input(r, "x"), (size_t)row * IN + k);
    }
}

static double entropy(const double logit[CLASSES], int32_t target, double smooth)
{
    double sum = 0, mean = 0;

    if (target == CO_IGNORE)
        return 0;
    for (int c = 0; c < CLASSES; c++) {
        sum += exp(logit[c]);
        mean += logit[c] / CLASSES;
    }
    return log(sum) - (1 - smooth) * logit[target] - smooth * mean;
}

TEST(a_mixed_row_s_loss_is_shared_by_its_two_labels)
{
    static const double smooths[] = {0, (double)0.1f};

    for (size_t s = 0; s < CO_COUNT(smooths); s++) {
        rig r;
        double want = 0, right = 0, among = 0;
        open_mixed(&r, smooths[s]);
        rig_run(&r);
        for (int i = 0; i < N; i++) {
            double logit[CLASSES];
            int above = 0;
            logits_of(&r, i, logit);
            if (y[i] == CO_IGNORE)
                continue;
            want +=
                lam[i] * entropy(logit, y[i], smooths[s]) + (1 - lam[i]) * entropy(logit, y2[i], smooths[s]);
            for (int c = 0; c < CLASSES; c++)
                above += logit[c] > logit[y[i]];
            right += above == 0;
            among += above < 5;
        }
        CHECK(fabs(r.stat[CO_STAT_LOSS] - want) < 1e-12 * want, "loss %.15g, not %.15g", r.stat[CO_STAT_LOSS],
              want);
        CHECK(r.stat[CO_STAT_COUNT] == N - 1, "%g rows count", r.stat[CO_STAT_COUNT]);
        CHECK(r.stat[CO_STAT_METRIC] == right && r.stat[CO_STAT_TOP5] == among,
              "right %g and %g, not %g and %g", r.stat[CO_STAT_METRIC], r.stat[CO_STAT_TOP5], right, among);
        CHECK(right < among && among < N - 1, "the case shows nothing: %g, %g", right, among);
        rig_close(&r);
    }
}

static double loss_at(rig *r, size_t i, double x)
{
    double kept = rig_get(r, r->b.state, i);

    rig_set(r, r->b.state, i, x);
    rig_run(r);
    rig_set(r, r->b.state, i, kept);
    return r->stat[CO_STAT_LOSS];
}

TEST(the_gradient_of_a_mixed_loss_agrees_with_finite_differences)
{
    const double h = 1e-5;
    double leaf[CLASSES * IN + CLASSES], worst = 0;
    rig r;

    open_mixed(&r, 0.1);
    rig_run(&r);
    for (size_t i = 0; i < CO_COUNT(leaf); i++)
        leaf[i] = i < CLASSES * IN ? rig_leaf(&r, "fc.weight", i) : rig_leaf(&r, "fc.bias", i - CLASSES * IN);
    const co_layout *l = co_exec_layout(r.e);
    size_t w = co_layout_find(l, "fc.weight")->offset, b = co_layout_find(l, "fc.bias")->offset;
    for (size_t i = 0; i < CO_COUNT(leaf); i++) {
        size_t at = i < CLASSES * IN ? w + i : b + i - CLASSES * IN;
        double x = rig_get(&r, r.b.state, at);
        double want = (loss_at(&r, at, x + h) - loss_at(&r, at, x - h)) / (2 * h);
        CHECK(fabs(leaf[i] - want) < 1e-8 && leaf[i] != 0, "element %zu: %.12g, differences say %.12g", i,
              leaf[i], want);
        worst = fmax(worst, fabs(leaf[i] - want));
    }
    test_note("largest error %.1e", worst);
    rig_close(&r);
}

/* lam = 1 in every row: the same as no mixing at all. */
TEST(rows_that_keep_all_of_themselves_train_as_without_mixing)
{
    const co_io io = {.task = CO_TASK_CLASSIFY, .x = {1, {IN}}, .classes = CLASSES};
    rig mixed, plain;

    open_mixed(&mixed, 0.1);
    open_linear(&plain, &io, 0.1, CO_MODE_TRAIN, test_kernels_wide());
    memcpy(plain.b.state, mixed.b.state, mixed.state_len);
    memcpy(rig_input(&plain, "y"), y, sizeof y);
    for (size_t i = 0; i < N * IN; i++)
        rig_set(&plain, rig_input(&plain, "x"), i, rig_get(&mixed, rig_input(&mixed, "x"), i));
    for (size_t i = 0; i < N; i++)
        rig_set(&mixed, rig_input(&mixed, "lam"), i, 1);
    rig_run(&mixed);
    rig_run(&plain);
    CHECK(memcmp(mixed.stat, plain.stat, sizeof plain.stat) == 0, "losses %.17g and %.17g",
          mixed.stat[CO_STAT_LOSS], plain.stat[CO_STAT_LOSS]);
    CHECK(memcmp(mixed.b.leaf, plain.b.leaf, plain.leaf_len) == 0, "gradients differ");
    rig_close(&mixed);
    rig_close(&plain);
}

static bool has_input(const rig *r, const char *name)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;

    return co_exec_input(r->e, name, &offset, &dtype, &shape) == CO_OK;
}

TEST(only_training_on_classes_asks_for_second_labels)
{
    co_io io = {.task = CO_TASK_CLASSIFY, .x = {1, {IN}}, .classes = CLASSES, .y_width = 2, .mix = true};

    for (co_mode mode = CO_MODE_TRAIN; mode <= CO_MODE_PREDICT; mode++)
        for (io.task = CO_TASK_CLASSIFY; io.task <= CO_TASK_REGRESS; io.task++) {
            rig r;
            bool want = mode == CO_MODE_TRAIN && io.task == CO_TASK_CLASSIFY;
            open_linear(&r, &io, 0, mode, test_kernels_wide());
            CHECK(has_input(&r, "y2") == want && has_input(&r, "lam") == want, "mode %d, task %d", (int)mode,
                  (int)io.task);
            rig_close(&r);
        }
}

/* Every row's logits are the biases. */
static void measure(double stat[CO_STATS], const char *level, const float *bias, int classes,
                    const int32_t *target)
{
    const co_io io = {.task = CO_TASK_CLASSIFY, .x = {1, {IN}}, .classes = classes};
    rig r;

    open_linear(&r, &io, 0, CO_MODE_EVAL, rig_kernels(level));
    const co_entry *e = co_layout_find(co_exec_layout(r.e), "fc.bias");
    memcpy((float *)r.b.state + e->offset, bias, (size_t)classes * sizeof *bias);
    memcpy(rig_input(&r, "y"), target, N * sizeof *target);
    rig_run(&r);
    memcpy(stat, r.stat, CO_STATS * sizeof *stat);
    rig_close(&r);
}

TEST(a_class_is_among_the_five_likeliest_when_fewer_than_five_come_before_it)
{
    static const char *const levels[] = {"ref", "auto"};
    static const float falling[8] = {8, 7, 6, 5, 4, 3, 2, 1}, level[8] = {0}, few[4] = {1, 2, 3, 4};
    static const float tied[8] = {9, 9, 9, 9, 5, 5, 5, 1}; /* of the three fives the first one is in */
    static const int32_t all[N] = {0, 1, 2, 3, 4, 5, 6}, mixed[N] = {4, 5, 6, 7, CO_IGNORE, 0, 0};
    static const int32_t last[N] = {0, 1, 2, 3, 0, 1, CO_IGNORE};
    double s[CO_STATS];

    for (size_t i = 0; i < CO_COUNT(levels); i++) {
        measure(s, levels[i], falling, 8, all);
        CHECK(s[CO_STAT_TOP5] == 5 && s[CO_STAT_METRIC] == 1, "falling: %g, %g", s[CO_STAT_TOP5],
              s[CO_STAT_METRIC]);
        measure(s, levels[i], level, 8, all);
        CHECK(s[CO_STAT_TOP5] == 5 && s[CO_STAT_METRIC] == 1, "level: %g, %g", s[CO_STAT_TOP5],
              s[CO_STAT_METRIC]);
        measure(s, levels[i], tied, 8, mixed);
        CHECK(s[CO_STAT_TOP5] == 3 && s[CO_STAT_METRIC] == 2 && s[CO_STAT_COUNT] == 6, "tied: %g, %g of %g",
              s[CO_STAT_TOP5], s[CO_STAT_METRIC], s[CO_STAT_COUNT]);
        measure(s, levels[i], few, 4, last);
        CHECK(s[CO_STAT_TOP5] == 6 && s[CO_STAT_METRIC] == 1, "four classes: %g, %g", s[CO_STAT_TOP5],
              s[CO_STAT_METRIC]);
    }
}

TEST(tasks_without_classes_of_samples_have_no_five_likeliest)
{
    const co_io io = {.task = CO_TASK_REGRESS, .x = {1, {IN}}, .y_width = 2};
    rig r;

    open_linear(&r, &io, 0, CO_MODE_EVAL, rig_kernels("auto"));
    r.stat[CO_STAT_TOP5] = 5;
    rig_run(&r);
    CHECK(r.stat[CO_STAT_TOP5] == 0, "got %g", r.stat[CO_STAT_TOP5]);
    rig_close(&r);
}
