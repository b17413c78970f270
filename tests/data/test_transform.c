/* What is drawn, what is refused, and that applying it does not depend on who does it. The pixels themselves
 * are compared with torchvision's in test_transform_golden.c. */
#include "data/transform_int.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/augment/augment_int.h"
#include "data/augment/resize_int.h"
#include "harness.h"

enum { DRAWS = 20000 };

static const float mean[3] = {0.5f, 0.4f, 0.3f}, std[3] = {0.2f, 0.3f, 0.25f};

static struct transform_cfg plain_cfg(void)
{
    return (struct transform_cfg){.scale = "0.08:1", .ratio = "0.75:1.3333333333333333"};
}

static transform made(struct transform_cfg c, uint32_t in)
{
    transform t;
    CHECK_OK(transform_init(&t, &c, in, in, 3, mean, std));
    return t;
}

static struct drawn drawn_of(const transform *t, uint64_t seed, uint32_t epoch, uint32_t id, uint32_t h,
                             uint32_t w)
{
    struct drawn d;
    CHECK(transform_draw(&d, t, &(co_draw){seed, epoch, true, NULL}, id, h, w), "nothing drawn");
    return d;
}

static uint8_t *noise(size_t len)
{
    uint8_t *bytes = malloc(len);
    uint64_t state = 1;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)test_u32(&state);
    return bytes;
}

static transform everything(void)
{
    struct transform_cfg c = plain_cfg();
    c.augment = TRANSFORM_AUGMENT_IMAGENET;
    c.crop = "24";
    c.brightness = c.contrast = c.saturation = 0.4;
    c.hue = 0.1;
    c.trivial_augment = true;
    c.erase = 0.5;
    return made(c, 0);
}

/* --- keys ----------------------------------------------------------------------------------------------- */

static co_err with(struct transform_cfg c, uint32_t in, uint32_t planes)
{
    transform t;
    return transform_init(&t, &c, in, in, planes, mean, std);
}

TEST(impossible_transforms_are_refused_by_their_key)
{
    struct transform_cfg c = plain_cfg();

#define REFUSED(FIELD, VALUE, IN, WORDS)                                                                     \
    do {                                                                                                     \
        struct transform_cfg d = c;                                                                          \
        d.FIELD = VALUE;                                                                                     \
        CHECK_FAILS(with(d, IN, 3), CO_EINPUT, WORDS);                                                       \
    } while (0)
    REFUSED(crop, "big", 32, "data.crop=big: not a size");
    REFUSED(crop, "0", 32, "data.crop=0: a side is a whole number from 1 to 4096");
    REFUSED(crop, "32x32x3", 32, "data.crop=32x32x3: not a size");
    REFUSED(crop, "33", 32, "data.crop=33: larger than the pictures, 32x32");
    REFUSED(crop, NULL, 0, "data.crop=SIZE is needed");
    REFUSED(resize, "64", 0, "data.crop=SIZE is needed");
    REFUSED(resize, "1.5", 32, "data.resize=1.5: a side is");
    REFUSED(resize, NULL, 5000, "data.resize=null: samples of 5000x5000");
    REFUSED(pad, "-1", 32, "data.pad=-1: a number of pixels");
    REFUSED(flip, "2", 32, "data.flip=2: true, false, a probability from 0 to 1, or alternate");
    REFUSED(scale, "0.5", 32, "data.scale=0.5: two numbers are wanted");
    REFUSED(scale, "0:1", 32, "data.scale=0:1: 0 < least");
    REFUSED(ratio, "2:1", 32, "data.ratio=2:1: 0 < least");
    REFUSED(normalize, "other", 32, "data.normalize=other: imagenet, cifar, ");
    REFUSED(normalize, "1:1:1/1:0:1", 32, "a std must be above 0");
#undef REFUSED
    c.normalize = "imagenet";
    CHECK_FAILS(with(c, 28, 1), CO_EINPUT, "data.normalize=imagenet: the pictures are grey");
    c = plain_cfg();
    c.pad = "4";
    c.random_resized_crop = true;
    CHECK_FAILS(with(c, 32, 3), CO_EINPUT, "data.pad=4: there is no padding with data.random_resized_crop");
}

