/* data.decode=reduced: JPEG files decoded at 1/2, 1/4 or 1/8 give nearly the same samples, and say so. */
#include "data/pictures.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/decode_int.h"
#include "train/program.h"

/* Waves of both directions and colours, smooth enough that a smaller picture can show them. */
static uint8_t wave(unsigned x, unsigned y, int plane)
{
    double far = sqrt((double)x * x + 1.5 * y * y), turn = 0.045 + 0.02 * plane;

    return (uint8_t)(127.5 + 90 * sin(far * turn) + 30 * sin((x + 2.0 * y) * 0.08));
}

static uint8_t *waves(size_t *len, unsigned width, unsigned height, J_COLOR_SPACE space)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr errors;
    int planes = space == JCS_GRAYSCALE ? 1 : space == JCS_CMYK ? 4 : 3;
    unsigned char *bytes = NULL, *row = malloc((size_t)planes * width);
    unsigned long n = 0;

    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &bytes, &n);
    j.image_width = width;
    j.image_height = height;
    j.input_components = planes;
    j.in_color_space = space;
    jpeg_set_defaults(&j);
    jpeg_set_quality(&j, 92, TRUE);
    jpeg_start_compress(&j, TRUE);
    while (j.next_scanline < height) {
        for (unsigned i = 0; i < width * (unsigned)planes; i++)
            row[i] = wave(i / (unsigned)planes, j.next_scanline, (int)(i % (unsigned)planes));
        jpeg_write_scanlines(&j, &row, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    free(row);
    *len = n;
    return bytes;
}

static void put_waves(const char *path, unsigned width, unsigned height)
{
    size_t len;
    uint8_t *bytes = waves(&len, width, height, JCS_RGB);

    make_way(path);
    put_file(path, bytes, len);
    free(bytes);
}

/* Two classes with pictures of several sizes. */
static void put_set(void)
{
    char path[64];

    for (unsigned i = 0; i < 12; i++) {
        snprintf(path, sizeof path, "d/%s/%c/%u.jpg", i < 8 ? "train" : "val", 'a' + (int)(i % 2), i);
        put_waves(path, 512 - 37 * (i % 4), 384 - 21 * (i % 3));
    }
}

static uint32_t by_ctx(void *ctx, uint32_t height, uint32_t width)
{
    return *(uint32_t *)ctx;
}

static bool decode_by(picture *p, const uint8_t *bytes, size_t len, uint32_t by)
{
    char why[WHY_LEN];

    return picture_decode_reduced(p, bytes, len, MOST_PIXELS, &(picture_wish){by_ctx, &by}, why);
}

/* --- the decoder ---------------------------------------------------------------------------------------- */

/* The mean of the by x by pixels of `full` [h,w,3] that pixel (y, x) of a smaller picture stands for. */
static double block_mean(const uint8_t *full, uint32_t w, uint32_t by, uint32_t y, uint32_t x, uint32_t k)
{
    double sum = 0;

    for (uint32_t r = y * by; r < (y + 1) * by; r++)
        for (uint32_t c = x * by; c < (x + 1) * by; c++)
            sum += full[(r * w + c) * 3 + k];
    return sum / (by * by);
}

/* The mean difference from the means of blocks. A block at the edge that is not whole has no such mean. */
static double apart_from_means(const picture *p, const uint8_t *full, uint32_t h, uint32_t w, uint32_t by)
{
    double sum = 0;

    for (uint32_t y = 0; y < h / by; y++)
        for (uint32_t x = 0; x < w / by; x++)
            for (uint32_t k = 0; k < 3; k++)
                sum += fabs(p->bytes[y * p->stride + 3 * x + k] - block_mean(full, w, by, y, x, k));
    return h < by || w < by ? 0 : sum / (3.0 * (h / by) * (w / by));
}

static void check_size(unsigned width, unsigned height, J_COLOR_SPACE space)
{
    size_t len;
    uint8_t *bytes = waves(&len, width, height, space);
    char why[WHY_LEN];
    picture p;

    CHECK(picture_decode(&p, bytes, len, MOST_PIXELS, why) && !p.full_height, "%s", why);
    uint8_t *full = malloc((size_t)height * width * 3);
    memcpy(full, p.bytes, (size_t)height * width * 3);
    CHECK(decode_by(&p, bytes, len, 1) && !p.full_height && p.height == height && p.width == width, "by 1");
    CHECK(memcmp(full, p.bytes, (size_t)height * width * 3) == 0, "reduced by 1 is not the full picture");
    for (uint32_t by = 2; by <= 8; by *= 2) {
        CHECK(decode_by(&p, bytes, len, by), "%ux%u by %u", width, height, by);
        CHECK(p.height == (height + by - 1) / by && p.width == (width + by - 1) / by && p.planes == 3,
              "%ux%u by %u: %ux%u", width, height, by, p.width, p.height);
        CHECK(p.full_height == height && p.full_width == width, "its full size is %ux%u", p.full_width,
              p.full_height);
        double apart = apart_from_means(&p, full, height, width, by);
        CHECK(apart < 2.5, "%ux%u in colour space %d by %u: %g apart from the means of blocks", width, height,
              (int)space, by, apart);
    }
    free(full);
    free(bytes);
}

TEST(a_jpeg_at_reduced_size_has_the_means_of_the_full_pictures_blocks)
{
    static const unsigned sizes[][2] = {{512, 384}, {1, 1},   {7, 5},   {8, 8},   {9, 17},
                                        {1, 100},   {100, 3}, {65, 64}, {33, 129}};

    for (size_t i = 0; i < CO_COUNT(sizes); i++) {
        check_size(sizes[i][0], sizes[i][1], JCS_RGB);
        check_size(sizes[i][0], sizes[i][1], JCS_GRAYSCALE);
        check_size(sizes[i][0], sizes[i][1], JCS_CMYK);
    }
}

TEST(the_bound_on_pixels_is_that_of_the_full_picture)
{
    size_t len;
    uint8_t *bytes = waves(&len, 100, 100, JCS_RGB);
    uint32_t by = 8;
    char why[WHY_LEN];
    picture p;

    CHECK(!picture_decode_reduced(&p, bytes, len, 9999, &(picture_wish){by_ctx, &by}, why), "taken");
    CHECK(test_contains(why, "100 x 100 pixels; at most 9999"), "%s", why);
    CHECK(picture_decode_reduced(&p, bytes, len, 10000, &(picture_wish){by_ctx, &by}, why), "%s", why);
    CHECK(!picture_decode_reduced(&p, bytes, len / 2, 10000, &(picture_wish){by_ctx, &by}, why),
          "half a file");
    free(bytes);
}

static void hash_reduced(char hex[65])
{
    static const J_COLOR_SPACE spaces[] = {JCS_RGB, JCS_GRAYSCALE, JCS_CMYK};
    co_sha256 h;

    co_sha256_init(&h);
    for (size_t i = 0; i < CO_COUNT(spaces); i++)
        for (uint32_t by = 1; by <= 8; by *= 2) {
            size_t len;
            uint8_t *bytes = waves(&len, 333, 217, spaces[i]);
            picture p;
            CHECK(decode_by(&p, bytes, len, by), "by %u", by);
            co_sha256_add(&h, p.bytes, p.height * p.stride);
            free(bytes);
        }
    co_sha256_hex(&h, hex);
}

/* libjpeg-turbo chooses its code once a process, so plain code runs in a child. */
TEST(reduced_pixels_are_the_same_with_and_without_libjpegs_vector_code)
{
    char plain[65] = "", fast[65];
    int ends[2], status;

    CHECK(pipe(ends) == 0, "%m");
    pid_t pid = fork();
    if (pid == 0) {
        setenv("JSIMD_FORCENONE", "1", 1);
        hash_reduced(plain);
        _exit(write(ends[1], plain, 64) == 64 ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "status %d", status);
    CHECK(read(ends[0], plain, 64) == 64, "no hash");
    hash_reduced(fast);
    CHECK(strcmp(plain, fast) == 0, "%s without vector code, %s with it", plain, fast);
}

/* --- how much smaller ----------------------------------------------------------------------------------- */

static transform transform_of(const char *resize, const char *crop, bool boxes)
{
    static char scale[] = "0.08:1", ratio[] = "0.75:1.3333333333333333";
    char resize_text[32], crop_text[32];
    struct transform_cfg c = {.random_resized_crop = boxes, .scale = scale, .ratio = ratio};
    transform t;

    snprintf(resize_text, sizeof resize_text, "%s", resize ? resize : "");
    snprintf(crop_text, sizeof crop_text, "%s", crop ? crop : "");
    c.resize = resize_text;
    c.crop = crop_text;
    CHECK_OK(transform_init(&t, &c, 0, 0, 3, imagenet_mean, imagenet_std));
    t.reduced = true;
    return t;
}

TEST(a_picture_is_reduced_as_far_as_resizing_never_enlarges_it)
{
    static const struct {
        const char *resize, *crop;
        uint32_t height, width, by;
    } rows[] = {
        {"64x64", NULL, 512, 512, 8}, {"64x64", NULL, 511, 512, 4}, {"64x64", NULL, 512, 127, 1},
        {"64x64", NULL, 128, 128, 2}, {"64x64", NULL, 64, 64, 1},   {"64x64", NULL, 3, 5, 1},
        {"64", "56", 400, 500, 4},    {"256", "224", 400, 500, 1},  {"256", "224", 512, 900, 2},
        {NULL, "64", 4000, 4000, 1}, /* a crop without a resize needs every pixel */
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        transform t = transform_of(rows[i].resize, rows[i].crop, false);
        uint32_t by = transform_reduction(&t, NULL, rows[i].height, rows[i].width);
        CHECK(by == rows[i].by, "row %zu: %u", i, by);
    }
}

TEST(a_random_box_is_reduced_by_its_own_size_and_stays_inside)
{
    transform t = transform_of("64", "48x64", true);
    uint32_t seen = 0;
    float *x = malloc(t.numbers * sizeof *x);

    for (uint32_t id = 0; id < 150; id++) {
        unsigned width = 1 + id * 97 % 601, height = 1 + id * 61 % 457;
        size_t len;
        co_draw draw = {.seed = 3, .augment = true};
        struct drawn d;
        char why[WHY_LEN];
        picture p;
        CHECK(transform_draw(&d, &t, &draw, id, height, width), "nothing drawn");
        uint32_t by = transform_reduction(&t, &d, height, width), h = (uint32_t)d.crop.height,
                 w = (uint32_t)d.crop.width;
        CHECK(by == 1 || (h >= by * 48 && w >= by * 64), "%ux%u by %u", h, w, by);
        CHECK(by == 8 || h < 2 * by * 48 || w < 2 * by * 64, "%ux%u by %u only", h, w, by);
        seen |= by;
        uint8_t *bytes = waves(&len, width, height, JCS_RGB);
        CHECK(picture_decode_for(&p, bytes, len, &t, &draw, id, why), "%s", why);
        CHECK(by == 1 ? !p.full_height : p.full_height == height && p.height == (height + by - 1) / by,
              "%u decoded by %u", p.height, by);
        uint8_t *exact = malloc(p.height * p.stride); /* so that a sanitizer sees one pixel too many */
        memcpy(exact, p.bytes, p.height * p.stride);
        p.bytes = exact;
        transform_apply(x, &t, p, &d);
        free(exact);
        free(bytes);
    }
    CHECK((seen & 7) == 7, "reductions that were seen: %u", seen);
    free(x);
}

/* --- samples -------------------------------------------------------------------------------------------- */

enum { SAMPLES = 8, NUMBERS = SAMPLES * 3 * 64 * 64 };

static void fill_all(const co_dataset *d, bool augment, uint32_t epoch, float *x)
{
    static const uint32_t ids[SAMPLES] = {0, 1, 2, 3, 4, 5, 6, 7};

    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(3, 64, 64)), "not [3,64,64]");
    CHECK(d->fill(d, CO_SPLIT_TRAIN, ids, (co_slice_shape){SAMPLES, 0},
                  &(co_draw){.seed = 1, .epoch = epoch, .augment = augment}, &(co_slice_dst){.x = x}) == 0,
          "bad");
}

