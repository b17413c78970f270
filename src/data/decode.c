/* decode.c -- the table of picture formats, and which of them a file has. A new format is a file and a row
 * here. */
#include "data/decode_int.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const picture_format *const picture_formats[] = {
    &jpeg_format, &png_format, &webp_format, &bmp_format, &gif_format, NULL,
};

/* Pictures to people, and not read here. */
const char *const unsupported_endings[UNSUPPORTED] = {
    ".tif", ".tiff", ".heic", ".heif", ".avif", ".jxl", ".jp2", ".ppm", ".pgm", ".pbm",
    ".pnm", ".tga",  ".ico",  ".psd",  ".svg",  ".dng", ".cr2", ".nef", ".arw", ".exr",
};

/* --- by name -------------------------------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *ending, size_t len)
{
    size_t n = strlen(name);

    return n > len && strncasecmp(name + n - len, ending, len) == 0;
}

static bool has_ending(const char *name, const char *endings)
{
    while (*endings) {
        size_t len = strcspn(endings, " ");
        if (ends_in(name, endings, len))
            return true;
        endings += len;
        endings += strspn(endings, " ");
    }
    return false;
}

bool picture_named(const char *name)
{
    for (int i = 0; picture_formats[i]; i++)
        if (has_ending(name, picture_formats[i]->endings))
            return true;
    return false;
}

int unsupported_named(const char *name)
{
    for (int i = 0; i < UNSUPPORTED; i++)
        if (has_ending(name, unsupported_endings[i]))
            return i;
    return -1;
}

/* --- by content ----------------------------------------------------------------------------------------- */

static const picture_format *format_of(const uint8_t *bytes, size_t len)
{
    for (int i = 0; picture_formats[i]; i++)
        if (picture_formats[i]->recognises(bytes, len))
            return picture_formats[i];
    return NULL;
}

/* What people find under a name that ends in .jpg; NULL: unknown. */
static const char *other_kind(const uint8_t *bytes, size_t len)
{
    static const struct {
        const char *begins, *is;
        size_t at, len;
    } kinds[] = {{"II*\0", "a TIFF file", 0, 4},
                 {"MM\0*", "a TIFF file", 0, 4},
                 {"ftypavif", "an AVIF file", 4, 8},
                 {"ftypheic", "a HEIC file", 4, 8},
                 {"<!DOCTYPE", "an HTML page", 0, 9},
                 {"<html", "an HTML page", 0, 5},
                 {"version https://git-lfs", "a pointer of git-lfs", 0, 23}};

    for (size_t i = 0; i < CO_COUNT(kinds); i++)
        if (len >= kinds[i].at + kinds[i].len && !memcmp(bytes + kinds[i].at, kinds[i].begins, kinds[i].len))
            return kinds[i].is;
    return NULL;
}

/* Says in `why` what a file is whose format is not read. */
static void say_unknown(const uint8_t *bytes, size_t len, char why[WHY_LEN])
{
    const char *kind = other_kind(bytes, len);

    if (len == 0)
        snprintf(why, WHY_LEN, "the file is empty");
    else if (kind)
        snprintf(why, WHY_LEN, "unsupported format: it is %s (JPEG, PNG, WebP, BMP and GIF are read)", kind);
    else
        snprintf(why, WHY_LEN,
                 "unsupported format: it begins with 0x%02x%02x (JPEG, PNG, WebP, BMP and GIF are read)",
                 bytes[0], len > 1 ? bytes[1] : 0);
}

bool picture_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN])
{
    const picture_format *format = format_of(bytes, len);

    if (format)
        return format->decode(out, bytes, len, most_pixels, why);
    say_unknown(bytes, len, why);
    return false;
}

bool picture_decode_reduced(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels,
                            const picture_wish *wish, char why[WHY_LEN])
{
    const picture_format *format = format_of(bytes, len);

    if (!format || !format->decode_reduced)
        return picture_decode(out, bytes, len, most_pixels, why);
    return format->decode_reduced(out, bytes, len, most_pixels, wish, why);
}

bool picture_size(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width)
{
    const picture_format *format = format_of(bytes, len);

    return format && format->size(bytes, len, height, width) && *height && *width &&
           *height <= PICTURE_SIDE_MAX && *width <= PICTURE_SIDE_MAX;
}
