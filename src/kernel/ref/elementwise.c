/* elementwise.c -- add, mul, scale, dropout: threads divide the elements (in dropout the samples). */
#include "kernel/ref/real.h"

#include "base/rng.h"

/* The length of the run of elements from i on that pairs with a contiguous run of b; *at is where that run
 * starts in b. */
static int64_t run_end(int64_t i, int64_t hi, int64_t nb, int64_t *at)
{
    *at = i % nb;
    return hi - i < nb - *at ? hi : i + nb - *at;
}

/* y = a + b or a * b; b repeats along a's leading dimensions. */
static void pair_up(const co_call *c, bool times)
{
    const real *a = c->in[0].p, *b = c->in[1].p;
    real *y = c->out[0].p;
    int64_t nb = co_shape_count(&c->in[1].shape), lo, hi, at;

    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo, end; i < hi; i = end) {
        end = run_end(i, hi, nb, &at);
        for (int64_t j = 0; j < end - i; j++)
            y[i + j] = times ? a[i + j] * b[at + j] : a[i + j] + b[at + j];
    }
}

static void add(const co_call *c)
{
    pair_up(c, false);
}

static void mul(const co_call *c)
{
    pair_up(c, true);
}

static void scale(const co_call *c)
{
    const real *x = c->in[0].p;
    real *y = c->out[0].p, value = c->attr->value;
    int64_t lo, hi;

    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        y[i] = x[i] * value;
}

static void dropout(const co_call *c)
{
    const real *x = c->in[0].p;                               /* [n,wide], or [T,wide] with offsets */
    const int64_t *ids = c->in[1].p;                          /* [n] */
    const int32_t *offsets = c->n_in > 2 ? c->in[2].p : NULL; /* [n+1] */
    real *y = c->out[0].p;                                    /* like x */
    int64_t wide = dims_product(&c->in[0].shape, 1, CO_MAX_DIMS), lo, hi;
    co_rng_key key = co_rng_key_make(c->run->seed, CO_RNG_DROPOUT);
    real kept = 1 - (real)c->attr->p;

    co_share(c->in[1].shape.d[0], c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        int64_t first = (offsets ? offsets[i] : i) * wide, end = (offsets ? offsets[i + 1] : i + 1) * wide;
        for (int64_t q = 0; q < end - first; q += 4) {
            uint32_t u[4];
            co_rng_draw(u, key, c->attr->stream, c->run->step, (uint32_t)ids[i], (uint32_t)(q / 4));
            for (int64_t e = first + q; e < first + q + 4 && e < end; e++)
                y[e] = co_rng_unit(u[e - first - q]) >= c->attr->p ? x[e] / kept : 0;
        }
    }
}

void REF(elementwise)(co_kernel_row *row)
{
    row[CO_OP_ADD].fn = add;
    row[CO_OP_MUL].fn = mul;
    row[CO_OP_SCALE].fn = scale;
    row[CO_OP_DROPOUT].fn = dropout;
}
