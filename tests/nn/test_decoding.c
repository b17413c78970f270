/* test_decoding.c -- one token at a time, with what earlier steps kept, gives the bits of the whole model. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "nn/models.h"

enum { SENTENCES = 3, LONGEST = 6, TOKENS = 11, TARGETS = 10 };

static const int32_t sources[SENTENCES + 1] = {0, 4, 5, 11}, targets[SENTENCES + 1] = {0, 3, 9, 10};

struct seat {
    co_exec *exec;
    co_bases bases;
};

static void *room(size_t bytes)
{
    size_t size = (bytes + 64) & ~(size_t)63;

    return memset(aligned_alloc(64, size), 0, size);
}

static void sit(struct seat *s, co_graph *g)
{
    const co_kernels *kernels;

    CHECK_OK(co_kernels_get(&kernels, "auto"));
    CHECK_OK(co_exec_new(&s->exec, g, kernels));
    co_graph_free(g);
    const co_exec_info *info = co_exec_info_of(s->exec);
    s->bases = (co_bases){.state = room(co_exec_layout(s->exec)->count * sizeof(float)),
                          .input = room(info->input_bytes),
                          .output = room(info->output_bytes),
                          .work = room(info->work_bytes),
                          .work_bytes = info->work_bytes};
    co_layout_initialise(co_exec_layout(s->exec), s->bases.state, 5);
}

static void *in(const struct seat *s, const char *name)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;

    CHECK_OK(co_exec_input(s->exec, name, &offset, &dtype, &shape));
    return (char *)s->bases.input + offset;
}

static float *table(const struct seat *s, const char *what, int i)
{
    char name[32];

    snprintf(name, sizeof name, "%s.%d", what, i);
    return in(s, name);
}

static void run(struct seat *s, int64_t x, int64_t y, int64_t keys)
{
    s->bases.ragged[CO_RAGGED_X] = x;
    s->bases.ragged[CO_RAGGED_Y] = y;
    s->bases.ragged[CO_RAGGED_KEYS] = keys;
    co_exec_run(s->exec, &s->bases, &(co_run){0}, NULL);
}

static void load_sources(const struct seat *s)
{
    int32_t *x = in(s, "x");

    for (int i = 0; i < TOKENS; i++)
        x[i] = (7 * i + 3) % 31;
    memcpy(in(s, "offsets"), sources, sizeof sources);
}

static int32_t given(int t)
{
    return (5 * t + 2) % 23;
}

/* The rows of step p: one for each sentence whose target has a token p.
 * `where` is where earlier tokens were kept. */
static int load_step(struct seat *s, int p, int32_t where[TARGETS], int kept)
{
    int32_t *last = in(s, "last"), *place = in(s, "place"), *pick = in(s, "pick"), *rows = in(s, "row_offsets");
    int32_t *keys = in(s, "key_offsets"), *beams = in(s, "beam_offsets");
    int row = 0, key = 0;

    for (int i = 0; i < SENTENCES; i++) {
        if (targets[i] + p < targets[i + 1]) {
            last[row] = given(targets[i] + p);
            place[row] = p;
            for (int j = 0; j < p; j++)
                pick[key++] = where[targets[i] + j];
            pick[key++] = TARGETS + row;
            where[targets[i] + p] = kept + row;
            keys[++row] = key;
            rows[row] = row;
        }
        beams[i + 1] = row;
    }
    for (int r = row; r < SENTENCES; r++) {
        keys[r + 1] = key;
        rows[r + 1] = row;
    }
    run(s, TOKENS, row, key);
    return row;
}

TEST(a_token_at_a_time_with_kept_keys_has_the_bits_of_the_whole_model)
{
    static const co_step_room step_room = {SENTENCES,           TOKENS, SENTENCES, TARGETS,
                                           SENTENCES * LONGEST, LONGEST};
    const co_model_def *def = co_model_find("transformer");
    void *cfg = nn_cfg("transformer", NULL, NULL);
    struct seat whole, encode, step;
    co_graph *g;
    int64_t width, classes = nn_pairs.classes;
    int caches = def->decoder->caches(cfg, &width), kept = 0;
    int32_t where[TARGETS];

    test_may_leak();
    CHECK_OK(co_model_graph(&g, def, cfg, &nn_pairs, NULL, (co_slice_shape){SENTENCES, TOKENS, TARGETS},
                            CO_MODE_PREDICT));
    sit(&whole, g);
    CHECK_OK(co_encode_graph(&g, def, cfg, &nn_pairs, (co_slice_shape){.n = SENTENCES, .tokens = TOKENS}));
    sit(&encode, g);
    CHECK_OK(co_step_graph(&g, def, cfg, &nn_pairs, &step_room));
    sit(&step, g);
    CHECK_OK(co_layout_same(co_exec_layout(whole.exec), co_exec_layout(encode.exec)));
    CHECK_OK(co_layout_same(co_exec_layout(whole.exec), co_exec_layout(step.exec)));
    load_sources(&whole);
    load_sources(&encode);
    for (int i = 0; i < TARGETS; i++)
        ((int32_t *)in(&whole, "given"))[i] = given(i);
    memcpy(in(&whole, "y_offsets"), targets, sizeof targets);
    run(&whole, TOKENS, TARGETS, 0);
    run(&encode, TOKENS, 0, 0);
    memcpy(in(&step, "offsets"), sources, sizeof sources);
    for (int c = 0; c < caches; c++)
        for (int t = 0; t < TOKENS; t++)
            memcpy(table(&step, "memory", c) + t * width,
                   (float *)encode.bases.output + (t * caches + c) * width, (size_t)width * sizeof(float));
    for (int p = 0; p < LONGEST; p++) {
        int rows = load_step(&step, p, where, kept), row = 0;
        const float *out = step.bases.output;
        for (int i = 0; i < SENTENCES; i++) {
            if (targets[i] + p >= targets[i + 1])
                continue;
            CHECK(memcmp(out + row++ * (classes + caches * width),
                         (float *)whole.bases.output + (targets[i] + p) * classes,
                         (size_t)classes * sizeof(float)) == 0,
                  "sentence %d, token %d has other logits", i, p);
        }
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < caches; c++)
                memcpy(table(&step, "kept", c) + (kept + r) * width,
                       out + r * (classes + caches * width) + classes + c * width,
                       (size_t)width * sizeof(float));
        kept += rows;
    }
    CHECK(kept == TARGETS, "%d rows computed, %d tokens", kept, TARGETS);
    co_free(cfg);
}
