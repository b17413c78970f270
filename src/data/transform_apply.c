/* transform_apply.c -- one picture to one sample, by what was drawn.
 *
 * As little as possible is copied: a crop inside the picture is a view of it, a flip is reading rows
 * backwards while normalising (colours do not mind the order; TrivialAugment does, so there the flip comes
 * first). The picture in hand is in the caller's memory or in one of the thread's two scratch canvases.
 *
 * Cost: 64x64 in colour takes about 10 us to normalise and 15 more for a resized box.
 */
#include "data/augment/augment_int.h"

#include <math.h>
#include <string.h>

static picture view(const canvas *c)
{
    return (picture){c->bytes, c->height, c->width, c->planes, canvas_row(c)};
}

static canvas canvas_in(scratch_slot slot, uint32_t height, uint32_t width, uint32_t planes)
{
    return (canvas){scratch_get(slot, (size_t)height * width * planes), height, width, planes};
}

/* b is inside. */
static picture view_of(picture p, box b)
{
    p.bytes += (size_t)b.top * p.stride + (size_t)b.left * p.planes;
    p.height = (uint32_t)b.height;
    p.width = (uint32_t)b.width;
    return p;
}

/* The part of b that lies inside, perhaps nothing. */
static box inner(box b, uint32_t height, uint32_t width)
{
    int64_t top = b.top < 0 ? 0 : b.top, left = b.left < 0 ? 0 : b.left;
    int64_t bottom = (int64_t)b.top + b.height, right = (int64_t)b.left + b.width;

    bottom = bottom > (int64_t)height ? (int64_t)height : bottom;
    right = right > (int64_t)width ? (int64_t)width : right;
    return bottom <= top || right <= left
               ? (box){0}
               : (box){(int32_t)top, (int32_t)left, (int32_t)(bottom - top), (int32_t)(right - left)};
}

/* A part of a picture, ready to be resized. */
typedef struct piece {
    picture p;
    picture_part from;
} piece;

/* Box b of the file's picture. Of one that was decoded at reduced size: the decoded pixels that b touches, and
 * where exactly it lies among them. */
static piece piece_of(picture p, box b)
{
    if (!p.reduced_by) {
        p = view_of(p, b);
        return (piece){p, part_whole(&p)};
    }
    int32_t by = (int32_t)p.reduced_by, top = b.top / by, left = b.left / by;
    box touched = {top, left, (b.top + b.height + by - 1) / by - top, (b.left + b.width + by - 1) / by - left};
    double per = 1.0 / by;

    return (piece){view_of(p, touched),
                   {b.top * per - top, b.left * per - left, b.height * per, b.width * per}};
}

static bool is_size(const piece *a, uint32_t height, uint32_t width)
{
    return a->p.height == height && a->p.width == width && a->from.height == height && a->from.width == width;
}

/* Box b of the piece resized to height x width; outside: black, or the picture mirrored. */
static picture crop_of_resized(piece of, uint32_t height, uint32_t width, box b, bool reflect)
{
    picture p = of.p;
    box in = inner(b, height, width);

    reflect = reflect && (in.height < b.height || in.width < b.width);
    if (reflect)
        in = (box){0, 0, (int32_t)height, (int32_t)width};

    if (is_size(&of, height, width)) {
        p = view_of(p, in);
    } else if (in.height) {
        canvas out = canvas_in(SCRATCH_A, (uint32_t)in.height, (uint32_t)in.width, p.planes);
        picture_resize(out, p, of.from, height, width, (uint32_t)in.top, (uint32_t)in.left);
        p = view(&out);
    }
    if (!reflect && in.height == b.height && in.width == b.width)
        return p;
    canvas out = canvas_in(SCRATCH_B, (uint32_t)b.height, (uint32_t)b.width, p.planes);
    p.height = (uint32_t)in.height;
    p.width = (uint32_t)in.width;
    (reflect ? picture_crop_mirrored : picture_crop)(out, p, b.top - in.top, b.left - in.left);
    return view(&out);
}

/* CenterCrop: rounded to even where the middle is between two pixels; too small a picture is padded. */
static int32_t central(uint32_t in, uint32_t want)
{
    if (want > in)
        return -(int32_t)((want - in) / 2);
    return (int32_t)rint((in - want) / 2.0);
}

static picture cut_out(const transform *t, picture p, const struct drawn *drawn)
{
    uint32_t h = picture_full_height(&p), w = picture_full_width(&p);
    int32_t height = (int32_t)t->height, width = (int32_t)t->width;
    box whole = {0, 0, height, width};

    if (drawn && t->random_box)
        return crop_of_resized(piece_of(p, drawn->crop), t->height, t->width, whole, false);
    piece all = piece_of(p, (box){0, 0, (int32_t)h, (int32_t)w});
    transform_resized(t, &h, &w);
    if (drawn && t->crops)
        return crop_of_resized(all, h, w, drawn->crop, t->reflect);
    return crop_of_resized(all, h, w, (box){central(h, t->height), central(w, t->width), height, width}, false);
}

