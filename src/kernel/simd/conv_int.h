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
/* sums[tap * step + channel] to dw[channel][tap], for n channels (taps.c). Reads up to VW - 1 channels more. */
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
