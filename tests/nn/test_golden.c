/* test_golden.c -- ten training steps of each model against PyTorch (tests/golden/make_steps.py), on every
 * level of kernels: graph, autodiff, kernels, the sum of leaves, clipping and optimisers in one.
 *
 * This is the step of the program with nothing around it: four slices, each its own executor; the leaves added
 * as (0 + 1) + (2 + 3); one division, one clip factor, one update.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/maths.h"
#include "harness.h"
#include "nn/nn.h"
#include "optim/optim.h"

enum { S = 4, BATCHES = 2, MAX_N = 40, MAX_X = 64, MAX_Y = 4, MAX_LEN = 16 };

struct sample {
    float x[MAX_X], y[MAX_Y]; /* numbers */
    int32_t label;            /* CLASSIFY */
    int32_t token[MAX_LEN];   /* LM: len + 1 of them */
    int len;
};

struct slice {
    co_exec *exec;
    char *input;
};

struct run {
    const json_t *golden; /* the case */
    const co_kernels *kernels;
    const co_model_def *model;
    const co_optim_def *optim;
    void *model_cfg, *optim_cfg;
    co_io io;
    int n;
    double clip;
    struct sample sample[BATCHES][MAX_N];
    struct slice slice[BATCHES][S];
    const co_layout *layout;
    float *state, *leaf[S], *moment[CO_MAX_MOMENTS]; /* [count], leaves [leaf_count] */
    void *work;
    size_t work_bytes;
};

/* Zeroed, aligned as executors want it. The test's process ends soon: nothing is given back. */
static void *room(size_t bytes)
{
    size_t size = (bytes + 64) & ~(size_t)63;
    void *p = aligned_alloc(64, size);
    CHECK(p, "no memory for %zu bytes", size);
    return memset(p, 0, size);
}

static int number(const json_t *obj, const char *key, int fallback)
{
    long long v = fallback;
    co_json_i64(obj, key, &v);
    return (int)v;
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

static void read_case(struct run *r, const json_t *c)
{
    const char *task = co_json_str(c, "task");
    json_t *dim;
    size_t i;

    r->golden = c;
    r->model = co_model_find(co_json_str(c, "model"));
    r->optim = co_optim_find(co_json_str(c, "optim"));
    r->model_cfg = options(r->model->options, r->model->cfg_size, json_object_get(c, "options"));
    r->optim_cfg = options(r->optim->options, r->optim->cfg_size, json_object_get(c, "optim_options"));
    r->io.task = strcmp(task, "lm") == 0        ? CO_TASK_LM
                 : strcmp(task, "regress") == 0 ? CO_TASK_REGRESS
                                                : CO_TASK_CLASSIFY;
    json_array_foreach(json_object_get(c, "x"), i, dim) r->io.x.d[r->io.x.nd++] = json_integer_value(dim);
    r->io.classes = number(c, "classes", 0);
    r->io.y_width = number(c, "y_width", 0);
    r->io.max_len = number(c, "max_len", 0);
    r->io.len_step = number(c, "len_step", 0);
    r->n = number(c, "n", 0);
    co_json_f64(c, "clip", &r->clip);
    CHECK(r->n >= S && r->n <= MAX_N && co_shape_count(&r->io.x) <= MAX_X && r->io.y_width <= MAX_Y &&
              r->io.max_len < MAX_LEN,
          "steps.json asks for more than this test has room for");
}

/* In the order of make_steps.py's batch(). */
static void draw_samples(struct run *r)
{
    uint64_t words = (uint64_t)number(r->golden, "seed", 0);

    for (int i = 0; i < BATCHES * r->n; i++) {
        struct sample *s = &r->sample[i / r->n][i % r->n];
        if (r->io.task == CO_TASK_LM) {
            s->len = 3 + (int)(test_u32(&words) % (uint32_t)(r->io.max_len - 2));
            for (int t = 0; t <= s->len; t++)
                s->token[t] = (int32_t)(test_u32(&words) % (uint32_t)r->io.classes);
            continue;
        }
        for (int k = 0; k < co_shape_count(&r->io.x); k++)
            s->x[k] = test_unit(&words);
        for (int k = 0; k < r->io.y_width; k++)
            s->y[k] = test_unit(&words);
        if (r->io.task == CO_TASK_CLASSIFY)
            s->label = (int32_t)(test_u32(&words) % (uint32_t)r->io.classes);
    }
}

static void *input_of(const struct slice *p, const char *name)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;

    CHECK_OK(co_exec_input(p->exec, name, &offset, &dtype, &shape));
    return p->input + offset;
}

static void fill_text(const struct slice *p, const struct sample *sample, co_slice_shape shape)
{
    int32_t *x = input_of(p, "x"), *y = input_of(p, "y"), *lens = input_of(p, "lens"); /* [n,len], [n] */

    for (int i = 0; i < shape.n; i++) {
        lens[i] = sample[i].len;
        for (int t = 0; t < shape.len; t++) {
            x[i * shape.len + t] = t < sample[i].len ? sample[i].token[t] : 0;
            y[i * shape.len + t] = t < sample[i].len ? sample[i].token[t + 1] : CO_IGNORE;
        }
    }
}

