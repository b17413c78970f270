/* resize.c -- bilinear resizing with antialiasing, bit for bit Pillow's (Image.resize, BILINEAR) up to its
 * version 12; 13 begins with the columns where that is faster, and a pixel may then be one level off.
 *
 * A pixel of the result is a weighted mean of the pixels under a triangle, as wide as two pixels of the
 * larger of the two grids. Rows first, then columns; between the passes pixels are rounded to 8 bits. Weights
 * are worked out in double, normalised, and rounded to whole multiples of 2^-22: sums of 8-bit pixels are
 * then exact in 32 bits.
 *
 * Only the wanted part of the result is computed: a crop of a resized picture costs no more than the crop.
 *
 * Cost: the taps of both passes, a fraction of a nanosecond each with AVX2 (resize_wide.c).
 */
#include "data/augment/augment_int.h"

#include <math.h>
#include <string.h>

#include "data/augment/resize_int.h"

/* An axis: of `in` pixels, `len` that begin at `start` are resized to `out`. */
typedef struct axis {
    uint32_t in;
    double start, len;
    uint32_t out;
} axis;

static bool stays(axis a)
{
    return a.start == 0 && a.len == a.in && a.in == a.out;
}

/* Places [from, from + n) of the resized axis. */
static taps taps_make(scratch_slot slot, axis a, uint32_t from, uint32_t n)
{
    double scale = a.len / a.out, wide = scale < 1 ? 1 : scale, per = 1 / wide;
    int32_t most = (int32_t)ceil(wide) * 2 + 1;
    size_t ints = (size_t)n * (2 + (size_t)most);
    double *weight = scratch_get(slot, (size_t)most * sizeof *weight + ints * sizeof(int32_t));
    int32_t *memory = (int32_t *)(weight + most);
    taps t = {memory, memory + n, memory + 2 * (size_t)n, most};

    for (uint32_t o = 0; o < n; o++) {
        double centre = a.start + (from + o + 0.5) * scale, sum = 0;
        int32_t first = (int32_t)(centre - wide + 0.5), end = (int32_t)(centre + wide + 0.5);
        first = first < 0 ? 0 : first;
        end = end > (int32_t)a.in ? (int32_t)a.in : end;
        for (int32_t i = 0; i < end - first; i++) {
            double far = fabs((i + first - centre + 0.5) * per);
            weight[i] = far < 1 ? 1 - far : 0;
            sum += weight[i];
        }
        int32_t *w = t.weight + (size_t)o * (size_t)most;
        for (int32_t i = 0; i < end - first; i++)
            w[i] = (int32_t)(0.5 + weight[i] / sum * (1 << TAP_BITS));
        t.first[o] = first;
        t.n[o] = end - first;
    }
    return t;
}

static inline uint8_t rounded(int32_t sum)
{
    sum >>= TAP_BITS;
    return (uint8_t)(sum > 255 ? 255 : sum);
}

static void row_of_colour(uint8_t *out, const uint8_t *in, uint32_t width, const taps *t)
{
    const int32_t *w = t->weight;

    for (uint32_t x = 0; x < width; x++, w += t->most, out += 3) {
        const uint8_t *from = in + (size_t)t->first[x] * 3;
        int32_t r = TAP_HALF, g = TAP_HALF, b = TAP_HALF;
        for (int32_t i = 0; i < t->n[x]; i++, from += 3) {
            r += from[0] * w[i];
            g += from[1] * w[i];
            b += from[2] * w[i];
        }
        out[0] = rounded(r);
        out[1] = rounded(g);
        out[2] = rounded(b);
    }
}

static void row_of_grey(uint8_t *out, const uint8_t *in, uint32_t width, const taps *t)
{
    const int32_t *w = t->weight;

    for (uint32_t x = 0; x < width; x++, w += t->most) {
        const uint8_t *from = in + t->first[x];
        int32_t sum = TAP_HALF;
        for (int32_t i = 0; i < t->n[x]; i++)
            sum += from[i] * w[i];
        out[x] = rounded(sum);
    }
}

static void columns(uint8_t *out, const uint8_t *in, size_t stride, size_t len, const int32_t *weight, int32_t n)
{
    for (size_t at = 0; at < len; at++) {
        int32_t sum = TAP_HALF;
        for (int32_t i = 0; i < n; i++)
            sum += in[(size_t)i * stride + at] * weight[i];
        out[at] = rounded(sum);
    }
}

const resize_passes resize_plain = {row_of_colour, columns};

/* Rows [row, row + rows) of p resized across, and of that `width` pixels from `left`. The last row goes plainly:
 * nothing past it may be touched. */
static picture across(uint8_t *out, picture p, uint32_t row, uint32_t rows, axis a, uint32_t left,
                      uint32_t width)
{
    const resize_passes *wide = resize_wide();
    size_t len = (size_t)width * p.planes;

    p.bytes += row * p.stride;
    if (stays(a)) {
        p.bytes += (size_t)left * p.planes;
        return p;
    }
    taps t = taps_make(SCRATCH_ACROSS, a, left, width);
    for (uint32_t y = 0; y < rows; y++) {
        const uint8_t *from = p.bytes + y * p.stride;
        if (p.planes == 1)
            row_of_grey(out + y * len, from, width, &t);
        else
            (wide && y + 1 < rows ? wide : &resize_plain)->row_of_colour(out + y * len, from, width, &t);
    }
    return (picture){out, rows, width, p.planes, len};
}

void picture_resize(canvas out, picture p, picture_part from, uint32_t full_h, uint32_t full_w, uint32_t top,
                    uint32_t left)
{
    const resize_passes *wide = resize_wide(), *by = wide ? wide : &resize_plain;
    size_t len = canvas_row(&out);
    axis down = {p.height, from.top, from.height, full_h}, side = {p.width, from.left, from.width, full_w};

    if (stays(down)) {
        p = across(out.bytes, p, top, out.height, side, left, out.width);
        for (uint32_t y = 0; y < out.height && p.bytes != out.bytes; y++)
            memcpy(out.bytes + y * len, p.bytes + y * p.stride, len);
        return;
    }
    taps t = taps_make(SCRATCH_DOWN, down, top, out.height);
    int32_t row = t.first[0], rows = t.first[out.height - 1] + t.n[out.height - 1] - row;
    uint8_t *between = scratch_get(SCRATCH_ROWS, (size_t)rows * len);
    p = across(between, p, (uint32_t)row, (uint32_t)rows, side, left, out.width);
    for (uint32_t y = 0; y < out.height; y++)
        by->columns(out.bytes + y * len, p.bytes + (size_t)(t.first[y] - row) * p.stride, p.stride, len,
                    t.weight + (size_t)y * (size_t)t.most, t.n[y]);
}
