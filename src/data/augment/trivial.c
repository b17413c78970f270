/* trivial.c -- TrivialAugmentWide: one operation out of 14, at one of 31 strengths (Mueller and Hutter,
 * 2021).
 *
 * Ranges are torchvision's: shear to 0.99, shift to 32 pixels, rotation to 135 degrees, colours by factors of
 * 1 - 0.99 to 1 + 0.99, 8 to 2 bits, solarise from 255 down to 0. Of the operations with a direction, half go
 * the other way.
 */
#include "data/augment/augment_int.h"

#include <math.h>

/* A picture, a second canvas for operations that move pixels, and the strength. */
typedef struct work {
    canvas here, there;
    picture from; /* `here`, to read */
    double m;
    float factor; /* of colours: 1 + m */
} work;

static canvas shear_x(work w)
{
    picture_affine(w.there, w.from, (const double[6]){1, w.m, 0, 0, 1, 0});
    return w.there;
}

static canvas shear_y(work w)
{
    picture_affine(w.there, w.from, (const double[6]){1, 0, 0, w.m, 1, 0});
    return w.there;
}

static canvas translate_x(work w)
{
    picture_crop(w.there, w.from, 0, -(int32_t)w.m);
    return w.there;
}

static canvas translate_y(work w)
{
    picture_crop(w.there, w.from, -(int32_t)w.m, 0);
    return w.there;
}

static canvas rotate(work w)
{
    picture_rotate(w.there, w.from, w.m);
    return w.there;
}

static canvas brightness(work w)
{
    canvas_brightness(w.here, w.factor);
    return w.here;
}

static canvas color(work w)
{
    canvas_saturation(w.here, w.factor);
    return w.here;
}

static canvas contrast(work w)
{
    canvas_contrast(w.here, w.factor);
    return w.here;
}

static canvas sharpness(work w)
{
    canvas_sharpness(w.here, w.factor);
    return w.here;
}

static canvas posterize(work w)
{
    canvas_posterize(w.here, (int)rint(w.m)); /* rounded to even, as torch does */
    return w.here;
}

static canvas solarize(work w)
{
    canvas_solarize(w.here, 255.0 * w.m);
    return w.here;
}

static canvas auto_contrast(work w)
{
    canvas_auto_contrast(w.here);
    return w.here;
}

static canvas equalize(work w)
{
    canvas_equalize(w.here);
    return w.here;
}

static canvas identity(work w)
{
    return w.here;
}

static const struct {
    canvas (*apply)(work w); /* returns the canvas that has the result */
    float from, to;
    bool both_ways;
} ops[TRIVIAL_OPS] = {
    [TRIVIAL_IDENTITY] = {identity, 0, 0, false},
    [TRIVIAL_SHEAR_X] = {shear_x, 0, 0.99f, true},
    [TRIVIAL_SHEAR_Y] = {shear_y, 0, 0.99f, true},
    [TRIVIAL_TRANSLATE_X] = {translate_x, 0, 32, true},
    [TRIVIAL_TRANSLATE_Y] = {translate_y, 0, 32, true},
    [TRIVIAL_ROTATE] = {rotate, 0, 135, true},
    [TRIVIAL_BRIGHTNESS] = {brightness, 0, 0.99f, true},
    [TRIVIAL_COLOR] = {color, 0, 0.99f, true},
    [TRIVIAL_CONTRAST] = {contrast, 0, 0.99f, true},
    [TRIVIAL_SHARPNESS] = {sharpness, 0, 0.99f, true},
    [TRIVIAL_POSTERIZE] = {posterize, 8, 2, false},
    [TRIVIAL_SOLARIZE] = {solarize, 1, 0, false},
    [TRIVIAL_AUTO_CONTRAST] = {auto_contrast, 0, 0, false},
    [TRIVIAL_EQUALIZE] = {equalize, 0, 0, false},
};

/* torch.linspace: a float step, counted from the nearer end and rounded once. */
float trivial_magnitude(enum trivial_op op, int bin)
{
    int i = bin < 0 ? -1 - bin : bin;
    double from = ops[op].from, to = ops[op].to, step = (float)((to - from) / (TRIVIAL_BINS - 1));
    float m = (float)(i < TRIVIAL_BINS / 2 ? from + step * i : to - step * (TRIVIAL_BINS - 1 - i));

    return bin < 0 && ops[op].both_ways ? -m : m;
}

canvas trivial_apply(canvas c, uint8_t *other, enum trivial_op op, int bin)
{
    double m = trivial_magnitude(op, bin);

    return ops[op].apply((work){.here = c,
                                .there = {other, c.height, c.width, c.planes},
                                .from = {c.bytes, c.height, c.width, c.planes, canvas_row(&c)},
                                .m = m,
                                .factor = (float)(1.0 + m)});
}
