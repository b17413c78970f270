/* elementwise.c -- RELU, GELU, their gradients, ADD, MUL, SCALE, DROPOUT: lanes are elements.
 *
 * Every element depends on its own inputs only, so the last short vector is a masked vector with the same
 * steps. All but GELU give the bits of the reference. DROPOUT draws VW Philox blocks (4 * VW elements) at a
 * time. */
#include "kernel/simd/simd_int.h"

#include "kernel/kernel_int.h"
#include "kernel/simd/drops.h"
#include "kernel/simd/vec_maths.h"

typedef vf (*op1)(vf);
typedef vf (*op2)(vf, vf);

ALWAYS_INLINE void map1(const co_call *c, op1 f)
{
    const float *x = c->in[0].p;
    float *y = c->out[0].p;
    int64_t i, hi;
    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &i, &hi);
    for (; i + VW <= hi; i += VW)
        v_store(y + i, f(v_load(x + i)));
    if (i < hi)
        v_store_n(y + i, hi - i, f(v_load_n(x + i, hi - i)));
}

ALWAYS_INLINE void run2(float *y, const float *a, const float *b, int64_t n, op2 f)
{
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        v_store(y + i, f(v_load(a + i), v_load(b + i)));
    if (i < n)
        v_store_n(y + i, n - i, f(v_load_n(a + i, n - i), v_load_n(b + i, n - i)));
}

/* b repeats along a's leading dimensions */
ALWAYS_INLINE void map2(const co_call *c, op2 f)
{
    const float *a = c->in[0].p, *b = c->in[1].p;
    float *y = c->out[0].p;
    int64_t nb = co_shape_count(&c->in[1].shape), lo, hi;
    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi;) {
        int64_t at = i % nb, n = hi - i < nb - at ? hi - i : nb - at;
        run2(y + i, a + i, b + at, n, f);
        i += n;
    }
}

static inline vf relu1(vf x)
{
    return v_max(v_zero(), x); /* nan stays nan */
}
static inline vf relu_grad2(vf dy, vf y)
{
    return v_pick(v_le(y, v_zero()), v_zero(), dy);
}
static inline vf phi(vf x) /* the cumulative normal distribution at x */
{
    return v_set(0.5f) * (v_set(1.0f) + v_erf(x * v_set(0.70710678118654752440f)));
}
static inline vf gelu1(vf x)
{
    return x * phi(x);
}
static inline vf gelu_grad2(vf dy, vf x)
{
    vf density = v_set(0.39894228040143267794f) * v_exp(v_set(-0.5f) * x * x);
    return dy * (phi(x) + x * density);
}
static inline vf add2(vf a, vf b)
{
    return a + b;
}
static inline vf mul2(vf a, vf b)
{
    return a * b;
}

static void relu(const co_call *c)
{
    map1(c, relu1);
}
static void relu_grad(const co_call *c)
{
    map2(c, relu_grad2);
}
static void gelu(const co_call *c)
{
    map1(c, gelu1);
}
static void gelu_grad(const co_call *c)
{
    map2(c, gelu_grad2);
}
static void add(const co_call *c)
{
    map2(c, add2);
}
static void mul(const co_call *c)
{
    map2(c, mul2);
}

static void scale(const co_call *c)
{
    const float *x = c->in[0].p;
    float *y = c->out[0].p;
    vf by = v_set(c->attr->value);
    int64_t i, hi;
    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &i, &hi);
    for (; i + VW <= hi; i += VW)
        v_store(y + i, v_load(x + i) * by);
    if (i < hi)
        v_store_n(y + i, hi - i, v_load_n(x + i, hi - i) * by);
}

static void dropout(const co_call *c)
{
    const int64_t *ids = c->in[1].p;                          /* [n] */
    const int32_t *offsets = c->n_in > 2 ? c->in[2].p : NULL; /* [n+1] */
    int64_t wide = dims_product(&c->in[0].shape, 1, c->in[0].shape.nd), lo, hi;
    drops d = drops_of(c);

    co_share(c->in[1].shape.d[0], c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        int64_t first = (offsets ? offsets[i] : i) * wide, end = (offsets ? offsets[i + 1] : i + 1) * wide;
        row_drop((float *)c->out[0].p + first, (const float *)c->in[0].p + first, end - first, &d,
                 (uint32_t)ids[i], 0);
    }
}

void rows_elementwise(co_kernels *k)
{
    k->row[CO_OP_RELU] = (co_kernel_row){relu, NULL};
    k->row[CO_OP_RELU_GRAD] = (co_kernel_row){relu_grad, NULL};
    k->row[CO_OP_GELU] = (co_kernel_row){gelu, NULL};
    k->row[CO_OP_GELU_GRAD] = (co_kernel_row){gelu_grad, NULL};
    k->row[CO_OP_ADD] = (co_kernel_row){add, NULL};
    k->row[CO_OP_MUL] = (co_kernel_row){mul, NULL};
    k->row[CO_OP_SCALE] = (co_kernel_row){scale, NULL};
    k->row[CO_OP_DROPOUT] = (co_kernel_row){dropout, NULL};
}
