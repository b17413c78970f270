/* jpeg.c -- JPEG through libjpeg-turbo.
 *
 * The accurate integer transform and smooth ("fancy") upsampling, which libjpeg-turbo's vector code gives bit
 * for bit like its plain code: the pixels are the same on every CPU, and those of Pillow. Grey becomes RGB;
 * CMYK and YCCK are taken as Adobe writes them, inverted, as Pillow does.
 *
 * At reduced size (data.decode=reduced) the transform of a block gives 4x4, 2x2 or 1x1 pixels instead of 8x8: the
 * block's low frequencies. Its vector code gives the bits of the plain code, too.
 *
 * Each file gets a decoder of its own. Keeping one would save two microseconds, but a file without tables
 * would then be decoded with the tables of the file before it.
 *
 * libjpeg goes on after damage and fills in grey. Here a file is refused when libjpeg says that its picture
 * data are cut short or corrupt; remarks on what does not touch pixels (bytes between segments, odd profiles)
 * are passed over. A file has at most 500 scans: without a bound, a small one could keep a decoder busy for
 * hours.
 */
#include "data/decode_int.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum { ROWS = 8, MOST_SCANS = 500 };

struct job {
    struct jpeg_decompress_struct j;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    char *why; /* [WHY_LEN] */
};

_Noreturn static void give_up(j_common_ptr j)
{
    struct job *job = j->client_data;
    char text[JMSG_LENGTH_MAX];

    CO_ASSERT(j->err->msg_code != JERR_OUT_OF_MEMORY,
              "a sample left out for want of memory would change bits");
    j->err->format_message(j, text);
    snprintf(job->why, WHY_LEN, "%s", text);
    longjmp(job->out, 1);
}

static bool spoils_pixels(int remark)
{
    switch (remark) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
        return true;
    default:
        return false;
    }
}

static void remark(j_common_ptr j, int level)
{
    if (level < 0 && spoils_pixels(j->err->msg_code))
        give_up(j);
}

static void say_nothing(j_common_ptr j) {}

static void count_scans(j_common_ptr j)
{
    struct job *job = j->client_data;

    if (job->j.input_scan_number > MOST_SCANS) {
        snprintf(job->why, WHY_LEN, "more than %d scans", MOST_SCANS);
        longjmp(job->out, 1);
    }
}

static void prepare(struct job *job)
{
    job->j.err = jpeg_std_error(&job->errors);
    job->errors.error_exit = give_up;
    job->errors.emit_message = remark;
    job->errors.output_message = say_nothing;
    job->j.client_data = job;
}

/* Pillow's arithmetic: inverted, then each colour taken away from what black leaves. */
static void rgb_of_cmyk(uint8_t *rgb, const uint8_t *cmyk, size_t width)
{
    for (size_t x = 0; x < width; x++, rgb += 3, cmyk += 4)
        for (int c = 0; c < 3; c++) {
            unsigned t = (255u - cmyk[c]) * cmyk[3] + 128;
            unsigned ink = ((t >> 8) + t) >> 8;
            rgb[c] = (uint8_t)(ink > cmyk[3] ? 0 : cmyk[3] - ink);
        }
}

static void read_rgb(j_decompress_ptr j, uint8_t *to, size_t stride)
{
    while (j->output_scanline < j->output_height) {
        JSAMPROW rows[ROWS];
        JDIMENSION left = j->output_height - j->output_scanline, n = left < ROWS ? left : ROWS;
        for (JDIMENSION i = 0; i < n; i++)
            rows[i] = to + (j->output_scanline + i) * stride;
        jpeg_read_scanlines(j, rows, n);
    }
}

static void read_cmyk(j_decompress_ptr j, uint8_t *to, size_t stride)
{
    JSAMPARRAY row = j->mem->alloc_sarray((j_common_ptr)j, JPOOL_IMAGE, j->output_width * 4, 1);

    while (j->output_scanline < j->output_height) {
        uint8_t *at = to + j->output_scanline * stride;
        if (jpeg_read_scanlines(j, row, 1) == 1)
            rgb_of_cmyk(at, row[0], j->output_width);
    }
}

/* Asks for the size, and makes room for the pixels. NULL: the picture is too large. */
static uint8_t *choose_size(struct job *job, picture *out, uint64_t most_pixels, const picture_wish *wish)
{
    j_decompress_ptr j = &job->j;

    if (!picture_in_bounds(j->image_height, j->image_width, most_pixels, job->why))
        return NULL;
    j->scale_num = 1;
    j->scale_denom = wish ? wish->reduce(wish->ctx, j->image_height, j->image_width) : 1;
    jpeg_calc_output_dimensions(j);
    uint8_t *to = picture_room(out, j->output_height, j->output_width, most_pixels, job->why);
    if (to && j->scale_denom > 1) {
        out->reduced_by = j->scale_denom;
        out->full_height = j->image_height;
        out->full_width = j->image_width;
    }
    return to;
}

static bool decode(struct job *job, picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels,
                   const picture_wish *wish)
{
    j_decompress_ptr j = &job->j;

    jpeg_create_decompress(j);
    jpeg_mem_src(j, bytes, len);
    jpeg_read_header(j, TRUE);
    bool cmyk = j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK;
    j->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    j->dct_method = JDCT_ISLOW;
    j->do_fancy_upsampling = TRUE;
    uint8_t *to = choose_size(job, out, most_pixels, wish);
    if (!to)
        return false;
    job->progress.progress_monitor = count_scans;
    j->progress = &job->progress;
    jpeg_start_decompress(j);
    if (cmyk)
        read_cmyk(j, to, out->stride);
    else
        read_rgb(j, to, out->stride);
    return true; /* nothing after the last row belongs to the picture */
}

/* The job belongs to the caller, so its members are valid after the jump. */
static bool decode_or_jump(struct job *job, picture *out, const uint8_t *bytes, size_t len,
                           uint64_t most_pixels, const picture_wish *wish)
{
    return setjmp(job->out) == 0 && decode(job, out, bytes, len, most_pixels, wish);
}

static bool jpeg_decode_reduced(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels,
                                const picture_wish *wish, char why[WHY_LEN])
{
    struct job job;

    memset(&job.j, 0, sizeof job.j);
    job.progress = (struct jpeg_progress_mgr){0};
    job.why = why;
    prepare(&job);
    bool good = decode_or_jump(&job, out, bytes, len, most_pixels, wish);
    jpeg_destroy_decompress(&job.j);
    return good;
}

static bool jpeg_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN])
{
    return jpeg_decode_reduced(out, bytes, len, most_pixels, NULL, why);
}

/* --- the head ------------------------------------------------------------------------------------------- */

static bool is_jpeg(const uint8_t *bytes, size_t len)
{
    return len >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

static uint32_t be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* Segments are marker, length, content; the frame's (SOF0 to SOF15 without DHT, JPG, DAC) has the size. */
static bool jpeg_size(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width)
{
    size_t at = 2;

    while (at + 9 <= len && bytes[at] == 0xff) {
        uint8_t marker = bytes[at + 1];
        if (marker == 0xff) {
            at++;
        } else if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
            *height = be16(bytes + at + 5);
            *width = be16(bytes + at + 7);
            return true;
        } else {
            at += 2 + be16(bytes + at + 2);
        }
    }
    return false;
}

const picture_format jpeg_format = {"JPEG",    ".jpg .jpeg", is_jpeg,
                                    jpeg_size, jpeg_decode,  jpeg_decode_reduced};
