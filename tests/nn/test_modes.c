/* test_modes.c -- models in training, evaluation and prediction: the modes agree where they must and differ
 * where they must. */
#include "nn/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"

enum { LISTS = 4 };

struct seat {
    co_exec *exec;
    co_io io;
    co_slice_shape shape;
    int tokens; /* of the samples that load() made */
    char *input;
    float *state, *leaf, *output;
    co_rows rows[LISTS];
    void *work;
    double stat[CO_STATS];
};

static void *room(size_t bytes)
{
    size_t size = (bytes + 64) & ~(size_t)63;
    void *p = aligned_alloc(64, size);
    CHECK(p, "no memory for %zu bytes", size);
    return memset(p, 0, size);
}

static void sit(struct seat *s, const char *model, const void *cfg, const co_io *io, co_slice_shape shape,
                co_mode mode)
{
    *s = (struct seat){.exec = nn_compile(model, cfg, io, shape, mode), .io = *io, .shape = shape};
    const co_exec_info *info = co_exec_info_of(s->exec);
    const co_layout *l = co_exec_layout(s->exec);
    s->input = room(info->input_bytes);
    s->state = room(l->count * sizeof(float));
    s->leaf = room(l->dense * sizeof(float));
    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[i];
        size_t cap = e->sparse ? co_exec_rows(s->exec, e->list) : 0;
        if (e->sparse)
            s->rows[e->list] = co_rows_in(room(co_rows_elements(cap, co_entry_width(e)) * sizeof(float)), cap);
    }
    s->output = room(info->output_bytes);
    s->work = room(info->work_bytes);
    co_layout_initialise(l, s->state, 5);
}

static void leave(struct seat *s)
{
    co_exec_free(s->exec);
    free(s->input);
    free(s->state);
    free(s->leaf);
    for (int k = 0; k < LISTS; k++)
        free(s->rows[k].count);
    free(s->output);
    free(s->work);
}

static void *input_of(struct seat *s, const char *name)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;

    return co_exec_input(s->exec, name, &offset, &dtype, &shape) ? NULL : s->input + offset;
}

static void run(struct seat *s, uint32_t step)
{
    co_bases bases = {.state = s->state,
                      .leaf = s->leaf,
                      .rows = s->rows,
                      .input = s->input,
                      .work = s->work,
                      .stat = s->stat,
                      .output = s->output,
                      .work_bytes = co_exec_info_of(s->exec)->work_bytes,
                      .ragged = {0, s->tokens, s->tokens}};
    co_exec_run(s->exec, &bases, &(co_run){.seed = 3, .step = step}, NULL);
}

/* Adds sample i, of `len` tokens, to a slice of text. Sources and targets are as long. */
static void add_text(struct seat *s, int i, int len)
{
    int32_t *x = input_of(s, "x"), *y = input_of(s, "y"), *given = input_of(s, "given");
    int32_t *offsets = input_of(s, "offsets"), *y_offsets = input_of(s, "y_offsets");
    uint64_t words = (uint64_t)i + 1;

    for (int t = s->tokens; t < s->tokens + len; t++) {
        int32_t token = (int32_t)(test_u32(&words) % (uint32_t)s->io.classes);
        x[t] = token;
        if (y)
            y[t] = (token + 1) % (int32_t)s->io.classes;
        if (given)
            given[t] = (token + 2) % (int32_t)s->io.classes;
    }
    s->tokens += len;
    for (int k = i + 1; k <= s->shape.n; k++) {
        offsets[k] = s->tokens;
        if (y_offsets)
            y_offsets[k] = s->tokens;
    }
}

/* Makes the same samples for every mode and room; sample i has its own tokens. */
static void load(struct seat *s)
{
    int wide = (int)co_shape_count(&s->io.x);
    void *x = input_of(s, "x"), *y = input_of(s, "y");
    int64_t *ids = input_of(s, "ids");

    for (int i = 0; i < s->shape.n; i++) {
        uint64_t words = (uint64_t)i + 1;
        ids[i] = i;
        if (co_is_text(&s->io)) {
            add_text(s, i, 2 + i % 3);
            continue;
        }
        for (int k = 0; k < wide; k++)
            ((float *)x)[i * wide + k] = test_unit(&words);
        for (int k = 0; y && k < s->io.y_width; k++)
            ((float *)y)[i * s->io.y_width + k] = test_unit(&words);
        if (y && s->io.task == CO_TASK_CLASSIFY)
            ((int32_t *)y)[i] = i % (int32_t)s->io.classes;
    }
}

