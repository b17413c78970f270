/* In a checkout of the Lightning and Hydra template, whose configs/ is not ours, the lines of its README
 * run, or are refused with the sentence that says what to type. template/configs has its public layout,
 * names and values. */
#include "cli/runs.h"

enum { TRAIN = 300, TEST_SET = 60, PIXELS = 28 * 28 };

static void put_idx(const char *name, int dims, uint32_t n, size_t each, bool labels)
{
    char path[128];
    snprintf(path, sizeof path, "data/MNIST/raw/%s", name);
    FILE *f = fopen(path, "w");
    CHECK(f, "%s", path);
    uint32_t head[4] = {0x800 + (uint32_t)dims, n, 28, 28};
    for (int i = 0; i <= dims; i++) {
        unsigned char bytes[4] = {(unsigned char)(head[i] >> 24), (unsigned char)(head[i] >> 16),
                                  (unsigned char)(head[i] >> 8), (unsigned char)head[i]};
        fwrite(bytes, 1, 4, f);
    }
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < each; k++)
            fputc(labels ? (int)(i % 10) : (int)((i * 7 + k) % 251), f);
    fclose(f);
}

static void checkout(bool with_mnist)
{
    test_run r = test_sh("cp -r %s .", test_repo("tests/cli/template/configs"));
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    if (!with_mnist)
        return;
    CHECK_OK(co_fs_mkdirs("data/MNIST/raw"));
    put_idx("train-images-idx3-ubyte", 3, TRAIN, PIXELS, false);
    put_idx("train-labels-idx1-ubyte", 1, TRAIN, 1, true);
    put_idx("t10k-images-idx3-ubyte", 3, TEST_SET, PIXELS, false);
    put_idx("t10k-labels-idx1-ubyte", 1, TEST_SET, 1, true);
}

static const char folder_line[] = "configs/ is a Lightning/Hydra project (configs/trainer/";

TEST(an_unmodified_template_trains_mnist_with_its_own_lines)
{
    static const struct {
        const char *words, *says[4];
    } lines[] = {
        {"",
         {"model     mlp: ", "data      mnist: ", "global batch 128", "optimiser adam, learning rate 0.001"}},
        {"experiment=example",
         {"global batch 64", "learning rate 0.002", "norm clipped to 0.5", "schedule  plateau"}},
        {"trainer=ddp",
         {"ranks     4 on this host", "configs/trainer/ddp.yaml:6: trainer.accelerator=gpu: GPUs are not",
          "global batch 128", "data      mnist: "}}};
    checkout(true);
    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = test_sh("$COHORT train %s 2>&1", lines[i].words);
        CHECK(r.status == 0, "`%s` exits with %d: %s", lines[i].words, r.status, r.out);
        CHECK(strncmp(r.out, folder_line, strlen(folder_line)) == 0, "%s", r.out);
        CHECK(!strstr(r.out + 1, folder_line), "said twice: %s", r.out);
        for (size_t k = 0; k < CO_COUNT(lines[i].says); k++)
            CHECK(test_contains(r.out, lines[i].says[k]), "`%s` does not say %s: %s", lines[i].words,
                  lines[i].says[k], r.out);
        free(r.out);
    }
    test_run r = test_sh("$COHORT train experiment=example --cfg job 2>/dev/null");
    CHECK(test_contains(r.out, "seed: 12345\n") && test_contains(r.out, "  patience: 100\n") &&
              test_contains(r.out, "  hidden: 128\n") && test_contains(r.out, "  layers: 3\n") &&
              test_contains(r.out, "    monitor: val/acc\n"),
          "%s", r.out);
    free(r.out);
}

