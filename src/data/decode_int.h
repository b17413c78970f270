/* decode_int.h -- picture files to 8-bit RGB, as Pillow's convert("RGB") gives them.
 *
 * A format is a row of picture_formats and a file of its own. The first bytes of a file decide which format
 * it has; its name does not matter. Pixels are a function of the bytes alone: the same on every CPU, in every
 * thread, whatever was decoded before.
 *
 *     picture p;
 *     char why[WHY_LEN];
 *     if (!picture_decode(&p, bytes, len, MOST_PIXELS, why))
 *         return co_fail(CO_EINPUT, "%s: %s", path, why);
 */
#ifndef CO_DATA_DECODE_INT_H
#define CO_DATA_DECODE_INT_H

#include "data/transform_int.h"

enum { WHY_LEN = 256, MOST_PIXELS = 1 << 26 };

/* Chooses the size at which a file is decoded. `reduce` is called once, with the size that the file has, and
 * says how many times smaller the picture may be in both directions: 1, 2, 4 or 8. */
typedef struct picture_wish {
    uint32_t (*reduce)(void *ctx, uint32_t height, uint32_t width);
    void *ctx;
} picture_wish;

typedef struct picture_format {
    const char *name;    /* "JPEG" */
    const char *endings; /* of its files' names, separated by blanks: ".jpg .jpeg" */
    bool (*recognises)(const uint8_t *bytes, size_t len);
    /* The size that the file's head claims, before anything is decoded. `bytes` may be only the beginning of
     * the file. */
    bool (*size)(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width);
    /* Writes the pixels into picture_room. False: `why` says what is wrong with the file. */
    bool (*decode)(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN]);
    /* The same at the size that `wish` chooses. NULL: this format is always decoded at full size. */
    bool (*decode_reduced)(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels,
                           const picture_wish *wish, char why[WHY_LEN]);
} picture_format;

extern const picture_format jpeg_format, png_format, webp_format, bmp_format, gif_format;
extern const picture_format *const picture_formats[];     /* NULL-terminated */
#define PICTURE_ENDINGS ".jpg .jpeg .png .webp .bmp .gif" /* those of all rows, for messages */

/* Is this the name of a picture that can be read, by its ending? */
bool picture_named(const char *name);
/* The ending of a picture format that is not read (".tiff"), as a place in unsupported_endings; -1: it is
 * none. */
int unsupported_named(const char *name);
enum { UNSUPPORTED = 20 };
extern const char *const unsupported_endings[UNSUPPORTED];

/* *out has 3 planes and lies in this thread's SCRATCH_PICTURE. False: `why` says what is wrong with the
 * file. */
bool picture_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN]);

/* The same at the size that `wish` chooses, if the format can do that. out->full_height and full_width are then
 * the file's; which files are refused does not depend on the wish. */
bool picture_decode_reduced(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels,
                            const picture_wish *wish, char why[WHY_LEN]);
/* As data.decode says: with `reduced`, no larger than transform t of sample `id` needs it. */
bool picture_decode_for(picture *out, const uint8_t *bytes, size_t len, const transform *t,
                        const co_draw *draw, uint32_t id, char why[WHY_LEN]);

/* Its size by the file's head, which may be the only good part of the file. `len` may be less than the file's
 * length. */
bool picture_size(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width);

/* For the formats: is a picture of this size read? False with the reason. */
bool picture_in_bounds(uint64_t height, uint64_t width, uint64_t most_pixels, char why[WHY_LEN]);
/* For the formats: memory for [height,width,3] if the size is in bounds, else NULL with the reason. */
uint8_t *picture_room(picture *out, uint64_t height, uint64_t width, uint64_t most_pixels, char why[WHY_LEN]);

#endif
