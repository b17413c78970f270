/* ragged.c -- operators on samples of different lengths that lie end to end, without padding.
 *
 * Row t of a ragged tensor [T,...] belongs to sample i when offsets[i] <= t < offsets[i + 1]. Offsets never
 * fall; a sample may have no rows. Attention is computed per (sample, head), and only for the keys that a
 * query sees: with S = scale * q k^T, P = softmax(S) and D the dropout of a row,
 *
 *     y = D(P) v;   dP = D(dy v^T),   dS = scale * P * (dP - sum over keys of P * dP)
 *                   dq = dS k,   dk = dS^T q,   dv = D(P)^T dy
 *
 * Only lse = log(sum over keys of exp(S)) is kept for the gradient, which computes P again as exp(S - lse).
 * Threads divide the (sample, head) pairs. Scratch holds three rows of the longest sample's keys per
 * thread. */
#include "kernel/ref/real.h"

#include <string.h>

#include "base/rng.h"

typedef struct ragged_dims {
    int64_t pairs, C, heads, d;
    const int32_t *q_at, *k_at; /* [n + 1] */
    const int64_t *ids;         /* [n]; NULL: no dropout */
    real scale;
    co_rng_key key;
} ragged_dims;

/* in[0]: q, [1]: k ... as the forward operator has them; `at` is where the offsets begin. */
static ragged_dims dims_of_ragged(const co_call *c, const co_shape *q, int at)
{
    ragged_dims s = {.C = q->d[1], .heads = c->attr->heads, .d = q->d[1] / c->attr->heads};

    s.q_at = c->in[at].p;
    s.k_at = c->in[at + 1].p;
    s.ids = c->n_in > at + 2 ? c->in[at + 2].p : NULL;
    s.pairs = (c->in[at].shape.d[0] - 1) * s.heads;
    s.scale = (real)(1 / sqrt((double)s.d));
    s.key = co_rng_key_make(c->run->seed, CO_RNG_DROPOUT);
    return s;
}

/* One (sample, head) pair: rows [q, q + nq) of the queries and [k, k + nk) of the keys, columns from col
 * on. */
typedef struct ragged_pair {
    int64_t sample, head, col, q, nq, k, nk;
} ragged_pair;

static ragged_pair ragged_pair_of(const ragged_dims *s, int64_t at)
{
    int64_t i = at / s->heads, h = at % s->heads;

    return (ragged_pair){
        i, h, h * s->d, s->q_at[i], s->q_at[i + 1] - s->q_at[i], s->k_at[i], s->k_at[i + 1] - s->k_at[i]};
}

/* Drops elements of x [n], the row of query i: element j is at position (head * nq + i) * (nk rounded up to
 * a multiple of 4) + j of its sample. */
static void drop_row(real *x, int64_t n, const co_call *c, const ragged_dims *s, const ragged_pair *p, int64_t i)
{
    int64_t block = (p->head * p->nq + i) * ((p->nk + 3) / 4);
    real kept = 1 - (real)c->attr->p;

    if (!s->ids || !(c->attr->p > 0))
        return;
    for (int64_t j = 0; j < n; j++) {
        uint32_t u[4];
        co_rng_draw(u, s->key, c->attr->stream, c->run->step, (uint32_t)s->ids[p->sample],
                    (uint32_t)(block + j / 4));
        for (int64_t e = j; j < n && j < e + 4; j++)
            x[j] = co_rng_unit(u[j - e]) >= c->attr->p ? x[j] / kept : 0;
        j--;
    }
}

static int64_t ragged_keys(const ragged_pair *p, int64_t i, int causal)
{
    return causal && i + 1 < p->nk ? i + 1 : p->nk;
}

static void ragged_attention(const co_call *c)
{
    const real *q = c->in[0].p, *k = c->in[1].p, *v = c->in[2].p; /* [Tq,C], [Tk,C], [Tk,C] */
    real *y = c->out[0].p, *lse = c->out[1].p;                    /* [Tq,C], [Tq,heads] */
    ragged_dims s = dims_of_ragged(c, &c->in[0].shape, 3);
    real *row = (real *)c->scratch + c->ith * 3 * c->attr->longest; /* [longest] */
    int64_t lo, hi;

    co_share(s.pairs, c->ith, c->nth, &lo, &hi);
    for (int64_t at = lo; at < hi; at++) {
        ragged_pair p = ragged_pair_of(&s, at);
        for (int64_t i = 0; i < p.nq; i++) {
            int64_t n = ragged_keys(&p, i, c->attr->causal), at_q = (p.q + i) * s.C + p.col;
            real top = 0, *out = y + at_q;
            double sum = 0;
            dot_rows(row, n, q + at_q, 1, k + p.k * s.C + p.col, s.C, s.d);
            for (int64_t j = 0; j < n; j++) {
                row[j] *= s.scale;
                top = j == 0 || row[j] > top ? row[j] : top;
            }
            for (int64_t j = 0; j < n; j++)
                sum += row[j] = R_EXP(row[j] - top);
            for (int64_t j = 0; j < n; j++)
                row[j] *= (real)(1 / sum);
            lse[(p.q + i) * s.heads + p.head] = n > 0 ? (real)(top + co_log(sum)) : 0;
            drop_row(row, n, c, &s, &p, i);
            memset(out, 0, (size_t)s.d * sizeof *out);
            for (int64_t j = 0; j < n; j++)
                add_scaled(out, row[j], v + (p.k + j) * s.C + p.col, s.d);
        }
    }
}

static void clear_columns(real *x, int64_t rows, int64_t C, int64_t d)
{
    for (int64_t j = 0; j < rows; j++)
        memset(x + j * C, 0, (size_t)d * sizeof *x);
}

