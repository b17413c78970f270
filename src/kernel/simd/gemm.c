/* gemm.c -- the blocked product (Goto and van de Geijn, 2008; the loops and names are those of BLIS).
 *
 *   for jc: NC columns                          B panel  KC x NC, packed in slivers of NR columns
 *     for pc: KC of k                           (C is stored after each block and loaded before the next)
 *       for ic: MC rows                         A block  MC x KC, packed in slivers of MR rows: stays in L2
 *         for jr: a sliver of B (in L1)
 *           for ir: a sliver of A               micro kernel: MR x NR sums in registers
 *
 * Packing costs as much as a few passes over the operand, so it is skipped where it costs more than it saves:
 * A is read in place when few columns use it, B when few rows use it and its columns are contiguous. Rows of
 * a block are dealt evenly to slivers (8 rows: 4 + 4, not 6 + 2), because a tile of few rows has too few
 * chains to fill the FMA pipes. A last sliver of at most VW columns has one vector of them, not two.
 */
#include "kernel/simd/gemm.h"

/* One tile of m x NR sums, stored to t[m][ldt]; with `resume` the sums start from what t holds. */
typedef struct tile {
    const float *a, *b;
    int64_t rs, cs, ldb;     /* A (r, k) is a[r * rs + k * cs]; B row k is b + k * ldb */
    const int32_t *ta;       /* of `picked` and `paired` */
    const int32_t *tb;       /* of `paired` */
    const gemm_pairs *pairs; /* of `paired`: its chains */
    ahead *asked;            /* of `paired`: what it asks for */
    int64_t k;
    float *t;
    int64_t ldt;
    bool resume;
    bool add;            /* the finished sums are added to what t holds */
    const float *next_t; /* where the next tile will be stored; NULL: not known */
    const float *next_a; /* of `strided`: the next tile's rows of A, if their k are contiguous; NULL: not known */
    const float *bias_m, *bias_n;
} tile;

/* How many vectors of columns a tile has: two, or one where there are at most VW columns. */
enum { NARROW = 1, WIDE = 2 };

/* One row of sums: they start from what t holds, or from zero. */
ALWAYS_INLINE void row_start(vf *s, const float *t, int wide, bool resume)
{
    UNROLL for (int v = 0; v < wide; v++) s[v] = resume ? v_load(t + v * VW) : v_zero();
}

ALWAYS_INLINE void row_step(vf *s, float x, vf b0, vf b1, int wide)
{
    s[0] = v_fma(v_set(x), b0, s[0]);
    if (wide == WIDE)
        s[1] = v_fma(v_set(x), b1, s[1]);
}

/* One row of sums is finished. */
ALWAYS_INLINE void row_end(float *t, const vf *s, int wide, const float *bias_m, const float *bias_n, bool add)
{
    UNROLL for (int v = 0; v < wide; v++)
    {
        vf x = s[v];
        if (bias_m)
            x += v_set(*bias_m);
        if (bias_n)
            x += v_load(bias_n + v * VW);
        if (add)
            x += v_load(t + v * VW);
        v_store(t + v * VW, x);
    }
}

ALWAYS_INLINE void tile_end(const tile *g, vf s[MR][WIDE], int m, int wide)
{
    const float *bias_m = g->bias_m, *bias_n = g->bias_n;
    int64_t ldt = g->ldt;
    float *t = g->t;

    if (!bias_m && !bias_n && !g->add) { /* most tiles */
        UNROLL for (int r = 0; r < m; r++) row_end(t + r * ldt, s[r], wide, NULL, NULL, false);
        return;
    }
    bool add = g->add;
    UNROLL for (int r = 0; r < m; r++)
        row_end(t + r * ldt, s[r], wide, bias_m ? bias_m + r : NULL, bias_n, add);
}

/* n steps of all rows. m and `wide` are constants where this is called. */
ALWAYS_INLINE void steps(vf s[MR][WIDE], const float *a, const float *b, int64_t n, int m, int wide,
                         int64_t rs, int64_t cs, int64_t ldb)
{
    for (; n > 0; n--) {
        vf b0 = v_load(b), b1 = wide == WIDE ? v_load(b + VW) : b0;
        UNROLL for (int r = 0; r < m; r++) row_step(s[r], a[r * rs], b0, b1, wide);
        a += cs;
        b += ldb;
    }
}

