#include "data/sets.h"

#include "base/alloc.h"

static const char *const sets[] = {"digits", "fake", "text"};
static const uint32_t batches[] = {1, 2, 7, 16, 33, 100, 1437, 5000};

static void is_permutation(const uint32_t *ids, uint32_t n, const char *what, uint32_t batch)
{
    uint8_t *seen = calloc(n, 1);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(ids[i] < n, "%s, batch %u: ids[%u] = %u of %u", what, batch, i, ids[i], n);
        CHECK(!seen[ids[i]]++, "%s, batch %u: %u twice", what, batch, ids[i]);
    }
    free(seen);
}

TEST(every_sample_comes_exactly_once_in_every_epoch_at_any_batch_size)
{
    for (size_t k = 0; k < CO_COUNT(sets); k++) {
        co_dataset *d = set_open(sets[k]);
        for (size_t b = 0; b < CO_COUNT(batches); b++)
            for (int s = 0; s < CO_SPLIT_COUNT; s++) {
                co_order *o;
                CHECK_OK(co_order_new(&o, d, (co_split)s, batches[b], 7, true));
                for (uint32_t e = 0; e < 3; e++)
                    is_permutation(co_order_epoch(o, e), d->count[s], sets[k], batches[b]);
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
        CHECK_OK(co_order_new(&o, d, CO_SPLIT_VAL, 16, 7, false));
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
        CHECK_OK(co_order_new(&a, d, CO_SPLIT_TRAIN, 10, 7, true));
        CHECK_OK(co_order_new(&b, d, CO_SPLIT_TRAIN, 10, 7, true));
        CHECK_OK(co_order_new(&c, d, CO_SPLIT_TRAIN, 10, 8, true));
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

    CHECK_OK(co_order_new(&o, d, CO_SPLIT_TRAIN, 8, 7, true));
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

/* Characters of padding in an epoch cut into batches. */
static int padding(const co_dataset *d, const uint32_t *ids, uint32_t n, uint32_t batch)
{
    int waste = 0;
    for (uint32_t at = 0; at < n; at += batch) {
        int m = (int)(n - at < batch ? n - at : batch), len = co_slice_len(d, CO_SPLIT_TRAIN, ids + at, m);
        for (int i = 0; i < m; i++)
            waste += len - d->length(d, CO_SPLIT_TRAIN, ids[at + (uint32_t)i]);
    }
    return waste;
}

/* A data set like text's that does not know lengths is shuffled plainly: the yardstick. */
TEST(text_in_its_order_wastes_less_on_padding_than_shuffled_plainly)
{
    enum { BATCH = 8 };
    co_dataset *d = set_open("text");
    co_dataset plain = *d;
    co_order *a, *b;
    int sorted = 0, shuffled = 0;

    plain.length = NULL;
    CHECK_OK(co_order_new(&a, d, CO_SPLIT_TRAIN, BATCH, 7, true));
    CHECK_OK(co_order_new(&b, &plain, CO_SPLIT_TRAIN, BATCH, 7, true));
    for (uint32_t e = 0; e < 8; e++) {
        sorted += padding(d, co_order_epoch(a, e), d->count[0], BATCH);
        shuffled += padding(d, co_order_epoch(b, e), d->count[0], BATCH);
    }
    test_note("padding of the verse in batches of 8: %d by length, %d plainly shuffled", sorted / 8,
              shuffled / 8);
    CHECK(sorted * 2 < shuffled, "%d by length, %d plainly", sorted, shuffled);
    co_order_free(a);
    co_order_free(b);
    co_dataset_close(d);
}

/* Of the same epoch with and without lengths: each window of 16 batches has the samples of the plain shuffle,
 * sorted, ties in the order of the shuffle; whole batches moved; the short one last. */
TEST(text_is_sorted_stably_in_windows_and_batches_move_whole)
{
    enum { BATCH = 5 };
    co_dataset *d = set_open("text");
    co_dataset plain = *d;
    co_order *a, *b;
    uint32_t n = d->count[0], moved = 0;
    uint32_t *want = calloc(n, sizeof *want);

    plain.length = NULL;
    CHECK_OK(co_order_new(&a, d, CO_SPLIT_TRAIN, BATCH, 7, true));
    CHECK_OK(co_order_new(&b, &plain, CO_SPLIT_TRAIN, BATCH, 7, true));
    const uint32_t *got = co_order_epoch(a, 1);
    memcpy(want, co_order_epoch(b, 1), n * sizeof *want);
    for (uint32_t at = 0; at < n; at += 16 * BATCH) /* insertion sort: slow, stable, plain to see */
        for (uint32_t i = at + 1; i < n && i < at + 16 * BATCH; i++)
            for (uint32_t j = i;
                 j > at && d->length(d, CO_SPLIT_TRAIN, want[j]) < d->length(d, CO_SPLIT_TRAIN, want[j - 1]);
                 j--) {
                uint32_t t = want[j];
                want[j] = want[j - 1];
                want[j - 1] = t;
            }
    CHECK(n % BATCH != 0, "no short batch to look at: choose another batch");
    CHECK(memcmp(got + n - n % BATCH, want + n - n % BATCH, n % BATCH * sizeof *want) == 0, "short batch");
    for (uint32_t i = 0; i + BATCH <= n; i += BATCH) {
        uint32_t j = 0;
        while (j + BATCH <= n && memcmp(got + i, want + j, BATCH * sizeof *want) != 0)
            j += BATCH;
        CHECK(j + BATCH <= n, "batch %u is not one of the sorted ones", i / BATCH);
        moved += i != j;
    }
    CHECK(moved > n / BATCH / 2, "only %u of %u batches moved", moved, n / BATCH);
    co_order_free(a);
    co_order_free(b);
    free(want);
    co_dataset_close(d);
}

static int made_up_length(const co_dataset *d, co_split s, uint32_t id)
{
    return (int)(7 * id % 13 + 1);
}

/* The example in docs/formats/order.md. Other numbers here mean other weights in every run. */
TEST(the_order_is_that_of_the_written_example)
{
    static const uint32_t plain[35] = {21, 30, 3,  28, 12, 14, 24, 32, 10, 0,  17, 22, 34, 27, 26, 15, 29, 16,
                                       4,  19, 25, 6,  13, 2,  33, 1,  7,  11, 20, 18, 23, 5,  9,  31, 8};
    static const uint32_t text[35] = {33, 7,  0, 26, 12, 25, 19, 6, 20, 22, 29, 16, 1,  3,  18, 5,  4, 32,
                                      30, 17, 8, 31, 21, 34, 15, 2, 14, 27, 10, 23, 24, 11, 13, 28, 9};
    co_dataset d = {.count = {35}};

    for (int by_length = 0; by_length < 2; by_length++) {
        const uint32_t *want = by_length ? text : plain;
        co_order *o;
        d.length = by_length ? made_up_length : NULL;
        CHECK_OK(co_order_new(&o, &d, CO_SPLIT_TRAIN, 2, 42, true));
        const uint32_t *ids = co_order_epoch(o, 0);
        for (int i = 0; i < 35; i++)
            CHECK(ids[i] == want[i], "place %d has %u, not %u", i, ids[i], want[i]);
        co_order_free(o);
    }
}

static co_err try_order(void *d)
{
    co_order *o = NULL;
    co_err err = co_order_new(&o, d, CO_SPLIT_TRAIN, 8, 7, true);
    co_order_free(o);
    return err;
}

TEST(an_order_says_so_when_memory_is_out)
{
    co_dataset *d = set_open("text");
    test_each_alloc_fails(try_order, d);
    co_dataset_close(d);
}
