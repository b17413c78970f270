#include "data/sets.h"

#include "base/alloc.h"

static const char *const sets[] = {"digits", "fake", "text"};

static void is_permutation(const uint32_t *ids, uint32_t n, const char *what)
{
    uint8_t *seen = calloc(n, 1);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(ids[i] < n, "%s: ids[%u] = %u of %u", what, i, ids[i], n);
        CHECK(!seen[ids[i]]++, "%s: %u twice", what, ids[i]);
    }
    free(seen);
}

TEST(every_sample_comes_exactly_once_in_every_epoch)
{
    for (size_t k = 0; k < CO_COUNT(sets); k++) {
        co_dataset *d = set_open(sets[k]);
        for (int s = 0; s < CO_SPLIT_COUNT; s++) {
            co_order *o;
            CHECK_OK(co_order_new(&o, d, (co_split)s, 7, true));
            for (uint32_t e = 0; e < 3; e++)
                is_permutation(co_order_epoch(o, e), d->count[s], sets[k]);
            co_order_free(o);
        }
        co_dataset_close(d);
    }
}

TEST(without_shuffle_the_order_is_the_samples_own)
{
    for (size_t k = 0; k < CO_COUNT(sets); k++) {
        co_dataset *d = set_open(sets[k]);
        co_order *o;
        CHECK_OK(co_order_new(&o, d, CO_SPLIT_VAL, 7, false));
        const uint32_t *ids = co_order_epoch(o, 3);
        for (uint32_t i = 0; i < d->count[CO_SPLIT_VAL]; i++)
            CHECK(ids[i] == i, "ids[%u] = %u", i, ids[i]);
        co_order_free(o);
        co_dataset_close(d);
    }
}

TEST(the_order_is_a_function_of_seed_and_epoch_only)
{
    for (size_t k = 0; k < CO_COUNT(sets); k++) {
        co_dataset *d = set_open(sets[k]);
        size_t bytes = d->count[0] * sizeof(uint32_t);
        co_order *a, *b, *c;
        CHECK_OK(co_order_new(&a, d, CO_SPLIT_TRAIN, 7, true));
        CHECK_OK(co_order_new(&b, d, CO_SPLIT_TRAIN, 7, true));
        CHECK_OK(co_order_new(&c, d, CO_SPLIT_TRAIN, 8, true));
        for (uint32_t e = 0; e < 5; e++) /* b goes backwards */
            co_order_epoch(b, 9 - e);
        for (uint32_t e = 0; e < 5; e++) {
            const uint32_t *ids = co_order_epoch(a, e);
            CHECK(memcmp(ids, co_order_epoch(b, e), bytes) == 0, "%s: epoch %u has two orders", sets[k], e);
            CHECK(memcmp(ids, co_order_epoch(c, e), bytes) != 0, "%s: seeds 7 and 8 are one", sets[k]);
            CHECK(memcmp(ids, co_order_epoch(a, e + 1), bytes) != 0, "%s: epochs %u and %u are one", sets[k],
                  e, e + 1);
        }
        co_order_free(a);
        co_order_free(b);
        co_order_free(c);
        co_dataset_close(d);
    }
}

TEST(two_epochs_of_an_order_are_kept_and_nothing_is_allocated)
{
    co_dataset *d = set_open("text");
    uint32_t n = d->count[0];
    uint32_t *copy = calloc(n, sizeof *copy);
    co_order *o;

    CHECK_OK(co_order_new(&o, d, CO_SPLIT_TRAIN, 7, true));
    uint64_t before = co_alloc_count();
    const uint32_t *four = co_order_epoch(o, 4);
    memcpy(copy, four, n * sizeof *copy);
    const uint32_t *six = co_order_epoch(o, 6); /* even like 4: must not land on it */
    CHECK(six != four && memcmp(copy, four, n * sizeof *copy) == 0, "epoch 4 is lost");
    CHECK(co_order_epoch(o, 4) == four && co_order_epoch(o, 6) == six, "made again");
    co_order_epoch(o, 5); /* the call after next: now 4 goes */
    CHECK(co_order_epoch(o, 6) == six, "epoch 6 is lost");
    CHECK(co_alloc_count() == before, "%d allocations", (int)(co_alloc_count() - before));
    co_order_free(o);
    free(copy);
    co_dataset_close(d);
}

/* The example in docs/formats/order.md. Other numbers here mean other weights in every run. */
TEST(the_order_is_that_of_the_written_example)
{
    static const uint32_t want[35] = {21, 30, 3,  28, 12, 14, 24, 32, 10, 0,  17, 22, 34, 27, 26, 15, 29, 16,
                                      4,  19, 25, 6,  13, 2,  33, 1,  7,  11, 20, 18, 23, 5,  9,  31, 8};
    co_dataset d = {.count = {35}};
    co_order *o;

    CHECK_OK(co_order_new(&o, &d, CO_SPLIT_TRAIN, 42, true));
    const uint32_t *ids = co_order_epoch(o, 0);
    for (int i = 0; i < 35; i++)
        CHECK(ids[i] == want[i], "place %d has %u, not %u", i, ids[i], want[i]);
    co_order_free(o);
}

static co_err try_order(void *d)
{
    co_order *o = NULL;
    co_err err = co_order_new(&o, d, CO_SPLIT_TRAIN, 7, true);
    co_order_free(o);
    return err;
}

TEST(an_order_says_so_when_memory_is_out)
{
    co_dataset *d = set_open("text");
    test_each_alloc_fails(try_order, d);
    co_dataset_close(d);
}
