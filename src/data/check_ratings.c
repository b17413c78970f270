/* check_ratings.c -- figures about a set of ratings, for `cohort data stats`.
 *
 * One reading of all splits: moments and a histogram of the stars, ratings of each user and of each movie. Sums
 * run in the order of the samples. Cost: 4 bytes per user and per movie, and a second for ten million ratings.
 */
#include "data/check_int.h"

#include <math.h>
#include <stdlib.h>

typedef struct tally {
    uint32_t *of_user, *of_item; /* [io.users], [io.items] */
    int32_t *user, *item;        /* [CO_SLICE_MAX] */
    float *stars;                /* [CO_SLICE_MAX] */
    uint32_t *ids;               /* [CO_SLICE_MAX] */
    double sum, squares;
} tally;

static int by_size(const void *a, const void *b)
{
    uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;

    return (p > q) - (p < q);
}

/* Sorts count[n]. The median of an even number of counts is halfway between the middle two. */
static co_count_spread spread_of(uint32_t *count, int64_t n)
{
    if (n < 1)
        return (co_count_spread){0};
    qsort(count, (size_t)n, sizeof *count, by_size);
    double median = ((double)count[(n - 1) / 2] + (double)count[n / 2]) / 2;
    return (co_count_spread){count[0], count[n - 1], median};
}

static void add_block(co_rating_stats *out, tally *t, int n)
{
    for (int i = 0; i < n; i++) {
        double stars = (double)t->stars[i];
        int bin = (int)(stars * 2 + 0.5) - 1;
        bin = bin < 0 ? 0 : bin >= CO_STAR_BINS ? CO_STAR_BINS - 1 : bin;
        out->per_stars[bin]++;
        t->sum += stars;
        t->squares += stars * stars;
        t->of_user[t->user[i]]++;
        t->of_item[t->item[i]]++;
    }
    out->ratings += (uint64_t)n;
}

static void add_split(co_rating_stats *out, tally *t, const co_dataset *d, co_split s)
{
    const co_draw draw = {0};

    for (uint32_t at = 0; at < d->count[s];) {
        int n = d->count[s] - at < CO_SLICE_MAX ? (int)(d->count[s] - at) : CO_SLICE_MAX;
        for (int i = 0; i < n; i++)
            t->ids[i] = at + (uint32_t)i;
        co_dataset_fill(d, s, t->ids, (co_slice_shape){.n = n}, &draw,
                        &(co_slice_dst){.x = t->user, .y = t->stars, .items = t->item});
        add_block(out, t, n);
        at += (uint32_t)n;
    }
}

static void finish(co_rating_stats *out, tally *t, const co_dataset *d)
{
    double n = (double)out->ratings, pairs = (double)d->io.users * (double)d->io.items;

    out->mean = n > 0 ? t->sum / n : 0;
    out->std = n > 0 ? sqrt(fmax(t->squares / n - out->mean * out->mean, 0)) : 0;
    out->density = pairs > 0 ? n / pairs : 0;
    out->per_user = spread_of(t->of_user, d->io.users);
    out->per_item = spread_of(t->of_item, d->io.items);
    out->has_times = d->names && d->names->times && d->names->times(d, &out->first_s, &out->last_s);
}

co_err count_ratings(co_rating_stats *out, const co_dataset *d)
{
    tally t = {
        .of_user = co_array((size_t)d->io.users, sizeof *t.of_user),
        .of_item = co_array((size_t)d->io.items, sizeof *t.of_item),
        .user = co_array(CO_SLICE_MAX, sizeof *t.user),
        .item = co_array(CO_SLICE_MAX, sizeof *t.item),
        .stars = co_array(CO_SLICE_MAX, sizeof *t.stars),
        .ids = co_array(CO_SLICE_MAX, sizeof *t.ids),
    };
    bool room = t.of_user && t.of_item && t.user && t.item && t.stars && t.ids;

    *out = (co_rating_stats){0};
    for (int s = 0; s < CO_SPLIT_COUNT && room; s++)
        add_split(out, &t, d, (co_split)s);
    if (room)
        finish(out, &t, d);
    co_free(t.of_user);
    co_free(t.of_item);
    co_free(t.user);
    co_free(t.item);
    co_free(t.stars);
    co_free(t.ids);
    return room ? CO_OK : CO_ENOMEM;
}
