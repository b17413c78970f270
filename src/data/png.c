/* png.c -- PNG through libpng.
 *
 * As Pillow's convert("RGB"): palettes and grey become RGB, alpha is dropped, of 16 bits the upper 8 are
 * kept; 16-bit grey alone is cut off at 255 instead. Gamma and profiles are not looked at. Nothing after the
 * last row is read.
 *
 * libpng allocates for each file. Here it gets pieces of this thread's scratch memory, and heap memory only
 * when those are used up, so pictures of ordinary width allocate nothing.
 */
#include "data/decode_int.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "base/alloc.h"

enum { POOL = 256 << 10, CHUNK_MOST = 8 << 20, CHUNKS_MOST = 100 };

struct job {
    png_structp png;
    png_infop info;
    const uint8_t *at, *end; /* not yet read */
    uint8_t *pool;           /* [POOL] */
    size_t used;
    jmp_buf out;
    char *why; /* [WHY_LEN] */
};

static png_voidp take(png_structp png, png_alloc_size_t size)
{
    struct job *job = png_get_mem_ptr(png);

    if (size > POOL - job->used) {
        void *heap = co_alloc(size);
        CO_ASSERT(heap, "a sample left out for want of memory would change bits");
        return heap;
    }
    void *p = job->pool + job->used;
    job->used += (size + 15) & ~(size_t)15;
    job->used = job->used < POOL ? job->used : POOL;
    return p;
}

static void give(png_structp png, png_voidp p)
{
    struct job *job = png_get_mem_ptr(png);
    uintptr_t offset = (uintptr_t)p - (uintptr_t)job->pool;

    if (offset >= POOL)
        co_free(p);
}

_Noreturn static void give_up(png_structp png, png_const_charp what)
{
    struct job *job = png_get_error_ptr(png);

    snprintf(job->why, WHY_LEN, "%s", what);
    longjmp(job->out, 1);
}

static void remark(png_structp png, png_const_charp what) {}

static void read_bytes(png_structp png, png_bytep to, size_t want)
{
    struct job *job = png_get_io_ptr(png);

    if (want > (size_t)(job->end - job->at))
        png_error(png, "the file is cut short");
    memcpy(to, job->at, want);
    job->at += want;
}

/* Sets what libpng is to turn into what. True: rows come as 16-bit grey, for clip_grey. */
static bool ask_for_rgb(png_structp png, int colour, int depth)
{
    if (colour == PNG_COLOR_TYPE_GRAY && depth == 16)
        return true;
    if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (colour == PNG_COLOR_TYPE_GRAY && depth < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    return false;
}

/* [width,2] big-endian to [width,3] in place, from the right so that nothing is overwritten before it is
 * read. */
static void clip_grey(uint8_t *row, size_t width)
{
    for (size_t x = width; x-- > 0;) {
        uint8_t grey = row[2 * x] ? 255 : row[2 * x + 1];
        row[3 * x] = row[3 * x + 1] = row[3 * x + 2] = grey;
    }
}

static bool decode(struct job *job, picture *out, uint64_t most_pixels)
{
    png_structp png = job->png;

    png_set_user_limits(png, PICTURE_SIDE_MAX, PICTURE_SIDE_MAX);
    png_set_chunk_malloc_max(png, CHUNK_MOST);
    png_set_chunk_cache_max(png, CHUNKS_MOST);
    png_set_read_fn(png, job, read_bytes);
    png_read_info(png, job->info);
    uint32_t height = png_get_image_height(png, job->info), width = png_get_image_width(png, job->info);
    uint8_t *to = picture_room(out, height, width, most_pixels, job->why);
    if (!to)
        return false;
    bool grey = ask_for_rgb(png, png_get_color_type(png, job->info), png_get_bit_depth(png, job->info));
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, job->info);
    if (png_get_rowbytes(png, job->info) != (size_t)width * (grey ? 2 : 3))
        png_error(png, "pixels of an odd kind");
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < height; y++)
            png_read_row(png, to + y * out->stride, NULL);
    for (uint32_t y = 0; grey && y < height; y++)
        clip_grey(to + y * out->stride, width);
    return true;
}

/* The job belongs to the caller, so its members are valid after the jump. */
static bool decode_or_jump(struct job *job, picture *out, uint64_t most_pixels)
{
    if (setjmp(job->out))
        return false;
    job->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, job, give_up, remark, job, take, give);
    CO_ASSERT(job->png, "the libpng linked in is the one compiled for");
    job->info = png_create_info_struct(job->png);
    return decode(job, out, most_pixels);
}

static bool png_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN])
{
    struct job job = {.at = bytes, .end = bytes + len, .why = why};

    job.pool = scratch_get(SCRATCH_DECODER, POOL);
    bool good = decode_or_jump(&job, out, most_pixels);
    png_destroy_read_struct(&job.png, &job.info, NULL);
    return good;
}

/* --- the head ------------------------------------------------------------------------------------------- */

static bool is_png(const uint8_t *bytes, size_t len)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

    return len >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The first chunk is the header: length, "IHDR", width, height. */
static bool png_size(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width)
{
    if (len < 24)
        return false;
    *width = be32(bytes + 16);
    *height = be32(bytes + 20);
    return true;
}

const picture_format png_format = {"PNG", ".png", is_png, png_size, png_decode};
