/* test_resnet.c -- residual networks: torchvision's names, counts and start, and PyTorch's logits and losses
 * (tests/golden/make_resnet.py). */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "nn/golden.h"
#include "nn/models.h"

enum { S = 2, LOGITS = 4 };

static const co_io photos = {.task = CO_TASK_CLASSIFY, .x = {3, {3, 224, 224}}, .classes = 1000};

/* ---- the shape of the networks ---- */

TEST(resnets_have_torchvision_s_counts_of_parameters_and_entries)
{
    static const struct {
        const char *model;
        size_t parameters;
        int tensors, entries;
    } want[] = {{"resnet18", 11689512, 62, 122},
                {"resnet34", 21797672, 110, 218},
                {"resnet50", 25557032, 161, 320},
                {"resnet101", 44549160, 314, 626},
                {"resnet152", 60192808, 467, 932}};

    for (size_t i = 0; i < CO_COUNT(want); i++) {
        void *cfg = nn_cfg(want[i].model, NULL, NULL);
        co_exec *exec = nn_compile(want[i].model, cfg, &photos, nn_shape(&photos, 2), CO_MODE_PREDICT);
        const co_layout *l = co_exec_layout(exec);
        size_t count = 0;
        int tensors = 0;
        for (int k = 0; k < l->n; k++)
            if (l->entry[k].kind == CO_KIND_PARAM) {
                count += l->entry[k].count;
                tensors++;
            }
        CHECK(count == want[i].parameters && tensors == want[i].tensors && l->n == want[i].entries,
              "%s has %zu parameters in %d tensors, %d entries", want[i].model, count, tensors, l->n);
        co_exec_free(exec);
        co_free(cfg);
    }
}

/* The parameters whose names begin with `prefix`, in order, without their buffers. */
static void block_is(const co_layout *l, const char *prefix, const char *want)
{
    co_str got = {0};
    char dims[64];

    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[i];
        if (strncmp(e->name, prefix, strlen(prefix)) == 0 && e->kind == CO_KIND_PARAM)
            co_str_addf(&got, "%s %s\n", e->name + strlen(prefix), co_shape_text(dims, sizeof dims, &e->shape));
    }
    CHECK(strcmp(co_str_text(&got), want) == 0, "%s has\n%s", prefix, co_str_text(&got));
    co_str_fini(&got);
}

TEST(resnet_blocks_have_torchvision_s_names_and_shapes_in_its_order)
{
    void *cfg = nn_cfg("resnet18", NULL, NULL);
    co_exec *basic = nn_compile("resnet18", cfg, &photos, nn_shape(&photos, 1), CO_MODE_PREDICT);
    co_exec *deep = nn_compile("resnet50", cfg, &photos, nn_shape(&photos, 1), CO_MODE_PREDICT);
    const co_layout *l = co_exec_layout(basic);

    block_is(l, "conv1.", "weight [64,3,7,7]\n");
    block_is(l, "layer1.0.",
             "conv1.weight [64,64,3,3]\nbn1.weight [64]\nbn1.bias [64]\n"
             "conv2.weight [64,64,3,3]\nbn2.weight [64]\nbn2.bias [64]\n");
    block_is(l, "layer2.0.",
             "conv1.weight [128,64,3,3]\nbn1.weight [128]\nbn1.bias [128]\n"
             "conv2.weight [128,128,3,3]\nbn2.weight [128]\nbn2.bias [128]\n"
             "downsample.0.weight [128,64,1,1]\ndownsample.1.weight [128]\n"
             "downsample.1.bias [128]\n");
    block_is(l, "fc.", "weight [1000,512]\nbias [1000]\n");
    CHECK(co_layout_find(l, "layer4.1.bn2.running_var") &&
              co_layout_find(l, "layer4.0.downsample.1.num_batches_tracked"),
          "buffers are missing");
    block_is(co_exec_layout(deep), "layer1.0.",
             "conv1.weight [64,64,1,1]\nbn1.weight [64]\nbn1.bias [64]\n"
             "conv2.weight [64,64,3,3]\nbn2.weight [64]\nbn2.bias [64]\n"
             "conv3.weight [256,64,1,1]\nbn3.weight [256]\nbn3.bias [256]\n"
             "downsample.0.weight [256,64,1,1]\ndownsample.1.weight [256]\ndownsample.1.bias [256]\n");
    co_exec_free(basic);
    co_exec_free(deep);
    co_free(cfg);
}

static double deviation(const co_layout *l, const float *state, const char *name)
{
    const co_entry *e = co_layout_find(l, name);
    double squares = 0;

    CHECK(e, "no entry %s", name);
    for (size_t i = 0; i < e->count; i++)
        squares += (double)state[e->offset + i] * (double)state[e->offset + i];
    return sqrt(squares / (double)e->count);
}

