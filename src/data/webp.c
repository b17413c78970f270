/* webp.c -- WebP through libwebp, lossy and lossless, still pictures.
 *
 * Alpha is dropped, as Pillow's convert("RGB") does. libwebp's vector code gives the pixels of its plain
 * code, bit for bit, so they are the same on every CPU. Animations are refused: only still pictures are read.
 * libwebp takes its memory from the heap for each file: up to 4 bytes a pixel, of a picture whose size is in
 * bounds.
 */
#include "data/decode_int.h"

#include <stdio.h>
#include <string.h>

#include <webp/decode.h>

static bool is_webp(const uint8_t *bytes, size_t len)
{
    return len >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

static const char *status_text(VP8StatusCode status)
{
    switch (status) {
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return "the file is cut short";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "a WebP file of a kind that libwebp does not read";
    default:
        return "the WebP data are corrupt";
    }
}

static bool refuse(char why[WHY_LEN], const char *reason)
{
    snprintf(why, WHY_LEN, "%s", reason);
    return false;
}

static bool webp_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN])
{
    WebPDecoderConfig config;

    CO_ASSERT(WebPInitDecoderConfig(&config), "the libwebp linked in is the one compiled for");
    VP8StatusCode status = WebPGetFeatures(bytes, len, &config.input);
    if (status != VP8_STATUS_OK)
        return refuse(why, status_text(status));
    if (config.input.has_animation)
        return refuse(why, "an animated WebP file; only still pictures are read");
    uint8_t *to =
        picture_room(out, (uint64_t)config.input.height, (uint64_t)config.input.width, most_pixels, why);
    if (!to)
        return false;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = to;
    config.output.u.RGBA.stride = (int)out->stride;
    config.output.u.RGBA.size = out->stride * out->height;
    status = WebPDecode(bytes, len, &config);
    WebPFreeDecBuffer(&config.output);
    CO_ASSERT(status != VP8_STATUS_OUT_OF_MEMORY, "a sample left out for lack of memory would change bits");
    return status == VP8_STATUS_OK || refuse(why, status_text(status));
}

static bool webp_size(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width)
{
    WebPBitstreamFeatures features;

    if (WebPGetFeatures(bytes, len, &features) != VP8_STATUS_OK)
        return false;
    *height = (uint32_t)features.height;
    *width = (uint32_t)features.width;
    return true;
}

const picture_format webp_format = {"WebP", ".webp", is_webp, webp_size, webp_decode};
