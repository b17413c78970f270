/* data_pictures.c -- makes JPEG files to load: noise over a ramp, quality 90, colours at half size (4:2:0). A file of
 * 64x64 has about 3 KB, like a photograph of that size. */
#include "bench/data_int.h"

#include <stdlib.h>

#include <jpeglib.h>

#include "base/fs.h"

enum { PICTURES = 64, CLASSES = 2, QUALITY = 90 };

/* libjpeg's own error handling ends the process: there is nothing here that a file could get wrong. */
static co_err write_jpeg(const char *path, int width, int height, uint32_t noise)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL, *row = co_alloc((size_t)width * 3); /* [width,3] */
    unsigned long len = 0;

    if (!row)
        return CO_ENOMEM;
    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &bytes, &len);
    j.image_width = (JDIMENSION)width;
    j.image_height = (JDIMENSION)height;
    j.input_components = 3;
    j.in_color_space = JCS_RGB;
    jpeg_set_defaults(&j);
    jpeg_set_quality(&j, QUALITY, TRUE);
    jpeg_start_compress(&j, TRUE);
    while (j.next_scanline < j.image_height) {
        for (int i = 0; i < width * 3; i++) {
            noise = noise * 1664525u + 1013904223u;
            row[i] = (unsigned char)(i / 2 + (int)j.next_scanline + (int)(noise >> 27));
        }
        jpeg_write_scanlines(&j, &row, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    co_err err = co_fs_write_atomic(path, bytes, len);
    free(bytes); /* libjpeg's */
    co_free(row);
    return err;
}

co_err data_pictures_make(const char *root, int width, int height)
{
    char path[128];

    for (int i = 0; i < PICTURES; i++) {
        snprintf(path, sizeof path, "%s/pictures/%d", root, i % CLASSES);
        CO_TRY(co_fs_mkdirs(path));
        snprintf(path, sizeof path, "%s/pictures/%d/%02d.jpg", root, i % CLASSES, i);
        CO_TRY(write_jpeg(path, width, height, (uint32_t)i));
    }
    return CO_OK;
}
