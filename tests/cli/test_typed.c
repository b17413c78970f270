/* The lines of the guides, run unchanged, each in a folder with its data. Where a line would train for hours
 * a limit is added, and nothing else. The pictures are made up: what is tested is the line. */
#include "cli/typed.h"

#include <png.h>
#include <unistd.h>

void put_cifar(void)
{
    static const char *const names[] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                        "data_batch_4", "data_batch_5", "test_batch"};

    CHECK_OK(co_fs_mkdirs("data/cifar10"));
    for (size_t i = 0; i < CO_COUNT(names); i++) {
        char path[64];
        snprintf(path, sizeof path, "data/cifar10/%s.bin", names[i]);
        CHECK_OK(co_fs_write_atomic(path, "", 0));
        CHECK(truncate(path, 10000L * 3073) == 0, "%m");
    }
}

void put_pictures(const char *dir)
{
    uint8_t pixels[32 * 32 * 3]; /* [32,32,3] */
    uint64_t seed = 1;
    char path[128];

    for (int i = 0; i < 40; i++) {
        png_image image = {.version = PNG_IMAGE_VERSION, .width = 32, .height = 32, .format = PNG_FORMAT_RGB};
        for (size_t k = 0; k < sizeof pixels; k++)
            pixels[k] = (uint8_t)(test_u32(&seed) % 128 + (i % 2 ? 128 : 0));
        snprintf(path, sizeof path, "%s/%s", dir, i % 2 ? "light" : "dark");
        CHECK_OK(co_fs_mkdirs(path));
        snprintf(path, sizeof path, "%s/%s/%02d.png", dir, i % 2 ? "light" : "dark", i);
        CHECK(png_image_write_to_file(&image, path, 0, pixels, 0, NULL), "%s: %s", path, image.message);
    }
}

/* A line that must work and say `says`. Its last line on standard output, the run folder, is the caller's. */
static char *works(const char *line, const char *const says[4])
{
    test_run r = test_sh("%s 2>told", line);
    char *told;
    size_t len;

    CHECK_OK(co_fs_read(&told, &len, "told", 1 << 22));
    CHECK(r.status == 0, "`%s` exits with %d: %s", line, r.status, told);
    for (int i = 0; i < 4 && says[i]; i++)
        CHECK(test_contains(told, says[i]), "`%s` does not say \"%s\":\n%s", line, says[i], told);
    co_free(told);
    r.out[strcspn(r.out, "\n")] = '\0';
    return r.out;
}

#define MASTER_LINE                                                                                          \
    "MASTER_PORT=29501 MASTER_ADDR=127.0.0.1 WORLD_SIZE=1 NODE_RANK=0 $COHORT train experiment=cifar "       \
    "trainer=ddp trainer.devices=1 trainer.num_nodes=1 trainer.default_root_dir=$(date "                     \
    "+%%Y-%%m-%%d_%%H-%%M-%%S) callbacks.model_checkpoint.dirpath=logs/train/runs "                          \
    "datamodule.batch_size=384 trainer.min_epochs=1 trainer.max_epochs=10 model.net.model_name="

TEST_LONG_WITHIN(the_lightning_guides_master_line_trains_its_vit_and_a_resnet, 240)
{
    put_cifar();
    test_run r =
        test_sh(MASTER_LINE "vit_base_patch32_224" SHORT " callbacks.model_checkpoint.enabled=false");
    CHECK(
        r.status == 0 &&
            test_contains(r.out, "model.net.model_name=vit_base_patch32_224 -> model=vit_base_patch32_224") &&
            test_contains(r.out, "1x1 patches of 32x32 pixels in a picture: few to learn from; "
                                 "data.resize=224x224 gives 7x7") &&
            test_contains(r.out, "1 step in"),
        "%d %s", r.status, r.out);
    free(r.out);
    r = test_sh("rm -r 20*-*-*_*-*-*");
    free(r.out);
    r = test_sh(MASTER_LINE "resnet18" SHORT);
    CHECK(r.status == 0 && test_contains(r.out, "model.net.model_name=resnet18 -> model=resnet18") &&
              test_contains(r.out, "global batch 384") && test_contains(r.out, "1 step in"),
          "%d %s", r.status, r.out);
    free(r.out);
    r = test_sh("ls -d 20*-*-*_*-*-*/summary.json");
    CHECK(r.status == 0, "no run folder: %s", r.out);
    free(r.out);
    r = test_sh(
        "MASTER_PORT=29501 WORLD_SIZE=2 NODE_RANK=0 $COHORT plan experiment=cifar trainer.num_nodes=2");
    CHECK(r.status == 0 && test_contains(r.out, "hosts     2 hosts with "), "%s", r.out);
    free(r.out);
}

