/* decode.c -- which decoder a file is for, and the bounds that hold for both. */
#include "data/decode_int.h"

#include <stdio.h>
#include <string.h>

static const uint8_t png_magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static bool is_png(const uint8_t *bytes, size_t len)
{
    return len >= sizeof png_magic && memcmp(bytes, png_magic, sizeof png_magic) == 0;
}

static bool is_jpeg(const uint8_t *bytes, size_t len)
{
    return len >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

/* Formats that people meet under a name that says .jpg. */
static const char *other_kind(const uint8_t *bytes, size_t len)
{
    static const struct {
        const char *begins, *is;
        size_t at, len;
    } kinds[] = {{"GIF8", "a GIF", 0, 4},         {"WEBP", "a WebP", 8, 4},
                 {"BM", "a BMP", 0, 2},           {"II*\0", "a TIFF", 0, 4},
                 {"MM\0*", "a TIFF", 0, 4},       {"ftypavif", "an AVIF", 4, 8},
                 {"ftypheic", "a HEIC", 4, 8},    {"<!DOCTYPE", "an HTML page", 0, 9},
                 {"<html", "an HTML page", 0, 5}, {"version https://git-lfs", "a pointer of git-lfs", 0, 23}};

    for (size_t i = 0; i < CO_COUNT(kinds); i++)
        if (len >= kinds[i].at + kinds[i].len && !memcmp(bytes + kinds[i].at, kinds[i].begins, kinds[i].len))
            return kinds[i].is;
    return NULL;
}

uint8_t *picture_room(picture *out, uint64_t height, uint64_t width, uint64_t most_pixels, char why[WHY_LEN])
{
    if (height < 1 || width < 1 || height > PICTURE_SIDE_MAX || width > PICTURE_SIDE_MAX ||
        height * width > most_pixels) {
        snprintf(why, WHY_LEN, "%llu x %llu pixels; at most %llu in all, %d a side, are read",
                 (unsigned long long)width, (unsigned long long)height, (unsigned long long)most_pixels,
                 PICTURE_SIDE_MAX);
        return NULL;
    }
    uint8_t *room = scratch_get(SCRATCH_PICTURE, (size_t)(height * width * 3));
    *out = (picture){room, (uint32_t)height, (uint32_t)width, 3, (size_t)width * 3};
    return room;
}

bool picture_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN])
{
    if (is_jpeg(bytes, len))
        return jpeg_decode(out, bytes, len, most_pixels, why);
    if (is_png(bytes, len))
        return png_decode(out, bytes, len, most_pixels, why);
    const char *kind = other_kind(bytes, len);
    if (len == 0)
        snprintf(why, WHY_LEN, "the file is empty");
    else if (kind)
        snprintf(why, WHY_LEN, "neither JPEG nor PNG but %s", kind);
    else
        snprintf(why, WHY_LEN, "neither JPEG nor PNG: it begins with 0x%02x%02x", bytes[0],
                 len > 1 ? bytes[1] : 0);
    return false;
}

/* --- the size alone -------------------------------------------------------------------------------------------- */

static uint32_t be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t be32(const uint8_t *at)
{
    return be16(at) << 16 | be16(at + 2);
}

/* Segments are marker, length, content; the frame's (SOF0 to SOF15 but for DHT, JPG, DAC) has the size. */
static bool jpeg_size(const uint8_t *b, size_t len, uint32_t *height, uint32_t *width)
{
    size_t at = 2;

    while (at + 9 <= len && b[at] == 0xff) {
        uint8_t marker = b[at + 1];
        if (marker == 0xff) {
            at++;
        } else if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
            *height = be16(b + at + 5);
            *width = be16(b + at + 7);
            return *height && *width;
        } else {
            at += 2 + be16(b + at + 2);
        }
    }
    return false;
}

bool picture_size(const uint8_t *b, size_t len, uint32_t *height, uint32_t *width)
{
    if (is_jpeg(b, len))
        return jpeg_size(b, len, height, width);
    if (!is_png(b, len) || len < 24)
        return false;
    *width = be32(b + 16);
    *height = be32(b + 20);
    return *height && *width && *height <= PICTURE_SIDE_MAX && *width <= PICTURE_SIDE_MAX;
}