ALWAYS_INLINE void tile_start(vf s[MR][WIDE], const tile *g, int m, int wide)
{
    UNROLL for (int r = 0; r < m; r++) row_start(s[r], g->t + r * g->ldt, wide, g->resume);
    if (!g->next_t)
        return;
    UNROLL for (int r = 0; r < m; r++) UNROLL for (int at = 0; at < wide * VW; at += LINE)
    {
        __builtin_prefetch(g->next_t + r * g->ldt + at, 1);
    }
}

ALWAYS_INLINE void packed_tile(const tile *g, int m, int wide)
{
    vf s[MR][WIDE];

    tile_start(s, g, m, wide);
    steps(s, g->a, g->b, g->k, m, wide, 1, MR, NR);
    tile_end(g, s, m, wide);
}

/* Rows of A that are read in place often come from memory: while a line of each is used, those of the next tile are
 * asked for. */
ALWAYS_INLINE void strided_tile(const tile *g, int m, int wide)
{
    vf s[MR][WIDE];
    const float *a = g->a, *b = g->b;
    int64_t k = 0;

    tile_start(s, g, m, wide);
    for (; g->next_a && k + LINE <= g->k; k += LINE) {
        UNROLL for (int r = 0; r < m; r++) __builtin_prefetch(g->next_a + r * g->rs + k, 0);
        steps(s, a + k, b + k * g->ldb, LINE, m, wide, g->rs, 1, g->ldb);
    }
    steps(s, a + k * g->cs, b + k * g->ldb, g->k - k, m, wide, g->rs, g->cs, g->ldb);
    tile_end(g, s, m, wide);
}

ALWAYS_INLINE void packed(const tile *g, int m)
{
    packed_tile(g, m, WIDE);
}

ALWAYS_INLINE void packed_narrow(const tile *g, int m)
{
    packed_tile(g, m, NARROW);
}

ALWAYS_INLINE void strided(const tile *g, int m)
{
    strided_tile(g, m, WIDE);
}

ALWAYS_INLINE void strided_narrow(const tile *g, int m)
{
    strided_tile(g, m, NARROW);
}

/* Step k of the chain takes row ta[k] / MR of A, and row k of B or, if `both`, row tb[k] / NR. All arguments but g are
 * constants where this is called. */
ALWAYS_INLINE void listed(const tile *g, int m, int wide, bool resume, bool both)
{
    vf s[MR][WIDE];

    UNROLL for (int r = 0; r < m; r++) row_start(s[r], g->t + r * NR, wide, resume);
    for (int64_t k = 0; k < g->k; k++) {
        const float *row = g->a + g->ta[k], *b = g->b + (both ? g->tb[k] : k * NR);
        vf b0 = v_load(b), b1 = wide == WIDE ? v_load(b + VW) : b0;
        UNROLL for (int r = 0; r < m; r++) row_step(s[r], row[r], b0, b1, wide);
    }
    UNROLL for (int r = 0; r < m; r++) UNROLL for (int v = 0; v < wide; v++)
    {
        v_store(g->t + r * NR + v * VW, s[r][v]);
    }
}

/* Continues the sums of t. */
ALWAYS_INLINE void picked(const tile *g, int m)
{
    listed(g, m, WIDE, true, false);
}

ALWAYS_INLINE void picked_narrow(const tile *g, int m)
{
    listed(g, m, NARROW, true, false);
}

ALWAYS_INLINE void paired(const tile *g, int m)
{
    const gemm_pairs *p = g->pairs;
    tile one = *g;

    for (int64_t i = 0; i < p->chains; i++) {
        one.ta = p->ta + i * p->step;
        one.tb = p->tb + i * p->step;
        one.k = p->n[i];
        one.t = g->t + i * MR * NR;
        ahead_ask(g->asked, true);
        listed(&one, m, WIDE, false, true);
    }
}

/* Defines name(g, m), which calls `way` with a constant for m, so that its loops over rows unroll and its sums stay in
 * registers. A macro, because clang unrolls no loop of a function that it is given. Functions of their own, so that the
 * surrounding loops do not occupy registers. */
#define ROWS(way, m)                                                                                         \
    case m:                                                                                                  \
        way(g, m);                                                                                           \
        break;
#if MR == 12
#define MORE_ROWS(way)                                                                                       \
    ROWS(way, 4) ROWS(way, 5) ROWS(way, 6) ROWS(way, 7) ROWS(way, 8) ROWS(way, 9) ROWS(way, 10) ROWS(way, 11)
