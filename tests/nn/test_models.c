/* test_models.c -- the table of models: names and shapes of parameters, one layout for every slice, and the
 * messages for data that does not fit. */
#include "nn/models.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"

const co_io nn_images = {.task = CO_TASK_CLASSIFY, .x = {3, {1, 8, 8}}, .classes = 10};
const co_io nn_rows = {.task = CO_TASK_CLASSIFY, .x = {1, {20}}, .classes = 5};
const co_io nn_prices = {.task = CO_TASK_REGRESS, .x = {2, {4, 3}}, .y_width = 2};
const co_io nn_text = {.task = CO_TASK_LM, .classes = 29, .max_len = 16};
const co_io nn_pairs = {
    .task = CO_TASK_PAIRS, .classes = 23, .sources = 31, .max_len = 16, .begin = 2, .end = 3};

const co_io nn_ratings = {.task = CO_TASK_REGRESS, .y_width = 1, .users = 11, .items = 6};

const nn_fit nn_fits[] = {{"linear", &nn_images},
                          {"linear", &nn_prices},
                          {"mlp", &nn_rows},
                          {"mlp", &nn_prices},
                          {"cnn", &nn_images},
                          {"lm", &nn_text},
                          {"transformer", &nn_pairs},
                          {"factors", &nn_ratings},
                          {"neumf", &nn_ratings},
                          {"vit_tiny_patch4_32", &nn_images},
                          {NULL, NULL}};

void *nn_cfg(const char *model, const char *key, const char *value)
{
    const co_model_def *def = co_model_find(model);
    void *cfg = co_zalloc(def->cfg_size);

    CHECK_OK(co_options_default(def->options, cfg));
    static const char *const small[][2] = {{"d_model", "16"}, {"heads", "2"}, {"layers", "2"}, {"d_ff", "24"}};
    for (size_t i = 0; strcmp(model, "transformer") == 0 && i < CO_COUNT(small); i++)
        CHECK_OK(co_option_set(co_option_find(def->options, small[i][0]), cfg, small[i][0], small[i][1]));
    if (key)
        CHECK_OK(co_option_set(co_option_find(def->options, key), cfg, key, value));
    return cfg;
}

co_slice_shape nn_shape(const co_io *io, int n)
{
    return (co_slice_shape){
        .n = n, .tokens = co_is_text(io) ? 8 * n : 0, .targets = io->task == CO_TASK_PAIRS ? 8 * n : 0};
}

co_exec *nn_compile(const char *model, const void *cfg, const co_io *io, co_slice_shape shape, co_mode mode)
{
    const co_kernels *kernels;
    co_graph *g;
    co_exec *exec;

    CHECK_OK(co_kernels_get(&kernels, "ref"));
    CHECK_OK(co_model_graph(&g, co_model_find(model), cfg, io, NULL, shape, mode));
    CHECK_OK(co_exec_new(&exec, g, kernels));
    co_graph_free(g);
    return exec;
}

/* "fc.weight [10,64]\n..." in order of offset. */
static void describe(co_str *out, const co_layout *l)
{
    char dims[64];

    for (int i = 0; i < l->n; i++)
        co_str_addf(out, "%s %s%s%s\n", l->entry[i].name, co_shape_text(dims, sizeof dims, &l->entry[i].shape),
                    l->entry[i].sparse ? " sparse" : "", l->entry[i].no_decay ? " no_decay" : "");
}

static void layout_is(const char *model, const co_io *io, const char *key, const char *value, const char *want)
{
    void *cfg = nn_cfg(model, key, value);
    co_exec *exec = nn_compile(model, cfg, io, nn_shape(io, 3), CO_MODE_TRAIN);
    co_str got = {0};

    describe(&got, co_exec_layout(exec));
    CHECK(strcmp(co_str_text(&got), want) == 0, "model %s has\n%s", model, co_str_text(&got));
    co_str_fini(&got);
    co_exec_free(exec);
    co_free(cfg);
}

TEST(linear_and_mlp_have_pytorch_s_names_and_shapes)
{
    layout_is("linear", &nn_images, NULL, NULL, "fc.weight [10,64]\nfc.bias [10] no_decay\n");
    layout_is("linear", &nn_prices, NULL, NULL, "fc.weight [2,12]\nfc.bias [2] no_decay\n");
    layout_is("mlp", &nn_rows, "hidden", "16",
              "fc1.weight [16,20]\nfc1.bias [16] no_decay\n"
              "fc2.weight [16,16]\nfc2.bias [16] no_decay\n"
              "head.weight [5,16]\nhead.bias [5] no_decay\n");
}

