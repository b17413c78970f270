/* attention.c -- softmax, and attention as softmax(q k^T / sqrt(d)) v per head.
 *
 * Heads lie side by side in the last dimension: head h of q is columns [h * d, (h + 1) * d). A query sees a
 * prefix of the keys (all, up to lens[b], up to itself if causal); the rest of its row of probs is exactly 0.
 * The gradient reads the mask from these zeros and needs no lens. With S = scale * q k^T and P = probs:
 *
 *     dP = dy v^T,   dS = P * (dP - sum over keys of P * dP),
 *     dq = scale * dS k,   dk = scale * dS^T q,   dv = P^T dy
 *
 * The forward pass divides rows of queries among the threads. The gradient divides (batch, head) pairs,
 * because dk and dv are sums over queries. The gradient keeps one row of dS per thread in scratch. */
#include "kernel/ref/real.h"

/* In place: x [n] becomes exp(x - max) / sum. Sum in double. */
static void softmax_row(real *x, int64_t n)
{
    real top = x[0];
    double sum = 0;

    for (int64_t j = 1; j < n; j++)
        top = x[j] > top ? x[j] : top;
    for (int64_t j = 0; j < n; j++) {
        x[j] = R_EXP(x[j] - top);
        sum += x[j];
    }
    real inverse = (real)(1 / sum);
    for (int64_t j = 0; j < n; j++)
        x[j] *= inverse;
}

static void softmax(const co_call *c)
{
    const real *x = c->in[0].p; /* [R,C] */
    real *y = c->out[0].p;      /* [R,C] */
    int64_t C = shape_last(&c->in[0].shape), lo, hi;

    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        for (int64_t j = r * C; j < (r + 1) * C; j++)
            y[j] = x[j];
        softmax_row(y + r * C, C);
    }
}

/* dx = y * (dy - sum of y * dy); dx may be dy. */
static void softmax_row_grad(real *dx, const real *dy, const real *y, int64_t n)
{
    double sum = 0;

    for (int64_t j = 0; j < n; j++)
        sum += y[j] * dy[j];
    real s = (real)sum;
    for (int64_t j = 0; j < n; j++)
        dx[j] = y[j] * (dy[j] - s);
}

static void softmax_grad(const co_call *c)
{
    const real *dy = c->in[0].p, *y = c->in[1].p; /* [R,C] */
    real *dx = c->out[0].p;                       /* [R,C] */
    int64_t C = shape_last(&c->in[0].shape), lo, hi;

    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++)
        softmax_row_grad(dx + r * C, dy + r * C, y + r * C, C);
}

typedef struct heads_dims {
    int64_t B, Tq, Tk, C, heads, d;
    real scale;
} heads_dims;

static heads_dims dims_of_heads(const co_attr *a, const co_shape *q, const co_shape *k)
{
    heads_dims s = {q->d[0], q->d[1], k->d[1], q->d[2], a->heads, q->d[2] / a->heads, 0};

    s.scale = (real)(1 / sqrt((double)s.d));
    return s;
}

/* How many keys query i sees. */
static int64_t keys_seen(const heads_dims *s, int64_t len, int64_t i, int causal)
{
    int64_t n = len < s->Tk ? len : s->Tk;

    if (causal && i + 1 < n)
        n = i + 1;
    return n > 0 ? n : 0;
}