TEST_WITHIN(the_imagenet_line_trains_on_a_folder_of_pictures, 120)
{
    put_pictures("DIR");
    free(works("$COHORT train -a resnet18 -b 32 --epochs 1 --lr 0.01 DIR run.dir=r",
               (const char *const[4]){"-b 32 -> data.batch_size_per_rank=32 (per process",
                                      "experiment=imagenet", "DIR -> data.dir=DIR", "2 classes"}));
    json_t *v = json_of("%s/summary.json", "r");
    CHECK(number_in(v, "epochs") == 1 && number_in(v, "global_batch") == 32 * number_in(v, "ranks"),
          "%lld epochs, batch %lld", number_in(v, "epochs"), number_in(v, "global_batch"));
    json_decref(v);
    test_run r = test_sh("$COHORT train --cfg job -a resnet18 DIR");
    CHECK(test_contains(r.out, "momentum: 0.9") && test_contains(r.out, "name: step"),
          "not main.py's recipe: %s", r.out);
    free(r.out);
}

TEST_WITHIN(an_image_folder_by_its_own_words_trains, 120)
{
    put_pictures("D");
    free(works(
        "$COHORT train model=resnet18 data=imagefolder data.dir=D data.batch_size=256 trainer.max_epochs=1",
        (const char *const[4]){"2 classes", "epoch 1/1", NULL}));
}

/* The first and the last validation loss in a run's csv. */
static void losses(double *first, double *last, const char *dir)
{
    test_run r = test_sh("awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"val/loss\")c=i} "
                         "NR>1&&$c!=\"\"{if(!n++)print $c;l=$c} END{print l}' %s/csv/metrics.csv",
                         dir);
    CHECK(sscanf(r.out, "%lf\n%lf", first, last) == 2, "%s", r.out);
    free(r.out);
}

TEST(the_tutorials_line_trains_fifty_epochs_and_its_loss_falls)
{
    double first, last;
    char *dir =
        works("$COHORT train --standalone --nproc_per_node=4 experiment=toy 50 10",
              (const char *const[4]){"--nproc_per_node=4 -> trainer.devices=4", "50 -> trainer.max_epochs=50",
                                     "10 -> callbacks.model_checkpoint.every_n_epochs=10", "global batch 128"});
    losses(&first, &last, dir);
    CHECK(last < 0.9 * first, "the loss went from %g to %g", first, last);
    json_t *v = json_of("%s/summary.json", dir);
    CHECK(number_in(v, "epochs") == 50, "%lld epochs", number_in(v, "epochs"));
    json_decref(v);
    free(dir);
}

TEST_WITHIN(the_sweep_line_runs_four_jobs, 120)
{
    test_run r = test_sh("$COHORT train -m optim.lr=0.1,0.01 seed=1,2");
    CHECK(r.status == 0 && test_contains(r.out, "optim.lr=0.01 seed=2  done"), "%d %s", r.status, r.out);
    free(r.out);
}

TEST_WITHIN(the_fsdp_line_trains_and_says_what_it_is_on_one_host, 180)
{
    put_cifar();
    free(works("$COHORT train experiment=cifar trainer=fsdp trainer.devices=4" SHORT,
               (const char *const[4]){"fsdp", "one copy of the state", "global batch 128", "1 step in"}));
}

TEST_LONG_WITHIN(the_vit_recipe_gives_one_hash_with_ddp_and_with_fsdp_for_any_number_of_ranks, 240)
{
    static const char *const how[] = {"trainer=ddp trainer.devices=1", "trainer=ddp trainer.devices=2",
                                      "trainer=fsdp trainer.devices=2",
                                      "trainer=fsdp trainer.devices=3 trainer.threads=2"};
    char first[65] = "";

    put_cifar();
    for (size_t i = 0; i < CO_COUNT(how); i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "$COHORT train experiment=cifar10_vit %s" SHORT
                 " trainer.max_steps=3 schedule.warmup_epochs=0 run.dir=r%zu",
                 how[i], i);
        free(works(line, (const char *const[4]){"8x8 patches of 4x4 pixels", "3 steps in", NULL}));
        char dir[8];
        snprintf(dir, sizeof dir, "r%zu", i);
        json_t *v = json_of("%s/summary.json", dir);
        const char *sha = co_json_str(v, "weights_sha256");
        CHECK(sha && strlen(sha) == 64 && (!i || strcmp(first, sha) == 0), "%s: %s, not %s", how[i], sha,
              first);
        snprintf(first, sizeof first, "%s", sha);
        json_decref(v);
    }
}

TEST(the_cifar_recipe_says_where_it_looks_for_its_files)
{
    test_run r = test_sh("$COHORT train experiment=cifar");
    CHECK(r.status == 2 && test_contains(r.out, "data/cifar10"), "%d %s", r.status, r.out);
    free(r.out);
}