TEST(cnn_has_pytorch_s_names_and_shapes)
{
    layout_is("cnn", &nn_images, "width", "4",
              "conv1.weight [4,1,3,3]\n"
              "bn1.weight [4] no_decay\nbn1.bias [4] no_decay\nbn1.running_mean [4]\nbn1.running_var [4]\n"
              "bn1.num_batches_tracked []\n"
              "conv2.weight [8,4,3,3]\n"
              "bn2.weight [8] no_decay\nbn2.bias [8] no_decay\nbn2.running_mean [8]\nbn2.running_var [8]\n"
              "bn2.num_batches_tracked []\n"
              "conv3.weight [8,8,3,3]\n"
              "bn3.weight [8] no_decay\nbn3.bias [8] no_decay\nbn3.running_mean [8]\nbn3.running_var [8]\n"
              "bn3.num_batches_tracked []\n"
              "fc.weight [10,8]\nfc.bias [10] no_decay\n");
}

TEST(lm_has_pytorch_s_names_and_shapes)
{
    layout_is("lm", &nn_text, "layers", "1",
              "tok.weight [29,64] sparse\npos.weight [16,64]\n"
              "blocks.0.norm1.weight [64] no_decay\nblocks.0.norm1.bias [64] no_decay\n"
              "blocks.0.attn.qkv.weight [192,64]\nblocks.0.attn.qkv.bias [192] no_decay\n"
              "blocks.0.attn.proj.weight [64,64]\nblocks.0.attn.proj.bias [64] no_decay\n"
              "blocks.0.norm2.weight [64] no_decay\nblocks.0.norm2.bias [64] no_decay\n"
              "blocks.0.mlp.fc1.weight [256,64]\nblocks.0.mlp.fc1.bias [256] no_decay\n"
              "blocks.0.mlp.fc2.weight [64,256]\nblocks.0.mlp.fc2.bias [64] no_decay\n"
              "norm.weight [64] no_decay\nnorm.bias [64] no_decay\n"
              "head.weight [29,64]\n");
}

TEST(factors_has_a_row_and_a_bias_per_user_and_per_item)
{
    layout_is("factors", &nn_ratings, NULL, NULL,
              "user.weight [11,32] sparse\nitem.weight [6,32] sparse\n"
              "user_bias.weight [11,1] sparse\nitem_bias.weight [6,1] sparse\nbias [1] no_decay\n");
    layout_is("factors", &nn_ratings, "sparse", "false",
              "user.weight [11,32]\nitem.weight [6,32]\n"
              "user_bias.weight [11,1]\nitem_bias.weight [6,1]\nbias [1] no_decay\n");
}

TEST(neumf_has_the_names_and_shapes_of_its_pytorch_version)
{
    layout_is("neumf", &nn_ratings, "width", "4",
              "embed_user_GMF.weight [11,4] sparse\nembed_item_GMF.weight [6,4] sparse\n"
              "embed_user_MLP.weight [11,16] sparse\nembed_item_MLP.weight [6,16] sparse\n"
              "MLP_layers.1.weight [16,32]\nMLP_layers.1.bias [16] no_decay\n"
              "MLP_layers.4.weight [8,16]\nMLP_layers.4.bias [8] no_decay\n"
              "MLP_layers.7.weight [4,8]\nMLP_layers.7.bias [4] no_decay\n"
              "predict_layer.weight [1,8]\npredict_layer.bias [1] no_decay\n");
}

TEST(every_slice_shape_and_mode_of_a_model_has_one_layout)
{
    static const co_mode modes[] = {CO_MODE_TRAIN, CO_MODE_EVAL, CO_MODE_PREDICT};

    for (size_t i = 0; nn_fits[i].model; i++) {
        void *cfg = nn_cfg(nn_fits[i].model, NULL, NULL);
        co_exec *first =
            nn_compile(nn_fits[i].model, cfg, nn_fits[i].io, nn_shape(nn_fits[i].io, 4), CO_MODE_TRAIN);
        for (int n = 1; n <= 9; n += 4)
            for (size_t m = 0; m < CO_COUNT(modes); m++) {
                co_slice_shape shape = nn_shape(nn_fits[i].io, n);
                shape.tokens = shape.tokens ? n + 3 : 0;
                co_exec *other = nn_compile(nn_fits[i].model, cfg, nn_fits[i].io, shape, modes[m]);
                CHECK_OK(co_layout_same(co_exec_layout(first), co_exec_layout(other)));
                co_exec_free(other);
            }
        co_exec_free(first);
        co_free(cfg);
    }
}

