/* transform.c -- from the keys of data.* to what is done with a picture, decided and checked before the first
 * one.
 *
 * A recipe (data.augment) only fills in what is not set. Sizes: data.crop is the sample's; without it the
 * sample is as large as the resized picture, or the picture itself, and that size must then be the same for
 * all.
 */
#include "data/transform_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/maths.h"
#include "base/mistakes.h"

const float imagenet_mean[3] = {0.485f, 0.456f, 0.406f}, imagenet_std[3] = {0.229f, 0.224f, 0.225f};
static const float cifar_mean[3] = {0.4914f, 0.4822f, 0.4465f}, cifar_std[3] = {0.2470f, 0.2435f, 0.2616f};
const float tinyimagenet_mean[3] = {0.4802f, 0.4481f, 0.3975f},
            tinyimagenet_std[3] = {0.2770f, 0.2691f, 0.2821f};
const float cinic10_mean[3] = {0.4789f, 0.4723f, 0.4305f}, cinic10_std[3] = {0.2421f, 0.2383f, 0.2587f};

enum { SIZE_MAX_ASKED = 4096 };
#define NORMALIZE_WANTED                                                                                     \
    "imagenet, cifar, tinyimagenet, cinic10, none, or for each plane a mean, then for each a std, is wanted"

/* Numbers with , : ; / x or blanks between them, perhaps in brackets. How many; -1: something is not a
 * number. */
static int numbers(const char *text, double *out, int most)
{
    static const char between[] = ",:;/x[] ";
    int n = 0;

    for (text += strspn(text, between); *text; text += strspn(text, between)) {
        size_t len = strcspn(text, between);
        char word[64];
        if (n == most || len >= sizeof word)
            return -1;
        memcpy(word, text, len);
        word[len] = 0;
        if (!co_str_to_f64(word, &out[n++]))
            return -1;
        text += len;
    }
    return n;
}

static co_err bad(const char *key, const char *value, const char *wanted)
{
    return co_fail(CO_EINPUT, "%s=%s: %s", key, value, wanted);
}

/* "224" or "224x192"; *n: how many were given, 0 for null. */
static co_err read_size(const char *key, const char *text, uint32_t size[2], int *n)
{
    double v[2];

    *n = text && *text ? numbers(text, v, 2) : 0;
    if (!text || !*text)
        return CO_OK;
    if (*n < 1)
        return bad(key, text, "not a size: 224 or 224x192 (height x width) are");
    for (int i = 0; i < 2; i++) {
        double side = v[i < *n ? i : 0];
        if (!(side >= 1 && side <= SIZE_MAX_ASKED) || side != floor(side))
            return bad(key, text, "a side is a whole number from 1 to 4096");
        size[i] = (uint32_t)side;
    }
    return CO_OK;
}

static co_err read_range(const char *key, const char *text, double range[2], double most)
{
    if (!text || numbers(text, range, 2) != 2)
        return bad(key, text ? text : "null", "two numbers are wanted, the least and the most, as in 0.5:1");
    if (!(range[0] > 0 && range[0] <= range[1] && range[1] <= most))
        return bad(key, text,
                   most == 1 ? "0 < least <= most <= 1 is needed" : "0 < least <= most <= 1000 is needed");
    return CO_OK;
}

static co_err read_flip(const char *key, const char *text, double *flip, bool *alternate)
{
    bool yes;

    if (!text || !*text)
        return CO_OK;
    *alternate = strcmp(text, "alternate") == 0;
    if (*alternate)
        *flip = 0.5;
    else if (co_str_to_bool(text, &yes))
        *flip = yes ? 0.5 : 0;
    else if (!co_str_to_f64(text, flip) || !(*flip >= 0 && *flip <= 1))
        return bad(key, text, "true, false, a probability from 0 to 1, or alternate is wanted");
    return CO_OK;
}

static co_err read_pad(const char *key, const char *text, uint32_t *pad)
{
    long long v;

    if (!text || !*text)
        return CO_OK;
    if (!co_str_to_i64(text, &v) || v < 0 || v > SIZE_MAX_ASKED)
        return bad(key, text, "a number of pixels from 0 to 4096 is wanted");
    *pad = (uint32_t)v;
    return CO_OK;
}

static const struct normal {
    const char *name;
    const float *mean, *std;
} normals[] = {
    {"imagenet", imagenet_mean, imagenet_std},
    {"cifar", cifar_mean, cifar_std},
    {"tinyimagenet", tinyimagenet_mean, tinyimagenet_std},
    {"cinic10", cinic10_mean, cinic10_std},
};

static const struct normal *normal_find(const char *name)
{
    for (size_t i = 0; name && i < CO_COUNT(normals); i++)
        if (strcmp(normals[i].name, name) == 0)
            return &normals[i];
    return NULL;
}

