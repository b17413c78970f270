/* fuzz_picture.c -- any bytes as a picture file: refused with a reason, or a picture within bounds.
 *
 * One program per format: FUZZ_PICTURE is the name of a row of the table below, and tools/fuzz builds one for
 * every row. Each input is decoded as it is, and again after the row's bytes were put at its beginning: few
 * inputs would pass the beginning otherwise. Each is also decoded at reduced size. A format that has no row
 * here fails at the start.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "data/decode_int.h"

enum { FEW_PIXELS = 1 << 18 };

typedef struct fuzz_row {
    const char *name;
    const picture_format *format;
    const char *begins; /* the first bytes of a file of this format */
    size_t len;
    bool exact;                               /* is the size in the head always the picture's size? */
    void (*mend)(uint8_t *bytes, size_t len); /* makes more of the file right; NULL: nothing more */
} fuzz_row;

static void mend_webp(uint8_t *bytes, size_t len);
static void mend_png(uint8_t *bytes, size_t len);

/* tools/fuzz takes the names from these lines. */
static const fuzz_row rows[] = {
    {"bmp", &bmp_format, "BM", 2, true, NULL},
    {"gif", &gif_format, "GIF89a", 6, true, NULL},
    {"jpeg", &jpeg_format, "\xff\xd8\xff", 3, false, NULL},
    {"png", &png_format, "\x89PNG\r\n\x1a\n", 8, true, mend_png},
    {"webp", &webp_format, "RIFF\0\0\0\0WEBP", 12, true, mend_webp},
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const fuzz_row *row_of(const picture_format *format)
{
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        if (rows[i].format == format)
            return &rows[i];
    return NULL;
}

static const fuzz_row *row_named(const char *name)
{
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; picture_formats[i]; i++)
        if (!row_of(picture_formats[i]))
            abort();
    if (!row_named(FUZZ_PICTURE))
        abort();
    return 0;
}

/* The length of the file after the first four bytes, little end first. */
static void mend_webp(uint8_t *bytes, size_t len)
{
    for (int i = 0; i < 4; i++)
        bytes[4 + i] = (uint8_t)((len - 8) >> 8 * i);
}

static size_t be32(const uint8_t *at)
{
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

/* The checksums of all chunks. A chunk: length, kind, content, checksum. */
static void mend_png(uint8_t *bytes, size_t len)
{
    for (size_t at = 8; at + 12 <= len;) {
        size_t n = be32(bytes + at);
        if (n > len - at - 12)
            break;
        uint32_t sum = (uint32_t)crc32(0, bytes + at + 4, (uInt)n + 4);
        for (int i = 0; i < 4; i++)
            bytes[at + 8 + n + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += n + 12;
    }
}

static uint32_t by_ctx(void *ctx, uint32_t height, uint32_t width)
{
    (void)height;
    (void)width;
    return *(uint32_t *)ctx;
}

/* At reduced size, by 1, 2, 4 or 8 as the last byte says: refused as the full picture is, and of the size to expect.
 * h = 0: it was refused. */
static void decode_reduced(const uint8_t *bytes, size_t len, uint32_t h, uint32_t w)
{
    uint32_t by = len ? 1u << (bytes[len - 1] & 3) : 1;
    char why[WHY_LEN] = "";
    picture p;

    bool good = picture_decode_reduced(&p, bytes, len, FEW_PIXELS, &(picture_wish){by_ctx, &by}, why);
    if (good != (h > 0) || (!good && !why[0]))
        abort();
    if (!good)
        return;
    uint32_t is_by = p.reduced_by ? p.reduced_by : 1; /* 1: also of a format that has no reduced size */
    if ((is_by != 1 && is_by != by) || p.height != (h + is_by - 1) / is_by || p.width != (w + is_by - 1) / is_by)
        abort();
    volatile uint8_t last = p.bytes[(p.height - 1) * p.stride + p.width * 3 - 1];
    (void)last;
}

static void decode(const fuzz_row *row, const uint8_t *bytes, size_t len)
{
    char why[WHY_LEN] = "";
    uint32_t h, w;
    picture p;

    if (!picture_decode(&p, bytes, len, FEW_PIXELS, why)) {
        if (!why[0])
            abort();
        decode_reduced(bytes, len, 0, 0);
        return;
    }
    if (p.planes != 3 || (uint64_t)p.height * p.width > FEW_PIXELS || !p.height || !p.width)
        abort();
    bool sized = picture_size(bytes, len, &h, &w);
    if (sized && (!h || !w))
        abort();
    if (row->format->recognises(bytes, len) && row->exact && (!sized || h != p.height || w != p.width))
        abort();
    volatile uint8_t last = p.bytes[(p.height - 1) * p.stride + p.width * 3 - 1];
    (void)last;
    decode_reduced(bytes, len, p.height, p.width);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const fuzz_row *row = row_named(FUZZ_PICTURE);

    decode(row, bytes, len);
    if (len < row->len)
        return 0;
    uint8_t *fixed = malloc(len);
    memcpy(fixed, bytes, len);
    memcpy(fixed, row->begins, row->len);
    if (row->mend)
        row->mend(fixed, len);
    decode(row, fixed, len);
    free(fixed);
    return 0;
}