/* Loss, count and metric of predictions, in double, by their definitions. y comes from a seat that has it. */
static void measure(double want[CO_STATS], const struct seat *pred, struct seat *with_y)
{
    int wide = (int)(pred->io.task == CO_TASK_REGRESS ? pred->io.y_width : pred->io.classes);
    int n = co_is_text(&pred->io) ? pred->tokens : pred->shape.n;
    const void *y = input_of(with_y, "y");

    memset(want, 0, CO_STATS * sizeof *want);
    for (int i = 0; i < n; i++) {
        const float *row = pred->output + i * wide; /* [wide] */
        int32_t target = pred->io.task == CO_TASK_REGRESS ? 0 : ((const int32_t *)y)[i];
        double sum = 0, squares = 0, apart = 0;
        int best = 0;
        for (int k = 0; k < wide; k++) {
            double off =
                pred->io.task == CO_TASK_REGRESS ? (double)row[k] - ((const float *)y)[i * wide + k] : 0;
            squares += off * off / wide;
            apart += fabs(off) / wide;
            sum += exp((double)row[k]);
            best = row[k] > row[best] ? k : best;
        }
        if (target == CO_IGNORE)
            continue;
        bool classes = pred->io.task != CO_TASK_REGRESS;
        want[CO_STAT_LOSS] += classes ? log(sum) - (double)row[target] : squares;
        want[CO_STAT_METRIC] += classes ? best == target : apart;
        want[CO_STAT_COUNT] += 1;
    }
}

TEST(evaluation_measures_what_prediction_predicts)
{
    for (size_t i = 0; nn_fits[i].model; i++) {
        struct seat eval, pred;
        void *cfg = nn_cfg(nn_fits[i].model, NULL, NULL);
        double want[CO_STATS];
        sit(&eval, nn_fits[i].model, cfg, nn_fits[i].io, nn_shape(nn_fits[i].io, 9), CO_MODE_EVAL);
        sit(&pred, nn_fits[i].model, cfg, nn_fits[i].io, nn_shape(nn_fits[i].io, 9), CO_MODE_PREDICT);
        CHECK(!input_of(&pred, "y"), "%s has y as an input in prediction", nn_fits[i].model);
        load(&eval);
        load(&pred);
        run(&eval, 1);
        run(&pred, 1);
        measure(want, &pred, &eval);
        CHECK(fabs(eval.stat[CO_STAT_LOSS] - want[CO_STAT_LOSS]) <= 1e-5 * want[CO_STAT_LOSS],
              "%s: loss %g, not %g", nn_fits[i].model, eval.stat[CO_STAT_LOSS], want[CO_STAT_LOSS]);
        CHECK(eval.stat[CO_STAT_COUNT] == want[CO_STAT_COUNT] && want[CO_STAT_COUNT] >= 9,
              "%s: count %g, not %g", nn_fits[i].model, eval.stat[CO_STAT_COUNT], want[CO_STAT_COUNT]);
        CHECK(fabs(eval.stat[CO_STAT_METRIC] - want[CO_STAT_METRIC]) <= 1e-5 * want[CO_STAT_METRIC],
              "%s: metric %g, not %g", nn_fits[i].model, eval.stat[CO_STAT_METRIC], want[CO_STAT_METRIC]);
        leave(&eval);
        leave(&pred);
        co_free(cfg);
    }
}

TEST(dropout_works_in_training_only_and_anew_each_step)
{
    static const char *const models[] = {"mlp", "cnn", "lm", "transformer"};
    static const co_io *const ios[] = {&nn_rows, &nn_images, &nn_text, &nn_pairs};

    for (size_t i = 0; i < CO_COUNT(models); i++) {
        struct seat train, eval;
        void *cfg = nn_cfg(models[i], "dropout", "0.5");
        double first;
        sit(&train, models[i], cfg, ios[i], nn_shape(ios[i], 8), CO_MODE_TRAIN);
        sit(&eval, models[i], cfg, ios[i], nn_shape(ios[i], 8), CO_MODE_EVAL);
        load(&train);
        load(&eval);
        run(&train, 1);
        first = train.stat[CO_STAT_LOSS];
        run(&train, 2);
        CHECK(train.stat[CO_STAT_LOSS] != first, "%s drops the same in every step", models[i]);
        run(&train, 1);
        CHECK(train.stat[CO_STAT_LOSS] == first, "%s does not drop the same again", models[i]);
        run(&eval, 1);
        double loss = eval.stat[CO_STAT_LOSS];
        run(&eval, 2);
        CHECK(eval.stat[CO_STAT_LOSS] == loss && loss != first, "%s drops in evaluation", models[i]);
        leave(&train);
        leave(&eval);
        co_free(cfg);
    }
}

/* The same samples in graphs of different capacity, and in two slices instead of one. */
TEST(room_that_is_not_used_changes_no_bit_of_text)
{
    static const char *const models[] = {"lm", "transformer"};
    static const co_io *const ios[] = {&nn_text, &nn_pairs};

    for (int i = 0; i < 2; i++) {
        struct seat narrow, wide;
        void *cfg = nn_cfg(models[i], "dropout", "0.5");
        sit(&narrow, models[i], cfg, ios[i], (co_slice_shape){5, 14, 14}, CO_MODE_TRAIN);
        sit(&wide, models[i], cfg, ios[i], (co_slice_shape){9, 77, 55}, CO_MODE_TRAIN);
        load(&narrow);
        wide.shape.n = 5;
        load(&wide);
        int32_t *offsets = input_of(&wide, "offsets"), *y_offsets = input_of(&wide, "y_offsets");
        for (int k = 6; k <= 9; k++) {
            offsets[k] = wide.tokens;
            if (y_offsets)
                y_offsets[k] = wide.tokens;
        }
        run(&narrow, 1);
        run(&wide, 1);
        size_t dense = co_exec_layout(narrow.exec)->dense;
        CHECK(memcmp(narrow.stat, wide.stat, sizeof narrow.stat) == 0, "%s: loss %.9g, not %.9g", models[i],
              wide.stat[CO_STAT_LOSS], narrow.stat[CO_STAT_LOSS]);
        CHECK(memcmp(narrow.leaf, wide.leaf, dense * sizeof(float)) == 0, "%s: another gradient", models[i]);
        leave(&narrow);
        leave(&wide);
        co_free(cfg);
    }
}