TEST(alternating_flips_are_random_at_first_and_change_in_every_epoch)
{
    struct transform_cfg c = plain_cfg();
    int flips = 0;

    c.flip = "true";
    transform random = made(c, 32);
    c.flip = "alternate";
    transform t = made(c, 32);
    for (uint32_t id = 0; id < DRAWS; id++) {
        bool first = drawn_of(&t, 1, 0, id, 32, 32).flip;
        CHECK(first == drawn_of(&random, 1, 0, id, 32, 32).flip,
              "%u: the first epoch is as with data.flip=true", id);
        for (uint32_t epoch = 1; epoch < 5; epoch++)
            CHECK(drawn_of(&t, 1, epoch, id, 32, 32).flip == (first != (epoch % 2 == 1)), "%u in epoch %u",
                  id, epoch);
        flips += first;
    }
    CHECK(abs(flips - DRAWS / 2) < 300, "%d of %d are flipped in the first epoch", flips, DRAWS);
}

/* The text is part of the data's fingerprint: runs that do not use a new key keep theirs. */
TEST(new_keys_appear_in_the_fingerprint_only_if_they_are_used)
{
    struct transform_cfg c = plain_cfg();
    char old[512], new[512];

    c.flip = "true";
    c.pad = "2";
    transform t = made(c, 32);
    transform_says(&t, old);
    CHECK(!strstr(old, "reflect") && !strstr(old, "alternate"), "%s", old);
    c.pad_mode = TRANSFORM_PAD_REFLECT;
    t = made(c, 32);
    transform_says(&t, new);
    CHECK(strncmp(old, new, strlen(old)) == 0 && strstr(new, "reflect=1"), "%s", new);
}

TEST(sizes_and_recipes_mean_what_torchvision_means)
{
    struct transform_cfg c = plain_cfg();
    transform t = made(c, 32);
    char says[512];

    CHECK(t.plain && t.height == 32 && t.numbers == 3072 && !t.mix, "nothing is asked for");
    CHECK(t.value[1][51] == (51 / 255.0f - 0.4f) / 0.3f, "%g", (double)t.value[1][51]);
    transform_says(&t, says);
    CHECK(!*says, "%s", says);
    CHECK(!transform_draw(&(struct drawn){0}, &t, &(co_draw){.augment = true}, 0, 32, 32),
          "something is drawn");
    c.augment = TRANSFORM_AUGMENT_CIFAR;
    t = made(c, 32);
    CHECK(!t.plain && t.plain_eval && t.height == 32 && t.pad == 4 && t.flip == 0.5, "cifar");
    transform_says(&t, says);
    CHECK(test_contains(says, "pad=4"), "%s", says);
    c.flip = "false";
    c.pad = "2";
    t = made(c, 32);
    CHECK(t.pad == 2 && t.flip == 0, "a recipe overrides keys");
    c = plain_cfg();
    c.augment = TRANSFORM_AUGMENT_IMAGENET;
    c.crop = "224";
    t = made(c, 0);
    CHECK(t.random_box && t.resize_short == 256 && t.height == 224 && t.flip == 0.5, "imagenet");
    c.resize = "[240,260]";
    t = made(c, 0);
    CHECK(t.resize_h == 240 && t.resize_w == 260 && !t.resize_short, "resize is kept");
    c = plain_cfg();
    c.resize = "20";
    CHECK_OK(transform_init(&t, &c, 31, 50, 3, mean, std));
    CHECK(t.height == 20 && t.width == 32, "%ux%u", t.height, t.width);
    c.normalize = "0.5 0.5 0.5 0.25 0.5 1";
    t = made(c, 32);
    CHECK(t.value[0][255] == 2 && t.value[2][0] == -0.5f, "%g", (double)t.value[0][255]);
}

/* --- draws ---------------------------------------------------------------------------------------------- */