picture transform_fit(picture p, uint32_t height, uint32_t width)
{
    bool wide = (uint64_t)p.width * height > (uint64_t)p.height * width;
    uint64_t h = wide ? height : (uint64_t)p.height * width / p.width;
    uint64_t w = wide ? (uint64_t)p.width * height / p.height : width;
    const uint64_t longest = 1 << 28; /* of a sliver, a little is cut off before it would overflow */

    h = h < longest ? h : longest;
    w = w < longest ? w : longest;
    box middle = {central((uint32_t)h, height), central((uint32_t)w, width), (int32_t)height, (int32_t)width};
    picture cut = crop_of_resized((piece){p, part_whole(&p)}, (uint32_t)h, (uint32_t)w, middle, false);
    canvas out = canvas_in(SCRATCH_B, height, width, p.planes);

    if (cut.bytes != out.bytes) /* a view of p, or in SCRATCH_A */
        picture_crop(out, cut, 0, 0);
    size_t len = (size_t)height * width * p.planes;
    uint8_t *to = memcpy(scratch_get(SCRATCH_PICTURE, len), out.bytes, len);
    return (picture){to, height, width, p.planes, (size_t)width * p.planes};
}

static void jitter(canvas c, const transform *t, const struct drawn *drawn, co_stage_times *times)
{
    static const struct {
        void (*apply)(canvas, float);
        co_stage stage;
    } ops[JITTER_OPS] = {{canvas_brightness, CO_STAGE_BRIGHTNESS},
                         {canvas_contrast, CO_STAGE_CONTRAST},
                         {canvas_saturation, CO_STAGE_SATURATION},
                         {canvas_hue, CO_STAGE_HUE}};

    for (int i = 0; i < JITTER_OPS; i++) {
        int op = drawn->order[i];
        if (t->jitter[op] > 0) {
            ops[op].apply(c, drawn->jitter[op]);
            co_stage_lap(times, ops[op].stage);
        }
    }
}

/* Colours and TrivialAugment, which need a canvas. */
static picture recolour(const transform *t, picture p, const struct drawn *drawn, co_stage_times *times)
{
    canvas a = canvas_in(SCRATCH_A, p.height, p.width, p.planes);
    canvas b = canvas_in(SCRATCH_B, p.height, p.width, p.planes);
    bool is_a = p.bytes == a.bytes && p.stride == canvas_row(&a), is_b = p.bytes == b.bytes;
    canvas c = is_a ? a : b, other = is_a ? b : a;

    if (!is_a && !is_b)
        picture_crop(c, p, 0, 0);
    if (drawn->flip && t->trivial)
        canvas_flip(c);
    co_stage_lap(times, CO_STAGE_CROP);
    if (transform_jitters(t))
        jitter(c, t, drawn, times);
    if (t->trivial) {
        c = trivial_apply(c, other.bytes, (enum trivial_op)drawn->op, drawn->bin);
        co_stage_lap(times, CO_STAGE_TRIVIAL);
    }
    return view(&c);
}

static void normalise(float *out, const transform *t, picture p, bool flip)
{
    size_t plane = (size_t)p.height * p.width;
    ptrdiff_t step = flip ? -(ptrdiff_t)p.planes : (ptrdiff_t)p.planes;

    for (uint32_t y = 0; y < p.height; y++, out += p.width) {
        const uint8_t *from = p.bytes + y * p.stride + (flip ? (size_t)(p.width - 1) * p.planes : 0);
        if (p.planes == 1)
            for (uint32_t x = 0; x < p.width; x++, from += step)
                out[x] = t->value[0][from[0]];
        else
            for (uint32_t x = 0; x < p.width; x++, from += step) {
                out[x] = t->value[0][from[0]];
                out[x + plane] = t->value[1][from[1]];
                out[x + 2 * plane] = t->value[2][from[2]];
            }
    }
}

static void erase(float *out, const transform *t, box b)
{
    for (uint32_t k = 0; k < t->planes; k++)
        for (int32_t y = 0; y < b.height; y++)
            memset(out + ((size_t)k * t->height + (size_t)(b.top + y)) * t->width + b.left, 0,
                   (size_t)b.width * sizeof *out);
}

void transform_apply_timed(float *out, const transform *t, picture p, const struct drawn *drawn,
                           co_stage_times *times)
{
    CO_ASSERT(p.planes == t->planes && p.height && p.width, "a picture of the transform's planes");
    p = cut_out(t, p, drawn);
    if (drawn && (t->trivial || transform_jitters(t)))
        p = recolour(t, p, drawn, times);
    else
        co_stage_lap(times, CO_STAGE_CROP);
    normalise(out, t, p, drawn && drawn->flip && !t->trivial);
    co_stage_lap(times, CO_STAGE_NORMALISE);
    if (drawn && drawn->erase.height) {
        erase(out, t, drawn->erase);
        co_stage_lap(times, CO_STAGE_ERASE);
    }
}

void transform_apply(float *out, const transform *t, picture p, const struct drawn *drawn)
{
    transform_apply_timed(out, t, p, drawn, NULL);
}
