/* The cut, the fold and the sum. The main property: the root is the same expression for any number of slots.
 * Expressions are strings such as "((0+1)+2)", and the slots' buffers hold them. */
#include "comm/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { MOST = 32, TEXT = 512 };

/* --- the cut --- */
static void cut_covers(const co_cut *c)
{
    uint32_t at = 0, lo, hi, least = UINT32_MAX, most = 0;

    for (int leaf = 0; leaf < c->slices; leaf++) {
        co_cut_range(c, leaf, &lo, &hi);
        if (lo == hi)
            continue;
        CHECK(lo == at && hi > lo && hi <= c->n, "n %u leaf %d: [%u, %u) after %u", c->n, leaf, lo, hi, at);
        CHECK(leaf % (c->slices / c->used) == 0, "leaf %d is none of the %d used", leaf, c->used);
        at = hi;
        least = hi - lo < least ? hi - lo : least;
        most = hi - lo > most ? hi - lo : most;
    }
    CHECK(at == c->n, "n %u: only %u have a leaf", c->n, at);
    CHECK(most - least <= 1 || c->n == 0, "n %u: slices of %u and %u", c->n, least, most);
}

TEST(a_cut_gives_every_sample_one_leaf)
{
    for (int s = 1; s <= MOST; s *= 2)
        for (uint32_t n = 1; n <= 200; n++)
            for (int stats = 0; stats < 2; stats++) {
                co_cut c = co_cut_make(n, 200, s, stats);
                cut_covers(&c);
            }
}

TEST(a_cut_is_at_floor_of_i_n_over_s)
{
    co_cut c = co_cut_make(13, 64, 4, false);
    static const uint32_t want[] = {0, 3, 6, 9, 13};

    for (int i = 0; i < 4; i++) {
        uint32_t lo, hi;
        co_cut_range(&c, i, &lo, &hi);
        CHECK(lo == want[i] && hi == want[i + 1], "leaf %d: [%u, %u)", i, lo, hi);
    }
}

TEST(short_blocks_of_batch_norm_models_keep_slices_of_eight)
{
    for (int s = 1; s <= MOST; s *= 2)
        for (uint32_t n = 1; n < 512; n++) {
            co_cut c = co_cut_make(n, 512, s, true);
            CHECK(c.used >= 1 && c.used <= s && (c.used & (c.used - 1)) == 0, "used %d", c.used);
            CHECK(c.used == 1 || n / (uint32_t)c.used >= 8, "n %u in %d", n, c.used);
            CHECK(c.used == s || n / (2 * (uint32_t)c.used) < 8, "n %u in %d: more would do", n, c.used);
            CHECK(co_cut_make(n, 512, s, false).used == s, "without statistics all are used");
        }
    CHECK(co_cut_make(64, 64, 32, true).used == 32, "a whole batch is cut as planned");
}

TEST(slices_follow_batch_and_model)
{
    static const struct {
        co_slicing of;
        int want;
    } rows[] = {{{1, false, 1e3, 1e3}, 1},
                {{4, false, 1e3, 1e3}, 1},
                {{8, false, 1e3, 1e3}, 2},
                {{64, false, 1e3, 1e3}, 16},
                {{127, false, 1e3, 1e3}, 16},
                {{128, false, 1e3, 1e3}, 32},
                {{4096, false, 1e3, 1e3}, 32},
                {{16, true, 1e3, 1e3}, 1},
                {{64, true, 1e7, 1e9}, 4},
                {{512, true, 1e7, 1e9}, 32},
                {{128, false, 262144, 0}, 32}, /* 1 MiB: not above it */
                /* slices of 8 use a parameter 128 times */
                {{128, false, 262145, 0}, 8},
                {{128, false, 1e6, 1.6e7}, 16},
                {{128, false, 1e6, 3.3e7}, 32},
                {{32, false, 1e9, 1e9}, 8}};

    for (size_t i = 0; i < CO_COUNT(rows); i++)
        CHECK(co_slices_for(&rows[i].of) == rows[i].want, "row %zu: %d", i, co_slices_for(&rows[i].of));
}

/* --- the expression --- */
static void add(char *restrict out, const char *restrict left, const char *restrict right)
{
    if (*left && *right)
        snprintf(out, TEXT, "(%.250s+%.250s)", left, right);
    else
        snprintf(out, TEXT, "%s", *left ? left : right);
}

