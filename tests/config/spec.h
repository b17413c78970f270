/* spec.h -- a small program's tables, for the tests of this room. */
#ifndef TESTS_CONFIG_SPEC_H
#define TESTS_CONFIG_SPEC_H

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "config/config.h"
#include "harness.h"

struct mlp {
    int64_t hidden;
    double dropout;
};
static const co_option mlp_options[] = {
    {"hidden", CO_OPT_INT, offsetof(struct mlp, hidden), "128", "width", .min = 1, .max = 65536,
     .alias = "model.net.hidden"},
    {"dropout", CO_OPT_FLOAT, offsetof(struct mlp, dropout), "0.1", "share dropped", .max = 0.99},
    {0}};
struct lm {
    int64_t heads, width;
};
static const co_option lm_options[] = {
    {"heads", CO_OPT_INT, offsetof(struct lm, heads), "4", "attention heads", .min = 1, .max = 64},
    {"width", CO_OPT_INT, offsetof(struct lm, width), "64", "channels", .min = 1, .max = 65536},
    {0}};
static const co_option no_options[] = {{0}};
static const co_conf_row models[] = {{"mlp", "a perceptron", mlp_options, sizeof(struct mlp)},
                                     {"cnn", "convolutions", no_options, 1},
                                     {"linear", "one layer", no_options, 1},
                                     {"lm", "a transformer", lm_options, sizeof(struct lm)}};

struct folder_data {
    char *path;
};
static const co_option folder_options[] = {
    {"path", CO_OPT_STR, offsetof(struct folder_data, path), "null", "where the files are"}, {0}};
static const co_conf_row datas[] = {{"digits", "8x8 digits", no_options, 1},
                                    {"folder", "images", folder_options, sizeof(struct folder_data)}};

struct optim {
    double lr;
};
static const co_option optim_options[] = {
    {"lr", CO_OPT_FLOAT, offsetof(struct optim, lr), "0.001", "learning rate", .max = INFINITY}, {0}};
static const co_conf_row optims[] = {{"sgd", "plain", optim_options, sizeof(struct optim)},
                                     {"adamw", "AdamW", optim_options, sizeof(struct optim)}};

struct core {
    int64_t seed, batch_size, max_epochs, devices, every_n_steps;
    char *task_name, *run_dir;
    bool pin, save_last;
    int on_nan, strategy;
};
static const co_option root_options[] = {
    {"seed", CO_OPT_INT, offsetof(struct core, seed), "0", "of everything random"},
    {"task_name", CO_OPT_STR, offsetof(struct core, task_name), "train", "folder below logs/",
     .may_change = true},
    {"run.dir", CO_OPT_STR, offsetof(struct core, run_dir), "null", "run folder", .may_change = true},
    {0}};
static const co_option data_options[] = {{"batch_size", CO_OPT_INT, offsetof(struct core, batch_size), "32",
                                          "global batch", .min = 1, .max = 1e9,
                                          .alias = "datamodule.batch_size batch_size"},
                                         {0}};
static const co_option trainer_options[] = {
    {"max_epochs", CO_OPT_INT, offsetof(struct core, max_epochs), "10", "epochs", .min = 1, .max = 1e9,
     .may_change = true},
    {"devices", CO_OPT_INT, offsetof(struct core, devices), "0", "ranks; 0: one per core", .may_change = true},
    {"pin", CO_OPT_BOOL, offsetof(struct core, pin), "true", "pin ranks to cores", .may_change = true},
    {"on_nan", CO_OPT_ENUM, offsetof(struct core, on_nan), "stop", "when the loss is not finite",
     .choices = "stop|skip"},
    {"strategy", CO_OPT_ENUM, offsetof(struct core, strategy), "ddp", "sharding", .choices = "ddp|fsdp",
     .may_change = true},
    {0}};
static const co_option checkpoint_options[] = {
    {"every_n_steps", CO_OPT_INT, offsetof(struct core, every_n_steps), "0", "0: never", .may_change = true},
    {"save_last", CO_OPT_BOOL, offsetof(struct core, save_last), "true", "keep last", .may_change = true},
    {0}};
static const co_conf_table tables[] = {{"", root_options},
                                       {"data.", data_options},
                                       {"trainer.", trainer_options},
                                       {"callbacks.model_checkpoint.", checkpoint_options}};
static const co_conf_group groups[] = {
    {"model", "mlp", models, 4, "what is trained"},   {"data", "digits", datas, 2, "what it is trained on"},
    {"optim", "sgd", optims, 2, "the optimiser"},     {"trainer", "ddp", NULL, 0, "how ranks share the work"},
    {"callbacks", NULL, NULL, 0, "what is saved"},    {"experiment", NULL, NULL, 0, "a whole configuration"},
    {"debug", NULL, NULL, 0, "for finding mistakes"},
};
__attribute__((unused)) static const co_conf_spec spec = {tables, CO_COUNT(tables), sizeof(struct core),
                                                          groups, CO_COUNT(groups), NULL};

/* compose(&c, "model=lm", "seed=1") */
#define compose(out, ...)                                                                                    \
    co_conf_compose(out, &spec, (const char *const[]){__VA_ARGS__},                                          \
                    (int)CO_COUNT(((const char *const[]){__VA_ARGS__})))

/* Writes configs/<path>.yaml in the test's folder. */
__attribute__((unused)) static void write_config(const char *path, const char *text)
{
    char name[256];
    snprintf(name, sizeof name, "configs/%s.yaml", path);
    *strrchr(name, '/') = '\0';
    CHECK_OK(co_fs_mkdirs(name));
    snprintf(name, sizeof name, "configs/%s.yaml", path);
    CHECK_OK(co_fs_write_atomic(name, text, strlen(text)));
}

#endif
