/* test_fastnet.c -- the fast network for CIFAR-10: its parameters and start, the whitening filters and ten
 * training steps of PyTorch (tests/golden/make_fastnet.py), and predictions averaged over mirror images. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "nn/golden.h"
#include "nn/models.h"

static const co_io cifar = {.task = CO_TASK_CLASSIFY, .x = {3, {3, 32, 32}}, .classes = 10};

TEST(fastnet_has_airbench_s_parameters)
{
    static const char want[] =
        "whiten.weight [24,3,2,2]\nwhiten.bias [24]\n"
        "block1.conv1.weight [64,24,3,3]\nblock1.norm1.weight [64]\nblock1.norm1.bias [64]\n"
        "block1.conv2.weight [64,64,3,3]\nblock1.norm2.weight [64]\nblock1.norm2.bias [64]\n"
        "block2.conv1.weight [256,64,3,3]\nblock2.norm1.weight [256]\nblock2.norm1.bias [256]\n"
        "block2.conv2.weight [256,256,3,3]\nblock2.norm2.weight [256]\nblock2.norm2.bias [256]\n"
        "block3.conv1.weight [256,256,3,3]\nblock3.norm1.weight [256]\nblock3.norm1.bias [256]\n"
        "block3.conv2.weight [256,256,3,3]\nblock3.norm2.weight [256]\nblock3.norm2.bias [256]\n"
        "head.weight [10,256]\n";
    void *cfg = nn_cfg("fastnet", NULL, NULL);
    co_exec *exec = nn_compile("fastnet", cfg, &cifar, nn_shape(&cifar, 2), CO_MODE_PREDICT);
    const co_layout *l = co_exec_layout(exec);
    co_str got = {0};
    char dims[64];

    for (int i = 0; i < l->n; i++)
        if (l->entry[i].kind == CO_KIND_PARAM)
            co_str_addf(&got, "%s %s\n", l->entry[i].name,
                        co_shape_text(dims, sizeof dims, &l->entry[i].shape));
    CHECK(strcmp(co_str_text(&got), want) == 0, "it has\n%s", co_str_text(&got));
    co_str_fini(&got);
    co_exec_free(exec);
    co_free(cfg);
}

TEST(fastnet_s_convolutions_start_by_passing_channels_on)
{
    void *cfg = nn_cfg("fastnet", "width1", "16");
    co_exec *exec = nn_compile("fastnet", cfg, &cifar, nn_shape(&cifar, 2), CO_MODE_PREDICT);
    const co_layout *l = co_exec_layout(exec);
    float *state = co_array(l->count, sizeof *state);
    const co_entry *few = co_layout_find(l, "block1.conv1.weight");  /* [16,24,3,3] */
    const co_entry *more = co_layout_find(l, "block2.conv1.weight"); /* [256,16,3,3] */

    co_layout_initialise(l, state, 1);
    for (size_t i = 0; i < few->count; i++) {
        size_t o = i / (24 * 9), in = i / 9 % 24;
        CHECK(state[few->offset + i] == (o == in && i % 9 == 4), "[%zu] is %g", i,
              (double)state[few->offset + i]);
    }
    const float *drawn = state + more->offset + 16 * 16 * 9;
    CHECK(state[more->offset + 4] == 1 && state[more->offset] == 0 && drawn[0] != 0 &&
              fabsf(drawn[0]) <= 1.0f / 12,
          "the filters after the first 16 are drawn: %g", (double)drawn[0]);
    co_free(state);
    co_exec_free(exec);
    co_free(cfg);
}

TEST(fastnet_refuses_data_that_does_not_fit)
{
    static const co_io oblong = {.task = CO_TASK_CLASSIFY, .x = {3, {3, 32, 40}}, .classes = 10};
    const co_model_def *def = co_model_find("fastnet");
    void *cfg = nn_cfg("fastnet", NULL, NULL);

    CHECK_FAILS(def->check(cfg, &nn_text), CO_EINPUT, "the data is text; try model=lm");
    CHECK_FAILS(def->check(cfg, &nn_rows), CO_EINPUT, "needs square pictures of 16x16 pixels at least");
    CHECK_FAILS(def->check(cfg, &nn_images), CO_EINPUT, "the data has [1,8,8]; try data.crop=32");
    CHECK_FAILS(def->check(cfg, &oblong), CO_EINPUT, "the data has [3,32,40]");
    CHECK_OK(def->check(cfg, &cifar));
    co_free(cfg);
}

/* --- whitening ------------------------------------------------------------------------------------------ */

TEST(filters_that_cannot_whiten_the_data_are_refused)
{
    co_entry entry = {.name = "w", .shape = CO_SHAPE(24, 3, 2, 2)};
    co_whiten w;

    CHECK_OK(co_whiten_init(&w, &entry, &cifar));
    CHECK_FAILS(co_whiten_init(&w, &entry, &nn_images), CO_EINPUT,
                "w [24,3,2,2] cannot whiten samples of [1,8,8]");
    CHECK_FAILS(co_whiten_init(&w, &entry, &nn_rows), CO_EINPUT, "cannot whiten samples of [20]");
    entry.shape = CO_SHAPE(12, 3, 2, 2);
    CHECK_FAILS(co_whiten_init(&w, &entry, &cifar), CO_EINPUT, "it must be [2m,c,k,k]");
    entry.shape = CO_SHAPE(96, 3, 4, 4);
    CHECK_OK(co_whiten_init(&w, &entry, &cifar));
    entry.shape = CO_SHAPE(150, 3, 5, 5);
    CHECK_FAILS(co_whiten_init(&w, &entry, &cifar), CO_EINPUT, "at most 48");
}