static void fill_numbers(const struct slice *p, const struct sample *sample, int n, const co_io *io)
{
    size_t wide = (size_t)co_shape_count(&io->x), y_wide = (size_t)io->y_width;
    float *x = input_of(p, "x"), *y = input_of(p, "y"); /* [n, wide], [n, y_wide] */

    for (int i = 0; i < n; i++) {
        memcpy(x + (size_t)i * wide, sample[i].x, wide * sizeof *x);
        memcpy(y + (size_t)i * y_wide, sample[i].y, y_wide * sizeof *y);
        if (io->task == CO_TASK_CLASSIFY)
            memcpy(y + i, &sample[i].label, sizeof sample[i].label);
    }
}

/* Compiles slice s of a batch for its own shape and loads it. */
static void open_slice(struct run *r, int b, int s)
{
    struct slice *p = &r->slice[b][s];
    int lo = s * r->n / S, hi = (s + 1) * r->n / S, longest = 0;
    const struct sample *sample = &r->sample[b][lo];
    co_slice_shape shape = {.n = hi - lo};
    co_graph *g;

    for (int i = 0; i < shape.n; i++)
        longest = sample[i].len > longest ? sample[i].len : longest;
    if (r->io.task == CO_TASK_LM)
        shape.len = (longest + (int)r->io.len_step - 1) / (int)r->io.len_step * (int)r->io.len_step;
    CHECK_OK(co_model_graph(&g, r->model, r->model_cfg, &r->io, NULL, shape, CO_MODE_TRAIN));
    CHECK_OK(co_exec_new(&p->exec, g, r->kernels));
    co_graph_free(g);
    const co_exec_info *info = co_exec_info_of(p->exec);
    r->work_bytes = info->work_bytes > r->work_bytes ? info->work_bytes : r->work_bytes;
    p->input = room(info->input_bytes);
    if (r->io.task == CO_TASK_LM)
        fill_text(p, sample, shape);
    else
        fill_numbers(p, sample, shape.n, &r->io);
    int64_t *ids = input_of(p, "ids");
    for (int i = 0; i < shape.n; i++)
        ids[i] = lo + i;
}

static void open_run(struct run *r, const json_t *c)
{
    read_case(r, c);
    draw_samples(r);
    for (int i = 0; i < BATCHES * S; i++)
        open_slice(r, i / S, i % S);
    r->layout = co_exec_layout(r->slice[0][0].exec);
    for (int i = 0; i < BATCHES * S; i++)
        CHECK_OK(co_layout_same(r->layout, co_exec_layout(r->slice[i / S][i % S].exec)));
    r->state = room(r->layout->count * sizeof(float));
    for (int s = 0; s < S; s++)
        r->leaf[s] = room(r->layout->leaf_count * sizeof(float));
    for (int k = 0; k < CO_MAX_MOMENTS; k++)
        r->moment[k] = room(r->layout->count * sizeof(float));
    if (r->kernels->space)
        CHECK_OK(r->kernels->space->open(&r->work, r->work_bytes));
    else
        r->work = room(r->work_bytes);
    co_layout_initialise(r->layout, r->state, (uint64_t)number(c, "seed", 0));
}

static void add(float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] += b[i];
}

/* a = a + b. A row that one of them lacks is the other's, a row that both lack stays absent. */
static void add_leaf(const co_layout *l, float *a, const float *b)
{
    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[i];
        if (!e->sparse) {
            add(a + e->offset, b + e->offset, e->count);
            continue;
        }
        size_t width = (size_t)e->shape.d[1];
        uint32_t *in_a = (uint32_t *)a + e->marks_offset;
        const uint32_t *in_b = (const uint32_t *)b + e->marks_offset;
        for (size_t row = 0; row < (size_t)e->shape.d[0]; row++) {
            size_t at = e->offset + row * width;
            if (in_a[row] && in_b[row])
                add(a + at, b + at, width);
            else if (in_b[row])
                memcpy(a + at, b + at, width * sizeof *a);
            in_a[row] |= in_b[row];
        }
    }
}

/* Calls visit(r, entry, start, n) for every run of elements that has a gradient or statistic in leaf[0]. */
typedef void (*visitor)(struct run *r, const co_entry *e, size_t start, size_t n, void *ctx);

static void each_present(struct run *r, visitor visit, void *ctx)
{
    for (int i = 0; i < r->layout->n; i++) {
        const co_entry *e = &r->layout->entry[i];
        size_t rows = e->sparse ? (size_t)e->shape.d[0] : 1;
        const uint32_t *marks = (const uint32_t *)r->leaf[0] + e->marks_offset;
        for (size_t row = 0; row < rows; row++)
            if (!e->sparse || marks[row])
                visit(r, e, e->offset + row * (e->count / rows), e->count / rows, ctx);
    }
}

