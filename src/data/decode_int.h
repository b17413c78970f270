/* decode_int.h -- JPEG and PNG files to 8-bit RGB, as Pillow's convert("RGB") gives them.
 *
 * What a file is says its beginning, not its name. Pixels are a function of the bytes alone: the same on every CPU,
 * in every thread, whatever was decoded before.
 */
#ifndef CO_DATA_DECODE_INT_H
#define CO_DATA_DECODE_INT_H

#include "data/transform_int.h"

enum { WHY_LEN = 256, MOST_PIXELS = 1 << 26 };

/* *out has 3 planes and lies in this thread's SCRATCH_PICTURE. False: `why` says what is wrong with the file. */
bool picture_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN]);

/* Its size, by what the file's head says, which may be all that is right about it. `len` may be less than the file. */
bool picture_size(const uint8_t *bytes, size_t len, uint32_t *height, uint32_t *width);

/* --- for decode.c ----------------------------------------------------------------------------------------------- */
bool jpeg_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN]);
bool png_decode(picture *out, const uint8_t *bytes, size_t len, uint64_t most_pixels, char why[WHY_LEN]);
/* Room for [height,width,3] if the size is in bounds, else NULL with the reason. */
uint8_t *picture_room(picture *out, uint64_t height, uint64_t width, uint64_t most_pixels, char why[WHY_LEN]);

#endif
