/* versus_tasks.c -- the tables of `cohort bench vs-torch`: a row per task, a row per setting of PyTorch. A new task
 * is a row here and one in bench/torch/versus.py. */
#include "bench/versus_int.h"

#include <string.h>

enum {
    PLAIN = 1,     /* as many threads as ours */
    LAST = 2,      /* channels_last */
    ONE = 4,       /* one thread: small steps are faster without waiting for a second one */
    TWO = 8,       /* two processes, DistributedDataParallel over gloo */
    TWO_LAST = 16, /* both */
    SDPA = 32,     /* PyTorch's own attention instead of the guide's */
    SPARSE = 64,   /* row-sparse gradients, SparseAdam */
    TORCHRUN = 128,
    COMPILE = 256 /* only with --compile: it takes minutes */
};

static const versus_setting settings[] = {
    {PLAIN, "torch", {NULL}},
    {LAST, "torch, channels_last", {"--channels-last"}},
    {ONE, "torch, 1 thread", {"--threads", "1"}},
    {TWO, "torch, 2 processes", {"--processes", "2"}},
    {TWO_LAST, "torch, 2 processes, channels_last", {"--processes", "2", "--channels-last"}},
    {SDPA, "torch, scaled_dot_product_attention", {"--sdpa"}},
    {SPARSE, "torch, 1 thread, SparseAdam", {"--threads", "1", "--sparse"}},
    {TORCHRUN, "torchrun, 2 workers", {"--threads", "1"}},
    {COMPILE, "torch, compile", {"--compile"}},
};

