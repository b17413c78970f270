/* pack.c -- copies operands into the order in which the micro kernel reads them.
 *
 * A sliver of B is NR columns, out[k][NR]; a sliver of A is MR rows, out[k][MR]. Each has three versions, and
 * the first that fits is used: lanes are contiguous in memory (plain loads), k is contiguous (VW x VW
 * transposes), or neither is (gathers). Rows or columns past the end repeat the last one; their results are
 * never read.
 */
#include "kernel/simd/gemm.h"

static inline int64_t off_i(const gemm_side *s, int64_t i)
{
    return s->ti ? s->ti[i] : i * s->si;
}
static inline int64_t off_k(const gemm_side *s, int64_t k)
{
    return s->tk ? s->tk[k] : k * s->sk;
}
/* How many of the `left` k from k on are turned at once, because they are contiguous: VW, VW / 2 or none. */
static inline int64_t turned_at_once(const gemm_side *s, int64_t k, int64_t left)
{
    for (int64_t n = VW; n >= 4 && n >= VW / 2; n /= 2)
        if (left >= n && (s->tk ? s->rising && s->tk[k + n - 1] - s->tk[k] == n - 1 : s->sk == 1))
            return n;
    return 0;
}

/* VW columns from addresses row[0..VW-1], lane by lane. */
static void half_by_gather(float *out, const gemm_side *b, const int32_t lane[VW], int64_t k0, int64_t kc)
{
    vi at = vi_load(lane);
    for (int64_t k = 0; k < kc; k++)
        v_store(out + k * NR, v_gather(b->p + off_k(b, k0 + k), at));
}

/* Where k is contiguous, makes VW loads along k and transposes them; elsewhere takes one k at a time. */
static void half_by_transpose(float *out, const gemm_side *b, const int32_t lane[VW], int64_t k0, int64_t kc)
{
    const float *row[VW];
    for (int i = 0; i < VW; i++)
        row[i] = b->p + lane[i];
    int64_t k = 0;
    while (k < kc) {
        int64_t o = off_k(b, k0 + k), n = turned_at_once(b, k0 + k, kc - k);
        vf r[VW];
        if (n == VW) {
            v_load_turned(r, row, o, VW);
            UNROLL for (int i = 0; i < VW; i++) v_store(out + (k + i) * NR, r[i]);
            k += VW;
        } else if (n) {
            v_load_turned(r, row, o, VW / 2);
            UNROLL for (int i = 0; i < VW / 2; i++) v_store(out + (k + i) * NR, r[i]);
            k += VW / 2;
        } else {
            UNROLL for (int i = 0; i < VW; i++) out[k * NR + i] = row[i][o];
            k++;
        }
    }
}

static void half_by_loads(float *out, const gemm_side *b, int64_t at, int64_t k0, int64_t kc)
{
    const float *p = b->p + at;
    if (!b->tk) {
        for (int64_t k = 0; k < kc; k++)
            v_store(out + k * NR, v_load(p + (k0 + k) * b->sk));
        return;
    }
    const int32_t *tk = b->tk + k0;
    for (int64_t k = 0; k < kc; k++)
        v_store(out + k * NR, v_load(p + tk[k]));
}

static void half_by_halves(float *out, const gemm_side *b, const int32_t lane[VW], int64_t k0, int64_t kc)
{
    const float *lo = b->p + lane[0], *hi = b->p + lane[VW / 2];
    for (int64_t k = 0; k < kc; k++) {
        int64_t o = off_k(b, k0 + k);
        v_store(out + k * NR, v_load_halves(lo + o, hi + o));
    }
}

static void half_by_quarters(float *out, const gemm_side *b, const int32_t lane[VW], int64_t k0, int64_t kc)
{
    const float *p[4];
    for (int i = 0; i < 4; i++)
        p[i] = b->p + lane[i * VW / 4];
    for (int64_t k = 0; k < kc; k++) {
        int64_t o = off_k(b, k0 + k);
        v_store(out + k * NR, v_load_quarters(p[0] + o, p[1] + o, p[2] + o, p[3] + o));
    }
}