/* The expression by definition: left + right, where an absent child is the identity. "" if absent. */
static void defined(const co_cut *c, int level, int index, char out[TEXT])
{
    char left[TEXT], right[TEXT];
    uint32_t lo, hi;

    out[0] = '\0';
    if (level == 0) {
        co_cut_range(c, index, &lo, &hi);
        if (lo < hi)
            snprintf(out, TEXT, "%d", index);
        return;
    }
    defined(c, level - 1, 2 * index, left);
    defined(c, level - 1, 2 * index + 1, right);
    add(out, left, right);
}

struct slot {
    char buffer[2 * CO_MAX_LEVELS + 2][TEXT];
    bool full[2 * CO_MAX_LEVELS + 2]; /* the buffer holds a value that is still needed */
};

/* Runs the fold on strings. No operation may overwrite a value that is still needed. */
static void fold(const co_fold *f, struct slot *s)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < f->n_ops; i++) {
        const co_fold_op *op = &f->op[i];
        CHECK(op->dst >= 0 && op->dst < f->n_buffers, "buffer %d of %d", op->dst, f->n_buffers);
        char right[TEXT], sum[TEXT];
        bool adds = op->leaf < 0 || op->adds;
        CHECK(s->full[op->dst] == adds, "op %d: buffer %d holds '%s'", i, op->dst, s->buffer[op->dst]);
        CHECK(op->leaf >= 0 || (op->a != op->dst && s->full[op->a]), "op %d adds what is not there", i);
        if (op->leaf >= 0)
            snprintf(right, sizeof right, "%d", op->leaf);
        else
            snprintf(right, sizeof right, "%s", s->buffer[op->a]);
        add(sum, adds ? s->buffer[op->dst] : "", right);
        memcpy(s->buffer[op->dst], sum, sizeof sum);
        if (op->leaf < 0)
            s->full[op->a] = false;
        s->full[op->dst] = true;
    }
    int held = 0, full = 0;
    for (int i = 0; i < f->n_held; i++) {
        CHECK(f->held[i].buffer < 0 || s->full[f->held[i].buffer], "held buffer %d is gone", f->held[i].buffer);
        held += f->held[i].buffer >= 0;
    }
    for (int i = 0; i < f->n_buffers; i++)
        full += s->full[i];
    CHECK(held == full, "%d held, %d left over", held, full);
}

static bool held_by(const co_tree *t, const struct slot *slots, int level, int index, char out[TEXT])
{
    for (int r = 0; r < t->slots; r++)
        for (int i = 0; i < t->fold[r].n_held; i++) {
            const co_held *h = &t->fold[r].held[i];
            if (h->level == level && h->index == index) {
                snprintf(out, TEXT, "%s", h->buffer < 0 ? "" : slots[r].buffer[h->buffer]);
                return true;
            }
        }
    return false;
}

static void combined(const co_tree *t, const struct slot *slots, int level, int index, char out[TEXT])
{
    char left[TEXT], right[TEXT];

    if (held_by(t, slots, level, index, out))
        return;
    CHECK(level > 0, "leaf %d is nobody's", index);
    combined(t, slots, level - 1, 2 * index, left);
    combined(t, slots, level - 1, 2 * index + 1, right);
    add(out, left, right);
}

static void same_expression(const co_cut *cut, int slots)
{
    static struct slot s[MOST];
    char want[TEXT], got[TEXT];
    int levels = __builtin_ctz((unsigned)cut->slices), root_slot, root;
    co_tree t;

    CHECK_OK(co_tree_init(&t, slots));
    co_tree_deal(&t, cut, 0, cut->slices);
    for (int r = 0; r < slots; r++)
        fold(&t.fold[r], &s[r]);
    if ((slots & (slots - 1)) == 0) {
        int k = __builtin_ctz((unsigned)(cut->slices / slots)), most = k > 1 ? k : 1;
        CHECK(co_tree_buffers(&t) <= most, "%d buffers for S %d, %d slots", co_tree_buffers(&t), cut->slices,
              slots);
    }
    defined(cut, levels, 0, want);
    combined(&t, s, levels, 0, got);
    CHECK(strcmp(want, got) == 0, "S %d, n %u, %d slots: %s, want %s", cut->slices, cut->n, slots, got, want);
    if (co_tree_root(&t, &root_slot, &root))
        CHECK(strcmp(s[root_slot].buffer[root], want) == 0, "the root is not in slot %d", root_slot);
    else
        CHECK(slots > 1, "a single slot holds the root");
    co_tree_fini(&t);
}