/* Counts what each call computes: the rows of its ragged arguments against the tokens of the slice. */
struct count {
    int64_t tokens, calls, others;
};

static void count_rows(void *ctx, int call, const co_arg *out, int n_out)
{
    struct count *c = ctx;

    for (int i = 0; i < n_out; i++) {
        c->calls += out[i].shape.nd > 0 && out[i].shape.d[0] == c->tokens;
        c->others += out[i].shape.nd > 1 && out[i].shape.d[0] == 997; /* the capacity */
    }
}

TEST(no_pad_row_of_text_is_computed)
{
    static const char *const models[] = {"lm", "transformer"};
    static const co_io *const ios[] = {&nn_text, &nn_pairs};

    for (int i = 0; i < 2; i++) {
        struct seat s;
        struct count count = {0};
        void *cfg = nn_cfg(models[i], "dropout", "0.1");
        sit(&s, models[i], cfg, ios[i], (co_slice_shape){7, 997, 997}, CO_MODE_TRAIN);
        load(&s);
        count.tokens = s.tokens;
        co_bases bases = {.state = s.state,
                          .leaf = s.leaf,
                          .rows = s.rows,
                          .input = s.input,
                          .work = s.work,
                          .stat = s.stat,
                          .work_bytes = co_exec_info_of(s.exec)->work_bytes,
                          .ragged = {0, s.tokens, s.tokens}};
        co_exec_run_watched(s.exec, &bases, &(co_run){.seed = 3, .step = 1}, &(co_watcher){&count, count_rows});
        CHECK(s.stat[CO_STAT_COUNT] == s.tokens, "%g tokens count, %d are computed", s.stat[CO_STAT_COUNT],
              s.tokens);
        CHECK(count.calls > 20 && count.others == 0,
              "%s: %lld results with a row per token, %lld with pad rows", models[i], (long long)count.calls,
              (long long)count.others);
        leave(&s);
        co_free(cfg);
    }
}

TEST(a_later_character_does_not_change_an_earlier_prediction)
{
    struct seat s;
    void *cfg = nn_cfg("lm", NULL, NULL);
    float before[8 * 29];

    sit(&s, "lm", cfg, &nn_text, (co_slice_shape){1, 8, 0}, CO_MODE_PREDICT);
    add_text(&s, 0, 8);
    run(&s, 1);
    memcpy(before, s.output, sizeof before);
    ((int32_t *)input_of(&s, "x"))[5] = 17;
    run(&s, 1);
    CHECK(memcmp(before, s.output, 5 * 29 * sizeof(float)) == 0, "the model looks ahead");
    CHECK(memcmp(before + 5 * 29, s.output + 5 * 29, 3 * 29 * sizeof(float)) != 0,
          "the later character changes nothing at all");
    leave(&s);
    co_free(cfg);
}

TEST(a_sample_s_prediction_does_not_depend_on_its_neighbours)
{
    static const char *const models[] = {"lm", "transformer"};
    static const co_io *const ios[] = {&nn_text, &nn_pairs};

    for (int i = 0; i < 2; i++) {
        struct seat s;
        void *cfg = nn_cfg(models[i], NULL, NULL);
        int64_t wide = ios[i]->classes;
        float *before = room((size_t)(30 * wide) * sizeof *before);
        sit(&s, models[i], cfg, ios[i], (co_slice_shape){3, 20, 20}, CO_MODE_PREDICT);
        load(&s); /* samples of 2, 3 and 4 tokens */
        run(&s, 1);
        memcpy(before, s.output, (size_t)(9 * wide) * sizeof *before);
        ((int32_t *)input_of(&s, "x"))[3] ^= 1; /* of the second */
        run(&s, 1);
        CHECK(memcmp(before, s.output, (size_t)(2 * wide) * sizeof *before) == 0, "%s: the first", models[i]);
        CHECK(memcmp(before + 2 * wide, s.output + 2 * wide, (size_t)(3 * wide) * sizeof *before) != 0,
              "%s: its own is the same", models[i]);
        CHECK(memcmp(before + 5 * wide, s.output + 5 * wide, (size_t)(4 * wide) * sizeof *before) == 0,
              "%s: the third", models[i]);
        free(before);
        leave(&s);
        co_free(cfg);
    }
}
