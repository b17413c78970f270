/* fuzz_gif.c -- any bytes as a GIF file: refused with a reason, or a picture within bounds. The beginning is
 * put right, or few would pass it. */
#include <stdlib.h>
#include <string.h>

#include "data/decode_int.h"

enum { FEW_PIXELS = 1 << 18, MAGIC = 6 };

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
    if (gif_format.recognises(bytes, len) &&
        (!picture_size(bytes, len, &h, &w) || h != p.height || w != p.width))
        abort();
    volatile uint8_t last = p.bytes[(p.height - 1) * p.stride + p.width * 3 - 1];
    (void)last;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    decode(bytes, len);
    if (len < MAGIC)
        return 0;
    uint8_t *fixed = malloc(len);
    memcpy(fixed, bytes, len);
    memcpy(fixed, "GIF89a", 6);
    decode(fixed, len);
    free(fixed);
    return 0;
}