#elif MR == 6
#define MORE_ROWS(way) ROWS(way, 4) ROWS(way, 5)
#elif MR == 4
#define MORE_ROWS(way)
#else
#error "gemm.c: the rows of a tile below MR need their cases here"
#endif
#define WITH_ROWS(name, way)                                                                                 \
    __attribute__((noinline)) static void name(const tile *g, int64_t m)                                     \
    {                                                                                                        \
        switch (m) {                                                                                         \
            ROWS(way, 1) ROWS(way, 2) ROWS(way, 3) MORE_ROWS(way) default : way(g, MR);                      \
            break;                                                                                           \
        }                                                                                                    \
    }
WITH_ROWS(micro_packed, packed)
WITH_ROWS(micro_packed_narrow, packed_narrow)
WITH_ROWS(micro_strided, strided)
WITH_ROWS(micro_strided_narrow, strided_narrow)
WITH_ROWS(micro_picked, picked)
WITH_ROWS(micro_picked_narrow, picked_narrow)
WITH_ROWS(micro_paired, paired)

void gemm_paired(const gemm_pairs *p, const float *a, const float *b, float *c, int64_t m, ahead *next)
{
    micro_paired(&(tile){.a = a, .b = b, .pairs = p, .t = c, .asked = next}, m);
}

void gemm_picked(const float *a, const int32_t *ta, const float *b, int64_t k, float *c, int64_t m, int64_t n)
{
    tile t = {.a = a, .ta = ta, .b = b, .k = k, .t = c};

    if (n > VW)
        micro_picked(&t, m);
    else
        micro_picked_narrow(&t, m);
}

static inline int64_t off_c(const gemm *g, int64_t n)
{
    return g->tn ? g->tn[n] : n * g->cn;
}

/* A tile whose columns are not contiguous in C goes through a buffer [m][NR]. */
static void tile_in(const gemm *g, int64_t i, int64_t m, int64_t j, int64_t n, float *buf)
{
    for (int64_t c = 0; c < n; c++) {
        const float *p = g->c + i * g->cm + off_c(g, j + c);
        for (int64_t r = 0; r < m; r++)
            buf[r * NR + c] = p[r * g->cm];
    }
}

static void tile_out(const gemm *g, int64_t i, int64_t m, int64_t j, int64_t n, const float *buf)
{
    for (int64_t c = 0; c < n; c++) {
        float *p = g->c + i * g->cm + off_c(g, j + c);
        for (int64_t r = 0; r < m; r++)
            p[r * g->cm] = g->add ? p[r * g->cm] + buf[r * NR + c] : buf[r * NR + c];
    }
}

/* tile_out where the rows of C are contiguous, as they are after swapped(). */
static void tile_out_cross(const gemm *g, int64_t i, int64_t m, int64_t j, int64_t n, const float *buf)
{
    for (int64_t h = 0; h < n; h += VW) {
        const float *row[VW];
        vf r[VW];
        for (int s = 0; s < VW; s++)
            row[s] = buf + (s < MR && s < m ? s : 0) * NR;
        v_load_turned(r, row, h, VW);
        float *p = g->c + i + (j + h) * g->cn;
        UNROLL for (int s = 0; s < VW; s++) if (h + s < n) v_store_few(p + s * g->cn, m, r[s]);
    }
}

typedef void micro_fn(const tile *g, int64_t m);
static micro_fn *micro_of(bool packed, int64_t n)
{
    if (packed)
        return n > VW ? micro_packed : micro_packed_narrow;
    return n > VW ? micro_strided : micro_strided_narrow;
}

enum { ASK_STEPS = 16 }; /* asking for the next tile of C is not worth its time in a tile of fewer steps */

/* `more`: another tile follows below this one. */
static void do_tile(const gemm *g, tile *t, int64_t i, int64_t m, int64_t j, int64_t n, bool packed, bool more)
{
    float buf[MR * NR];
    int64_t at = off_c(g, j);
    bool straight = (n == NR || n == VW) && off_c(g, j + n - 1) - at == n - 1;
    t->t = straight ? g->c + i * g->cm + at : buf;
    t->ldt = straight ? g->cm : NR;
    t->add = straight && g->add;
    t->next_t = straight && more && (t->add || t->k >= ASK_STEPS) ? t->t + m * g->cm : NULL;
    if (!straight && t->resume)
        tile_in(g, i, m, j, n, buf);
    micro_of(packed, n)(t, m);
    if (!straight && g->cm == 1 && !g->tn && !g->add)
        tile_out_cross(g, i, m, j, n, buf);
    else if (!straight)
        tile_out(g, i, m, j, n, buf);
}

