/* resample.c -- a position embedding for pictures of one size, made from one for pictures of another.
 *
 * The tensor is [1, 1 + h * w, d]: a row for the class token, which is kept, then a row per patch, row by row
 * of the picture. The patches' rows are resampled as an image of d channels, as timm's resample_abs_pos_embed
 * does it (bicubic with antialiasing): first along the rows, then along the columns. One place of the result
 * is
 *
 *     sum over j of c((j + 1/2 - centre) / s) x[j] / sum of the c,   centre = (i + 1/2) * old / new
 *
 * with Keys' cubic c for a = -1/2, s = max(1, old / new), and j within 2 s of the centre and inside the
 * picture. The file does not say which grid its rows are: it is taken for a square, and a tensor of the
 * entry's own shape is taken as it is, both as timm does when it loads. Everything is computed in double, in
 * index order, and rounded once: the same bits everywhere.
 */
#include "ckpt/ckpt_int.h"

#include <string.h>

enum { MOST_PLACES = 1 << 24 };

/* The side of a square of n places; 0 if n is no square. */
static int64_t side_of(int64_t n)
{
    int64_t side = 1;

    while (side * side < n)
        side++;
    return side * side == n ? side : 0;
}

int64_t resample_side(const co_entry *e, const co_shape *there)
{
    const co_shape *here = &e->shape;

    if (!e->grid[0] || there->nd != 3 || there->d[0] != 1 || there->d[2] != here->d[2] || there->d[1] < 2 ||
        there->d[1] > MOST_PLACES || co_shape_eq(there, here))
        return 0;
    return side_of(there->d[1] - 1);
}

static double cubic(double x)
{
    const double a = -0.5;

    x = x < 0 ? -x : x;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Which places of the old axis make up place i of the new one: [first, first + n). Their weights go into
 * weight[n], which has room for the old axis. */
static int64_t taps(double *weight, int64_t *first, int64_t i, int64_t old, int64_t new)
{
    double scale = (double)old / (double)new, spread = scale > 1 ? scale : 1;
    double centre = ((double)i + 0.5) * scale, sum = 0;
    int64_t lo = (int64_t)(centre - 2 * spread + 0.5), hi = (int64_t)(centre + 2 * spread + 0.5);

    lo = centre - 2 * spread + 0.5 < 0 ? 0 : lo;
    hi = hi > old ? old : hi;
    for (int64_t j = lo; j < hi; j++)
        sum += weight[j - lo] = cubic(((double)j + 0.5 - centre) / spread);
    for (int64_t j = lo; j < hi; j++)
        weight[j - lo] /= sum;
    *first = lo;
    return hi - lo;
}

/* Resamples the middle axis: y [outer, new, inner] from x [outer, old, inner]. weight: room for the old axis.
 */
static void along(double *y, int64_t new, const double *x, int64_t old, int64_t outer, int64_t inner,
                  double *weight)
{
    for (int64_t i = 0; i < new; i++) {
        int64_t first, n = taps(weight, &first, i, old, new);
        for (int64_t o = 0; o < outer; o++)
            for (int64_t k = 0; k < inner; k++) {
                double sum = 0;
                for (int64_t j = 0; j < n; j++)
                    sum += weight[j] * x[(o * old + first + j) * inner + k];
                y[(o * new + i) * inner + k] = sum;
            }
    }
}

co_err resample(float *dst, const co_entry *e, const float *src, int64_t side)
{
    int64_t d = e->shape.d[2], h = e->grid[0], w = e->grid[1];
    double *x = co_array((size_t)(side * side * d), sizeof *x);    /* [side, side, d] */
    double *wide = co_array((size_t)(side * w * d), sizeof *wide); /* [side, w, d] */
    double *y = co_array((size_t)(h * w * d), sizeof *y);          /* [h, w, d] */
    double *weight = co_array((size_t)side, sizeof *weight);
    co_err err = x && wide && y && weight ? CO_OK : CO_ENOMEM;

    if (!err) {
        for (int64_t i = 0; i < side * side * d; i++)
            x[i] = (double)src[d + i];
        along(wide, w, x, side, side, d, weight);
        along(y, h, wide, side, 1, w * d, weight);
        memcpy(dst, src, (size_t)d * sizeof *dst);
        for (int64_t i = 0; i < h * w * d; i++)
            dst[d + i] = (float)y[i];
    }
    co_free(x);
    co_free(wide);
    co_free(y);
    co_free(weight);
    return err;
}
