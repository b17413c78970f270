/* test_vit.c -- vision transformers: timm's names, counts and start, and its logits and losses
 * (tests/golden/make_vit.py). */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "nn/golden.h"
#include "nn/models.h"

enum { S = 2, LOGITS = 2 };

static const co_io photos = {.task = CO_TASK_CLASSIFY, .x = {3, {3, 224, 224}}, .classes = 1000};
static const co_io icons = {.task = CO_TASK_CLASSIFY, .x = {3, {3, 32, 32}}, .classes = 1000};

static const json_t *golden_file(void)
{
    json_t *all;

    CHECK_OK(co_json_read(&all, test_repo("tests/golden/vit.json"), 1 << 20));
    return all;
}

/* ---- the shape of the networks ---- */

/* Compares the entries from `at` on with a list of timm's names and shapes; returns the entry after them. */
static int entries_are(const co_layout *l, int at, const char *prefix, const json_t *want)
{
    char name[128], shape[96];
    const json_t *pair, *dim;
    size_t i, k;

    json_array_foreach(want, i, pair)
    {
        co_shape s = {0};
        json_array_foreach(json_array_get(pair, 1), k, dim) s.d[s.nd++] = json_integer_value(dim);
        snprintf(name, sizeof name, "%s%s", prefix, json_string_value(json_array_get(pair, 0)));
        CHECK(at < l->n, "%s is missing", name);
        CHECK(strcmp(l->entry[at].name, name) == 0 && co_shape_eq(&l->entry[at].shape, &s),
              "entry %d is %s %s, timm has %s", at, l->entry[at].name,
              co_shape_text(shape, sizeof shape, &l->entry[at].shape), name);
        at++;
    }
    return at;
}

static void names_are(const json_t *want)
{
    const char *model = co_json_str(want, "model");
    const co_io *io = strstr(model, "_32") == model + strlen(model) - 3 ? &icons : &photos;
    void *cfg = nn_cfg(model, NULL, NULL);
    co_exec *exec = nn_compile(model, cfg, io, nn_shape(io, 1), CO_MODE_PREDICT);
    const co_layout *l = co_exec_layout(exec);
    char block[32];
    size_t count = 0;

    int at = entries_are(l, 0, "", json_object_get(want, "before"));
    for (int i = 0; i < golden_int(want, "depth", 0); i++) {
        snprintf(block, sizeof block, "blocks.%d.", i);
        at = entries_are(l, at, block, json_object_get(want, "block"));
    }
    at = entries_are(l, at, "", json_object_get(want, "after"));
    for (int i = 0; i < l->n; i++)
        count += l->entry[i].count;
    CHECK(at == l->n && count == (size_t)golden_int(want, "parameters", 0),
          "%s: %d of %d entries, %zu parameters", model, at, l->n, count);
    co_exec_free(exec);
    co_free(cfg);
}

TEST(vits_have_timm_s_names_shapes_and_counts_in_its_order)
{
    test_may_leak();
    const json_t *models = json_object_get(golden_file(), "models"), *model;
    int rows = 0;
    size_t i;

    json_array_foreach(models, i, model) names_are(model);
    for (int k = 0; co_models[k]; k++)
        rows += strncmp(co_models[k]->name, "vit_", 4) == 0;
    CHECK(rows == (int)i, "%d rows, timm's file has %zu", rows, i);
}

TEST(vits_have_as_many_positions_as_the_pictures_have_patches)
{
    static const co_io wide = {.task = CO_TASK_CLASSIFY, .x = {3, {1, 64, 96}}, .classes = 10};
    void *cfg = nn_cfg("vit_tiny_patch16_224", "depth", "1");
    co_exec *exec = nn_compile("vit_tiny_patch16_224", cfg, &wide, nn_shape(&wide, 2), CO_MODE_TRAIN);
    const co_entry *pos = co_layout_find(co_exec_layout(exec), "pos_embed");

    CHECK(pos && pos->shape.d[1] == 1 + 4 * 6, "pos_embed has %lld rows",
          pos ? (long long)pos->shape.d[1] : -1);
    co_exec_free(exec);
    co_free(cfg);
}

static void starts_as(const co_layout *l, const float *state, const char *name, double std, double most)
{
    const co_entry *e = co_layout_find(l, name);
    double squares = 0, top = 0;

    CHECK(e, "no entry %s", name);
    for (size_t i = 0; i < e->count; i++) {
        squares += (double)state[e->offset + i] * (double)state[e->offset + i];
        top = fmax(top, fabs((double)state[e->offset + i]));
    }
    double got = sqrt(squares / (double)e->count), slack = 4 * std / sqrt((double)e->count);
    CHECK(fabs(got - std) <= slack && top <= most, "%s: deviation %g, largest %g", name, got, top);
}

