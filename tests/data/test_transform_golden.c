/* Twenty pictures through each transform, against torchvision: golden-transforms/, which make_transforms.py
 * made and describes. What was drawn is in the files, so both sides do the same thing. */
#include "data/transform_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/images_int.h"
#include "harness.h"

enum { MOST = 20, MOST_BYTES = 1 << 20 };

typedef struct golden {
    uint8_t *bytes;
    size_t len, at;
} golden;

/* The fields of a record, in the file's order. */
struct record {
    int32_t picture, train, resize_short, resize_h, resize_w, crop_h, crop_w, random_box;
    box crop;
    int32_t flip, jitters, order[4];
    float factor[4];
    int32_t trivial, op, bin;
    box erase;
    int32_t floats, out_h, out_w;
};

static golden open_golden(const char *name)
{
    char path[128];
    packed *p;
    golden g = {.bytes = malloc(MOST_BYTES)};

    snprintf(path, sizeof path, "tests/data/golden-transforms/%s.bin.gz", name);
    CHECK_OK(packed_open(&p, test_repo(path)));
    CHECK_OK(packed_read(p, g.bytes, MOST_BYTES, &g.len));
    CHECK(g.len < MOST_BYTES, "%s is larger than thought", name);
    packed_close(p);
    return g;
}

static const void *take(golden *g, size_t len)
{
    CHECK(g->at + len <= g->len, "the file is too short");
    g->at += len;
    return g->bytes + g->at - len;
}

static int32_t take_int(golden *g)
{
    int32_t v;
    memcpy(&v, take(g, sizeof v), sizeof v);
    return v;
}

static golden read_pictures(picture out[MOST])
{
    golden g = open_golden("pictures");

    CHECK(take_int(&g) == MOST, "not 20 pictures");
    for (int i = 0; i < MOST; i++) {
        uint32_t h = (uint32_t)take_int(&g), w = (uint32_t)take_int(&g), planes = (uint32_t)take_int(&g);
        out[i] = (picture){take(&g, (size_t)h * w * planes), h, w, planes, (size_t)w * planes};
    }
    return g;
}

static transform transform_of(const struct record *r, const picture *p, bool reflect)
{
    const float mean[3] = {0.1307f}, std[3] = {0.3081f};
    char resize[32] = "", crop[32] = "";
    transform t;

    if (r->resize_h)
        snprintf(resize, sizeof resize, "%dx%d", r->resize_h, r->resize_w);
    else if (r->resize_short)
        snprintf(resize, sizeof resize, "%d", r->resize_short);
    if (r->crop_h)
        snprintf(crop, sizeof crop, "%dx%d", r->crop_h, r->crop_w);
    struct transform_cfg c = {
        .resize = *resize ? resize : NULL,
        .crop = *crop ? crop : NULL,
        .scale = "0.08:1",
        .ratio = "0.75:1.3333",
        .normalize = r->floats ? NULL : "none",
        .random_resized_crop = r->random_box,
        .brightness = r->jitters & 1,
        .contrast = r->jitters >> 1 & 1,
        .saturation = r->jitters >> 2 & 1,
        .hue = (r->jitters >> 3 & 1) * 0.5,
        .trivial_augment = r->trivial,
        .erase = r->erase.height ? 1 : 0,
        .pad_mode = reflect ? TRANSFORM_PAD_REFLECT : TRANSFORM_PAD_BLACK,
    };
    bool varies = r->crop_h || !(*resize || *crop); /* a crop of any size is fine where sizes are not known */
    CHECK_OK(transform_init(&t, &c, varies && r->crop_h ? 0 : p->height, varies && r->crop_h ? 0 : p->width,
                            p->planes, p->planes == 3 ? imagenet_mean : mean,
                            p->planes == 3 ? imagenet_std : std));
    CHECK(t.height == (uint32_t)r->out_h && t.width == (uint32_t)r->out_w, "%ux%u, not %dx%d", t.height,
          t.width, r->out_h, r->out_w);
    return t;
}

/* The largest difference, in levels of 1/255 for bytes and in the sample's own units for floats. */
static double run_record(const struct record *r, const picture *p, bool reflect, golden *g)
{
    transform t = transform_of(r, p, reflect);
    float *x = malloc(t.numbers * sizeof *x);
    struct drawn d = {
        .crop = r->crop, .flip = r->flip, .op = (uint8_t)r->op, .bin = (int8_t)r->bin, .erase = r->erase};
    double worst = 0;

    for (int k = 0; k < 4; k++) {
        d.order[k] = (uint8_t)r->order[k];
        d.jitter[k] = r->factor[k];
    }
    transform_apply(x, &t, *p, r->train ? &d : NULL);
    const uint8_t *want = take(g, t.numbers * (r->floats ? sizeof *x : 1));
    for (uint32_t k = 0; k < t.planes; k++)
        for (uint32_t i = 0; i < t.height * t.width; i++) {
            float is = x[(size_t)k * t.height * t.width + i], should;
            if (r->floats)
                memcpy(&should, want + ((size_t)k * t.height * t.width + i) * sizeof should, sizeof should);
            double off =
                r->floats ? fabs((double)is - should) : fabs(is * 255.0 - want[(size_t)i * t.planes + k]);
            worst = off > worst ? off : worst;
        }
    free(x);
    return worst;
}

