/* probe.c -- what this machine makes of built-in pictures.
 *
 * All hosts of a training must turn a picture file into the same numbers. The program may have been built
 * with another libjpeg, libpng or libwebp on one of them, and such a library may round a pixel differently; a
 * compiler may treat the arithmetic of a transform differently. So each host decodes three small pictures,
 * sends them through its data set's transforms, and hashes what comes out. Hosts compare these hashes when
 * they meet.
 *
 *     decoding     the pixels of probe/probe.jpg, .png and .webp; only for sets that decode picture files
 *     reduced      with data.decode=reduced, also those of probe.jpg at 1/2, 1/4 and 1/8
 *     augmenting   each picture as in evaluation, then DRAWS samples as in training, then both ways of mixing
 *
 * Probabilities are raised where it is needed, so that every transform that the keys turn on is used, with
 * each operation of TrivialAugment. Samples are halved until no side is longer than SIDE_MOST: the code that
 * runs is the same, and the probe of a set with large samples costs no more than that of a small one.
 *
 * Cost: one to four milliseconds, and 0.7 MB of memory while it runs.
 */
#include "data/decode_int.h"
#include "data/pictures_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { SIDE_MOST = 64, DRAWS = TRIVIAL_OPS, FILES = 3 };

static const uint8_t jpeg_file[] = {
#include "probe.jpg.inc"
};
static const uint8_t png_file[] = {
#include "probe.png.inc"
};
static const uint8_t webp_file[] = {
#include "probe.webp.inc"
};

static const struct {
    const char *what;
    const uint8_t *bytes;
    size_t len;
} files[FILES] = {{"libjpeg's decoding of a test picture", jpeg_file, sizeof jpeg_file},
                  {"libpng's decoding of a test picture", png_file, sizeof png_file},
                  {"libwebp's decoding of a test picture", webp_file, sizeof webp_file}};

typedef void (*fact_fn)(void *ctx, const char *what, const char *hash);

static void finish(co_sha256 *h, const char *what, fact_fn fact, void *ctx)
{
    char hex[65];

    co_sha256_hex(h, hex);
    hex[16] = '\0';
    fact(ctx, what, hex);
}

/* --- decoding ------------------------------------------------------------------------------------------- */
static void add_pixels(co_sha256 *h, const picture *p)
{
    for (uint32_t y = 0; y < p->height; y++)
        co_sha256_add(h, p->bytes + y * p->stride, (size_t)p->width * p->planes);
}

static uint32_t by_ctx(void *ctx, uint32_t height, uint32_t width)
{
    return *(uint32_t *)ctx;
}

static void probe_reduced(fact_fn fact, void *ctx)
{
    co_sha256 h;

    co_sha256_init(&h);
    for (uint32_t by = 2; by <= 8; by *= 2) {
        picture p;
        char why[WHY_LEN];
        if (picture_decode_reduced(&p, jpeg_file, sizeof jpeg_file, MOST_PIXELS, &(picture_wish){by_ctx, &by},
                                   why))
            add_pixels(&h, &p);
        else
            co_sha256_add(&h, why, strlen(why));
    }
    finish(&h, "libjpeg's decoding of a test picture at reduced size", fact, ctx);
}

static void probe_decoding(fact_fn fact, void *ctx)
{
    for (int i = 0; i < FILES; i++) {
        picture p;
        char why[WHY_LEN];
        co_sha256 h;
        co_sha256_init(&h);
        if (picture_decode(&p, files[i].bytes, files[i].len, MOST_PIXELS, why))
            add_pixels(&h, &p);
        else
            co_sha256_add(&h, why, strlen(why));
        finish(&h, files[i].what, fact, ctx);
    }
}

/* --- augmenting ----------------------------------------------------------------------------------------- */
/* For sets that have pixels and no files. */
static picture made_up(uint32_t height, uint32_t width, uint32_t planes, uint32_t i)
{
    uint8_t *to = scratch_get(SCRATCH_PICTURE, (size_t)height * width * planes);

    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t k = 0; k < planes; k++)
                to[(y * width + x) * planes + k] = (uint8_t)((x * (7 + i)) ^ (y * 13 + k * 37));
    return (picture){to, height, width, planes, (size_t)width * planes};
}

