/* transform_mix.c -- MixUp and CutMix (Zhang et al. 2018, Yun et al. 2019), as torchvision.transforms.v2 has
 * them.
 *
 * Sample i of a slice is mixed with sample i - 1, the first with the last, all with one lambda of Beta(alpha,
 * alpha):
 *
 *     MixUp     x = (1 - lambda) x[i-1] + lambda x[i]
 *     CutMix    a box of (1 - lambda) of the area, about a random pixel and cut at the border, is x[i-1]'s;
 *               lambda is then what is left of x[i]
 *
 * A slice is computed alone, so the result does not depend on who computes it. Everything is drawn from
 * (seed, epoch, id of the slice's first sample), stream "transform.mix" of purpose AUGMENT.
 *
 * Beta is X / (X + Y) with X, Y of Gamma(alpha): Marsaglia and Tsang (2000) for alpha + 1 or, from 1 on,
 * alpha itself, normals by Box-Muller; below 1 times U^(1 / alpha). Logarithms are kept, so that small alphas
 * do not underflow.
 */
#include "data/transform_int.h"

#include <math.h>
#include <string.h>

#include "base/maths.h"
#include "data/dice_int.h"

static double unit(dice *d) /* (0, 1) */
{
    return (dice_word(d) + 0.5) * 0x1p-32;
}

static double normal(dice *d)
{
    double r = sqrt(-2 * co_log(unit(d)));

    return r * co_cos(0x1.921fb54442d18p+2 * unit(d));
}

/* Logarithm of a Gamma(alpha) number. */
static double log_gamma_draw(dice *d, double alpha)
{
    double a = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * a), boost;

    boost = alpha < 1 ? co_log(unit(d)) / alpha : 0;
    for (;;) {
        double z = normal(d), v = 1 + c * z, u = unit(d);
        if (v <= 0)
            continue;
        v = v * v * v;
        if (co_log(u) < 0.5 * z * z + a - a * v + a * co_log(v))
            return co_log(a * v) + boost;
    }
}

static double beta_draw(dice *d, double alpha)
{
    double x = log_gamma_draw(d, alpha), y = log_gamma_draw(d, alpha);

    return 1 / (1 + co_exp(y - x));
}

static void mix_up(float *x, const float *other, size_t numbers, float lambda, float rest)
{
    for (size_t i = 0; i < numbers; i++)
        x[i] = other[i] * rest + x[i] * lambda;
}

static void cut_mix(float *x, const float *other, const transform *t, box b)
{
    for (uint32_t k = 0; k < t->planes; k++)
        for (int32_t y = 0; y < b.height; y++) {
            size_t at = ((size_t)k * t->height + (size_t)(b.top + y)) * t->width + (size_t)b.left;
            memcpy(x + at, other + at, (size_t)b.width * sizeof *x);
        }
}

bool transform_draw_mix(struct mix_drawn *out, const transform *t, const co_draw *draw, uint32_t first_id)
{
    dice d = dice_of(draw, "transform.mix", first_id);
    int64_t W = t->width, H = t->height;

    if (!draw->augment || !t->mix)
        return false;
    uint32_t coin = dice_below(&d, 2);
    bool cuts = t->mixup > 0 && t->cutmix > 0 ? coin : t->cutmix > 0;
    double lambda = beta_draw(&d, cuts ? t->cutmix : t->mixup);
    *out = (struct mix_drawn){.cuts = cuts, .lambda = lambda};
    if (cuts) {
        double r = 0.5 * sqrt(1 - lambda);
        int64_t x = dice_below(&d, t->width), y = dice_below(&d, t->height);
        int64_t half_w = (int64_t)(r * (double)W), half_h = (int64_t)(r * (double)H);
        int64_t left = x > half_w ? x - half_w : 0, right = x + half_w < W ? x + half_w : W;
        int64_t top = y > half_h ? y - half_h : 0, bottom = y + half_h < H ? y + half_h : H;
        out->box = (box){(int32_t)top, (int32_t)left, (int32_t)(bottom - top), (int32_t)(right - left)};
        out->lambda = 1 - (double)((right - left) * (bottom - top)) / (double)(W * H);
    }
    return true;
}

/* The last sample is kept aside for the first; from the end on, each still finds its neighbour as it was. */
static void mix_pictures(float *x, const transform *t, const struct mix_drawn *m, int n)
{
    float *last = scratch_get(SCRATCH_MIX, t->numbers * sizeof *last); /* [numbers] */

    memcpy(last, x + (size_t)(n - 1) * t->numbers, t->numbers * sizeof *last);
    for (int i = n - 1; i >= 0; i--) {
        float *at = x + (size_t)i * t->numbers;
        const float *other = i ? at - t->numbers : last;
        if (m->cuts)
            cut_mix(at, other, t, m->box);
        else
            mix_up(at, other, t->numbers, (float)m->lambda, (float)(1 - m->lambda));
    }
}

void transform_mix_by(const transform *t, const struct mix_drawn *m, int n, const co_slice_dst *dst)
{
    const int32_t *y = dst->y; /* [n] */

    if (m && n > 0 && dst->x)
        mix_pictures(dst->x, t, m, n);
    for (int i = 0; i < n && dst->lam; i++)
        dst->lam[i] = m ? (float)m->lambda : 1;
    for (int i = 0; i < n && dst->y2 && y; i++) {
        int32_t other = m ? y[i ? i - 1 : n - 1] : y[i];
        dst->y2[i] = y[i] == CO_IGNORE ? CO_IGNORE : other;
    }
}

void transform_mix(const transform *t, const co_draw *draw, const uint32_t *ids, int n, const co_slice_dst *dst)
{
    struct mix_drawn m;

    transform_mix_by(t, n > 0 && transform_draw_mix(&m, t, draw, ids[0]) ? &m : NULL, n, dst);
}
