/* fake_images.c -- made-up pictures of any size and number of classes: for trying out models, and for
 * measuring without a disk.
 *
 *     x = noise + pattern[class]       noise uniform in [-1, 1); the pattern is 4x4 patches a plane, normal
 *
 * A picture is computed from its id when it is needed, so only the patterns take memory. The
 * ids of val and test follow those of train. Cost: a few nanoseconds a number.
 */
#include "data/data_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"

enum { PATCHES = 4 }; /* along a side */

struct fake_images_cfg {
    int64_t n, size, planes, classes, seed;
};

static const co_option options[] = {
    {"n", CO_OPT_INT, offsetof(struct fake_images_cfg, n), "2048",
     "pictures to train on; an eighth each to validate and to test come on top", .min = 8, .max = 1e7},
    {"size", CO_OPT_INT, offsetof(struct fake_images_cfg, size), "64", "height and width in pixels", .min = 4,
     .max = 1024},
    {"planes", CO_OPT_INT, offsetof(struct fake_images_cfg, planes), "3", "colours of a pixel", .min = 1,
     .max = 4},
    {"classes", CO_OPT_INT, offsetof(struct fake_images_cfg, classes), "10", "classes", .min = 2, .max = 10000},
    {"seed", CO_OPT_INT, offsetof(struct fake_images_cfg, seed), "0", "of the made-up pictures", .min = 0,
     .max = 0x1p53},
    {0},
};

struct fake_images {
    co_dataset base;
    co_rng_key key;
    uint32_t stream_x, stream_y;
    uint32_t planes, size;
    float pattern[]; /* [classes,planes,PATCHES,PATCHES] */
};

static uint32_t label_of(const struct fake_images *set, uint32_t place)
{
    uint32_t u[4];

    co_rng_draw(u, set->key, set->stream_y, 0, place, 0);
    return (uint32_t)((uint64_t)u[0] * (uint64_t)set->base.io.classes >> 32);
}

/* Adds each patch's value to its pixels; x [planes,size,size], patch [planes,PATCHES,PATCHES]. */
static void add_pattern(const struct fake_images *set, float *x, const float *patch)
{
    uint32_t size = set->size;

    for (uint32_t c = 0; c < set->planes; c++, patch += PATCHES * PATCHES)
        for (uint32_t row = 0; row < size; row++, x += size) {
            const float *of_row = patch + row * PATCHES / size * PATCHES;
            for (uint32_t col = 0; col < size; col++)
                x[col] += of_row[col * PATCHES / size];
        }
}

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct fake_images *set = (const struct fake_images *)d;
    size_t pixels = (size_t)set->size * set->size, numbers = set->planes * pixels;
    uint32_t start = split_start(d, s);
    float *x = dst->x;   /* [n,planes,size,size] */
    int32_t *y = dst->y; /* [n] */

    for (int i = 0; i < shape.n; i++) {
        uint32_t label = label_of(set, start + id[i]);
        if (x) {
            float *one = x + (size_t)i * numbers;
            co_rng_uniform(one, numbers, -1, 1, set->key, set->stream_x, 0, start + id[i]);
            add_pattern(set, one, set->pattern + (size_t)label * set->planes * PATCHES * PATCHES);
        }
        if (y)
            y[i] = (int32_t)label;
        if (dst->ids)
            dst->ids[i] = id[i];
    }
    return 0;
}

static void shut(co_dataset *d)
{
    co_free(d);
}

static co_err open_fake_images(co_dataset **out, const void *cfg)
{
    const struct fake_images_cfg *c = cfg;
    uint32_t n = (uint32_t)c->n;
    size_t patches = (size_t)c->classes * (size_t)c->planes * PATCHES * PATCHES;
    struct fake_images *set = co_zalloc(sizeof *set + patches * sizeof(float));
    char says[160];

    if (!set)
        return CO_ENOMEM;
    set->base = (co_dataset){
        .io = {.task = CO_TASK_CLASSIFY, .x = CO_SHAPE(c->planes, c->size, c->size), .classes = c->classes},
        .count = {n, n / 8, n / 8},
        .fill = fill,
        .close = shut,
    };
    set->key = co_rng_key_make((uint64_t)c->seed, CO_RNG_DATA);
    set->stream_x = co_rng_stream("fake_images.x");
    set->stream_y = co_rng_stream("fake_images.y");
    set->planes = (uint32_t)c->planes;
    set->size = (uint32_t)c->size;
    co_rng_normal(set->pattern, patches, 0, 0.5f, set->key, co_rng_stream("fake_images.pattern"), 0, 0);
    snprintf(says, sizeof says, "fake_images 1 n=%lld size=%lld planes=%lld classes=%lld seed=%lld",
             (long long)c->n, (long long)c->size, (long long)c->planes, (long long)c->classes,
             (long long)c->seed);
    co_sha256_of(says, strlen(says), set->base.fingerprint);
    *out = &set->base;
    return CO_OK;
}

const co_dataset_def fake_images_def = {
    .name = "fake_images",
    .help = "made-up pictures of any size, for trying out and measuring",
    .options = options,
    .cfg_size = sizeof(struct fake_images_cfg),
    .open = open_fake_images,
};
