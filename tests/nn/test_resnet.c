/* test_resnet.c -- residual networks: torchvision's names, counts and start, and PyTorch's logits and losses
 * (tests/golden/make_resnet.py). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/maths.h"
#include "harness.h"
#include "nn/models.h"
#include "optim/optim.h"

enum { S = 2, BATCHES = 2, LOGITS = 4 };

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
            co_str_addf(&got, "%s %s\n", e->name + strlen(prefix),
                        co_shape_text(dims, sizeof dims, &e->shape));
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

struct net {
    const json_t *golden;
    const co_kernels *kernels;
    const co_model_def *model;
    const co_optim_def *sgd;
    void *model_cfg, *sgd_cfg;
    co_io io;
    int n;
    float *x[BATCHES];       /* [n, C, H, W] */
    int32_t *label[BATCHES]; /* [n] */
    const co_layout *layout;
    float *state, *leaf[S], *moment;
};

/* Zeroed, aligned as executors want it. The test's process ends soon: nothing is given back. */
static void *room(size_t bytes)
{
    size_t size = (bytes + 64) & ~(size_t)63;
    void *p = aligned_alloc(64, size);
    CHECK(p, "no memory for %zu bytes", size);
    return memset(p, 0, size);
}

static int number(const json_t *obj, const char *key)
{
    long long v = 0;
    CHECK(co_json_i64(obj, key, &v), "resnet.json has no number %s", key);
    return (int)v;
}

static double value_at(const json_t *obj, const char *list, size_t i)
{
    const json_t *v = json_array_get(json_object_get(obj, list), i);
    CHECK(json_is_real(v), "resnet.json: %s[%zu] is no number", list, i);
    return json_real_value(v);
}

static void *options(const co_option *table, size_t size, const json_t *values)
{
    const char *key;
    json_t *value;
    void *cfg = room(size);

    CHECK_OK(co_options_default(table, cfg));
    json_object_foreach((json_t *)values, key, value)
        CHECK_OK(co_option_set(co_option_find(table, key), cfg, key, json_string_value(value)));
    return cfg;
}

/* In the order of make_steps.py's batch(). */
static void draw_images(struct net *t)
{
    uint64_t words = (uint64_t)number(t->golden, "seed");
    size_t wide = (size_t)co_shape_count(&t->io.x);

    for (int b = 0; b < BATCHES; b++) {
        t->x[b] = room((size_t)t->n * wide * sizeof(float));
        t->label[b] = room((size_t)t->n * sizeof(int32_t));
        for (int i = 0; i < t->n; i++) {
            for (size_t k = 0; k < wide; k++)
                t->x[b][(size_t)i * wide + k] = test_unit(&words);
            t->label[b][i] = (int32_t)(test_u32(&words) % (uint32_t)t->io.classes);
        }
    }
}

static void read_net(struct net *t, const json_t *c, const co_kernels *kernels)
{
    json_t *dim;
    size_t i;

    *t = (struct net){.golden = c, .kernels = kernels, .model = co_model_find(co_json_str(c, "model"))};
    t->sgd = co_optim_find("sgd");
    t->model_cfg = options(t->model->options, t->model->cfg_size, json_object_get(c, "options"));
    t->sgd_cfg = options(t->sgd->options, t->sgd->cfg_size, json_object_get(c, "optim_options"));
    json_array_foreach(json_object_get(c, "x"), i, dim) t->io.x.d[t->io.x.nd++] = json_integer_value(dim);
    t->io.classes = number(c, "classes");
    t->n = number(c, "n");
    CHECK(number(c, "slices") == S && t->io.x.nd == 3, "resnet.json is for another test");
    draw_images(t);
}

static co_exec *compile(const struct net *t, int n, co_mode mode)
{
    co_graph *g;
    co_exec *exec;

    CHECK_OK(co_model_graph(&g, t->model, t->model_cfg, &t->io, NULL, (co_slice_shape){.n = n}, mode));
    CHECK_OK(co_exec_new(&exec, g, t->kernels));
    co_graph_free(g);
    return exec;
}

static void load(const co_exec *exec, char *input, const char *name, const void *from)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;

    CHECK_OK(co_exec_input(exec, name, &offset, &dtype, &shape));
    memcpy(input + offset, from, (size_t)co_shape_count(&shape) * co_dtype_size(dtype));
}

/* Evaluation of the first images with the initial weights; relative to the largest logit. */
static double worst_logit(struct net *t)
{
    co_exec *exec = compile(t, LOGITS, CO_MODE_PREDICT);
    const co_exec_info *info = co_exec_info_of(exec);
    float *out = room(info->output_bytes); /* [LOGITS, classes] */
    double most = 0, worst = 0;

    t->state = room(co_exec_layout(exec)->count * sizeof(float));
    co_layout_initialise(co_exec_layout(exec), t->state, (uint64_t)number(t->golden, "seed"));
    co_bases bases = {.state = t->state,
                      .input = room(info->input_bytes),
                      .work = room(info->work_bytes),
                      .work_bytes = info->work_bytes,
                      .output = out};
    load(exec, bases.input, "x", t->x[0]);
    co_exec_run(exec, &bases, &(co_run){.seed = 1}, NULL);
    for (size_t i = 0; i < (size_t)(LOGITS * t->io.classes); i++) {
        double want = value_at(t->golden, "logits", i);
        most = fmax(most, fabs(want));
        worst = fmax(worst, fabs((double)out[i] - want));
    }
    co_exec_free(exec);
    return worst / most;
}