/* The pictures of the first batch, smoothed as make_fastnet.py does. */
static float *smoothed(const golden *r)
{
    size_t n = (size_t)(r->n * co_shape_count(&r->io.x));
    float *y = golden_room(n * sizeof *y), last = 0;

    for (size_t i = 0; i < n; i++)
        y[i] = last = r->batch[0].x[i] + 0.5f * last;
    return y;
}

/* Whitens `whiten.weight` in pieces of 3 pictures; returns how far it is from PyTorch's filters. */
static double whiten_first_layer(const golden *r)
{
    const co_entry *e = co_layout_find(r->layout, "whiten.weight");
    size_t half = e->count / 2, one = (size_t)co_shape_count(&r->io.x);
    float *x = smoothed(r), *out = r->state + e->offset;
    double worst = 0;
    co_whiten w;

    CHECK_OK(co_whiten_init(&w, e, &r->io));
    for (int i = 0; i < r->n; i += 3)
        co_whiten_add(&w, x + (size_t)i * one, r->n - i < 3 ? r->n - i : 3);
    co_whiten_filters(&w, out);
    for (size_t i = 0; i < half; i++) {
        worst = fmax(worst, fabs((double)out[i] - golden_at(r->c, "filters", i)));
        CHECK(out[half + i] == -out[i], "filter element %zu has no negative", i);
    }
    return worst;
}

TEST(whitening_filters_and_ten_steps_of_fastnet_are_those_of_pytorch)
{
    static const char *const levels[] = {"ref", "avx2"};

    test_may_leak();
    for (size_t i = 0; i < CO_COUNT(levels); i++) {
        const co_kernels *kernels;
        json_t *cases = golden_cases("fastnet.json", levels[i], &kernels), *c;
        size_t k;
        json_array_foreach(cases, k, c)
        {
            golden r;
            double loss, norm;
            golden_open(&r, c, kernels, 2);
            double filters = whiten_first_layer(&r);
            CHECK(filters <= 1e-6, "case %zu: filters differ by %.2g", k, filters);
            golden_replay(&r, r.steps, 1e-5, &loss, &norm);
            CHECK(norm <= 1e-4, "case %zu: gradient norms differ by %.2g", k, norm);
            test_note("%s: filters %.1e  loss %.1e  gradient norm %.1e", levels[i], filters, loss, norm);
        }
        CHECK(k == 2, "%zu cases", k);
    }
}

/* --- mirror images -------------------------------------------------------------------------------------- */

enum { N = 3 };

/* The logits of the pictures x [rows,1,8,8] by a cnn. */
static void predict(const co_io *io, int n, const float *x, size_t rows, float *logits)
{
    void *cfg = nn_cfg("cnn", "width", "4");
    co_exec *exec = nn_compile("cnn", cfg, io, nn_shape(io, n), CO_MODE_PREDICT);
    const co_exec_info *info = co_exec_info_of(exec);
    size_t offset;
    co_dtype dtype;
    co_shape shape;
    co_bases bases = {.state = golden_room(co_exec_layout(exec)->count * sizeof(float)),
                      .input = golden_room(info->input_bytes),
                      .work = golden_room(info->work_bytes),
                      .work_bytes = info->work_bytes,
                      .output = golden_room(info->output_bytes)};

    co_layout_initialise(co_exec_layout(exec), bases.state, 3);
    CHECK_OK(co_exec_input(exec, "x", &offset, &dtype, &shape));
    CHECK(shape.d[0] == (int64_t)rows, "x has %lld rows", (long long)shape.d[0]);
    memcpy((char *)bases.input + offset, x, rows * 64 * sizeof *x);
    co_exec_run(exec, &bases, &(co_run){.seed = 1}, NULL);
    memcpy(logits, bases.output, (size_t)n * 10 * sizeof *logits);
    co_exec_free(exec);
    co_free(cfg);
}

TEST(with_mirror_images_a_prediction_is_the_mean_of_two)
{
    co_io both = nn_images;
    float x[2 * N * 64], each[2 * N * 10], mean[N * 10];
    uint64_t seed = 5;

    test_may_leak();
    both.mirror = true;
    for (int i = 0; i < N * 64; i++)
        x[i] = test_unit(&seed);
    for (int i = 0; i < N * 64; i++)
        x[N * 64 + i] = x[i / 8 * 8 + 7 - i % 8];
    predict(&nn_images, 2 * N, x, 2 * N, each);
    predict(&both, N, x, 2 * N, mean);
    for (int i = 0; i < N * 10; i++) {
        CHECK(mean[i] == (each[i] + each[N * 10 + i]) * 0.5f, "[%d] is %g", i, (double)mean[i]);
        CHECK(each[i] != each[N * 10 + i], "a picture and its mirror image look alike");
    }
    void *cfg = nn_cfg("cnn", "width", "4");
    co_exec *training = nn_compile("cnn", cfg, &both, nn_shape(&both, N), CO_MODE_TRAIN);
    size_t offset;
    co_dtype dtype;
    co_shape shape;
    CHECK_OK(co_exec_input(training, "x", &offset, &dtype, &shape));
    CHECK(shape.d[0] == N, "training has no mirror images");
}
