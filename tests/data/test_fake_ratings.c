/* test_fake_ratings.c -- made-up ratings: counts, ranges, the rule that makes them, memory out. */
#include "data/sets.h"

#include <math.h>

static co_dataset *open_ratings(const char *noise, const char *seed)
{
    co_dataset *d = NULL;
    CHECK_OK(set_try(&d, "fake_ratings", "users", "7", "items", "5", "count", "400", "noise", noise, "seed",
                     seed, (char *)NULL));
    return d;
}

struct rated {
    int32_t user, item;
    float y;
};

static struct rated sample(const co_dataset *d, co_split s, uint32_t id)
{
    struct rated r;

    d->fill(d, s, &id, (co_slice_shape){1, 0}, &(co_draw){0},
            &(co_slice_dst){.x = &r.user, .items = &r.item, .y = &r.y});
    return r;
}

TEST(without_noise_a_fake_rating_depends_on_user_and_item_alone_in_all_splits)
{
    co_dataset *d = open_ratings("0", "3");
    float known[7][5] = {{0}};
    int pairs = 0;

    CHECK(d->count[0] == 400 && d->count[1] == 50 && d->count[2] == 50, "%u %u %u", d->count[0], d->count[1],
          d->count[2]);
    CHECK(d->io.task == CO_TASK_REGRESS && d->io.users == 7 && d->io.items == 5, "task %d", (int)d->io.task);
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        for (uint32_t id = 0; id < d->count[s]; id++) {
            struct rated r = sample(d, (co_split)s, id);
            CHECK(r.user >= 0 && r.user < 7 && r.item >= 0 && r.item < 5, "user %d item %d", r.user, r.item);
            CHECK(r.y > -0.51f && r.y < 7.51f, "rating %g", (double)r.y);
            float *before = &known[r.user][r.item];
            pairs += *before == 0;
            CHECK(*before == 0 || *before == r.y, "two ratings of one pair: %g and %g", (double)*before,
                  (double)r.y);
            *before = r.y;
        }
    CHECK(pairs == 35, "%d of 35 pairs occur", pairs);
    co_dataset_close(d);
}

TEST(noise_on_fake_ratings_has_the_spread_asked_for)
{
    co_dataset *clean = open_ratings("0", "3"), *noisy = open_ratings("0.5", "3"),
               *other = open_ratings("0", "4");
    double squares = 0;

    for (uint32_t id = 0; id < 400; id++) {
        double d = (double)sample(clean, CO_SPLIT_TRAIN, id).y - (double)sample(noisy, CO_SPLIT_TRAIN, id).y;
        squares += d * d;
    }
    CHECK(fabs(sqrt(squares / 400) - 0.5) < 0.06, "spread %g", sqrt(squares / 400));
    CHECK(strcmp(clean->fingerprint, noisy->fingerprint) != 0, "one fingerprint for two sets");
    CHECK(strcmp(clean->fingerprint, other->fingerprint) != 0, "one fingerprint for two seeds");
    CHECK(sample(clean, CO_SPLIT_TRAIN, 9).y != sample(other, CO_SPLIT_TRAIN, 9).y, "seed 4 is seed 3");
    co_dataset_close(clean);
    co_dataset_close(noisy);
    co_dataset_close(other);
}

static co_err try_ratings(void *ctx)
{
    co_dataset *d = NULL;
    co_err err = set_try(&d, "fake_ratings", (char *)NULL);
    co_dataset_close(d);
    return err;
}

TEST(fake_ratings_say_so_when_memory_is_out)
{
    test_each_alloc_fails(try_ratings, NULL);
}