static co_dataset *open_by(const char *dir, const char *decode, const char *augment)
{
    co_dataset *d;

    CHECK_OK(set_try(&d, "imagefolder", "dir", dir, "decode", decode, "augment", augment, "crop", "64",
                     "resize", "72", "scale", "0.3:1", "normalize", "none", (char *)NULL));
    return d;
}

/* In levels of 255. */
static double mean_apart(const float *a, const float *b)
{
    double sum = 0;

    for (int i = 0; i < NUMBERS; i++)
        sum += fabs((double)a[i] - (double)b[i]);
    return 255 * sum / NUMBERS;
}

TEST(samples_of_reduced_pictures_are_nearly_those_of_full_ones)
{
    float *a = malloc(NUMBERS * sizeof *a), *b = malloc(NUMBERS * sizeof *b);

    put_set();
    for (int boxes = 0; boxes < 2; boxes++) {
        co_dataset *full = open_by("d", "full", boxes ? "imagenet" : "none");
        co_dataset *reduced = open_by("d", "reduced", boxes ? "imagenet" : "none");
        CHECK(strcmp(full->fingerprint, reduced->fingerprint) != 0, "the fingerprint does not have the key");
        CHECK(!full->note[0] && test_contains(reduced->note, "reduced size"), "%s", reduced->note);
        for (uint32_t epoch = 0; epoch < 4; epoch++) {
            fill_all(full, true, epoch, a);
            fill_all(reduced, true, epoch, b);
            double apart = mean_apart(a, b);
            CHECK(apart > 0.01 && apart < 1.5, "%s, epoch %u: %g of 255 apart", boxes ? "boxes" : "crops",
                  epoch, apart);
            test_note("%g of 255 apart", apart);
        }
        fill_all(full, false, 0, a);
        fill_all(reduced, false, 0, b);
        CHECK(mean_apart(a, b) > 0.01 && mean_apart(a, b) < 1.5, "evaluation: %g of 255", mean_apart(a, b));
        co_dataset_close(full);
        co_dataset_close(reduced);
    }
    free(a);
    free(b);
}

