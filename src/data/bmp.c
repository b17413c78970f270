/* bmp.c -- BMP files that are not compressed, as Windows, OS/2 and Pillow write them.
 *
 *     file header, 14 bytes     "BM", ..., where the pixels begin
 *     picture header            12 bytes (OS/2) or 40 to 124: width, height, bits a pixel, compression,
 *                               colours
 *     masks, or a palette       blue, green, red (and a fourth byte, but for OS/2)
 *     rows                      from the bottom to the top, or the other way round if the height is negative;
 *                               each padded to whole 4 bytes
 *
 * 1, 4 and 8 bits a pixel are places in the palette; 16 and 32 hold colours by masks; 24 hold blue, green,
 * red. Alpha is dropped. Run-length compression is refused. Every place is checked to be in the file before
 * it is read.
 */
#include "data/decode_int.h"

#include <stdio.h>
#include <string.h>

enum { FILE_HEAD = 14, OS2_HEAD = 12, HEAD_MOST = 124, RAW = 0, MASKS = 3 };

typedef struct bmp {
    uint32_t head_len, width, height, bits, compression, colours;
    bool top_down;
    size_t pixels, stride; /* where the rows begin, and bytes from row to row */
    size_t palette, entry; /* where the colours begin, and bytes of each */
    uint32_t mask[3];      /* red, green, blue */
} bmp;

static uint32_t le16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t le32(const uint8_t *at)
{
    return le16(at) | le16(at + 2) << 16;
}

static bool is_bmp(const uint8_t *bytes, size_t len)
{
    return len >= FILE_HEAD + 4 && bytes[0] == 'B' && bytes[1] == 'M' &&
           le32(bytes + FILE_HEAD) >= OS2_HEAD && le32(bytes + FILE_HEAD) <= HEAD_MOST;
}

static const char *read_head(bmp *b, const uint8_t *bytes, size_t len)
{
    const uint8_t *head = bytes + FILE_HEAD;

    *b = (bmp){.head_len = le32(head), .pixels = le32(bytes + 10)};
    if (b->head_len != OS2_HEAD && b->head_len < 40)
        return "a BMP header of an unknown kind";
    if (len < FILE_HEAD + (size_t)b->head_len)
        return "the file is cut short";
    if (b->head_len == OS2_HEAD) {
        b->width = le16(head + 4);
        b->height = le16(head + 6);
        b->bits = le16(head + 10);
    } else {
        b->width = le32(head + 4);
        b->height = le32(head + 8);
        b->bits = le16(head + 14);
        b->compression = le32(head + 16);
        b->colours = le32(head + 32);
    }
    b->top_down = b->height > INT32_MAX;
    b->height = b->top_down ? 0 - b->height : b->height;
    b->palette = FILE_HEAD + b->head_len;
    b->entry = b->head_len == OS2_HEAD ? 3 : 4;
    return NULL;
}

/* Masks that stand in the file: in the header, or right after one of 40 bytes. */
static const char *read_masks(bmp *b, const uint8_t *bytes, size_t len)
{
    if (len < FILE_HEAD + 40 + 12)
        return "the file is cut short";
    for (int c = 0; c < 3; c++) {
        uint32_t mask = le32(bytes + FILE_HEAD + 40 + 4 * c);
        uint32_t low = mask ? mask >> __builtin_ctz(mask) : 0;
        if (low == 0 || low > 255 || (low & (low + 1)) || (b->bits == 16 && mask > UINT16_MAX))
            return "its colour masks are of an odd kind";
        b->mask[c] = mask;
    }
    return NULL;
}

static const char *choose_masks(bmp *b, const uint8_t *bytes, size_t len)
{
    static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};

    if (b->compression == MASKS && (b->bits == 16 || b->bits == 32))
        return read_masks(b, bytes, len);
    if (b->compression != RAW)
        return "a compressed BMP file: save it uncompressed";
    memcpy(b->mask, usual[b->bits == 16 ? 0 : 1], sizeof b->mask);
    return NULL;
}

