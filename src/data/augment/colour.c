/* colour.c -- brightness, contrast, saturation, sharpness, hue, each as Pillow's ImageEnhance or its HSV has
 * it.
 *
 * The first four blend the picture with a worse one (black, its mean grey, its greys, itself smoothed):
 *
 *     worse + factor * (pixel - worse)       in float, cut to 0..255, rounded down
 *
 * A grey is (19595 r + 38470 g + 7471 b + 2^15) / 2^16, rounded down. Hue goes through HSV of 8 bits each.
 */
#include "data/augment/augment_int.h"

#include <string.h>

static inline uint8_t cut(float v)
{
    int whole = (int)v;

    whole = whole < 0 ? 0 : whole;
    return (uint8_t)(whole > 255 ? 255 : whole);
}

static inline uint8_t blend(int worse, int pixel, float factor)
{
    return cut((float)worse + factor * (float)(pixel - worse));
}

static inline int grey(const uint8_t *p)
{
    return (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16;
}

static size_t pixels(const canvas *c)
{
    return (size_t)c->height * c->width;
}

/* Blends with one grey. */
static void blend_all(canvas c, int worse, float factor)
{
    uint8_t value[256];
    size_t n = pixels(&c) * c.planes;

    for (int v = 0; v < 256; v++)
        value[v] = blend(worse, v, factor);
    for (size_t i = 0; i < n; i++)
        c.bytes[i] = value[c.bytes[i]];
}

void canvas_brightness(canvas c, float factor)
{
    blend_all(c, 0, factor);
}

void canvas_contrast(canvas c, float factor)
{
    uint64_t sum = 0;
    size_t n = pixels(&c);

    for (size_t i = 0; i < n; i++)
        sum += (uint64_t)(c.planes == 3 ? grey(c.bytes + 3 * i) : c.bytes[i]);
    blend_all(c, (int)((double)sum / (double)n + 0.5), factor);
}

void canvas_saturation(canvas c, float factor)
{
    size_t n = pixels(&c);

    if (c.planes != 3) /* a grey picture is its own grey */
        return;
    for (size_t i = 0; i < n; i++) {
        uint8_t *p = c.bytes + 3 * i;
        int g = grey(p);
        for (int k = 0; k < 3; k++)
            p[k] = blend(g, p[k], factor);
    }
}

/* Row y of c smoothed by 1 1 1, 1 5 1, 1 1 1 over 13; the pixels at the border are kept. */
static void smooth_row(uint8_t *out, const canvas *c, uint32_t y)
{
    size_t row = canvas_row(c), d = c->planes;
    const uint8_t *at = c->bytes + y * row;
    const float side = 1.0f / 13.0f, middle = 5.0f / 13.0f;

    memcpy(out, at, row);
    if (y == 0 || y + 1 == c->height || c->width < 3)
        return;
    for (size_t x = d; x < row - d; x++) {
        const uint8_t *up = at + x - row, *here = at + x, *down = at + x + row;
        float sum = 0.5f;
        sum += (float)down[-(ptrdiff_t)d] * side + (float)down[0] * side + (float)down[d] * side;
        sum += (float)here[-(ptrdiff_t)d] * side + (float)here[0] * middle + (float)here[d] * side;
        sum += (float)up[-(ptrdiff_t)d] * side + (float)up[0] * side + (float)up[d] * side;
        out[x] = cut(sum);
    }
}

void canvas_sharpness(canvas c, float factor)
{
    size_t row = canvas_row(&c);
    uint8_t *smooth = scratch_get(SCRATCH_ROWS, c.height * row);

    for (uint32_t y = 0; y < c.height; y++)
        smooth_row(smooth + y * row, &c, y);
    for (size_t i = 0; i < c.height * row; i++)
        c.bytes[i] = blend(smooth[i], c.bytes[i], factor);
}

/* Which plane is the largest decides which sixth of the circle h counts from, and which two make the rest of
 * it. */
static void to_hsv(uint8_t hsv[3], const uint8_t *p)
{
    int most = p[0] > p[1] ? p[0] : p[1], least = p[0] < p[1] ? p[0] : p[1];

    most = p[2] > most ? p[2] : most;
    least = p[2] < least ? p[2] : least;
    int k = p[0] == most   ? 0
            : p[1] == most ? 1
                           : 2,
        range = most - least; /* 0: a grey, h and s come out as 0 */
    float span = (float)(range ? range : 1);
    float plus = (float)(most - p[(k + 2) % 3]) / span, minus = (float)(most - p[(k + 1) % 3]) / span;
    float h = (float)(2.0 * k + plus - minus); /* in sixths, -1 to 5 */
    double turn = h / 6.0 + 1.0;
    h = (float)(turn >= 1 ? turn - 1 : turn);
    hsv[0] = (uint8_t)(h * 255.0);
    hsv[1] = (uint8_t)((float)range / (float)(most ? most : 1) * 255.0);
    hsv[2] = (uint8_t)most;
}

static void to_rgb(uint8_t *p, const uint8_t hsv[3])
{
    enum { FULL, UP, LOW, DOWN };
    static const uint8_t which[7][3] = {{FULL, UP, LOW},   {DOWN, FULL, LOW}, {LOW, FULL, UP},
                                        {LOW, DOWN, FULL}, {UP, LOW, FULL},   {FULL, LOW, DOWN},
                                        {FULL, UP, LOW}};
    double at = hsv[0] * 6.0 / 255.0;
    float s = hsv[1] / 255.0f; /* 0: all four are full */
    int sixth = (int)at, v = hsv[2];
    float f = (float)(at - sixth);
    const uint8_t value[4] = {[FULL] = (uint8_t)v,
                              [UP] = (uint8_t)(v * (1.0 - s * (1.0 - f)) + 0.5),
                              [LOW] = (uint8_t)(v * (1.0 - s) + 0.5),
                              [DOWN] = (uint8_t)(v * (1.0 - s * f) + 0.5)};

    for (int k = 0; k < 3; k++)
        p[k] = value[which[sixth][k]];
}

void canvas_hue(canvas c, float turn)
{
    uint8_t by = (uint8_t)(int32_t)((double)turn * 255), hsv[3];
    size_t n = pixels(&c);

    if (c.planes != 3)
        return;
    for (size_t i = 0; i < n; i++) {
        to_hsv(hsv, c.bytes + 3 * i);
        hsv[0] = (uint8_t)(hsv[0] + by);
        to_rgb(c.bytes + 3 * i, hsv);
    }
}
