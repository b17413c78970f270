/* test_fastnet.c -- a run with initial values from the data, alternating flips, mirrored padding and an
 * average of the weights: one hash, however it is run. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "harness.h"
#include "train/over.h"
#include "train/program.h"

enum { SIDE = 18, CLASSES = 3, OF_EACH = 24 };

/* pictures/CLASS/NN.png: noise with stripes that depend on the class. */
static void put_pictures(void)
{
    uint64_t words = 3;
    char path[64], *png;
    size_t len;

    for (int c = 0; c < CLASSES; c++) {
        snprintf(path, sizeof path, "pictures/class%d", c);
        CHECK_OK(co_fs_mkdirs(path));
        for (int i = 0; i < OF_EACH; i++) {
            uint8_t rgb[SIDE * SIDE * 3];
            for (int p = 0; p < SIDE * SIDE; p++)
                for (int k = 0; k < 3; k++)
                    rgb[3 * p + k] =
                        (uint8_t)(test_u32(&words) % 64 + (unsigned)(k == c ? p / SIDE : p % SIDE) * 10);
            CHECK_OK(co_png_write(&png, &len, rgb, SIDE, SIDE, 3));
            snprintf(path, sizeof path, "pictures/class%d/%02d.png", c, i);
            CHECK_OK(co_fs_write_atomic(path, png, len));
            co_free(png);
        }
    }
}

#define WORDS                                                                                                \
    "data=imagefolder data.dir=pictures data.crop=18 data.pad=2 data.pad_mode=reflect data.flip=alternate "  \
    "data.batch_size=16 model=fastnet model.width1=16 model.width2=32 model.width3=32 model.residual=true "  \
    "optim=sgd optim.lr=0.1 optim.momentum=0.85 optim.nesterov=true optim.no_decay=norm_bias "               \
    "optim.weight_decay=0.001 optim.freeze=whiten.weight optim.lr_groups=block?.norm?.bias:16 "              \
    "optim.ema=0.9 "                                                                                         \
    "schedule=one_cycle loss.label_smoothing=0.2 trainer.slices=4 trainer.max_epochs=3 console=quiet "

TEST(fastnet_ends_in_the_same_weights_with_any_ranks_and_after_a_stop)
{
    put_pictures();
    outcome one = program_run("one", WORDS "data.eval_flip=true trainer.devices=1");
    outcome four = program_run("four", WORDS "data.eval_flip=true trainer.devices=4");
    outcome part = program_run("two", WORDS "data.eval_flip=true trainer.devices=2 trainer.max_time=0.01s");
    outcome whole = program_run("two", WORDS "data.eval_flip=true trainer.devices=2 ckpt_path=auto");
    outcome plain = program_run("plain", WORDS "trainer.devices=1");

    CHECK(one.status == 0, "%s", one.out);
    program_same(&one, &four, "4 ranks");
    CHECK(part.steps > 0 && part.steps < one.steps, "%lld steps before the stop\n%s", part.steps, part.out);
    program_same(&one, &whole, "stopped and continued");
    program_same(&one, &plain, "without mirror images in evaluation");
}

TEST(two_hosts_compute_the_same_first_layer_from_the_data)
{
    static const char *const words[] = {"model=fastnet",
                                        "data=imagefolder",
                                        "optim=sgd",
                                        "data.dir=pictures",
                                        "data.crop=18",
                                        "data.flip=alternate",
                                        "data.pad=2",
                                        "data.pad_mode=reflect",
                                        "data.eval_flip=true",
                                        "data.batch_size=16",
                                        "model.width1=8",
                                        "model.width2=8",
                                        "model.width3=8",
                                        "optim.momentum=0.85",
                                        "optim.ema=0.9",
                                        "trainer.slices=4",
                                        "trainer.max_epochs=3",
                                        "callbacks.model_checkpoint.enabled=false",
                                        NULL};
    over_end end[OVER_HOSTS];
    over_scene scene = {.words = words, .hosts = 2, .ranks = 1};
    char sha[65];

    put_pictures();
    over_run(&scene, end);
    over_alone(words, sha);
    for (int h = 0; h < 2; h++)
        CHECK(end[h].there && !end[h].err && strcmp(end[h].sha, sha) == 0, "host %d: %s, %.16s, not %.16s", h,
              end[h].why, end[h].sha, sha);
}

/* A parameter of the first state with this seed; the caller frees it. */
static float *first_values(const char *seed, const char *name, size_t *n)
{
    const char *words[] = {"model=fastnet",
                           "data=imagefolder",
                           "optim=sgd",
                           "data.dir=pictures",
                           "data.crop=18",
                           "data.batch_size=16",
                           "trainer.slices=4",
                           "trainer.devices=1",
                           seed,
                           NULL};
    stage g;

    stage_open(&g, words);
    co_plan *plan = stage_plan(&g);
    const co_entry *e = co_layout_find(plan->layout, name);
    float *values = co_array(e->count, sizeof *values);
    memcpy(values, plan->regions->state + e->offset, e->count * sizeof *values);
    *n = e->count;
    co_plan_free(plan);
    stage_close(&g);
    return values;
}

TEST(the_first_layer_comes_from_the_data_and_not_from_the_seed)
{
    size_t n, m;
    double squares = 0;

    put_pictures();
    float *a = first_values("seed=1", "whiten.weight", &n), *b = first_values("seed=2", "whiten.weight", &n);
    float *c = first_values("seed=1", "head.weight", &m), *d = first_values("seed=2", "head.weight", &m);
    for (size_t i = 0; i < n; i++)
        squares += (double)a[i] * (double)a[i];
    CHECK(n == 24 * 12 && squares > 1 && memcmp(a, b, n * sizeof *a) == 0, "%zu numbers, %g", n, squares);
    CHECK(memcmp(c, d, m * sizeof *c) != 0, "the head does not depend on the seed");
    co_free(a);
    co_free(b);
    co_free(c);
    co_free(d);
}