static void check_family(const char *name, double most)
{
    picture p[MOST];
    golden pictures = read_pictures(p), g = open_golden(name);
    double worst = 0;

    CHECK(take_int(&g) == MOST, "%s: not 20 records", name);
    for (int i = 0; i < MOST; i++) {
        struct record r;
        memcpy(&r, take(&g, sizeof r), sizeof r);
        CHECK(r.picture == i, "%s: record %d is of picture %d", name, i, r.picture);
        double off = run_record(&r, &p[i], strstr(name, "reflect") != NULL, &g);
        CHECK(off <= most, "%s: picture %d is off by %g", name, i, off);
        worst = off > worst ? off : worst;
    }
    CHECK(g.at == g.len, "%s: there is more", name);
    test_note("%-22s %g", name, worst);
    free(g.bytes);
    free(pictures.bytes);
}

TEST(a_crop_that_leaves_the_picture_can_be_filled_with_its_mirror_image)
{
    check_family("pad_crop_reflect", 1e-4);
}

/* Bytes are b / 255 as floats here, so equal ones differ by rounding. Which pass of a resize comes first
 * depends on the version of Pillow: a level then. */
static const double exact = 1e-4, a_level = 1 + 1e-4;

TEST(resizing_and_cropping_give_the_pixels_of_torchvision)
{
    static const char *const names[] = {
        "resize",          "resize_short", "resized_crop", "resize_center_crop",
        "resize_one_axis", "pad_crop",     "center_crop",  "flip"};
    for (size_t i = 0; i < CO_COUNT(names); i++)
        check_family(names[i], i < 4 ? a_level : exact);
}

TEST(colour_jitter_gives_the_pixels_of_torchvision)
{
    static const char *const names[] = {"brightness", "contrast", "saturation", "hue", "jitter"};
    for (size_t i = 0; i < CO_COUNT(names); i++)
        check_family(names[i], exact);
}

TEST(each_operation_of_trivial_augment_gives_the_pixels_of_torchvision)
{
    static const char *const names[TRIVIAL_OPS] = {
        "identity", "shearx",   "sheary",    "translatex", "translatey", "rotate",       "brightness",
        "color",    "contrast", "sharpness", "posterize",  "solarize",   "autocontrast", "equalize"};
    char name[64];

    for (int i = 0; i < TRIVIAL_OPS; i++) {
        snprintf(name, sizeof name, "trivial_%s", names[i]);
        check_family(name, exact);
    }
}

TEST(normalising_erasing_and_whole_chains_give_the_numbers_of_torchvision)
{
    check_family("normalize", 1e-6);
    check_family("erase", 1e-6);
    check_family("chain", 1e-6);
}

/* One case: the mixed samples and each sample's weight of the ten classes. */
static void check_mix(golden *g, const transform *t, const float *x, const int32_t *y, int n, float *mixed)
{
    struct mix_drawn m = {.cuts = take_int(g)};
    int32_t top = take_int(g), left = take_int(g), bottom = take_int(g), right = take_int(g), y2[MOST];
    float lambda, lam[MOST];

    memcpy(&lambda, take(g, sizeof lambda), sizeof lambda);
    m.lambda = lambda;
    m.box = (box){top, left, bottom - top, right - left};
    memcpy(mixed, x, (size_t)n * t->numbers * sizeof *x);
    transform_mix_by(t, &m, n, &(co_slice_dst){.x = mixed, .y = (void *)y, .y2 = y2, .lam = lam});
    const uint8_t *want = take(g, (size_t)n * t->numbers * sizeof *x);
    for (size_t i = 0; i < (size_t)n * t->numbers; i++) {
        float should;
        memcpy(&should, want + i * sizeof should, sizeof should);
        CHECK(fabsf(mixed[i] - should) < 1e-6f, "number %zu is %g, not %g", i, (double)mixed[i],
              (double)should);
    }
    for (int i = 0; i < n; i++) {
        float weight[10] = {0}, should[10];
        weight[y[i]] += lam[i];
        weight[y2[i]] += 1 - lam[i];
        memcpy(should, take(g, sizeof should), sizeof should);
        for (int k = 0; k < 10; k++)
            CHECK(fabsf(weight[k] - should[k]) < 1e-6f, "class %d of sample %d", k, i);
    }
}

TEST(mixup_and_cutmix_give_the_samples_and_weights_of_torchvision)
{
    golden g = open_golden("mix");
    int cases = take_int(&g), n = take_int(&g);
    transform t = {.planes = (uint32_t)take_int(&g)};

    t.height = (uint32_t)take_int(&g);
    t.width = (uint32_t)take_int(&g);
    t.numbers = (size_t)t.planes * t.height * t.width;
    CHECK(cases == 6 && n == MOST, "%d cases of %d", cases, n);
    size_t len = (size_t)n * t.numbers * sizeof(float);
    float *x = malloc(len), *mixed = malloc(len);
    int32_t y[MOST];
    memcpy(x, take(&g, len), len);
    memcpy(y, take(&g, sizeof y), sizeof y);
    for (int i = 0; i < cases; i++)
        check_mix(&g, &t, x, y, n, mixed);
    CHECK(g.at == g.len, "there is more");
    free(x);
    free(mixed);
    free(g.bytes);
}