static co_err read_normalize(transform *t, const char *text, const float *mean, const float *std)
{
    double v[6];
    float own[2][3];
    int planes = (int)t->planes;

    const struct normal *named = normal_find(text);
    if (named) {
        if (planes != 3)
            return bad("data.normalize", text, "the pictures are grey");
        mean = named->mean;
        std = named->std;
    } else if (text && *text) {
        for (int k = 0; k < planes; k++)
            v[k] = 0, v[planes + k] = 1;
        if (strcmp(text, "none") != 0 && numbers(text, v, 6) != 2 * planes)
            return bad("data.normalize", text, NORMALIZE_WANTED);
        for (int k = 0; k < planes; k++) {
            own[0][k] = (float)v[k];
            own[1][k] = (float)v[planes + k];
            if (!(own[1][k] > 0 && own[1][k] < INFINITY && fabsf(own[0][k]) < INFINITY))
                return bad("data.normalize", text, "a std must be above 0");
        }
        mean = own[0];
        std = own[1];
    }
    for (int k = 0; k < planes; k++)
        for (int b = 0; b < 256; b++)
            t->value[k][b] = ((float)b / 255.0f - mean[k]) / std[k];
    return CO_OK;
}

/* --- checks of values as they are typed ----------------------------------------------------------------- */
/* "null" is an absent value. */
static const char *given(const char *value)
{
    return strcmp(value, "null") == 0 ? NULL : value;
}

co_err transform_check_size(const char *key, const char *value)
{
    uint32_t size[2];
    int n;

    return read_size(key, given(value), size, &n);
}

co_err transform_check_pad(const char *key, const char *value)
{
    uint32_t pad;

    return read_pad(key, given(value), &pad);
}

co_err transform_check_flip(const char *key, const char *value)
{
    double flip;
    bool alternate;

    return read_flip(key, given(value), &flip, &alternate);
}

co_err transform_check_scale(const char *key, const char *value)
{
    double range[2];

    return read_range(key, given(value), range, 1);
}

co_err transform_check_ratio(const char *key, const char *value)
{
    double range[2];

    return read_range(key, given(value), range, 1000);
}

/* How many numbers there must be depends on the pictures: two for grey ones, six for those in colour. */
co_err transform_check_normalize(const char *key, const char *value)
{
    double v[6];
    int n = numbers(value, v, 6);
    bool named = !*value || !given(value) || normal_find(value) || strcmp(value, "none") == 0;

    if (!named && n != 2 && n != 6)
        return bad(key, value, NORMALIZE_WANTED);
    for (int k = n / 2; !named && k < n; k++)
        if (!(v[k] > 0))
            return bad(key, value, "a std must be above 0");
    return CO_OK;
}

void transform_resized(const transform *t, uint32_t *h, uint32_t *w)
{
    if (t->resize_h) {
        *h = t->resize_h;
        *w = t->resize_w;
    } else if (t->resize_short) {
        uint64_t s = t->resize_short, longer;
        if (*w <= *h) {
            longer = s * *h / *w;
            *w = (uint32_t)s;
            *h = (uint32_t)longer;
        } else {
            longer = s * *w / *h;
            *h = (uint32_t)s;
            *w = (uint32_t)longer;
        }
    }
}

/* Sets the sample's size: data.crop, or that of the (resized) picture. */
static co_err set_size(transform *t, const struct transform_cfg *c, uint32_t in_h, uint32_t in_w)
{
    uint32_t crop[2] = {0}, resize[2] = {0}, h = in_h, w = in_w;
    int crops, resizes;

    CO_TRY(read_size("data.crop", c->crop, crop, &crops));
    CO_TRY(read_size("data.resize", c->resize, resize, &resizes));
    t->resize_short = resizes == 1 ? resize[0] : 0;
    t->resize_h = resizes == 2 ? resize[0] : 0;
    t->resize_w = resizes == 2 ? resize[1] : 0;
    if (h || t->resize_h)
        transform_resized(t, &h, &w);
    if (!crops && !h)
        return co_fail(CO_EINPUT, "data.crop=SIZE is needed: the pictures may be of any size");
    t->height = crops ? crop[0] : h;
    t->width = crops ? crop[1] : w;
    t->crops = crops || t->random_box || t->pad;
    if (t->height > SIZE_MAX_ASKED || t->width > SIZE_MAX_ASKED)
        return co_fail(CO_EINPUT, "data.resize=%s: samples of %ux%u; a side is at most %d: give data.crop",
                       resizes ? c->resize : "null", t->height, t->width, SIZE_MAX_ASKED);
    if (t->random_box && c->augment == TRANSFORM_AUGMENT_IMAGENET && !resizes &&
        (in_h != t->height || in_w != t->width)) { /* 256 for 224 */
        uint32_t side = t->height < t->width ? t->height : t->width;
        t->resize_short = (side * 256 + 112) / 224;
    } else if (crops && in_h && !t->random_box && (t->height > h + 2 * t->pad || t->width > w + 2 * t->pad)) {
        return co_fail(CO_EINPUT,
                       "data.crop=%s: larger than the pictures, %ux%u with %u of data.pad around them",
                       c->crop, h, w, t->pad);
    }
    return CO_OK;
}

