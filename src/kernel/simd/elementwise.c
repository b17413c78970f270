/* elementwise.c -- RELU, GELU, their gradients, ADD, MUL, SCALE, DROPOUT: lanes are elements.
 *
 * Every element depends on its own inputs only, so the last short vector is a masked vector with the same
 * steps. All but GELU give the bits of the reference. DROPOUT draws VW Philox blocks (4 * VW elements) at a
 * time. */
#include "kernel/simd/simd_int.h"

#include "base/rng.h"
#include "kernel/kernel_int.h"
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

/* ---- dropout ---- */

/* co_rng_draw of VW blocks from `block` on; u[j] holds word j of each. */
ALWAYS_INLINE void draw_blocks(vi u[4], co_rng_key key, uint32_t stream, uint32_t step, uint32_t sample,
                               uint32_t block)
{
    vi c0 = vi_set(block) + vi_lanes(), c1 = vi_set(sample), c2 = vi_set(step), c3 = vi_set(stream);
    uint32_t k0 = key.k[0], k1 = key.k[1];
    for (int round = 0; round < 10; round++) {
        vi lo0, hi0, lo1, hi1;
        vi_mul_wide(&lo0, &hi0, c0, 0xD2511F53u);
        vi_mul_wide(&lo1, &hi1, c2, 0xCD9E8D57u);
        c0 = hi1 ^ c1 ^ vi_set(k0);
        c1 = lo1;
        c2 = hi0 ^ c3 ^ vi_set(k1);
        c3 = lo0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    u[0] = c0, u[1] = c1, u[2] = c2, u[3] = c3;
}

static void dropout(const co_call *c)
{
    const int64_t *ids = c->in[1].p; /* [n] */
    int64_t per = dims_product(&c->in[0].shape, 1, c->in[0].shape.nd), lo, hi;
    co_rng_key key = co_rng_key_make(c->run->seed, CO_RNG_DROPOUT);
    vf p = v_set(c->attr->p), kept = v_set(1 - c->attr->p);

    co_share(c->in[0].shape.d[0], c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        const float *x = (const float *)c->in[0].p + i * per; /* [per] */
        float *y = (float *)c->out[0].p + i * per;            /* [per] */
        for (int64_t q = 0; q < per; q += 4 * VW) {
            vi u[4];
            draw_blocks(u, key, c->attr->stream, c->run->step, (uint32_t)ids[i], (uint32_t)(q / 4));
            vi_turn4(u);
            for (int64_t j = 0; j < 4 && q + j * VW < per; j++) {
                int64_t at = q + j * VW, n = per - at < VW ? per - at : VW;
                vf unit = v_of_int(u[j] >> 8) * v_set(0x1p-24f);
                v_store_n(y + at, n, v_pick(v_ge(unit, p), v_load_n(x + at, n) / kept, v_zero()));
            }
        }
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
