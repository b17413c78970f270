/* geometry.c -- moving pixels about without making new ones: crop, flip, affine maps with the nearest pixel.
 *
 * Affine maps walk the picture in steps of 2^-16 of a pixel as Pillow does (Image.transform, NEAREST, fill
 * black), so that the same pixel is picked wherever two are as near. Rotation by right angles moves pixels
 * exactly.
 */
#include "data/augment/augment_int.h"

#include <math.h>
#include <string.h>

#include "base/maths.h"

void picture_crop(canvas out, picture p, int32_t top, int32_t left)
{
    size_t row = canvas_row(&out);
    int64_t from = left < 0 ? 0 : left, end = (int64_t)left + out.width;

    end = end > (int64_t)p.width ? (int64_t)p.width : end;
    for (uint32_t y = 0; y < out.height; y++) {
        uint8_t *to = out.bytes + y * row;
        int64_t in = (int64_t)top + y;
        if (in < 0 || in >= (int64_t)p.height || from >= end) {
            memset(to, 0, row);
            continue;
        }
        size_t before = (size_t)(from - left) * p.planes, len = (size_t)(end - from) * p.planes;
        memset(to, 0, before);
        memcpy(to + before, p.bytes + (size_t)in * p.stride + (size_t)from * p.planes, len);
        memset(to + before + len, 0, row - before - len);
    }
}

/* The pixel 0..n-1 that is seen at place i when the picture is continued by its mirror images. */
static uint32_t mirrored(int64_t i, uint32_t n)
{
    int64_t period = n > 1 ? 2 * ((int64_t)n - 1) : 1, at = (i % period + period) % period;

    return (uint32_t)(at < (int64_t)n ? at : period - at);
}

void picture_crop_mirrored(canvas out, picture p, int32_t top, int32_t left)
{
    uint8_t *to = out.bytes;

    for (uint32_t y = 0; y < out.height; y++) {
        const uint8_t *row = p.bytes + mirrored((int64_t)top + y, p.height) * p.stride;
        for (uint32_t x = 0; x < out.width; x++, to += p.planes)
            memcpy(to, row + (size_t)mirrored((int64_t)left + x, p.width) * p.planes, p.planes);
    }
}

void canvas_flip(canvas c)
{
    for (uint32_t y = 0; y < c.height; y++) {
        uint8_t *a = c.bytes + y * canvas_row(&c), *b = a + canvas_row(&c) - c.planes;
        for (; a < b; a += c.planes, b -= c.planes)
            for (uint32_t k = 0; k < c.planes; k++) {
                uint8_t was = a[k];
                a[k] = b[k];
                b[k] = was;
            }
    }
}

static int64_t fixed(double v)
{
    return (int64_t)floor(v * 65536.0 + 0.5);
}

void picture_affine(canvas out, picture p, const double a[6])
{
    int64_t across_x = fixed(a[0]), across_y = fixed(a[3]), down_x = fixed(a[1]), down_y = fixed(a[4]);
    int64_t row_x = fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), row_y = fixed(a[5] + a[3] * 0.5 + a[4] * 0.5);
    uint8_t *to = out.bytes;

    for (uint32_t y = 0; y < out.height; y++, row_x += down_x, row_y += down_y) {
        int64_t x_at = row_x, y_at = row_y;
        for (uint32_t x = 0; x < out.width; x++, x_at += across_x, y_at += across_y, to += p.planes) {
            int64_t px = x_at >> 16, py = y_at >> 16;
            bool inside = px >= 0 && px < (int64_t)p.width && py >= 0 && py < (int64_t)p.height;
            const uint8_t *from = p.bytes + (inside ? (size_t)py * p.stride + (size_t)px * p.planes : 0);
            for (uint32_t k = 0; k < p.planes; k++)
                to[k] = inside ? from[k] : 0;
        }
    }
}

/* To 15 decimals: cos 90 degrees is then 0. */
static double to_15(double v)
{
    return rint(v * 1e15) / 1e15;
}

void picture_rotate(canvas out, picture p, double degrees)
{
    double angle = -degrees * 0x1.1df46a2529d39p-6; /* pi / 180 */
    double c = to_15(co_cos(angle)), s = to_15(co_sin(angle)), x = p.width / 2.0, y = p.height / 2.0;
    double a[6] = {c, s, c * -x + s * -y + x, -s, c, -s * -x + c * -y + y};

    picture_affine(out, p, a);
}
