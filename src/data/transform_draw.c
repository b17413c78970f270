/* transform_draw.c -- what varies a sample, drawn from (seed, epoch, id) alone.
 *
 * Each family of transforms has a stream of its own under purpose AUGMENT, so that turning one on or off
 * leaves the others as they were: "transform.crop", "transform.flip", "transform.jitter",
 * "transform.trivial", "transform.erase". Words are taken from positions 0, 1, 2, ... of the stream:
 *
 *     unit       (word >> 8) 2^-24
 *     below n    the upper half of word * n
 *
 * Alternating flips draw for epoch 0 and take the opposite in every odd epoch.
 *
 * Distributions and their order are those of torchvision's get_params.
 */
#include "data/transform_int.h"

#include <math.h>

#include "base/maths.h"
#include "data/dice_int.h"

static const double erase_scale[2] = {0.02, 0.33}, erase_ratio[2] = {0.3, 3.3};
enum { TRIES = 10 };

static double between(dice *d, double low, double high)
{
    return low + (high - low) * dice_unit(d);
}

/* An area and a shape for a box: sqrt(area * ratio) and sqrt(area / ratio), rounded. */
static void draw_shape(dice *d, double area, const double scale[2], const double log_ratio[2], double *a,
                       double *b)
{
    double target = area * between(d, scale[0], scale[1]),
           ratio = co_exp(between(d, log_ratio[0], log_ratio[1]));

    *a = rint(sqrt(target * ratio));
    *b = rint(sqrt(target / ratio));
}

/* RandomResizedCrop: ten tries at a box inside, then the largest central one of a permitted shape. */
static box draw_box(const transform *t, dice *d, uint32_t in_h, uint32_t in_w)
{
    double width, height, ratio = (double)in_w / in_h, w, h;

    for (int i = 0; i < TRIES; i++) {
        draw_shape(d, (double)in_h * in_w, t->scale, t->log_ratio, &width, &height);
        if (width < 1 || width > in_w || height < 1 || height > in_h)
            continue;
        box b = {.height = (int32_t)height, .width = (int32_t)width};
        b.top = (int32_t)dice_below(d, in_h - (uint32_t)b.height + 1);
        b.left = (int32_t)dice_below(d, in_w - (uint32_t)b.width + 1);
        return b;
    }
    w = in_w;
    h = in_h;
    if (ratio < t->ratio[0])
        h = rint(w / t->ratio[0]);
    else if (ratio > t->ratio[1])
        w = rint(h * t->ratio[1]);
    h = h < 1 ? 1 : h;
    w = w < 1 ? 1 : w;
    return (box){((int32_t)in_h - (int32_t)h) / 2, ((int32_t)in_w - (int32_t)w) / 2, (int32_t)h, (int32_t)w};
}

/* RandomCrop with padding; a picture too small is padded on both sides as far as needed (pad_if_needed). */
static int32_t draw_place(dice *d, uint32_t in, uint32_t pad, uint32_t want)
{
    uint32_t room = in + 2 * pad, more = room < want ? want - room : 0;

    return (int32_t)dice_below(d, room + 2 * more - want + 1) - (int32_t)(pad + more);
}

static void draw_jitter(struct drawn *out, const transform *t, dice *d)
{
    for (int i = 0; i < JITTER_OPS; i++)
        out->order[i] = (uint8_t)i;
    for (uint32_t i = JITTER_OPS; i > 1; i--) { /* Fisher-Yates */
        uint32_t k = dice_below(d, i);
        uint8_t was = out->order[i - 1];
        out->order[i - 1] = out->order[k];
        out->order[k] = was;
    }
    for (int i = 0; i < JITTER_OPS; i++) {
        double by = t->jitter[i], low = i == JITTER_HUE ? -by : 1 - by < 0 ? 0 : 1 - by;
        out->jitter[i] = (float)between(d, low, i == JITTER_HUE ? by : 1 + by);
    }
}

static void draw_trivial(struct drawn *out, dice *d)
{
    out->op = (uint8_t)dice_below(d, TRIVIAL_OPS);
    int bin = (int)dice_below(d, TRIVIAL_BINS);
    out->bin = (int8_t)(dice_unit(d) <= 0.5f ? -1 - bin : bin);
}

static box draw_erase(const transform *t, dice *d)
{
    double log_ratio[2] = {co_log(erase_ratio[0]), co_log(erase_ratio[1])}, height, width;

    if (dice_unit(d) >= t->erase)
        return (box){0};
    for (int i = 0; i < TRIES; i++) {
        draw_shape(d, (double)t->height * t->width, erase_scale, log_ratio, &height, &width);
        if (!(height < t->height && width < t->width))
            continue;
        box b = {.height = (int32_t)height, .width = (int32_t)width};
        b.top = (int32_t)dice_below(d, t->height - (uint32_t)b.height + 1);
        b.left = (int32_t)dice_below(d, t->width - (uint32_t)b.width + 1);
        return b;
    }
    return (box){0};
}

bool transform_draw(struct drawn *out, const transform *t, const co_draw *draw, uint32_t id, uint32_t in_h,
                    uint32_t in_w)
{
    dice d;

    if (!draw->augment || !transform_varies(t))
        return false;
    *out = (struct drawn){0};
    if (t->crops) {
        d = dice_of(draw, "transform.crop", id);
        if (t->random_box) {
            out->crop = draw_box(t, &d, in_h, in_w);
        } else {
            transform_resized(t, &in_h, &in_w);
            out->crop = (box){.height = (int32_t)t->height, .width = (int32_t)t->width};
            out->crop.top = draw_place(&d, in_h, t->pad, t->height);
            out->crop.left = draw_place(&d, in_w, t->pad, t->width);
        }
    }
    if (t->flip > 0) {
        co_draw first = *draw;
        first.epoch = t->alternate ? 0 : draw->epoch;
        d = dice_of(&first, "transform.flip", id);
        out->flip = dice_unit(&d) < t->flip;
        if (t->alternate && draw->epoch % 2)
            out->flip = !out->flip;
    }
    if (transform_jitters(t)) {
        d = dice_of(draw, "transform.jitter", id);
        draw_jitter(out, t, &d);
    }
    if (t->trivial) {
        d = dice_of(draw, "transform.trivial", id);
        draw_trivial(out, &d);
    }
    if (t->erase > 0) {
        d = dice_of(draw, "transform.erase", id);
        out->erase = draw_erase(t, &d);
    }
    return true;
}
