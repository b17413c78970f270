/* golden.c -- reads a case, makes its batches, compiles its slices. */
#include "nn/golden.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/maths.h"
#include "harness.h"

/* ---- reading ---- */

void *golden_room(size_t bytes)
{
    size_t size = (bytes + 64) & ~(size_t)63;
    void *p = aligned_alloc(64, size);

    CHECK(p, "no memory for %zu bytes", size);
    return memset(p, 0, size);
}

json_t *golden_cases(const char *name, const char *level, const co_kernels **kernels)
{
    char path[128];
    json_t *all;

    co_fpu_init();
    if (co_kernels_get(kernels, level))
        test_skip("%s", co_errmsg());
    snprintf(path, sizeof path, "tests/golden/%s", name);
    CHECK_OK(co_json_read(&all, test_repo(path), 1 << 20));
    return json_object_get(all, "cases");
}

int golden_int(const json_t *c, const char *key, int fallback)
{
    long long v = fallback;

    co_json_i64(c, key, &v);
    return (int)v;
}

double golden_at(const json_t *c, const char *list, size_t i)
{
    const json_t *v = json_array_get(json_object_get(c, list), i);

    CHECK(json_is_real(v), "the golden file: %s[%zu] is no number", list, i);
    return json_real_value(v);
}

static void *options(const co_option *table, size_t size, const json_t *values)
{
    const char *key;
    json_t *value;
    void *cfg = golden_room(size);

    CHECK_OK(co_options_default(table, cfg));
    json_object_foreach((json_t *)values, key, value)
    {
        CHECK(co_option_find(table, key), "no option %s", key);
        CHECK_OK(co_option_set(co_option_find(table, key), cfg, key, json_string_value(value)));
    }
    return cfg;
}

static void read_case(golden *r, const json_t *c)
{
    const char *task = co_json_str(c, "task"), *schedule = co_json_str(c, "schedule");
    json_t *dim;
    size_t i;

    r->model = co_model_find(co_json_str(c, "model"));
    r->optim = co_optim_find(co_json_str(c, "optim"));
    r->schedule = co_schedule_find(schedule ? schedule : "constant");
    r->model_cfg = options(r->model->options, r->model->cfg_size, json_object_get(c, "options"));
    r->optim_cfg = options(r->optim->options, r->optim->cfg_size, json_object_get(c, "optim_options"));
    r->schedule_cfg =
        options(r->schedule->options, r->schedule->cfg_size, json_object_get(c, "schedule_options"));
    r->io.task = strcmp(task, "lm") == 0        ? CO_TASK_LM
                 : strcmp(task, "pairs") == 0   ? CO_TASK_PAIRS
                 : strcmp(task, "regress") == 0 ? CO_TASK_REGRESS
                                                : CO_TASK_CLASSIFY;
    json_array_foreach(json_object_get(c, "x"), i, dim) r->io.x.d[r->io.x.nd++] = json_integer_value(dim);
    r->io.classes = golden_int(c, "classes", 0);
    r->io.y_width = golden_int(c, "y_width", 0);
    r->io.users = golden_int(c, "users", 0);
    r->io.items = golden_int(c, "items", 0);
    co_json_f64(c, "y_mean", &r->io.y_mean);
    r->io.max_len = golden_int(c, "max_len", 0);
    r->io.sources = golden_int(c, "sources", 0);
    r->n = golden_int(c, "n", 0);
    r->steps = golden_int(c, "steps", 10);
    r->no_decay = json_is_true(json_object_get(c, "no_decay"));
    co_json_f64(c, "clip", &r->clip);
    co_json_f64(c, "ema", &r->ema_decay);
    co_json_f64(c, "label_smoothing", &r->loss.label_smoothing);
    CHECK(r->n >= r->slices && r->slices <= GOLDEN_SLICES, "%d samples in %d slices", r->n, r->slices);
}

