/* attention.c -- ATTENTION and its gradient per (batch, head), as products of gemm.c and rows of softmax.h.
 *
 * Heads lie side by side in the last dimension, so a head of q, k, v is a matrix with row stride C. With S =
 * q k^T, P = softmax(scale * S) over the keys that a query may use and 0 for the others:
 *
 *     y = P v;    dP = dy v^T,  dS = scale * P * (dP - sum over keys of P * dP)
 *                 dq = dS k,    dk = dS^T q,    dv = P^T dy
 *
 * Keys past lens[b] are left out of the products; keys later than a causal query stay in the products with
 * probability 0. The gradient keeps dS [Tq,Tk] of one head per thread in scratch.
 */
#include "kernel/simd/simd_int.h"

#include <math.h>

#include "kernel/simd/gemm.h"
#include "kernel/simd/softmax.h"

typedef struct heads {
    int64_t B, Tq, Tk, C, n, d;
    float scale;
} heads;

static heads heads_of(const co_attr *a, const co_shape *q, const co_shape *k)
{
    heads s = {q->d[0], q->d[1], k->d[1], q->d[2], a->heads, q->d[2] / a->heads, 0};
    s.scale = (float)(1 / sqrt((double)s.d));
    return s;
}

/* Floats for the products of one head. */
static size_t head_scratch(const heads *s)
{
    int64_t t = s->Tq > s->Tk ? s->Tq : s->Tk, most = t > s->d ? t : s->d;
    return gemm_scratch(most, most, most);
}

/* c [m,n] = a b; element (i, k) of a is a[i * ai + k * ak], element (k, j) of b is b[j * bi + k * bk] */
static void product(float *c, int64_t ldc, int64_t m, int64_t n, int64_t k, const float *a, int64_t ai,
                    int64_t ak, const float *b, int64_t bi, int64_t bk, float *scratch)
{
    gemm g = {.m = m, .n = n, .k = k, .c = c, .cm = ldc, .cn = 1};
    g.a = (gemm_side){.p = a, .si = ai, .sk = ak};
    g.b = (gemm_side){.p = b, .si = bi, .sk = bk};
    gemm_run(&g, scratch, 0, 1);
}

static size_t attention_scratch(const co_call *c)
{
    heads s = heads_of(c->attr, &c->in[0].shape, &c->in[1].shape);
    return (size_t)call_threads(c) * head_scratch(&s) * sizeof(float);
}

static void attention(const co_call *c)
{
    const float *q = c->in[0].p, *k = c->in[1].p, *v = c->in[2].p; /* [B,Tq,C], [B,Tk,C], [B,Tk,C] */
    const int32_t *lens = c->n_in > 3 ? c->in[3].p : NULL;         /* [B] */
    float *y = c->out[0].p, *probs = c->out[1].p;                  /* [B,Tq,C], [B,heads,Tq,Tk] */
    heads s = heads_of(c->attr, &c->in[0].shape, &c->in[1].shape);
    float *scratch = (float *)c->scratch + (size_t)c->ith * head_scratch(&s);
    int64_t lo, hi;
    co_share(s.B * s.n, c->ith, c->nth, &lo, &hi);
    for (int64_t bh = lo; bh < hi; bh++) {
        int64_t b = bh / s.n, col = bh % s.n * s.d, at_q = b * s.Tq * s.C + col, at_k = b * s.Tk * s.C + col;
        int64_t len = lens && lens[b] < s.Tk ? lens[b] > 0 ? lens[b] : 0 : s.Tk;
        float *p = probs + bh * s.Tq * s.Tk; /* [Tq,Tk] */
        product(p, s.Tk, s.Tq, len, s.d, q + at_q, s.C, 1, k + at_k, s.C, 1, scratch);
        for (int64_t i = 0; i < s.Tq; i++) {
            float *row = p + i * s.Tk;
            int64_t n = c->attr->causal && i + 1 < len ? i + 1 : len;
            if (n > 0)
                row_softmax(row, row, n, s.scale);
            for (int64_t j = n; j < s.Tk; j++)
                row[j] = 0;
        }
        product(y + at_q, s.C, s.Tq, s.d, len, p, s.Tk, 1, v + at_k, 1, s.C, scratch);
    }
}

static size_t attention_grad_scratch(const co_call *c)
{
    heads s = heads_of(c->attr, &c->in[1].shape, &c->in[2].shape);
    return (size_t)call_threads(c) * (head_scratch(&s) + (size_t)(s.Tq * s.Tk)) * sizeof(float);
}

static void attention_grad(const co_call *c)
{
    const float *dy = c->in[0].p, *q = c->in[1].p, *k = c->in[2].p; /* [B,Tq,C], [B,Tq,C], [B,Tk,C] */
    const float *v = c->in[3].p, *probs = c->in[4].p;               /* [B,Tk,C], [B,heads,Tq,Tk] */
    float *dq = c->out[0].p, *dk = c->out[1].p, *dv = c->out[2].p;  /* [B,Tq,C], [B,Tk,C], [B,Tk,C] */
    heads s = heads_of(c->attr, &c->in[1].shape, &c->in[2].shape);
    /* [Tq,Tk] */
    float *ds = (float *)c->scratch + (size_t)c->ith * (head_scratch(&s) + (size_t)(s.Tq * s.Tk));
    float *scratch = ds + s.Tq * s.Tk;
    int64_t lo, hi;
    co_share(s.B * s.n, c->ith, c->nth, &lo, &hi);
    for (int64_t bh = lo; bh < hi; bh++) {
        int64_t b = bh / s.n, col = bh % s.n * s.d, at_q = b * s.Tq * s.C + col, at_k = b * s.Tk * s.C + col;
        const float *p = probs + bh * s.Tq * s.Tk; /* [Tq,Tk] */
        product(ds, s.Tk, s.Tq, s.Tk, s.d, dy + at_q, s.C, 1, v + at_k, s.C, 1, scratch);
        for (int64_t i = 0; i < s.Tq; i++)
            row_softmax_grad(ds + i * s.Tk, ds + i * s.Tk, p + i * s.Tk, s.Tk, s.scale);
        product(dq + at_q, s.C, s.Tq, s.d, s.Tk, ds, s.Tk, 1, k + at_k, 1, s.C, scratch);
        product(dk + at_k, s.C, s.Tk, s.d, s.Tq, ds, 1, s.Tk, q + at_q, 1, s.C, scratch);
        product(dv + at_k, s.C, s.Tk, s.d, s.Tq, p, 1, s.Tk, dy + at_q, 1, s.C, scratch);
    }
}

void rows_attention(co_kernels *k)
{
    k->row[CO_OP_ATTENTION] = (co_kernel_row){attention, attention_scratch};
    k->row[CO_OP_ATTENTION_GRAD] = (co_kernel_row){attention_grad, attention_grad_scratch};
}