TEST(a_model_of_the_template_that_is_changed_here_is_noted_with_file_and_line)
{
    checkout(true);
    test_run r = test_sh("$COHORT plan 2>&1");
    CHECK(r.status == 0, "%s", r.out);
    CHECK(test_contains(r.out,
                        "configs/model/mnist.yaml:20: model.net.lin2_size=128: not used: the mlp here has "
                        "one width for all hidden layers, model.hidden=64\n"),
          "%s", r.out);
    CHECK(!strstr(r.out, "lin3_size"), "lin3_size is that width: %s", r.out);
    CHECK(test_contains(r.out, "configs/model/mnist.yaml:17: model.net._target_=") &&
              test_contains(r.out, "the mlp here has no batch norm"),
          "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT plan experiment=example 2>&1");
    CHECK(r.status == 0 && !strstr(r.out, "model.hidden=64") && !strstr(r.out, "mnist.yaml:20") &&
              test_contains(r.out, "model.net.lin2_size=256: not used") &&
              test_contains(r.out, "model.hidden=128\n"),
          "a value that is overridden is noted: %s", r.out);
    free(r.out);
    r = test_sh("$COHORT plan model.hidden=32 2>&1");
    CHECK(r.status == 0 && !strstr(r.out, "lin2_size"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train --cfg job 2>/dev/null");
    CHECK(test_contains(r.out, "  dropout: 0\n"), "its file sets no dropout: %s", r.out);
    free(r.out);
    r = test_sh("$COHORT train model.dropout=0.3 --cfg job 2>/dev/null");
    CHECK(test_contains(r.out, "  dropout: 0.3\n"), "%s", r.out);
    free(r.out);
}

/* Each line of the template's README, and what it comes to: a word of the plan, or of the refusal (status
 * 2). */
static const struct {
    const char *words;
    int status;
    const char *says;
} readme[] = {
    {"trainer=cpu", 0, "ranks     1 "},
    {"trainer=ddp_sim trainer.max_epochs=3", 0, "ranks     2 on this host"},
    {"trainer=gpu", 2, "trainer=gpu: GPUs are not in this version"},
    {"trainer=mps", 2, "trainer=mps: GPUs are not in this version"},
    {"debug=default", 0, "3 per epoch, 3 in all"},
    {"debug=fdr", 0, "1 per epoch, 1 in all"},
    {"debug=limit", 0, "1 per epoch, 3 in all"},
    {"debug=overfit", 0, "in all"},
    {"debug=profiler", 0, "3 in all"},
    {"hparams_search=mnist_optuna experiment=example", 2, "searches come later; -m runs every combination"},
    {"callbacks=default", 0, "30 in all"},
    {"callbacks=none", 0, "30 in all"},
    {"callbacks=model_checkpoint", 0, "30 in all"},
    {"logger=csv", 0, "30 in all"},
    {"logger=tensorboard", 0, "30 in all"},
    {"logger=wandb", 0, "30 in all"},
    {"logger=many_loggers", 0, "30 in all"},
    {"data=mnist model=mnist", 0, "data      mnist: "},
    {"data=digits model=cnn", 0, "data      digits: "},
    {"model.net.lin1_size=32 model.optimizer.lr=0.01", 0, "learning rate 0.01"},
    {"+trainer.gradient_clip_val=0.5 trainer.max_epochs=20", 0, "60 in all"},
    {"+trainer.limit_train_batches=0.2 +trainer.max_time='00:12:00:00'", 0, "1 per epoch"},
    {"trainer.accelerator=gpu", 2, "GPUs are not in this version"},
    {"ckpt_path=/some/where/last.ckpt", 2, "/some/where/last.ckpt does not exist"},
    {"ckpt_path=configs/train.yaml", 2, "configs/train.yaml is a file; checkpoints are folders here"},
    {"train=False", 2, "evaluating is a command of its own: cohort test ckpt_path=FOLDER"},
    {"test=False", 0, "30 in all"},
    {"'tags=[\"mnist\",\"experiment_X\"]'", 0, "kept in overrides.yaml"},
    {"task_name=mine seed=7", 0, "30 in all"},
    {"model.no_such_key=1", 2, "unknown key \"model.no_such_key\""},
    {"experiment=exampel", 2, "no experiment \"exampel\"; did you mean example? There are: cifar"}};

TEST_WITHIN(each_line_of_the_template_s_readme_is_planned_or_answered, 120)
{
    checkout(true);
    for (size_t i = 0; i < CO_COUNT(readme); i++) {
        test_run r = test_sh("$COHORT plan %s 2>&1", readme[i].words);
        CHECK(r.status == readme[i].status && test_contains(r.out, readme[i].says), "`%s` exits with %d: %s",
              readme[i].words, r.status, r.out);
        free(r.out);
    }
}

TEST(a_template_without_its_data_or_with_a_model_of_its_own_is_refused_with_what_to_do)
{
    checkout(false);
    test_run r = test_sh("$COHORT train 2>&1");
    CHECK(
        r.status == 2 &&
            test_contains(
                r.out,
                "data=mnist: data.dir: data/: No such file or directory; cohort data get mnist downloads it"),
        "%s", r.out);
    free(r.out);
    r = test_sh("printf '_target_: src.models.tea.Tea\\nwidth: 3\\n' >configs/model/tea.yaml; $COHORT train "
                "model=tea "
                "data=digits 2>&1");
    CHECK(r.status == 2 &&
              test_contains(r.out, "model=tea: configs/model/tea.yaml is made of Python classes"),
          "%s", r.out);
    CHECK(test_contains(r.out, "`cohort launch src/train.py` runs yours"), "%s", r.out);
    free(r.out);
    CHECK(!co_fs_exists("logs"), "something was made");
}

TEST(a_folder_of_ones_own_is_read_strictly)
{
    succeeds("mkdir -p configs/trainer && echo 'max_epoch: 3' >configs/trainer/mine.yaml");
    test_run r = test_sh("$COHORT train trainer=mine");
    CHECK(r.status == 2 && test_contains(r.out, "configs/trainer/mine.yaml:1: unknown key"), "%s", r.out);
    CHECK(!test_contains(r.out, "another program"), "%s", r.out);
    free(r.out);
}