static void half_by_mask(float *out, const gemm_side *b, int64_t j, int64_t n, int64_t k0, int64_t kc)
{
    for (int64_t k = 0; k < kc; k++)
        v_store(out + k * NR, v_load_n(b->p + j + off_k(b, k0 + k), n));
}

/* Whether the lanes are runs of n contiguous ones. */
static inline bool are_runs(const int32_t lane[VW], int64_t n)
{
    for (int64_t i = 1; i < VW; i++)
        if (i % n && lane[i] - lane[i - 1] != 1)
            return false;
    return true;
}

/* VW columns from j on, of which n exist. */
static void pack_half(float *out, const gemm_side *b, int64_t j, int64_t n, int64_t k0, int64_t kc)
{
    if (!b->ti && b->si == 1 && n < VW) {
        half_by_mask(out, b, j, n, k0, kc);
        return;
    }
    /* Lane offsets from that of column j, so that they fit in 32 bits. */
    gemm_side from = *b;
    int32_t lane[VW];
    from.p += off_i(b, j);
    for (int64_t i = 0; i < VW; i++)
        lane[i] = (int32_t)(off_i(b, j + (i < n ? i : n - 1)) - off_i(b, j));
    if (n == VW && are_runs(lane, VW))
        half_by_loads(out, &from, 0, k0, kc);
    else if (n == VW && are_runs(lane, VW / 2))
        half_by_halves(out, &from, lane, k0, kc);
    else if (n == VW && VW > 4 && are_runs(lane, VW / 4))
        half_by_quarters(out, &from, lane, k0, kc);
    else if (b->tk ? b->rising : b->sk == 1)
        half_by_transpose(out, &from, lane, k0, kc);
    else
        half_by_gather(out, &from, lane, k0, kc);
}

void gemm_pack_b(float *out, const gemm_side *b, int64_t j, int64_t n, int64_t k0, int64_t kc)
{
    for (int64_t h = 0; h < NR; h += VW)
        if (h < n)
            pack_half(out + h, b, j + h, n - h < VW ? n - h : VW, k0, kc);
        else
            for (int64_t k = 0; k < kc; k++)
                v_store(out + k * NR + h, v_zero());
}

/* For contiguous rows (A transposed). The next k overwrites what is stored past MR. */
static void pack_a_by_loads(float *out, const float *p, int64_t sk, int64_t kc)
{
    for (int64_t k = 0; k < kc; k++)
        v_store(out + k * MR, v_load_n(p + k * sk, MR));
}

void gemm_pack_a(float *out, const gemm_side *a, int64_t i, int64_t m, int64_t k0, int64_t kc)
{
    const float *row[VW]; /* VW - MR repeats: their transposed lanes are overwritten by the next k */
    for (int64_t r = 0; r < VW; r++)
        row[r] = a->p + off_i(a, i + (r < m ? r : m - 1));
    if (!a->ti && a->si == 1 && m == MR && !a->tk) {
        pack_a_by_loads(out, row[0] + k0 * a->sk, a->sk, kc);
        return;
    }
    int64_t k = 0, next = a->ti ? 0 : m * a->si; /* to the next sliver, which is packed after this one */
    while (k < kc) {
        int64_t o = off_k(a, k0 + k), n = turned_at_once(a, k0 + k, kc - k);
        vf r[VW];
        if (n)
            UNROLL for (int s = 0; s < MR; s++) __builtin_prefetch(row[s] + o + next);
        if (n == VW) {
            v_load_turned(r, row, o, VW);
            UNROLL for (int s = 0; s < VW; s++) v_store(out + (k + s) * MR, r[s]);
            k += VW;
        } else if (n) {
            v_load_turned(r, row, o, VW / 2);
            UNROLL for (int s = 0; s < VW / 2; s++) v_store(out + (k + s) * MR, r[s]);
            k += VW / 2;
        } else {
            UNROLL for (int s = 0; s < MR; s++) out[k * MR + s] = row[s][o];
            k++;
        }
    }
}