TEST(full_is_the_default_and_other_formats_have_no_reduced_size)
{
    float *a = malloc(NUMBERS * sizeof *a), *b = malloc(NUMBERS * sizeof *b);
    uint8_t *rgb = malloc(200 * 150 * 3);
    char path[64], *png;
    size_t len;
    co_dataset *d, *same;

    for (int i = 0; i < 12; i++) {
        for (unsigned p = 0; p < 200 * 150 * 3; p++)
            rgb[p] = wave(p / 3 % 200 + 5 * (unsigned)i, p / 600, (int)(p % 3));
        CHECK_OK(co_png_write(&png, &len, rgb, 200, 150, 3));
        snprintf(path, sizeof path, "p/%s/%c/%d.png", i < 8 ? "train" : "val", 'a' + i % 2, i);
        make_way(path);
        put_file(path, png, len);
        co_free(png);
    }
    d = open_by("p", "full", "none");
    same = open_by("p", "reduced", "none");
    fill_all(d, true, 1, a);
    fill_all(same, true, 1, b);
    CHECK(memcmp(a, b, NUMBERS * sizeof *a) == 0, "PNG files are read otherwise");
    co_dataset_close(same);
    CHECK_OK(set_try(&same, "imagefolder", "dir", "p", "crop", "64", "resize", "72", "scale", "0.3:1",
                     "normalize", "none", (char *)NULL));
    CHECK(strcmp(d->fingerprint, same->fingerprint) == 0, "full is not the default");
    co_dataset_close(same);
    co_dataset_close(d);
    free(rgb);
    free(a);
    free(b);
}

