/* reduce.c -- data.decode=reduced: a JPEG file is decoded no larger than its sample needs.
 *
 * A decoder of JPEG can give a picture at 1/2, 1/4 or 1/8 of its size for a fraction of the work. If the part of
 * the picture that becomes the sample is then still at least as large as the sample, resizing goes on from
 * there:
 *
 *     full       500 x 400  --resize-->  80 x 64
 *     reduced    500 x 400  --decode-->  125 x 100  --resize-->  80 x 64
 *
 * What is drawn for a sample is drawn by the file's full size, and a box keeps its exact place: its edges may lie
 * between two decoded pixels. The reduction is a function of the file, the keys and what was drawn:
 * the same in every rank, thread and host. Pixels are not those of full decoding, so the fingerprint has the key.
 */
#include "data/decode_int.h"

enum { MOST_REDUCTION = 8 };

uint32_t transform_reduction(const transform *t, const struct drawn *drawn, uint32_t height, uint32_t width)
{
    uint64_t from_h = height, from_w = width;
    uint32_t to_h = height, to_w = width, by = MOST_REDUCTION;

    if (drawn && t->random_box) {
        from_h = (uint64_t)drawn->crop.height;
        from_w = (uint64_t)drawn->crop.width;
        to_h = t->height;
        to_w = t->width;
    } else {
        transform_resized(t, &to_h, &to_w);
    }
    while (by > 1 && (from_h < (uint64_t)to_h * by || from_w < (uint64_t)to_w * by))
        by /= 2;
    return by;
}

struct need {
    const transform *t;
    const co_draw *draw;
    uint32_t id;
};

static uint32_t reduce(void *ctx, uint32_t height, uint32_t width)
{
    const struct need *need = ctx;
    struct drawn drawn;
    bool vary = transform_draw(&drawn, need->t, need->draw, need->id, height, width);

    return transform_reduction(need->t, vary ? &drawn : NULL, height, width);
}

bool picture_decode_for(picture *out, const uint8_t *bytes, size_t len, const transform *t,
                        const co_draw *draw, uint32_t id, char why[WHY_LEN])
{
    struct need need = {t, draw, id};

    if (!t->reduced)
        return picture_decode(out, bytes, len, MOST_PIXELS, why);
    return picture_decode_reduced(out, bytes, len, MOST_PIXELS, &(picture_wish){reduce, &need}, why);
}
