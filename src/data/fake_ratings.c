/* fake_ratings.c -- made-up ratings of items by users: for trying out recommenders, and for measuring.
 *
 *     rating = 3.5 + (bias of the user + bias of the item) / 2 + taste of the user . nature of the item +
 *     noise
 *
 * Biases, tastes and natures (three numbers each) are uniform in [-1, 1) and belong to the user or the item,
 * so a factorisation of width 3 or more can learn them. Users and items are drawn evenly. Every number is
 * computed from the sample id when it is needed, so the set takes no memory at any size. The ids of val and
 * test follow those of train: one rule made them all.
 */
#include "data/data_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"

struct ratings_cfg {
    int64_t users, items, count, seed;
    double noise;
};

static const co_option options[] = {
    {"users", CO_OPT_INT, offsetof(struct ratings_cfg, users), "1000", "users who rate", .min = 1, .max = 1e9},
    {"items", CO_OPT_INT, offsetof(struct ratings_cfg, items), "500", "items that are rated", .min = 1,
     .max = 1e9},
    {"count", CO_OPT_INT, offsetof(struct ratings_cfg, count), "100000",
     "ratings to train on; an eighth each to validate and to test come on top", .min = 8, .max = 1e9},
    {"seed", CO_OPT_INT, offsetof(struct ratings_cfg, seed), "0", "of the made-up numbers", .min = 0,
     .max = 0x1p53},
    {"noise", CO_OPT_FLOAT, offsetof(struct ratings_cfg, noise), "0.1",
     "standard deviation of the noise on a rating", .min = 0, .max = 1e6},
    {0},
};

struct ratings {
    co_dataset base;
    co_rng_key key;
    uint32_t stream_pair, stream_user, stream_item;
    uint32_t users, items;
    float spread; /* of the noise: it is spread * (a + b - 1) with a, b uniform in [0, 1) */
};

static uint32_t below(uint32_t n, uint32_t draw)
{
    return (uint32_t)((uint64_t)draw * n >> 32);
}

/* What belongs to a user or an item: three numbers and a bias. */
static void traits(float out[4], const struct ratings *set, uint32_t stream, uint32_t which)
{
    uint32_t u[4];

    co_rng_draw(u, set->key, stream, 0, which, 0);
    for (int i = 0; i < 4; i++)
        out[i] = 2 * co_rng_unit(u[i]) - 1;
}

static float rating(const struct ratings *set, uint32_t user, uint32_t item, float noise)
{
    float taste[4], nature[4];

    traits(taste, set, set->stream_user, user);
    traits(nature, set, set->stream_item, item);
    float sum = 3.5f + 0.5f * (taste[3] + nature[3]) + noise;
    for (int i = 0; i < 3; i++)
        sum += taste[i] * nature[i];
    return sum;
}

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct ratings *set = (const struct ratings *)d;
    uint32_t start = split_start(d, s);
    int32_t *users = dst->x; /* [n] */
    float *y = dst->y;       /* [n,1] */

    for (int i = 0; i < shape.n; i++) {
        uint32_t u[4];
        co_rng_draw(u, set->key, set->stream_pair, 0, start + id[i], 0);
        uint32_t user = below(set->users, u[0]), item = below(set->items, u[1]);
        if (users)
            users[i] = (int32_t)user;
        if (dst->items)
            dst->items[i] = (int32_t)item;
        if (y)
            y[i] = rating(set, user, item, set->spread * (co_rng_unit(u[2]) + co_rng_unit(u[3]) - 1));
        if (dst->ids)
            dst->ids[i] = id[i];
    }
    return 0;
}

static void shut(co_dataset *d)
{
    co_free(d);
}

static co_err open_ratings(co_dataset **out, const void *cfg)
{
    const struct ratings_cfg *c = cfg;
    uint32_t n = (uint32_t)c->count;
    struct ratings *set = co_zalloc(sizeof *set);
    char says[192];

    if (!set)
        return CO_ENOMEM;
    set->base = (co_dataset){
        .io = {.task = CO_TASK_REGRESS, .x = CO_SCALAR, .y_width = 1, .users = c->users, .items = c->items},
        .count = {n, n / 8, n / 8},
        .fill = fill,
        .close = shut,
    };
    set->key = co_rng_key_make((uint64_t)c->seed, CO_RNG_DATA);
    set->stream_pair = co_rng_stream("fake_ratings.pair");
    set->stream_user = co_rng_stream("fake_ratings.user");
    set->stream_item = co_rng_stream("fake_ratings.item");
    set->users = (uint32_t)c->users;
    set->items = (uint32_t)c->items;
    set->spread = (float)(c->noise * sqrt(6)); /* the variance of a + b is 1/6 */
    snprintf(says, sizeof says, "fake_ratings 1 users=%lld items=%lld count=%lld seed=%lld noise=%.17g",
             (long long)c->users, (long long)c->items, (long long)c->count, (long long)c->seed, c->noise);
    co_sha256_of(says, strlen(says), set->base.fingerprint);
    *out = &set->base;
    return CO_OK;
}

const co_dataset_def fake_ratings_def = {
    .name = "fake_ratings",
    .help = "made-up ratings of items by users",
    .options = options,
    .cfg_size = sizeof(struct ratings_cfg),
    .open = open_ratings,
};
