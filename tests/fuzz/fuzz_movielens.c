/* fuzz_movielens.c -- any bytes as the ratings and as the titles of each layout of MovieLens. What is
 * accepted has ratings in range, rows without gaps and titles in UTF-8. */
#include <stdlib.h>

#include "data/movielens_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static packed *stream_of(const uint8_t *bytes, size_t len)
{
    packed *in;

    if (packed_of_bytes(&in, bytes, len, "plain"))
        abort();
    return in;
}

static void check_rows(ml_rating *ratings, uint32_t n)
{
    ml_ids users = {0}, items = {0};
    ml_seen seen = {0};

    if (ml_number(&users, &items, ratings, n))
        abort();
    for (uint32_t i = 0; i < n; i++)
        if (ratings[i].user >= users.n || ratings[i].item >= items.n || !(ratings[i].stars >= 0.5f) ||
            !(ratings[i].stars <= 5))
            abort();
    if (ml_list_seen(&seen, ratings, n, &users, &items) == CO_OK)
        for (uint32_t i = 0; i < n; i++)
            if (!ml_has_seen(&seen, ratings[i].user, ratings[i].item))
                abort();
    co_free(seen.start);
    co_free(seen.item);
    co_free(users.id);
    co_free(items.id);
}

static void try_ratings(const struct ml_layout *layout, const uint8_t *bytes, size_t len)
{
    ml_rating *ratings = NULL;
    uint32_t n = 0;
    bool has_times;

    if (ml_parse_ratings(&ratings, &n, &has_times, layout, stream_of(bytes, len), NULL)) {
        if (n || ratings || !*co_errmsg())
            abort(); /* refused, but written or without a word */
        return;
    }
    check_rows(ratings, n);
    co_free(ratings);
}

static void try_titles(const struct ml_layout *layout, const uint8_t *bytes, size_t len)
{
    uint32_t ids[] = {1, 2, 7};
    const ml_ids items = {ids, 3};
    const char *title[3] = {0};
    co_pool pool = {0};

    if (ml_parse_titles(title, &items, layout, stream_of(bytes, len), &pool) == CO_OK)
        for (int i = 0; i < 3; i++)
            if (title[i] && !co_utf8_valid(title[i]))
                abort();
    co_pool_fini(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    for (int i = 0; ml_layout_at(i); i++) {
        try_ratings(ml_layout_at(i), bytes, len);
        try_titles(ml_layout_at(i), bytes, len);
    }
    return 0;
}