TEST(a_draw_is_a_function_of_seed_epoch_and_id_alone)
{
    transform t = everything();
    struct drawn a = drawn_of(&t, 1, 2, 3, 40, 50), b = drawn_of(&t, 9, 9, 9, 40, 50);

    b = drawn_of(&t, 1, 2, 3, 40, 50);
    CHECK(memcmp(&a.crop, &b.crop, sizeof a.crop) == 0 && a.flip == b.flip && a.op == b.op &&
              a.bin == b.bin && memcmp(a.jitter, b.jitter, sizeof a.jitter) == 0 &&
              memcmp(a.order, b.order, sizeof a.order) == 0 && memcmp(&a.erase, &b.erase, sizeof a.erase) == 0,
          "the same draw differs");
    struct drawn other[3] = {drawn_of(&t, 2, 2, 3, 40, 50), drawn_of(&t, 1, 3, 3, 40, 50),
                             drawn_of(&t, 1, 2, 4, 40, 50)};
    for (int i = 0; i < 3; i++)
        CHECK(memcmp(other[i].jitter, a.jitter, sizeof a.jitter) != 0, "another draw is the same");
    t.trivial = false;
    t.jitter[0] = t.jitter[1] = t.jitter[2] = t.jitter[3] = 0;
    b = drawn_of(&t, 1, 2, 3, 40, 50);
    CHECK(memcmp(&a.crop, &b.crop, sizeof a.crop) == 0 && memcmp(&a.erase, &b.erase, sizeof a.erase) == 0,
          "turning colours off moves the crop");
}

TEST(evaluation_draws_nothing)
{
    transform t = everything();
    struct drawn d;
    struct mix_drawn m;

    t.mix = true;
    t.mixup = 1;
    CHECK(!transform_draw(&d, &t, &(co_draw){.seed = 1}, 0, 40, 40), "something was drawn");
    CHECK(!transform_draw_mix(&m, &t, &(co_draw){.seed = 1}, 0), "something was mixed");
}

static void near(const char *what, double is, double should, double within)
{
    CHECK(fabs(is - should) < within, "%s: %g, not %g", what, is, should);
}

TEST(boxes_lie_inside_and_have_the_areas_and_shapes_asked_for)
{
    struct transform_cfg c = plain_cfg();
    c.crop = "24";
    c.random_resized_crop = true;
    transform t = made(c, 0);
    double area = 0, least = 1, most = 0;

    for (uint32_t i = 0; i < DRAWS; i++) {
        box b = drawn_of(&t, 5, 0, i, 300, 400).crop;
        CHECK(b.top >= 0 && b.left >= 0 && b.height > 0 && b.width > 0 && b.top + b.height <= 300 &&
                  b.left + b.width <= 400,
              "%d %d %d %d", b.top, b.left, b.height, b.width);
        double part = b.height * b.width / 120000.0, ratio = (double)b.width / b.height;
        CHECK(part > 0.079 && part < 1.001 && ratio > 0.74 && ratio < 1.35, "part %g, ratio %g", part, ratio);
        area += part / DRAWS;
        least = part < least ? part : least;
        most = part > most ? part : most;
    }
    near("mean area", area, 0.434, 0.01); /* torchvision's: below the middle, since large boxes fit less often */
    CHECK(least < 0.09 && most > 0.95, "%g to %g", least, most);
    for (uint32_t i = 0; i < 100; i++) { /* nothing fits: the middle of it */
        box b = drawn_of(&t, 5, 0, i, 3, 400).crop;
        CHECK(b.top == 0 && b.height == 3 && b.width == 4 && b.left == 198, "%d %d %d %d", b.top, b.left,
              b.height, b.width);
        b = drawn_of(&t, 5, 0, i, 1, 1).crop;
        CHECK(b.height == 1 && b.width == 1, "one pixel");
    }
}

TEST(random_crops_and_flips_are_evenly_spread)
{
    struct transform_cfg c = plain_cfg();
    c.augment = TRANSFORM_AUGMENT_CIFAR;
    transform t = made(c, 32);
    int at[2][9] = {{0}}, flips = 0;

    for (uint32_t i = 0; i < DRAWS; i++) {
        struct drawn d = drawn_of(&t, 5, 1, i, 32, 32);
        CHECK(d.crop.height == 32 && d.crop.width == 32 && abs(d.crop.top) <= 4 && abs(d.crop.left) <= 4,
              "%d %d", d.crop.top, d.crop.left);
        at[0][d.crop.top + 4]++;
        at[1][d.crop.left + 4]++;
        flips += d.flip;
    }
    near("flips", (double)flips / DRAWS, 0.5, 0.015);
    for (int i = 0; i < 9; i++) {
        near("top", (double)at[0][i] / DRAWS, 1 / 9.0, 0.01);
        near("left", (double)at[1][i] / DRAWS, 1 / 9.0, 0.01);
    }
    box b = drawn_of(&t, 5, 1, 7, 10, 11).crop; /* too small: padded as far as needed */
    CHECK(b.top <= 0 && b.top + 32 >= 10 && b.left <= 0 && b.left + 32 >= 11, "%d %d", b.top, b.left);
}

