/* conv_input.c -- the input of a convolution as its products read it: zero-padded, and with a stride, the columns of
 * each row dealt into as many parts as the stride is.
 *
 *     stride 2, columns 0 1 2 3 4 5 6 7   ->   0 2 4 6 | 1 3 5 7
 *
 * A tap meets every stride-th column of a row: these now lie side by side, so packing loads vectors. That pays if a row
 * of the output fills half a vector and columns meet several taps.
 */
#include "kernel/simd/conv_int.h"

input input_of(const geom *g)
{
    input in = {.parts = g->kw > g->stride && g->ow >= VW / 2 ? g->stride : 1, .rows = g->h + 2 * g->pad};

    in.part = (g->w + 2 * g->pad + in.parts - 1) / in.parts;
    in.row = in.part * in.parts;
    in.plane = in.rows * in.row;
    in.step = g->stride / in.parts;
    in.copied = g->pad || in.parts > 1;
    return in;
}

void input_taps(int32_t *t, const geom *g, const input *in)
{
    for (int64_t c = 0; c < g->c; c++)
        for (int64_t y = 0; y < g->kh; y++)
            for (int64_t x = 0; x < g->kw; x++)
                *t++ = (int32_t)(c * in->plane + y * in->row + x % in->parts * in->part + x / in->parts);
}

static inline void copy_row(float *dst, const float *src, int64_t n)
{
    int64_t x = 0;
    for (; x + VW <= n; x += VW)
        v_store(dst + x, v_load(src + x));
    if (x < n)
        v_store_few(dst + x, n - x, v_load_n(src + x, n - x));
}

void pad_planes(float *dst, const float *src, int64_t planes, int64_t h, int64_t w, int64_t top, int64_t left,
                int64_t hp, int64_t wp)
{
    int64_t x0 = left > 0 ? left : 0, x1 = left + w < wp ? left + w : wp;
    int64_t y0 = top > 0 ? top : 0, y1 = top + h < hp ? top + h : hp;
    if (x1 <= x0)
        return;
    for (int64_t p = 0; p < planes; p++, src += h * w, dst += hp * wp)
        for (int64_t y = y0; y < y1; y++)
            copy_row(dst + y * wp + x0, src + (y - top) * w + x0 - left, x1 - x0);
}

/* Column x of the image is column x + pad of the padded row. */
static void deal_row(float *dst, const float *src, const geom *g, const input *in)
{
    if (in->parts == 2) {
        int64_t even = g->pad, odd = g->pad + 1;
        split_row(dst + even % 2 * in->part + even / 2, dst + odd % 2 * in->part + odd / 2, src, g->w);
        return;
    }
    for (int64_t first = 0; first < in->parts; first++) {
        float *to = dst + (first + g->pad) % in->parts * in->part + (first + g->pad) / in->parts;
        for (int64_t x = first, i = 0; x < g->w; x += in->parts, i++)
            to[i] = src[x];
    }
}

void input_put(float *dst, const float *src, int64_t planes, const geom *g, const input *in)
{
    if (in->parts == 1) {
        pad_planes(dst, src, planes, g->h, g->w, g->pad, g->pad, in->rows, in->row);
        return;
    }
    for (int64_t p = 0; p < planes; p++, dst += in->plane)
        for (int64_t y = 0; y < g->h; y++, src += g->w)
            deal_row(dst + (y + g->pad) * in->row, src, g, in);
}