TEST(vits_start_as_timm_s)
{
    void *cfg = nn_cfg("vit_tiny_patch16_224", NULL, NULL);
    co_exec *exec = nn_compile("vit_tiny_patch16_224", cfg, &photos, nn_shape(&photos, 1), CO_MODE_PREDICT);
    const co_layout *l = co_exec_layout(exec);
    float *state = co_array(l->count, sizeof *state);
    double conv = 1 / sqrt(3 * 16 * 16.0);

    co_layout_initialise(l, state, 1);
    starts_as(l, state, "cls_token", 1e-6, 6e-6);
    starts_as(l, state, "pos_embed", 0.02, 0.14);
    starts_as(l, state, "patch_embed.proj.weight", conv / sqrt(3), conv);
    starts_as(l, state, "patch_embed.proj.bias", conv / sqrt(3), conv);
    starts_as(l, state, "blocks.11.attn.qkv.weight", 0.02, 0.14);
    starts_as(l, state, "blocks.0.mlp.fc2.weight", 0.02, 0.14);
    starts_as(l, state, "blocks.3.attn.proj.bias", 0, 0);
    starts_as(l, state, "blocks.3.norm2.weight", 1, 1);
    starts_as(l, state, "head.weight", 0.02, 0.14);
    starts_as(l, state, "head.bias", 0, 0);
    co_free(state);
    co_exec_free(exec);
    co_free(cfg);
}

TEST(vits_refuse_data_that_they_cannot_cut_and_heads_that_do_not_fit)
{
    static const co_io odd = {.task = CO_TASK_CLASSIFY, .x = {3, {3, 30, 64}}, .classes = 10};
    const co_model_def *def = co_model_find("vit_base_patch32_224");
    void *cfg = nn_cfg(def->name, NULL, NULL), *heads = nn_cfg(def->name, "num_heads", "7");
    co_slice_shape two = {.n = 2};
    co_graph *g;

    CHECK_FAILS(def->check(cfg, &nn_text), CO_EINPUT, "the data is text; try model=lm");
    CHECK_FAILS(def->check(cfg, &nn_rows), CO_EINPUT, "needs images [C,H,W]; the data has [20]");
    CHECK_FAILS(co_model_graph(&g, def, cfg, &odd, NULL, two, CO_MODE_TRAIN), CO_EINPUT,
                "model 'vit_base_patch32_224': it cuts images into patches of 32x32 pixels; the data has "
                "[3,30,64]; try data.resize=32x64");
    CHECK_FAILS(co_model_graph(&g, def, heads, &icons, NULL, two, CO_MODE_TRAIN), CO_EINPUT,
                "a width of 768 cannot be cut into 7 equal heads; try model.embed_dim=770");
    CHECK(!def->batch_stats, "batch statistics");
    co_free(cfg);
    co_free(heads);
}

/* ---- against timm ---- */

static bool has(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

/* The weights of make_vit.py: uniform by name, matrices scaled by what they read, a norm's weight 1 more. */
static void draw_weights(golden *r)
{
    co_layout drawn;

    co_layout_init(&drawn);
    for (int i = 0; i < r->layout->n; i++) {
        co_entry e = r->layout->entry[i];
        bool matrix = e.shape.nd > 1 && strcmp(e.name, "cls_token") != 0 && strcmp(e.name, "pos_embed") != 0;
        double fan_in = (double)e.count / (double)e.shape.d[0];
        e.init = (co_init){CO_INIT_UNIFORM, matrix ? (float)sqrt(3 / fan_in) : 0.2f};
        CHECK_OK(co_layout_add(&drawn, &e));
    }
    co_layout_close(&drawn);
    CHECK_OK(co_layout_same(&drawn, r->layout));
    co_layout_initialise(&drawn, r->state, (uint64_t)golden_int(r->c, "seed", 0));
    for (int i = 0; i < drawn.n; i++)
        for (size_t k = 0; has(drawn.entry[i].name, "norm") && has(drawn.entry[i].name, "weight") &&
                           k < drawn.entry[i].count;
             k++)
            r->state[drawn.entry[i].offset + k] += 1;
    co_layout_fini(&drawn);
}

static void replay(const char *level, size_t i, bool steps)
{
    const co_kernels *kernels;
    const json_t *c = json_array_get(golden_cases("vit.json", level, &kernels), i);
    double loss, norm, torch32 = 0;
    golden r;

    golden_open(&r, c, kernels, S);
    draw_weights(&r);
    double top, logit = golden_worst_logit(&r, LOGITS, &top); /* they are of size 1 */
    CHECK(logit <= 1e-4, "%s: logits differ by %.2g", r.model->name, logit);
    test_note("%s, %s: logits differ from timm's by %.1e", r.model->name, level, logit);
    if (!steps)
        return;
    golden_replay(&r, r.steps, 1e-4, &loss, &norm);
    CHECK(norm <= 1e-3, "%s: gradient norms differ by %.2g", r.model->name, norm);
    co_json_f64(c, "float32", &torch32);
    test_note("%d steps: loss %.1e (PyTorch in float32: %.1e)  gradient norm %.1e", r.steps, loss, torch32,
              norm);
}

TEST(vit_tiny_patch16_224_logits_and_losses_are_those_of_timm)
{
    test_may_leak();
    replay("avx2", 0, true);
}

TEST(vit_tiny_patch4_32_logits_and_losses_are_those_of_timm)
{
    test_may_leak();
    replay("avx2", 1, true);
}

TEST(vits_of_another_width_depth_and_picture_are_those_of_timm_on_ref_and_avx2)
{
    test_may_leak();
    replay("ref", 2, true);
    replay("avx2", 2, true);
}

TEST(vit_tiny_patch4_32_logits_are_those_of_timm_on_ref)
{
    test_may_leak();
    replay("ref", 1, false);
}