TEST(colours_operations_and_erased_boxes_are_spread_as_torchvision_draws_them)
{
    transform t = everything();
    int op[TRIVIAL_OPS] = {0}, first[JITTER_OPS] = {0}, negative = 0, erased = 0;
    double sum[JITTER_OPS] = {0};

    for (uint32_t i = 0; i < DRAWS; i++) {
        struct drawn d = drawn_of(&t, 6, 0, i, 40, 40);
        int bin = d.bin < 0 ? -1 - d.bin : d.bin, seen = 0;
        CHECK(d.op < TRIVIAL_OPS && bin < TRIVIAL_BINS, "op %d, bin %d", d.op, bin);
        op[d.op]++;
        negative += d.bin < 0;
        for (int k = 0; k < JITTER_OPS; k++) {
            seen |= 1 << d.order[k];
            sum[k] += (double)d.jitter[k] / DRAWS;
            double middle = k == JITTER_HUE ? 0 : 1, by = k == JITTER_HUE ? 0.1 : 0.4;
            CHECK(fabs((double)d.jitter[k] - middle) <= by + 1e-6, "factor %d: %g", k, (double)d.jitter[k]);
        }
        CHECK(seen == 15, "not an order");
        first[d.order[0]]++;
        box e = d.erase;
        erased += e.height > 0;
        CHECK(e.top >= 0 && e.left >= 0 && e.top + e.height <= 24 && e.left + e.width <= 24,
              "erased outside");
    }
    for (int i = 0; i < TRIVIAL_OPS; i++)
        near("operation", (double)op[i] / DRAWS, 1.0 / TRIVIAL_OPS, 0.008);
    for (int k = 0; k < JITTER_OPS; k++) {
        near("first", (double)first[k] / DRAWS, 0.25, 0.015);
        near("factor", sum[k], k == JITTER_HUE ? 0 : 1, 0.01);
    }
    near("other way", (double)negative / DRAWS, 0.5, 0.015);
    near("erased", (double)erased / DRAWS, 0.5, 0.02);
}

/* --- applying ------------------------------------------------------------------------------------------- */

TEST(the_wide_passes_of_a_resize_give_the_bytes_of_the_plain_ones)
{
    const resize_passes *wide = resize_wide();
    uint64_t state = 3;
    uint8_t *in = noise(1 << 16), a[4096], b[4096];
    int32_t first[200], n[200], weight[200 * 5];

    if (!wide)
        test_skip("this CPU has no AVX2");
    for (int round = 0; round < 200; round++) {
        uint32_t width = 1 + test_u32(&state) % 200, taps_of = 1 + test_u32(&state) % 5;
        int32_t left = 1 << TAP_BITS;
        for (uint32_t i = 0; i < taps_of; i++) { /* as much as a weight can be, too */
            weight[i] = i + 1 == taps_of ? left : (int32_t)(test_u32(&state) % (uint32_t)(left + 1));
            left -= weight[i];
        }
        size_t stride = 1 + test_u32(&state) % 600;
        wide->columns(a, in, stride, width * 3, weight, (int32_t)taps_of);
        resize_plain.columns(b, in, stride, width * 3, weight, (int32_t)taps_of);
        CHECK(memcmp(a, b, width * 3) == 0, "columns differ");
        for (uint32_t x = 0; x < width; x++) {
            first[x] = (int32_t)(test_u32(&state) % 1000);
            n[x] = (int32_t)taps_of;
            memcpy(weight + x * taps_of, weight, taps_of * sizeof *weight);
        }
        taps t = {first, n, weight, (int32_t)taps_of};
        wide->row_of_colour(a, in, width, &t);
        resize_plain.row_of_colour(b, in, width, &t);
        CHECK(memcmp(a, b, width * 3) == 0, "rows differ");
    }
    free(in);
}