static float *state_of(const co_layout *l, const char *name, uint64_t seed, size_t *count)
{
    float *state = co_array(l->count, sizeof *state);
    const co_entry *e = co_layout_find(l, name);

    CHECK(e, "no entry %s", name);
    co_layout_initialise(l, state, seed);
    float *part = co_array(e->count, sizeof *part);
    memcpy(part, state + e->offset, e->count * sizeof *part);
    co_free(state);
    *count = e->count;
    return part;
}

static void initial_is(const co_exec *exec, const char *name, double mean, double least, double most, double std)
{
    size_t n;
    float *x = state_of(co_exec_layout(exec), name, 11, &n);
    double sum = 0, squares = 0, lo = x[0], hi = x[0];

    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        lo = fmin(lo, x[i]);
        hi = fmax(hi, x[i]);
    }
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    double got = sqrt(squares / (double)n), slack = 4 * std / sqrt((double)n);
    CHECK(lo >= least && hi <= most, "%s lies in [%g, %g]", name, lo, hi);
    CHECK(fabs(sum / (double)n - mean) <= slack, "%s has mean %g", name, sum / (double)n);
    CHECK(fabs(got - std) <= slack, "%s has deviation %g, not %g", name, got, std);
    co_free(x);
}

TEST(initial_weights_are_spread_as_pytorch_s)
{
    void *cnn = nn_cfg("cnn", NULL, NULL), *lm = nn_cfg("lm", NULL, NULL);
    co_exec *c = nn_compile("cnn", cnn, &nn_images, nn_shape(&nn_images, 2), CO_MODE_TRAIN);
    co_exec *l = nn_compile("lm", lm, &nn_text, nn_shape(&nn_text, 2), CO_MODE_TRAIN);
    double conv = 1 / sqrt(9.0 * 32), fc = 1 / sqrt(64.0), flat = 1 / sqrt(3.0);

    initial_is(c, "conv2.weight", 0, -conv, conv, conv * flat);
    initial_is(c, "fc.weight", 0, -fc, fc, fc * flat);
    initial_is(c, "fc.bias", 0, -fc, fc, fc * flat);
    initial_is(c, "bn1.weight", 1, 1, 1, 0);
    initial_is(c, "bn1.bias", 0, 0, 0, 0);
    initial_is(c, "bn1.running_mean", 0, 0, 0, 0);
    initial_is(c, "bn1.running_var", 1, 1, 1, 0);
    initial_is(l, "blocks.1.attn.qkv.bias", 0, -fc, fc, fc * flat);
    initial_is(l, "tok.weight", 0, -6, 6, 1);
    initial_is(l, "pos.weight", 0, -6, 6, 1);
    initial_is(l, "norm.weight", 1, 1, 1, 0);
    co_exec_free(c);
    co_exec_free(l);
    co_free(cnn);
    co_free(lm);
}

TEST(biases_and_norms_of_every_model_are_marked_as_not_to_be_decayed)
{
    static const co_io photos = {.task = CO_TASK_CLASSIFY, .x = {3, {3, 32, 32}}, .classes = 10};

    for (int m = 0; co_models[m]; m++) {
        const char *name = co_models[m]->name;
        const co_io *io = strcmp(name, "lm") == 0                                      ? &nn_text
                          : strcmp(name, "transformer") == 0                           ? &nn_pairs
                          : strcmp(name, "factors") == 0 || strcmp(name, "neumf") == 0 ? &nn_ratings
                                                                                       : &photos;
        void *cfg = nn_cfg(name, NULL, NULL);
        co_exec *exec = nn_compile(name, cfg, io, nn_shape(io, 2), CO_MODE_TRAIN);
        const co_layout *l = co_exec_layout(exec);
        int spared = 0;
        for (int i = 0; i < l->n; i++) {
            const co_entry *e = &l->entry[i];
            bool token =
                strcmp(e->name, "cls_token") == 0 || strcmp(e->name, "pos_embed") == 0; /* timm's rule */
            CHECK(e->no_decay == (e->kind == CO_KIND_PARAM && (e->shape.nd == 1 || token)),
                  "%s: %s is %smarked", name, e->name, e->no_decay ? "" : "not ");
            spared += e->no_decay;
        }
        CHECK(spared > 0, "%s has neither bias nor norm", name);
        co_exec_free(exec);
        co_free(cfg);
    }
}

