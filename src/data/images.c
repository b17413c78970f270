/* images.c -- pictures kept as the bytes they came in, and given out as floats.
 *
 *     x = (byte / 255 - mean) / std        mean and std fixed, one each a plane
 *
 * A byte has 256 values, so x comes from a table. With data.resize, data.crop or anything random, pictures go
 * through transform_apply instead. The bytes are in memory once: every rank reads the same pages through
 * fork. Train and val are parts of the training rows by one fixed permutation; test is the set's own test
 * part in its own order.
 *
 * Cost: fill takes about a nanosecond a number.
 */
#include "data/images_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/doc.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"

const co_option images_options[] = {
    {"dir", CO_OPT_STR, offsetof(struct images_cfg, dir), "null", "folder with the files of the set",
     .alias = "data.data_dir", .path = true},
    {"val_fraction", CO_OPT_FLOAT, offsetof(struct images_cfg, val_fraction), "0.1",
     "part of the training pictures to validate on instead; at least one", .min = 0, .max = 0.9},
    TRANSFORM_OPTIONS(struct images_cfg, pictures),
    {0},
};

co_err images_check_dir(const char *name, const char *files, const struct images_cfg *c)
{
    char doc[PATH_MAX], list[PATH_MAX + 32];

    if (c->dir && *c->dir && co_fs_is_dir(c->dir))
        return CO_OK;
    if (files)
        snprintf(list, sizeof list, "%s", files);
    else
        snprintf(list, sizeof list, "%s says which files", co_doc(doc, "data.md"));
    if (!c->dir || !*c->dir)
        return co_fail(CO_EINPUT, "data=%s needs data.dir=FOLDER with its files (%s)", name, list);
    bool offered = strcmp(name, "cifar100") != 0; /* is it one of those that `cohort data get` knows? */
    return co_fail(CO_EINPUT,
                   "data=%s: data.dir: %s: %s; %s%s%sput its files there, or name their folder with "
                   "data.dir=FOLDER (%s)",
                   name, c->dir, co_fs_exists(c->dir) ? "not a folder" : strerror(ENOENT),
                   offered ? "cohort data get " : "", offered ? name : "",
                   offered ? " downloads it and names its folder; or " : "", list);
}

/* The row's pixels through the table of values; x [planes,height,width]. */
static void fill_plain(const images *im, float *x, const uint8_t *from)
{
    size_t planes = im->spec.planes, plane = (size_t)im->spec.height * im->spec.width;

    for (size_t c = 0; c < planes; c++)
        for (size_t p = 0; p < plane; p++)
            *x++ = im->how.value[c][*from++];
}

/* The row's planes woven into a picture. */
static picture weave(const images *im, const uint8_t *from)
{
    uint32_t height = im->spec.height, width = im->spec.width;
    size_t plane = (size_t)height * width;

    if (im->spec.planes == 1)
        return (picture){from, height, width, 1, width};
    uint8_t *to = scratch_get(SCRATCH_PICTURE, 3 * plane);
    for (size_t p = 0; p < plane; p++) {
        to[3 * p] = from[p];
        to[3 * p + 1] = from[p + plane];
        to[3 * p + 2] = from[p + 2 * plane];
    }
    return (picture){to, height, width, 3, (size_t)width * 3};
}

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const images *im = (const images *)d;
    uint32_t start = split_start(d, s);
    uint64_t began = draw->times ? co_now_ns() : 0;
    bool plain = draw->augment ? im->how.plain : im->how.plain_eval;
    struct drawn drawn;
    float *x = dst->x;   /* [n,planes,height,width] */
    int32_t *y = dst->y; /* [n] */

    for (int i = 0; i < shape.n; i++, x = x ? x + im->how.numbers : NULL) {
        uint32_t row = im->place[start + id[i]];
        const uint8_t *from = im->bytes + row * im->spec.stride + im->spec.skip;
        if (x && plain) {
            fill_plain(im, x, from);
            co_stage_lap(draw->stages, CO_STAGE_NORMALISE);
        } else if (x) {
            bool vary = transform_draw(&drawn, &im->how, draw, id[i], im->spec.height, im->spec.width);
            co_stage_lap(draw->stages, CO_STAGE_DRAW);
            transform_apply_timed(x, &im->how, weave(im, from), vary ? &drawn : NULL, draw->stages);
        }
        if (y)
            y[i] = im->label[row];
        if (dst->ids)
            dst->ids[i] = id[i];
        co_stage_lap(draw->stages, CO_STAGE_FILL);
    }
    transform_mix(&im->how, draw, id, shape.n, dst);
    co_stage_lap(draw->stages, im->how.mix ? CO_STAGE_MIX : CO_STAGE_FILL);
    if (draw->times)
        draw->times->augment_ns += co_now_ns() - began;
    return 0;
}

