/* resize_int.h -- the two passes of a resize: plain, and eight numbers at a time with AVX2. Whole numbers:
 * the same bits. */
#ifndef CO_DATA_AUGMENT_RESIZE_INT_H
#define CO_DATA_AUGMENT_RESIZE_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAP_BITS = 22, TAP_HALF = 1 << (TAP_BITS - 1) };

/* For each place of one axis of the result: the weights, in units of 2^-TAP_BITS, of inputs [first, first +
 * n). */
typedef struct taps {
    int32_t *first, *n; /* [out] */
    int32_t *weight;    /* [out][most] */
    int32_t most;
} taps;

typedef struct resize_passes {
    /* A row of `width` pixels of three bytes. May read a byte past the last pixel of `in` and write one past
     * `out`. */
    void (*row_of_colour)(uint8_t *out, const uint8_t *in, uint32_t width, const taps *t);
    /* A row of `len` bytes out of n rows. */
    void (*columns)(uint8_t *out, const uint8_t *in, size_t stride, size_t len, const int32_t *weight,
                    int32_t n);
} resize_passes;

extern const resize_passes resize_plain;
const resize_passes *resize_wide(void); /* NULL: this CPU has no AVX2 */

#endif
