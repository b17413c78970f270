/* pairs.c -- PAIR_SCORE and PAIR_ROWS: lanes are pairs in the score, and elements of a row in its gradient.
 *
 * The score's sum runs over a row in index order, so a lane is a pair: the products of VW pairs are written to a block,
 * which is then read turned. Bits are those of the reference, whatever VW is.
 */
#include "kernel/simd/simd_int.h"

#include "base/sort.h"
#include "kernel/kernel_int.h"
#include "tensor/rows.h"

enum { BLOCK = 32 }; /* elements of a row at a time */
_Static_assert(BLOCK % VW == 0, "blocks are whole vectors");

static const float zeros[BLOCK];

/* Element `at` of row i of a table and those after it, BLOCK at most; a row that does not exist is zeros. */
ALWAYS_INLINE const float *part_of_row(const float *table, int64_t V, int64_t D, int32_t i, int64_t at)
{
    return i >= 0 && i < V ? table + i * D + at : zeros;
}

/* --- the score ------------------------------------------------------------------------------------------ */
struct pairs {
    const float *a, *b, *a_bias, *b_bias; /* [V,D], [W,D], [V,1], [W,1] */
    int64_t V, W, D;
    int32_t ia[VW], ib[VW]; /* -1: no pair */
};

/* dot [VW] += the products of elements [at, at + n) of the rows, n <= BLOCK */
ALWAYS_INLINE vf add_block(const struct pairs *p, vf dot, int64_t at, int64_t n)
{
    _Alignas(64) float product[VW][BLOCK];
    const float *row[VW];

    for (int r = 0; r < VW; r++) {
        const float *a = part_of_row(p->a, p->V, p->D, p->ia[r], at);
        const float *b = part_of_row(p->b, p->W, p->D, p->ib[r], at);
        int64_t j = 0;
        for (; j + VW <= n; j += VW)
            v_store(product[r] + j, v_load(a + j) * v_load(b + j));
        if (j < n)
            v_store(product[r] + j, v_load_n(a + j, n - j) * v_load_n(b + j, n - j));
        row[r] = product[r];
    }
    for (int64_t j = 0; j < n; j += VW) {
        vf turned[VW];
        v_load_turned(turned, row, j, VW);
        for (int k = 0; k < VW && j + k < n; k++)
            dot = dot + turned[k];
    }
    return dot;
}

static vf score(const struct pairs *p)
{
    float a_bias[VW], b_bias[VW];
    vf dot = v_zero();

    for (int64_t at = 0; at < p->D; at += BLOCK)
        dot = p->D - at >= BLOCK ? add_block(p, dot, at, BLOCK) : add_block(p, dot, at, p->D - at);
    for (int r = 0; r < VW; r++) {
        a_bias[r] = *part_of_row(p->a_bias, p->V, 1, p->ia[r], 0);
        b_bias[r] = *part_of_row(p->b_bias, p->W, 1, p->ib[r], 0);
    }
    return dot + (v_load(a_bias) + v_load(b_bias));
}

static void pair_score(const co_call *c)
{
    struct pairs p = {c->in[0].p,          c->in[1].p,          c->in[2].p, c->in[3].p, c->in[0].shape.d[0],
                      c->in[1].shape.d[0], c->in[0].shape.d[1], {0},        {0}};
    const float *bias = c->in[4].p;                   /* [1] */
    const int32_t *ia = c->in[5].p, *ib = c->in[6].p; /* [n] */
    float *y = c->out[0].p;                           /* [n,1] */
    int64_t i, hi;

    co_share(co_shape_count(&c->in[5].shape), c->ith, c->nth, &i, &hi);
    for (; i < hi; i += VW) {
        int64_t n = hi - i < VW ? hi - i : VW;
        for (int r = 0; r < VW; r++) {
            p.ia[r] = r < n ? ia[i + r] : -1;
            p.ib[r] = r < n ? ib[i + r] : -1;
        }
        v_store_n(y + i, n, score(&p) + v_set(bias[0]));
    }
}

/* --- its gradient --------------------------------------------------------------------------------------- */
struct side {
    const float *dy, *other; /* [n,1], [W,D] */
    const int32_t *others;   /* [n] */
    int64_t W, D;
};