static void count_classes(const co_dataset *d, co_split s, uint32_t *per_class)
{
    const images *im = (const images *)d;
    const uint32_t *place = im->place + split_start(d, s);

    for (uint32_t id = 0; id < d->count[s]; id++)
        per_class[im->label[place[id]]]++;
}

static void shut(co_dataset *d)
{
    images_free((images *)d);
}

void images_free(images *im)
{
    if (!im)
        return;
    co_free_shared(im->bytes);
    co_free(im->label);
    co_free(im->place);
    co_free(im);
}

co_err images_new(images **out, const images_spec *spec, const struct images_cfg *c)
{
    size_t n = (size_t)spec->n_train + spec->n_test;
    transform how;

    CO_TRY(transform_init(&how, &c->pictures, spec->height, spec->width, spec->planes, spec->mean, spec->std));
    images *im = co_zalloc(sizeof *im);
    if (!im)
        return CO_ENOMEM;
    im->spec = *spec;
    im->how = how;
    im->bytes = co_alloc_shared(n * spec->stride);
    im->label = im->bytes ? co_array(n, sizeof *im->label) : NULL;
    im->place = im->label ? co_array(n, sizeof *im->place) : NULL;
    if (!im->place) {
        images_free(im);
        return CO_ENOMEM;
    }
    *out = im;
    return CO_OK;
}

/* Of pictures and labels as used, whatever files they came in. */
static void fingerprint(images *im, double val_fraction)
{
    const images_spec *s = &im->spec;
    uint32_t n = s->n_train + s->n_test;
    char says[160], how[512];
    co_sha256 h;

    snprintf(says, sizeof says, "%s 1 n=%u,%u val_fraction=%.17g\n", s->name, s->n_train, s->n_test,
             val_fraction);
    co_sha256_init(&h);
    co_sha256_add(&h, says, strlen(says));
    transform_says(&im->how, how);
    co_sha256_add(&h, how, strlen(how));
    co_sha256_add(&h, im->how.value, sizeof im->how.value);
    co_sha256_add(&h, im->label, n * sizeof *im->label);
    co_sha256_add(&h, im->bytes, n * s->stride);
    co_sha256_hex(&h, im->base.fingerprint);
}

void images_finish(images *im, double val_fraction)
{
    const images_spec *s = &im->spec;
    uint32_t n_val = (uint32_t)((double)s->n_train * val_fraction);

    n_val = n_val ? n_val : 1;
    im->base = (co_dataset){
        .io = {.task = CO_TASK_CLASSIFY, .classes = s->classes},
        .count = {s->n_train - n_val, n_val, s->n_test},
        .fill = fill,
        .count_classes = count_classes,
        .shared_bytes = (size_t)(s->n_train + s->n_test) * s->stride,
        .close = shut,
    };
    im->use = (picture_use){&im->how, s->height, s->width, false};
    im->base.pictures = &im->use;
    transform_io(&im->how, &im->base.io);
    split_permute(im->place, s->n_train);
    for (uint32_t i = 0; i < s->n_test; i++)
        im->place[s->n_train + i] = s->n_train + i;
    fingerprint(im, val_fraction);
}