/* The row of query i: p = probabilities, dropped = D(p), ds = dS. */
static void grad_rows(const co_call *c, const ragged_dims *s, const ragged_pair *p, int64_t i, int64_t n,
                      real *prob, real *dropped, real *ds)
{
    const real *dy = c->in[0].p, *q = c->in[1].p, *k = c->in[2].p, *v = c->in[3].p, *lse = c->in[4].p;
    int64_t at_q = (p->q + i) * s->C + p->col, at_k = p->k * s->C + p->col;
    double sum = 0;

    dot_rows(prob, n, q + at_q, 1, k + at_k, s->C, s->d);
    for (int64_t j = 0; j < n; j++)
        dropped[j] = prob[j] = R_EXP(prob[j] * s->scale - lse[(p->q + i) * s->heads + p->head]);
    drop_row(dropped, n, c, s, p, i);
    dot_rows(ds, n, dy + at_q, 1, v + at_k, s->C, s->d);
    drop_row(ds, n, c, s, p, i);
    for (int64_t j = 0; j < n; j++)
        sum += prob[j] * ds[j];
    for (int64_t j = 0; j < n; j++)
        ds[j] = prob[j] * (ds[j] - (real)sum) * s->scale;
}

static void ragged_attention_grad(const co_call *c)
{
    const real *dy = c->in[0].p, *q = c->in[1].p, *k = c->in[2].p; /* [Tq,C], [Tq,C], [Tk,C] */
    real *dq = c->out[0].p, *dk = c->out[1].p, *dv = c->out[2].p;  /* [Tq,C], [Tk,C], [Tk,C] */
    ragged_dims s = dims_of_ragged(c, &c->in[1].shape, 5);
    real *prob = (real *)c->scratch + c->ith * 3 * c->attr->longest; /* three rows [longest] */
    real *dropped = prob + c->attr->longest, *ds = dropped + c->attr->longest;
    int64_t lo, hi;

    co_share(s.pairs, c->ith, c->nth, &lo, &hi);
    for (int64_t at = lo; at < hi; at++) {
        ragged_pair p = ragged_pair_of(&s, at);
        int64_t at_k = p.k * s.C + p.col;
        clear_columns(dk + at_k, p.nk, s.C, s.d);
        clear_columns(dv + at_k, p.nk, s.C, s.d);
        for (int64_t i = 0; i < p.nq; i++) {
            int64_t at_q = (p.q + i) * s.C + p.col, n = ragged_keys(&p, i, c->attr->causal);
            grad_rows(c, &s, &p, i, n, prob, dropped, ds);
            clear_columns(dq + at_q, 1, s.C, s.d);
            for (int64_t j = 0; j < n; j++) {
                int64_t key = at_k + j * s.C;
                add_scaled(dq + at_q, ds[j], k + key, s.d);
                add_scaled(dk + key, ds[j], q + at_q, s.d);
                add_scaled(dv + key, dropped[j], dy + at_q, s.d);
            }
        }
    }
}

static size_t ragged_attention_scratch(const co_call *c)
{
    return (size_t)(c->nth > 1 ? c->nth : 1) * 3 * (size_t)c->attr->longest * sizeof(real);
}

static void positions(const co_call *c)
{
    const int32_t *at = c->in[0].p; /* [n + 1] */
    int32_t *y = c->out[0].p;       /* [T] */
    int64_t lo, hi;

    co_share(c->in[0].shape.d[0] - 1, c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        for (int32_t t = at[i]; t < at[i + 1]; t++)
            y[t] = t - at[i];
}

static void sinusoids(const co_call *c)
{
    const int32_t *pos = c->in[0].p; /* [T] */
    real *y = c->out[0].p;           /* [T,D] */
    int64_t D = c->out[0].shape.d[1], lo, hi;

    co_share(c->out[0].shape.d[0], c->ith, c->nth, &lo, &hi);
    for (int64_t j = 0; j < D; j++) {
        double rate = co_exp((double)(j / 2 * 2) * -9.210340371976184 / (double)D); /* log(10000) */
        for (int64_t t = lo; t < hi; t++)
            y[t * D + j] = (real)(j % 2 ? co_cos(pos[t] * rate) : co_sin(pos[t] * rate));
    }
}

static void pick_rows(const co_call *c)
{
    const real *a = c->in[0].p, *b = c->in[1].p; /* [A,D], [B,D] */
    const int32_t *idx = c->in[2].p;             /* [K] */
    real *y = c->out[0].p;                       /* [K,D] */
    int64_t A = c->in[0].shape.d[0], B = c->in[1].shape.d[0], D = c->in[0].shape.d[1], lo, hi;

    co_share(c->out[0].shape.d[0], c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        int64_t r = idx[i];
        if (r >= 0 && r < A + B)
            memcpy(y + i * D, r < A ? a + r * D : b + (r - A) * D, (size_t)D * sizeof *y);
        else
            memset(y + i * D, 0, (size_t)D * sizeof *y);
    }
}

void REF(ragged)(co_kernel_row *row)
{
    row[CO_OP_RAGGED_ATTENTION] = (co_kernel_row){ragged_attention, ragged_attention_scratch};
    row[CO_OP_RAGGED_ATTENTION_GRAD] = (co_kernel_row){ragged_attention_grad, ragged_attention_scratch};
    row[CO_OP_POSITIONS].fn = positions;
    row[CO_OP_SINUSOIDS].fn = sinusoids;
    row[CO_OP_PICK_ROWS].fn = pick_rows;
}