/* Rows of B that lie so far apart share few sets of a cache, and each has a page of its own. */
enum { FAR_ROWS = 256 };

typedef struct plan {
    bool pack_a, pack_b;
    float *a, *b; /* packed */
} plan;

static int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}
static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns that are contiguous: row by row, as they lie in memory. */
static void pack_rows(float *out, const gemm *g, int64_t jc, int64_t nc, int64_t pc, int64_t kc)
{
    const float *row = g->b.p + jc + pc * g->b.sk;

    for (int64_t k = 0; k < kc; k++, row += g->b.sk)
        for (int64_t j = 0; j < nc; j += NR) {
            float *to = out + j * kc + k * NR;
            v_store(to, v_load(row + j));
            v_store(to + VW, v_load(row + j + VW));
        }
}

static void pack_panel(const gemm *g, const plan *p, int64_t jc, int64_t nc, int64_t pc, int64_t kc)
{
    int64_t j = 0;

    if (p->pack_b && g->b.si == 1 && !g->b.ti && !g->b.tk) {
        j = nc / NR * NR;
        pack_rows(p->b, g, jc, j, pc, kc);
    }
    for (; j < nc; j += NR)
        if (p->pack_b || nc - j < NR) /* a narrow last sliver is packed: its loads would run past the row */
            gemm_pack_b(p->b + j * kc, &g->b, jc + j, least(NR, nc - j), pc, kc);
}

static void pack_block(const gemm *g, const plan *p, int64_t ic, int64_t mc, int64_t pc, int64_t kc)
{
    gemm_deal d = gemm_deal_rows(mc);
    for (int64_t s = 0, i = ic; s < d.n; s++) {
        int64_t m = d.rows + (s < d.longer);
        gemm_pack_a(p->a + s * MR * kc, &g->a, i, m, pc, kc);
        i += m;
    }
}

/* All tiles of rows [ic, ic + mc), columns [jc, jc + nc), k in [pc, pc + kc). */
static void do_block(const gemm *g, const plan *p, int64_t ic, int64_t mc, int64_t jc, int64_t nc, int64_t pc,
                     int64_t kc)
{
    bool last = pc + kc >= g->k;
    gemm_deal d = gemm_deal_rows(mc);
    tile t = {.k = kc, .resume = g->resume || pc > 0};
    for (int64_t j = 0; j < nc; j += NR) {
        int64_t n = least(NR, nc - j);
        bool b_packed = p->pack_b || n < NR;
        float bias[NR] = {0};
        t.b = b_packed ? p->b + j * kc : g->b.p + (jc + j) * g->b.si + pc * g->b.sk;
        t.ldb = b_packed ? NR : g->b.sk;
        t.bias_n = last && g->bias_n ? g->bias_n + jc + j : NULL;
        if (t.bias_n && n < NR) {
            for (int64_t c = 0; c < n; c++)
                bias[c] = t.bias_n[c];
            t.bias_n = bias;
        }
        for (int64_t s = 0, i = ic; s < d.n; s++) {
            int64_t m = d.rows + (s < d.longer);
            t.a = p->pack_a ? p->a + s * MR * kc : g->a.p + i * g->a.si + pc * g->a.sk;
            t.rs = p->pack_a ? 1 : g->a.si;
            t.cs = p->pack_a ? MR : g->a.sk;
            t.next_a = !p->pack_a && g->a.sk == 1 && i + m < g->m ? t.a + m * g->a.si : NULL;
            t.bias_m = last && g->bias_m ? g->bias_m + i : NULL;
            do_tile(g, &t, i, m, jc + j, n, p->pack_a && b_packed, s + 1 < d.n);
            i += m;
        }
    }
}