/* leaf[0] is the whole batch's gradient, and sums of running statistics by sample. */
static void apply(struct net *t, int step)
{
    for (int i = 0; i < t->layout->n; i++) {
        const co_entry *e = &t->layout->entry[i];
        float *w = t->state + e->offset, *g = t->leaf[0] + e->offset;
        co_apply a = {.w = w, .g = g, .m = {t->moment + e->offset}, .n = e->count, .t = step};
        a.scale = 1 / (float)t->n;
        a.lr = t->sgd->lr(t->sgd_cfg);
        if (e->kind == CO_KIND_PARAM)
            t->sgd->apply(t->sgd_cfg, &a);
        for (size_t k = 0; e->kind == CO_KIND_STAT && k < e->count; k++)
            w[k] = (1 - e->momentum) * w[k] + e->momentum * (g[k] / (float)t->n);
    }
}

static double norm_of(const struct net *t)
{
    double squares = 0;
    bool finite = true;

    for (int i = 0; i < t->layout->n; i++)
        if (t->layout->entry[i].kind == CO_KIND_PARAM)
            squares +=
                co_sum_squares(t->leaf[0] + t->layout->entry[i].offset, t->layout->entry[i].count, &finite);
    CHECK(finite, "a gradient is not finite");
    return sqrt(squares) / t->n;
}

static double run_slices(struct net *t, const co_exec *exec, co_bases bases, int b)
{
    double stat[CO_STATS], loss = 0;
    int each = t->n / S;

    bases.stat = stat;
    for (int s = 0; s < S; s++) {
        bases.leaf = t->leaf[s];
        load(exec, bases.input, "x", t->x[b] + (size_t)(s * each) * (size_t)co_shape_count(&t->io.x));
        load(exec, bases.input, "y", t->label[b] + s * each);
        co_exec_run(exec, &bases, &(co_run){.seed = 1}, NULL);
        loss += stat[CO_STAT_LOSS];
    }
    for (size_t i = 0; i < t->layout->leaf_count; i++)
        t->leaf[0][i] += t->leaf[1][i];
    return loss / t->n;
}

static void train(struct net *t, double *worst, double *worst_norm)
{
    co_exec *exec = compile(t, t->n / S, CO_MODE_TRAIN);
    const co_exec_info *info = co_exec_info_of(exec);
    int steps = number(t->golden, "steps");

    t->layout = co_exec_layout(exec); /* the one of evaluation: its state is here */
    t->moment = room(t->layout->count * sizeof(float));
    for (int s = 0; s < S; s++)
        t->leaf[s] = room(t->layout->leaf_count * sizeof(float));
    co_bases bases = {.state = t->state,
                      .input = room(info->input_bytes),
                      .work = room(info->work_bytes),
                      .work_bytes = info->work_bytes};
    for (int step = 1; step <= steps; step++) {
        double loss = run_slices(t, exec, bases, (step - 1) % BATCHES), norm = norm_of(t);
        double want = value_at(t->golden, "losses", (size_t)step - 1),
               want_norm = value_at(t->golden, "grad_norms", (size_t)step - 1);
        CHECK(fabs(loss - want) / want <= 1e-4, "%s, step %d: loss %.9g, PyTorch has %.9g", t->model->name,
              step, loss, want);
        *worst = fmax(*worst, fabs(loss - want) / want);
        *worst_norm = fmax(*worst_norm, fabs(norm - want_norm) / want_norm);
        apply(t, step);
    }
    co_exec_free(exec);
}

static json_t *golden_cases(const char *level, const co_kernels **kernels)
{
    json_t *all;

    co_fpu_init();
    if (co_kernels_get(kernels, level))
        test_skip("%s", co_errmsg());
    CHECK_OK(co_json_read(&all, test_repo("tests/golden/resnet.json"), 1 << 20));
    return json_object_get(all, "cases");
}

/* The cases of one model, `want` of them. */
static void replay(const char *model, int want)
{
    const co_kernels *kernels;
    json_t *cases = golden_cases("avx2", &kernels), *c;
    int seen = 0;
    size_t i;

    test_note("worst relative differences from PyTorch in float64:");
    json_array_foreach(cases, i, c)
    {
        struct net t;
        double loss = 0, norm = 0, torch32 = 0;
        if (strcmp(co_json_str(c, "model"), model) != 0)
            continue;
        read_net(&t, c, kernels);
        double logit = worst_logit(&t);
        CHECK(logit <= 1e-4, "%s: logits differ by %.2g", model, logit);
        if (number(c, "steps") > 0)
            train(&t, &loss, &norm);
        CHECK(norm <= 1e-3, "%s: gradient norms differ by %.2g", model, norm);
        co_json_f64(c, "float32", &torch32);
        test_note("logits %.1e  %d steps: loss %.1e (PyTorch in float32: %.1e)  gradient norm %.1e", logit,
                  number(c, "steps"), loss, torch32, norm);
        seen++;
    }
    CHECK(seen == want, "%d cases", seen);
}

TEST(resnet18_logits_and_losses_are_those_of_pytorch_on_avx2)
{
    test_may_leak();
    replay("resnet18", 3);
}

TEST(resnet50_logits_and_losses_are_those_of_pytorch_on_avx2)
{
    test_may_leak();
    replay("resnet50", 2);
}

TEST(resnet18_logits_are_those_of_pytorch_on_ref)
{
    test_may_leak();
    const co_kernels *kernels;
    json_t *cases = golden_cases("ref", &kernels);
    struct net t;

    read_net(&t, json_array_get(cases, 0), kernels);
    double logit = worst_logit(&t);
    CHECK(logit <= 1e-4, "logits differ by %.2g", logit);
}
