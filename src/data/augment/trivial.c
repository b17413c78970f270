/* trivial.c -- TrivialAugmentWide: one operation out of 14, at one of 31 strengths (Mueller and Hutter,
 * 2021).
 *
 * Ranges are torchvision's: shear to 0.99, shift to 32 pixels, rotation to 135 degrees, colours by factors of
 * 1 - 0.99 to 1 + 0.99, 8 to 2 bits, solarise from 255 down to 0. Of the operations with a direction, half go
 * the other way.
 */
#include "data/augment/augment_int.h"

#include <math.h>

static const struct {
    float from, to;
    bool both_ways;
} range[TRIVIAL_OPS] = {
    [TRIVIAL_SHEAR_X] = {0, 0.99f, true},   [TRIVIAL_SHEAR_Y] = {0, 0.99f, true},
    [TRIVIAL_TRANSLATE_X] = {0, 32, true},  [TRIVIAL_TRANSLATE_Y] = {0, 32, true},
    [TRIVIAL_ROTATE] = {0, 135, true},      [TRIVIAL_BRIGHTNESS] = {0, 0.99f, true},
    [TRIVIAL_COLOR] = {0, 0.99f, true},     [TRIVIAL_CONTRAST] = {0, 0.99f, true},
    [TRIVIAL_SHARPNESS] = {0, 0.99f, true}, [TRIVIAL_POSTERIZE] = {8, 2, false},
    [TRIVIAL_SOLARIZE] = {1, 0, false},
};

/* torch.linspace: a float step, counted from the nearer end and rounded once. */
float trivial_magnitude(enum trivial_op op, int bin)
{
    int i = bin < 0 ? -1 - bin : bin;
    double from = range[op].from, to = range[op].to, step = (float)((to - from) / (TRIVIAL_BINS - 1));
    float m = (float)(i < TRIVIAL_BINS / 2 ? from + step * i : to - step * (TRIVIAL_BINS - 1 - i));

    return bin < 0 && range[op].both_ways ? -m : m;
}

canvas trivial_apply(canvas c, uint8_t *other, enum trivial_op op, int bin)
{
    double m = trivial_magnitude(op, bin);
    float factor = (float)(1.0 + m);
    picture p = {c.bytes, c.height, c.width, c.planes, canvas_row(&c)};
    canvas moved = {other, c.height, c.width, c.planes};

    switch (op) {
    case TRIVIAL_SHEAR_X:
        picture_affine(moved, p, (const double[6]){1, m, 0, 0, 1, 0});
        return moved;
    case TRIVIAL_SHEAR_Y:
        picture_affine(moved, p, (const double[6]){1, 0, 0, m, 1, 0});
        return moved;
    case TRIVIAL_TRANSLATE_X:
        picture_crop(moved, p, 0, -(int32_t)m);
        return moved;
    case TRIVIAL_TRANSLATE_Y:
        picture_crop(moved, p, -(int32_t)m, 0);
        return moved;
    case TRIVIAL_ROTATE:
        picture_rotate(moved, p, m);
        return moved;
    case TRIVIAL_BRIGHTNESS:
        canvas_brightness(c, factor);
        return c;
    case TRIVIAL_COLOR:
        canvas_saturation(c, factor);
        return c;
    case TRIVIAL_CONTRAST:
        canvas_contrast(c, factor);
        return c;
    case TRIVIAL_SHARPNESS:
        canvas_sharpness(c, factor);
        return c;
    case TRIVIAL_POSTERIZE:
        canvas_posterize(c, (int)rint(m)); /* rounded to even, as torch does */
        return c;
    case TRIVIAL_SOLARIZE:
        canvas_solarize(c, 255.0 * m);
        return c;
    case TRIVIAL_AUTO_CONTRAST:
        canvas_auto_contrast(c);
        return c;
    case TRIVIAL_EQUALIZE:
        canvas_equalize(c);
        return c;
    case TRIVIAL_IDENTITY:
    case TRIVIAL_OPS:
        break;
    }
    return c;
}