TEST(data_that_does_not_fit_is_refused_with_what_would)
{
    static const struct {
        const char *model;
        const co_io *io;
        const char *words;
    } bad[] = {
        {"cnn", &nn_rows, "model=cnn needs images [C,H,W]; the data has [20]; try model=linear or model=mlp"},
        {"cnn", &nn_text, "model=cnn needs samples of numbers; the data is text; try model=lm"},
        {"linear", &nn_text, "the data is text; try model=lm"},
        {"mlp", &nn_ratings, "model=mlp cannot use ratings"},
        {"lm", &nn_ratings, "pairs of a user and an item; try model=factors"},
        {"factors", &nn_rows,
         "model=factors needs ratings (pairs of a user and an item); try data=fake_ratings"},
        {"mlp", &nn_text, "the data is text; try model=lm"},
        {"lm", &nn_rows,
         "model=lm needs text (data=text data.path=FILE); the data has numbers [20]; try "
         "model=linear or model=mlp"},
        {"lm", &nn_images, "[1,8,8]; try model=linear or model=mlp or model=cnn"},
    };
    static const co_io slim = {.task = CO_TASK_CLASSIFY, .x = {3, {1, 1, 8}}, .classes = 2};

    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        const co_model_def *def = co_model_find(bad[i].model);
        void *cfg = nn_cfg(bad[i].model, NULL, NULL);
        co_graph *g;
        CHECK_FAILS(def->check(cfg, bad[i].io), CO_EINPUT, bad[i].words);
        CHECK_FAILS(co_model_graph(&g, def, cfg, bad[i].io, NULL, nn_shape(bad[i].io, 2), CO_MODE_TRAIN),
                    CO_EINPUT, bad[i].words);
        co_free(cfg);
    }
    void *cfg = nn_cfg("cnn", NULL, NULL);
    CHECK_FAILS(co_model_find("cnn")->check(cfg, &slim), CO_EINPUT,
                "2x2 pixels at least; the data has [1,1,8]");
    co_free(cfg);
    cfg = nn_cfg("lm", "heads", "5");
    CHECK_FAILS(co_model_find("lm")->check(cfg, &nn_text), CO_EINPUT,
                "model.d_model=64 cannot be cut into model.heads=5 equal heads; try model.d_model=65");
    co_free(cfg);
}

TEST(a_slice_shape_that_cannot_be_is_refused)
{
    const co_model_def *lm = co_model_find("lm"), *linear = co_model_find("linear");
    void *cfg = nn_cfg("lm", NULL, NULL);
    co_graph *g;

    CHECK_FAILS(co_model_graph(&g, linear, NULL, &nn_rows, NULL, (co_slice_shape){.n = 0}, CO_MODE_TRAIN),
                CO_EINPUT, "a slice of 0 samples");
    CHECK_FAILS(co_model_graph(&g, lm, cfg, &nn_text, NULL, (co_slice_shape){.n = 1}, CO_MODE_TRAIN),
                CO_EINPUT, "a slice of text without tokens");
    co_free(cfg);
}

static co_node *build_echo(const co_build *b, const void *cfg)
{
    return b->x;
}

TEST(a_model_that_predicts_the_wrong_shape_is_named)
{
    co_model_def echo = *co_model_find("linear");
    co_graph *g;

    echo.name = "echo";
    echo.build = build_echo;
    CHECK_FAILS(co_model_graph(&g, &echo, NULL, &nn_rows, NULL, (co_slice_shape){.n = 3}, CO_MODE_EVAL),
                CO_EINPUT, "model 'echo' predicts [3,20] where the task needs [3,5]");
}

TEST(the_table_finds_models_by_name)
{
    CHECK(!co_model_find("resnet"), "found what is not there");
    for (int i = 0; co_models[i]; i++)
        CHECK(co_model_find(co_models[i]->name) == co_models[i], "%s", co_models[i]->name);
    CHECK(co_model_find("cnn")->batch_stats && !co_model_find("lm")->batch_stats, "batch statistics");
    CHECK(strcmp(co_metric_name(CO_TASK_LM), "acc") == 0 && strcmp(co_metric_name(CO_TASK_REGRESS), "mae") == 0,
          "metric names");
}

static co_err build_lm(void *ctx)
{
    co_graph *g;
    CO_TRY(co_model_graph(&g, co_model_find("lm"), ctx, &nn_text, NULL, (co_slice_shape){2, 4}, CO_MODE_TRAIN));
    co_graph_free(g);
    return CO_OK;
}

TEST(building_a_model_survives_every_failed_allocation)
{
    void *cfg = nn_cfg("lm", NULL, NULL);

    test_each_alloc_fails(build_lm, cfg);
    co_free(cfg);
}