/* Pictures of one size with the shorter side resized: the size is still checked by the file's own. */
TEST(pictures_of_one_size_are_checked_by_their_full_size)
{
    char path[64];
    co_dataset *d;
    float *x = malloc(NUMBERS * sizeof *x);

    for (int i = 0; i < 12; i++) {
        snprintf(path, sizeof path, "s/%s/%c/%d.jpg", i < 8 ? "train" : "val", 'a' + i % 2, i);
        put_waves(path, 256, 256);
    }
    CHECK_OK(set_try(&d, "imagefolder", "dir", "s", "resize", "64", "decode", "reduced", (char *)NULL));
    fill_all(d, true, 0, x);
    const char *files[] = {"s/val/a/8.jpg"};
    co_dataset *own;
    uint32_t id = 0;
    float *y = malloc(NUMBERS * sizeof *y);
    CHECK_OK(co_pictures_open(&own, d, files, 1));
    CHECK(own->fill(own, CO_SPLIT_TEST, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.x = y}) ==
              0,
          "bad");
    CHECK(memcmp(x, y, NUMBERS / SAMPLES * sizeof *x) == 0, "a picture of the user's own is another sample");
    co_dataset_close(own);
    co_dataset_close(d);
    free(x);
    free(y);
}

/* --- a run ---------------------------------------------------------------------------------------------- */
#define WORDS                                                                                                \
    "data=imagefolder data.dir=d data.crop=16 data.augment=imagenet data.batch_size=8 model=cnn test=false " \
    "trainer.slices=4 "

