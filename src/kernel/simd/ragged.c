/* ragged.c -- RAGGED_ATTENTION and its gradient, one query at a time (formulas: ref/ragged.c).
 *
 * For each (sample, head) pair the keys (in the gradient the values too) are turned once into scratch, so
 * that lanes are keys when scores are computed; where a row of the result is computed, lanes are columns.
 * Each element is one chain of fma: a score over the columns, an element of y, dq over the keys, an element
 * of dk, dv over the queries. Only keys that a query sees take part, so nothing that the mask excludes is
 * computed. Rows are summed as in sums.h.
 */
#include "kernel/simd/simd_int.h"

#include <math.h>
#include <string.h>

#include "base/maths.h"
#include "kernel/simd/drops.h"
#include "kernel/simd/softmax.h"

typedef struct ragged {
    int64_t pairs, C, heads, d;
    const int32_t *q_at, *k_at; /* [n + 1] */
    const int64_t *ids;         /* [n]; NULL: no dropout */
    float scale;
    int64_t wide; /* floats of a row of keys in scratch */
    drops drops;
} ragged;

static int64_t row_floats(const co_attr *a)
{
    return ((int64_t)a->longest + 15) / 16 * 16;
}

/* `at` is where the offsets begin among the inputs. */
static ragged ragged_of(const co_call *c, const co_shape *q, int at)
{
    ragged s = {
        .C = q->d[1], .heads = c->attr->heads, .d = q->d[1] / c->attr->heads, .wide = row_floats(c->attr)};
    s.q_at = c->in[at].p;
    s.k_at = c->in[at + 1].p;
    s.ids = c->n_in > at + 2 && c->attr->p > 0 ? c->in[at + 2].p : NULL;
    s.pairs = (c->in[at].shape.d[0] - 1) * s.heads;
    s.scale = (float)(1 / sqrt((double)s.d));
    s.drops = drops_of(c);
    return s;
}

typedef struct span {
    int64_t sample, head, col, q, nq, k, nk;
} span;

static span span_of(const ragged *s, int64_t at)
{
    int64_t i = at / s->heads, h = at % s->heads;
    return (span){
        i, h, h * s->d, s->q_at[i], s->q_at[i + 1] - s->q_at[i], s->k_at[i], s->k_at[i + 1] - s->k_at[i]};
}

static int64_t keys_of(const span *p, int64_t i, int causal)
{
    return causal && i + 1 < p->nk ? i + 1 : p->nk;
}

/* out [d, wide] = x [n, d] turned; x has row stride C. */
static void turn(float *out, const float *x, int64_t n, const ragged *s)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t e = 0; e < s->d; e++)
            out[e * s->wide + j] = x[j * s->C + e];
}

/* y[j] = sum over e of x[e] * turned[e][j], j < n */
static void scores(float *y, const float *x, const float *turned, int64_t n, const ragged *s)
{
    int64_t j = 0;
    for (; j + 4 * VW <= n; j += 4 * VW) {
        vf a = v_zero(), b = v_zero(), c = v_zero(), d = v_zero();
        for (int64_t e = 0; e < s->d; e++) {
            const float *row = turned + e * s->wide + j;
            vf w = v_set(x[e]);
            a = v_fma(w, v_load(row), a), b = v_fma(w, v_load(row + VW), b);
            c = v_fma(w, v_load(row + 2 * VW), c), d = v_fma(w, v_load(row + 3 * VW), d);
        }
        v_store(y + j, a), v_store(y + j + VW, b), v_store(y + j + 2 * VW, c), v_store(y + j + 3 * VW, d);
    }
    for (; j < n; j += VW) {
        int64_t lanes = n - j < VW ? n - j : VW;
        vf a = v_zero();
        for (int64_t e = 0; e < s->d; e++)
            a = v_fma(v_set(x[e]), v_load_n(turned + e * s->wide + j, lanes), a);
        v_store_n(y + j, lanes, a);
    }
}

/* y[e] = sum over j of w[j] * x[j][e], j < n */
static void mix(float *y, const float *w, const float *x, int64_t n, const ragged *s)
{
    for (int64_t e = 0; e < s->d; e += 2 * VW) {
        int64_t one = s->d - e < VW ? s->d - e : VW, two = s->d - e - VW < VW ? s->d - e - VW : VW;
        two = two > 0 ? two : 0;
        vf a = v_zero(), b = v_zero();
        for (int64_t j = 0; j < n; j++) {
            const float *row = x + j * s->C + e;
            a = v_fma(v_set(w[j]), v_load_n(row, one), a);
            if (two)
                b = v_fma(v_set(w[j]), v_load_n(row + VW, two), b);
        }
        v_store_n(y + e, one, a);
        if (two)
            v_store_n(y + e + VW, two, b);
    }
}

/* y[j][e] += w[j] * x[e], j < n */
static void spread(float *y, const float *w, const float *x, int64_t n, const ragged *s)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t e = 0; e < s->d; e += VW) {
            int64_t lanes = s->d - e < VW ? s->d - e : VW;
            float *to = y + j * s->C + e;
            v_store_n(to, lanes, v_fma(v_set(w[j]), v_load_n(x + e, lanes), v_load_n(to, lanes)));
        }
}

static void clear(float *x, int64_t rows, const ragged *s)
{
    for (int64_t j = 0; j < rows; j++)
        memset(x + j * s->C, 0, (size_t)s->d * sizeof *x);
}

