/* gif.c -- the first frame of a GIF file, as Pillow's convert("RGB") gives it.
 *
 *     "GIF87a" or "GIF89a", size of the canvas, global palette
 *     blocks: extensions (0x21), one of which names a transparent colour, and frames (0x2c)
 *     frame: its place on the canvas, a palette of its own or not, pixels packed by LZW in pieces of up to
 *     255 bytes
 *
 * A frame may cover a part of the canvas: the rest has the transparent colour, or else colour 0. Without any
 * palette a pixel is a grey. Unlike Pillow, data that end before the last pixel are refused.
 */
#include "data/decode_int.h"

#include <stdio.h>
#include <string.h>

enum { HEAD = 13, CODES = 4096, CODE_BITS_MOST = 12 };

/* Bytes not yet read. */
typedef struct reader {
    const uint8_t *at, *end;
} reader;

typedef struct gif {
    uint32_t height, width;                        /* of the canvas */
    uint32_t left, top, frame_height, frame_width; /* of the first frame */
    bool interlaced;
    uint8_t backdrop;        /* the colour around the frame */
    uint8_t palette[256][3]; /* a grey ramp where the file has no palette */
} gif;

static bool is_gif(const uint8_t *bytes, size_t len)
{
    return len >= HEAD && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0);
}

static uint32_t le16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

/* The next n bytes; NULL: there are fewer. */
static const uint8_t *take(reader *in, size_t n)
{
    const uint8_t *at = in->at;

    if (n > (size_t)(in->end - at))
        return NULL;
    in->at += n;
    return at;
}

/* A palette of 2, 4 ... 256 colours, if the flags say that one follows. */
static bool take_palette(gif *g, reader *in, uint8_t flags)
{
    size_t bytes = flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0;
    const uint8_t *from = take(in, bytes);

    if (from && bytes)
        memcpy(g->palette, from, bytes);
    return from != NULL;
}

/* An extension: its kind, then pieces of up to 255 bytes until an empty one. */
static bool take_extension(gif *g, reader *in)
{
    const uint8_t *kind = take(in, 1), *piece, *len = NULL;

    while (kind && (len = take(in, 1)) != NULL && *len > 0) {
        if (!(piece = take(in, *len)))
            return false;
        if (*kind == 0xf9 && *len >= 4 && (piece[0] & 1))
            g->backdrop = piece[3];
    }
    return kind && len;
}

/* Up to the first frame's pixels. */
static bool find_frame(gif *g, reader *in)
{
    const uint8_t *head = take(in, HEAD), *block;

    if (!head || !take_palette(g, in, head[10]))
        return false;
    while ((block = take(in, 1)) != NULL && *block != 0x2c)
        if (*block == 0x21 ? !take_extension(g, in) : *block != 0)
            return false;
    const uint8_t *frame = block ? take(in, 9) : NULL;
    if (!frame || !take_palette(g, in, frame[8]))
        return false;
    g->left = le16(frame);
    g->top = le16(frame + 2);
    g->frame_width = le16(frame + 4);
    g->frame_height = le16(frame + 6);
    g->interlaced = frame[8] & 0x40;
    uint32_t right = g->left + g->frame_width, bottom = g->top + g->frame_height;
    g->width = right > le16(head + 6) ? right : le16(head + 6);
    g->height = bottom > le16(head + 8) ? bottom : le16(head + 8);
    return true;
}

/* --- pixels --------------------------------------------------------------------------------------------- */

typedef struct lzw {
    reader in;
    size_t piece; /* bytes left in this piece */
    uint32_t bits, n_bits;
    uint16_t before[CODES]; /* a code is the code before it and one pixel more */
    uint8_t last[CODES];
    uint8_t stack[CODES]; /* the pixels of a code, from its end */
} lzw;

/* The next code of `width` bits; -1 at the end of the data. */
static int next_code(lzw *z, uint32_t width)
{
    while (z->n_bits < width) {
        const uint8_t *byte;
        if (z->piece == 0) {
            byte = take(&z->in, 1);
            if (!byte || !*byte)
                return -1;
            z->piece = *byte;
        }
        if (!(byte = take(&z->in, 1)))
            return -1;
        z->piece--;
        z->bits |= (uint32_t)*byte << z->n_bits;
        z->n_bits += 8;
    }
    int code = (int)(z->bits & ((1u << width) - 1));
    z->bits >>= width;
    z->n_bits -= width;
    return code;
}

