/* matmul.c -- matrix products. Each output element is a sum over k in index order; threads divide the rows of
 * the output.
 *
 * Where b's rows run along n, the loops go i, k, j: the chain over k stays in order while j runs through
 * memory. Where b's rows run along k (tb, linear), each output is a dot product; four are computed at a
 * time. */
#include "kernel/ref/real.h"

/* c [N] = sum over k of a[k * as] * b [K,N] */
static void row_times(real *c, const real *a, int64_t as, const real *b, int64_t K, int64_t N)
{
    for (int64_t j = 0; j < N; j++)
        c[j] = 0;
    for (int64_t k = 0; k < K; k++)
        add_scaled(c, a[k * as], b + k * N, N);
}

static void matmul(const co_call *c)
{
    const co_shape *as = &c->in[0].shape, *bs = &c->in[1].shape;
    const real *a = c->in[0].p, *b = c->in[1].p; /* [..,M,K] or [..,K,M]; [..,K,N] or [..,N,K] */
    real *out = c->out[0].p;                     /* [..,M,N] */
    int ta = c->attr->ta, tb = c->attr->tb;
    int64_t M = as->d[as->nd - (ta ? 1 : 2)], K = as->d[as->nd - (ta ? 2 : 1)];
    int64_t N = bs->d[bs->nd - (tb ? 2 : 1)];
    int64_t b_step = bs->nd == 2 ? 0 : K * N; /* two dimensions: shared by all leading indices */
    int64_t lo, hi;

    co_share(dims_product(as, 0, as->nd - 2) * M, c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        const real *row = a + r / M * M * K + r % M * (ta ? 1 : K), *mat = b + r / M * b_step;
        if (tb)
            dot_rows(out + r * N, N, row, ta ? M : 1, mat, K, K);
        else
            row_times(out + r * N, row, ta ? M : 1, mat, K, N);
    }
}

static void matmul_tn_sum(const co_call *c)
{
    const real *a = c->in[0].p, *b = c->in[1].p; /* [R,M], [R,N] */
    real *out = c->out[0].p;                     /* [M,N] */
    int64_t M = shape_last(&c->in[0].shape), N = shape_last(&c->in[1].shape);
    int64_t R = shape_rows(&c->in[0].shape), lo, hi;

    co_share(M, c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        row_times(out + i * N, a + i, M, b, R, N);
}

static void linear(const co_call *c)
{
    const real *x = c->in[0].p, *w = c->in[1].p;        /* [R,I], [O,I] */
    const real *bias = c->n_in > 2 ? c->in[2].p : NULL; /* [O] */
    real *y = c->out[0].p;                              /* [R,O] */
    int64_t I = shape_last(&c->in[1].shape), O = c->in[1].shape.d[0], lo, hi;

    co_share(shape_rows(&c->in[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        dot_rows(y + r * O, O, x + r * I, 1, w, I, I);
        for (int64_t o = 0; bias && o < O; o++)
            y[r * O + o] += bias[o];
    }
}

void REF(matmul)(co_kernel_row *row)
{
    row[CO_OP_MATMUL].fn = matmul;
    row[CO_OP_MATMUL_TN_SUM].fn = matmul_tn_sum;
    row[CO_OP_LINEAR].fn = linear;
}
