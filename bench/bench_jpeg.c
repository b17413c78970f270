/* bench_jpeg.c -- JPEG pictures a second on one core: read, decoded and made into samples, as a loader thread
 * does it.
 *
 *     bench_jpeg [DIR]          an image folder; default: 64 made-up pictures of 64x64 (quality 90, 4:2:0)
 *
 * Three tasks: the pictures at their own size (64x64), the pictures with a random resized crop to that size
 * and a flip, and decoding alone. Time is the CPU time of this thread, the median of ROUNDS rounds. The
 * output is one JSON object a line:
 *
 *     {"task":"decode + transform","images":10000,"images_per_s":11000,"decode_us":70.1,"augment_us":15.2}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "data/data.h"

enum { ROUNDS = 5, SIDE = 64, SLICE = 64, MADE_UP = 64, PER_ROUND = 4096 };

static void stop(const char *what)
{
    fprintf(stderr, "bench_jpeg: %s: %s\n", what, co_errmsg());
    exit(1);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Noise over a ramp. The file has about 3 KB, like a photograph of that size. */
static void put_jpeg(const char *path, uint32_t r)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL, pixels[SIDE * 3], *row = pixels;
    unsigned long len = 0;

    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &bytes, &len);
    j.image_width = j.image_height = SIDE;
    j.input_components = 3;
    j.in_color_space = JCS_RGB;
    jpeg_set_defaults(&j);
    jpeg_set_quality(&j, 90, TRUE);
    jpeg_start_compress(&j, TRUE);
    while (j.next_scanline < SIDE) {
        for (int i = 0; i < SIDE * 3; i++) {
            r = r * 1664525u + 1013904223u;
            pixels[i] = (unsigned char)(i / 2 + (int)j.next_scanline + (int)(r >> 27));
        }
        jpeg_write_scanlines(&j, &row, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    if (co_fs_write_atomic(path, bytes, len))
        stop(path);
    free(bytes);
}

static void make_up(char *dir)
{
    char path[256];

    if (!mkdtemp(dir))
        stop("mkdtemp");
    for (uint32_t i = 0; i < MADE_UP; i++) {
        snprintf(path, sizeof path, "%s/%u", dir, i % 2);
        if (co_fs_mkdirs(path))
            stop(path);
        snprintf(path, sizeof path, "%s/%u/%u.jpg", dir, i % 2, i);
        put_jpeg(path, i);
    }
}

static co_dataset *open_set(const char *dir, const char *augment)
{
    const co_dataset_def *def = co_dataset_find("imagefolder");
    const char *const given[][2] = {{"dir", dir}, {"augment", augment}, {"resize", "64x64"}, {"crop", "64"}};
    void *cfg = co_zalloc(def->cfg_size);
    co_dataset *d;

    if (!cfg || co_options_default(def->options, cfg))
        stop("options");
    for (size_t i = 0; i < CO_COUNT(given); i++)
        if (co_option_set(co_option_find(def->options, given[i][0]), cfg, given[i][0], given[i][1]))
            stop(given[i][0]);
    if (co_dataset_open(&d, def, cfg))
        stop(dir);
    co_options_fini(def->options, cfg);
    co_free(cfg);
    return d;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *task, const co_dataset *d, bool sample)
{
    static float x[SLICE * 3 * SIDE * SIDE];
    double rate[ROUNDS], decode[ROUNDS], augment[ROUNDS];

    for (uint32_t round = 0; round <= ROUNDS; round++) { /* the first to warm up */
        co_fill_times t = {0};
        co_draw draw = {.seed = 1, .epoch = round, .augment = true, .times = &t};
        uint64_t t0 = cpu_ns();
        for (uint32_t i = 0; i < PER_ROUND; i += SLICE) {
            uint32_t ids[SLICE];
            for (uint32_t k = 0; k < SLICE; k++)
                ids[k] = (i + k) % d->count[CO_SPLIT_TRAIN];
            if (d->fill(d, CO_SPLIT_TRAIN, ids, (co_slice_shape){SLICE, 0}, &draw,
                        &(co_slice_dst){.x = sample ? x : NULL}))
                stop("a picture could not be read");
        }
        uint64_t ns = cpu_ns() - t0;
        if (round == 0)
            continue;
        rate[round - 1] = PER_ROUND * 1e9 / (double)ns;
        decode[round - 1] = (double)t.decode_ns / PER_ROUND / 1e3;
        augment[round - 1] = (double)t.augment_ns / PER_ROUND / 1e3;
    }
    qsort(rate, ROUNDS, sizeof *rate, by_value);
    qsort(decode, ROUNDS, sizeof *decode, by_value);
    qsort(augment, ROUNDS, sizeof *augment, by_value);
    printf("{\"task\":\"%s\",\"images\":%d,\"images_per_s\":%.0f,\"decode_us\":%.1f,\"augment_us\":%.1f}\n",
           task, PER_ROUND, rate[ROUNDS / 2], decode[ROUNDS / 2], augment[ROUNDS / 2]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char made[] = "/tmp/bench-jpeg-XXXXXX";
    const char *dir = argc > 1 ? argv[1] : made;

    if (argc <= 1)
        make_up(made);
    co_dataset *plain = open_set(dir, "none"), *varied = open_set(dir, "imagenet");
    measure("jpeg 64x64: decode", plain, false);
    measure("jpeg 64x64: decode + normalise", plain, true);
    measure("jpeg 64x64: decode + random resized crop + flip + normalise", varied, true);
    co_dataset_close(varied);
    co_dataset_close(plain);
    if (argc <= 1 && co_fs_remove_tree(made))
        stop(made);
    return 0;
}
