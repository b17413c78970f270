/* data_ratings.c -- what `cohort data stats` prints of a set of ratings, as lines and as JSON. */
#include "cli/data_int.h"

#include <stdio.h>
#include <time.h>

enum { BAR = 40 }; /* columns of the longest bar */

static const char *day(char out[32], uint32_t s)
{
    time_t t = (time_t)s;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d", &tm))
        snprintf(out, 32, "%u s", s);
    return out;
}

static void print_histogram(const co_rating_stats *r)
{
    uint64_t most = 1;

    for (int i = 0; i < CO_STAR_BINS; i++)
        most = r->per_stars[i] > most ? r->per_stars[i] : most;
    printf("%-16s %9s %9s\n", "stars", "ratings", "percent");
    for (int i = 0; i < CO_STAR_BINS; i++) {
        int bar = (int)((double)r->per_stars[i] / (double)most * BAR + 0.5);
        printf("%-16.1f %9llu %9.2f%s%.*s\n", (i + 1) / 2.0, (unsigned long long)r->per_stars[i],
               r->ratings ? 100.0 * (double)r->per_stars[i] / (double)r->ratings : 0, bar ? "  " : "", bar,
               "########################################");
    }
}

void print_ratings(const co_rating_stats *r, const co_io *io)
{
    char from[32], to[32];

    printf("%llu rating%s of %lld movie%s by %lld user%s: %.4g %% of all pairs of a user and a movie\n",
           (unsigned long long)r->ratings, r->ratings == 1 ? "" : "s", (long long)io->items,
           io->items == 1 ? "" : "s", (long long)io->users, io->users == 1 ? "" : "s", 100 * r->density);
    printf("mean  %.4f stars\nstd   %.4f\n", r->mean, r->std);
    if (r->has_times)
        printf("given from %s to %s\n", day(from, r->first_s), day(to, r->last_s));
    printf("%-16s %9s %9s %9s\n", "ratings", "least", "median", "most");
    printf("%-16s %9u %9.10g %9u\n", "of a user", r->per_user.least, r->per_user.median, r->per_user.most);
    printf("%-16s %9u %9.10g %9u\n", "of a movie", r->per_item.least, r->per_item.median, r->per_item.most);
    print_histogram(r);
}

static json_t *spread_json(const co_count_spread *s)
{
    return json_pack("{s:I, s:f, s:I}", "least", (json_int_t)s->least, "median", s->median, "most",
                     (json_int_t)s->most);
}

json_t *ratings_json(const co_rating_stats *r, const co_io *io)
{
    json_t *j = json_pack("{s:I, s:I, s:I, s:f, s:f, s:f}", "count", (json_int_t)r->ratings, "users",
                          (json_int_t)io->users, "movies", (json_int_t)io->items, "density", r->density,
                          "mean", r->mean, "std", r->std);
    json_t *stars = json_object();
    char name[16];

    for (int i = 0; i < CO_STAR_BINS; i++) {
        snprintf(name, sizeof name, "%.1f", (i + 1) / 2.0);
        json_object_set_new(stars, name, json_integer((json_int_t)r->per_stars[i]));
    }
    json_object_set_new(j, "per_stars", stars);
    json_object_set_new(j, "per_user", spread_json(&r->per_user));
    json_object_set_new(j, "per_movie", spread_json(&r->per_item));
    if (r->has_times) {
        json_object_set_new(j, "first_s", json_integer((json_int_t)r->first_s));
        json_object_set_new(j, "last_s", json_integer((json_int_t)r->last_s));
    }
    return j;
}