static void drop(float *row, int64_t n, const ragged *s, const span *p, int64_t i)
{
    if (s->ids)
        row_drop(row, row, n, &s->drops, (uint32_t)s->ids[p->sample],
                 (uint32_t)((p->head * p->nq + i) * ((p->nk + 3) / 4)));
}

static size_t forward_floats(const co_call *c, const co_shape *q)
{
    return (size_t)(row_floats(c->attr) * (q->d[1] / c->attr->heads + 1));
}

static size_t attention_scratch(const co_call *c)
{
    return (size_t)(c->nth > 1 ? c->nth : 1) * forward_floats(c, &c->in[0].shape) * sizeof(float);
}

static void attention(const co_call *c)
{
    const float *q = c->in[0].p, *k = c->in[1].p, *v = c->in[2].p; /* [Tq,C], [Tk,C], [Tk,C] */
    float *y = c->out[0].p, *lse = c->out[1].p;                    /* [Tq,C], [Tq,heads] */
    ragged s = ragged_of(c, &c->in[0].shape, 3);
    float *row = (float *)c->scratch + (size_t)c->ith * forward_floats(c, &c->in[0].shape); /* [wide] */
    float *turned = row + s.wide;                                                           /* [d,wide] */
    int64_t lo, hi;
    co_share(s.pairs, c->ith, c->nth, &lo, &hi);
    for (int64_t at = lo; at < hi; at++) {
        span p = span_of(&s, at);
        if (p.nq > 0)
            turn(turned, k + p.k * s.C + p.col, p.nk, &s);
        for (int64_t i = 0; i < p.nq; i++) {
            int64_t n = keys_of(&p, i, c->attr->causal), at_q = (p.q + i) * s.C + p.col;
            float *out_lse = lse + (p.q + i) * s.heads + p.head;
            *out_lse = 0;
            if (n > 0) {
                scores(row, q + at_q, turned, n, &s);
                float top = row_max(row, n) * s.scale;
                double sum = row_exp_sum(row, row, n, s.scale, top);
                *out_lse = (float)(top + co_log(sum));
                scale_row by = {row, v_set((float)(1 / sum))};
                each_step(n, scale_step, &by);
                drop(row, n, &s, &p, i);
            }
            mix(y + at_q, row, v + p.k * s.C + p.col, n, &s);
        }
    }
}

static size_t backward_floats(const co_call *c, const co_shape *q)
{
    return (size_t)(row_floats(c->attr) * (2 * (q->d[1] / c->attr->heads) + 3));
}

static size_t attention_grad_scratch(const co_call *c)
{
    return (size_t)(c->nth > 1 ? c->nth : 1) * backward_floats(c, &c->in[1].shape) * sizeof(float);
}

/* Rows [wide] of one query in scratch, and the turned keys and values [d,wide]. */
typedef struct grad_rows {
    float *prob, *dropped, *ds, *keys, *values;
} grad_rows;

static void query_grad(const co_call *c, const ragged *s, const span *p, int64_t i, const grad_rows *r)
{
    const float *dy = c->in[0].p, *q = c->in[1].p, *k = c->in[2].p, *lse = c->in[4].p;
    float *dq = c->out[0].p, *dk = c->out[1].p, *dv = c->out[2].p;
    int64_t n = keys_of(p, i, c->attr->causal), at_q = (p->q + i) * s->C + p->col, at_k = p->k * s->C + p->col;
    scores(r->prob, q + at_q, r->keys, n, s);
    row_exp_sum(r->prob, r->prob, n, s->scale, lse[(p->q + i) * s->heads + p->head]);
    scores(r->ds, dy + at_q, r->values, n, s);
    memcpy(r->dropped, r->prob, (size_t)n * sizeof *r->prob);
    drop(r->dropped, n, s, p, i);
    drop(r->ds, n, s, p, i);
    row_softmax_grad(r->ds, r->ds, r->prob, n, s->scale);
    mix(dq + at_q, r->ds, k + at_k, n, s);
    spread(dk + at_k, r->ds, q + at_q, n, s);
    spread(dv + at_k, r->dropped, dy + at_q, n, s);
}

static void attention_grad(const co_call *c)
{
    const float *k = c->in[2].p, *v = c->in[3].p; /* [Tk,C], [Tk,C] */
    float *dk = c->out[1].p, *dv = c->out[2].p;   /* [Tk,C], [Tk,C] */
    ragged s = ragged_of(c, &c->in[1].shape, 5);
    float *own = (float *)c->scratch + (size_t)c->ith * backward_floats(c, &c->in[1].shape);
    grad_rows r = {own, own + s.wide, own + 2 * s.wide, own + 3 * s.wide, own + (3 + s.d) * s.wide};
    int64_t lo, hi;
    co_share(s.pairs, c->ith, c->nth, &lo, &hi);
    for (int64_t at = lo; at < hi; at++) {
        span p = span_of(&s, at);
        int64_t at_k = p.k * s.C + p.col;
        turn(r.keys, k + at_k, p.nk, &s);
        turn(r.values, v + at_k, p.nk, &s);
        clear(dk + at_k, p.nk, &s);
        clear(dv + at_k, p.nk, &s);
        for (int64_t i = 0; i < p.nq; i++)
            query_grad(c, &s, &p, i, &r);
    }
}

void rows_ragged(co_kernels *k)
{
    k->row[CO_OP_RAGGED_ATTENTION] = (co_kernel_row){attention, attention_scratch};
    k->row[CO_OP_RAGGED_ATTENTION_GRAD] = (co_kernel_row){attention_grad, attention_grad_scratch};
}
