/* conv_int.h -- the shapes of a convolution, the scratch of a call, and Winograd's kernels (winograd.c). */
#ifndef CO_KERNEL_SIMD_CONV_INT_H
#define CO_KERNEL_SIMD_CONV_INT_H

#include <stdbool.h>

#include "kernel/simd/gemm.h"

typedef struct geom {
    int64_t n, c, h, w; /* x */
    int64_t o, oh, ow;  /* y */
    int64_t kh, kw, stride, pad;
} geom;

/* One function both lays out the scratch and, with base NULL, computes its size. */
typedef struct space {
    char *base;
    size_t used;
} space;

static inline void *take(space *s, int64_t n, size_t size)
{
    void *p = s->base ? s->base + s->used : NULL;
    s->used += ((size_t)n * size + 63) / 64 * 64;
    return p;
}

/* The scratch of a call: what all threads share, and what each has for itself. */
typedef struct spaces {
    space shared, own;
} spaces;

/* A row of the image into a row of the even and a row of the odd columns. */
static inline void split_row(float *even, float *odd, const float *src, int64_t w)
{
    int64_t x = 0;

    for (; x + 2 * VW <= w; x += 2 * VW) {
        v_store(even + x / 2, v_load_even(src + x));
        v_store(odd + x / 2, v_load_even(src + x + 1));
    }
    for (; x < w; x += VW) {
        int64_t n = w - x < VW ? w - x : VW;
        vf first, second;
        v_split(&first, &second, v_load_n(src + x, n));
        v_store_few(even + x / 2, (n + 1) / 2, first);
        v_store_few(odd + x / 2, n / 2, second);
    }
}

/* The input as products read it (conv_input.c): a plane for each channel, of `rows` rows of `parts` parts. Two outputs
 * that lie side by side meet pixels `step` apart. If nothing has to be padded or dealt, it is the image itself. */
typedef struct input {
    int64_t parts, part, row, rows, plane, step;
    bool copied;
} input;
input LEVEL(input_of)(const geom *g);
/* t[(c, kh, kw)]: from the pixel of an output's first tap to that of this one. Rises if there is one part. */
void LEVEL(input_taps)(int32_t *t, const geom *g, const input *in);
/* Borders are not written: they must be zero. */
void LEVEL(input_put)(float *dst, const float *src, int64_t planes, const geom *g, const input *in);
/* Copies planes of h x w into planes of hp x wp, with source pixel (0, 0) at (top, left). A negative top or
 * left cuts the source. The border is not written: it is zero from the start of the call. */
void LEVEL(pad_planes)(float *dst, const float *src, int64_t planes, int64_t h, int64_t w, int64_t top,
                       int64_t left, int64_t hp, int64_t wp);
#define input_of   LEVEL(input_of)
#define input_taps LEVEL(input_taps)
#define input_put  LEVEL(input_put)
#define pad_planes LEVEL(pad_planes)

/* Small pictures (conv_small.c): more than a fifth of the products would be with padding, and are left out.
 * `back`: the gradient of the input. */
bool LEVEL(small_fits)(const geom *g);
spaces LEVEL(small_scratch)(const geom *g, bool back, int nth);
/* Thread ith's rows of the output's channels, of all images. */
typedef struct small_part {
    const float *in, *w, *bias;
    float *out;
    bool back;
    int ith, nth;
} small_part;
void LEVEL(small_prepare)(const geom *g, const small_part *part, spaces s); /* only if nth > 1 */
void LEVEL(small_run)(const geom *g, const small_part *part, spaces s);

#define small_prepare LEVEL(small_prepare)
#define small_fits    LEVEL(small_fits)
#define small_scratch LEVEL(small_scratch)
#define small_run     LEVEL(small_run)

/* Thread ith's part of a gradient of weights, stored to dw [O,C,KH,KW] or added to what it holds. */
typedef struct dw_part {
    const float *dy, *x;
    float *dw;
    bool add;
    int ith, nth;
} dw_part;
/* sums[tap * step + channel] to dw[channel][tap], for n channels (taps.c). */
void LEVEL(taps_give)(float *dw, const float *sums, int64_t step, int64_t taps, int64_t n, bool add);

#define taps_give LEVEL(taps_give)

/* The gradient of the weights of small pictures (conv_small_dw.c). */
bool LEVEL(small_dw_fits)(const geom *g);
spaces LEVEL(small_dw_scratch)(const geom *g);
void LEVEL(small_dw_prepare)(const geom *g, const dw_part *part, spaces s);
void LEVEL(small_dw)(const geom *g, const dw_part *part, spaces s);

#define small_dw_fits    LEVEL(small_dw_fits)
#define small_dw_prepare LEVEL(small_dw_prepare)
#define small_dw_scratch LEVEL(small_dw_scratch)
#define small_dw         LEVEL(small_dw)

/* Is the convolution computed by Winograd's algorithm? A formula of the shape. */
bool LEVEL(win_fits)(const geom *g);
/* How much of both scratches they use. Each is run twice: all threads are through with prepare before the first
 * begins with the other. */
spaces LEVEL(win_scratch)(const geom *g);
spaces LEVEL(win_dw_scratch)(const geom *g);
/* Thread ith's part of out [images,O,H,W] of in [images,C,H,W]. `back`: the gradient of the input, whose w is
 * [C,O,3,3]. */
typedef struct win_part {
    const float *in, *w, *bias;
    float *out;
    bool back;
    int ith, nth;
} win_part;
void LEVEL(win_prepare)(const geom *g, const win_part *part, spaces s);
void LEVEL(win_run)(const geom *g, const win_part *part, spaces s);
void LEVEL(win_dw_prepare)(const geom *g, const dw_part *part, spaces s);
void LEVEL(win_dw)(const geom *g, const dw_part *part, spaces s);

#define win_fits       LEVEL(win_fits)
#define win_prepare    LEVEL(win_prepare)
#define win_dw_prepare LEVEL(win_dw_prepare)
#define win_scratch    LEVEL(win_scratch)
#define win_dw_scratch LEVEL(win_dw_scratch)
#define win_run        LEVEL(win_run)
#define win_dw         LEVEL(win_dw)

#endif
