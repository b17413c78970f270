/* levels.c -- operations that give each of a plane's 256 values another: posterise, solarise, auto-contrast,
 * equalise.
 *
 * As in Pillow's ImageOps: whole numbers throughout, but for auto-contrast, which scales in double and rounds
 * down.
 */
#include "data/augment/augment_int.h"

typedef struct histogram {
    uint32_t of[256];
} histogram;

static void map_plane(canvas c, uint32_t plane, const uint8_t value[256])
{
    size_t n = c.height * canvas_row(&c);

    for (size_t i = plane; i < n; i += c.planes)
        c.bytes[i] = value[c.bytes[i]];
}

static void map_all(canvas c, const uint8_t value[256])
{
    for (uint32_t k = 0; k < c.planes; k++)
        map_plane(c, k, value);
}

static histogram count(canvas c, uint32_t plane)
{
    histogram h = {{0}};
    size_t n = c.height * canvas_row(&c);

    for (size_t i = plane; i < n; i += c.planes)
        h.of[c.bytes[i]]++;
    return h;
}

void canvas_posterize(canvas c, int bits)
{
    uint8_t value[256];

    for (int v = 0; v < 256; v++)
        value[v] = (uint8_t)(v & ~((1 << (8 - bits)) - 1));
    map_all(c, value);
}

void canvas_solarize(canvas c, double threshold)
{
    uint8_t value[256];

    for (int v = 0; v < 256; v++)
        value[v] = (uint8_t)(v < threshold ? v : 255 - v);
    map_all(c, value);
}

/* The darkest value of each plane becomes 0, the lightest 255. */
void canvas_auto_contrast(canvas c)
{
    for (uint32_t k = 0; k < c.planes; k++) {
        histogram h = count(c, k);
        int low = 0, high = 255;
        uint8_t value[256];
        while (low < 255 && !h.of[low])
            low++;
        while (high > 0 && !h.of[high])
            high--;
        if (high <= low)
            continue;
        double scale = 255.0 / (high - low), offset = -low * scale;
        for (int v = 0; v < 256; v++) {
            double to = v * scale + offset;
            value[v] = (uint8_t)(to < 0 ? 0 : to > 255 ? 255 : to);
        }
        map_plane(c, k, value);
    }
}

/* Values are spread so that each is about as frequent. */
void canvas_equalize(canvas c)
{
    for (uint32_t k = 0; k < c.planes; k++) {
        histogram h = count(c, k);
        int last = 255;
        while (last > 0 && !h.of[last])
            last--;
        uint32_t step = (uint32_t)((size_t)c.height * c.width - h.of[last]) / 255;
        if (!step)
            continue;
        uint8_t value[256];
        uint32_t n = step / 2;
        for (int v = 0; v < 256; v++) {
            uint32_t to = n / step;
            value[v] = (uint8_t)(to > 255 ? 255 : to);
            n += h.of[v];
        }
        map_plane(c, k, value);
    }
}