TEST(resnets_start_as_torchvision_s)
{
    void *cfg = nn_cfg("resnet18", NULL, NULL), *zero = nn_cfg("resnet18", "zero_init_residual", "true");
    co_exec *plain = nn_compile("resnet18", cfg, &photos, nn_shape(&photos, 1), CO_MODE_PREDICT);
    co_exec *still = nn_compile("resnet18", zero, &photos, nn_shape(&photos, 1), CO_MODE_PREDICT);
    const co_layout *l = co_exec_layout(plain);
    float *state = co_array(l->count, sizeof *state);

    co_layout_initialise(l, state, 1);
    double first = deviation(l, state, "conv1.weight") / sqrt(2.0 / (64 * 49));
    double later = deviation(l, state, "layer4.0.conv2.weight") / sqrt(2.0 / (512 * 9));
    double fc = deviation(l, state, "fc.weight") / (1 / sqrt(3 * 512.0));
    CHECK(fabs(first - 1) < 0.03 && fabs(later - 1) < 0.003 && fabs(fc - 1) < 0.01,
          "deviations are %g, %g, %g of what they should be", first, later, fc);
    CHECK(deviation(l, state, "layer3.1.bn2.weight") == 1, "norms start at 1");
    co_layout_initialise(co_exec_layout(still), state, 1);
    CHECK(deviation(l, state, "layer3.1.bn2.weight") == 0 && deviation(l, state, "layer3.1.bn1.weight") == 1,
          "zero_init_residual is about the last norm of a block");
    co_free(state);
    co_exec_free(plain);
    co_exec_free(still);
    co_free(cfg);
    co_free(zero);
}

TEST(resnets_refuse_data_that_is_no_image_or_too_small)
{
    static const co_io tiny = {.task = CO_TASK_CLASSIFY, .x = {3, {3, 4, 8}}, .classes = 10};
    const co_model_def *def = co_model_find("resnet34");
    void *cfg = nn_cfg("resnet34", NULL, NULL), *cifar = nn_cfg("resnet34", "stem", "cifar");

    CHECK_FAILS(def->check(cfg, &nn_text), CO_EINPUT, "the data is text; try model=lm");
    CHECK_FAILS(def->check(cfg, &nn_rows), CO_EINPUT, "needs images [C,H,W]; the data has [20]");
    CHECK_FAILS(def->check(cfg, &nn_images), CO_EINPUT,
                "needs images of 32x32 pixels at least; the data has [1,8,8]; try model.stem=cifar");
    CHECK_OK(def->check(cifar, &nn_images));
    CHECK_FAILS(def->check(cifar, &tiny), CO_EINPUT,
                "8x8 pixels at least; the data has [3,4,8]; try model=cnn");
    CHECK(def->batch_stats, "batch statistics");
    co_free(cfg);
    co_free(cifar);
}

/* ---- against PyTorch ---- */

/* Evaluation of the first images with the initial weights; relative to the largest logit. */
static double worst_logit(const golden *r)
{
    double top, worst = golden_worst_logit(r, LOGITS, &top);

    return worst / top;
}

/* The cases of one model, `want` of them. */
static void replay(const char *model, int want)
{
    const co_kernels *kernels;
    json_t *cases = golden_cases("resnet.json", "avx2", &kernels), *c;
    int seen = 0;
    size_t i;

    test_note("worst relative differences from PyTorch in float64:");
    json_array_foreach(cases, i, c)
    {
        golden r;
        double loss, norm, torch32 = 0;
        if (strcmp(co_json_str(c, "model"), model) != 0)
            continue;
        golden_open(&r, c, kernels, S);
        double logit = worst_logit(&r);
        CHECK(logit <= 1e-4, "%s: logits differ by %.2g", model, logit);
        golden_replay(&r, r.steps, 1e-4, &loss, &norm);
        CHECK(norm <= 1e-3, "%s: gradient norms differ by %.2g", model, norm);
        co_json_f64(c, "float32", &torch32);
        test_note("logits %.1e  %d steps: loss %.1e (PyTorch in float32: %.1e)  gradient norm %.1e", logit,
                  r.steps, loss, torch32, norm);
        seen++;
    }
    CHECK(seen == want, "%d cases", seen);
}

TEST(resnet18_logits_and_losses_are_those_of_pytorch_on_avx2)
{
    test_may_leak();
    replay("resnet18", 3);
}

TEST_LONG(resnet50_logits_and_losses_are_those_of_pytorch_on_avx2)
{
    test_may_leak();
    replay("resnet50", 2);
}

TEST(resnet18_logits_are_those_of_pytorch_on_ref)
{
    test_may_leak();
    const co_kernels *kernels;
    json_t *cases = golden_cases("resnet.json", "ref", &kernels);
    golden r;

    golden_open(&r, json_array_get(cases, 0), kernels, S);
    double logit = worst_logit(&r);
    CHECK(logit <= 1e-4, "logits differ by %.2g", logit);
}
