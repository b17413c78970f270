/* movielens_rows.c -- from the ids of the files to rows of the model's tables.
 *
 * The ids that occur in the ratings are sorted; the row of an id is its place in that order. Users and items
 * are numbered apart. A movie that nobody rates has no row. Cost: a few passes of a radix sort.
 */
#include "data/movielens_int.h"

#include <string.h>

#include "base/sort.h"

/* The distinct upper halves of keys[n], which are sorted. */
static co_err take_distinct(ml_ids *out, const uint64_t *key, uint32_t n)
{
    uint32_t distinct = 0;

    for (uint32_t i = 0; i < n; i++)
        distinct += i == 0 || key[i] >> 32 != key[i - 1] >> 32;
    out->id = co_array(distinct, sizeof *out->id);
    if (!out->id)
        return CO_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || key[i] >> 32 != key[i - 1] >> 32)
            out->id[out->n++] = (uint32_t)(key[i] >> 32);
    return CO_OK;
}

static co_err number(ml_ids *out, ml_rating *ratings, uint32_t n, bool users, uint64_t *key, uint64_t *tmp)
{
    for (uint32_t i = 0; i < n; i++)
        key[i] = (uint64_t)(users ? ratings[i].user : ratings[i].item) << 32 | i;
    co_sort_keys(key, tmp, n);
    CO_TRY(take_distinct(out, key, n));
    for (uint32_t i = 0, row = 0; i < n; i++) {
        row += i > 0 && key[i] >> 32 != key[i - 1] >> 32;
        ml_rating *r = &ratings[(uint32_t)key[i]];
        *(users ? &r->user : &r->item) = row;
    }
    return CO_OK;
}

co_err ml_number(ml_ids *users, ml_ids *items, ml_rating *ratings, uint32_t n)
{
    uint64_t *key = co_array(2 * (size_t)n, sizeof *key);
    co_err err = key ? number(users, ratings, n, true, key, key + n) : CO_ENOMEM;

    if (!err)
        err = number(items, ratings, n, false, key, key + n);
    co_free(key);
    return err;
}

bool ml_row_of(const ml_ids *ids, uint32_t id, uint32_t *row)
{
    uint32_t lo = 0, hi = ids->n;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (ids->id[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    *row = lo;
    return lo < ids->n && ids->id[lo] == id;
}

/* --- what users have rated ------------------------------------------------------------------------------ */
static co_err refuse_twice(const uint64_t *key, uint32_t n, const ml_ids *users, const ml_ids *items)
{
    for (uint32_t i = 1; i < n; i++)
        if (key[i] == key[i - 1])
            return co_fail(
                CO_EINPUT,
                "user %u rates movie %u twice: remove one of the two lines, or the same pair could be trained"
                " on and validated on",
                users->id[key[i] >> 32], items->id[(uint32_t)key[i]]);
    return CO_OK;
}

/* key[n] becomes user << 32 | item, rising. The sort looks at upper halves only, so it is done twice. */
static void sort_pairs(uint64_t *key, uint64_t *tmp, const ml_rating *ratings, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        key[i] = (uint64_t)ratings[i].item << 32 | ratings[i].user;
    co_sort_keys(key, tmp, n);
    for (uint32_t i = 0; i < n; i++)
        key[i] = key[i] << 32 | key[i] >> 32;
    co_sort_keys(key, tmp, n);
}

co_err ml_list_seen(ml_seen *out, const ml_rating *ratings, uint32_t n, const ml_ids *users, const ml_ids *items)
{
    uint64_t *key = co_array(2 * (size_t)n, sizeof *key);

    if (!key)
        return CO_ENOMEM;
    sort_pairs(key, key + n, ratings, n);
    co_err err = refuse_twice(key, n, users, items);
    out->start = err ? NULL : co_array((size_t)users->n + 1, sizeof *out->start);
    out->item = out->start ? co_array(n, sizeof *out->item) : NULL;
    if (!err && !out->item)
        err = CO_ENOMEM;
    for (uint32_t i = 0; i < n && !err; i++) {
        out->item[i] = (uint32_t)key[i];
        out->start[(key[i] >> 32) + 1] = i + 1; /* every user has a rating, so each place is set */
    }
    co_free(key);
    return err;
}

bool ml_has_seen(const ml_seen *seen, uint32_t user, uint32_t item)
{
    ml_ids own = {seen->item + seen->start[user], seen->start[user + 1] - seen->start[user]};
    uint32_t unused;

    return ml_row_of(&own, item, &unused);
}
