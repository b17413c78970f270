/* winograd_int.h -- tiles and their transforms (winograd_tiles.c, winograd_weights.c), for winograd.c. */
#ifndef CO_KERNEL_SIMD_WINOGRAD_INT_H
#define CO_KERNEL_SIMD_WINOGRAD_INT_H

#include "kernel/simd/conv_int.h"

enum { XI = 16 }; /* places of a tile */

/* Which of them a transform makes: all, or those of two of a tile's four rows. */
typedef enum { WIN_WHOLE, WIN_UPPER, WIN_LOWER } win_half;
static inline int64_t places_of(win_half half)
{
    return half == WIN_WHOLE ? XI : XI / 2;
}

/* Tiles of an image, and the four planes that the image is split into. */
typedef struct grid {
    int64_t th, tw;         /* tiles */
    int64_t border;         /* 1: the planes of an input, padded; 0: of dy */
    int64_t ph, pw, planes; /* of one plane; floats of all four */
} grid;

static inline grid grid_of(const geom *g, int64_t border)
{
    grid t = {.th = (g->h + 1) / 2, .tw = (g->w + 1) / 2, .border = border};
    t.ph = t.th + border;
    t.pw = t.tw + border;
    t.planes = 4 * t.ph * t.pw;
    return t;
}

static inline int64_t round_to(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* Some tiles of a group of images: n from `first` on, of `channels` channels; images are `stride` floats apart.
 * Transforms read up to NR - 1 tiles more than n, which repeat the last one. */
typedef struct tiles {
    const grid *t;
    const float *planes;
    int64_t channels, stride, first, n;
    win_half half; /* of the places: xi counts from the first of them */
} tiles;

/* Splits `channels` images of h x w. Borders, and what lies past an odd size, are not written: they must be zero. */
void LEVEL(win_split)(float *planes, const float *src, int64_t channels, const geom *g, const grid *t);
/* Bt d B for a product whose columns are tiles: u[xi][sliver of NR tiles][channel][NR]. `step`: between two xi. */
void LEVEL(win_input)(float *u, int64_t step, const tiles *in);
/* Bt d B for a product over tiles: u[xi][sliver of NR channels][tile][NR]; `slab` floats between two slivers. */
void LEVEL(win_input_turned)(float *u, int64_t step, int64_t slab, const tiles *in);
/* A dY At for the same product: z[xi][sliver of rows][tile][MR]. */
void LEVEL(win_dy_turned)(float *z, int64_t step, int64_t slab, const tiles *in);
/* At M A of m[xi][sliver of NR tiles][row][NR], for all rows, to y: the output of the group's first image. */
void LEVEL(win_output)(float *y, const float *m, int64_t step, int64_t rows, const float *bias, const geom *g,
                       const tiles *at);

/* G g Gt of a sliver of rows: taps[channel][9][MR] -> v[xi][channel][MR], `step` floats between two xi. `back`: the
 * taps turned by 180 degrees. Reads and writes up to VW - MR floats past the last channel. */
void LEVEL(win_weights)(float *v, int64_t step, const float *taps, int64_t channels, bool back);
/* Gt S G of one row of dw: s[xi][sliver of NR channels][..][NR], `slab` floats between two slivers, -> dw [C,3,3],
 * stored or added. */
void LEVEL(win_dw_row)(float *dw, const float *s, int64_t step, int64_t slab, int64_t channels, bool add);

#define win_split        LEVEL(win_split)
#define win_input        LEVEL(win_input)
#define win_input_turned LEVEL(win_input_turned)
#define win_dy_turned    LEVEL(win_dy_turned)
#define win_output       LEVEL(win_output)
#define win_weights      LEVEL(win_weights)
#define win_dw_row       LEVEL(win_dw_row)

#endif
