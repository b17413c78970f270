/* pictures.h -- folders of small pictures in tests. */
#ifndef TESTS_DATA_PICTURES_H
#define TESTS_DATA_PICTURES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h>

#include "base/fs.h"
#include "data/packs.h"
#include "data/sets.h"

/* Any folders on the way to path. */
static inline void make_way(const char *path)
{
    char way[512];

    snprintf(way, sizeof way, "%s", path);
    if (strrchr(way, '/')) {
        *strrchr(way, '/') = 0;
        CHECK_OK(co_fs_mkdirs(way));
    }
}

/* A JPEG of one grey, width x height: decoded, every pixel is within 2 of it. */
static inline void put_jpeg(const char *path, unsigned width, unsigned height, int grey)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL, *row = malloc(3 * width);
    unsigned long len = 0;

    memset(row, grey, 3 * width);
    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &bytes, &len);
    j.image_width = width;
    j.image_height = height;
    j.input_components = 3;
    j.in_color_space = JCS_RGB;
    jpeg_set_defaults(&j);
    jpeg_start_compress(&j, TRUE);
    while (j.next_scanline < height)
        jpeg_write_scanlines(&j, &row, 1);
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    make_way(path);
    put_file(path, bytes, len);
    free(bytes);
    free(row);
}

/* PREFIX/CLASS/I.jpg for each class and I < n, 8 x 8: picture I of class c is of grey 10 + 20 c + I. */
static inline void put_classes(const char *prefix, const char *const *classes, int n)
{
    char path[512];

    for (int c = 0; classes[c]; c++)
        for (int i = 0; i < n; i++) {
            snprintf(path, sizeof path, "%s/%s/%d.jpg", prefix, classes[c], i);
            put_jpeg(path, 8, 8, 10 + 20 * c + i);
        }
}

static inline void put_text(const char *path, const char *text)
{
    make_way(path);
    put_file(path, text, strlen(text));
}

static inline void sh(const char *line)
{
    test_run r = test_sh("%s", line);
    CHECK(r.status == 0, "%s: %s", line, r.out);
    free(r.out);
}

#endif