TEST(a_crop_of_a_resized_picture_is_that_of_the_whole_resized_picture)
{
    uint8_t *in = noise(90 * 70 * 3), *whole = malloc(61 * 83 * 3), *part = malloc(61 * 83 * 3),
            *cut = malloc(61 * 83 * 3);
    picture p = {in, 90, 70, 3, 210};
    canvas all = {whole, 61, 83, 3};
    uint64_t state = 2;

    picture_resize(all, p, part_whole(&p), 61, 83, 0, 0);
    for (int i = 0; i < 50; i++) {
        uint32_t h = 1 + test_u32(&state) % 61, w = 1 + test_u32(&state) % 83;
        uint32_t top = test_u32(&state) % (61 - h + 1), left = test_u32(&state) % (83 - w + 1);
        picture_resize((canvas){part, h, w, 3}, p, part_whole(&p), 61, 83, top, left);
        picture_crop((canvas){cut, h, w, 3}, (picture){whole, 61, 83, 3, 249}, (int32_t)top, (int32_t)left);
        CHECK(memcmp(part, cut, (size_t)h * w * 3) == 0, "%ux%u at %u, %u", h, w, top, left);
    }
    free(in);
    free(whole);
    free(part);
    free(cut);
}

struct worker {
    const transform *t;
    const uint8_t *bytes;
    float *x; /* [100,numbers] */
    uint64_t allocations;
};

/* Pictures of many sizes; then all of them again, which needs no more memory. */
static void *apply_all(void *ctx)
{
    struct worker *w = ctx;

    for (int again = 0; again < 2; again++) {
        uint64_t before = co_alloc_count();
        for (uint32_t id = 0; id < 100; id++) {
            uint32_t h = 1 + id * 7 % 61, width = 1 + id * 13 % 67;
            picture p = {w->bytes, h, width, 3, (size_t)width * 3};
            struct drawn d = drawn_of(w->t, 1, 1, id, h, width);
            transform_apply(w->x + id * w->t->numbers, w->t, p, id % 10 ? &d : NULL);
        }
        w->allocations = co_alloc_count() - before;
    }
    return NULL;
}

TEST(threads_apply_the_same_draws_to_the_same_numbers_and_allocate_once_tsan)
{
    transform t = everything();
    uint8_t *bytes = noise(61 * 67 * 3);
    struct worker w[3];
    pthread_t thread[2];

    for (int i = 0; i < 3; i++)
        w[i] = (struct worker){&t, bytes, malloc(100 * t.numbers * sizeof(float)), 0};
    apply_all(&w[2]);
    CHECK(w[2].allocations == 0, "%d allocations", (int)w[2].allocations);
    uint64_t hash = co_fnv1a64(w[2].x, 100 * t.numbers * sizeof(float));
    CHECK(hash == 0xa61024dd99321ce1, "%#llx: these numbers are part of the numerics contract",
          (unsigned long long)hash);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, apply_all, &w[i]) == 0, "thread");
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++)
        CHECK(memcmp(w[i].x, w[2].x, 100 * t.numbers * sizeof(float)) == 0, "other numbers");
    for (int i = 0; i < 3; i++)
        free(w[i].x);
    free(bytes);
}

TEST(a_long_thin_picture_needs_no_more_memory_than_its_crop)
{
    struct transform_cfg c = plain_cfg();
    c.resize = "2000";
    c.crop = "16";
    transform t = made(c, 0);
    uint8_t *bytes = noise(3 * 60000);
    float *x = malloc(t.numbers * sizeof *x);

    transform_apply(x, &t, (picture){bytes, 60000, 1, 3, 3}, NULL); /* would be 120,000,000 x 2000 */
    float a = t.value[0][bytes[3 * 29999]], b = t.value[0][bytes[3 * 30000]]; /* what is in the middle */
    CHECK(x[0] >= fminf(a, b) && x[0] <= fmaxf(a, b) && x[0] == x[15], "%g of %g to %g", (double)x[0],
          (double)a, (double)b);
    free(bytes);
    free(x);
}
