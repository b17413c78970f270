/* Tiny ImageNet from the command line: its experiment, the guide's own line, and the evaluation batch. */
#include "cli/runs.h"
#include "data/greys.h"

#define SHORT " data.crop=8 data.pad=0 model=cnn trainer.max_epochs=1 trainer.devices=1"

static char *run(int status, const char *line)
{
    test_run r = test_sh("%s", line);
    CHECK(r.status == status, "%s: status %d, wanted %d: %s", line, r.status, status, r.out);
    return r.out;
}

TEST(experiment_tinyimagenet_trains_on_the_folder_as_it_comes)
{
    put_tiny();
    char *out = run(0, "$COHORT train experiment=tinyimagenet data.dir=t" SHORT " 2>&1");
    CHECK(test_contains(out, "tinyimagenet: 9 train, 3 val") && test_contains(out, "3 classes"), "%s", out);
    free(out);
    out = run(0, "mv t tiny-imagenet-200 && $COHORT train experiment=tinyimagenet" SHORT " 2>&1");
    free(out);
}

TEST(tiny_imagenet_as_an_image_folder_ends_with_status_2_and_the_right_key_before_anything_is_written)
{
    put_tiny();
    char *out = run(2, "$COHORT train data=imagefolder data.dir=t model=cnn run.dir=r 2>&1");
    CHECK(test_contains(out, "use data=tinyimagenet"), "%s", out);
    CHECK(!co_fs_exists("r"), "a run folder was made");
    free(out);
}

/* main.py DIR reads val/ as one class; ours sees what the folder is. */
TEST(the_imagenet_examples_line_with_a_tiny_imagenet_folder_reads_it_as_what_it_is)
{
    put_tiny();
    char *out = run(0, "$COHORT train --cfg job -a resnet18 -b 4 t 2>&1");
    CHECK(test_contains(out, "data=tinyimagenet: t has Tiny ImageNet's layout"), "%s", out);
    CHECK(test_contains(out, "name: tinyimagenet") && test_contains(out, "name: step"), "%s", out);
    free(out);
    out = run(0, "$COHORT train --cfg job -a resnet18 data=imagefolder t 2>&1 | grep -c 'layout' || true");
    CHECK(strcmp(out, "0\n") == 0, "data= on the line counts: %s", out);
    free(out);
}

static void losses(char out[1024], const char *words)
{
    test_run r =
        test_sh("$COHORT train data=digits model=mlp trainer.max_epochs=2 run.dir=r trainer.devices=2 %s "
                ">/dev/null 2>&1 && grep -o '\"weights_sha256\": *\"[0-9a-f]*\"' r/summary.json && "
                "grep -oE '\"(val|test)/[^,]*,\"value\":[^,]*' r/events.jsonl; rm -rf r",
                words);
    CHECK(r.status == 0 && test_contains(r.out, "val/loss") && test_contains(r.out, "test/loss"), "%s: %s",
          words, r.out);
    snprintf(out, 1024, "%s", r.out);
    free(r.out);
}

TEST(the_evaluation_batch_changes_no_figure_to_the_last_digit)
{
    static const char *const sizes[] = {"data.eval_batch_size=1", "data.eval_batch_size=7",
                                        "data.val_batch_size=100000", "--val-batch-size 256"};
    char want[1024], got[1024];

    losses(want, "");
    for (size_t i = 0; i < CO_COUNT(sizes); i++) {
        losses(got, sizes[i]);
        CHECK(strcmp(want, got) == 0, "%s: %s, without it %s", sizes[i], got, want);
    }
}

TEST(limits_of_validation_and_the_test_line_count_evaluation_batches)
{
    char *out = run(
        0,
        "$COHORT train data=digits model=mlp trainer.max_epochs=1 console=imagenet data.eval_batch_size=50 "
        "trainer.limit_val_batches=2 test=false run.dir=r 2>&1");
    CHECK(test_contains(out, "Test: [2/2]"), "%s", out);
    free(out);
}

TEST(a_limited_validation_of_one_class_is_a_warning)
{
    put_classes("q/train", (const char *const[]){"cat", "dog", NULL}, 4);
    put_classes("q/val", (const char *const[]){"cat", "dog", NULL}, 4);
    char *out =
        run(0, "$COHORT train data=imagefolder data.dir=q model=linear data.batch_size=4 trainer.max_steps=1 "
               "trainer.limit_val_batches=1 test=false run.dir=a 2>&1");
    CHECK(test_contains(out, "the first 4 samples of val are all of class 0 (cat), so accuracy means little"),
          "%s", out);
    free(out);
    out =
        run(0, "$COHORT train data=imagefolder data.dir=q model=linear data.batch_size=5 trainer.max_steps=1 "
               "trainer.limit_val_batches=1 test=false run.dir=b 2>&1");
    CHECK(!test_contains(out, "all of class"), "%s", out);
    free(out);
}

/* A head of 1000 on 200 classes is the guide's silent fault: here the data decide. */
TEST(a_head_larger_than_the_labels_is_not_built_and_the_line_says_why)
{
    put_tiny();
    char *out =
        run(0, "$COHORT train experiment=tinyimagenet data.dir=t model.num_classes=1000" SHORT " 2>&1");
    CHECK(test_contains(out, "model.num_classes=1000: ") && test_contains(out, "3 classes"), "%s", out);
    free(out);
}

/* The lines of docs/guides/from-the-imagenet-example.md that name a set. */
TEST(the_lines_of_the_imagenet_guide_work)
{
    static const char *const wnids[] = {"n01440764", "n01443537", NULL};
    static const char *const cinic[] = {"airplane", "automobile", "bird", "cat",   "deer", "dog",
                                        "frog",     "horse",      "ship", "truck", NULL};

    put_tiny();
    put_classes("i/train", wnids, 3);
    put_classes("i/val", wnids, 1);
    put_classes("c/train", cinic, 2);
    put_classes("c/valid", cinic, 1);
    put_classes("c/test", cinic, 1);
    free(run(0, "$COHORT data pack t --out set.pack && $COHORT train experiment=tinyimagenet "
                "data.dir=set.pack" SHORT));
    free(run(0, "$COHORT train -a cnn -b 4 t trainer.max_epochs=1 trainer.devices=1 data.crop=8"));
    char *out = run(0, "$COHORT plan experiment=imagenet data=imagenet data.dir=i data.crop=64 2>&1");
    CHECK(test_contains(out, "imagenet: 6 train, 2 val"), "%s", out);
    free(out);
    out = run(0,
              "$COHORT plan data=cinic10 data.dir=c model=resnet18 model.stem=cifar data.augment=cifar 2>&1");
    CHECK(test_contains(out, "cinic10: 20 train, 10 val, 10 test"), "%s", out);
    free(out);
}
