/* augment_int.h -- the operations on 8-bit pictures, one file a family. Each has Pillow's arithmetic: the
 * head of its file says which rounding that is. Nothing here is random, and nothing but scratch memory is
 * allocated. */
#ifndef CO_DATA_AUGMENT_AUGMENT_INT_H
#define CO_DATA_AUGMENT_AUGMENT_INT_H

#include "data/transform_int.h"

/* A picture to write on, rows without gaps. */
typedef struct canvas {
    uint8_t *bytes; /* [height,width,planes] */
    uint32_t height, width, planes;
} canvas;

static inline size_t canvas_row(const canvas *c)
{
    return (size_t)c->width * c->planes;
}

/* --- resize.c */
/* A part of a picture, in its pixels. Its edges may lie between two of them. */
typedef struct picture_part {
    double top, left, height, width;
} picture_part;
static inline picture_part part_whole(const picture *p)
{
    return (picture_part){0, 0, p->height, p->width};
}
/* `from` of p resized to full_h x full_w, bilinear and antialiased; of that, what begins at (top, left) and is of
 * out's size. All of p counts at the edges of `from`. */
void picture_resize(canvas out, picture p, picture_part from, uint32_t full_h, uint32_t full_w, uint32_t top,
                    uint32_t left);

/* --- geometry.c */
void picture_crop(canvas out, picture p, int32_t top, int32_t left); /* of out's size; black outside p */
/* The same; outside p, p is mirrored at its outermost pixels, as often as needed (numpy's "reflect"). */
void picture_crop_mirrored(canvas out, picture p, int32_t top, int32_t left);
void canvas_flip(canvas c);
/* Pixel (x, y) of out is p's pixel that holds (a0 x' + a1 y' + a2, a3 x' + a4 y' + a5), x' = x + 0.5; black
 * outside. out is of p's size and does not overlap it. */
void picture_affine(canvas out, picture p, const double a[6]);
void picture_rotate(canvas out, picture p, double degrees); /* counter-clockwise about the centre */

/* --- colour.c: in place */
void canvas_brightness(canvas c, float factor);
void canvas_contrast(canvas c, float factor);
void canvas_saturation(canvas c, float factor);
void canvas_hue(canvas c, float turn); /* -0.5 to 0.5 */
void canvas_sharpness(canvas c, float factor);

/* --- levels.c: in place */
void canvas_posterize(canvas c, int bits);
void canvas_solarize(canvas c, double threshold);
void canvas_auto_contrast(canvas c);
void canvas_equalize(canvas c);

/* --- trivial.c */
/* Strength `bin` of TrivialAugmentWide's operation as torchvision counts it; `bin` as in struct drawn. */
float trivial_magnitude(enum trivial_op op, int bin);
/* Applies one to c, whose pixels may move to c.bytes or to `other` (as large); where they then are is
 * returned. */
canvas trivial_apply(canvas c, uint8_t *other, enum trivial_op op, int bin);

#endif