static void run(const gemm *g, float *scratch)
{
    CO_ASSERT(!g->add || g->k <= GEMM_KC, "sums that are added are finished in one block of k");
    bool a_table = g->a.ti || g->a.tk, b_table = g->b.ti || g->b.tk;
    /* Cuts k into blocks of nearly equal size: a short last block would not be worth loading C again. */
    int64_t blocks = g->k > GEMM_KC ? (g->k + GEMM_KC - 1) / GEMM_KC : 1;
    int64_t kc_max = least(g->k, round_up((g->k + blocks - 1) / blocks, VW));
    plan p = {
        .pack_a = a_table || g->n > 4 * NR,
        .pack_b = b_table || g->b.si != 1 || g->m > (g->b.sk < FAR_ROWS ? 4 * MR : MR),
        .b = scratch,
        .a = scratch + kc_max * least(round_up(g->n, NR), GEMM_NC),
    };
    for (int64_t jc = 0; jc < g->n; jc += GEMM_NC) {
        int64_t nc = least(GEMM_NC, g->n - jc), pc = 0;
        do { /* runs once even when k is 0, to write the bias to C */
            int64_t kc = least(kc_max, g->k - pc);
            pack_panel(g, &p, jc, nc, pc, kc);
            for (int64_t ic = 0; ic < g->m; ic += GEMM_MC) {
                int64_t mc = least(GEMM_MC, g->m - ic);
                if (p.pack_a)
                    pack_block(g, &p, ic, mc, pc, kc);
                do_block(g, &p, ic, mc, jc, nc, pc, kc);
            }
            pc += kc;
        } while (pc < g->k);
    }
}

void gemm_sliver(const float *a, int64_t step, int64_t rows, const float *b, int64_t k, float *c, bool resume)
{
    gemm_deal d = gemm_deal_rows(rows);
    tile t = {.b = b, .k = k, .ldt = NR, .resume = resume};

    for (int64_t s = 0; s < d.n; s++) {
        int64_t m = d.rows + (s < d.longer);
        t.a = a + s * step;
        t.t = c;
        micro_packed(&t, m);
        c += m * NR;
    }
}

size_t gemm_scratch(int64_t m, int64_t n, int64_t k)
{
    int64_t big = m > n ? m : n; /* gemm_run may swap A and B */
    int64_t kc = least(k, GEMM_KC);
    return (size_t)(kc * (least(round_up(big, NR), GEMM_NC) + least(round_up(big, MR), GEMM_MC)) + NR);
}

/* C^T = B^T A^T: the sums are the same, but other elements share a vector. */
static gemm swapped(const gemm *g)
{
    gemm s = *g;
    s.m = g->n, s.n = g->m;
    s.a = g->b, s.b = g->a;
    s.cm = g->cn, s.cn = g->cm;
    s.bias_m = g->bias_n, s.bias_n = g->bias_m;
    return s;
}

/* A rough estimate in cycles: computing tiles, packing a transposed B, storing tiles transposed. A narrow tile takes
 * three quarters of a wide one's time: its loads of A are for one vector each. */
static int64_t cost(const gemm *g)
{
    int64_t rest = g->n % NR, rows = g->m < 4 ? 4 : g->m;
    int64_t quarters = g->n / NR * 4 + (rest > VW ? 4 : rest > 0 ? 3 : 0);
    int64_t pack = !g->b.ti && g->b.si != 1 ? g->n * g->k / 3 : 0;
    int64_t store = g->cn != 1 ? g->m * g->n / 2 : 0;
    return quarters * rows * g->k / 4 + pack + store;
}

void gemm_run(const gemm *g, float *scratch, int ith, int nth)
{
    gemm part = *g;
    if (!g->tn && g->m > 0 && g->n > 0) {
        gemm other = swapped(g);
        if (cost(&other) < cost(g))
            part = other;
    }
    int64_t slivers = (part.n + NR - 1) / NR, lo, hi;
    if (slivers >= nth) {
        co_share(slivers, ith, nth, &lo, &hi);
        lo *= NR, hi = least(hi * NR, part.n);
        part.n = hi - lo;
        if (part.b.ti)
            part.b.ti += lo;
        else
            part.b.p += lo * part.b.si;
        if (part.tn)
            part.tn += lo;
        else
            part.c += lo * part.cn;
        part.bias_n = part.bias_n ? part.bias_n + lo : NULL;
    } else {
        co_share(part.m, ith, nth, &lo, &hi);
        part.m = hi - lo;
        if (part.a.ti)
            part.a.ti += lo;
        else
            part.a.p += lo * part.a.si;
        part.c += lo * part.cm;
        part.bias_m = part.bias_m ? part.bias_m + lo : NULL;
    }
    if (part.m > 0 && part.n > 0)
        run(&part, scratch);
}