bool transform_jitters(const transform *t)
{
    return t->jitter[0] > 0 || t->jitter[1] > 0 || t->jitter[2] > 0 || t->jitter[3] > 0;
}

bool transform_varies(const transform *t)
{
    return t->crops || t->flip > 0 || transform_jitters(t) || t->trivial || t->erase > 0;
}

static co_err check_pad(const transform *t)
{
    return t->random_box && t->pad
               ? co_fail(CO_EINPUT, "data.pad=%u: there is no padding with data.random_resized_crop", t->pad)
               : CO_OK;
}

static co_err set_mixing(transform *t, const struct transform_cfg *c)
{
    if ((c->mixup > 0 && c->mixup < 1e-3) || (c->cutmix > 0 && c->cutmix < 1e-3))
        return co_fail(CO_EINPUT, "data.mixup=%g, data.cutmix=%g: 0 is none, and the least is 0.001",
                       c->mixup, c->cutmix);
    t->mixup = c->mixup;
    t->cutmix = c->cutmix;
    t->mix = t->mixup > 0 || t->cutmix > 0;
    return CO_OK;
}

/* Everything that may be refused. Mistakes are collected. */
static co_err set_checked(co_mistakes *wrong, transform *t, const struct transform_cfg *c, uint32_t in_h,
                          uint32_t in_w, const float *mean, const float *std)
{
    CO_TRY(co_mistake(wrong, read_flip("data.flip", c->flip, &t->flip, &t->alternate)));
    CO_TRY(co_mistake(wrong, read_pad("data.pad", c->pad, &t->pad)));
    CO_TRY(co_mistake(wrong, check_pad(t)));
    CO_TRY(co_mistake(wrong, read_range("data.scale", c->scale, t->scale, 1)));
    CO_TRY(co_mistake(wrong, read_range("data.ratio", c->ratio, t->ratio, 1000)));
    CO_TRY(co_mistake(wrong, set_size(t, c, in_h, in_w)));
    CO_TRY(co_mistake(wrong, read_normalize(t, c->normalize, mean, std)));
    CO_TRY(co_mistake(wrong, set_mixing(t, c)));
    return co_mistakes_tell(wrong);
}

co_err transform_init(transform *t, const struct transform_cfg *c, uint32_t in_h, uint32_t in_w,
                      uint32_t planes, const float *mean, const float *std)
{
    co_mistakes wrong = {0};

    CO_ASSERT(planes == 1 || planes == 3, "grey or colour");
    *t = (transform){.planes = planes};
    t->random_box = c->random_resized_crop || c->augment == TRANSFORM_AUGMENT_IMAGENET;
    t->flip = c->augment == TRANSFORM_AUGMENT_NONE ? 0 : 0.5;
    t->pad = c->augment == TRANSFORM_AUGMENT_CIFAR ? 4 : 0;
    co_err err = set_checked(&wrong, t, c, in_h, in_w, mean, std);
    co_mistakes_fini(&wrong);
    if (err)
        return err;
    for (int i = 0; i < 2; i++)
        t->log_ratio[i] = co_log(t->ratio[i]);
    t->numbers = (size_t)planes * t->height * t->width;
    memcpy(t->jitter, (const double[4]){c->brightness, c->contrast, c->saturation, c->hue}, sizeof t->jitter);
    t->trivial = c->trivial_augment;
    t->reflect = c->pad_mode == TRANSFORM_PAD_REFLECT;
    t->eval_flip = c->eval_flip;
    t->erase = c->erase;
    t->plain_eval = in_h == t->height && in_w == t->width && !t->resize_h && !t->resize_short;
    t->plain = t->plain_eval && !transform_varies(t) && !t->mix;
    return CO_OK;
}

void transform_io(const transform *t, co_io *io)
{
    io->x = CO_SHAPE(t->planes, t->height, t->width);
    io->mix = t->mix;
    io->mirror = t->eval_flip;
}

void transform_says(const transform *t, char out[512])
{
    int len = 0;

    out[0] = 0;
    if (!t->plain)
        len = snprintf(out, 512,
                       "sample=%ux%u resize=%u,%ux%u pad=%u box=%d,%.17g:%.17g,%.17g:%.17g flip=%.17g"
                       " jitter=%.17g,%.17g,%.17g,%.17g trivial=%d erase=%.17g mixup=%.17g cutmix=%.17g\n",
                       t->height, t->width, t->resize_short, t->resize_h, t->resize_w, t->pad, t->random_box,
                       t->scale[0], t->scale[1], t->ratio[0], t->ratio[1], t->flip, t->jitter[0],
                       t->jitter[1], t->jitter[2], t->jitter[3], t->trivial, t->erase, t->mixup, t->cutmix);
    if (len > 0 && len < 512 && (t->alternate || t->reflect)) /* what is newer than the line above */
        len += snprintf(out + len, 512 - (size_t)len, "alternate=%d reflect=%d\n", t->alternate, t->reflect);
    if (len < 512 && t->reduced)
        snprintf(out + len, 512 - (size_t)len, "decode=reduced\n");
}
