/* matmul.c -- MATMUL, MATMUL_TN_SUM and LINEAR: turns shapes into products for gemm.c. */
#include "kernel/simd/simd_int.h"

#include "kernel/kernel_int.h"
#include "kernel/simd/gemm.h"

/* There is one product per leading index. All have the same sizes; they share b when b has 2 dimensions. */
typedef struct batch {
    int64_t n, m, nn, k;
    int64_t step_a, step_b, step_c;
} batch;

static batch batch_of(const co_call *c)
{
    const co_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
    const co_attr *at = c->attr;
    batch x = {.n = dims_product(a, 0, a->nd - 2)};
    x.m = a->d[a->nd - (at->ta ? 1 : 2)];
    x.k = a->d[a->nd - (at->ta ? 2 : 1)];
    x.nn = b->d[b->nd - (at->tb ? 2 : 1)];
    bool shared = b->nd == 2;
    if (shared && !at->ta) { /* rows of every leading index in one product */
        x.m *= x.n;
        x.n = 1;
    }
    x.step_a = x.m * x.k;
    x.step_b = shared ? 0 : x.k * x.nn;
    x.step_c = x.m * x.nn;
    return x;
}

static size_t threads_scratch(const co_call *c, int64_t m, int64_t n, int64_t k)
{
    return (size_t)call_threads(c) * gemm_scratch(m, n, k) * sizeof(float);
}
static float *own_scratch(const co_call *c, int64_t m, int64_t n, int64_t k)
{
    return (float *)c->scratch + (size_t)c->ith * gemm_scratch(m, n, k);
}

static size_t matmul_scratch(const co_call *c)
{
    batch x = batch_of(c);
    return threads_scratch(c, x.m, x.nn, x.k);
}

static void matmul(const co_call *c)
{
    batch x = batch_of(c);
    const float *a = c->in[0].p, *b = c->in[1].p; /* [n,M,K] or [n,K,M]; [n,K,N] or [n,N,K] */
    float *y = c->out[0].p;                       /* [n,M,N] */
    float *scratch = own_scratch(c, x.m, x.nn, x.k);
    bool ta = c->attr->ta, tb = c->attr->tb;
    gemm g = {.m = x.m, .n = x.nn, .k = x.k, .cm = x.nn, .cn = 1};
    g.a = (gemm_side){.si = ta ? 1 : x.k, .sk = ta ? x.m : 1};
    g.b = (gemm_side){.si = tb ? x.k : 1, .sk = tb ? 1 : x.nn};
    /* With many products each thread takes whole ones; with few, the threads divide each product. */
    bool whole = x.n >= c->nth;
    int64_t lo = 0, hi = x.n;
    if (whole)
        co_share(x.n, c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        g.a.p = a + i * x.step_a;
        g.b.p = b + i * x.step_b;
        g.c = y + i * x.step_c;
        gemm_run(&g, scratch, whole ? 0 : c->ith, whole ? 1 : c->nth);
    }
}

static size_t tn_sum_scratch(const co_call *c)
{
    const co_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
    return threads_scratch(c, shape_last(a), shape_last(b), shape_rows(a));
}

static bool tn_sum_adds(const co_call *c)
{
    return shape_rows(&c->in[0].shape) <= GEMM_KC;
}

static void tn_sum(const co_call *c)
{
    const co_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
    int64_t m = shape_last(a), n = shape_last(b), k = shape_rows(a);
    gemm g = {
        .m = m,
        .n = n,
        .k = k,
        .a = {.p = c->in[0].p, .si = 1, .sk = m}, /* [R,M] */
        .b = {.p = c->in[1].p, .si = 1, .sk = n}, /* [R,N] */
        .c = c->out[0].p,                         /* [M,N] */
        .cm = n,
        .cn = 1,
        .add = c->add,
    };
    gemm_run(&g, own_scratch(c, m, n, k), c->ith, c->nth);
}

static size_t linear_scratch(const co_call *c)
{
    const co_shape *x = &c->in[0].shape;
    return threads_scratch(c, shape_rows(x), c->in[1].shape.d[0], shape_last(x));
}

static void linear(const co_call *c)
{
    int64_t m = shape_rows(&c->in[0].shape), k = shape_last(&c->in[0].shape), n = c->in[1].shape.d[0];
    gemm g = {
        .m = m,
        .n = n,
        .k = k,
        .a = {.p = c->in[0].p, .si = k, .sk = 1}, /* x [R,I] */
        .b = {.p = c->in[1].p, .si = k, .sk = 1}, /* w [O,I] */
        .c = c->out[0].p,                         /* y [R,O] */
        .cm = n,
        .cn = 1,
        .bias_n = c->n_in > 2 ? c->in[2].p : NULL, /* [O] */
    };
    gemm_run(&g, own_scratch(c, m, n, k), c->ith, c->nth);
}

void rows_matmul(co_kernels *k)
{
    k->row[CO_OP_MATMUL] = (co_kernel_row){matmul, matmul_scratch};
    k->row[CO_OP_MATMUL_TN_SUM] = (co_kernel_row){tn_sum, tn_sum_scratch, tn_sum_adds};
    k->row[CO_OP_LINEAR] = (co_kernel_row){linear, linear_scratch};
}