static void draw_text(const golden *r, golden_batch *b, int i, uint64_t *words)
{
    int32_t *token = b->token + (size_t)i * (size_t)(r->io.max_len + 1);

    if (r->io.task == CO_TASK_PAIRS) {
        int32_t *source = b->source + (size_t)i * (size_t)r->io.max_len;
        b->words[i] = 3 + (int32_t)(test_u32(words) % (uint32_t)(r->io.max_len - 2));
        for (int t = 0; t < b->words[i]; t++)
            source[t] = (int32_t)(test_u32(words) % (uint32_t)r->io.sources);
    }
    b->chars[i] = 3 + (int32_t)(test_u32(words) % (uint32_t)(r->io.max_len - 2));
    for (int t = 0; t <= b->chars[i]; t++)
        token[t] = (int32_t)(test_u32(words) % (uint32_t)r->io.classes);
}

/* In the order of make_ratings.py's batch(). */
static void draw_ratings(const golden *r, golden_batch *b, uint64_t *words)
{
    b->user = golden_room((size_t)r->n * sizeof *b->user);
    b->item = golden_room((size_t)r->n * sizeof *b->item);
    b->y = golden_room((size_t)r->n * sizeof *b->y);
    for (int i = 0; i < r->n; i++) {
        b->user[i] = (int32_t)(test_u32(words) % (uint32_t)r->io.users);
        b->item[i] = (int32_t)(test_u32(words) % (uint32_t)r->io.items);
        b->y[i] = 3 + test_unit(words);
    }
}

/* In the order of make_steps.py's batch(). */
static void draw_batch(const golden *r, golden_batch *b, uint64_t *words)
{
    if (r->io.users) {
        draw_ratings(r, b, words);
        return;
    }
    size_t n = (size_t)r->n, wide = (size_t)co_shape_count(&r->io.x), y_wide = (size_t)r->io.y_width;

    b->x = golden_room(n * wide * sizeof *b->x);
    b->y = golden_room(n * y_wide * sizeof *b->y);
    b->label = golden_room(n * sizeof *b->label);
    b->token = golden_room(n * (size_t)(r->io.max_len + 1) * sizeof *b->token);
    b->chars = golden_room(n * sizeof *b->chars);
    b->source = golden_room(n * (size_t)(r->io.max_len + 1) * sizeof *b->source);
    b->words = golden_room(n * sizeof *b->words);
    for (size_t i = 0; i < n; i++) {
        if (co_is_text(&r->io)) {
            draw_text(r, b, (int)i, words);
            continue;
        }
        for (size_t k = 0; k < wide; k++)
            b->x[i * wide + k] = test_unit(words);
        for (size_t k = 0; k < y_wide; k++)
            b->y[i * y_wide + k] = test_unit(words);
        if (r->io.task == CO_TASK_CLASSIFY)
            b->label[i] = (int32_t)(test_u32(words) % (uint32_t)r->io.classes);
    }
}

/* ---- slices ---- */

static void *input_of(const co_exec *exec, char *input, const char *name, size_t *len)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;

    CHECK_OK(co_exec_input(exec, name, &offset, &dtype, &shape));
    *len = (size_t)co_shape_count(&shape) * co_dtype_size(dtype);
    return input + offset;
}

void golden_load(const co_exec *exec, char *input, const char *name, const void *from)
{
    size_t len;
    void *to = input_of(exec, input, name, &len);

    memcpy(to, from, len);
}

co_exec *golden_compile(const golden *r, co_slice_shape shape, co_mode mode)
{
    co_graph *g;
    co_exec *exec;

    CHECK_OK(co_model_graph(&g, r->model, r->model_cfg, &r->io, &r->loss, shape, mode));
    CHECK_OK(co_exec_new(&exec, g, r->kernels));
    co_graph_free(g);
    return exec;
}

/* Samples end to end: what the model is given in `in`, what it must predict in y, where they begin in
 * `offsets`. */
