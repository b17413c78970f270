/* whiten.c -- the filters of a whitening convolution, from pictures.
 *
 * A patch is the k x k pixels of all c channels at one place: a vector p of m = c * k * k numbers. With the
 * eigenvectors e_i and eigenvalues v_i of the mean of p p^T over all patches, largest first,
 *
 *     filter i  =  e_i / sqrt(v_i + 5e-4)         filter m + i  =  - filter i            i = 0 .. m - 1
 *
 * so that the outputs are uncorrelated and each has a mean square of nearly 1. Pictures are taken as the
 * model gets them, normalised, and no mean is subtracted. This is the first layer of Keller Jordan's airbench
 * (2024), after David Page's (2019).
 *
 * Everything is summed in double in the order of the pictures, so the same pictures give the same bits
 * everywhere. Cost: 5,000 pictures of 3x32x32 and patches of 2x2 take about 0.3 s.
 */
#include "nn/nn_int.h"

#include <math.h>
#include <string.h>

#include "base/eigen.h"

static const double eps = 5e-4;

co_err co_whiten_init(co_whiten *w, const co_entry *entry, const co_io *io)
{
    const co_shape *s = &entry->shape;
    int64_t m = s->nd == 4 ? s->d[1] * s->d[2] * s->d[3] : 0;
    char filters[96], data[96];

    if (!m || m > CO_WHITEN_MOST || s->d[0] != 2 * m || s->d[2] != s->d[3] || io->x.nd != 3 ||
        io->x.d[0] != s->d[1] || io->x.d[1] < s->d[2] || io->x.d[2] < s->d[3])
        return co_fail(
            CO_EINPUT,
            "parameter %s %s cannot whiten samples of %s: for pictures [c,h,w] it must be [2m,c,k,k] with "
            "m = c * k * k, at most %d",
            entry->name, co_shape_text(filters, sizeof filters, s), co_shape_text(data, sizeof data, &io->x),
            CO_WHITEN_MOST);
    *w = (co_whiten){.c = (int)s->d[1], .k = (int)s->d[2], .h = (int)io->x.d[1], .w = (int)io->x.d[2]};
    return CO_OK;
}

static int numbers(const co_whiten *w)
{
    return w->c * w->k * w->k;
}

/* The patch of x [c,h,w] whose first pixel is (top, left). */
static void cut_patch(const co_whiten *w, const float *x, int top, int left, double *patch)
{
    for (int c = 0; c < w->c; c++)
        for (int i = 0; i < w->k; i++)
            for (int j = 0; j < w->k; j++)
                *patch++ = (double)x[(c * w->h + top + i) * w->w + left + j];
}

void co_whiten_add(co_whiten *w, const float *x, int n)
{
    int m = numbers(w);
    double patch[CO_WHITEN_MOST];

    for (int i = 0; i < n; i++, x += w->c * w->h * w->w)
        for (int top = 0; top + w->k <= w->h; top++)
            for (int left = 0; left + w->k <= w->w; left++) {
                cut_patch(w, x, top, left, patch);
                for (int a = 0; a < m; a++)
                    for (int b = 0; b <= a; b++)
                        w->product[a * m + b] += patch[a] * patch[b];
                w->patches += 1;
            }
}

void co_whiten_filters(const co_whiten *w, float *out)
{
    int m = numbers(w);
    double mean[CO_WHITEN_MOST * CO_WHITEN_MOST], value[CO_WHITEN_MOST],
        vector[CO_WHITEN_MOST * CO_WHITEN_MOST];

    for (int a = 0; a < m; a++)
        for (int b = 0; b <= a; b++)
            mean[a * m + b] = mean[b * m + a] = w->patches > 0 ? w->product[a * m + b] / w->patches : 0;
    co_eigen(mean, m, value, vector);
    for (int i = 0; i < m; i++) {
        double scale = 1 / sqrt((value[i] > 0 ? value[i] : 0) + eps);
        for (int k = 0; k < m; k++) {
            out[i * m + k] = (float)(vector[i * m + k] * scale);
            out[(m + i) * m + k] = -out[i * m + k];
        }
    }
}
