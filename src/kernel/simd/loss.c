/* loss.c -- SOFTMAX, CROSS_ENTROPY and their gradients, and CORRECT: threads divide the rows, lanes are classes. The
 * logarithm of a row's sum is taken once, in double, by base/maths.h. */
#include "kernel/simd/simd_int.h"

#include "base/maths.h"
#include "kernel/kernel_int.h"
#include "kernel/simd/softmax.h"

static void softmax(const co_call *c)
{
    const float *x = c->in[0].p; /* [R,C] */
    float *y = c->out[0].p;      /* [R,C] */
    int64_t C = shape_last(&c->in[0].shape), lo, hi;
    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++)
        row_softmax(y + r * C, x + r * C, C, 1);
}

static void softmax_grad(const co_call *c)
{
    const float *dy = c->in[0].p, *y = c->in[1].p; /* [R,C] */
    float *dx = c->out[0].p;                       /* [R,C] */
    int64_t C = shape_last(&c->in[0].shape), lo, hi;
    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++)
        row_softmax_grad(dx + r * C, dy + r * C, y + r * C, C, 1);
}

typedef struct below_row {
    sum16 sum;
    const float *x;
    vd top;
} below_row;

ALWAYS_INLINE void below_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    below_row *r = ctx;
    vf v = v_load_n(r->x + i, lanes);
    sum16_add_halves(&r->sum, part, vd_keep(r->top - vd_low(v), lanes),
                     vd_keep(r->top - vd_high(v), lanes - VW / 2));
}

/* sum of top - x[j] */
static double below_top(const float *x, int64_t n, float top)
{
    below_row r = {.x = x, .top = vd_set(top)};
    sum16_init(&r.sum);
    each_step(n, below_step, &r);
    return sum16_total(&r.sum);
}

static void cross_entropy(const co_call *c)
{
    const float *logits = c->in[0].p;              /* [R,C] */
    const int32_t *target = c->in[1].p;            /* [R] */
    float *loss = c->out[0].p, *lse = c->out[1].p; /* [R], [R] */
    int64_t C = shape_last(&c->in[0].shape), lo, hi;
    double smooth = c->attr->smooth;
    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        const float *x = logits + r * C;
        loss[r] = lse[r] = 0;
        if (target[r] == c->attr->ignore)
            continue;
        float top = row_max(x, C);
        double ls = co_log(row_exp_sum(NULL, x, C, 1, top));
        lse[r] = (float)(top + ls);
        if (target[r] < 0 || target[r] >= C) {
            loss[r] = NAN;
            continue;
        }
        double nll = ls + ((double)top - x[target[r]]);
        loss[r] =
            (float)(smooth > 0 ? (1 - smooth) * nll + smooth * (ls + below_top(x, C, top) / (double)C) : nll);
    }
}

static void fill(float *x, int64_t n, float value)
{
    for (int64_t j = 0; j < n; j++)
        x[j] = value;
}

typedef struct ce_row {
    float *dx;
    const float *x;
    vf dloss, lse, off;
} ce_row;

ALWAYS_INLINE void ce_step(void *ctx, int64_t i, int part, int64_t lanes)
{
    const ce_row *r = ctx;
    v_store_n(r->dx + i, lanes, r->dloss * (v_exp(v_load_n(r->x + i, lanes) - r->lse) - r->off));
}

static void cross_entropy_grad(const co_call *c)
{
    const float *dloss = c->in[0].p, *logits = c->in[1].p; /* [R], [R,C] */
    const int32_t *target = c->in[2].p;                    /* [R] */
    const float *lse = c->in[3].p;                         /* [R] */
    float *dlogits = c->out[0].p;                          /* [R,C] */
    int64_t C = shape_last(&c->in[1].shape), lo, hi;
    float off = (float)((double)c->attr->smooth / (double)C), on = 1 - c->attr->smooth + off;
    co_share(shape_rows(&c->in[1].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        const float *x = logits + r * C;
        float *dx = dlogits + r * C;
        int64_t t = target[r];
        if (t == c->attr->ignore || t < 0 || t >= C) {
            fill(dx, C, t == c->attr->ignore ? 0 : NAN);
            continue;
        }
        ce_row row = {dx, x, v_set(dloss[r]), v_set(lse[r]), v_set(off)};
        each_step(C, ce_step, &row);
        dx[t] = v_first_lane(row.dloss * (v_exp(v_set(x[t]) - row.lse) - v_set(on)));
    }
}

/* How many of x[lo .. hi) are below `top`, or not above it. */
static int64_t count_below(const float *x, int64_t lo, int64_t hi, float top, bool or_equal)
{
    vf count = v_zero(), one = v_set(1), at = v_set(top);
    float lane[VW];
    int64_t total = 0;

    for (int64_t i = lo; i < hi; i += VW) {
        int64_t lanes = hi - i < VW ? hi - i : VW;
        vf v = v_load_n(x + i, lanes), yes = or_equal ? v_le(v, at) : v_gt(at, v);
        count += v_keep(v_pick(yes, one, v_zero()), lanes); /* exact: a row has fewer than 2^24 classes a lane */
    }
    v_store(lane, count);
    for (int i = 0; i < VW; i++)
        total += (int64_t)lane[i];
    return total;
}

/* See ref/reduce.c: all but the elements that are below x[t], or equal to it and not before it, rank before it. */
static void correct(const co_call *c)
{
    const float *logits = c->in[0].p;   /* [R,C] */
    const int32_t *target = c->in[1].p; /* [R] */
    int64_t C = shape_last(&c->in[0].shape), R = shape_rows(&c->in[0].shape), count = 0;

    if (c->ith != 0)
        return;
    for (int64_t r = 0; r < R; r++) {
        const float *x = logits + r * C;
        int64_t t = target[r];
        if (t != c->attr->ignore && t >= 0 && t < C)
            count += C - count_below(x, 0, t, x[t], false) - count_below(x, t, C, x[t], true) < c->attr->k;
    }
    *(double *)c->out[0].p = (double)count;
}

void rows_loss(co_kernels *k)
{
    k->row[CO_OP_CORRECT] = (co_kernel_row){correct, NULL};
    k->row[CO_OP_SOFTMAX] = (co_kernel_row){softmax, NULL};
    k->row[CO_OP_SOFTMAX_GRAD] = (co_kernel_row){softmax_grad, NULL};
    k->row[CO_OP_CROSS_ENTROPY] = (co_kernel_row){cross_entropy, NULL};
    k->row[CO_OP_CROSS_ENTROPY_GRAD] = (co_kernel_row){cross_entropy_grad, NULL};
}