static void fill_text(const golden *r, const co_exec *exec, char *input, const golden_batch *b, int lo,
                      co_slice_shape shape)
{
    size_t len;
    bool pairs = r->io.task == CO_TASK_PAIRS;
    int32_t *in = input_of(exec, input, pairs ? "given" : "x", &len), *y = input_of(exec, input, "y", &len);
    int32_t *offsets = input_of(exec, input, pairs ? "y_offsets" : "offsets", &len);

    for (int i = 0; i < shape.n; i++) {
        const int32_t *token = b->token + (size_t)(lo + i) * (size_t)(r->io.max_len + 1);
        offsets[i + 1] = offsets[i] + b->chars[lo + i];
        memcpy(in + offsets[i], token, (size_t)b->chars[lo + i] * sizeof *in);
        memcpy(y + offsets[i], token + 1, (size_t)b->chars[lo + i] * sizeof *y);
    }
    if (!pairs)
        return;
    int32_t *x = input_of(exec, input, "x", &len), *sources = input_of(exec, input, "offsets", &len);
    for (int i = 0; i < shape.n; i++) {
        sources[i + 1] = sources[i] + b->words[lo + i];
        memcpy(x + sources[i], b->source + (size_t)(lo + i) * (size_t)r->io.max_len,
               (size_t)b->words[lo + i] * sizeof *x);
    }
}

static void fill_numbers(const golden *r, const co_exec *exec, char *input, const golden_batch *b, int lo)
{
    if (r->io.users) {
        golden_load(exec, input, "x", b->user + lo);
        golden_load(exec, input, "items", b->item + lo);
        golden_load(exec, input, "y", b->y + lo);
        return;
    }
    golden_load(exec, input, "x", b->x + (size_t)lo * (size_t)co_shape_count(&r->io.x));
    if (r->io.task == CO_TASK_CLASSIFY)
        golden_load(exec, input, "y", b->label + lo);
    else
        golden_load(exec, input, "y", b->y + (size_t)lo * (size_t)r->io.y_width);
}

static co_slice_shape shape_of(const golden *r, const golden_batch *b, int lo, int hi)
{
    co_slice_shape shape = {.n = hi - lo};

    for (int i = lo; co_is_text(&r->io) && i < hi; i++) {
        bool pairs = r->io.task == CO_TASK_PAIRS;
        shape.tokens += pairs ? b->words[i] : b->chars[i];
        shape.targets += pairs ? b->chars[i] : 0;
    }
    return shape;
}

static co_exec *exec_of(const golden *r, co_slice_shape shape)
{
    for (int i = 0; i < GOLDEN_BATCHES * GOLDEN_SLICES; i++) {
        co_slice_shape had = r->slice[i / GOLDEN_SLICES][i % GOLDEN_SLICES].shape;
        if (memcmp(&had, &shape, sizeof had) == 0)
            return r->slice[i / GOLDEN_SLICES][i % GOLDEN_SLICES].exec;
    }
    return golden_compile(r, shape, CO_MODE_TRAIN);
}

static void open_slice(golden *r, int at, int s)
{
    const golden_batch *b = &r->batch[at];
    int lo = s * r->n / r->slices, hi = (s + 1) * r->n / r->slices;
    co_slice_shape shape = shape_of(r, b, lo, hi);
    co_exec *exec = exec_of(r, shape);
    const co_exec_info *info = co_exec_info_of(exec);
    char *input = golden_room(info->input_bytes);
    size_t len;

    r->work_bytes = info->work_bytes > r->work_bytes ? info->work_bytes : r->work_bytes;
    if (co_is_text(&r->io))
        fill_text(r, exec, input, b, lo, shape);
    else
        fill_numbers(r, exec, input, b, lo);
    int64_t *ids = input_of(exec, input, "ids", &len);
    for (int i = 0; i < shape.n; i++)
        ids[i] = lo + i;
    r->slice[at][s].exec = exec;
    r->slice[at][s].input = input;
    r->slice[at][s].shape = shape;
}