static void attention(const co_call *c)
{
    const real *q = c->in[0].p, *k = c->in[1].p, *v = c->in[2].p; /* [B,Tq,C], [B,Tk,C], [B,Tk,C] */
    const int32_t *lens = c->n_in > 3 ? c->in[3].p : NULL;        /* [B] */
    real *y = c->out[0].p, *probs = c->out[1].p;                  /* [B,Tq,C], [B,heads,Tq,Tk] */
    heads_dims s = dims_of_heads(c->attr, &c->in[0].shape, &c->in[1].shape);
    int64_t lo, hi;

    co_share(s.B * s.heads * s.Tq, c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        int64_t i = r % s.Tq, h = r / s.Tq % s.heads, b = r / s.Tq / s.heads;
        int64_t n = keys_seen(&s, lens ? lens[b] : s.Tk, i, c->attr->causal);
        int64_t at_q = (b * s.Tq + i) * s.C + h * s.d, at_k = b * s.Tk * s.C + h * s.d;
        real *p = probs + r * s.Tk, *out = y + at_q;
        dot_rows(p, n, q + at_q, 1, k + at_k, s.C, s.d);
        for (int64_t j = 0; j < n; j++)
            p[j] *= s.scale;
        if (n > 0)
            softmax_row(p, n);
        for (int64_t j = n; j < s.Tk; j++)
            p[j] = 0;
        for (int64_t e = 0; e < s.d; e++)
            out[e] = 0;
        for (int64_t j = 0; j < n; j++)
            add_scaled(out, p[j], v + at_k + j * s.C, s.d);
    }
}

/* rows of d columns out of C set to zero */
static void clear_rows(real *x, int64_t rows, int64_t C, int64_t d)
{
    for (int64_t j = 0; j < rows; j++)
        for (int64_t e = 0; e < d; e++)
            x[j * C + e] = 0;
}

static void attention_grad(const co_call *c)
{
    const real *dy = c->in[0].p, *q = c->in[1].p, *k = c->in[2].p; /* [B,Tq,C], [B,Tq,C], [B,Tk,C] */
    const real *v = c->in[3].p, *probs = c->in[4].p;               /* [B,Tk,C], [B,heads,Tq,Tk] */
    real *dq = c->out[0].p, *dk = c->out[1].p, *dv = c->out[2].p;  /* [B,Tq,C], [B,Tk,C], [B,Tk,C] */
    heads_dims s = dims_of_heads(c->attr, &c->in[1].shape, &c->in[2].shape);
    real *ds = (real *)c->scratch + c->ith * s.Tk; /* [Tk] */
    int64_t lo, hi;

    co_share(s.B * s.heads, c->ith, c->nth, &lo, &hi);
    for (int64_t bh = lo; bh < hi; bh++) {
        int64_t b = bh / s.heads, col = bh % s.heads * s.d, at_k = b * s.Tk * s.C + col;
        clear_rows(dk + at_k, s.Tk, s.C, s.d);
        clear_rows(dv + at_k, s.Tk, s.C, s.d);
        for (int64_t i = 0; i < s.Tq; i++) {
            int64_t at_q = (b * s.Tq + i) * s.C + col, n = keys_seen(&s, s.Tk, i, c->attr->causal);
            const real *p = probs + (bh * s.Tq + i) * s.Tk;
            dot_rows(ds, n, dy + at_q, 1, v + at_k, s.C, s.d);
            softmax_row_grad(ds, ds, p, n);
            clear_rows(dq + at_q, 1, s.C, s.d);
            for (int64_t j = 0; j < n; j++) {
                int64_t at = at_k + j * s.C;
                real g = ds[j] * s.scale;
                add_scaled(dq + at_q, g, k + at, s.d);
                add_scaled(dk + at, g, q + at_q, s.d);
                add_scaled(dv + at, p[j], dy + at_q, s.d);
            }
        }
    }
}

static size_t attention_grad_scratch(const co_call *c)
{
    return (size_t)(c->nth > 1 ? c->nth : 1) * (size_t)c->in[2].shape.d[1] * sizeof(real);
}

void REF(attention)(co_kernel_row *row)
{
    row[CO_OP_SOFTMAX].fn = softmax;
    row[CO_OP_SOFTMAX_GRAD].fn = softmax_grad;
    row[CO_OP_ATTENTION].fn = attention;
    row[CO_OP_ATTENTION_GRAD] = (co_kernel_row){attention_grad, attention_grad_scratch};
}
