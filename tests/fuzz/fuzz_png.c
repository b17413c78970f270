/* fuzz_png.c -- any bytes as a PNG file: refused with a reason, or a picture within bounds. The beginning and
 * the checksums of all chunks are put right, or few would pass them. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/decode_int.h"

enum { FEW_PIXELS = 1 << 18, MAGIC = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void decode(const uint8_t *bytes, size_t len)
{
    char why[WHY_LEN] = "";
    uint32_t h, w;
    picture p;

    if (!picture_decode(&p, bytes, len, FEW_PIXELS, why)) {
        if (!why[0])
            abort();
        return;
    }
    if (p.planes != 3 || (uint64_t)p.height * p.width > FEW_PIXELS || !p.height || !p.width)
        abort();
    if (bytes[0] == 0x89 && (!picture_size(bytes, len, &h, &w) || h != p.height || w != p.width))
        abort();
    volatile uint8_t last = p.bytes[(p.height - 1) * p.stride + p.width * 3 - 1];
    (void)last;
}

static size_t be32(const uint8_t *at)
{
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    decode(bytes, len);
    if (len < MAGIC)
        return 0;
    uint8_t *fixed = malloc(len);
    memcpy(fixed, bytes, len);
    memcpy(fixed, "\x89PNG\r\n\x1a\n", MAGIC);
    for (size_t at = MAGIC; at + 12 <= len;) { /* length, kind, content, checksum */
        size_t n = be32(fixed + at);
        if (n > len - at - 12)
            break;
        uint32_t sum = (uint32_t)crc32(0, fixed + at + 4, (uInt)n + 4);
        for (int i = 0; i < 4; i++)
            fixed[at + 8 + n + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += n + 12;
    }
    decode(fixed, len);
    free(fixed);
    return 0;
}
