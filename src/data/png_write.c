/* png_write.c -- PNG files of samples, through libpng's simple interface. */
#include "data/data.h"

#include <png.h>
#include <string.h>

#include "base/alloc.h"

co_err co_png_write(char **out, size_t *len, const uint8_t *pixels, int width, int height, int channels)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    png_alloc_size_t most = PNG_IMAGE_PNG_SIZE_MAX(image);
    char *bytes = co_alloc(most);

    if (!bytes)
        return CO_ENOMEM;
    if (!png_image_write_to_memory(&image, bytes, &most, 0, pixels, 0, NULL)) {
        co_free(bytes);
        return co_fail(CO_EFAIL, "PNG of %d x %d: %s", width, height, image.message);
    }
    *out = bytes;
    *len = most;
    return CO_OK;
}
