/* loss.c -- losses per row or sample, and their gradients. Threads divide the rows. Sums and logarithms of a
 * row are doubles and are rounded once, so that a loss close to zero keeps its digits. */
#include "kernel/ref/real.h"

#include "base/lanes.h"

/* log(sum over j of exp(x[j] - top)), where top = max of x */
static double log_sum(const real *x, int64_t n, real *top)
{
    double sum = 0;

    *top = x[0];
    for (int64_t j = 1; j < n; j++)
        *top = x[j] > *top ? x[j] : *top;
    for (int64_t j = 0; j < n; j++)
        sum += R_EXP(x[j] - *top);
    return co_log(sum);
}

static void cross_entropy(const co_call *c)
{
    const real *logits = c->in[0].p;              /* [R,C] */
    const int32_t *target = c->in[1].p;           /* [R] */
    real *loss = c->out[0].p, *lse = c->out[1].p; /* [R], [R] */
    int64_t C = shape_last(&c->in[0].shape), lo, hi;
    double smooth = c->attr->smooth;

    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        const real *x = logits + r * C;
        real top;
        loss[r] = lse[r] = 0;
        if (target[r] == c->attr->ignore)
            continue;
        double ls = log_sum(x, C, &top), below = 0; /* below = sum of top - x[j] */
        lse[r] = (real)(top + ls);
        if (target[r] < 0 || target[r] >= C) {
            loss[r] = (real)NAN;
            continue;
        }
        for (int64_t j = 0; smooth > 0 && j < C; j++)
            below += (double)top - x[j];
        double nll = ls + ((double)top - x[target[r]]);
        loss[r] = (real)(smooth > 0 ? (1 - smooth) * nll + smooth * (ls + below / (double)C) : nll);
    }
}

static void cross_entropy_grad(const co_call *c)
{
    const real *dloss = c->in[0].p, *logits = c->in[1].p; /* [R], [R,C] */
    const int32_t *target = c->in[2].p;                   /* [R] */
    const real *lse = c->in[3].p;                         /* [R] */
    real *dx = c->out[0].p;                               /* [R,C] */
    int64_t C = shape_last(&c->in[1].shape), lo, hi;
    real off = (real)((double)c->attr->smooth / (double)C), on = 1 - (real)c->attr->smooth + off;

    co_share(shape_rows(&c->in[1].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        int64_t t = target[r];
        for (int64_t j = r * C; j < (r + 1) * C; j++) {
            if (t == c->attr->ignore)
                dx[j] = 0;
            else if (t < 0 || t >= C)
                dx[j] = (real)NAN;
            else
                dx[j] = dloss[r] * (R_EXP(logits[j] - lse[r]) - (j == r * C + t ? on : off));
        }
    }
}

static real mse_one(real x, real t)
{
    return (x - t) * (x - t);
}

static real mse_slope(real x, real t)
{
    return 2 * (x - t);
}

static real mae_one(real x, real t)
{
    return (real)fabs((double)(x - t));
}

static real mae_slope(real x, real t)
{
    return x > t ? 1 : x < t ? -1 : x - t; /* equal: 0; nan: nan */
}

/* -t log p - (1 - t) log(1 - p), p = 1 / (1 + exp(-x)), without overflow */
static real bce_one(real x, real t)
{
    double tail = co_log(1 + (double)R_EXP(-(real)fabs((double)x)));

    return (real)((0 > x ? 0 : x) - (double)x * t + tail);
}

static real bce_slope(real x, real t)
{
    real e = R_EXP(-(real)fabs((double)x)); /* in (0, 1]: no overflow */

    return (x >= 0 ? 1 / (1 + e) : e / (1 + e)) - t;
}

/* loss[i] = mean of one(pred, target) over sample i */
static inline CO_INLINE void mean_loss(const co_call *c, real (*one)(real, real))
{
    const real *pred = c->in[0].p, *target = c->in[1].p; /* [n,per] */
    real *loss = c->out[0].p;                            /* [n] */
    int64_t n = co_shape_count(&c->out[0].shape), per = co_shape_count(&c->in[0].shape) / n, lo, hi;

    co_share(n, c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; per == 1 && i < hi; i++)
        loss[i] = (real)(0 + (double)one(pred[i], target[i]));
    for (int64_t i = lo; per != 1 && i < hi; i++) {
        double sum = 0;
        for (int64_t j = i * per; j < (i + 1) * per; j++)
            sum += one(pred[j], target[j]);
        loss[i] = (real)(sum / (double)per);
    }
}

static inline CO_INLINE void mean_loss_grad(const co_call *c, real (*slope)(real, real))
{
    const real *dloss = c->in[0].p, *pred = c->in[1].p, *target = c->in[2].p; /* [n], [n,per], [n,per] */
    real *dpred = c->out[0].p;                                                /* [n,per] */
    int64_t n = co_shape_count(&c->in[0].shape), per = co_shape_count(&c->in[1].shape) / n, lo, hi;

    co_share(n, c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; per == 1 && i < hi; i++)
        dpred[i] = dloss[i] * slope(pred[i], target[i]);
    for (int64_t i = lo; per != 1 && i < hi; i++) {
        real g = dloss[i] / (real)per;
        for (int64_t j = i * per; j < (i + 1) * per; j++)
            dpred[j] = g * slope(pred[j], target[j]);
    }
}

static void valid(const co_call *c)
{
    const int32_t *target = c->in[0].p;
    real *y = c->out[0].p;
    int64_t lo, hi;

    co_share(co_shape_count(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        y[i] = target[i] != c->attr->ignore;
}

static void mse(const co_call *c)
{
    mean_loss(c, mse_one);
}

static void mse_grad(const co_call *c)
{
    mean_loss_grad(c, mse_slope);
}

static void mae(const co_call *c)
{
    mean_loss(c, mae_one);
}

static void mae_grad(const co_call *c)
{
    mean_loss_grad(c, mae_slope);
}

static void bce(const co_call *c)
{
    mean_loss(c, bce_one);
}

static void bce_grad(const co_call *c)
{
    mean_loss_grad(c, bce_slope);
}

void REF(loss)(co_kernel_row *row)
{
    row[CO_OP_CROSS_ENTROPY].fn = cross_entropy;
    row[CO_OP_CROSS_ENTROPY_GRAD].fn = cross_entropy_grad;
    row[CO_OP_VALID].fn = valid;
    row[CO_OP_MSE].fn = mse;
    row[CO_OP_MSE_GRAD].fn = mse_grad;
    row[CO_OP_MAE].fn = mae;
    row[CO_OP_MAE_GRAD].fn = mae_grad;
    row[CO_OP_BCE].fn = bce;
    row[CO_OP_BCE_GRAD].fn = bce_grad;
}