/* Picture i as the set would have it: of its size, if all of its pictures have one. */
static picture picture_for(const picture_use *use, const transform *t, uint32_t i)
{
    const uint32_t side = 32;
    char why[WHY_LEN];
    picture p;

    if (!use->decodes)
        return made_up(use->height, use->width, t->planes, i);
    if (!picture_decode(&p, files[i % FILES].bytes, files[i % FILES].len, MOST_PIXELS, why))
        return made_up(side, side, t->planes, i); /* probe_decoding tells */
    return use->height ? transform_fit(p, t->height, t->width) : p;
}

/* The set's transform with small samples, in which nothing is left to chance. */
static transform small_and_sure(const transform *how)
{
    transform t = *how;

    while (t.height > SIDE_MOST || t.width > SIDE_MOST) {
        uint32_t *sides[] = {&t.height, &t.width, &t.resize_short, &t.resize_h, &t.resize_w, &t.pad};
        for (size_t i = 0; i < CO_COUNT(sides); i++)
            *sides[i] = (*sides[i] + 1) / 2;
    }
    t.numbers = (size_t)t.planes * t.height * t.width;
    t.flip = t.flip > 0 ? 0.5 : 0;
    t.erase = t.erase > 0 ? 1 : 0;
    return t;
}

static void add_evaluation(co_sha256 *h, const picture_use *use, const transform *t, float *x)
{
    for (uint32_t i = 0; i < FILES; i++) {
        transform_apply(x, t, picture_for(use, t, i), NULL);
        co_sha256_add(h, x, t->numbers * sizeof *x);
    }
}

/* x [DRAWS,planes,height,width] */
static void add_training(co_sha256 *h, const picture_use *use, const transform *t, float *x)
{
    const co_draw draw = {.seed = 1, .augment = true};

    for (uint32_t i = 0; i < DRAWS; i++) {
        struct drawn drawn = {0};
        picture p = picture_for(use, t, i);
        bool vary = transform_draw(&drawn, t, &draw, i, p.height, p.width);
        drawn.op = (uint8_t)i;
        transform_apply(x + i * t->numbers, t, p, vary ? &drawn : NULL);
    }
    co_sha256_add(h, x, DRAWS * t->numbers * sizeof *x);
}

/* MixUp of one half of the samples and CutMix of the other, if both are on. */
static void add_mixing(co_sha256 *h, const transform *t, float *x)
{
    const co_draw draw = {.seed = 1, .augment = true};
    enum { HALF = DRAWS / 2 };

    for (uint32_t first = 0; first < DRAWS; first += HALF) {
        float lam[HALF];
        uint32_t ids[HALF];
        transform one = *t;
        if (first == 0 && t->mixup > 0)
            one.cutmix = 0;
        else if (t->cutmix > 0)
            one.mixup = 0;
        for (uint32_t i = 0; i < HALF; i++)
            ids[i] = first + i;
        float *half = x + first * t->numbers;
        transform_mix(&one, &draw, ids, HALF, &(co_slice_dst){.x = half, .lam = lam});
        co_sha256_add(h, half, HALF * t->numbers * sizeof *x);
        co_sha256_add(h, lam, sizeof lam);
    }
}

static co_err probe_augmenting(const picture_use *use, fact_fn fact, void *ctx)
{
    transform t = small_and_sure(use->how);
    float *x = co_array(DRAWS * t.numbers, sizeof *x);
    co_sha256 h;

    if (!x)
        return CO_ENOMEM;
    co_sha256_init(&h);
    add_evaluation(&h, use, &t, x);
    add_training(&h, use, &t, x);
    if (t.mix)
        add_mixing(&h, &t, x);
    co_free(x);
    finish(&h, "augmenting of test pictures", fact, ctx);
    return CO_OK;
}

co_err co_dataset_probe(const co_dataset *d, void (*fact)(void *ctx, const char *what, const char *hash),
                        void *ctx)
{
    const picture_use *use = d->pictures;

    if (!use)
        return CO_OK;
    if (use->decodes)
        probe_decoding(fact, ctx);
    if (use->decodes && use->how->reduced)
        probe_reduced(fact, ctx);
    return use->decodes || !use->how->plain ? probe_augmenting(use, fact, ctx) : CO_OK;
}