/* The rows of all sparse entries before entry `n`. */
static size_t all_rows(const co_layout *l, int n)
{
    size_t rows = 0;

    for (int i = 0; i < n; i++)
        rows += l->entry[i].sparse ? (size_t)l->entry[i].shape.d[0] : 0;
    return rows;
}

void golden_lists(const golden *r, const co_exec *exec, co_rows rows[GOLDEN_LISTS])
{
    CHECK(r->layout->lists <= GOLDEN_LISTS, "%d lists", r->layout->lists);
    for (int i = 0; i < r->layout->n; i++) {
        const co_entry *e = &r->layout->entry[i];
        size_t cap = e->sparse ? co_exec_rows(exec, e->list) : 0;
        if (e->sparse)
            rows[e->list] =
                co_rows_in(golden_room(co_rows_elements(cap, co_entry_width(e)) * sizeof(float)), cap);
    }
}

void golden_lists_free(const golden *r, co_rows rows[GOLDEN_LISTS])
{
    for (int k = 0; k < r->layout->lists; k++)
        free(rows[k].count);
}

uint32_t *golden_marks(const golden *r, float *leaf, const co_entry *e)
{
    return (uint32_t *)leaf + r->layout->count + all_rows(r->layout, (int)(e - r->layout->entry));
}

void golden_open(golden *r, const json_t *c, const co_kernels *kernels, int slices)
{
    uint64_t words = (uint64_t)golden_int(c, "seed", 0);
    const char *names[CO_MAX_MOMENTS];

    *r = (golden){.c = c, .kernels = kernels, .slices = slices};
    read_case(r, c);
    for (int b = 0; b < GOLDEN_BATCHES; b++) {
        draw_batch(r, &r->batch[b], &words);
        for (int s = 0; s < slices; s++)
            open_slice(r, b, s);
    }
    r->layout = co_exec_layout(r->slice[0][0].exec);
    for (int i = 0; i < GOLDEN_BATCHES * slices; i++)
        CHECK_OK(co_layout_same(r->layout, co_exec_layout(r->slice[i / slices][i % slices].exec)));
    r->state = golden_room(r->layout->count * sizeof(float));
    for (int s = 0; s < slices; s++)
        r->leaf[s] = golden_room((r->layout->count + all_rows(r->layout, r->layout->n)) * sizeof(float));
    for (int k = r->optim->moments(r->optim_cfg, names); k > 0; k--)
        r->moment[k - 1] = golden_room(r->layout->count * sizeof(float));
    if (r->ema_decay > 0)
        r->ema = golden_room(r->layout->count * sizeof(float));
    if (kernels->space)
        CHECK_OK(kernels->space->open(&r->work, r->work_bytes));
    else
        r->work = golden_room(r->work_bytes);
    co_layout_initialise(r->layout, r->state, (uint64_t)golden_int(c, "seed", 0));
}

double golden_worst_logit(const golden *r, int n, double *top)
{
    co_exec *exec = golden_compile(r, (co_slice_shape){.n = n}, CO_MODE_PREDICT);
    const co_exec_info *info = co_exec_info_of(exec);
    float *out = golden_room(info->output_bytes); /* [n, classes] */
    double worst = 0;

    CHECK_OK(co_layout_same(r->layout, co_exec_layout(exec)));
    co_bases bases = {.state = r->state,
                      .input = golden_room(info->input_bytes),
                      .work = golden_room(info->work_bytes),
                      .work_bytes = info->work_bytes,
                      .output = out};
    golden_load(exec, bases.input, "x", r->batch[0].x);
    co_exec_run(exec, &bases, &(co_run){.seed = 1}, NULL);
    *top = 0;
    for (size_t i = 0; i < (size_t)n * (size_t)r->io.classes; i++) {
        double want = golden_at(r->c, "logits", i);
        *top = fmax(*top, fabs(want));
        worst = fmax(worst, fabs((double)out[i] - want));
    }
    co_exec_free(exec);
    return worst;
}