/* Where the frame's pixels go, one after the other, row by row in the order of the file. */
typedef struct canvas {
    const gif *g;
    picture *out;
    uint8_t *bytes;
    uint32_t x, y, pass;
    bool full;
} canvas;

static void next_row(canvas *c)
{
    static const uint8_t first[4] = {0, 4, 2, 1}, step[4] = {8, 8, 4, 2};

    c->x = 0;
    c->y += c->g->interlaced ? step[c->pass] : 1;
    while (c->g->interlaced && c->y >= c->g->frame_height && c->pass < 3)
        c->y = first[++c->pass];
    c->full = c->y >= c->g->frame_height;
}

static void put_pixel(canvas *c, uint8_t colour)
{
    if (c->full)
        return;
    uint8_t *rgb = c->bytes + (c->g->top + c->y) * c->out->stride + (size_t)(c->g->left + c->x) * 3;
    memcpy(rgb, c->g->palette[colour], 3);
    if (++c->x == c->g->frame_width)
        next_row(c);
}

/* Writes the pixels of a code. Codes below `clear` are single pixels. */
static void put_code(lzw *z, canvas *c, uint32_t code, uint32_t clear)
{
    uint32_t n = 0;

    for (; code >= clear; code = z->before[code])
        z->stack[n++] = z->last[code];
    put_pixel(c, (uint8_t)code);
    while (n > 0)
        put_pixel(c, z->stack[--n]);
}

/* Code `next` becomes: the pixels of `before`, and then the first pixel of `code`, which may be `next`
 * itself. */
static void learn_code(lzw *z, uint32_t next, uint32_t before, uint32_t code, uint32_t clear)
{
    uint32_t first = code == next ? before : code;

    while (first >= clear)
        first = z->before[first];
    z->before[next] = (uint16_t)before;
    z->last[next] = (uint8_t)first;
}

static const char *unpack(lzw *z, canvas *c)
{
    const uint8_t *start = take(&z->in, 1);

    if (!start)
        return "the file is cut short";
    if (*start < 1 || *start > 8)
        return "its pixels are packed in an unknown way";
    const uint32_t clear = 1u << *start;
    uint32_t width = *start + 1u, next = clear + 2;
    int before = -1;
    while (!c->full) {
        int code = next_code(z, width);
        if (code < 0 || code == (int)clear + 1)
            return "the file is cut short";
        if (code == (int)clear) {
            width = *start + 1u;
            next = clear + 2;
            before = -1;
            continue;
        }
        bool grows = before >= 0 && next < CODES;
        if (before < 0 ? code > (int)clear : code > (int)next - !grows)
            return "its pixels are corrupt";
        if (grows) {
            learn_code(z, next++, (uint32_t)before, (uint32_t)code, clear);
            width += next == 1u << width && width < CODE_BITS_MOST;
        }
        put_code(z, c, (uint32_t)code, clear);
        before = code;
    }
    return NULL;
}

static void paint_backdrop(const gif *g, uint8_t *to)
{
    size_t n = (size_t)g->height * g->width;

    for (size_t i = 0; i < n; i++, to += 3)
        memcpy(to, g->palette[g->backdrop], 3);
}

static void start_palette(gif *g)
{
    for (int i = 0; i < 256; i++)
        memset(g->palette[i], i, 3);
}

static bool gif_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN])
{
    gif g = {0};
    lzw z = {.in = {bytes, bytes + len}};
    const char *wrong = NULL;

    start_palette(&g);
    if (!find_frame(&g, &z.in) || !g.frame_height || !g.frame_width)
        wrong = "the GIF file has no whole frame";
    uint8_t *to = wrong ? NULL : picture_room(out, g.height, g.width, most_pixels, why);
    if (to) {
        paint_backdrop(&g, to);
        wrong = unpack(&z, &(canvas){.g = &g, .out = out, .bytes = to});
    }
    if (wrong)
        snprintf(why, WHY_LEN, "%s", wrong);
    return to && !wrong;
}

static bool gif_size(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width)
{
    gif g = {0};
    reader in = {bytes, bytes + len};

    if (!find_frame(&g, &in))
        return false;
    *height = g.height;
    *width = g.width;
    return true;
}

const picture_format gif_format = {"GIF", ".gif", is_gif, gif_size, gif_decode};