TEST(reduced_pictures_train_to_the_same_weights_on_any_ranks_and_loader_threads)
{
    put_set();
    outcome one = program_run("one", WORDS "data.decode=reduced trainer.max_epochs=2 trainer.devices=1");
    outcome two = program_run(
        "two",
        WORDS "data.decode=reduced trainer.max_epochs=2 trainer.devices=2 data.workers=2 data.cache_mb=0");
    outcome full = program_run("full", WORDS "trainer.max_epochs=2 trainer.devices=1");
    CHECK(test_contains(one.out, "JPEG files are decoded at reduced size"), "%s", one.out);
    CHECK(!test_contains(full.out, "reduced size"), "%s", full.out);
    program_same(&one, &two, "two ranks, two loader threads");
    CHECK(strcmp(one.sha, full.sha) != 0, "the same weights as with full pictures");
}

TEST(a_run_that_goes_on_with_the_other_size_says_that_its_data_changed)
{
    put_set();
    program_run("run", WORDS "data.decode=reduced trainer.max_epochs=1");
    outcome o = program_run("run", WORDS "data.decode=full trainer.max_epochs=2 ckpt_path=auto");
    CHECK(test_contains(o.out, "the data is not that of the checkpoint: a new segment begins"), "%s", o.out);
    test_run r = test_sh("$COHORT plan " WORDS "--json | grep -o 'config_sha256\": *\"[0-9a-f]*' > a; "
                         "$COHORT plan " WORDS
                         "data.decode=reduced --json | grep -o 'config_sha256\": *\"[0-9a-f]*' > b;"
                         "test -s a && ! cmp -s a b && $COHORT plan " WORDS "data.decode=reduced");
    CHECK(r.status == 0 && test_contains(r.out, "JPEG files are decoded at reduced size"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT plan " WORDS "data.decode=half");
    CHECK(r.status == 2 && test_contains(r.out, "full") && test_contains(r.out, "reduced"), "%s", r.out);
    free(r.out);
}
