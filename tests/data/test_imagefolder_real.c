/* Real pictures, if they are there: $COHORT_DATA, or ../shared/data beside the repository, with
 * tiny-imagenet-20.tar.xz in tiny-imagenet-20. What Pillow makes of them is known by
 * golden/hash_pictures.py. */
#include "data/pictures.h"
#include "data/real.h"

#include "base/clock.h"
#include "base/hash.h"

enum { SIDE = 64, PIXELS = SIDE * SIDE };

static const char *find_real(void)
{
    static char path[4096];
    const char *data = getenv("COHORT_DATA");

    snprintf(path, sizeof path, "%s/tiny-imagenet-20", data ? data : test_repo("../shared/data"));
    if (!co_fs_is_dir(path))
        test_skip("no %s: set COHORT_DATA to a folder with tiny-imagenet-20/ in it", path);
    keep_cache();
    return path;
}

static co_dataset *open_real(void)
{
    const char *path = find_real();
    co_dataset *d;

    for (int i = 0; i < 2; i++) { /* the first may unpack */
        double t0 = co_now_s();
        CHECK_OK(set_try(&d, "tinyimagenet", "dir", path, "normalize", "none", (char *)NULL));
        test_note("opened in %.2f s", co_now_s() - t0);
        if (i == 0)
            co_dataset_close(d);
    }
    return d;
}

/* x [3,SIDE,SIDE] of 0 to 1 back to bytes [SIDE,SIDE,3]. */
static void to_bytes(uint8_t *out, const float *x)
{
    for (int p = 0; p < PIXELS; p++)
        for (int c = 0; c < 3; c++)
            out[p * 3 + c] = (uint8_t)(x[c * PIXELS + p] * 255.0f + 0.5f);
}

static void check_pixels(const co_dataset *d, co_split s, int per_class, const char *want)
{
    static float x[3 * PIXELS];
    static uint8_t bytes[1 + 3 * PIXELS];
    int seen[20] = {0};
    char hash[65];
    co_sha256 h;
    int32_t y;

    co_sha256_init(&h);
    for (uint32_t id = 0; id < d->count[s]; id++) {
        CHECK(!d->fill(d, s, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.x = x, .y = &y}),
              "%u", id);
        seen[y]++;
        bytes[0] = (uint8_t)y;
        to_bytes(bytes + 1, x);
        co_sha256_add(&h, bytes, sizeof bytes);
    }
    co_sha256_hex(&h, hash);
    for (int c = 0; c < 20; c++)
        CHECK(seen[c] == per_class, "class %d has %d", c, seen[c]);
    CHECK(strcmp(hash, want) == 0, "pixels hash to %s", hash);
}

TEST_WITHIN(the_real_tiny_imagenet_has_pillows_pixels_in_torchvisions_order, 120)
{
    co_dataset *d = open_real();

    CHECK(d->count[0] == 10000 && d->count[1] == 1000 && d->count[2] == 0, "%u %u %u", d->count[0],
          d->count[1], d->count[2]);
    CHECK(d->io.classes == 20 && co_shape_eq(&d->io.x, &CO_SHAPE(3, SIDE, SIDE)), "not [3,64,64] of 20");
    CHECK(strcmp(d->class_name(d, 0), "goldfish") == 0 && strcmp(d->class_name(d, 5), "golden retriever") == 0,
          "%s, %s", d->class_name(d, 0), d->class_name(d, 5));
    check_pixels(d, CO_SPLIT_TRAIN, 500, "feaa923256525b8cb7a70bc19d48ad1597f7900746bf7ab4f354288a33a893e4");
    check_pixels(d, CO_SPLIT_VAL, 50, "eb79bd239b117904bad26851ef8913429870bf5bf054f44fdcc8d3034b25e4f1");
    co_dataset_close(d);
}

TEST_WITHIN(the_real_tiny_imagenet_is_refused_as_an_image_folder_with_the_reason, 120)
{
    co_dataset *d;

    CHECK_FAILS(set_try(&d, "imagefolder", "dir", find_real(), (char *)NULL), CO_EINPUT,
                "/val has Tiny ImageNet's layout: its pictures are not in class folders");
    CHECK(test_contains(co_errmsg(), "use data=tinyimagenet"), "%s", co_errmsg());
}