TEST(the_sum_is_the_same_expression_for_every_number_of_slots)
{
    static const uint32_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 33, 63, 64, 100, 255, 256};

    for (int s = 1; s <= MOST; s *= 2)
        for (size_t i = 0; i < CO_COUNT(sizes); i++)
            for (int stats = 0; stats < 2; stats++) {
                co_cut cut = co_cut_make(sizes[i], 256, s, stats);
                for (int slots = 1; slots <= s; slots++)
                    same_expression(&cut, slots);
            }
}

/* --- the numbers --- */
enum { N = 37 };

struct numbers {
    float leaf[MOST][N];
    float buffer[MOST][2 * CO_MAX_LEVELS + 2][N];
};
static struct numbers num;

static const float *buffer_of(void *ctx, int slot, int i)
{
    return ((struct numbers *)ctx)->buffer[slot][i];
}

static bool direct(const co_cut *c, int level, int index, float *out)
{
    float left[N], right[N];
    uint32_t lo, hi;

    if (level == 0) {
        co_cut_range(c, index, &lo, &hi);
        memcpy(out, num.leaf[index], sizeof left);
        return lo < hi;
    }
    bool l = direct(c, level - 1, 2 * index, left), r = direct(c, level - 1, 2 * index + 1, right);
    if (l && r)
        co_leaf_add(out, left, right, N);
    else
        memcpy(out, l ? left : right, sizeof left);
    return l || r;
}

static void sums_match(const co_cut *cut, int slots)
{
    static float scratch[CO_MAX_LEVELS * N];
    float want[N], got[N];
    int levels = __builtin_ctz((unsigned)cut->slices);
    co_tree t;

    CHECK_OK(co_tree_init(&t, slots));
    co_tree_deal(&t, cut, 0, cut->slices);
    for (int r = 0; r < slots; r++)
        for (int i = 0; i < t.fold[r].n_ops; i++) {
            const co_fold_op *op = &t.fold[r].op[i];
            float *dst = num.buffer[r][op->dst],
                  *right = op->leaf >= 0 ? num.leaf[op->leaf] : num.buffer[r][op->a];
            if (op->leaf >= 0 && !op->adds)
                memcpy(dst, right, sizeof want);
            else
                co_leaf_add(dst, dst, right, N);
        }
    direct(cut, __builtin_ctz((unsigned)cut->slices), 0, want);
    static const size_t borders[] = {0, 1, 8, 20, N}; /* the sum is done in chunks of uneven lengths */
    for (int again = 0; again < 2; again++) /* an interrupted chunk is summed again: same sources, same sum */
        for (size_t i = 0; i + 1 < CO_COUNT(borders); i++)
            memcpy(got + borders[i],
                   co_tree_node(&t, levels, 0, borders[i], borders[i + 1],
                                &(co_sources){.buffer = buffer_of, .ctx = &num}, scratch),
                   (borders[i + 1] - borders[i]) * sizeof *got);
    CHECK(memcmp(want, got, sizeof want) == 0, "S %d, n %u, %d slots", cut->slices, cut->n, slots);
    co_tree_fini(&t);
}

TEST(the_sum_has_the_bits_of_the_plain_recursion)
{
    uint64_t rng = 1;

    for (int s = 1; s <= MOST; s *= 2)
        for (int slots = 1; slots <= s; slots++)
            for (uint32_t n = 1; n <= 70; n += 3) {
                for (int i = 0; i < s; i++)
                    for (int q = 0; q < N; q++)
                        num.leaf[i][q] = test_unit(&rng) * ldexpf(1, (int)(test_u32(&rng) % 40) - 20);
                for (int stats = 0; stats < 2; stats++) {
                    co_cut cut = co_cut_make(n, 70, s, stats);
                    sums_match(&cut, slots);
                }
            }
}