static void add_squares(struct run *r, const co_entry *e, size_t start, size_t n, void *ctx)
{
    bool finite = true;

    if (e->kind == CO_KIND_PARAM)
        *(double *)ctx += co_sum_squares(r->leaf[0] + start, n, &finite);
    CHECK(finite, "%s has a gradient that is not finite", e->name);
}

static void apply(struct run *r, const co_entry *e, size_t start, size_t n, void *ctx)
{
    co_apply a = *(co_apply *)ctx;

    if (e->kind == CO_KIND_STAT)
        for (size_t i = start; i < start + n; i++)
            r->state[i] = (1 - e->momentum) * r->state[i] + e->momentum * (r->leaf[0][i] / (float)r->n);
    if (e->kind != CO_KIND_PARAM)
        return;
    a.w = r->state + start;
    a.g = r->leaf[0] + start;
    a.n = n;
    for (int k = 0; k < CO_MAX_MOMENTS; k++)
        a.m[k] = r->moment[k] + start;
    (e->sparse ? r->optim->apply_sparse : r->optim->apply)(r->optim_cfg, &a);
}

/* Step t = 1, 2, ...: gives the loss and the gradient's norm, both per row that counts. */
static void step(struct run *r, int t, double *loss, double *norm)
{
    double total[CO_STATS] = {0}, stat[CO_STATS], squares = 0;

    for (int s = 0; s < S; s++) {
        struct slice *p = &r->slice[(t - 1) % BATCHES][s];
        co_bases bases = {.state = r->state,
                          .leaf = r->leaf[s],
                          .input = p->input,
                          .work = r->work,
                          .work_bytes = r->work_bytes,
                          .stat = stat};
        co_exec_run(p->exec, &bases, &(co_run){.seed = 1, .step = (uint32_t)t}, NULL);
        for (int k = 0; k < CO_STATS; k++)
            total[k] += stat[k];
    }
    for (int gap = 1; gap < S; gap *= 2)
        for (int s = 0; s < S; s += 2 * gap)
            add_leaf(r->layout, r->leaf[s], r->leaf[s + gap]);
    each_present(r, add_squares, &squares);
    *loss = total[CO_STAT_LOSS] / total[CO_STAT_COUNT];
    *norm = sqrt(squares) / total[CO_STAT_COUNT];
    co_apply a = {.scale = (float)(co_clip_factor(*norm, r->clip) / total[CO_STAT_COUNT]),
                  .lr = r->optim->lr(r->optim_cfg),
                  .t = t};
    each_present(r, apply, &a);
}

static double golden_at(const json_t *c, const char *list, size_t i)
{
    const json_t *v = json_array_get(json_object_get(c, list), i);
    CHECK(json_is_real(v), "steps.json: %s[%zu] is no number", list, i);
    return json_real_value(v);
}

/* The weights that the golden file kept; relative to no less than a tenth. */
static double worst_weight(const struct run *r)
{
    const char *name;
    json_t *values, *v;
    double worst = 0;
    size_t i;

    json_object_foreach(json_object_get(r->golden, "final"), name, values)
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

static void replay(const json_t *c, const co_kernels *kernels, int steps)
{
    struct run *r = room(sizeof *r);
    double worst = 0, worst_norm = 0, loss, norm, torch32 = 0;

    r->kernels = kernels;
    open_run(r, c);
    for (int t = 1; t <= steps; t++) {
        step(r, t, &loss, &norm);
        double want = golden_at(c, "losses", (size_t)t - 1), diff = fabs(loss - want) / want;
        double want_norm = golden_at(c, "grad_norms", (size_t)t - 1);
        CHECK(diff <= 1e-5, "%s, step %d: loss %.9g, PyTorch has %.9g: relative difference %.2g",
              r->model->name, t, loss, want, diff);
        worst = fmax(worst, diff);
        worst_norm = fmax(worst_norm, fabs(norm - want_norm) / want_norm);
    }
    CHECK(worst_norm <= 1e-4, "%s: gradient norms differ by %.2g", r->model->name, worst_norm);
    co_json_f64(c, "float32", &torch32);
    test_note("%-6s loss %.1e (PyTorch in float32: %.1e)  gradient norm %.1e  final weights %.1e",
              r->model->name, worst, torch32, worst_norm, worst_weight(r));
}

static void replay_all(const char *level)
{
    const co_kernels *kernels;
    json_t *all, *c;
    size_t i;

    co_fpu_init();
    if (co_kernels_get(&kernels, level))
        test_skip("%s", co_errmsg());
    test_note("worst relative differences from PyTorch in float64, level %s:", level);
    CHECK_OK(co_json_read(&all, test_repo("tests/golden/steps.json"), 1 << 20));
    CHECK(number(all, "slices", 0) == S, "steps.json was made for another number of slices");
    json_array_foreach(json_object_get(all, "cases"), i, c) replay(c, kernels, number(all, "steps", 0));
    CHECK(i == 4, "%zu cases", i);
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