static const versus_task tasks[] = {
    {"resnet18", "ResNet-18, pictures of 64x64, batch 64, SGD with momentum", VERSUS_TRAIN, "samples",
     PLAIN | LAST | TWO | TWO_LAST | COMPILE, LAST, "torchvision", .steps = 10, .batch = 64, .size = 64,
     .size_key = "data.size",
     .words = {"data=fake_images", "model=resnet18", "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
    {"resnet34", "ResNet-34, otherwise the same", VERSUS_TRAIN, "samples",
     PLAIN | LAST | TWO | TWO_LAST | COMPILE, LAST, "torchvision", .steps = 6, .batch = 64, .size = 64,
     .size_key = "data.size",
     .words = {"data=fake_images", "model=resnet34", "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
    {"resnet50", "ResNet-50, otherwise the same", VERSUS_TRAIN, "samples",
     PLAIN | LAST | TWO | TWO_LAST | COMPILE, LAST, "torchvision", .steps = 6, .batch = 64, .size = 64,
     .size_key = "data.size",
     .words = {"data=fake_images", "model=resnet50", "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
    {"resnet101", "ResNet-101, otherwise the same", VERSUS_TRAIN, "samples",
     PLAIN | LAST | TWO | TWO_LAST | COMPILE, LAST, "torchvision", .steps = 4, .batch = 64, .size = 64,
     .size_key = "data.size",
     .words = {"data=fake_images", "model=resnet101", "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
    {"resnet152", "ResNet-152, otherwise the same", VERSUS_TRAIN, "samples",
     PLAIN | LAST | TWO | TWO_LAST | COMPILE, LAST, "torchvision", .steps = 3, .batch = 64, .size = 64,
     .size_key = "data.size",
     .words = {"data=fake_images", "model=resnet152", "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
    {"vit_base", "vit_base_patch32_224, pictures of 224x224, batch 32, AdamW", VERSUS_TRAIN, "samples",
     PLAIN | TWO | COMPILE, 0, "timm", .steps = 4, .batch = 32, .size = 224, .size_key = "data.size",
     .words = {"data=fake_images", "model=vit_base_patch32_224", "optim=adamw", "optim.lr=1e-3"}},
    {"vit_tiny", "vit_tiny_patch4_32, pictures of 32x32, batch 64, AdamW", VERSUS_TRAIN, "samples",
     PLAIN | TWO | COMPILE, 0, "timm", .steps = 10, .batch = 64, .size = 32, .size_key = "data.size",
     .words = {"data=fake_images", "model=vit_tiny_patch4_32", "optim=adamw", "optim.lr=1e-3"}},
    {"transformer-guide",
     "translation, width 512, 6 + 6 layers; PyTorch pads to 350 tokens, as the guide does; batch 8; --data",
     VERSUS_TRAIN, "target tokens", PLAIN | SDPA | TWO | COMPILE, 0, "tokenizers",
     "a file tatoeba*.tsv of sentence pairs", .steps = 4, .batch = 8, .still = "model.dropout=0",
     .words = {"data=pairs", "data.file=tatoeba*|*", "model=transformer", "optim=adam", "optim.lr=1e-4",
               "optim.eps=1e-9", "loss.label_smoothing=0.1"}},
    {"transformer-buckets",
     "the same model; PyTorch takes sentences of similar length together; batch 32; --data", VERSUS_TRAIN,
     "target tokens", PLAIN | SDPA | TWO, 0, "tokenizers", "a file tatoeba*.tsv of sentence pairs",
     .steps = 10, .batch = 32, .still = "model.dropout=0",
     .words = {"data=pairs", "data.file=tatoeba*|*", "model=transformer", "optim=adam", "optim.lr=1e-4",
               "optim.eps=1e-9", "loss.label_smoothing=0.1"}},
    {"lm", "causal transformer over characters, width 256, 2 layers, AdamW; sequences of 64, batch 64",
     VERSUS_TRAIN, "tokens", PLAIN | SDPA | TWO | COMPILE, PLAIN | SDPA, .steps = 10, .batch = 64, .size = 64,
     .size_key = "data.max_len", .text = true,
     .words = {"data=text", "data.val_fraction=0", "model=lm", "model.d_model=256", "model.heads=4",
               "model.layers=2", "model.dropout=0", "model.sparse_embedding=false", "optim=adamw",
               "optim.lr=1e-3"}},
    {"movielens", "matrix factorisation of width 32, batch 128; PyTorch: dense Adam, SparseAdam; --data",
     VERSUS_TRAIN, "ratings", PLAIN | ONE | SPARSE | COMPILE, 0, NULL, "ratings.csv of MovieLens",
     .steps = 1000, .batch = 128, .alone = true,
     .words = {"data=movielens", "data.val_fraction=0", "model=factors", "model.width=32",
               "model.spread=0.01", "optim=sparse_adam", "optim.lr=0.002"}},
    {"digits-mlp", "a small network for digits, batch 64, SGD with momentum", VERSUS_TRAIN, "samples",
     PLAIN | ONE | COMPILE, .steps = 2000, .batch = 64, .still = "model.dropout=0",
     .words = {"data=digits", "model=mlp", "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
    {"digits-cnn", "a small convolutional network, otherwise the same", VERSUS_TRAIN, "samples",
     PLAIN | ONE | LAST | COMPILE, .steps = 200, .batch = 64,
     .words = {"data=digits", "model=cnn", "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
    {"start",
     "from the command to the end of the first step, digits/mlp, 2 ranks; PyTorch: torchrun with 2 workers",
     VERSUS_START, "starts", TORCHRUN, .steps = 1, .batch = 64,
     .words = {"data=digits", "model=mlp", "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
    {"exchange",
     "sum and SGD update of 45 MB between 2 ranks; PyTorch: gloo's all-reduce and SGD of 2 processes",
     VERSUS_EXCHANGE, "exchanges", TWO, .steps = 20, .batch = 64, .size = 11247882, /* parameters of the model */
     .words = {"data=digits", "model=mlp", "model.hidden=3316", "model.layers=2", "trainer.slices=2",
               "optim=sgd", "optim.lr=0.01", "optim.momentum=0.9"}},
};

static void add_names(co_str *out)
{
    for (size_t i = 0; i < CO_COUNT(tasks); i++)
        co_str_addf(out, "%s%s", i ? ", " : "", tasks[i].name);
}

co_err versus_find_task(const versus_task **out, const char *name)
{
    const char *names[CO_COUNT(tasks)];
    co_str all = {0};

    for (size_t i = 0; i < CO_COUNT(tasks); i++) {
        names[i] = tasks[i].name;
        if (strcmp(tasks[i].name, name) == 0) {
            *out = &tasks[i];
            return CO_OK;
        }
    }
    const char *near = co_str_nearest(name, names, CO_COUNT(tasks));
    add_names(&all);
    co_err err = co_fail(CO_EINPUT, "bench vs-torch: no task \"%s\"%s%s; there are %s", name,
                         near ? "; did you mean " : "", near ? near : "", co_str_text(&all));
    co_str_fini(&all);
    return err;
}

void versus_help(co_str *out)
{
    co_str_add(out, "\n  --task NAME:\n");
    for (size_t i = 0; i < CO_COUNT(tasks); i++)
        co_str_addf(out, "  %-19s  %s\n", tasks[i].name, tasks[i].help);
}

void versus_choose_arms(versus *v, bool few)
{
    unsigned bits = few ? v->task->few : v->task->settings;

    v->arms = 1; /* cohort */
    for (size_t i = 0; i < CO_COUNT(settings); i++)
        if ((bits & settings[i].bit) && (settings[i].bit != COMPILE || v->compile)) {
            CO_ASSERT(v->arms < VERSUS_ARMS, "there is an arm for each setting");
            v->arm[v->arms++].setting = &settings[i];
        }
}

const char *versus_arm_name(const versus_arm *arm)
{
    return arm->setting ? arm->setting->name : "cohort";
}