/* All that is read later is in the file. `b` is in bounds, so nothing overflows. */
static const char *check_places(bmp *b, size_t len)
{
    size_t row = ((size_t)b->width * b->bits + 7) / 8;

    b->stride = (row + 3) & ~(size_t)3;
    if (b->bits <= 8) {
        uint32_t most = 1u << b->bits;
        b->colours = b->colours == 0 || b->colours > most ? most : b->colours;
        if (b->palette + b->colours * b->entry > len)
            return "the file is cut short";
    }
    if (b->pixels < FILE_HEAD + b->head_len)
        return "its pixels begin inside its header";
    if (b->pixels > len || (b->height - 1) * b->stride + row > len - b->pixels)
        return "the file is cut short";
    return NULL;
}

/* --- rows ----------------------------------------------------------------------------------------------- */

static bool row_of_places(const bmp *b, const uint8_t *bytes, const uint8_t *from, uint8_t *rgb)
{
    uint32_t per_byte = 8 / b->bits, most = (1u << b->bits) - 1;

    for (uint32_t x = 0; x < b->width; x++, rgb += 3) {
        uint32_t shift = (per_byte - 1 - x % per_byte) * b->bits;
        uint32_t place = (uint32_t)from[x / per_byte] >> shift & most;
        if (place >= b->colours)
            return false;
        const uint8_t *bgr = bytes + b->palette + place * b->entry;
        rgb[0] = bgr[2];
        rgb[1] = bgr[1];
        rgb[2] = bgr[0];
    }
    return true;
}

static void row_of_masks(const bmp *b, const uint8_t *from, uint8_t *rgb)
{
    for (uint32_t x = 0; x < b->width; x++, rgb += 3) {
        uint32_t pixel = b->bits == 16 ? le16(from + 2 * x) : le32(from + 4 * x);
        for (int c = 0; c < 3; c++) {
            int shift = __builtin_ctz(b->mask[c]);
            rgb[c] = (uint8_t)(((pixel & b->mask[c]) >> shift) * 255 / (b->mask[c] >> shift));
        }
    }
}

static void row_of_bgr(const bmp *b, const uint8_t *from, uint8_t *rgb)
{
    for (uint32_t x = 0; x < b->width; x++, rgb += 3, from += 3) {
        rgb[0] = from[2];
        rgb[1] = from[1];
        rgb[2] = from[0];
    }
}

static bool bmp_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN])
{
    bmp b;
    const char *wrong = read_head(&b, bytes, len);

    if (!wrong && b.bits != 1 && b.bits != 4 && b.bits != 8 && b.bits != 16 && b.bits != 24 && b.bits != 32)
        wrong = "its number of bits a pixel is none of 1, 4, 8, 16, 24, 32";
    if (!wrong)
        wrong = choose_masks(&b, bytes, len);
    uint8_t *to = wrong ? NULL : picture_room(out, b.height, b.width, most_pixels, why);
    if (to)
        wrong = check_places(&b, len);
    for (uint32_t y = 0; to && !wrong && y < b.height; y++) {
        const uint8_t *from = bytes + b.pixels + y * b.stride;
        uint8_t *rgb = to + (b.top_down ? y : b.height - 1 - y) * out->stride;
        if (b.bits == 24)
            row_of_bgr(&b, from, rgb);
        else if (b.bits > 8)
            row_of_masks(&b, from, rgb);
        else if (!row_of_places(&b, bytes, from, rgb))
            wrong = "a pixel's colour is not in its palette";
    }
    if (wrong)
        snprintf(why, WHY_LEN, "%s", wrong);
    return to && !wrong;
}

static bool bmp_size(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width)
{
    bmp b;

    if (read_head(&b, bytes, len))
        return false;
    *height = b.height;
    *width = b.width;
    return true;
}

const picture_format bmp_format = {"BMP", ".bmp", is_bmp, bmp_size, bmp_decode};