/* The row that is paired with position `at`; NULL: there is none. */
ALWAYS_INLINE const float *other_row(const struct side *s, uint32_t at)
{
    int32_t i = s->others[at];

    return i >= 0 && i < s->W ? s->other + i * s->D : NULL;
}

/* value [n] = 0 + g * other [n] */
ALWAYS_INLINE void set_product(float *value, float g, const float *other, int64_t n)
{
    vf factor = v_set(g);
    int64_t j = 0;

    for (; j + VW <= n; j += VW)
        v_store(value + j, v_zero() + factor * v_load(other + j));
    if (j < n)
        v_store_n(value + j, n - j, v_zero() + factor * v_load_n(other + j, n - j));
}

/* value [D] = the sum over positions of dy times the other row; returns the sum of dy. Any number of positions, and
 * rows that do not exist. */
static __attribute__((noinline)) float add_positions(const struct side *s, const uint64_t *key, int64_t n,
                                                     float *value)
{
    float bias = 0;

    for (int64_t j = 0; j < s->D; j += VW) {
        int64_t lanes = s->D - j < VW ? s->D - j : VW;
        vf sum = v_zero();
        for (int64_t k = 0; k < n; k++) {
            const float *other = other_row(s, (uint32_t)key[k]);
            vf x = other ? v_load_n(other + j, lanes) : v_zero();
            sum = sum + v_set(0 + s->dy[(uint32_t)key[k]]) * x;
        }
        v_store_n(value + j, lanes, sum);
    }
    for (int64_t k = 0; k < n; k++)
        bias += s->dy[(uint32_t)key[k]];
    return bias;
}

/* The same; most rows occur once in a slice. */
ALWAYS_INLINE float row_gradient(const struct side *s, const uint64_t *key, int64_t n, float *value)
{
    uint32_t at = (uint32_t)key[0];
    const float *other = other_row(s, at);

    if (n > 1 || !other)
        return add_positions(s, key, n, value);
    float g = 0 + s->dy[at];
    set_product(value, g, other, s->D);
    return g;
}

/* Places [from, to) of the lists: no rows. */
static void clear_places(const co_call *c, int64_t from, int64_t to)
{
    float *value = c->out[0].p, *bias = c->out[3].p;
    uint32_t *row = c->out[1].p, *bias_row = c->out[4].p;
    int64_t D = c->out[0].shape.d[1];

    for (int64_t i = from; i < to; i++) {
        row[i] = bias_row[i] = CO_NO_ROW;
        bias[i] = 0;
        for (int64_t j = 0; j < D; j++)
            value[i * D + j] = 0;
    }
}

static void pair_rows(const co_call *c)
{
    float *value = c->out[0].p, *bias = c->out[3].p;      /* [cap,D], [cap,1] */
    uint32_t *row = c->out[1].p, *bias_row = c->out[4].p; /* [cap] */
    int64_t cap = c->out[0].shape.d[0], D = c->out[0].shape.d[1], n = co_shape_count(&c->in[2].shape), lo, hi;
    const struct side s = {c->in[0].p, c->in[1].p, c->in[3].p, c->in[1].shape.d[0], D};
    uint64_t *key = (uint64_t *)c->scratch + c->ith * 2 * n; /* [2 n] */
    int64_t found = (int64_t)co_sort_positions(key, c->in[2].p, (size_t)n, c->attr->rows), rows = 0;

    co_share(cap, c->ith, c->nth, &lo, &hi); /* every thread walks all keys and adds up its own rows */
    for (int64_t at = 0, end; at < found; at = end, rows++) {
        for (end = at + 1; end < found && key[end] >> 32 == key[at] >> 32;)
            end++;
        if (rows < lo || rows >= hi)
            continue;
        row[rows] = bias_row[rows] = (uint32_t)(key[at] >> 32);
        bias[rows] = row_gradient(&s, key + at, end - at, value + rows * D);
    }
    clear_places(c, rows > lo ? rows : lo, hi);
    if (c->ith == 0)
        *(uint32_t *)c->out[2].p = *(uint32_t *)c->out[5].p = (uint32_t)rows;
}

void rows_pairs(co_kernels *k)
{
    k->row[CO_OP_PAIR_SCORE].fn = pair_score;
    k->row[CO_OP_PAIR_ROWS].fn = pair_rows; /* with the scratch of the reference */
}
